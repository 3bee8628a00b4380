"""Batches in buckets: ``python benchmarks/buckets.py PHOTOS``, a folder of JPEG files.

Prints what the order and the plan of a hundred million images take, the share of a batch that is
padding with patches, and the rate beside what is usual in Python: a sampler of buckets for torch's
`DataLoader` over Pillow.  Rates are images per second of processor time, measured in turns.
"""

from __future__ import annotations

import argparse
import functools
import io
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import recordio
from iterators import Buckets, ImageRecordIter
from iterators.core.order import BucketPlan, DealtOrder, Members, ShuffledOrder
from iterators.core.order.image_shapes import patch_sizes
from recordio.packs.open_pack import open_pack

BUCKETS = Buckets(pixels=256 * 256, step=32, ratio=2)
BATCH = 32
LENGTHS = (128, 256, 576, 784, 1024)
REPEATS = 5


def private_bytes() -> int:
    """Count the memory of this process that is not that of files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) << 10
    return 0


def measure_plan(count: int, path: str) -> None:
    """Print what the buckets and the first batches of so many images take."""
    sizes = np.load(path, mmap_mode="r")
    assert sizes.shape == (count, 2)
    buckets = Buckets(pixels=1 << 20, step=64, ratio=2)
    before, start = private_bytes(), time.process_time()
    members = Members.of(buckets, [sizes])
    plan = BucketPlan(
        order=DealtOrder(ShuffledOrder(count), 8, 0), batch_size=BATCH, buckets=buckets,
        members=members, parts=8, part=0,
    )  # fmt: skip
    batches = len(plan)
    for number in range(3):
        plan.rows(0, number)
    seconds, memory = time.process_time() - start, private_bytes() - before
    print(f"{count:,} images, {batches:,} batches of each of 8 parts: {seconds:.2f} s, "
          f"{memory / 1e6:.0f} MB")  # fmt: skip


def plans_at_scale(count: int) -> None:
    """Measure in a process of its own, over sizes in a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/sizes.npy"
        table = np.lib.format.open_memmap(path, "w+", np.uint32, (count, 2))
        rng = np.random.default_rng(0)
        for begin in range(0, count, 1 << 20):
            rows = table[begin : begin + (1 << 20)]
            rows[:] = np.exp(rng.normal(6, 0.4, rows.shape))
        del table
        subprocess.run([sys.executable, __file__, "--plan", str(count), path], check=True)


def padding(pack: str) -> None:
    """Print the share of patches that are padding, of each sequence length and of all."""
    sizes = np.ascontiguousarray(open_pack(pack).image_sizes)
    shares = [1 - float((patch_sizes(sizes, 16, n) // 16).prod(1).mean()) / n for n in LENGTHS]
    each = ", ".join(f"{n}: {share:.1%}" for n, share in zip(LENGTHS, shares, strict=True))
    print(f"padding of patches: {statistics.mean(shares):.1%} ({each})")


def ours(pack: str) -> tuple[int, float]:
    """Go through an epoch: images, and seconds of processor time."""
    keywords = {"batch_size": BATCH, "shuffle": True, "dtype": "uint8", "verbose": False}
    with ImageRecordIter(
        path_imgrec=pack, buckets=BUCKETS, preprocess_threads=1, **keywords
    ) as provider:
        start = time.process_time()
        for _ in provider:
            pass
        # Those that were made ahead for the next epoch, and filled positions, cost as much.
        return int(provider.stats()["images"]), time.process_time() - start


def fixed(pack: str, resize: str | tuple[int, int] = "cover") -> tuple[int, float]:
    """Do the same with one shape of about as many pixels."""
    keywords = {"batch_size": BATCH, "shuffle": True, "dtype": "uint8", "verbose": False}
    with ImageRecordIter(
        path_imgrec=pack, data_shape=(3, 256, 256), resize=resize, preprocess_threads=1, **keywords
    ) as provider:
        start = time.process_time()
        for _ in provider:
            pass
        # Those that were made ahead for the next epoch, and filled positions, cost as much.
        return int(provider.stats()["images"]), time.process_time() - start


def usual(pack: str) -> tuple[int, float]:
    """Go through an epoch of a `DataLoader` with a sampler of buckets."""
    import torch
    from PIL import Image

    torch.set_num_threads(1)
    records = recordio.RecordReader(f"{pack}.rec", f"{pack}.idx")
    buckets = BUCKETS.nearest(np.ascontiguousarray(open_pack(pack).image_sizes)).tolist()

    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return len(records)

        def __getitem__(self, row):
            height, width = BUCKETS.every_shape[buckets[row]]
            _, content = recordio.unpack(records[row])
            image = Image.open(io.BytesIO(content)).convert("RGB")
            scale = max(width / image.width, height / image.height)
            size = max(width, round(image.width * scale)), max(height, round(image.height * scale))
            image = image.resize(size, Image.Resampling.BILINEAR)
            x, y = (size[0] - width) // 2, (size[1] - height) // 2
            pixels = np.array(image.crop((x, y, x + width, y + height)))
            return torch.from_numpy(pixels).permute(2, 0, 1)

    class Batches(torch.utils.data.Sampler):
        def __iter__(self):
            order = np.random.default_rng(0).permutation(len(buckets))
            waiting: dict[int, list[int]] = {}
            for row in order.tolist():
                mine = waiting.setdefault(buckets[row], [])
                mine.append(row)
                if len(mine) == BATCH:
                    yield waiting.pop(buckets[row])
            yield from waiting.values()

    loader = torch.utils.data.DataLoader(Images(), batch_sampler=Batches())
    start = time.process_time()
    for _ in loader:
        pass
    return len(records), time.process_time() - start


def datago(python: str, photos: str, count: int, pack: str) -> tuple[int, float]:
    """Go through an epoch of datago over the files, which it decodes and brings to its buckets."""
    program = Path(__file__).parent / "peers" / "datago_buckets.py"
    command = [python, program, photos, "256", "32", "2", count]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    images, seconds = done.stdout.split()
    return int(images), float(seconds)


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", nargs="?", help="a folder of JPEG files")
    parser.add_argument("--images", type=int, default=10**8, help="images of the plan")
    parser.add_argument("--datago", help="a Python that has datago, to compare with")
    parser.add_argument("--plan", nargs=2, help=argparse.SUPPRESS)
    settings = parser.parse_args()
    if settings.plan:
        measure_plan(int(settings.plan[0]), settings.plan[1])
        return
    plans_at_scale(settings.images)
    if settings.photos is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        pack = f"{folder}/photos"
        files = sorted(p for p in Path(settings.photos).rglob("*") if p.suffix.lower() in SUFFIXES)
        with recordio.RecordWriter(f"{pack}.rec", f"{pack}.idx") as writer:
            for number, file in enumerate(files):
                header = recordio.IRHeader(0, 0, number, 0)
                writer.write(recordio.pack(header, file.read_bytes()), number)
        padding(pack)
        # One shape that loses as little of an image as a bucket does, and so decodes as much.
        stretched = functools.partial(fixed, resize=(256, 256))
        ways = {"buckets": ours, "one shape": fixed, "stretched": stretched, "DataLoader": usual}
        if settings.datago:
            ways["datago"] = functools.partial(datago, settings.datago, settings.photos, len(files))
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(REPEATS):
            for name, way in ways.items():
                images, seconds = way(pack if name == "DataLoader" else f"{pack}.rec")
                rates[name].append(images / seconds)
        middle = {name: statistics.median(values) for name, values in rates.items()}
        print(", ".join(f"{name}: {rate:.0f} images/s" for name, rate in middle.items()))
        others = [name for name in ways if name != "buckets"]
        ratios = (f"{name} {middle['buckets'] / middle[name]:.2f}" for name in others)
        print("buckets to", ", ".join(ratios))


SUFFIXES = (".jpg", ".jpeg")

if __name__ == "__main__":
    main()
