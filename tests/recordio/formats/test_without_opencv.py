"""Everything without OpenCV: the same results in a child process whose imports of it fail."""

import io
import pickle
import subprocess
import sys

import numpy as np
import pytest
from image_variants import variants
from PIL import Image

from iterators.testing import picture, write_pack
from recordio import (
    IRHeader,
    encode_image,
    pack,
    unpack_img,
)
from recordio.formats import by_opencv

PHOTO = picture(45, 61)

#: Images of which some form is read by OpenCV alone.
ONLY_OPENCV = {
    "tiff 14 bits",
    "tiff 16 bits, colours",
    "tiff double",
    "pfm colours",
}

#: Put in front of a program: OpenCV is not installed.
BLOCKED = """
import sys

class NoOpenCV:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "cv2":
            raise ModuleNotFoundError(f"No module named {name!r}", name="cv2")

sys.meta_path.insert(0, NoOpenCV())
"""

#: What both do; results come back pickled.
PROGRAM = """
import os, pickle, sys
import numpy as np
import recordio
from recordio import decode_image as decode
from iterators import ImageRecordIter
from iterators.mx_image import copyMakeBorder, imdecode, imresize
from recordio.formats.by_opencv import available
from recordio.operations.pictures import channel_sums, picture_hash
from recordio.tools.im2rec import main

folder = sys.argv[1]
files = pickle.load(open(os.path.join(folder, "files"), "rb"))
found = {}

def attempt(*key, call):
    try:
        found[key] = call()
    except ValueError as error:
        found[key] = type(error).__name__

for name, data in files.items():
    record = recordio.pack((0, 1.0, 1, 0), data)
    for channels in (1, 3, 4):
        attempt(name, "decode", channels, call=lambda: decode(data, channels=channels))
    for mode in (-1, 0, 1):
        attempt(name, "unpack", mode, call=lambda: recordio.unpack_img(record, mode)[1])
    attempt(name, "values", call=lambda: recordio.decode_image(data, dtype="float32"))
    attempt(name, "info", call=lambda: tuple(recordio.image_info(data)))
    attempt(name, "hash", call=lambda: picture_hash(data))
    attempt(name, "sums", call=lambda: channel_sums(data)[1])
    attempt(name, "mx", call=lambda: imdecode(data))

image = recordio.decode_image(files["png"])
for kind in range(5):
    attempt("border", kind, call=lambda: copyMakeBorder(image, 1, 2, 3, 4, kind, 7.0))
attempt("resize", call=lambda: imresize(image, 30, 20, 3))
attempt("jpeg", call=lambda: recordio.pack_img((0, 1.0, 1, 0), image))
attempt("png", call=lambda: recordio.unpack_img(
    recordio.pack_img((0, 1.0, 1, 0), image, img_fmt=".png"))[1])
with ImageRecordIter(
    path_imgrec=os.path.join(folder, "a.rec"), data_shape=(3, 24, 24), batch_size=4, shuffle=True,
    rand_crop=True, rand_mirror=True, resize=30, seed=3, verbose=False,
) as provider:
    found["training"] = [batch.data[0] for batch in provider]
prefix = os.path.join(folder, "with" if available() else "without")
main([prefix, os.path.join(folder, "photos"), "--resize", "32"])
found["im2rec"] = open(prefix + ".rec", "rb").read()
found["opencv"] = available()
pickle.dump(found, open(prefix, "wb"))
"""


def save(image, kind, **settings):
    file = io.BytesIO()
    image.save(file, kind, **settings)
    return file.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of many formats, a pack and a folder of classes."""
    folder = tmp_path_factory.mktemp("images")
    image, exif = Image.fromarray(PHOTO), Image.Exif()
    exif[0x112] = 6
    files = variants() | {
        "jpeg": save(image, "JPEG"),
        "turned": save(image, "JPEG", exif=exif),
        "cmyk": save(image.convert("CMYK"), "JPEG"),
        "grey": save(image.convert("L"), "JPEG"),
        "png": save(image, "PNG"),
        "palette": save(image.convert("P"), "PNG"),
        "clear": save(image.convert("P"), "PNG", transparency=3),
        "alpha": save(image.convert("RGBA"), "PNG"),
        "deep": save(Image.fromarray(PHOTO[..., 0].astype(np.uint16) * 250), "PNG"),
        "turned png": save(image, "PNG", exif=exif),
        "gif": save(image.convert("P"), "GIF"),
        "bmp": save(image, "BMP"),
        "tiff": save(image, "TIFF"),
        "ppm": save(image, "PPM"),
        "webp": save(image, "WEBP"),
        "bad": b"no image",
        "half": save(image, "PNG")[:500],
    }
    (folder / "files").write_bytes(pickle.dumps(files))
    names = ("jpeg", "png", "webp", "gif", "turned", "palette", "bmp")
    write_pack(folder / "a.rec", [files[name] for name in names])
    for name in ("jpeg", "png", "bmp", "webp", "grey"):
        place = folder / "photos" / name
        place.mkdir(parents=True)
        suffix = {"grey": "jpg", "jpeg": "jpg"}.get(name, name)
        (place / f"1.{suffix}").write_bytes(files[name])
    return folder


@pytest.fixture(scope="module")
def results(folder):
    """What the program finds with OpenCV, and without."""
    for start in ("", BLOCKED):
        code = start + PROGRAM
        done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
    return [pickle.loads((folder / name).read_bytes()) for name in ("with", "without")]


def same(one, other):
    """Return True for the same results."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and one == other


@pytest.mark.libjpeg
@pytest.mark.opencv
def test_results_are_the_same_without_opencv(results):
    mine, without = results
    assert mine.pop("opencv") and not without.pop("opencv")
    assert mine.keys() == without.keys() and len(mine) > 150
    training = zip(mine.pop("training"), without.pop("training"), strict=True)
    assert all(np.array_equal(one, other) for one, other in training)
    different = {key for key, one in mine.items() if not same(one, without[key])}
    # What Pillow does not read is an error without OpenCV, and never another picture.
    assert all(without[key] in (None, "ImageDecodeError") for key in different), different
    assert {key[0] for key in different} == ONLY_OPENCV


def test_the_report_says_once_what_is_slower(tmp_path):
    code = BLOCKED + "import runpy; runpy.run_module('iterators', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("opencv-python-headless") == 1
    assert "Pillow for everything else, no OpenCV (pip install opencv" in done.stdout


def test_alpha_of_16_bits_is_kept(monkeypatch):
    image = np.arange(6 * 5 * 4).reshape(6, 5, 4).astype(np.uint16) * 500
    record = pack(IRHeader(0, 1.0, 0, 0), encode_image(image, "png"))
    monkeypatch.setattr(by_opencv, "available", lambda: False)
    assert np.array_equal(unpack_img(record)[1], image[..., [2, 1, 0, 3]])
    assert unpack_img(record, 1)[1].shape == (6, 5, 3)
