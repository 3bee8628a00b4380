"""Ten jobs, the advice of their reports, and what it was worth: ``python benchmarks/advice.py``.

Every round runs a job, asks for its report, follows the advice, and runs the job again.  Rates are
images a second of the second epoch; the table has the medians of the rounds.  On a machine that
others use run it with priority, as ``nice -n -20 python ...`` does for root.
"""

from __future__ import annotations

import argparse
import io
import statistics
import tarfile
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from harness import markdown_table
from material import NEARBY_PHOTOS, Material

import iterators.providers.advice as advice
from iterators import ImageIter, ImageRecordIter
from recordio import RecordReader, unpack
from recordio.tools.cli import main as recordio
from recordio.tools.encode import EncodeOptions, encode_image

CROP = {"random_resized_crop": True, "min_random_area": 0.08, "rand_mirror": True}
MEAN = dict(zip(("mean_r", "mean_g", "mean_b"), (124, 117, 104), strict=True))
STD = dict(zip(("std_r", "std_g", "std_b"), (58, 57, 57), strict=True))


@dataclass
class Job:
    """A loop over a pack."""

    name: str
    pack: str
    keywords: dict[str, Any]
    #: Seconds that the loop takes for a batch, as a step of a GPU does.
    step: float = 0.0
    #: Whether decoded images fit into memory; else they are taken for a set that does not.
    fits: bool = False
    kind: Any = ImageRecordIter
    #: The keywords without functions in Python.
    plain: dict[str, Any] = field(default_factory=dict)


SIZE = {"data_shape": (3, 224, 224)}
JOBS = [
    Job("one thread", "optimized", SIZE | CROP | {"preprocess_threads": 1}),
    Job("eight threads for a step of 60 ms", "photos", SIZE | CROP, step=0.06),
    Job(
        "large images, decoded in full",
        "large.tar",
        {"data_shape": (3, 64, 64), "resize": 72, "rand_crop": True, "scaled_decode": False},
    ),
    Job("raw pixels as float32", "raw", SIZE | {"rand_crop": True} | MEAN | STD),
    Job("PNG images", "png", SIZE | {"resize": 256, "rand_crop": True}, fits=True),
    Job("crops of 320, progressive", "progressive", {"data_shape": (3, 320, 320)} | CROP),
    Job("crops of a tar", "photos.tar", {"data_shape": (3, 320, 320)} | CROP),
    Job(
        "crops of the short side 256",
        "photos",
        SIZE | {"resize": 256, "rand_crop": True},
        fits=True,
    ),
    Job("crops of 112", "photos", {"data_shape": (3, 112, 112)} | CROP),
    Job(
        "functions in Python",
        "small",
        SIZE,
        kind=ImageIter,
        plain={"rand_crop": True, "mean": np.array([124, 117, 104.0])},
    ),
]
JOBS[1].keywords = {**JOBS[1].keywords, "preprocess_threads": 8}


class Packs(Material):
    """The packs of the jobs, made on first use."""

    def __init__(self, photos: Path | None, folder: Path, count: int) -> None:
        super().__init__(photos, folder, threads=2, rounds=1, seconds=1)
        self.count = count

    def path(self, name: str) -> str:
        """Return a pack by its name."""
        target = self.folder / name
        made = target if "." in name else target.with_suffix(".rec")
        if not made.exists():
            getattr(self, f"make_{name.replace('.', '_')}")(target)
        return str(made)

    def chosen(self) -> list[bytes]:
        """Return the photographs, repeated."""
        return (self.blobs * -(-self.count // len(self.blobs)))[: self.count]

    def make_photos(self, target: Path) -> None:
        self.packed("photos.rec", self.chosen())

    def make_photos_tar(self, target: Path) -> None:
        self.in_tar(target, self.chosen())

    def make_large_tar(self, target: Path) -> None:
        made = [cv2.imdecode(np.frombuffer(blob, np.uint8), 1) for blob in self.blobs[:100]]
        twice = [cv2.resize(image, None, fx=2, fy=2) for image in made]
        options = [cv2.IMWRITE_JPEG_QUALITY, 75]
        blobs = [cv2.imencode(".jpg", image, options)[1].tobytes() for image in twice]
        self.in_tar(target, (blobs * 10)[: self.count])

    @staticmethod
    def in_tar(target: Path, blobs: list[bytes]) -> None:
        """Write images and a class for each."""
        with tarfile.open(target, "w") as tar:
            for number, blob in enumerate(blobs):
                for suffix, data in ((".jpg", blob), (".cls", b"1")):
                    member = tarfile.TarInfo(f"{number:06}{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))

    def make_progressive(self, target: Path) -> None:
        options = [cv2.IMWRITE_JPEG_PROGRESSIVE, 1, cv2.IMWRITE_JPEG_QUALITY, 90]
        made = {
            blob: cv2.imencode(".jpg", cv2.imdecode(np.frombuffer(blob, np.uint8), 1), options)[1]
            for blob in self.blobs
        }
        self.packed("progressive.rec", [made[blob].tobytes() for blob in self.chosen()])

    def make_optimized(self, target: Path) -> None:
        self.optimized(self.path("photos"), str(target))

    def make_png(self, target: Path) -> None:
        options = EncodeOptions(encoding=".png", quality=3)
        made = {blob: encode_image(blob, options) for blob in self.blobs[:100]}
        self.packed("png.rec", (list(made.values()) * 10)[: self.count])

    def make_raw(self, target: Path) -> None:
        options = EncodeOptions(resize=256, encoding="raw")
        made = {blob: encode_image(blob, options) for blob in self.blobs}
        self.packed("raw.rec", [made[blob] for blob in self.chosen()])

    def make_small(self, target: Path) -> None:
        self.packed("small.rec", self.resized(self.chosen(), 240))

    def resized(self, blobs: list[bytes], side: int) -> list[bytes]:
        """Return images as ``im2rec --resize`` packs them."""
        made = {blob: encode_image(blob, EncodeOptions(resize=side)) for blob in set(blobs)}
        return [made[blob] for blob in blobs]

    @staticmethod
    def optimized(pack: str, prefix: str) -> None:
        """Run ``recordio optimize``."""
        assert recordio(["optimize", pack, prefix, "--force"]) == 0


def in_python(image: np.ndarray) -> np.ndarray:
    """Crop at random, and normalise."""
    top, left = (np.random.randint(side - 223) for side in image.shape[:2])
    return image[top : top + 224, left : left + 224].astype(np.float32) - [124, 117, 104]


def run(
    job: Job, pack: str, keywords: dict[str, Any], rate: float, advise: bool
) -> tuple[Any, float]:
    """Run two epochs; return the report of the second, and its rate by processor time.

    At `rate` images a second they take about a second, so that their ends do not count.
    """
    keywords = {**keywords, "epoch_size": max(int(rate) // 32 * 32, 320)}
    common = {"batch_size": 32, "shuffle": True, "verbose": False, "preprocess_threads": 2}
    if job.kind is ImageRecordIter:
        common["path_imgidx"] = pack.replace(".rec", ".idx") if pack.endswith(".rec") else ""
    with job.kind(path_imgrec=pack, **{**common, **keywords}) as provider:
        for _ in range(2):
            begin = time.process_time()
            for _ in provider:
                if job.step:
                    time.sleep(job.step)
        spent = time.process_time() - begin
        report = provider.report(advise)
    return report, report.images / spent


def followed(job: Job, packs: Packs, report: Any, pack: str) -> tuple[str, dict[str, Any]]:
    """Return the pack and the keywords that follow the advice."""
    keywords = {**job.keywords, **report.keywords}
    if report.keywords.get("dtype") == "uint8":
        keywords = {name: value for name, value in keywords.items() if name not in MEAN | STD}
    if report.advice.startswith("recordio optimize"):
        prefix = str(packs.folder / f"{Path(pack).stem}-optimized")
        if not Path(f"{prefix}.rec").exists():
            packs.optimized(pack, prefix)
        pack = f"{prefix}.rec"
    elif report.advice.startswith("im2rec --resize"):
        side = int(report.advice.split()[2].rstrip(":"))
        name = f"resized-{side}.rec"
        if not (packs.folder / name).exists():
            blobs = [bytes(unpack(record)[1]) for record in RecordReader(pack)]
            packs.packed(name, packs.resized(blobs, side))
        pack = str(packs.folder / name)
    elif "in Python" in report.advice:
        keywords = {**{n: v for n, v in keywords.items() if n != "aug_list"}, **job.plain}
    return pack, keywords


def measured(job: Job, packs: Packs, rounds: int) -> list[str]:
    """Run a job and its advice in turns; return a row of the table."""
    pack = packs.path(job.pack)
    keywords = dict(job.keywords)
    if job.kind is ImageIter:
        job.keywords = keywords = {**keywords, "aug_list": [in_python]}
    found: list[tuple[Any, float, Any, float]] = []
    rate = 320.0
    for _ in range(rounds):
        advice.available_memory = available if job.fits else lambda: 0
        if not found:
            rate = run(job, pack, keywords, 320, False)[0].rate
        report, cpu = run(job, pack, keywords, rate, True)
        followed_by = followed(job, packs, report, pack)
        after, after_cpu = run(job, *followed_by, report.predicted_rate, False)
        found.append((report, cpu, after, after_cpu))
        print(
            f"  {report.rate:.0f} -> {report.predicted_rate:.0f}, {after.rate:.0f}"
            f"  by processor time {after_cpu / cpu:.2f}  {report.advice}",
            flush=True,
        )
    usual = statistics.mode(report.advice.split(",")[0] for report, *_ in found)
    found = [row for row in found if row[0].advice.startswith(usual)]
    middle = statistics.median
    before, predicted, after = (
        middle(row[0].rate for row in found),
        middle(row[0].predicted_rate for row in found),
        middle(row[2].rate for row in found),
    )
    ratio = middle(row[2].rate / row[0].predicted_rate for row in found)
    cpu = middle(row[3] / row[1] for row in found)
    return [
        job.name,
        usual,
        f"{before:.0f}",
        f"{predicted:.0f}",
        f"{after:.0f}",
        f"{ratio:.2f}",
        f"{cpu:.2f}",
    ]


available = advice.available_memory


def main() -> None:
    """Run the jobs, or those whose names have the given words."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("jobs", nargs="*", help="parts of names; all without")
    parser.add_argument("--photos", type=Path, help="folder of JPEG photographs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=1000)
    options = parser.parse_args()
    photos = options.photos or (NEARBY_PHOTOS if NEARBY_PHOTOS.is_dir() else None)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        packs = Packs(photos, Path(folder), options.images)
        for job in JOBS:
            if not options.jobs or any(word in job.name for word in options.jobs):
                print(job.name, flush=True)
                rows.append(measured(job, packs, options.rounds))
    head = ["job", "advice", "before", "predicted", "followed", "followed / predicted", "work"]
    print(markdown_table(head, *rows, numeric={2, 3, 4, 5, 6}))


if __name__ == "__main__":
    main()
