"""ImageIter with functions of one's own: what they get, what they may do, and that runs resume."""

import random
import traceback

import cv2
import numpy as np
import pytest

import recordio
from iterators import (
    CastAug,
    CenterCropAug,
    ColorJitterAug,
    CreateAugmenter,
    HorizontalFlipAug,
    ImageIter,
    LightingAug,
    RandomCropAug,
    RandomOrderAug,
    example_random,
)
from iterators.testing import noise, write_images, write_pack
from recordio.errors import ImageDecodeError, LabelError

COUNT = 7


def pixels(number, height=10, width=12):
    return noise(height, width, seed=number)


@pytest.fixture
def folder(tmp_path):
    images = [pixels(i) for i in range(COUNT)]
    numbers = range(10, 10 + COUNT)
    write_pack(tmp_path / "all.rec", images, ids=numbers, keys=numbers)
    write_images(tmp_path, images)
    return tmp_path


def of(folder, **arguments):
    defaults = {"batch_size": 3, "data_shape": (3, 8, 8), "verbose": False}
    defaults["path_imgrec"] = folder / "all.rec"
    return ImageIter(**(defaults | arguments))


def crop(image):
    return image[1:9, 2:10]


RANDOM = [
    RandomCropAug((8, 8)),
    HorizontalFlipAug(0.5),
    CastAug(),
    RandomOrderAug([ColorJitterAug(0.3, 0.3, 0.3), LightingAug(0.1, [1, 2, 3], np.eye(3))]),
    lambda image: image + example_random().uniform(0, 9),
]


def test_functions_get_what_is_stored_and_their_results_are_delivered(folder):
    seen = []

    def look(image):
        seen.append((image.dtype, image.shape, image.flags.writeable))
        return crop(image)

    with of(folder, aug_list=[look, lambda image: image / 2]) as provider:
        batches = list(provider)
    assert set(seen) == {(np.dtype(np.uint8), (10, 12, 3), True)}
    assert [batch.pad for batch in batches] == [0, 0, 2]
    assert np.concatenate([batch.index for batch in batches]).tolist() == [
        10, 11, 12, 13, 14, 15, 16, 10, 11,
    ]  # fmt: skip
    for batch in batches:
        for image, label in zip(batch.data[0], batch.label[0], strict=True):
            expected = crop(pixels(int(label))).transpose(2, 0, 1) / 2
            np.testing.assert_array_equal(image, expected.astype(np.float32))


@pytest.mark.parametrize("layout", ["NHWC", "CHWN"])
def test_layouts(folder, layout):
    with of(folder, aug_list=[crop]) as plain, of(folder, aug_list=[crop], layout=layout) as other:
        axes = ["NCHW".index(axis) for axis in layout]
        for a, b in zip(plain, other, strict=True):
            assert b.data[0].flags.c_contiguous
            np.testing.assert_array_equal(a.data[0].transpose(axes), b.data[0])


def test_the_steps_of_create_augmenter_give_the_pixels_of_the_image_stage(folder):
    described = CreateAugmenter((3, 6, 5), resize=8, mean=True, std=[2, 3, 4], inter_method=1)
    steps = list(described)
    assert len(described) == len(steps) == 4 and described[-1] is steps[-1]
    with of(folder, data_shape=(3, 6, 5), aug_list=described) as fast:
        with of(folder, data_shape=(3, 6, 5), aug_list=steps) as slow:
            for a, b in zip(fast, slow, strict=True):
                np.testing.assert_allclose(a.data[0], b.data[0], atol=1e-4)
            assert "python_seconds" in slow.stats() and slow.stats()["batches"] >= 3
    assert described == CreateAugmenter(
        (3, 6, 5), resize=8, mean=True, std=[2, 3, 4], inter_method=1
    )
    assert hash(described) == hash(
        CreateAugmenter((3, 6, 5), 8, mean=True, std=[2, 3, 4], inter_method=1)
    )


@pytest.mark.parametrize("handle", ["pad", "discard", "roll_over"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_batch_can_be_resumed_and_threads_do_not_matter(folder, handle, shuffle):
    arguments = {"aug_list": RANDOM, "last_batch_handle": handle, "shuffle": shuffle, "seed": 5}
    with of(folder, **arguments) as whole:
        states, batches = [whole.state_dict()], []
        for _ in range(3):
            for batch in whole:
                batches.append(batch.data[0])
                states.append(whole.state_dict())
    assert len({array.tobytes() for array in batches}) == len(batches)
    for done, state in enumerate(states):
        random.seed(done)  # has no part in it
        with of(folder, preprocess_threads=1 + done % 3, **arguments) as resumed:
            resumed.load_state_dict(state)
            rest = []
            while len(rest) < len(batches) - done:
                rest += [batch.data[0] for batch in resumed]
            for expected, found in zip(batches[done:], rest, strict=False):
                np.testing.assert_array_equal(expected, found)


def test_seeds_and_repeated_records_draw_their_own_numbers(folder):
    def first(**arguments):
        with of(folder, aug_list=RANDOM, **arguments) as provider:
            return next(provider).data[0]

    assert np.array_equal(first(seed=1), first(seed=1))
    assert not np.array_equal(first(seed=1), first(seed=2))
    weights = np.zeros(COUNT)
    weights[4] = 1
    again = first(weights=weights)
    assert len({image.tobytes() for image in again}) == 3


def test_a_state_of_other_functions_is_refused(folder):
    with of(folder, aug_list=[CenterCropAug((8, 8)), np.negative]) as provider:
        state = provider.state_dict()
    with of(folder, aug_list=[CenterCropAug((8, 8), 1), np.negative]) as other:
        with pytest.raises(ValueError, match="saved with aug_list="):
            other.load_state_dict(state)
    with of(folder) as other, pytest.raises(ValueError, match="saved with"):
        other.load_state_dict(state)


def test_what_a_function_raises_comes_out_with_the_image_named(folder):
    def third(image):
        if np.array_equal(image, pixels(4)):
            raise ZeroDivisionError("by three")
        return crop(image)

    with of(folder, aug_list=[third], on_error="skip") as provider:
        next(provider)
        with pytest.raises(ZeroDivisionError, match="by three") as caught:
            next(provider)
        text = "".join(traceback.format_exception(caught.value))
        if hasattr(caught.value, "add_note"):
            assert "image 14" in text and "all.rec" in text
        assert next(provider).label[0].tolist() == [6, 0, 1]  # the run goes on


@pytest.mark.parametrize("result", [np.zeros((8, 9, 3)), np.zeros((3, 8, 8)), 0])
def test_an_image_of_another_size_is_an_error(folder, result):
    with of(folder, aug_list=[lambda image: result]) as provider:
        with pytest.raises(ValueError, match=r"data_shape needs .* \(8, 8, 3\); image 10"):
            next(provider)


def test_bad_records_are_named_or_replaced(folder):
    with recordio.RecordWriter(folder / "bad.rec") as writer:
        for i in range(4):
            data = cv2.imencode(".png", pixels(i)[:, :, ::-1])[1].tobytes()
            content = b"no image" if i == 1 else data
            writer.write(recordio.pack(recordio.IRHeader(0, float(i), 10 + i, 0), content))
        writer.write(recordio.pack(recordio.IRHeader(0, [1, 2], 14, 0), data))
    arguments = {"path_imgrec": folder / "bad.rec", "aug_list": [crop], "batch_size": 5}
    with of(folder, **arguments) as provider:
        with pytest.raises(
            ImageDecodeError, match=r"bad\.rec, offset \d+, record 1, id 11: not an"
        ):
            next(provider)
    with of(folder, **arguments, on_error="skip") as provider:
        assert next(provider).label[0].tolist() == [0, 2, 2, 3, 0]
        assert [number for number, _ in provider.skipped] == [11, 14]
        assert "label_width is 1" in provider.skipped[1][1]
    (folder / "broken.png").write_bytes(b"no image")
    with of(
        folder, path_imgrec=None, imglist=[[1, folder / "broken.png"]], aug_list=[crop]
    ) as provider:
        with pytest.raises(ImageDecodeError, match=r"broken\.png, record 0, id 0"):
            next(provider)


def test_lists_of_labels(folder):
    (folder / "new.lst").write_text("".join(f"{10 + i}\t{-i}\tx\n" for i in range(5)))
    with of(folder, path_imglist=folder / "new.lst", aug_list=[crop]) as provider:
        assert next(provider).label[0].tolist() == [0, -1, -2]
    with of(folder, path_imglist=folder / "new.lst", aug_list=[crop], batch_size=7) as provider:
        with pytest.raises(LabelError, match="no line for this id"):
            next(provider)


def test_other_numbers_of_channels_device_and_forms(folder):
    import torch

    with of(folder, data_shape=(1, 8, 8), aug_list=[crop], device="cpu") as provider:
        batch = next(provider)
        assert isinstance(batch.data[0], torch.Tensor) and tuple(batch.data[0].shape) == (
            3,
            1,
            8,
            8,
        )
    with of(folder, aug_list=[crop]) as provider:
        (first, *_) = provider.iterator("sequential", batch_size=3, num_batches=1)
        assert first[0].shape == (3, 3, 8, 8)


def test_a_dropped_provider_ends_its_threads(folder, new_threads):
    provider = of(folder, aug_list=[crop])
    next(provider)
    assert new_threads()
    del provider
    assert not new_threads()


def test_arrays_of_a_batch_are_plain_ones_without_methods_of_mxnet(folder):
    with of(folder, aug_list=[crop]) as provider:
        (array,) = next(provider).data
    assert type(array) is np.ndarray
    with pytest.raises(AttributeError, match=r"'numpy\.ndarray' object has no attribute 'asnumpy'"):
        array.asnumpy()
