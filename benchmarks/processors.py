"""Images a second of processor time: `preprocess` beside the image processors of transformers.

    python benchmarks/processors.py [FOLDER]

FOLDER has photographs; without it they are drawn.  Pages of 2 megapixels are drawn always.  All
three get encoded JPEG files and have one thread; a round of one follows a round of the others, and
the best of five rounds counts.
"""

import io
import sys
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from harness import markdown_table
from pages import encoded, pages
from PIL import Image

from iterators import NamedRecipe, preprocess

#: Classes, without "ImageProcessor", and what they are made with.
PROCESSORS = {
    "Qwen2VL": {},
    "Siglip2": {},
    "GotOcr2": {"size": {"height": 448, "width": 448}, "crop_to_patches": True},
    "Idefics3": {},
}
ROUNDS, PHOTOGRAPHS, PAGES = 5, 32, 8


def photographs(folder):
    """Contents of photographs, or of drawn pictures of their size."""
    if folder:
        files = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
        return [path.read_bytes() for path in files[:PHOTOGRAPHS]]
    rng = np.random.default_rng(0)
    coarse = [rng.integers(0, 256, (25, 34, 3), np.uint8) for _ in range(PHOTOGRAPHS)]
    return [encoded(Image.fromarray(one).resize((500, 375), Image.BICUBIC)) for one in coarse]


def contenders(name, settings):
    """Functions of a list of contents, by their names."""
    kind, given = f"{name}ImageProcessor", dict(settings)
    call = {key: given.pop(key) for key in ("crop_to_patches",) if key in given}
    recipe = NamedRecipe.from_processor({"image_processor_type": kind, **settings})

    def theirs(processor):
        return lambda contents: processor(
            [Image.open(io.BytesIO(content)).convert("RGB") for content in contents],
            return_tensors="pt",
            **call,
        )

    return {
        "preprocess": lambda contents: preprocess(contents, recipe, threads=1),
        "Pillow's backend": theirs(getattr(transformers, f"{kind}Pil")(**given)),
        "torchvision's backend": theirs(getattr(transformers, kind)(**given)),
    }


def rates(functions, contents):
    """Images a second of processor time of every function."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for title, function in functions.items():
            begin = time.process_time()
            function(contents)
            best[title] = min(best[title], time.process_time() - begin)
    return {title: len(contents) / seconds for title, seconds in best.items()}


def main(folder=None):
    torch.set_num_threads(1)
    rows = []
    for name, settings in PROCESSORS.items():
        for what, contents in (("photographs", photographs(folder)), ("pages", pages(PAGES))):
            ours, *others = rates(contenders(name, settings), contents).values()
            cells = [f"{rate:.3g} ({ours / rate:.1f} x)" for rate in others]
            rows.append((name, what, f"{ours:.3g}", *cells))
    titles = "class", "images", "`preprocess`", "Pillow's backend", "torchvision's backend"
    print(markdown_table(titles, *rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
