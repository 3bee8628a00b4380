"""Cases of containers: samples in tar files, zip archives and folders, used where they lie."""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import shlex
import subprocess
import sysconfig
import tarfile
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
from harness import Stopwatch, absolute, case, compare, timed
from image_cases import IMAGENET, PREFETCH, provider_of, steady_rate

from iterators import ImageRecordIter
from recordio import RecordReader, unpack
from recordio.bytes.files import StoredFile
from recordio.containers.index import SUFFIX, samples_of
from recordio.containers.tar import TAR

TARS, SAMPLES = 100, 10_000


def add_file(archive, name, content):
    """Add a file to a tar archive."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def written(folder, records):
    """The images of a record file in a tar file, a zip archive and a folder, by kind."""
    paths = {"tar": folder / "photos.tar", "zip": folder / "photos.zip", "folder": folder / "files"}
    with (
        RecordReader(records) as reader,
        tarfile.open(paths["tar"], "w") as tar,
        zipfile.ZipFile(paths["zip"], "w") as archive,
    ):
        for number, record in enumerate(reader):
            header, image = unpack(record)
            add_file(tar, f"{number:05d}.jpg", image)
            add_file(tar, f"{number:05d}.cls", b"%d" % header.label)
            name = f"{int(header.label):03d}/{number:05d}.jpg"
            archive.writestr(name, image)
            file = paths["folder"] / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(image)
    return paths


@case
def containers(material):
    """Random resized crop 224 of photographs in a container against the record file of the same."""
    parameters = {
        "data_shape": (3, 224, 224),
        "batch_size": 128,
        "random_resized_crop": True,
        "min_random_area": 0.08,
        "rand_mirror": True,
        **IMAGENET,
    }
    for kind, path in written(material.folder, material.photo_records).items():
        with (
            provider_of(material, material.photo_records, **parameters) as pack,
            ImageRecordIter(
                path_imgrec=str(path),
                shuffle=True,
                seed=1,
                preprocess_threads=material.threads,
                prefetch_buffer=PREFETCH,
                **parameters,
            ) as contained,
        ):
            yield compare(
                f"photographs in a {kind}",
                "images/s",
                partial(steady_rate, contained),
                partial(steady_rate, pack),
                bar=0.95,
                rounds=material.rounds,
                detail="reference: the record file",
            )


def tar_headers(folder):
    """The loop over headers in ``tar_headers.c``, compiled."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    library = folder / "tar_headers.so"
    source = Path(__file__).with_name("tar_headers.c")
    subprocess.run([*compiler, "-O3", "-shared", "-fPIC", source, "-o", library], check=True)
    function = ctypes.CDLL(str(library)).tar_headers
    function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_void_p, ctypes.c_int64]
    return function


def million(folder):
    """100 names of a tar file of 10,000 samples, each an image of 203 bytes and a class."""
    paths = [folder / f"set-{number:06d}.tar" for number in range(TARS)]
    with tarfile.open(paths[0], "w", format=tarfile.USTAR_FORMAT) as archive:
        for number in range(SAMPLES):
            add_file(archive, f"{number:06d}.jpg", b"\xff\xd8\xff" + bytes(200))
            add_file(archive, f"{number:06d}.cls", b"%d" % (number % 1000))
    for path in paths[1:]:
        path.hardlink_to(paths[0])
    return paths


@case
def tar_index(material):
    """Indexes of 100 tar files with 1,000,000 samples, made and opened again."""
    folder = material.folder / "million"
    folder.mkdir()
    paths, count = million(folder), tar_headers(folder)

    def indexes():
        for path in paths:
            path.with_name(path.name + SUFFIX).unlink(missing_ok=True)
        return sum(len(samples_of(StoredFile(str(path)), TAR)) for path in paths)

    def headers():
        members = 0
        for path in paths:
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
                view = np.frombuffer(data, np.uint8)
                members += count(view.ctypes.data, len(view))
                del view
        assert members == 2 * TARS * SAMPLES
        return members // 2

    yield compare(
        "index of 100 tar files",
        "samples/s",
        partial(timed, indexes),
        partial(timed, headers),
        bar=0.8,
        rounds=material.rounds,
        detail="reference: a loop in C over the headers, which keeps nothing",
    )

    def opened():
        watch = Stopwatch()
        names = str(folder / "set-{000000..000099}.tar")
        with ImageRecordIter(path_imgrec=names, data_shape=(3, 8, 8), batch_size=1) as provider:
            seconds, _ = watch.seconds()
            assert provider.num_samples == TARS * SAMPLES
        return seconds

    opened()
    yield absolute(
        "100 indexed tar files opened",
        "s",
        [opened() for _ in range(material.rounds)],
        bar=0.5,
        at_least=False,
        detail="1,000,000 samples",
    )
