"""The `Policy` of `auto_augment`, made of a name, of timm's string, or of keywords.

A policy names the operations to draw from, their number, and their strength.  It draws nothing
and touches no pixel: `program` does both, without the GIL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from recordio.keywords.checks import boolean, choice, integer, integers, real

from .policy_tables import AUTO_POLICIES, TIMM_SCALES, TIMM_SETS, TORCHVISION_SETS, Scale

#: Names for `auto_augment`, beside timm's strings.
NAMES = (
    "randaugment", "trivialaugment", "autoaugment", "autoaugment-cifar10", "autoaugment-svhn",
    "augmix",
)  # fmt: skip
TABLES = ("torchvision", "timm")
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "random")

#: Most operations of one image, and most that are drawn among; the drawing keeps them in fixed
#: space.
MOST_LAYERS = 16
MOST_WIDTH, MOST_DEPTH = 8, 8

#: Levels for pixels that a move leaves empty.
TORCHVISION_FILL, TIMM_FILL = (0, 0, 0), (128, 128, 128)


def _fill(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, (str, tuple, list)):
        return integers(name, value, 3, 0, 255)
    return (integer(name, value, 0, 255),) * 3


def _name(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r:.80}: expected the name of a policy")
    return value.strip()


#: Checks of `auto_augment` and of the keywords beside it.
POLICY_CHECKS: dict[str, Any] = {
    "auto_augment": _name,
    "num_ops": partial(integer, low=0, high=MOST_LAYERS),
    "magnitude": partial(real, low=0, high=100),
    "magnitude_std": partial(real, low=0, high=1e6),
    "increasing": boolean,
    "augment_table": partial(choice, allowed=TABLES),
    "augment_interpolation": partial(choice, allowed=INTERPOLATIONS),
    "augment_fill": _fill,
}

_TIMM = re.compile(r"(rand|augmix|original|originalr|v0|v0r|3a)(-.*)?")


@dataclass(frozen=True)
class PolicyChoice:
    """An operation that may be drawn."""

    scale: Scale
    #: Probability that it is done once it was drawn.
    chance: float = 1.0
    #: Frequency of drawing it, compared with the others.
    weight: float = 1.0
    #: Strength, of `Policy.levels`.
    level: float = 0.0
    #: The value is drawn from 0.1 to twice that of the scale, as by timm's ``GaussianBlurRand``.
    between: bool = False


@dataclass(frozen=True)
class Policy:
    """The operations that an image goes through."""

    #: "layers", some of the choices one after the other; "chains", one of several chains of them;
    #: "mix", chains drawn from the choices and mixed (AugMix).
    kind: str
    choices: tuple[PolicyChoice, ...]
    #: Number of choices that are drawn.
    layers: int = 0
    #: A choice may be drawn again.
    replace: bool = True
    #: Lengths of the chains that the choices make up.
    chains: tuple[int, ...] = ()
    #: The level that counts as 1.
    levels: float = 10.0
    #: Standard deviation of the level; infinity for a level between 0 and that of the choice.
    noise: float = 0.0
    #: Draw the level from 0 to ``bins - 1``; 0 for that of the choice.
    bins: int = 0
    #: Limit of the level.
    most: float = 1e9
    #: Number of chains of a mix.
    width: int = 3
    #: Operations of a chain of a mix; -1 for 1 to 3.
    depth: int = -1
    #: Parameter of the Beta and the Dirichlet distribution of a mix.
    alpha: float = 1.0
    #: "sum", torchvision's; "blend", timm's sum blended with the image; "blended", timm's chains
    #: blended one after the other.
    mixing: str = "sum"
    #: One of `INTERPOLATIONS`; "random" is bilinear or bicubic for every operation.
    interpolation: str = "nearest"
    #: R, G, B of pixels that a move leaves empty.
    fill: tuple[int, ...] = TORCHVISION_FILL


def policy_of(
    name: str,
    table: str = "torchvision",
    *,
    num_ops: int | None = None,
    magnitude: float | None = None,
    magnitude_std: float = 0.0,
    increasing: bool = False,
    interpolation: str | None = None,
    fill: tuple[int, ...] | None = None,
) -> Policy:
    """Make the policy of this name with these parameters, which `policy_options` describes.

    A parameter that the policy does not have is a ValueError, as a name that does not exist.
    """
    parameters = {"num_ops": num_ops, "magnitude": magnitude}
    parameters = {key: value for key, value in parameters.items() if value is not None}
    if name in NAMES:
        if table == "timm":
            text = _as_timm(name, parameters, magnitude_std, increasing)
            policy = timm_policy(text)
        else:
            for key in ("magnitude_std", "increasing"):
                if {"magnitude_std": magnitude_std, "increasing": increasing}[key]:
                    raise ValueError(f'{key} belongs to timm\'s tables: augment_table="timm"')
            policy = _torchvision_policy(name, parameters)
    elif _TIMM.fullmatch(name):
        if parameters or magnitude_std or increasing:
            raise ValueError(
                f"auto_augment={name!r} contains all settings: drop num_ops, magnitude, "
                "magnitude_std and increasing, or write them there"
            )
        policy = timm_policy(name)
    else:
        raise ValueError(
            f"auto_augment={name!r}: expected one of {', '.join(map(repr, NAMES))} or a string of "
            "timm's, such as 'rand-m9-mstd0.5-inc1'"
        )
    if interpolation is not None:
        policy = replace(policy, interpolation=interpolation)
    return policy if fill is None else replace(policy, fill=fill)


def _only(name: str, parameters: dict[str, Any], *names: str) -> None:
    for key in parameters:
        if key not in names:
            raise ValueError(f"{key} has no meaning for auto_augment={name!r}: drop it")


def _torchvision_policy(name: str, parameters: dict[str, Any]) -> Policy:
    if name == "randaugment":
        level = parameters.get("magnitude", 9)
        _check_level(level, 30)
        choices = tuple(PolicyChoice(s, level=level) for s in TORCHVISION_SETS[name].values())
        return Policy("layers", choices, layers=parameters.get("num_ops", 2), levels=30)
    if name == "trivialaugment":
        _only(name, parameters)
        choices = tuple(PolicyChoice(scale) for scale in TORCHVISION_SETS[name].values())
        return Policy("layers", choices, layers=1, levels=30, bins=31)
    if name == "augmix":
        _only(name, parameters, "magnitude")
        severity = parameters.get("magnitude", 3)
        if severity not in range(1, 11):
            raise ValueError(f"magnitude={severity!r}: AugMix has severities from 1 to 10")
        choices = tuple(PolicyChoice(scale) for scale in TORCHVISION_SETS[name].values())
        bins = int(severity)
        return Policy("mix", choices, levels=9, bins=bins, interpolation="bilinear")
    _only(name, parameters)
    scales = TORCHVISION_SETS["autoaugment"]
    return _chained(AUTO_POLICIES[name.partition("-")[2] or "imagenet"], scales, 9)


def _check_level(level: float, most: float) -> None:
    if not 0 <= level <= most:
        raise ValueError(f"magnitude={level!r}: expected a number from 0 to {most:g}")


def _chained(
    chains: tuple[tuple[tuple[str, float, float], ...], ...],
    scales: dict[str, Scale],
    levels: float,
    instead: dict[str, str] | None = None,
) -> Policy:
    instead = instead or {}
    choices = tuple(
        PolicyChoice(
            scales[instead.get(name, name)],
            chance=chance,
            level=level,
            between=name == "GaussianBlurRand",
        )
        for chain in chains
        for name, chance, level in chain
    )
    return Policy("chains", choices, chains=tuple(map(len, chains)), levels=levels)


def _as_timm(name: str, parameters: dict[str, Any], noise: float, increasing: bool) -> str:
    """Write the string of timm's for keywords."""
    if name not in ("randaugment", "autoaugment", "augmix"):
        raise ValueError(f'auto_augment={name!r} is not in timm: drop augment_table="timm"')
    names = {"randaugment": ("num_ops", "magnitude"), "augmix": ("magnitude",)}
    _only(name, parameters, *names.get(name, ()))
    text = {"randaugment": "rand", "autoaugment": "original", "augmix": "augmix"}[name]
    if "magnitude" in parameters:
        text += f"-m{parameters['magnitude']:g}"
    if "num_ops" in parameters:
        text += f"-n{parameters['num_ops']}"
    if noise:
        text += f"-mstd{noise:g}"
    if increasing:
        if name != "randaugment":
            raise ValueError(f"increasing has no meaning for auto_augment={name!r}: drop it")
        text += "-inc1"
    return text


def timm_policy(text: str) -> Policy:
    """Make the policy that timm makes of a string.

    ``rand`` with ``m`` magnitude (10), ``n`` operations (2), ``p`` their probability (0.5),
    ``mstd`` noise of the magnitude (0; above 100 for a magnitude between 0 and that), ``mmax`` its
    limit (10), ``inc`` 1 for operations that all grow stronger, and ``t`` another set of operations
    (``tweights``, ``t3a``, ``t3aw``); ``augmix`` with ``m`` (3), ``w`` width (3), ``d`` depth (-1),
    ``a`` alpha (1), ``b`` 1 for blending, ``mstd`` (uniform); ``original``, ``originalr``, ``v0``,
    ``v0r`` and ``3a`` with ``mstd``.  A part that timm does not know, or skips, is a ValueError.
    """
    name, *parts = text.split("-")
    values = _parts(text, name, parts)
    noise = values.get("mstd", 0.0)
    common: dict[str, Any] = {"interpolation": "random", "fill": TIMM_FILL, "most": 10.0}
    if name == "rand":
        level, most = values.get("m", 10.0), values.get("mmax") or 10.0
        names = TIMM_SETS[values.get("t") or ("inc" if values.get("inc") else "")]
        choices = tuple(
            PolicyChoice(TIMM_SCALES[n], values.get("p", 0.5), weight, level)
            for n, weight in names.items()
        )
        layers = int(values.get("n", 2))
        weighted = len(set(names.values())) > 1
        if not 0 <= layers <= (min(MOST_LAYERS, len(names)) if weighted else MOST_LAYERS):
            raise ValueError(f"auto_augment={text!r}: that many operations are not possible")
        return Policy(
            "layers", choices, layers=layers, replace=not weighted,
            noise=float("inf") if noise > 100 else noise, **common | {"most": most},
        )  # fmt: skip
    if name == "augmix":
        level = values.get("m", 3.0)
        choices = tuple(PolicyChoice(TIMM_SCALES[n], level=level) for n in TIMM_SETS["augmix"])
        width, depth = int(values.get("w", 3)), int(values.get("d", -1)) or -1
        if not 1 <= width <= MOST_WIDTH or depth > MOST_DEPTH:
            raise ValueError(
                f"auto_augment={text!r}: a width of up to {MOST_WIDTH} and a depth of up to "
                f"{MOST_DEPTH} are possible"
            )
        return Policy(
            "mix", choices, noise=values.get("mstd", float("inf")), width=width, depth=depth,
            alpha=values.get("a", 1.0), mixing="blended" if values.get("b") else "blend", **common,
        )  # fmt: skip
    variant = {"original": "PosterizeOriginal", "originalr": "PosterizeIncreasing"}
    variant["v0r"] = "PosterizeIncreasing"
    table = {"original": "imagenet", "originalr": "imagenet", "v0r": "v0"}.get(name, name)
    chains = AUTO_POLICIES[table]
    instead = {"Posterize": variant[name]} if name in variant else {}
    return replace(_chained(chains, TIMM_SCALES, 10, instead), noise=noise, **common)


def _parts(text: str, name: str, parts: list[str]) -> dict[str, Any]:
    """Return the numbers of a string of timm's, and the name of a set."""
    keys = {"rand": "m n p mstd mmax inc", "augmix": "m w d a b mstd"}.get(name, "mstd").split()
    values: dict[str, Any] = {}
    for part in parts:
        if name == "rand" and part.startswith("t"):
            if part[1:] not in ("weights", "3a", "3aw"):
                raise ValueError(f"auto_augment={text!r}: timm has no set of operations {part!r}")
            values["t"] = part[1:]
            continue
        match = re.fullmatch(r"([a-z]+)(\d+(?:\.\d+)?)", part)
        if match is None or match[1] not in keys:
            raise ValueError(
                f"auto_augment={text!r}: {part!r} is none of {', '.join(keys)} with a number"
            )
        values[match[1]] = float(match[2])
    return values
