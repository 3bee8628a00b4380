"""What becomes of one record, and any batch of any epoch, compared with the loop."""

import io

import cv2
import numpy as np
import pytest
from PIL import Image

from faces.draws import drawn_warps
from iterators import ImageDetRecordIter, ImageIter, ImageRecordIter
from iterators.images.augment.geometry import drawn_steps
from iterators.images.augment.recipe import Recipe
from iterators.providers.image_preview import (
    corners_of,
    record_at,
    records_of,
    samples_of,
    seek,
)
from iterators.testing import box_label, write_pack
from recordio.errors import ImageDecodeError, RecordIOError

COUNT = 23


@pytest.fixture
def path(tmp_path, photos):
    images = [cv2.resize(photos["chelsea"], (60 + number, 50)) for number in range(COUNT)]
    numbers = range(100, 100 + COUNT)
    return write_pack(tmp_path / "a.rec", images, ids=numbers, keys=numbers, kind=".jpg")


RECIPES = [
    {"rand_crop": True, "rand_mirror": True},
    {"random_resized_crop": True, "min_random_area": 0.1, "max_aspect_ratio": 0.3},
    {"resize": 40, "max_rotate_angle": 30, "max_shear_ratio": 0.1, "pca_noise": 0.1},
    {"rotation": 40, "affine": {"degrees": 9, "scale": (0.6, 1.2)}, "rand_mirror": True},
    {"resize": 30, "pad": 5, "rand_crop": True, "brightness": 0.4, "inter_method": 10},
    {"max_crop_size": 45, "min_crop_size": 25, "rand_mirror": True, "dtype": "uint8"},
]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_record_is_what_the_loop_delivers(path, recipe, layout):
    settings = {"data_shape": (3, 24, 24), "batch_size": 4, "shuffle": True, "seed": 9}
    settings |= {"layout": layout, **recipe}
    with ImageRecordIter(path_imgrec=path, **settings) as provider:
        samples = samples_of(provider, 5, range(4))
        for sample in samples:  # the provider itself was not moved
            seen = [
                (batch.data[0][slot], batch.label[0][slot])
                for batch in provider
                for slot in np.flatnonzero(batch.index[: batch.count] == 105)
            ]
            assert len(seen) == 1
            assert sample.data.tobytes() == seen[0][0].tobytes()
            assert sample.label.tolist() == [seen[0][1]]


@pytest.mark.parametrize("kind", [ImageIter, ImageDetRecordIter])
def test_other_providers_have_no_corners(tmp_path, path, kind, photos):
    if kind is ImageDetRecordIter:
        label = box_label((1, 0.2, 0.2, 0.9, 0.9))
        path = write_pack(tmp_path / "boxes.rec", [photos["coffee"]], [label], kind=".jpg")
    with kind(path_imgrec=path, data_shape=(3, 24, 24), batch_size=1) as provider:
        (sample,) = samples_of(provider, 0, [3])
        assert sample.corners is None
        assert np.array_equal(sample.data, provider.next().data[0][0])


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("round_batch", [True, False])
def test_any_batch_of_any_epoch_can_be_asked_for(path, parts, shuffle, round_batch):
    settings = {
        "path_imgrec": path, "data_shape": (3, 8, 8), "batch_size": 4, "shuffle": shuffle,
        "num_parts": parts, "part_index": parts - 1, "rand_crop": True, "rand_mirror": True,
        "round_batch": round_batch,
    }  # fmt: skip
    with ImageRecordIter(**settings) as provider:
        epochs = [list(provider) for _ in range(3)]
    with ImageRecordIter(**settings, prefetch_buffer=1) as provider:
        for epoch in (2, 0, 1):
            for number in range(len(provider))[::-1]:
                seek(provider, epoch, number)
                batch, expected = provider.next(), epochs[epoch][number]
                assert np.array_equal(batch.data[0], expected.data[0]) and batch.pad == expected.pad
                offsets = records_of(provider, epoch, number)
                ids = [100 + record_at(provider, offset) for offset in offsets]
                assert ids == batch.index[: len(ids)].tolist()
        with pytest.raises(IndexError, match="there is no batch"):
            seek(provider, 0, len(provider))


def test_offsets_that_no_image_has(path):
    with ImageRecordIter(path_imgrec=path, data_shape=(3, 8, 8), batch_size=4) as provider:
        assert record_at(provider, 0) == 0
        for offset in (4, 1 << 40):
            with pytest.raises(RecordIOError, match="not among the images"):
                record_at(provider, offset)


def test_a_damaged_record_is_an_error(tmp_path, photos):
    path = write_pack(tmp_path / "a.rec", [b"\xff\xd8\xff no image"])
    with ImageRecordIter(path_imgrec=path, data_shape=(3, 8, 8), batch_size=1) as provider:
        with pytest.raises(ImageDecodeError):
            samples_of(provider, 0, [0])


# -- where the pixels come from ---------------------------------------------------------------


def dot_at(corners, width, height, u, v):
    """The place in the original at fractions of the sample."""
    top = [(1 - u) * a + u * b for a, b in zip(corners[0], corners[1], strict=True)]
    bottom = [(1 - u) * a + u * b for a, b in zip(corners[3], corners[2], strict=True)]
    return [(1 - v) * a + v * b for a, b in zip(top, bottom, strict=True)]


@pytest.mark.parametrize("recipe", RECIPES[:5])
@pytest.mark.parametrize("orientation", [None, 6])
def test_corners_say_where_the_pixels_of_a_sample_come_from(tmp_path, recipe, orientation):
    """An image whose colours are its coordinates."""
    width, height = 160, 120
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    pixels = np.stack([columns * 1.5, rows * 2, rows * 0], -1).astype(np.uint8)
    exif = Image.Exif()
    stored = Image.fromarray(pixels)
    if orientation:
        exif[0x0112] = orientation
        stored = stored.transpose(Image.Transpose.ROTATE_90)  # upright again by a turn clockwise
    target = io.BytesIO()
    stored.save(target, "JPEG", quality=100, subsampling=0, exif=exif)
    path = write_pack(tmp_path / "a.rec", [target.getvalue()])
    recipe = {name: v for name, v in recipe.items() if name not in ("brightness", "pca_noise")}
    recipe = {**recipe, "inter_method": 1}
    settings = {"data_shape": (3, 24, 36), "batch_size": 1, "layout": "NHWC", "dtype": "uint8"}
    with ImageRecordIter(path_imgrec=path, **settings, **recipe) as provider:
        samples = samples_of(provider, 0, range(12))
    looked = 0
    for sample in samples:
        data = sample.data[:, ::-1] if sample.mirror else sample.data
        for u in (0.1, 0.35, 0.6, 0.9):
            for v in (0.15, 0.5, 0.85):
                x, y = dot_at(sample.corners, width, height, u, v)
                if not (6 < x < width - 6 and 6 < y < height - 6):
                    continue  # filled
                looked += 1
                red, green, _ = data[int(v * 24), int(u * 36)].astype(float)
                step = max(
                    abs(sample.corners[1][0] - sample.corners[0][0]) / 36,
                    abs(sample.corners[3][1] - sample.corners[0][1]) / 24,
                    1,
                )
                assert abs(red / 1.5 - x) < 3 * step and abs(green / 2 - y) < 3 * step
    assert looked > 50


def test_corners_of_a_perspective():
    """The corners of the image are where they were drawn."""
    recipe = Recipe(data_shape=(3, 60, 90), perspective=0.5, perspective_p=1)
    ends = drawn_warps(recipe, 0, 0, 0, 90, 60)["perspective"]
    (step,), _ = drawn_steps(recipe, 0, 0, 0, 90, 60)
    corners = [(0, 0), (89, 0), (89, 59), (0, 59)]
    for (x, y), corner in zip(ends, corners, strict=True):
        moved = {**step, "left": x, "top": y, "out_width": 0, "out_height": 0}
        np.testing.assert_allclose(corners_of([moved])[0], corner, atol=1e-3)


def test_corners_of_a_plain_crop():
    steps, _ = drawn_steps(Recipe(data_shape=(3, 20, 20), resize=30), 0, 0, 0, 90, 60)
    assert corners_of(steps) == [(24, 10), (64, 10), (64, 50), (24, 50)]
