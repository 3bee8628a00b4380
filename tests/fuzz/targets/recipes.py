"""Recipes: keywords, names and policies, on images of any size; operations beside Pillow's.

An input is a line of JSON and the pixels, which are repeated as often as the image needs.
"""

from __future__ import annotations

import json
import random
from typing import Any

import by_pillow
import numpy as np

from iterators.images.augment.named_recipes import NamedRecipe
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from recordio import IRHeader, pack
from recordio.kernels.operations import METHODS, NAMES, operate

from .mutate import EDGES, change_bytes, change_json
from .target import Target, drawing

#: Sides of images; beyond that nothing new happens, only slowly.
LARGEST = 70
#: Beyond that Pillow's positions are not numbers that fit.
LARGEST_MOVE = 1000
#: Policies, as people write them and nearly so.
POLICIES = (
    "randaugment", "trivialaugment", "autoaugment", "autoaugment-cifar10", "autoaugment-svhn",
    "augmix", "rand-m9-mstd0.5-inc1", "rand-m9-n3-p0.8-mstd101-mmax15-tweights", "rand-t3a-m99",
    "augmix-m5-w4-d2-a0.3-b1-mstd1", "augmix-w8-d8", "original-mstd0.5", "v0r", "3a", "rand-m",
    "rand-m1e9", "augmix-w9", "rand--m9", "randm9", "-", "original-m9", "rand-n16-p1",
)  # fmt: skip
#: Keywords of recipes, and values that some of them take.
KEYWORDS: dict[str, tuple[Any, ...]] = {
    "auto_augment": POLICIES,
    "augment_table": ("torchvision", "timm"),
    "num_ops": (0, 1, 16, 17),
    "magnitude": (0, 9, 10, 30, 31, 0.5),
    "magnitude_std": (0, 0.5, 101, 1e6),
    "increasing": (True, False),
    "augment_interpolation": (*METHODS, "random"),
    "augment_fill": (0, 255, [1, 2, 3], 256),
    "steps": (
        ["hflip", {"op": "posterize", "bits": 1, "p": 0.5}],
        [{"op": "order", "of": ["vflip", {"op": "rotate", "degrees": [-720, 720], "fill": 9}]}],
        [{"op": "choice", "of": ["perspective", "invert"], "weights": [1, 0]}],
        [{"op": "gaussian_blur", "kernel_size": [3, 1], "sigma": [0.001, 1000]}],
        [{"op": "affine", "degrees": [0, 90], "shear": [-89, 89], "scale": [0.001, 1000]}],
        [{"op": "apply", "p": 0.5, "of": [{"op": "auto_augment", "policy": "augmix"}]}],
        [{"op": "hflop"}],
        [{"op": "apply", "of": []}],
        "hflip",
        [[]],
        [{"p": 2}],
    ),
    "three_augment": (True,),
    "color_jitter": (0.4, [0.4, 0.4, 0.2, 0.1], [[1, 1], [1, 1], [0, 1000], [-0.5, 0.5]], 1e3),
    "color_jitter_prob": (0, 0.5, 1),
    "random_grayscale": (0, 0.5, 1),
    "gaussian_blur": (0.5, 1),
    "blur_sigma": (0, 1000, [0, 1e-9], [0.1, 2]),
    "solarize_p": (0.5, 1),
    "solarize_threshold": (0, 128, 256),
    "random_erasing": (0.5, 1),
    "erasing_area": (0, 1, [0, 1], [0.02, 0.33]),
    "erasing_ratio": (1e-3, 1e3, [0.3, 3.3]),
    "erasing_count": (1, 16, [1, 16]),
    "erasing_value": ("mean", "colour", "pixel", 0, 255),
    "low_resolution": (0.5, 1),
    "low_resolution_side": (0.01, 1, [0.01, 1]),
    "crop_on_fill": (0.5, 1),
    "crop_on_fill_area": (0, 1, [0, 1]),
    "rand_mirror": (True,),
    "random_resized_crop": (True,),
    "log_aspect_ratio": (True,),
    "max_rotate_angle": (180,),
    "rotation": (0, 180, 1e6, [90, 90], [-1e6, 1e6]),
    "affine": (
        {},
        {"degrees": 180, "translate": [1, 1]},
        {"scale": [1e-3, 1e3]},
        {"shear": 89},
        {"shear": [-89, 89, -89, 89], "scale": [0.5, 2]},
    ),
    "perspective": (0.5, 1),
    "perspective_p": (0, 0.5, 1),
    "warp_interpolation": METHODS,
    "pad": (1, 200),
    "padding_mode": ("constant", "edge", "reflect", "symmetric"),
    "mirror_p": (0, 0.5, 1),
    "flip_p": (0.5, 1),
    "crop_position": ("center", "top_left", "top_right", "bottom_left", "bottom_right"),
}


def check_recipes(data: bytes) -> None:
    """What is drawn is drawn again; operations are Pillow's."""
    line, _, pixels = data.partition(b"\n")
    try:
        asked = json.loads(line)
        width, height, channels = asked["size"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    if not all(isinstance(side, int) and 1 <= side <= LARGEST for side in (width, height)):
        return
    if channels not in (1, 3, 4) or isinstance(channels, bool):
        return
    image = np.resize(np.frombuffer(pixels or b"\0", np.uint8), (height, width, channels))
    if "operation" in asked:
        check_operation(image, asked["operation"])
    else:
        check_recipe(image, asked.get("recipe"), drawing(data))


def check_operation(image: np.ndarray, asked: Any) -> None:
    """One operation: every form gives the same bytes, and they are Pillow's."""
    name, value, method, fill = asked
    found = operate(image, name, value, method=method, fill=fill)
    for variant in ("plain", "sse4.1", "avx2"):
        assert np.array_equal(
            operate(image, name, value, method=method, fill=fill, variant=variant), found
        ), variant
    moves = name in by_pillow.GEOMETRIC
    if moves and (abs(value) > LARGEST_MOVE or image.shape[2] == 4) or isinstance(fill, list):
        return
    wanted = by_pillow.of_pillow(image, name, float(value), method, fill)
    within = int(moves and method != METHODS[0])
    assert np.abs(found.astype(int) - wanted).max() <= within, (name, value, method)


def check_recipe(image: np.ndarray, asked: Any, draw: random.Random) -> None:
    """A recipe, its name or its keywords: drawn twice alike, with finite numbers."""
    keywords = dict(NamedRecipe.of(asked).keywords)
    views = keywords.pop("views", None) or ({},)
    keywords |= draw.choice(list(views))
    height, width, channels = image.shape
    keywords["data_shape"] = channels, draw.choice([1, 9, height]), draw.choice([1, 9, width])
    recipe = Recipe(**keywords)
    kind, maximum = (b"P5", 255) if channels == 1 else (b"P6", 255)
    content = kind + b"\n%d %d\n%d\n" % (width, height, maximum) + image[..., :3].tobytes()
    record = pack(IRHeader(0, 0.0, 0, 0), content)
    plan = RenderPlan(recipe, layout="NHWC", dtype=draw.choice(["uint8", "float32"]), key=1)
    renderer = Renderer(plan)
    for number in range(3):
        first = renderer.sample(record, 0, number)[0][0]
        assert first.shape == (*keywords["data_shape"][1:], channels)
        assert np.isfinite(first).all()
        again = Renderer(plan).sample(record, 0, number)[0][0]
        assert first.tobytes() == again.tobytes()


def change_recipes(data: bytes, draw: random.Random) -> bytes:
    """The size, the operation or the recipe; or a pixel."""
    line, _, pixels = data.partition(b"\n")
    try:
        asked = json.loads(line)
        kind = draw.randrange(6)
        if kind == 0:
            pixels = change_bytes(pixels, draw)
        elif kind == 1:
            asked["size"] = [draw.choice([1, 2, 3, 5, 64, LARGEST]) for _ in range(2)]
            asked["size"].append(draw.choice([1, 3, 3, 4]))
        elif "operation" in asked:
            value = draw.choice([*EDGES, draw.uniform(-2, 2), draw.randint(-200, 300)])
            fill = draw.choice([0, 128, 255, 256, [1, 2, 3, 4]])
            asked["operation"] = [draw.choice(NAMES), value, draw.choice(METHODS), fill]
        elif kind < 5 and isinstance(asked["recipe"], dict):
            name = draw.choice(list(KEYWORDS))
            asked["recipe"][name] = draw.choice(KEYWORDS[name])
        else:
            asked["recipe"] = change_json(asked["recipe"], draw)
        return json.dumps(asked).encode() + b"\n" + pixels
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return data


RECIPES = Target(
    "recipes",
    check_recipes,
    change_recipes,
    words=tuple(text.encode() for text in POLICIES),
    errors=(ValueError, TypeError),
)
