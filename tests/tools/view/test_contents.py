"""Facts about JPEG files, and content that is not an image, as text."""

import io
import json

import cv2
import numpy as np
import pytest
from PIL import Image

from recordio.formats.jpeg import jpeg
from recordio.tools.view.contents import read_content
from recordio.tools.view.jpeg_facts import jpeg_facts
from recordio.tools.view.pictures import MOST_PIXELS, Pictures, decoded


@pytest.mark.parametrize("quality", [1, 10, 25, 49, 50, 51, 75, 90, 95, 99, 100])
def test_the_quality_is_the_one_that_was_asked_for(images, quality):
    facts = jpeg_facts(images.jpeg(quality=quality))
    assert facts["Quality"] == str(quality)


def test_tables_of_other_encoders_are_said_to_be_so(images):
    target = io.BytesIO()
    tables = [list(range(1, 65)), list(range(1, 65))]
    Image.fromarray(images.gradient(32, 32)).save(target, "JPEG", qtables=tables)
    assert jpeg_facts(target.getvalue())["Quality"].endswith("with tables of its own")


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"subsampling": 0}, {"Chroma": "4:4:4", "Coding": "baseline, 1 scan"}),
        ({"subsampling": 1}, {"Chroma": "4:2:2"}),
        ({"subsampling": 2}, {"Chroma": "4:2:0"}),
        ({"progressive": True}, {"Coding": "progressive, 10 scans"}),
        ({"restart_marker_blocks": 2}, {"Restart markers": "every 2 MCUs"}),
        ({"icc_profile": b"profile"}, {"Colour profile": "yes; decoders here ignore it"}),
    ],
)
def test_what_the_markers_say(images, options, facts):
    target = io.BytesIO()
    Image.fromarray(images.gradient(64, 64)).save(target, "JPEG", **options)
    assert facts.items() <= jpeg_facts(target.getvalue()).items()


def test_damaged_markers_are_no_error(images):
    data = images.jpeg(64, 64)
    rng = np.random.default_rng(0)
    for length in range(0, len(data), 7):
        jpeg_facts(data[:length])
    for _ in range(300):
        changed = bytearray(data)
        for place in rng.integers(2, len(data), 8):
            changed[place] = rng.integers(0, 256)
        jpeg_facts(bytes(changed))


@pytest.mark.parametrize(
    ("content", "kind", "start"),
    [
        (b'{"b": [1, 2], "a": "\xc3\xa9"}', "JSON", '{\n  "b": ['),
        (b"[" * 5000, "text", "[[["),
        (b"line\nline\n", "text", "line"),
        ("\u00e9t\u00e9".encode(), "text", "\u00e9t\u00e9"),
        (b"\xff\xfe\x00", "bytes", "00000000  ff fe 00"),
        (b"a\x00b", "bytes", "00000000  61 00 62"),
        (b"x" * 100_000, "text", "xxxx"),
    ],
)
def test_content_is_shown_as_what_it_is(content, kind, start):
    reading = read_content(content, "other")
    assert reading.kind == kind and reading.text.startswith(start)
    if kind == "JSON":
        assert json.loads(reading.text) == json.loads(content)
    assert bool(reading.note) == (len(content) > 1 << 16)


def test_deep_nesting_does_not_become_a_page_of_indents():
    deep = "[" * 900 + "1," * 30_000 + "1" + "]" * 900
    reading = read_content(deep.encode(), "other")
    assert reading.kind == "JSON" and reading.text == deep and "as it is stored" in reading.note
    wide = json.dumps([{"name": "a", "box": [1, 2, 3, 4]}] * 1500)
    reading = read_content(wide.encode(), "other")
    assert reading.text == json.dumps(json.loads(wide), indent=2) and not reading.note


def test_text_is_never_cut_inside_a_character():
    content = ("x" + "\u00e9" * 50_000).encode()
    assert set(read_content(content, "other").text[1:]) == {"\u00e9"}


def test_arrays_are_shown_and_damaged_ones_are_bytes():
    target = io.BytesIO()
    np.save(target, np.arange(100_000))
    reading = read_content(target.getvalue(), "npy")
    assert reading.kind == "array of int64, shape (100000,)" and reading.note
    assert read_content(target.getvalue()[:200], "npy").kind == "bytes"


def test_pictures_are_decoded_at_a_fraction(images):
    data = images.jpeg(800, 1200)
    if jpeg.available():
        assert decoded(data, 224).shape == (200, 300, 3)
        assert decoded(images.jpeg(800, 1200, orientation=6), 224).shape == (300, 200, 3)
    content, kind = Pictures().picture(data, 224)
    image = Image.open(io.BytesIO(content))
    assert max(image.size) == 224 and kind == "image/png"
    difference = np.asarray(image, np.float32) - cv2.resize(
        cv2.imdecode(np.frombuffer(data, np.uint8), 1)[..., ::-1].astype(np.float32),
        image.size,
        interpolation=cv2.INTER_AREA,
    )
    assert np.abs(difference).mean() < 12


def test_images_that_announce_too_many_pixels_are_refused(images):
    from recordio.errors import ImageDecodeError

    assert MOST_PIXELS < 60000 * 60000
    with pytest.raises(ImageDecodeError, match="too large"):
        Pictures().picture(images.bomb(), 224)
