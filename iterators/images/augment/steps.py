"""The steps of programs: one row for each operation, and the check of the keyword `steps`.

A row says all that differs between an operation and the others, `program` draws and applies
it.  Keywords of a recipe that change pixels are programs as well, with random numbers from fixed
`words`: (block and word of the chance, those of the first value, first block of an order).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from recordio.kernels.operations import METHODS
from recordio.keywords.checks import choice, did_you_mean, integer, real
from recordio.keywords.options import optional

from .policies import POLICY_CHECKS, Policy, policy_of
from .ranges import chance, ends, interval, listed, shares

#: Most operations and combinators of a program, and how deep they may be nested: each has random
#: numbers of its own.
MOST_STEPS, MOST_DEPTH, MOST_ORDERED = 256, 8, 64
#: Largest side of a blur's kernel.
LARGEST_KERNEL = 255

#: Blocks of random numbers that keywords have for their steps; `draw.pxd` names all of them.
ROTATION, LEAN, CORNERS, PHOTOMETRIC = 12, 13, 14, 64

Check = Callable[[str, Any], Any]
_REQUIRED: Any = object()


class Parameter(NamedTuple):
    """A parameter of an operation."""

    check: Check
    default: Any = _REQUIRED
    #: Range that changes nothing, of a parameter that may be missing.
    still: tuple[float, float] = (0, 0)


class StepRow(NamedTuple):
    """An operation, or a combinator of other steps."""

    #: Its parameters, beside "p".
    parameters: Mapping[str, Parameter] = {}
    #: Name in `recordio.kernels.operations`; "" for code of its own in `program`.
    kernel: str = ""
    #: Parameters from whose ranges its numbers are drawn, in this order.
    draws: tuple[str, ...] = ()
    #: True if pixels move, which masks and points have to follow.
    moves: bool = False
    #: Parameters that need RGB images; "op" for the operation itself.
    colours: tuple[str, ...] = ()
    #: False for a step that only keywords make.
    public: bool = True


def _numbers(
    name: str, value: Any, low: float, high: float, counts: tuple[int, ...] = (2,)
) -> tuple[float, ...]:
    """Return the ends of one range, or of several."""
    if isinstance(value, (str, Mapping)) or not hasattr(value, "__len__"):
        raise TypeError(f"{name}={value!r:.80}: expected a range, (low, high)")
    items = listed(name, value, counts, f"{' or '.join(map(str, counts))} numbers")
    pairs = (items[i : i + 2] for i in range(0, len(items), 2))
    return tuple(end for pair in pairs for end in ends(name, pair, low, high))


def _odd(name: str, value: Any) -> int:
    side = integer(name, value, 1, LARGEST_KERNEL)
    if side % 2 == 0:
        raise ValueError(f"{name}={value!r}: expected an odd number")
    return side


def _kernel(name: str, value: Any) -> tuple[int, int]:
    sides = listed(name, value, (1, 2), "one odd number, or two for x and y")
    return _odd(name, sides[0]), _odd(name, sides[-1])


def _weights(name: str, value: Any) -> tuple[float, ...]:
    weights = tuple(real(name, item, 0, 1e9) for item in listed(name, value))
    if not any(weights):
        raise ValueError(f"{name}={value!r:.80}: one of them must be above 0")
    return weights


_PARTS = {"of": Parameter(lambda name, value: value)}  # checked one floor deeper, by `_steps`
_FACTORS = Parameter(optional(partial(_numbers, low=0, high=1e3)), None, (1, 1))
_TURN = {"degrees": Parameter(partial(_numbers, low=-32767, high=32767))}
_MOVED = {
    "interpolation": Parameter(partial(choice, allowed=METHODS), "nearest"),
    "fill": Parameter(POLICY_CHECKS["augment_fill"], (0, 0, 0)),
}

#: Every operation; one with a kernel of its own is this row and that kernel.
STEPS: dict[str, StepRow] = {
    "color_jitter": StepRow(
        {
            "brightness": _FACTORS,
            "contrast": _FACTORS,
            "saturation": _FACTORS,
            "hue": Parameter(optional(partial(_numbers, low=-0.5, high=0.5)), None),
        },
        draws=("brightness", "contrast", "saturation", "hue"),
        colours=("saturation", "hue"),
    ),
    "grayscale": StepRow(kernel="grey", colours=("op",)),
    "gaussian_blur": StepRow(
        {
            "kernel_size": Parameter(_kernel),
            "sigma": Parameter(partial(interval, low=1e-3, high=1e3), (0.1, 2.0)),
        },
        draws=("sigma",),
    ),
    "solarize": StepRow(
        {"threshold": Parameter(partial(real, low=0, high=256), 128.0)}, "solarize", ("threshold",)
    ),
    "posterize": StepRow(
        {"bits": Parameter(partial(integer, low=1, high=8))}, "posterize", ("bits",)
    ),
    "equalize": StepRow(kernel="equalize"),
    "autocontrast": StepRow(kernel="autocontrast"),
    "sharpness": StepRow(
        {"factor": Parameter(partial(real, low=0, high=1e3))}, "sharpness", ("factor",)
    ),
    "invert": StepRow(kernel="invert"),
    "rotate": StepRow({**_TURN, **_MOVED}, draws=("degrees",), moves=True),
    "affine": StepRow(
        {
            **_TURN,
            "translate": Parameter(shares, (0.0, 0.0)),
            "scale": Parameter(partial(_numbers, low=1e-3, high=1e3), (1.0, 1.0)),
            "shear": Parameter(partial(_numbers, low=-89, high=89, counts=(2, 4)), (0.0, 0.0)),
            **_MOVED,
        },
        draws=("degrees", "translate", "scale", "shear"),
        moves=True,
    ),
    "perspective": StepRow(
        {
            "distortion_scale": Parameter(chance, 0.5),
            **_MOVED,
            "interpolation": _MOVED["interpolation"]._replace(default="bilinear"),
        },
        draws=("distortion_scale",),
        moves=True,
    ),
    "hflip": StepRow(moves=True),
    "vflip": StepRow(moves=True),
    "auto_augment": StepRow(
        {
            "policy": Parameter(POLICY_CHECKS["auto_augment"]),
            "magnitude_std": Parameter(POLICY_CHECKS["magnitude_std"], 0.0),
            "increasing": Parameter(POLICY_CHECKS["increasing"], False),
            "augment_table": Parameter(POLICY_CHECKS["augment_table"], "torchvision"),
            **{
                name: Parameter(optional(POLICY_CHECKS[name]), None)
                for name in ("num_ops", "magnitude", "augment_interpolation", "augment_fill")
            },
        },
        moves=True,
    ),
    "apply": StepRow(_PARTS),
    "choice": StepRow({**_PARTS, "weights": Parameter(_weights, None)}),
    "order": StepRow(_PARTS),
    "blur": StepRow(kernel="blur", draws=("sigma",), public=False),  # Pillow's, by boxes
}
#: Names for the keyword `steps`.
PUBLIC = tuple(name for name, row in STEPS.items() if row.public)
#: Those that always happen: `apply` around one gives it a probability.
_CERTAIN = ("choice", "order")


def steps_of(name: str, value: Any) -> tuple[dict[str, Any], ...]:
    """Return the steps of a program, each a dictionary with what differs from its defaults."""
    steps = _steps(name, value, MOST_DEPTH)
    count = sum(1 for _ in walk(name, steps))
    if count > MOST_STEPS:
        raise ValueError(f"{name} has {count} steps: at most {MOST_STEPS} are possible")
    return steps


def _steps(name: str, value: Any, depth: int) -> tuple[dict[str, Any], ...]:
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{name}={value!r:.80}: expected a list of steps")
    if depth == 0:
        raise ValueError(f"{name}: steps may be nested {MOST_DEPTH} deep, and not further")
    return tuple(_step(f"{name}[{i}]", item, depth) for i, item in enumerate(value))


def _step(name: str, value: Any, depth: int) -> dict[str, Any]:
    description = {"op": value} if isinstance(value, str) else value
    if not isinstance(description, Mapping):
        raise TypeError(f"{name}={value!r:.80}: expected a dictionary, or a name alone")
    if "op" not in description:
        raise TypeError(f'{name} needs "op": one of {", ".join(PUBLIC)}')
    kind = description["op"]
    if not isinstance(kind, str) or kind not in PUBLIC:
        hint = did_you_mean(str(kind), PUBLIC) or f"expected one of {', '.join(PUBLIC)}"
        raise ValueError(f'{name}["op"]={kind!r:.80}: {hint}')
    parameters = dict(STEPS[kind].parameters)
    if kind not in _CERTAIN:
        parameters["p"] = Parameter(chance, 1.0)
    for key in description:
        if key != "op" and key not in parameters:
            hint = did_you_mean(str(key), parameters) or f"it has {', '.join(parameters) or 'none'}"
            raise TypeError(f"{name}, {kind!r}, has no parameter {key!r:.80}; {hint}")
    step = {"op": kind}
    for key, (check, default, _) in parameters.items():
        if key in description:
            item = check(f'{name}["{key}"]', description[key])
            if key == "of":
                item = _steps(f'{name}["of"]', item, depth - 1)
            if item != default:
                step[key] = item
        elif default is _REQUIRED:
            raise TypeError(f'{name}, {kind!r}, needs "{key}"')
    return _whole(name, step)


def _whole(name: str, step: dict[str, Any]) -> dict[str, Any]:
    """Return a step whose parameters agree with one another."""
    if not step.get("of", True):
        raise ValueError(f'{name}["of"] is empty: expected a step at least')
    if step["op"] == "order" and len(step["of"]) > MOST_ORDERED:
        raise ValueError(f'{name}["of"] has {len(step["of"])} steps: expected up to {MOST_ORDERED}')
    if "weights" in step and len(step["weights"]) != len(step["of"]):
        raise ValueError(
            f'{name}["weights"]={step["weights"]!r:.80}: expected {len(step["of"])} numbers'
        )
    if step["op"] == "color_jitter" and not step.keys() - {"op", "p"}:
        raise ValueError(f"{name}, 'color_jitter', has no effect without a range")
    if step["op"] == "auto_augment":
        try:
            step_policy(step)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return step


def walk(name: str, steps: tuple[dict[str, Any], ...]) -> Any:
    """Yield the position and the step of all of them, parents first."""
    for i, step in enumerate(steps):
        yield f"{name}[{i}]", step
        yield from walk(f'{name}[{i}]["of"]', step.get("of", ()))


def parameters_of(step: dict[str, Any]) -> dict[str, Any]:
    """Return all parameters of a checked step, with their defaults."""
    defaults = {key: item.default for key, item in STEPS[step["op"]].parameters.items()}
    return {"p": 1.0, **defaults, **step}


def ranges_of(step: dict[str, Any]) -> list[float]:
    """Return the ends of the ranges from which the numbers of a checked step are drawn."""
    row, values = STEPS[step["op"]], parameters_of(step)
    ends: list[float] = []
    for name in row.draws:
        value = row.parameters[name].still if values[name] is None else values[name]
        ends += value if isinstance(value, tuple) else (value, value)
    return ends


def step_policy(step: dict[str, Any]) -> Policy:
    """Make the policy of a step of the kind "auto_augment"."""
    parameters = parameters_of(step)
    return policy_of(
        parameters["policy"],
        parameters["augment_table"],
        interpolation=parameters["augment_interpolation"],
        fill=parameters["augment_fill"],
        **{key: parameters[key] for key in ("num_ops", "magnitude", "magnitude_std", "increasing")},
    )


def check_for(
    steps: tuple[dict[str, Any], ...], shape: tuple[int, int, int], boxes: bool = False
) -> None:
    """Refuse steps that images of this shape (channels, height, width), or boxes, cannot have."""
    channels, height, width = shape
    for name, step in walk("steps", steps):
        row = STEPS[step["op"]]
        if boxes and row.moves:
            keyword = "auto_augment=" if step["op"] == "auto_augment" else "rand_mirror_prob="
            raise ValueError(
                f'{name}["op"]={step["op"]!r} moves pixels and leaves the boxes where they were: '
                f"{keyword} and the crops of this iterator move both"
            )
        coloured = [key for key in row.colours if key in step]
        if channels == 1 and coloured:
            what = f", {step['op']!r}," if coloured == ["op"] else f'["{coloured[0]}"]'
            raise ValueError(f"{name}{what} needs RGB images: data_shape with 3 channels")
        for side, kernel in zip((width, height), step.get("kernel_size", ()), strict=False):
            if kernel // 2 >= side:
                raise ValueError(
                    f'{name}["kernel_size"]={step["kernel_size"]!r}: half of it must be below the '
                    f"{side} pixels of the image"
                )
