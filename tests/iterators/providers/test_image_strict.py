"""JPEG images whose data is damaged, but can be decoded: counted, and refused with `strict`."""

import numpy as np
import pytest

from faces.codecs import decode_jpeg, last_jpeg
from iterators import ImageDetRecordIter, ImageIter, ImageRecordIter
from iterators.testing import encode, noise, write_pack
from recordio.errors import ImageDecodeError
from recordio.formats.jpeg import jpeg

pytestmark = pytest.mark.skipif(
    not jpeg.available(), reason="OpenCV, which decodes here, keeps its warnings to itself"
)

DAMAGED = 2
BOX = [2, 5, 0, 0.1, 0.1, 0.5, 0.5]


def damaged(data):
    """The image with 400 other bytes in its middle, which the decoder gets over with warnings."""
    middle = len(data) // 2
    for seed in range(1000):
        noise = np.random.default_rng(seed).integers(0, 255, 400, np.uint8).tobytes()
        found = data[:middle] + noise + data[middle + 400 :]
        try:
            decode_jpeg(found)
        except ImageDecodeError:
            continue
        if last_jpeg()[1]:
            return found
    raise AssertionError("no damage that the decoder gets over")


def packed(folder, labels):
    images = [encode(noise(64, 64, seed=i), ".jpg") for i in range(5)]
    images[DAMAGED] = damaged(images[DAMAGED])
    return write_pack(folder / "images.rec", images, labels)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return packed(tmp_path_factory.mktemp("strict"), float)


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    return packed(tmp_path_factory.mktemp("strict"), lambda i: BOX)


KINDS = [(ImageRecordIter, "pack"), (ImageIter, "pack"), (ImageDetRecordIter, "boxes")]


@pytest.fixture(params=KINDS, ids=[kind.__name__ for kind, _ in KINDS])
def provider_of(request):
    kind, name = request.param
    path = request.getfixturevalue(name)
    return lambda **more: kind(path_imgrec=path, data_shape=(3, 64, 64), batch_size=1, **more)


def test_damage_that_the_decoder_gets_over_is_delivered_and_counted(provider_of):
    with provider_of() as provider:
        for number, _ in enumerate(provider):  # those that are made ahead do not count
            assert provider.stats()["decoder_warnings"] == (number >= DAMAGED)
        assert number == 4
        assert provider.stats()["images"] >= 5
    with provider_of(num_parts=5, part_index=0) as provider:
        list(provider)
        assert provider.stats()["decoder_warnings"] == 0


def test_strict_refuses_it_and_nothing_else(provider_of):
    with provider_of(strict=True) as provider:
        for _ in range(DAMAGED):
            next(provider)
        with pytest.raises(ImageDecodeError, match=r"is damaged.*strict=True") as caught:
            next(provider)
        assert (caught.value.record, caught.value.record_id) == (DAMAGED, DAMAGED)
        for _ in range(DAMAGED + 1, 5):
            next(provider)


def test_strict_skips_it_when_asked_to(provider_of):
    with provider_of(strict=True, on_error="skip") as provider:
        ids = [int(batch.index[0]) for batch in provider]
        assert ids == [0, 1, 3, 3, 4]
        assert [record for record, _ in provider.skipped] == [DAMAGED]


def test_a_cache_makes_no_difference(provider_of):
    with provider_of(strict=True, on_error="skip", cache="ram", cache_size=1 << 20) as provider:
        for _ in range(2):
            assert [int(batch.index[0]) for batch in provider] == [0, 1, 3, 3, 4]


def test_what_is_not_decoded_is_not_looked_at(pack):
    """The damage is in the lower half."""
    options = {"data_shape": (3, 8, 8), "crop_x_start": 0, "crop_y_start": 0, "batch_size": 5}
    with ImageRecordIter(path_imgrec=pack, strict=True, **options) as provider:
        (batch,) = provider
        assert batch.index.tolist() == [0, 1, 2, 3, 4]


def test_a_mean_image_is_not_made_of_damaged_images(pack, tmp_path):
    options = {"data_shape": (3, 64, 64), "batch_size": 1, "mean_img": tmp_path / "mean.bin"}
    with pytest.raises(ImageDecodeError, match="strict=True"):
        ImageRecordIter(path_imgrec=pack, strict=True, **options)
    assert not (tmp_path / "mean.bin").exists()
