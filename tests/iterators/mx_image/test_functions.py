"""The functions and augmenters of `iterators.mx_image`: what they refuse and leave alone."""

import random

import cv2
import numpy as np
import pytest

import iterators
from iterators import mx_image
from iterators.core.example_random import drawing_for
from recordio.errors import ImageDecodeError

PHOTO = np.random.default_rng(1).integers(0, 256, (12, 15, 3), np.uint8)
PNG = cv2.imencode(".png", PHOTO[:, :, ::-1])[1]


def det(**parameters):
    return mx_image.CreateDetAugmenter((3, 8, 8), **parameters)


def test_the_names_are_those_of_iterators_as_far_as_they_mean_the_same():
    for name in mx_image.__all__:
        if name not in ("Augmenter", "DescribedSteps", "ImageAugmenter"):
            assert getattr(iterators, name) is getattr(mx_image, name)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.array])
def test_every_kind_of_bytes_is_decoded(kind):
    np.testing.assert_array_equal(mx_image.imdecode(kind(PNG)), PHOTO)


def test_imread(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG.tobytes())
    np.testing.assert_array_equal(
        mx_image.imread(str(tmp_path / "a.png"), to_rgb=False), PHOTO[..., ::-1]
    )
    assert mx_image.imread(tmp_path / "a.png", 0).shape == (12, 15, 1)
    out = np.empty_like(PHOTO)
    assert mx_image.imread(tmp_path / "a.png", out=out) is out and np.array_equal(out, PHOTO)
    (tmp_path / "b.png").write_bytes(b"no image")
    with pytest.raises(ImageDecodeError, match=r"b\.png: not an image"):
        mx_image.imread(tmp_path / "b.png")
    with pytest.raises(FileNotFoundError):
        mx_image.imread(tmp_path / "c.png")


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: mx_image.imdecode("a.png"), TypeError, "path to imread"),
        (lambda: mx_image.imdecode(b""), ImageDecodeError, "image"),
        (lambda: mx_image.imdecode(PNG.tobytes()[:60]), ImageDecodeError, "image"),
        (lambda: mx_image.imdecode(PNG, -1), ValueError, "flag=-1: expected one of 1, 0"),
        (lambda: mx_image.imdecode(PNG, out=np.empty((2, 2, 3), np.uint8)), ValueError, "out is"),
        (lambda: mx_image.imresize(PHOTO, 0, 3), ValueError, "w=0"),
        (lambda: mx_image.imresize(PHOTO, 3, 3, 7), ValueError, "interp=7"),
        (lambda: mx_image.imresize(PHOTO[0], 3, 3), ValueError, "expected .height, width"),
        (lambda: mx_image.imresize(PHOTO.astype("int64"), 3, 3), TypeError, "image of int64"),
        (lambda: mx_image.imresize(PHOTO[:0], 3, 3), ValueError, "all at least 1"),
        (lambda: mx_image.fixed_crop(PHOTO, 10, 2, 6, 3), ValueError, "is not inside an image"),
        (lambda: mx_image.fixed_crop(PHOTO, 0, 0, 0, 3), ValueError, "is not inside an image"),
        (lambda: mx_image.copyMakeBorder(PHOTO, -1, 0, 0, 0), ValueError, "top=-1"),
        (lambda: mx_image.copyMakeBorder(PHOTO, 1, 0, 0, 0, 7), ValueError, "type=7"),
        (lambda: mx_image.HueJitterAug(0.1)(PHOTO[:, :, :1]), ValueError, "expected 3 channels"),
        (lambda: mx_image.Augmenter()(PHOTO), NotImplementedError, "__call__"),
        (lambda: mx_image.DetAugmenter()(PHOTO, 1), NotImplementedError, "__call__"),
        (lambda: mx_image.DetBorrowAug(len), TypeError, "expected an Augmenter"),
        (lambda: mx_image.DetRandomSelectAug([len]), TypeError, "expected DetAugmenter"),
        (lambda: mx_image.DetRandomCropAug(area_range=(0.5, 0.1)), ValueError, "area_range="),
        (lambda: mx_image.DetRandomCropAug(aspect_ratio_range=0), ValueError, "aspect_ratio_r"),
        (lambda: mx_image.DetRandomPadAug(area_range=(0.5, 1)), ValueError, "above 1"),
        (lambda: mx_image.CreateMultiRandCropAugmenter([1, 2], [3] * 3), ValueError, "one len"),
        (lambda: det(rand_pad=1, max_attempts=[3]), ValueError, "cannot be a list"),
        (lambda: det(area_rnge=1), TypeError, "'area_range'"),
        (lambda: mx_image.HorizontalFlipAug(3), ValueError, "p=3: .* from 0 to 1"),
        (lambda: mx_image.HorizontalFlipAug("a"), ValueError, "p='a'"),
        (lambda: mx_image.RandomGrayAug(-1), ValueError, "p=-1"),
        (lambda: mx_image.DetHorizontalFlipAug(float("nan")), ValueError, "p=nan"),
        (lambda: mx_image.ResizeAug(0), ValueError, "size=0"),
        (lambda: mx_image.ResizeAug(4, 7), ValueError, "interp=7"),
        (lambda: mx_image.CenterCropAug((0, 3)), ValueError, "size=.0, 3."),
        (lambda: mx_image.RandomCropAug((3, 3), 7), ValueError, "interp=7"),
        (lambda: mx_image.ForceResizeAug(3), ValueError, "size=3: .* 2 integers"),
        (lambda: mx_image.RandomSizedCropAug((3, 3), 2, (1, 1)), ValueError, "area=2"),
        (lambda: mx_image.RandomSizedCropAug((3, 3), 1, (0, 1)), ValueError, "ratio=0"),
        (lambda: mx_image.random_size_crop(PHOTO, (3, 3), 1, (2, 1)), ValueError, "2 is above 1"),
        (lambda: mx_image.ContrastJitterAug(-0.1), ValueError, "contrast=-0.1"),
        (lambda: mx_image.ColorJitterAug(0.1, 0.1, -0.1), ValueError, "saturation=-0.1"),
        (lambda: mx_image.HueJitterAug("x"), ValueError, "hue='x'"),
        (lambda: mx_image.LightingAug(-1, [1, 2, 3], np.eye(3)), ValueError, "alphastd=-1"),
        (lambda: mx_image.LightingAug(1, [1, 2], np.eye(3)), ValueError, "expected .3,."),
        (lambda: mx_image.DetRandomCropAug(2), ValueError, "min_object_covered=2"),
        (lambda: mx_image.DetRandomCropAug(max_attempts=-1), ValueError, "max_attempts=-1"),
        (lambda: mx_image.DetRandomPadAug(max_attempts="x"), ValueError, "max_attempts='x'"),
        (
            lambda: mx_image.DetRandomSelectAug(mx_image.DetHorizontalFlipAug(1), 2),
            ValueError,
            "skip_prob=2",
        ),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_arguments_stay_as_they_are(kind):
    image = PHOTO.astype(kind)
    before = image.copy()
    image.flags.writeable = False
    everything = mx_image.CreateAugmenter(
        (3, 8, 8), rand_crop=True, rand_mirror=True, brightness=0.5, contrast=0.5, saturation=0.5,
        hue=0.5, pca_noise=0.5, rand_gray=0.5, mean=True, std=True,
    )  # fmt: skip
    for step in everything:
        made = step(image)
        assert not np.shares_memory(made, image) or np.array_equal(made, image)
    order = list(mx_image.ColorJitterAug(0.1, 0.1, 0.1).ts)
    chain = mx_image.RandomOrderAug(order)
    for _ in range(5):
        chain(image)
    assert order == chain.ts
    np.testing.assert_array_equal(image, before)


def test_uint8_images_may_change_colours_without_a_cast():
    for step in (mx_image.BrightnessJitterAug(0.3), mx_image.ColorNormalizeAug([1, 2, 3], 2)):
        random.seed(1)
        changed = step(PHOTO)
        random.seed(1)
        np.testing.assert_array_equal(changed, step(PHOTO.astype(np.float32)))
        assert changed.dtype == np.float32


def test_crops_of_what_is_thinner_than_a_pixel():
    image, place = mx_image.center_crop(PHOTO[:1], (1000, 1))
    assert image.shape == (1, 1000, 3) and place[2:] == (15, 1)
    assert mx_image.random_crop(PHOTO[:, :1], (1000, 1))[0].shape == (1, 1000, 3)


def test_min_area_is_the_older_name_of_area():
    random.seed(0)
    expected = mx_image.random_size_crop(PHOTO, (5, 5), 0.3, (1, 2))[1]
    random.seed(0)
    with pytest.warns(DeprecationWarning, match="min_area is called area"):
        assert mx_image.random_size_crop(PHOTO, (5, 5), 1, (1, 2), min_area=0.3)[1] == expected
    with pytest.warns(DeprecationWarning, match="min_area is called area"):
        assert mx_image.RandomSizedCropAug((5, 5), 1, (1, 2), min_area=0.3).area == 0.3


def test_numbers_of_an_example_do_not_depend_on_what_was_drawn_before():
    step = mx_image.LightingAug(0.5, [1, 2, 3], np.eye(3))
    found = []
    for _ in range(2):
        with drawing_for(5, 1, 2):
            found.append(step(PHOTO))
            with drawing_for(5, 3):
                step(PHOTO)
            found.append(step(PHOTO))
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[3])
    assert not np.array_equal(found[0], found[1])
    np.random.seed(4)
    outside = step(PHOTO)
    np.random.seed(4)
    np.testing.assert_array_equal(outside, step(PHOTO))


def test_descriptions_are_sequences_of_steps():
    described = mx_image.CreateAugmenter((3, 8, 8), resize=9)
    assert [type(step).__name__ for step in [*described, len][:-1]] == [
        "ResizeAug", "CenterCropAug", "CastAug",
    ]  # fmt: skip
    assert described[1].size == (8, 8) and len(described[:2]) == 2
    assert repr(described) == "DescribedSteps(data_shape=(3, 8, 8), resize=9, inter_method=2)"
    assert (
        repr(mx_image.SequentialAug([mx_image.CastAug()]))
        == "SequentialAug([CastAug(type='float32')])"
    )


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ((PHOTO, 3), TypeError, "images of uint8"),
        ((PHOTO[0].astype("float32"), 3), ValueError, "images of shape"),
        ((PHOTO.astype("float32"), [3]), TypeError, "one angle"),
        ((PHOTO.astype("float32")[None], [3, 4]), ValueError, "for 1 images"),
        ((PHOTO.astype("float32"), 3, True, True), ValueError, "give one of them"),
    ],
)
def test_what_cannot_be_rotated_is_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        mx_image.imrotate(*arguments)


def test_rotations_of_an_example_are_its_own():
    images = np.stack([PHOTO.astype("float32")] * 2)
    found = []
    for _ in range(2):
        with drawing_for(1, 2):
            found.append(mx_image.random_rotate(images, (-90, 90)))
    np.testing.assert_array_equal(*found)
    assert not np.array_equal(found[0][0], found[0][1])
    assert mx_image.imrotate(images[:0], 3).shape == (0, 12, 15, 3)


@pytest.mark.parametrize(
    "step",
    [
        mx_image.DetRandomPadAug(1, 4),
        mx_image.DetHorizontalFlipAug(1),
        mx_image.DetRandomCropAug(0.01, 1, 0.25, 0.0),
    ],
)
def test_boxes_in_whole_numbers_are_moved_to_fractions(step):
    whole = np.array([[7, 0, 0, 1, 1]])
    image = np.zeros((32, 32, 3), np.uint8)
    with drawing_for(0, 0):
        _, wanted = step(image, whole.astype(np.float64))
    with drawing_for(0, 0):
        _, found = step(image, whole)
    assert found.dtype.kind == "f" and np.array_equal(found, wanted)
