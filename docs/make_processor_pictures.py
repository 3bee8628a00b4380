"""Draw what processors of vision-language models make of a photograph, one picture for each kind.

``python docs/make_processor_pictures.py``.  The photographs are those of the examples.  Patches and
tiles stand apart, tiles with their numbers in the tensor; a frame on the photograph shows what a
crop was taken of.  Sphinx calls `main`, as it calls that of `make_pictures`.
"""

from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from iterators.images.augment.pipelines.processor_families import rule_of
from iterators.images.processors.drawing import made_pictures, plan_words

HERE = Path(__file__).parent
PHOTOGRAPHS = HERE.parent / "examples" / "photographs"
PAN_AND_SCAN = {
    "do_pan_and_scan": True, "pan_and_scan_min_crop_size": 128,
    "pan_and_scan_max_num_crops": 4, "pan_and_scan_min_ratio_to_activate": 1.2,
}  # fmt: skip
#: Titles, classes without "ImageProcessor", their settings, and photographs.
KINDS = (
    ("Qwen2-VL, with at most 100,352 pixels", "Qwen2VL",
     {"size": {"shortest_edge": 3136, "longest_edge": 100352}}, "coffee.png"),
    ("SigLIP 2 NaFlex, with room for 256 patches", "Siglip2", {}, "coffee.png"),
    ("InternVL 3, with tiles of 448 pixels", "GotOcr2",
     {"size": {"height": 448, "width": 448}, "crop_to_patches": True}, "coffee.png"),
    ("LLaVA-NeXT, with tiles of 336 pixels", "LlavaNext",
     {"size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336}}, "rocket.jpg"),
    ("Idefics 3, with tiles of 364 pixels", "Idefics3", {}, "coffee.png"),
    ("Gemma 3, with pan and scan", "Gemma3", PAN_AND_SCAN, "rocket.jpg"),
)  # fmt: skip
HEIGHT, GAP, SPACE, FRAME = 200, 4, 18, (255, 140, 0)
#: Between patches that the model does not merge.
PATCH_GAP = 2


def main(target=HERE / "_pictures"):
    """A picture for each kind, and the Markdown that shows them."""
    target = Path(target)
    target.mkdir(exist_ok=True)
    text = ""
    for number, (title, kind, settings, file) in enumerate(KINDS):
        rule = rule_of({"image_processor_type": f"{kind}ImageProcessor", **settings})
        photo = Image.open(PHOTOGRAPHS / file).convert("RGB")
        words = plan_words(rule, rule.plan(photo.height, photo.width))
        path = target / f"processors-{number}.jpg"
        drawn(photo, rule).save(path, quality=85)
        text += (
            f"{title}: {words}\n\n![A photograph of {photo.width} x {photo.height} pixels, and "
            f"beside it what {title.partition(',')[0]} makes of it: {words}]({path.name})\n\n"
        )
    (target / "processors.md").write_text(text)


def drawn(photo, rule):
    """The photograph, and beside it everything that is made of it, to one scale each."""
    made = made_pictures(rule, photo.height, photo.width)
    most = max(one.size[1] for one in made)
    parts = [framed(photo, made)] + [apart(photo, one, rule, most) for one in made]
    width = sum(part.width + SPACE for part in parts) - SPACE
    sheet, left = Image.new("RGB", (width, max(part.height for part in parts)), "white"), 0
    for part in parts:
        sheet.paste(part, (left, 0))
        left += part.width + SPACE
    return sheet


def framed(photo, made):
    """The photograph with frames around what is cut out of it."""
    scale = HEIGHT / photo.height
    found = photo.resize((round(photo.width * scale), HEIGHT))
    draw = ImageDraw.Draw(found)
    for x, y, width, height in (one.part for one in made):
        if (width, height) != photo.size:
            corners = [x, y, x + width, y + height]
            draw.rectangle([value * scale for value in corners], outline=FRAME, width=3)
    return found


def apart(photo, one, rule, most):
    """A picture that is made, its patches or tiles with gaps between them."""
    x, y, width, height = one.placed
    whole = Image.new("RGB", one.size)
    placed = Image.new("RGB", one.size)
    placed.paste(photo.resize((round(width), round(height)), Image.BICUBIC), (round(x), round(y)))
    left, top = round(one.seen[0]), round(one.seen[1])
    seen = left, top, round(left + one.seen[2]), round(top + one.seen[3])
    whole.paste(placed.crop(seen), seen[:2])
    scale, cells = HEIGHT / most, []
    if one.grid[0]:
        side, merge = one.size[1] // one.grid[0], rule.config.get("merge_size", 1)
        for row in range(one.grid[0]):
            for column in range(one.grid[1]):
                gaps = [i + PATCH_GAP * (i // merge) * (merge > 1) for i in (column, row)]
                cells.append(("", (column * side, row * side, side, side), gaps))
        scale = max(scale, 2 / 3)
    else:
        for number, (left, top, across, down) in one.tiles.items():
            cells.append((number, (left, top, across, down),
                          [GAP * (left // across), GAP * (top // down)]))  # fmt: skip
    right = max((left + across) * scale + gaps[0] for _, (left, _, across, _), gaps in cells)
    below = max((top + down) * scale + gaps[1] for _, (_, top, _, down), gaps in cells)
    sheet = Image.new("RGB", (round(right), round(below)), "white")
    draw = ImageDraw.Draw(sheet)
    for number, (left, top, across, down), (right, below) in cells:
        cell = whole.crop((left, top, left + across, top + down))
        size = round(across * scale), round(down * scale)
        at = round(left * scale + right), round(top * scale + below)
        sheet.paste(cell.resize(size), at)
        middle = at[0] + size[0] / 2, at[1] + size[1] / 2
        font = ImageFont.load_default(max(size[1] // 4, 8))
        draw.text(middle, str(number), "white", font, "mm", stroke_width=2, stroke_fill="black")
    return sheet


if __name__ == "__main__":
    main()
