"""Draw today's recipes beside Pillow: ``python docs/make_recipe_pictures.py``.

A picture for every operation: the photograph, ours at several strengths, and below it Pillow's.
A picture for every named recipe: eight samples of one photograph, and below them the same draws
done by Pillow.  The Markdown beside them says by how many grey levels the two differ.
Sphinx calls `main`, as it calls that of `make_pictures`.
"""

import sys
from dataclasses import fields, replace
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from iterators.images.augment.named_recipes import NAMED_RECIPES
from iterators.images.augment.policy_options import PolicyOptions
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from recordio import IRHeader, pack_img
from recordio.kernels.operations import METHODS, operate

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "tests"))
from by_pillow import GEOMETRIC, of_pillow  # noqa: E402

from faces.draws import (  # noqa: E402
    drawn_face,
    drawn_operations,
    drawn_photometric,
    drawn_rectangles,
)

SIDE = 112
GAP = 8
SAMPLES = 8
KEY = 5
FILL = (124, 116, 104)
#: Strengths at which every operation is shown, and in which words they are told.
STRENGTHS = {
    "shear_x": ((-0.3, -0.1, 0.1, 0.3), "pixels a row"),
    "shear_y": ((-0.3, -0.1, 0.1, 0.3), "pixels a column"),
    "translate_x": ((-40, -15, 15, 40), "pixels"),
    "translate_y": ((-40, -15, 15, 40), "pixels"),
    "rotate": ((-135, -30, 30, 90), "degrees"),
    "brightness": ((0.1, 0.5, 1.5, 1.9), "times"),
    "colour": ((0.0, 0.5, 1.5, 1.9), "times"),
    "contrast": ((0.1, 0.5, 1.5, 1.9), "times"),
    "sharpness": ((0.0, 0.5, 1.9, 5.0), "times"),
    "posterize": ((1, 2, 4, 6), "bits"),
    "solarize": ((0, 64, 128, 192), "as threshold"),
    "solarize_add": ((20, 50, 80, 110), "more"),
    "autocontrast": ((0,), ""),
    "equalize": ((0,), ""),
    "invert": ((0,), ""),
    "grey": ((0,), ""),
    "blur": ((0.5, 1, 2, 5), "pixels of standard deviation"),
    "hue": ((-64, -20, 20, 64), "256ths of the circle"),
}
#: OpenCV's interpolations in the order of ours: it does what low resolution is.
OPENCV = (
    cv2.INTER_NEAREST,
    cv2.INTER_LINEAR,
    cv2.INTER_CUBIC,
    cv2.INTER_AREA,
    cv2.INTER_LANCZOS4,
)
#: Keywords that change pixels after the crop.
CHANGES = {field.name for field in fields(PolicyOptions)}


def main(target=HERE / "_pictures"):
    """All pictures, and the Markdown that shows them: ``operations.md`` and ``recipes.md``."""
    target.mkdir(exist_ok=True)
    photo = photograph()
    small = cv2.resize(photo[:, 75:375], (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    text = ""
    for name, method in operations():
        ours, pillows = both(small, name, method)
        path = target / f"operation-{name}{f'-{method}' * bool(method)}.jpg"
        draw(path, [[small, *ours], [None, *pillows]])
        text += f"{described(name, method, ours, pillows)}\n\n![{name}]({path.name})\n\n"
    (target / "operations.md").write_text(text)
    text = ""
    for named in NAMED_RECIPES:
        ours, pillows = samples(named, photo)
        path = target / f"recipe-{named.name.replace('/', '-')}.jpg"
        draw(path, [ours, pillows])
        text += f'`recipe="{named.name}"`: {largest(ours, pillows)}.\n\n![Samples]({path.name})\n\n'
    (target / "recipes.md").write_text(text)


def photograph():
    """The cat of the examples: an array of 300 x 451 RGB pixels."""
    return np.asarray(
        Image.open(Path(__file__).parents[1] / "examples" / "photographs" / "chelsea.png")
    )


def operations():
    """Every operation, the moves once for every interpolation."""
    for name in STRENGTHS:
        for method in METHODS if name in GEOMETRIC else ("",):
            yield name, method


def both(image, name, method):
    """An operation at all strengths: ours and Pillow's."""
    how = {"method": method or METHODS[0], "fill": FILL}
    strengths, _ = STRENGTHS[name]
    ours = [operate(image, name, value, **how) for value in strengths]
    return ours, [of_pillow(image, name, value, **how) for value in strengths]


def described(name, method, ours, pillows):
    """An operation and its strengths in words, and how far Pillow's is away."""
    strengths, unit = STRENGTHS[name]
    words = ", ".join(f"{value:g}" for value in strengths) + f" {unit}" if unit else ""
    parts = [part for part in (words, method, largest(ours, pillows)) if part]
    return f"`{name}`: {', '.join(parts)}."


def largest(ours, pillows):
    """The largest difference between pictures, in words."""
    levels = max(
        int(np.abs(one.astype(int) - other).max()) for one, other in zip(ours, pillows, strict=True)
    )
    if levels == 0:
        return "the same bytes"
    return f"a difference of at most {levels} grey level{'s' * (levels > 1)}"


def samples(named, photo):
    """Eight samples of a recipe: ours, and what Pillow makes of the same draws."""
    keywords = {
        key: value for key, value in named.keywords.items() if not key.startswith(("mean_", "std_"))
    }
    views = keywords.pop("views", ({},))
    packed = pack_img(IRHeader(0, 0.0, 0, 0), photo[..., ::-1], img_fmt=".png")
    ours, pillows = [], []
    for number in range(SAMPLES):
        view = {**views[number % len(views)], "data_shape": (3, SIDE, SIDE)}
        recipe = Recipe(**keywords | view)
        if not recipe.random_resized_crop:
            recipe = replace(recipe, resize=SIDE)
        ours.append(rendered(recipe, packed, number))
        pillows.append(changed(recipe, *plain(recipe, packed, number), ours[-1], number))
    return ours, pillows


def rendered(recipe, packed, number):
    """Pixels of one record as the image stage makes them: uint8, height first."""
    plan = RenderPlan(recipe, layout="NHWC", dtype="uint8", key=KEY)
    return Renderer(plan).sample(packed, 0, number)[0][0]


def plain(recipe, packed, number):
    """Return the crop unchanged, and mirrored: every step has random numbers of its own."""
    kept = {field.name for field in fields(recipe)} - CHANGES
    recipe = Recipe(**recipe.values(*sorted(kept)))
    still = replace(recipe, rand_mirror=False)
    return rendered(still, packed, number), rendered(recipe, packed, number)


def changed(recipe, image, mirrored, ours, number):
    """Change an image with Pillow as drawn for this record; erased pixels are those of `ours`."""
    turns = not np.array_equal(image, mirrored)
    if recipe.crop_on_fill or recipe.low_resolution:
        image = face(image, drawn_face(recipe, KEY, 0, number))
    if recipe.auto_augment:
        drawn, _mix = drawn_operations(recipe, KEY, 0, number)
        for name, value, method in drawn:
            image = of_pillow(image, name, value, method, recipe.policy().fill)
    for name, value in drawn_photometric(recipe, KEY, 0, number):
        image = of_pillow(image, name, value)
    image = image[:, ::-1].copy() if turns else image.copy()
    if recipe.random_erasing:
        for x, y, width, height in drawn_rectangles(recipe, KEY, 0, number):
            image[y : y + height, x : x + width] = ours[y : y + height, x : x + width]
    return image


def face(image, drawn):
    """AdaFace's changes as AdaFace makes them, with OpenCV."""
    if "part" in drawn:
        x, y, width, height = drawn["part"]
        part, image = image[y : y + height, x : x + width], np.zeros_like(image)
        image[y : y + height, x : x + width] = part
    if "small" in drawn:
        down, up = (OPENCV[method] for method in drawn["methods"])
        image = cv2.resize(image, drawn["small"], interpolation=down)
        image = cv2.resize(image, (SIDE, SIDE), interpolation=up)
    return image


def draw(path, rows):
    """Rows of pictures below each other; a first column of which one is missing stands apart."""
    gap = GAP if any(row[0] is None for row in rows) else 0
    sheet = Image.new("RGB", (SIDE * len(rows[0]) + gap, SIDE * len(rows) + GAP // 2), "white")
    for y, row in enumerate(rows):
        for x, pixels in enumerate(row):
            if pixels is not None:
                place = SIDE * x + gap * (x > 0), (SIDE + GAP // 2) * y
                sheet.paste(Image.fromarray(pixels), place)
    sheet.save(path, quality=80)


if __name__ == "__main__":
    main()
