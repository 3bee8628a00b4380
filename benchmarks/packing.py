"""Packing photographs at 256 pixels: `im2rec` beside the writers of other libraries' formats.

``python benchmarks/packing.py FOLDER [COUNT]`` packs so many photographs of a folder, 1,000 if
there are as many, their short side resized to 256 and encoded as JPEG of quality 95 by OpenCV for
all but `im2rec`, which has its own way to the same pixels.  One process and one thread each, in
turns; seconds of processor time, the least of three rounds, and ratios to ours.  Writers that are
not installed are left out: ``pip install webdataset litdata mosaicml-streaming``.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

ROUNDS, SIDE, QUALITY = 3, 256, 95


def resized(path: Path) -> bytes:
    """A photograph as it is packed."""
    pixels = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
    if pixels is None:
        raise ValueError(f"OpenCV does not decode {path}")
    height, width = pixels.shape[:2]
    size = (SIDE, height * SIDE // width) if height > width else (width * SIDE // height, SIDE)
    pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_LINEAR)
    return cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1].tobytes()


def ours(paths: list[Path], folder: Path) -> None:
    from recordio.list_files import ListEntry
    from tools.im2rec_options import EncodeOptions
    from tools.pack import pack

    entries = [ListEntry(i, (float(i % 10),), str(path)) for i, path in enumerate(paths)]
    options = EncodeOptions(resize=SIDE, quality=QUALITY)
    pack(entries, "/", folder / "photos", options, threads=1)


def webdataset(paths: list[Path], folder: Path) -> None:
    import webdataset

    with webdataset.ShardWriter(str(folder / "%04d.tar"), maxcount=1000, verbose=0) as writer:
        for i, path in enumerate(paths):
            writer.write({"__key__": f"{i:06d}", "jpg": resized(path), "cls": i % 10})


def litdata(paths: list[Path], folder: Path) -> None:
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(str(folder), chunk_bytes="64MB")
    for i, path in enumerate(paths):
        writer.add_item(i, {"image": resized(path), "label": i % 10})
    writer.done()
    writer.merge()


def mosaic(paths: list[Path], folder: Path) -> None:
    from streaming import MDSWriter

    columns = {"image": "bytes", "label": "int"}
    with MDSWriter(out=str(folder), columns=columns, size_limit="64mb") as writer:
        for i, path in enumerate(paths):
            writer.write({"image": resized(path), "label": i % 10})


WRITERS: dict[str, Callable[[list[Path], Path], None]] = {
    "im2rec": ours,
    "webdataset": webdataset,
    "LitData BinaryWriter": litdata,
    "Mosaic MDSWriter": mosaic,
}


def main(folder: str = "../shared/data/photos", count: str = "1000") -> None:
    """Print a table of all writers."""
    cv2.setNumThreads(1)
    found = sorted(p for p in Path(folder).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    paths = [path.absolute() for path in itertools.islice(itertools.cycle(found), int(count))]
    best: dict[str, Any] = {}
    for name, write in itertools.chain(*[WRITERS.items()] * (ROUNDS + 1)):
        if best.get(name, 0) is None:
            continue
        with tempfile.TemporaryDirectory() as target:
            begin = time.process_time()
            try:
                # The first round is for what is imported and warms up.
                write(paths if name in best else paths[:10], Path(target))
            except ImportError as error:
                print(f"without {name}: {error}", file=sys.stderr)
                best[name] = None
                continue
            spent = time.process_time() - begin
        best[name] = min(best[name], spent) if name in best else float("inf")
    print(f"{len(paths)} photographs\n| | s | to ours |\n|---|---|---|")
    for name, seconds in best.items():
        if seconds is not None:
            print(f"| {name} | {seconds:.2f} | {seconds / best['im2rec']:.2f} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
