"""Images side by side as one picture to look at: captions, masks, boxes, points, and gaps.

Everything here is uint8 and rows of pixels; what a batch's numbers mean is known to its provider.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

#: Colours of classes, and of instances with key points, in turn, RGB.
COLOURS = (
    (230, 25, 75), (60, 180, 75), (255, 225, 25), (0, 130, 200), (245, 130, 48), (145, 30, 180),
    (70, 240, 240), (240, 50, 230), (210, 245, 60), (250, 190, 212), (0, 128, 128), (170, 110, 40),
)  # fmt: skip
GAP = 4
FONT = 12
LINE = 16
#: Narrower images get no column of their own width: little of their captions would be left, and
#: captions that do not fit get a wider one, and so many lines.
LEAST_COLUMN, CAPTION_COLUMN, MOST_LINES = 64, 128, 3
PAPER, INK, GREY = (255, 255, 255), (32, 32, 32), (128, 128, 128)
#: Value of a mask where the one that is stored does not count.
IGNORED = -1


class Layer(NamedTuple):
    """Something to draw over an image.

    A mask has the size of the image, 0 where nothing is drawn and `IGNORED` where its value does
    not count.  Points are x, y in pixels and v, of several instances, (instances, points, 3), and
    `lines` are pairs of points that are joined.  Boxes are class, xmin, ymin, xmax, ymax, the
    corners in fractions of the image; classes without `names` have those of the sheet.
    """

    kind: str  # "mask", "points" or "boxes"
    values: np.ndarray
    names: Mapping[int, str] | None = None
    lines: Sequence[tuple[int, int]] = ()


class Tile(NamedTuple):
    """One image of a sheet, pale if `faint`, with what is drawn over it."""

    pixels: np.ndarray
    caption: str = ""
    layers: Sequence[Layer] = ()
    faint: bool = False


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
    width = max([*widths, LEAST_COLUMN])
    longest = max((_length(tile.caption) for tile in tiles), default=0)
    width = max(width, min(math.ceil(longest), CAPTION_COLUMN)) + GAP
    captions = [_wrapped(tile.caption, width - GAP) for tile in tiles]
    height = max(heights, default=0) + GAP + LINE * max(map(len, captions), default=0)
    top = GAP + (LINE + GAP) * bool(title)
    rows = -(-len(tiles) // columns)
    sheet = Image.new("RGB", (columns * width + GAP, rows * height + top), PAPER)
    draw = ImageDraw.Draw(sheet)
    if title:
        draw.text((GAP, GAP), _cut(title, sheet.width - 2 * GAP), INK, font_size=FONT)
    for number, (tile, caption) in enumerate(zip(tiles, captions, strict=True)):
        corner = GAP + number % columns * width, top + number // columns * height
        sheet.paste(drawn(tile, names), corner)
        for line, text in enumerate(caption):
            below = corner[0], corner[1] + max(heights) + 1 + LINE * line
            draw.text(below, text, INK, font_size=FONT)
    return sheet


def drawn(tile: Tile, names: Mapping[int, str] | None = None, numbered: bool = False) -> Image:
    """Draw an image and what lies over it: RGB, of its size; points have numbers if `numbered`.

    >>> mask = np.eye(2, dtype=int)
    >>> picture = drawn(Tile(np.zeros((2, 2, 3), np.uint8), layers=[Layer("mask", mask)]))
    >>> picture.getpixel((0, 0)), picture.getpixel((1, 0))
    ((230, 25, 75), (0, 0, 0))
    """
    from PIL import Image

    pixels = np.ascontiguousarray(tile.pixels)
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, PAPER), image)
    image = image.convert("RGB")
    masks = [layer for layer in tile.layers if layer.kind == "mask"]
    for layer in masks:
        image = Image.fromarray(_masked(np.asarray(image), layer.values))
    if tile.faint:
        image = Image.blend(image, Image.new("RGB", image.size, PAPER), 0.7)
    for layer in tile.layers:
        if layer.kind == "boxes":
            _draw_boxes(image, layer, names or {})
        elif layer.kind == "points":
            _draw_points(image, layer, numbered)
    return image


def _scale(width: int, height: int) -> int:
    """Return how much thicker than in a small image lines are."""
    return 1 + max(width, height) // 500


def _masked(pixels: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Draw the values of a mask over an image: areas half, their edges whole, ignored ones striped.

    Every value has a colour, and 0, the background, none.
    """
    scale = _scale(*mask.shape)
    colours = np.array(COLOURS, np.float32)[(mask - 1) % len(COLOURS)]
    edges = np.zeros(mask.shape, bool)
    down, right = mask[1:] != mask[:-1], mask[:, 1:] != mask[:, :-1]
    edges[1:] |= down
    edges[:-1] |= down
    edges[:, 1:] |= right
    edges[:, :-1] |= right
    share = np.where(edges, 1.0, 0.5)
    rows, columns = np.ogrid[: mask.shape[0], : mask.shape[1]]
    stripes = ((rows + columns) // (3 * scale) % 2).astype(bool)
    colours[mask == IGNORED] = GREY
    share[(mask == IGNORED) & stripes] = 0.85
    share[mask == 0] = 0
    over = pixels + (colours - pixels) * share[..., None].astype(np.float32)
    return np.rint(over).astype(np.uint8)


def _draw_boxes(image: Image, layer: Layer, names: Mapping[int, str]) -> None:
    from PIL import ImageDraw

    draw, scale = ImageDraw.Draw(image), _scale(*image.size)
    names = names if layer.names is None else layer.names
    sides = np.array([*image.size, *image.size]) - 1
    for kind, *corners in layer.values[layer.values[:, 0] >= 0].tolist():
        left, top, right, bottom = (np.clip(corners, 0, 1) * sides).tolist()
        if right < left or bottom < top:
            continue
        colour = COLOURS[int(kind) % len(COLOURS)]
        draw.rectangle((left, top, right, bottom), outline=colour, width=1 + scale)
        if int(kind) in names:
            at, text = (left + 1 + 2 * scale, top + 1 + scale), _latin(names[int(kind)])
            _write(draw, at, text, colour, FONT + 6 * (scale - 1))


def _draw_points(image: Image, layer: Layer, numbered: bool) -> None:
    """Draw points that are seen as discs, hidden ones as rings, and those out of sight not.

    Every instance has a colour, others than the first classes of a mask below it.
    """
    from PIL import ImageDraw

    draw, scale = ImageDraw.Draw(image), _scale(*image.size)
    for number, instance in enumerate(layer.values):
        colour, points = COLOURS[(number + 3) % len(COLOURS)], instance.tolist()
        edge = _edge_of(colour)
        for one, other in layer.lines:
            if points[one][2] > 0 and points[other][2] > 0:
                draw.line((*points[one][:2], *points[other][:2]), colour, scale)
        for name, (x, y, visible) in enumerate(points):
            if visible > 0:
                for radius, line in ((2 + scale, edge), (1 + scale, colour)):
                    place = (x - radius, y - radius, x + radius, y + radius)
                    draw.ellipse(place, line if visible > 1 else None, outline=line, width=scale)
                if numbered:
                    at = (x + 4 + scale, y - 4 - scale)
                    _write(draw, at, str(name), colour, FONT - 2 + 4 * (scale - 1))


def _write(draw: Any, at: tuple[float, float], text: str, colour: Any, size: int) -> None:
    """Write in a colour that is read on any image: with an edge that is dark or light."""
    draw.text(at, text, colour, font_size=size, stroke_width=1, stroke_fill=_edge_of(colour))


def _edge_of(colour: tuple[int, int, int]) -> tuple[int, int, int]:
    return INK if sum(colour) > 330 else PAPER


def _latin(text: str) -> str:
    """Replace what the font cannot draw by question marks."""
    return text.encode("latin-1", "replace").decode("latin-1")


def _length(text: str) -> float:
    """Measure a line of text, in pixels."""
    from PIL import ImageFont

    return float(ImageFont.load_default(FONT).getlength(_latin(text)))


def _wrapped(text: str, width: int) -> list[str]:
    """Break a text into at most `MOST_LINES` lines between words; the last one may be cut."""
    lines: list[str] = []
    for word in text.split():
        if lines and (len(lines) == MOST_LINES or _length(f"{lines[-1]} {word}") <= width):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [_cut(line, width) for line in lines]


def _cut(text: str, width: int) -> str:
    """Shorten a line of text until it fits; what a font cannot draw is a question mark."""
    text = _latin(text)
    if _length(text) <= width:
        return text
    while text and _length(text + "...") > width:
        text = text[:-1]
    return text + "..." if text else ""
