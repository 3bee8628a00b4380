"""Draw a small data set with COCO's annotations: discs and squares on noise.

``python examples/draw_shapes.py`` writes 96 images to ``shapes/``, and ``shapes.json`` and
``captions.json`` beside it.  Discs are annotated as polygons and with a key point, squares as run
lengths, and every eighth image has a crowd.
"""

import json
from pathlib import Path

import numpy as np

from recordio import encode_image

rng = np.random.default_rng(0)
Path("shapes").mkdir()
images, annotations, captions = [], [], []
rows, columns = np.mgrid[:64, :64]


def annotate(image, category, box, segmentation, **more):
    entry = {"id": len(annotations), "image_id": image, "category_id": category}
    entry |= {"bbox": box, "segmentation": segmentation, "iscrowd": 0, **more}
    annotations.append(entry)


def run_lengths(mask):
    edges = np.flatnonzero(np.diff(mask.T.reshape(-1).astype(int), prepend=0)).tolist()
    return np.diff([0, *edges, mask.size]).tolist()


for number in range(96):
    pixels = rng.integers(60, 120, (64, 64, 3)).astype(np.uint8)
    x, y, radius = rng.integers(12, 26, 3).tolist()
    disc = (columns + 0.5 - x) ** 2 + (rows + 0.5 - y) ** 2 <= radius**2 / 4
    pixels[disc] = (200, 60, 60)
    turn = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    outline = [x, y] + radius / 2 * np.stack([np.cos(turn), np.sin(turn)], 1)
    centre = [x, y, 2]
    annotate(
        number,
        1,
        [x - radius / 2, y - radius / 2, radius, radius],
        [outline.round(2).ravel().tolist()],
        keypoints=centre,
        num_keypoints=1,
    )
    left, top, side = rng.integers(34, 46, 3).tolist()
    side -= 30
    square = np.zeros((64, 64), bool)
    square[top : top + side, left : left + side] = True
    pixels[square] = (60, 60, 210)
    annotate(
        number,
        2,
        [left, top, side, side],
        {"size": [64, 64], "counts": run_lengths(square)},
    )
    if number % 8 == 0:
        crowd = (columns >= 54) & (rows < 10)
        pixels[crowd] = rng.integers(0, 255, (100, 3))
        annotate(
            number,
            2,
            [54, 0, 10, 10],
            {"size": [64, 64], "counts": run_lengths(crowd)},
            iscrowd=1,
        )
    name = f"{number}.png"
    images.append({"id": number, "file_name": name, "width": 64, "height": 64})
    captions.append({"image_id": number, "caption": "a red disc and a blue square"})
    Path("shapes", f"{number}.png").write_bytes(encode_image(pixels, "png"))

categories = [
    {"id": 1, "name": "disc", "keypoints": ["centre"]},
    {"id": 2, "name": "square"},
]
found = {"images": images, "annotations": annotations, "categories": categories}
Path("shapes.json").write_text(json.dumps(found))
Path("captions.json").write_text(json.dumps({"annotations": captions}))
