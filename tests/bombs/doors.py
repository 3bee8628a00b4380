"""Whatever decodes an image that somebody else made: a new one is a line of `DOORS`.

``python doors.py`` lets every bomb in through every door, each in a child process, and prints a
line of JSON for each: the most memory that it took beyond what it began with, the processor time,
and how it ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bombs import BOMBS, sound

import iterators.mx_image
import recordio
from iterators import ImageRecordIter, optimize_jpeg
from iterators.datasets import (
    ImageDataset,
    ImageRecordDataset,
    LabeledImageDataset,
    ZippedImageDataset,
    gluon,
)
from iterators.providers.image_preview import samples_of
from iterators.testing import write_pack
from iterators.views.image_sets import ImageClassSet
from recordio.formats.image_header import read_header
from recordio.formats.jpeg.resize import decode_resized
from recordio.operations.expression import Condition
from recordio.operations.pictures import channel_sums, picture_hash
from recordio.tools.decode_check import check_contents
from recordio.tools.encode import EncodeOptions, encode_image
from recordio.tools.images import decode_content
from recordio.tools.payloads import check_content, describe
from recordio.tools.view import pictures
from recordio.tools.view.contents import read_content
from recordio.tools.view.pack import ShownPack
from recordio.tools.view.selection import search

try:
    from starlette.testclient import TestClient

    from recordio.tools.view.pack import open_packs
    from recordio.tools.view.server import application
    from recordio.tools.view.site import Site
except ModuleNotFoundError:  # the extra view
    TestClient = None

#: Seconds of processor time after which a child is ended.
MOST_SECONDS = 20


class Case(NamedTuple):
    """A file in every form in which a door takes it."""

    content: bytes
    file: str
    pack: str
    classes: str
    archive: str


def case_of(folder: Path, content: bytes) -> Case:
    """Write all of them."""
    (folder / "classes" / "one").mkdir(parents=True)
    file = folder / "classes" / "one" / "image.png"
    file.write_bytes(content)
    write_pack(folder / "a.rec", [content] * 3, [1.0] * 3)
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.write(file, "image.png")
    return Case(
        content, str(file), str(folder / "a.rec"), str(file.parents[1]), str(archive.filename)
    )


def image_record_iter(case: Case, **options: object) -> None:
    with ImageRecordIter(
        path_imgrec=case.pack,
        data_shape=(3, 8, 8),
        batch_size=3,
        preprocess_threads=1,
        verbose=False,
        **options,
    ) as provider:
        provider.next()


def preview(case: Case) -> None:
    with ImageRecordIter(path_imgrec=case.pack, data_shape=(3, 8, 8), batch_size=1) as provider:
        samples_of(provider, 0, [0])


def image_class_set(case: Case) -> None:
    ImageClassSet(case.classes, load_size=(3, 8, 8)).batch(1)


def filter_decodable(case: Case) -> None:
    recordio.filter(case.pack, case.pack + ".out", "decodable")


def viewer_search(case: Case) -> None:
    pack = ShownPack(case.pack)
    pack.locations.survey()
    search(pack, Condition("decodable and width > 0"), 0, 10)
    pack.close()


def viewer_pages(case: Case) -> None:
    if TestClient is None:
        return
    site = Site(open_packs([case.pack]), threads=1)
    with TestClient(application(site, "token", 8642), base_url="http://127.0.0.1:8642") as browser:
        browser.get("/?token=token")
        for page in ("/pack/a/", "/pack/a/record/0", "/pack/a/training"):
            reply = browser.get(page)
            assert reply.status_code < 500, (page, reply.status_code)
            assert len(reply.content) < 1 << 22, f"{page} has {len(reply.content)} bytes"
    site.close()


def check_decode(case: Case) -> None:
    report = recordio.verify(case.pack)
    check_contents(report, threads=1, progress=False)


DOORS: dict[str, Callable[[Case], object]] = {
    "unpack_img": lambda case: recordio.unpack_img(recordio.pack((0, 1.0, 1, 0), case.content), 1),
    "channel_sums": lambda case: channel_sums(case.content),
    "picture_hash": lambda case: picture_hash(case.content),
    "stats(mean_std=True)": lambda case: recordio.stats(case.pack, mean_std=True, threads=1),
    "dedup(near=4)": lambda case: recordio.dedup(case.pack, near=4, threads=1),
    "filter(decodable)": filter_decodable,
    "sort(size)": lambda case: recordio.sort(case.pack, case.pack + ".out", "size"),
    "decode_image": lambda case: recordio.decode_image(case.content),
    "decode_image, float32": lambda case: recordio.decode_image(case.content, dtype="float32"),
    "decode_image, uint16": lambda case: recordio.decode_image(case.content, dtype="uint16"),
    "decode_image, size": lambda case: recordio.decode_image(case.content, size=(8, 8)),
    "decode_image, scale": lambda case: recordio.decode_image(case.content, scale=1 / 8),
    "decode_image, region": lambda case: recordio.decode_image(case.content, region=(0, 0, 1, 1)),
    "decode_many": lambda case: recordio.decode_many([case.content] * 2, threads=2, size=(8, 8)),
    "image_info": lambda case: recordio.image_info(case.content),
    "read_header": lambda case: read_header(case.content),
    "imdecode": lambda case: iterators.mx_image.imdecode(case.content),
    "imread": lambda case: iterators.mx_image.imread(case.file),
    "optimize_jpeg": lambda case: optimize_jpeg(case.content),
    "decode_resized": lambda case: decode_resized(case.content, 8, 1),
    "ImageRecordIter": image_record_iter,
    "ImageRecordIter, float32": partial(image_record_iter, dtype="float32", resize=8),
    "samples_of": preview,
    "ImageRecordDataset": lambda case: ImageRecordDataset(case.pack)[0],
    "ImageDataset": lambda case: ImageDataset([case.file])[0],
    "LabeledImageDataset": lambda case: LabeledImageDataset([(case.file, 1)])[0],
    "ZippedImageDataset": lambda case: ZippedImageDataset(case.archive)[0],
    "ImageClassSet": image_class_set,
    "gluon.ImageFolderDataset": lambda case: gluon.ImageFolderDataset(case.classes)[0],
    "im2rec": lambda case: encode_image(case.content, EncodeOptions()),
    "im2rec --resize": lambda case: encode_image(case.content, EncodeOptions(resize=8)),
    "im2rec --check decode": lambda case: encode_image(case.content, EncodeOptions(check="decode")),
    "check --decode": check_decode,
    "export": lambda case: decode_content(case.content),
    "list": lambda case: describe(case.content, recordio.formats.table.kind_of(case.content)),
    "check_content": lambda case: check_content(case.content),
    "view, picture": lambda case: pictures.decoded(case.content, 100),
    "view, search": viewer_search,
    "view, content": lambda case: read_content(np.frombuffer(case.content, np.uint8).data, "other"),
    "view, pages": viewer_pages,
}


def measured(door: Callable[[Case], object], case: Case) -> dict[str, object]:
    """What a bomb costs at a door, in a child process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries say there what they refuse
        before = resource.getrusage(resource.RUSAGE_SELF)
        try:
            door(case)
            end = "done"
        except BaseException as error:
            known = isinstance(error, (recordio.RecordIOError, ValueError))
            end = f"{'refused' if known else 'failed'}: {type(error).__name__}: {error}"[:300]
        after = resource.getrusage(resource.RUSAGE_SELF)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        megabytes = (after.ru_maxrss - before.ru_maxrss) / 1024
        said = {"mb": megabytes, "seconds": seconds, "end": end, "modules": [*sys.modules]}
        os.write(write, json.dumps(said).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as result:
        said = result.read()
    _, status = os.waitpid(child, 0)
    if said:
        return json.loads(said)
    return {"mb": 0, "seconds": MOST_SECONDS, "end": f"failed: ended with status {status}"}


def import_as(modules: Iterable[str]) -> None:
    """Import what a child imported, so that the next ones find it."""
    for name in modules:
        if name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def main(names: list[str]) -> None:
    """Measure all bombs, or those that are named, at all doors, and a sound file first."""
    gc.freeze()  # children would copy what they only look at
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, make) in enumerate({"sound": sound, **BOMBS}.items()):
            if names and name not in names:
                continue
            case = case_of(Path(folder, str(number)), make())
            for left, (door, enter) in zip(range(len(DOORS))[::-1], DOORS.items(), strict=True):
                told = {"bomb": name, "bytes": len(case.content), "door": door, "last": not left}
                result = told | measured(enter, case)
                import_as(result.pop("modules", ()))
                print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
