"""Files that the contenders read: the same images in the form that each of them knows.

Made on first use in the folder of `Material`, from photographs and what is made of them.  Nothing
here is measured.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
from pages import pages

from recordio import IRHeader, RecordWriter, pack
from recordio.tools import cli
from recordio.tools.encode import EncodeOptions, encode_image

__all__ = ["Packs", "Unavailable"]

SHARDS = 4


class Unavailable(Exception):
    """A pack cannot be made, for the reason given."""


def as_small_png(blob):
    """The image as PNG, its short side resized to 256."""
    return encode_image(blob, EncodeOptions(resize=256, inter_method=3, encoding=".png"))


def encoded(blob, suffix, *flags):
    """The image in the encoding of a suffix, with flags of `cv2.imencode`."""
    pixels = cv2.imdecode(np.frombuffer(blob, np.uint8), cv2.IMREAD_COLOR)
    return cv2.imencode(suffix, pixels, flags)[1].tobytes()


class Packs:
    """Every pack as a dictionary of paths.

    Parameters
    ----------
    material : Material
        Photographs, faces and tables.
    photos, faces : int
        How many records there should be, about: an epoch should take some seconds, for many
        contenders stop for a moment where one ends.
    """

    def __init__(self, material, photos=8_000, faces=80_000):
        self._material, self._folder = material, material.folder
        self._photo_count, self._face_count = photos, faces

    @cached_property
    def photos(self):
        """The untouched photographs."""
        paths = self._material.photos
        return self._images(
            "photographs", [str(path.absolute()) for path in paths], self._photo_count
        )

    @cached_property
    def faces(self):
        """Faces of 112 x 112."""
        folder = self._folder / "faces"
        folder.mkdir()
        paths = []
        for number, blob in enumerate(self._material.face_blobs):
            path = folder / f"{number:05d}.jpg"
            path.write_bytes(blob)
            paths.append(str(path))
        return self._images("face-records", paths, self._face_count)

    @cached_property
    def png_photos(self):
        """The photographs as PNG, their short side resized to 256."""
        return self._encoded("png", as_small_png, self._photo_count // 4)

    @cached_property
    def webp_photos(self):
        """The photographs as WebP of quality 90, their short side resized to 256."""
        return self._encoded(
            "webp",
            lambda blob: encoded(as_small_png(blob), ".webp", cv2.IMWRITE_WEBP_QUALITY, 90),
            self._photo_count // 4,
        )

    @cached_property
    def progressive_photos(self):
        """The photographs as progressive JPEG of quality 90."""
        flags = cv2.IMWRITE_JPEG_PROGRESSIVE, 1, cv2.IMWRITE_JPEG_QUALITY, 90
        return self._encoded(
            "progressive", lambda blob: encoded(blob, ".jpg", *flags), self._photo_count // 2
        )

    def _encoded(self, name, encode, count):
        """At most 500 of the photographs in another encoding."""
        folder = self._folder / name
        folder.mkdir()
        paths = []
        for source in self._material.photos[:500]:
            path = folder / source.stem
            path.write_bytes(encode(source.read_bytes()))
            paths.append(str(path.absolute()))
        return self._images(f"{name}-records", paths, count)

    @cached_property
    def pages(self):
        """Pages of words; only processors read them, file by file."""
        folder = self._folder / "pages"
        folder.mkdir()
        paths = []
        for number, blob in enumerate(pages(16)):
            paths.append(folder / f"{number}.jpg")
            paths[-1].write_bytes(blob)
        target = self._folder / "pages.txt"
        target.write_text("\n".join(str(path.absolute()) for path in paths))
        return {"list": str(target)}

    @cached_property
    def optimized_photos(self):
        """The photographs, rewritten without loss."""
        return self._im2rec("optimized", "--optimize")

    @cached_property
    def photo_tars(self):
        """The photographs in the tar files that WebDataset reads."""
        return {"records": self.photos["webdataset"]}

    @cached_property
    def raw_photos(self):
        """The photographs as pixels, their short side resized to 256."""
        return self._im2rec("raw", "--encoding", "raw", "--resize", "256")

    @cached_property
    def float_csv(self):
        """A table of floats."""
        return self._table(self._material.float_csv)

    @cached_property
    def integer_csv(self):
        """A table of small integers."""
        return self._table(self._material.integer_csv)

    def _table(self, path):
        return {"csv": str(path), "bytes": path.stat().st_size}

    def _images(self, name, paths, count):
        """Record file, list of files, tar archives and TFRecord files of the same images."""
        paths = paths * max(1, round(count / len(paths)))
        files = {"list": self._folder / f"{name}.txt"}
        files["list"].write_text("\n".join(paths))
        files["records"], files["index"] = self._records(name, paths)
        for form, suffix in (("webdataset", "tar"), ("tfrecord", "tfrecord")):
            files[form] = []
            for shard in range(SHARDS):
                part, index = self._records("shard", paths[shard::SHARDS])
                target = self._folder / f"{name}-{shard}.{suffix}"
                with contextlib.redirect_stderr(io.StringIO()):
                    if cli.main(["export", str(part), str(target), "--to", form]):
                        raise Unavailable(f"the conversion to {form} failed")
                files[form].append(str(target))
                part.unlink()
                index.unlink()
        return {
            key: value if isinstance(value, list) else str(value) for key, value in files.items()
        }

    def _records(self, name, paths):
        records = self._folder / f"{name}.rec"
        index = records.with_suffix(".idx")
        with RecordWriter(records, index) as writer:
            for number, path in enumerate(paths):
                blob = Path(path).read_bytes()
                writer.write(pack(IRHeader(0, number % 1000, number, 0), blob), number)
        return records, index

    def _im2rec(self, name, *options):
        """A pack of the same photographs by `im2rec`."""
        paths = Path(self.photos["list"]).read_text().splitlines()
        prefix = self._folder / name
        prefix.with_suffix(".lst").write_text(
            "".join(f"{number}\t{number % 1000}\t{path}\n" for number, path in enumerate(paths))
        )
        command = [sys.executable, "-m", "recordio.tools.im2rec", *options, str(prefix), "/"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            lines = result.stderr.strip().splitlines()
            raise Unavailable(lines[-1] if lines else f"im2rec ended with {result.returncode}")
        return {
            "records": str(prefix.with_suffix(".rec")),
            "index": str(prefix.with_suffix(".idx")),
        }
