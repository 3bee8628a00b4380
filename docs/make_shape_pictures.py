"""Draw batches of many shapes, and what of them is padding, of the photographs of a pack or ours.

``python docs/make_shape_pictures.py [PACK FOLDER]``.  The pictures are batches of
`ImageRecordIter`, one for each way to have several shapes; the histograms count what buckets cut
off, and what is padding with patches.  Without a pack they are of the photographs of the
examples.  Sphinx calls `main`, as it calls that of `make_pictures`.
"""

import itertools
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import recordio
from iterators import Buckets, ImageRecordIter
from iterators.fields import Crop, Size

HERE = Path(__file__).parent
PHOTOGRAPHS = HERE.parent / "examples" / "photographs"
LENGTHS = (16, 36, 64)
BUCKETS = Buckets(pixels=128 * 128, step=16, ratio=2)
CROPS = {"random_resized_crop": True, "min_random_area": 0.2, "min_aspect_ratio": 0.8,
         "max_aspect_ratio": 1.25, "log_aspect_ratio": True}  # fmt: skip
PATCHES = {"patches": 16, "sequence_lengths": LENGTHS}
KINDS = {
    "Buckets(pixels=128 * 128, step=16, ratio=2)": {"buckets": BUCKETS},
    "data_shape=[(3, 96, 96), (3, 128, 128), (3, 96, 144)]": {
        "data_shape": [(3, 96, 96), (3, 128, 128), (3, 96, 144)], "resize": "cover"},
    "patches=16, sequence_lengths=(16, 36, 64)": PATCHES,
    "patches=16, sequence_lengths=(16, 36, 64), random_resized_crop=True": {**PATCHES, **CROPS},
    "data_shape=None, resize=96": {"data_shape": None, "resize": 96},
}  # fmt: skip
BATCHES, COLUMNS, BINS = 2, 6, 20


def main(target=HERE / "_pictures", pack=None):
    """A picture for each kind and one of each histogram, and the Markdown that shows them."""
    target = Path(target)
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pack = pack or photographs(Path(folder, "photographs.rec"))
        text = ""
        for number, (words, keywords) in enumerate(KINDS.items()):
            path = target / f"shapes-{number}.jpg"
            sheet(pack, keywords).save(path, quality=85)
            text += f"`{words}`\n\n![{BATCHES} batches]({path.name})\n\n"
        for name, (words, shares) in shares_of(pack).items():
            (target / f"{name}.svg").write_text(histogram(shares))
            text += f"{words}: {shares.mean():.1%}\n\n![Histogram]({name}.svg)\n\n"
    (target / "shapes.md").write_text(text)


def photographs(path):
    """A record file of the photographs of the examples, all of them upright as well."""
    files = sorted(file for file in PHOTOGRAPHS.iterdir() if file.suffix != ".txt")
    with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
        for number in range(2 * len(files)):
            file = files[number % len(files)]
            image = np.array(Image.open(file).convert("RGB"))
            if number >= len(files):
                image = image.swapaxes(0, 1)[: image.shape[1] * 4 // 5]
            header = recordio.IRHeader(0, number % len(files), number, 0)
            content = recordio.encode_image(np.ascontiguousarray(image), "jpeg")
            writer.write(recordio.pack(header, content), number)
    return path


def batches(pack, keywords, **more):
    """The provider of a kind."""
    return ImageRecordIter(
        path_imgrec=str(pack), batch_size=COLUMNS, shuffle=True, seed=2, dtype="uint8",
        **keywords, **more,
    )  # fmt: skip


def sheet(pack, keywords):
    """Some batches below one another."""
    with batches(pack, keywords) as provider:
        some = itertools.islice(provider, BATCHES)
        found = [provider.show(batch, columns=COLUMNS) for batch in some]
    width, height = max(one.width for one in found), sum(one.height for one in found)
    whole, top = Image.new("RGB", (width, height), "white"), 0
    for one in found:
        whole.paste(one, (0, top))
        top += one.height
    return whole


def shares_of(pack):
    """What of each image a bucket cuts off, and what of each slot patches leave empty."""
    with batches(pack, {"buckets": BUCKETS}, fields={"crop": Crop(), "size": Size()}) as provider:
        cut = [1 - batch["crop"][:, 2:].prod(1) / batch["size"].prod(1) for batch in provider]
    with batches(pack, PATCHES) as provider:
        empty = [1 - batch["patch_valid"].mean(1) for _ in range(5) for batch in provider]
    return {
        "shapes-cut": ("Cut off by buckets, in the mean", np.concatenate(cut)),
        "shapes-padding": ("Padding of patches, in the mean", np.concatenate(empty)),
    }


def histogram(shares, width=480, height=120):
    """Images by the share, from 0 to 50 %, as SVG."""
    counts, _ = np.histogram(np.minimum(shares, 0.4999), BINS, (0, 0.5))
    step, tallest = width / BINS, max(counts.max(), 1)
    bars = "".join(
        f'<rect x="{i * step + 1:.1f}" y="{height - count / tallest * (height - 20):.1f}" '
        f'width="{step - 2:.1f}" height="{count / tallest * (height - 20):.1f}" fill="#4878a8"/>'
        f'<text x="{(i + 0.5) * step:.1f}" y="{height - count / tallest * (height - 20) - 3:.1f}" '
        f'text-anchor="middle">{count or ""}</text>'
        for i, count in enumerate(counts.tolist())
    )
    marks = "".join(
        f'<text x="{share / 50 * width:.0f}" y="{height + 14}" text-anchor="{anchor}">'
        f"{share} %</text>"
        for share, anchor in ((0, "start"), (10, "middle"), (20, "middle"), (30, "middle"),
                              (40, "middle"), (50, "end"))
    )  # fmt: skip
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 20}" '
        f'width="{width}" font-family="sans-serif" font-size="10">{bars}'
        f'<line x1="0" y1="{height}" x2="{width}" y2="{height}" stroke="black"/>{marks}</svg>\n'
    )


if __name__ == "__main__":
    main(*([sys.argv[2], sys.argv[1]] if len(sys.argv) > 2 else []))
