"""recordio.formats.by_pillow: formats that not every OpenCV reads."""

import base64
import io

import cv2
import numpy as np
import pytest
from PIL import Image

from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from recordio import IRHeader, decode_image, pack
from recordio.errors import ImageDecodeError
from recordio.formats import by_pillow, general
from recordio.formats.table import kind_of
from recordio.formats.webp import webp

PIXELS = np.random.default_rng(4).integers(0, 256, (20, 30, 4), np.uint8)
#: How each format is written: losslessly, or as closely as it can be.
OPTIONS = {
    "webp": {"lossless": True, "exact": True},
    "avif": {"quality": 100, "subsampling": "4:4:4"},
    "jxl": {"lossless": True},
}
NEAR = {"webp": 0, "avif": 4, "jxl": 0}


@pytest.fixture(params=OPTIONS)
def kind(request):
    """Each format; skipped where nobody reads or writes it."""
    if not by_pillow.reader_of(request.param):
        pytest.skip(f"no {by_pillow.TRIED[request.param].name} here")
    return request.param


@pytest.fixture(params=["OpenCV", "Pillow"])
def reader(request, kind, monkeypatch):
    """Each of the two that can."""
    found = by_pillow.TRIED[kind]
    if request.param == "OpenCV" and by_pillow.reader_of(kind) != "OpenCV":
        pytest.skip(f"this OpenCV was built without {found.name}")
    if request.param == "Pillow":
        pytest.importorskip(found.module)
        monkeypatch.setattr(by_pillow, "reader_of", lambda kind: "Pillow")
    return request.param


def save(kind, mode="RGB", **options):
    pytest.importorskip(by_pillow.TRIED[kind].module)
    file = io.BytesIO()
    name = by_pillow.TRIED[kind].pillow
    Image.fromarray(PIXELS).convert(mode).save(file, name, **OPTIONS[kind], **options)
    assert kind_of(file.getvalue()) == kind
    return file.getvalue()


def near(kind, pixels, wanted):
    return np.abs(pixels.astype(int) - wanted).max() <= NEAR[kind]


def test_pixels(kind, reader):
    assert near(kind, decode_image(save(kind)), PIXELS[..., :3])
    assert near(kind, decode_image(save(kind, "RGBA"), channels=4), PIXELS)
    grey = cv2.cvtColor(PIXELS[..., :3].copy(), cv2.COLOR_RGB2GRAY)[..., None]
    assert near(kind, decode_image(save(kind), channels=1), grey)


def test_four_channels_must_be_there(kind, reader):
    with pytest.raises(ImageDecodeError, match="has 3 channels, not the 4"):
        decode_image(save(kind), channels=4)


def test_limits_and_damage(kind, reader):
    data = save(kind)
    assert decode_image(data, max_pixels=600).shape == (20, 30, 3)
    with pytest.raises(ImageDecodeError, match="30 x 20 pixels are more than the limit of 599"):
        decode_image(data, max_pixels=599)
    for size in (12, 16, 30, 60, len(data) // 2, len(data) - 20):
        with pytest.raises(ImageDecodeError):
            decode_image(data[:size])


def test_records_become_samples(kind):
    renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 20, 30))))
    sample = renderer.sample(pack(IRHeader(0, 1.0, 7, 0), save(kind)))[0]
    assert near(kind, sample[0].transpose(1, 2, 0), PIXELS[..., :3])


@pytest.mark.parametrize("kind", by_pillow.TRIED)
def test_who_reads_the_samples_is_found_by_trying(kind):
    sample = base64.b64decode(by_pillow.TRIED[kind].sample)
    assert kind_of(sample) == kind
    if by_pillow.reader_of(kind):
        height, width, _ = decode_image(sample).shape
        assert (width, height) == general.upright_size(sample)
        assert (height > width) == (by_pillow.uprights(kind) and kind not in ("jxl", "gif"))
    else:
        assert "no decoder" in by_pillow.describe()


@pytest.mark.parametrize("kind", by_pillow.TRIED)
def test_what_is_missing_is_named(kind, monkeypatch):
    if kind == "webp" and webp.available():
        pytest.skip("libwebp decodes it")
    monkeypatch.setattr(by_pillow, "reader_of", lambda kind: "")
    found = by_pillow.TRIED[kind]
    content = base64.b64decode(found.sample)
    with pytest.raises(ImageDecodeError) as caught:
        decode_image(content)
    assert f"a {found.name} image" in str(caught.value)
    assert f"pip install {found.install}" in str(caught.value)
    assert f"{found.name}: no decoder (pip install {found.install})" in by_pillow.describe()
    record = pack(IRHeader(0, 1.0, 7, 0), content)
    renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 1, 1))))
    with pytest.raises(ImageDecodeError, match="store another format"):
        renderer.sample(record)


def test_webp_is_listed_where_libwebp_does_not_read_it():
    assert ("WebP: " in by_pillow.describe()) == (not webp.available())


def test_webp_of_opencv():
    lossless = cv2.imencode(".webp", PIXELS[..., 2::-1], [cv2.IMWRITE_WEBP_QUALITY, 101])[1]
    assert np.array_equal(decode_image(lossless.tobytes()), PIXELS[..., :3])
