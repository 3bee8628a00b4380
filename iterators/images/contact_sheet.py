"""Images side by side as one picture to look at: captions, boxes, and gaps.

Everything here is uint8 and rows of pixels; what a batch's numbers mean is known to its provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["COLOURS", "Tile", "contact_sheet"]

#: Colours of the classes of boxes in turn, RGB.
COLOURS = (
    (230, 25, 75), (60, 180, 75), (255, 225, 25), (0, 130, 200), (245, 130, 48), (145, 30, 180),
    (70, 240, 240), (240, 50, 230), (210, 245, 60), (250, 190, 212), (0, 128, 128), (170, 110, 40),
)  # fmt: skip
GAP = 4
FONT = 12
LINE = 16
#: Narrower images get no column of their own width: their captions would be cut to nothing.
LEAST_COLUMN = 64
PAPER, INK = (255, 255, 255), (32, 32, 32)


class Tile(NamedTuple):
    """One image of a sheet, pale if `faint`; objects are class, xmin, ymin, xmax, ymax.

    A mask has the size of the image, and -1 where nothing is drawn over it; points are x, y in
    pixels and v, of several instances, (instances, points, 3).
    """

    pixels: np.ndarray
    caption: str = ""
    objects: np.ndarray | None = None
    faint: bool = False
    mask: np.ndarray | None = None
    points: np.ndarray | None = None


def contact_sheet(
    tiles: Sequence[Tile],
    title: str = "",
    columns: int = 8,
    names: Mapping[int, str] | None = None,
) -> Image:
    """Draw images side by side, each with its caption below it.

    >>> tiles = [Tile(np.zeros((80, 100, 3), np.uint8), f"number {n}") for n in range(3)]
    >>> contact_sheet(tiles, columns=2).size
    (212, 204)
    """
    from PIL import Image, ImageDraw

    if columns < 1:
        raise ValueError(f"columns={columns}: expected at least 1")
    columns = max(min(columns, len(tiles)), 1)
    heights = [tile.pixels.shape[0] for tile in tiles]
    widths = [tile.pixels.shape[1] for tile in tiles]
    captioned = any(tile.caption for tile in tiles)
    width = max([*widths, LEAST_COLUMN]) + GAP
    height = max(heights, default=0) + GAP + LINE * captioned
    top = GAP + (LINE + GAP) * bool(title)
    rows = -(-len(tiles) // columns)
    sheet = Image.new("RGB", (columns * width + GAP, rows * height + top), PAPER)
    draw = ImageDraw.Draw(sheet)
    if title:
        draw.text((GAP, GAP), _cut(draw, title, sheet.width - 2 * GAP), INK, font_size=FONT)
    for number, tile in enumerate(tiles):
        corner = GAP + number % columns * width, top + number // columns * height
        sheet.paste(_drawn(tile, names), corner)
        below = corner[0], corner[1] + max(heights) + 1
        draw.text(below, _cut(draw, tile.caption, width - GAP), INK, font_size=FONT)
    return sheet


def _drawn(tile: Tile, names: Mapping[int, str] | None) -> Image:
    from PIL import Image, ImageDraw

    pixels = np.ascontiguousarray(tile.pixels)
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, PAPER), image)
    image = image.convert("RGB")
    if tile.mask is not None:
        image = Image.fromarray(_masked(np.asarray(image), tile.mask))
    if tile.faint:
        image = Image.blend(image, Image.new("RGB", image.size, PAPER), 0.7)
    if tile.objects is not None:
        draw = ImageDraw.Draw(image)
        for kind, *corners in tile.objects[tile.objects[:, 0] >= 0].tolist():
            _draw_box(draw, int(kind), np.clip(corners, 0, 1), names or {})
    if tile.points is not None:
        draw = ImageDraw.Draw(image)
        for number, instance in enumerate(tile.points):
            colour = COLOURS[number % len(COLOURS)]
            for x, y, visible in instance.tolist():
                if visible > 0:
                    fill = colour if visible > 1 else None
                    draw.ellipse((x - 2, y - 2, x + 2, y + 2), fill, outline=colour)
    return image


def _masked(pixels: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Draw the values of a mask over an image, in a colour each; 0, the background, is left out."""
    colours = np.array(COLOURS, np.float32)[(mask - 1) % len(COLOURS)]
    over = np.where((mask > 0)[..., None], 0.5 * pixels + 0.5 * colours, pixels)
    return np.rint(over).astype(np.uint8)


def _draw_box(draw: Any, kind: int, corners: np.ndarray, names: Mapping[int, str]) -> None:
    width, height = draw.im.size
    left, top, right, bottom = (corners * (width - 1, height - 1, width - 1, height - 1)).tolist()
    if right < left or bottom < top:
        return
    colour = COLOURS[kind % len(COLOURS)]
    draw.rectangle((left, top, right, bottom), outline=colour, width=2)
    if kind in names:
        draw.text((left + 3, top + 2), names[kind], colour, font_size=FONT)


def _cut(draw: Any, text: str, width: int) -> str:
    """Shorten a line of text until it fits; what a font cannot draw is a question mark."""
    text = text.encode("latin-1", "replace").decode("latin-1")
    if draw.textlength(text, font_size=FONT) <= width:
        return text
    while text and draw.textlength(text + "...", font_size=FONT) > width:
        text = text[:-1]
    return text + "..." if text else ""
