"""Material of the cases: photographs, and record files made of them in a temporary folder.

Nothing here is measured.
"""

from __future__ import annotations

import random
import shutil
from functools import cached_property
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from recordio import IRHeader, RecordWriter, pack
from recordio.tools.encode import EncodeOptions, encode_image

__all__ = ["NEARBY_PHOTOS", "Material"]

NEARBY_PHOTOS = Path(__file__).resolve().parents[2] / "shared/data/photos"

SUFFIXES = {".jpg", ".jpeg"}


class Material:
    """Photographs and everything made of them, on first use.

    Parameters
    ----------
    photos : Path or None
        Folder of JPEG files; None takes those of the examples.
    folder : Path
        Where files are made; the caller removes it.
    threads, rounds : int
        What the cases are run with.
    seconds : float
        How long a measurement of a rate should take, about.
    """

    def __init__(self, photos, folder, *, threads, rounds, seconds):
        self.folder = Path(folder)
        self.threads = threads
        self.rounds = rounds
        self.seconds = seconds
        self._photos = photos

    @cached_property
    def photos(self) -> list[Path]:
        """The JPEG files."""
        source = self._photos or self._bundled_photos()
        files = sorted(p for p in Path(source).rglob("*") if p.suffix.lower() in SUFFIXES)
        if not files:
            raise SystemExit(f"no JPEG files below {source}")
        return files

    def _bundled_photos(self) -> Path:
        """The photographs of the examples as JPEG files of usual size and quality."""
        source = Path(__file__).parents[1] / "examples" / "photographs"
        folder = self.folder / "bundled"
        folder.mkdir()
        for name in ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg"):
            image = cv2.imread(str(source / name))
            target = folder / f"{Path(name).stem}.jpg"
            cv2.imwrite(str(target), image, [cv2.IMWRITE_JPEG_QUALITY, 90])
        return folder

    @property
    def description(self) -> str:
        """The photographs in words."""
        mean = sum(map(len, self.blobs)) / len(self.blobs)
        place = "of a folder" if self._photos else "of the examples"
        return f"{len(self.blobs)} photographs {place}, mean {mean / 1000:.0f} kB"

    @cached_property
    def blobs(self) -> list[bytes]:
        """The photographs as they are in their files."""
        return [path.read_bytes() for path in self.photos]

    @cached_property
    def face_blobs(self) -> list[bytes]:
        """10,000 crops of the photographs, 112 x 112, JPEG of quality 95."""
        draw = random.Random(1)
        images = [cv2.imread(str(path)) for path in self.photos[:250]]
        images = [image for image in images if min(image.shape[:2]) > 120]
        faces = []
        for number in range(10_000):
            image = images[number % len(images)]
            height, width = image.shape[:2]
            side = draw.randint(112, min(height, width))
            top, left = draw.randint(0, height - side), draw.randint(0, width - side)
            crop = image[top : top + side, left : left + side]
            face = cv2.resize(crop, (112, 112), interpolation=cv2.INTER_AREA)
            faces.append(cv2.imencode(".jpg", face, [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes())
        return faces

    @cached_property
    def photo_records(self) -> Path:
        """A record file of the untouched photographs, repeated to about 3,000 records."""
        repeats = max(1, round(3000 / len(self.blobs)))
        return self.packed("photos.rec", self.blobs * repeats)

    @cached_property
    def few_photo_records(self) -> Path:
        """A record file of the untouched photographs, repeated to 500 records if they are fewer."""
        repeats = -(-500 // len(self.blobs))
        return self.packed("few-photos.rec", self.blobs * repeats)

    @cached_property
    def progressive_records(self) -> Path:
        """A record file of the photographs as progressive JPEG, about 2,000 records."""
        options = [cv2.IMWRITE_JPEG_PROGRESSIVE, 1, cv2.IMWRITE_JPEG_QUALITY, 90]
        pixels = [cv2.imdecode(np.frombuffer(blob, np.uint8), 1) for blob in self.blobs[:500]]
        blobs = [cv2.imencode(".jpg", image, options)[1].tobytes() for image in pixels]
        return self.packed("progressive.rec", blobs * max(1, round(2000 / len(blobs))))

    def resized_records(self, encoding) -> Path:
        """A record file of the photographs with a short side of 256, about 2,000 records."""
        path = self.folder / f"resized-{encoding.strip('.')}.rec"
        if not path.exists():
            quality = 95 if encoding == ".jpg" else None
            options = EncodeOptions(resize=256, inter_method=3, encoding=encoding, quality=quality)
            blobs = [encode_image(blob, options) for blob in self.blobs[:500]]
            self.packed(path.name, blobs * max(1, round(2000 / len(blobs))))
        return path

    def other_blobs(self, kind) -> list[bytes]:
        """60 photographs with a short side of 256 as Pillow writes a format, quality 90."""
        options = EncodeOptions(resize=256, inter_method=3, encoding=".png")
        blobs = []
        for blob in self.blobs[:60]:
            file = BytesIO()
            with Image.open(BytesIO(encode_image(blob, options))) as image:
                image.convert("RGB").save(file, kind, quality=90)
            blobs.append(file.getvalue())
        return blobs

    @cached_property
    def face_records(self) -> Path:
        """A record file of the 10,000 faces."""
        return self.packed("faces.rec", self.face_blobs)

    def packed(self, name, blobs) -> Path:
        """A record file of these images."""
        path = self.folder / name
        with RecordWriter(path, path.with_suffix(".idx")) as writer:
            for number, blob in enumerate(blobs):
                writer.write(pack(IRHeader(0, number % 1000, number, 0), blob), number)
        return path

    @cached_property
    def kilobyte_records(self) -> Path:
        """A record file of 200,000 random records of 1,000 bytes."""
        path = self.folder / "kilobyte.rec"
        noise = np.random.default_rng(1).bytes(1_001_000)
        with RecordWriter(path, path.with_suffix(".idx")) as writer:
            for number in range(200_000):
                start = number * 997 % 1_000_000
                writer.write(noise[start : start + 1000], number)
        return path

    def index_of(self, keys: int) -> tuple[Path, Path]:
        """A sparse record file and an index of that many keys for it."""
        index = self.folder / f"{keys}.idx"
        records = index.with_suffix(".rec")
        if not index.exists():
            with index.open("w") as file:
                for start in range(0, keys, 100_000):
                    numbers = range(start, min(keys, start + 100_000))
                    file.write("".join(f"{n}\t{n * 1012}\n" for n in numbers))
            with records.open("wb") as file:
                file.truncate(keys * 1012)
        return records, index

    def folder_of(self, count: int) -> Path:
        """A folder of about that many real copies of the photographs."""
        folder = self.folder / f"copies-{count}"
        if not folder.exists():
            for repeat in range(max(1, count // len(self.photos))):
                part = folder / f"{repeat:04d}"
                part.mkdir(parents=True)
                for path in self.photos:
                    shutil.copyfile(path, part / path.name)
        return folder

    @cached_property
    def float_csv(self) -> Path:
        """100,000 lines of 50 normal numbers with six significant digits."""
        values = np.random.default_rng(6).standard_normal((100_000, 50))
        path = self.folder / "floats.csv"
        np.savetxt(path, values, fmt="%.6g", delimiter=",")
        return path

    @cached_property
    def integer_csv(self) -> Path:
        """60,000 lines of 784 integers below 256."""
        path = self.folder / "integers.csv"
        random = np.random.default_rng(7)
        with open(path, "w") as file:
            for _ in range(60_000):
                file.write(",".join(map(str, random.integers(0, 256, 784).tolist())) + "\n")
        return path

    @cached_property
    def libsvm(self) -> Path:
        """50,000 lines of 40 out of 1,000 features with six significant digits."""
        path = self.folder / "data.libsvm"
        random = np.random.default_rng(8)
        with open(path, "w") as file:
            for row in range(50_000):
                indices = np.sort(random.choice(1000, 40, replace=False)).tolist()
                values = random.standard_normal(40).tolist()
                entries = zip(indices, values, strict=True)
                file.write(f"{row % 2} " + " ".join(f"{i}:{v:.6g}" for i, v in entries) + "\n")
        return path
