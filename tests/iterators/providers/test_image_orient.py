"""`orient=False`: images as they are stored, which is how Pillow opens them."""

import io

import numpy as np
import pytest
from PIL import Image

from iterators import ImageRecordDataset, ImageRecordIter
from iterators.providers.image_preview import samples_of
from iterators.testing import write_pack
from recordio.errors import RecordIOError

RESIZED = {"resize": (60, 50), "data_shape": (3, 60, 50), "resample": "pillow"}


def encoded(photos, kind, orientation, mode="RGB"):
    picture = Image.fromarray(photos["chelsea"][40:232, 60:220]).convert(mode)
    exif, file = Image.Exif(), io.BytesIO()
    exif[0x0112] = orientation
    more = {"lossless": True} if kind == "WEBP" else {}
    picture.save(file, kind, exif=exif, **more)
    return file.getvalue()


def packed(path, *contents):
    return write_pack(path, contents, index=False)


def opened(content, size=None, mode="RGB"):
    """What torchvision's loader gives."""
    with Image.open(io.BytesIO(content)) as image:
        image = image.convert(mode)
    if size is not None:
        image = image.resize(size[::-1], Image.Resampling.BILINEAR)
    return np.asarray(image)


def delivered(path, **keywords):
    settings = {"orient": False, "dtype": "uint8", "layout": "NHWC", "batch_size": 1}
    with ImageRecordIter(path_imgrec=path, **settings | keywords) as images:
        return [batch.data[0][0] for batch in images]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_pixels_are_those_of_pillow(tmp_path, photos, kind, orientation):
    content = encoded(photos, kind, orientation)
    path = packed(tmp_path / "a.rec", content)
    np.testing.assert_array_equal(delivered(path, **RESIZED)[0], opened(content, (60, 50)))
    (image, _), *_ = ImageRecordDataset(path, orient=False)
    np.testing.assert_array_equal(image, opened(content))
    augmented = ImageRecordDataset(path, orient=False, layout="HWC", dtype="uint8", **RESIZED)
    np.testing.assert_array_equal(augmented[0][0], opened(content, (60, 50)))


def test_avif(tmp_path, photos):
    Image.init()
    if "AVIF" not in Image.SAVE:
        pytest.skip("this Pillow writes no AVIF")
    path = packed(tmp_path / "a.rec", encoded(photos, "AVIF", 6))
    assert ImageRecordDataset(path, orient=False)[0][0].shape == (192, 160, 3)


def test_grey(tmp_path, photos):
    content = encoded(photos, "JPEG", 6, "L")
    path = packed(tmp_path / "a.rec", content)
    image = ImageRecordDataset(path, orient=False, channels=1)[0][0]
    np.testing.assert_array_equal(image[:, :, 0], opened(content, mode="L"))


@pytest.mark.parametrize("settings", [RESIZED, {**RESIZED, "resize": -1, "rand_crop": True}])
def test_caches_keep_images_as_they_are_stored(tmp_path, photos, settings):
    path = packed(tmp_path / "a.rec", encoded(photos, "JPEG", 6), encoded(photos, "PNG", 3))
    expected = delivered(path, **settings)
    cache = tmp_path / "images.cache"
    for kept in ("ram", cache, cache):
        np.testing.assert_array_equal(delivered(path, cache=kept, **settings), expected)
    with pytest.raises(RecordIOError, match="orient"):
        delivered(path, cache=cache, orient=True, **settings)


def test_views_are_decoded_alike(tmp_path, photos):
    path = packed(tmp_path / "a.rec", encoded(photos, "JPEG", 6))
    with pytest.raises(ValueError, match="same orient"):
        delivered(path, views=[{}, {"orient": True}], **RESIZED)


def test_corners_lie_in_the_stored_image(tmp_path, photos):
    path = packed(tmp_path / "a.rec", encoded(photos, "JPEG", 6))
    with ImageRecordIter(path_imgrec=path, batch_size=1, orient=False, **RESIZED) as images:
        (sample,) = samples_of(images, 0, [0])
    assert sample.corners == [(0, 0), (160, 0), (160, 192), (0, 192)]
