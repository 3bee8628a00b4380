"""Images, good and bad, for the tests of the tools."""

import importlib
import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(autouse=True)
def opencv():
    """Skip what follows without it: a command says to people only that it is missing."""
    importlib.import_module("cv2")


def gradient(height, width, channels=3, dtype=np.uint8):
    rows, columns = np.mgrid[:height, :width]
    planes = [columns * 7 + rows * 3 * plane for plane in range(1, channels + 1)]
    image = (np.stack(planes, -1) % 256).astype(dtype)
    if dtype == np.uint16:
        image *= 251
    return image[..., 0] if channels == 1 else image


def jpeg_bytes(height=24, width=36, channels=3, orientation=None, quality=90):
    pixels = gradient(height, width, channels)
    exif = Image.Exif()
    if orientation is not None:
        exif[0x0112] = orientation
    target = io.BytesIO()
    Image.fromarray(pixels).save(target, "JPEG", quality=quality, exif=exif)
    return target.getvalue()


#: How an upright picture is laid down to be stored with an EXIF orientation.
LAID = {
    1: None, 2: Image.FLIP_LEFT_RIGHT, 3: Image.ROTATE_180, 4: Image.FLIP_TOP_BOTTOM,
    5: Image.TRANSPOSE, 6: Image.ROTATE_90, 7: Image.TRANSVERSE, 8: Image.ROTATE_270,
}  # fmt: skip


def turned_bytes(pixels, kind, orientation):
    """A file that shows some pixels when it stands upright as its orientation says."""
    image, exif, target = pixels, Image.Exif(), io.BytesIO()
    if not isinstance(pixels, Image.Image):
        image = Image.fromarray(pixels)
    if LAID[orientation] is not None:
        image = image.transpose(LAID[orientation])
    exif[0x0112] = orientation
    options = {
        "JPEG": {"quality": 100, "subsampling": 0, "exif": exif},
        "WEBP": {"lossless": True, "exif": exif},
        "TIFF": {"tiffinfo": {274: orientation}},
        "AVIF": {"quality": 100, "subsampling": "4:4:4", "exif": exif},
    }.get(kind, {"exif": exif})
    image.save(target, kind, **options)
    return target.getvalue()


def png_bytes(height=24, width=36, channels=3, dtype=np.uint8):
    import cv2

    return cv2.imencode(".png", gradient(height, width, channels, dtype))[1].tobytes()


def decode(data, mode=None):
    import cv2

    return cv2.imdecode(
        np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED if mode is None else mode
    )


def bomb_bytes():
    """A PNG header that announces 60000 x 60000 pixels, with no data behind it."""

    def chunk(kind, body):
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


class Images:
    """The builders above, as a fixture."""

    gradient = staticmethod(gradient)
    jpeg = staticmethod(jpeg_bytes)
    turned = staticmethod(turned_bytes)
    png = staticmethod(png_bytes)
    decode = staticmethod(decode)
    bomb = staticmethod(bomb_bytes)


@pytest.fixture(scope="session")
def images():
    return Images


@pytest.fixture
def photo_folder(tmp_path):
    """A folder of class folders: cat (12 JPEG), dog (8 PNG), and no bad image."""
    root = tmp_path / "photos"
    for name, count, encode, suffix in (
        ("cat", 12, jpeg_bytes, "jpg"),
        ("dog", 8, png_bytes, "png"),
    ):
        (root / name).mkdir(parents=True)
        for number in range(count):
            data = encode(20 + number, 30 - number)
            (root / name / f"{number:02d}.{suffix}").write_bytes(data)
    return root


@pytest.fixture
def output(tmp_path):
    """An empty folder for what a tool writes."""
    folder = tmp_path / "output"
    folder.mkdir()
    return folder


@pytest.fixture
def command():
    """Run the console command ``recordio`` in this process; returns the exit code."""
    from recordio.tools.cli import main

    return lambda *words: main([str(word) for word in words])


@pytest.fixture
def contents():
    """Header and content of every record of a pack, in its order."""
    from recordio import RecordReader, unpack

    def read(prefix):
        with RecordReader(f"{prefix}.rec", f"{prefix}.idx") as reader:
            return [unpack(bytes(record)) for record in reader]

    return read
