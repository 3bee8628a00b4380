"""Transparent images over a `background`, and images that end early, at every door."""

import io

import numpy as np
import pytest
from PIL import Image

from iterators import ImageIter, ImageRecordDataset, ImageRecordIter, Pack
from iterators.fields import Mask
from iterators.images.augment.recipe import Recipe
from iterators.testing import encode, noise, write_pack
from recordio import decode_image, decode_many
from recordio.errors import ImageDecodeError

COLOURS = [(255, 255, 255), (10, 200, 77)]


def saved(image, form, **how):
    file = io.BytesIO()
    image.save(file, form, **how)
    return file.getvalue()


def transparent():
    """Images with every kind of transparency, by name."""
    pixels = noise(30, 40, 1)
    alpha = np.random.default_rng(0).integers(0, 256, (30, 40, 1), np.uint8)
    alpha[:8], alpha[8:16] = 0, 255
    rgba = Image.fromarray(np.concatenate([pixels, alpha], 2), "RGBA")
    palette = Image.fromarray(pixels).quantize(16)
    key = tuple(pixels[3, 3].tolist())
    return {
        "RGBA": saved(rgba, "PNG"),
        "LA": saved(rgba.convert("LA"), "PNG"),
        "palette": saved(palette, "PNG", transparency=bytes([0, 100, 200] + [255] * 13)),
        "one of a palette": saved(palette, "PNG", transparency=3),
        "one colour": saved(rgba.convert("RGB"), "PNG", transparency=key),
        "one grey level": saved(rgba.convert("L"), "PNG", transparency=7),
        "GIF": saved(palette, "GIF", transparency=3),
        "WebP": saved(rgba, "WEBP"),
        "TIFF": saved(rgba, "TIFF"),
        "RGB": saved(rgba.convert("RGB"), "PNG"),
        "JPEG": saved(rgba.convert("RGB"), "JPEG"),
    }


IMAGES = transparent()


def composed(content, colour):
    """Return what Pillow makes of an image over a colour."""
    image = Image.open(io.BytesIO(content)).convert("RGBA")
    beneath = Image.new("RGBA", image.size, (*colour, 255))
    return np.asarray(Image.alpha_composite(beneath, image).convert("RGB"))


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("name", IMAGES)
def test_pixels_are_those_of_pillow(name, colour):
    wanted = composed(IMAGES[name], colour)
    found = decode_image(IMAGES[name], background=colour)
    if name == "JPEG":
        wanted = decode_image(IMAGES[name])
    np.testing.assert_array_equal(found, wanted)
    part = decode_image(IMAGES[name], background=colour, region=(3, 4, 10, 12), layout="CHW")
    np.testing.assert_array_equal(part, wanted[4:16, 3:13].transpose(2, 0, 1))


def test_one_number_is_a_grey_level():
    name = "RGBA"
    white = decode_many([IMAGES[name]] * 2, background=255)
    np.testing.assert_array_equal(white[1], composed(IMAGES[name], COLOURS[0]))
    assert decode_image(IMAGES[name], channels=1, background=255)[0, 0, 0] == 255


@pytest.fixture
def pack(tmp_path):
    return write_pack(tmp_path / "a.rec", list(IMAGES.values()))


KEYWORDS = {"data_shape": (3, 30, 40), "batch_size": len(IMAGES), "dtype": "uint8"}


@pytest.mark.parametrize(
    "more", [{}, {"cache": "ram"}, {"views": [{}, {}]}, {"resample": "pillow"}]
)
def test_providers(pack, more):
    keywords = {**KEYWORDS, "path_imgrec": str(pack), "layout": "NHWC", **more}
    with ImageRecordIter(background=COLOURS[1], **keywords) as provider:
        for _ in range(2):
            (batch,) = provider
            for found, (name, content) in zip(batch.data[0], IMAGES.items(), strict=True):
                wanted = composed(content, COLOURS[1])
                near = 0 if name != "JPEG" else 3  # decoders differ
                assert np.abs(found.astype(int) - wanted).max() <= near, name


def test_without_a_background_alpha_is_left_out(pack):
    with ImageRecordIter(path_imgrec=str(pack), layout="NHWC", **KEYWORDS) as provider:
        batch = next(iter(provider))
    np.testing.assert_array_equal(batch.data[0][0], decode_image(IMAGES["RGBA"]))
    assert (batch.data[0][0] != composed(IMAGES["RGBA"], COLOURS[0])).any()


def test_every_door_has_a_background(pack, tmp_path):
    wanted = composed(IMAGES["RGBA"], COLOURS[0])
    plain = {**KEYWORDS, "layout": "NHWC"}
    with ImageRecordIter(path_imgrec=[Pack(pack, background=255)], **plain) as provider:
        np.testing.assert_array_equal(next(iter(provider)).data[0][0], wanted)
    shape = {"data_shape": (3, 30, 40)}
    with ImageIter(1, path_imgrec=str(pack), background=255, **shape) as provider:
        np.testing.assert_array_equal(next(iter(provider)).data[0][0].transpose(1, 2, 0), wanted)
    data = ImageRecordDataset(pack, background=255, layout="HWC", dtype="uint8", **shape)
    np.testing.assert_array_equal(data[0][0], wanted)
    pytest.importorskip("torch")
    from iterators.torch import ImageLoader

    (tmp_path / "a.png").write_bytes(IMAGES["RGBA"])
    for images in (pack, [(tmp_path / "a.png", 1)]):
        batch, _ = next(iter(ImageLoader(images, 1, background=255, dtype="uint8", **shape)))
        np.testing.assert_array_equal(batch[0].numpy().transpose(1, 2, 0), wanted)


def test_values_that_are_no_colour():
    for value in (256, -1, (1, 2), "red", True):
        with pytest.raises(ValueError, match="background=.*expected three numbers from 0 to 255"):
            Recipe(data_shape=(3, 8, 8), background=value)
        with pytest.raises(ValueError, match="background=.*expected three numbers from 0 to 255"):
            decode_image(IMAGES["RGBA"], background=value)
    with pytest.raises(ValueError, match="RGBA images keep their alpha channel"):
        Recipe(data_shape=(4, 8, 8), background=0)
    with pytest.raises(ValueError, match="RGBA images keep their alpha channel"):
        decode_image(IMAGES["RGBA"], channels=4, background=0)
    with pytest.raises(ValueError, match="background are for dtype='uint8'"):
        decode_image(IMAGES["RGBA"], dtype="float32", background=0)


# -- images that end early -------------------------------------------------------------------------

WHOLE = Image.fromarray(noise(12, 16, 0)).resize((96, 80), Image.Resampling.BICUBIC)
CUT = {
    name: content[: len(content) * 6 // 10]
    for name, content in {
        "JPEG": saved(WHOLE, "JPEG"),
        "progressive": saved(WHOLE, "JPEG", progressive=True),
        "PNG": saved(WHOLE, "PNG"),
        "BMP": saved(WHOLE, "BMP"),
    }.items()
}


@pytest.mark.parametrize("name", CUT)
def test_images_that_end_early_are_as_pillow_makes_them(tmp_path, monkeypatch, name):
    pack = write_pack(tmp_path / "a.rec", [CUT[name]])
    keywords = {"path_imgrec": str(pack), "data_shape": (3, 80, 96), "batch_size": 1}
    keywords |= {"dtype": "uint8", "layout": "NHWC"}
    with ImageRecordIter(**keywords) as provider, pytest.raises(ImageDecodeError):
        next(iter(provider))
    monkeypatch.setattr("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", True)
    wanted = np.asarray(Image.open(io.BytesIO(CUT[name])).convert("RGB"))
    np.testing.assert_array_equal(decode_image(CUT[name]), wanted)
    for more in ({}, {"cache": "ram"}, {"views": [{}, {}]}, {"dtype": "float32"}):
        with ImageRecordIter(**{**keywords, **more}) as provider:
            np.testing.assert_array_equal(next(iter(provider)).data[0][0], wanted)
    if name in ("JPEG", "progressive"):
        with ImageRecordIter(strict=True, **keywords) as provider:
            with pytest.raises(ImageDecodeError, match="truncated|Pillow, .*, does not tell"):
                next(iter(provider))


def test_masks_that_end_early(tmp_path, monkeypatch):
    mask = saved(Image.fromarray(noise(80, 96, 2)[:, :, 0]), "PNG")
    cut = mask[: len(mask) // 2]
    write_pack(tmp_path / "a.rec", [encode(noise(80, 96, 3)), CUT["PNG"]])
    write_pack(tmp_path / "a.mask.rec", [cut, mask])
    monkeypatch.setattr("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", True)
    keywords = {"data_shape": (3, 80, 96), "batch_size": 2, "fields": {"mask": Mask()}}
    with ImageRecordIter(path_imgrec=str(tmp_path / "a.rec"), **keywords) as provider:
        batch = next(iter(provider))
    for found, content in zip(batch["mask"], (cut, mask), strict=True):
        np.testing.assert_array_equal(found, np.asarray(Image.open(io.BytesIO(content))))
