"""ImageDetIter: where labels come from, their shape, what is refused, and that runs resume."""

import json
import logging

import numpy as np
import pytest

from iterators import (
    CreateDetAugmenter,
    DetAugmenter,
    DetBorrowAug,
    ForceResizeAug,
    ImageDetIter,
    example_random,
)
from iterators.testing import noise, write_images, write_list, write_pack
from recordio.errors import ImageDecodeError, LabelError

LABELS = [
    [2, 5, 0, 0.1, 0.1, 0.5, 0.9],
    [2, 5, 1, 0.2, 0.2, 0.6, 0.6, 2, 0.5, 0.5, 1.0, 1.0],
    [3, 5, 99, 3, 0.0, 0.0, 1.0, 1.0],
]
RANDOM = {"rand_crop": 0.8, "rand_pad": 0.5, "rand_mirror": True, "brightness": 0.3}


def pixels(number):
    return noise(20, 24, seed=number)


@pytest.fixture
def folder(tmp_path):
    images, ids = [pixels(i) for i in range(3)], [10, 11, 12]
    write_pack(tmp_path / "all.rec", images, LABELS, ids=ids, index=False)
    files = write_images(tmp_path, images)
    write_list(tmp_path / "all.lst", [file.name for file in files], LABELS, ids=ids)
    return tmp_path


def of(folder=None, **arguments):
    defaults = {"batch_size": 2, "data_shape": (3, 8, 8), "verbose": False}
    if folder is not None:
        defaults["path_imgrec"] = folder / "all.rec"
    return ImageDetIter(**(defaults | arguments))


def test_the_three_sources_give_the_same_batches(folder):
    images = [[label, f"{i}.png"] for i, label in enumerate(LABELS)]
    lists = {"path_root": folder, "shuffle": True} | RANDOM
    with (
        of(folder, shuffle=True, **RANDOM) as record,
        of(path_imglist=folder / "all.lst", **lists) as listed,
        of(imglist=images, **lists) as memory,
    ):
        for _ in range(2):
            for a, b, c in zip(record, listed, memory, strict=True):
                assert a.index.tolist() == b.index.tolist() == (c.index + 10).tolist()
                for other in (b, c):
                    np.testing.assert_array_equal(a.data[0], other.data[0])
                    np.testing.assert_array_equal(a.label[0], other.label[0])


def test_a_list_replaces_the_labels_of_records(folder):
    (folder / "new.lst").write_text(
        "".join(f"{10 + i}\t2\t5\t{i}\t0\t0\t1\t1\tx\n" for i in range(3))
    )
    with of(folder, path_imglist=folder / "new.lst") as provider:
        assert provider.label_shape == (1, 5)
        assert next(provider).label[0][:, 0, 0].tolist() == [0, 1]


def test_positional_arguments_are_those_of_mxnet(folder):
    with ImageDetIter(
        1, (3, 8, 8), None, folder / "all.lst", folder, None, False, 1, 2, None, None, "images",
        "boxes", "discard", inter_method=1,
    ) as provider:  # fmt: skip
        assert provider.provide_data == [("images", (1, 3, 8, 8))]
        assert provider.provide_label == [("boxes", (1, 2, 5))]
        assert provider.num_samples == 1 and len(provider) == 1


@pytest.mark.parametrize("handle", ["pad", "roll_over"])
def test_every_batch_can_be_resumed(folder, handle):
    arguments = RANDOM | {"last_batch_handle": handle, "shuffle": True, "seed": 3}
    with of(folder, **arguments) as whole:
        states, batches = [whole.state_dict()], []
        for _ in range(4):
            for batch in whole:
                batches.append((batch.data[0], batch.label[0]))
                states.append(whole.state_dict())
    assert len({data.tobytes() for data, _ in batches}) == len(batches)
    for done, state in enumerate(states):
        with of(folder, preprocess_threads=1, **arguments) as resumed:
            resumed.load_state_dict(json.loads(json.dumps(state)))
            rest = []
            while len(rest) < len(batches) - done:
                rest += [(batch.data[0], batch.label[0]) for batch in resumed]
            for expected, found in zip(batches[done:], rest, strict=False):
                np.testing.assert_array_equal(expected[0], found[0])
                np.testing.assert_array_equal(expected[1], found[1])


@pytest.mark.parametrize(
    "label, text",
    [
        (3.0, "need a header of at least 2"),
        ([2, 5, 0, 0, 0, 1], "6 values cannot have a header of 2"),
        ([2, 5, float("nan"), 0, 0, 1, 1], "class is not a finite number"),
        ([2, 5, 0, 0, 0, float("inf"), 1], "coordinate is not a finite number"),
        ([2, 5, 0, 10, 10, 30, 30], "in fractions of the image, not in pixels"),
        ([2, 5, 0, 0, 0, 1, 1, 1], "cannot have a header of 2 and objects of 5"),
        ([1, 5, 0, 0, 0, 1, 1], "header of 1"),
        ([2, 4, 0, 0, 1, 1, 0, 0, 1, 1], "objects of 4"),
        ([float("nan"), 5, 0, 0, 0, 1, 1], "header of nan"),
        ([2, 5, 0, 0.5, 0, 0.5, 1], "no object of the label has an area"),
        ([2, 6, 0, 0, 0, 1, 1, 7], "objects of 6 values, those before it have 5"),
    ],
)
def test_a_bad_label_is_named_or_its_image_replaced(folder, label, text):
    images = [[LABELS[0], "0.png"], [label, "1.png"], [LABELS[2], "2.png"]]
    with pytest.raises(LabelError, match=f"imglist, id 1: .*{text}"):
        of(imglist=images, path_root=folder)
    with of(imglist=images, path_root=folder, on_error="skip") as provider:
        assert next(provider).index.tolist() == [0, 2]
        assert [number for number, _ in provider.skipped] == [1]


def test_records_without_labels_of_this_kind_are_named(folder):
    write_pack(folder / "plain.rec", 2)
    with pytest.raises(LabelError, match=r"plain\.rec, offset 0, record 0: labels of shape \(1,\)"):
        of(path_imgrec=folder / "plain.rec")
    with pytest.raises(LabelError, match=r"plain\.rec: no image has a label that can be used"):
        of(path_imgrec=folder / "plain.rec", on_error="skip")


def test_what_means_nothing_is_refused(folder):
    (folder / "twice.lst").write_text("7\t2\t5\t0\t0\t0\t1\t1\ta\n" * 2)
    for arguments, error, text in (
        ({"path_imglist": folder / "twice.lst"}, LabelError, r"twice\.lst, id 7: .* comes twice"),
        ({"path_imgrec": folder / "all.rec", "label_width": 7}, LabelError, "has 12 values, "),
        ({"path_imgrec": folder / "all.rec", "rand_cropp": 1}, TypeError, "mean 'rand_crop'"),
        ({"path_imgrec": folder / "all.rec", "rand_crop": 2}, ValueError, "rand_crop=2"),
        ({"path_imgrec": folder / "all.rec", "aug_list": 3}, TypeError, "aug_list=3"),
        ({"path_imgrec": folder / "all.rec", "aug_list": [], "hue": 1}, ValueError, "drop hue"),
        ({"path_imgrec": folder / "all.rec", "cache": "ram"}, ValueError, "cache is for"),
        ({"path_imgrec": folder / "all.rec", "weights": {0: 1}}, ValueError, "weights by label"),
        ({}, ValueError, "there are no images"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            of(**arguments)


def test_functions_of_ones_own(folder):
    class Shift(DetAugmenter):
        def __call__(self, src, label):
            label = label.copy()
            label[:, 0] += 10 + int(example_random().random())
            return src, label

    steps = [*CreateDetAugmenter((3, 8, 8)), Shift(), lambda src, label: (src / 2, label)]
    with of(folder, aug_list=steps) as provider, of(folder) as plain:
        for a, b in zip(provider, plain, strict=True):
            np.testing.assert_allclose(a.data[0] * 2, b.data[0])
            kept = b.label[0][..., 0] >= 0
            np.testing.assert_array_equal(a.label[0][kept][:, 0], b.label[0][kept][:, 0] + 10)
            assert (a.label[0][~kept] == -1).all()


@pytest.mark.parametrize(
    "objects", [np.zeros((0, 5)), np.zeros((3, 5)), np.zeros((1, 6)), np.zeros(5), 7]
)
def test_objects_that_have_no_room_are_an_error(folder, objects):
    steps = [DetBorrowAug(ForceResizeAug((8, 8))), lambda src, label: (src, objects)]
    with of(folder, aug_list=steps) as provider:
        with pytest.raises(LabelError, match=r"all\.rec, .* id 10: objects of shape"):
            next(provider)


def test_reshape(folder):
    with (
        of(folder, inter_method=1) as provider,
        of(folder, inter_method=1, data_shape=(3, 6, 10)) as other,
    ):
        first = next(provider)
        provider.reshape(label_shape=(4, 5))
        second = next(provider)
        assert first.label[0].shape == (2, 2, 5) and second.label[0].shape == (2, 4, 5)
        assert second.index[0] == 12 and (second.label[0][:, 2:] == -1).all()
        assert provider.provide_label == [("label", (2, 4, 5))] and provider.label_shape == (4, 5)
        provider.reshape((3, 6, 10))
        provider.reset()
        assert provider.provide_data == [("data", (2, 3, 6, 10))]
        for a, b in zip(provider, other, strict=True):
            np.testing.assert_array_equal(a.data[0], b.data[0])
        other.load_state_dict(provider.state_dict())
        for shape in ((1, 5), (4, 6), (4,)):
            with pytest.raises(ValueError, match="label_shape="):
                provider.reshape(label_shape=shape)
        with pytest.raises(ValueError, match="data_shape="):
            provider.reshape((8, 8))
        assert provider.label_shape == (4, 5)


def test_sync_label_shape(folder, caplog):
    few = [[LABELS[0], folder / "0.png"]]
    with of(folder) as train, of(imglist=few) as valid:
        assert valid.label_shape == (1, 5)
        with caplog.at_level(logging.INFO, "iterators"):
            assert train.sync_label_shape(valid, verbose=True) is valid
        assert "2 objects of 5 values" in caplog.text
        assert next(valid).label[0].shape == (2, 2, 5)
        assert valid.sync_label_shape(train) is train
        assert valid.data_shape == valid.provide_data[0].shape[1:]
        wide = [[[2, 6, 0, 0, 0, 1, 1, 7], folder / "0.png"]]
        with of(imglist=wide) as other, pytest.raises(ValueError, match="label_shape=|objects of"):
            train.sync_label_shape(other)
        with pytest.raises(TypeError, match="expected an ImageDetIter"):
            train.sync_label_shape(3)


def test_draw_next(folder):
    arguments = {"data_shape": (3, 20, 24), "mean": True, "std": True}
    with of(folder, **arguments) as provider:
        drawn = list(provider.draw_next(mean=True, std=True, color=(255, 0, 0), thickness=1))
    assert len(drawn) == 3 and all(image.dtype == np.uint8 for image in drawn)
    for number, image in enumerate(drawn):
        same = (image == pixels(number)[:, :, ::-1]).all(axis=2)
        red = (image == (0, 0, 255)).all(axis=2)
        assert red.any() and (same | red).all()
    with of(folder, **arguments) as provider:
        named = next(provider.draw_next(mean=True, std=True, id2labels={0: "cat"}))
    assert not np.array_equal(named, drawn[0])


def test_bad_images_and_labels_without_a_name(folder):
    (folder / "bad.png").write_bytes(b"no image")
    images = [[LABELS[0], "bad.png"], [LABELS[1], "1.png"]]
    with of(imglist=images, path_root=folder) as provider:
        with pytest.raises(ImageDecodeError, match=r"bad\.png, record 0, id 0"):
            next(provider)
    with of(folder, label_name=None) as provider:
        assert next(provider).label == [] and not provider.provide_label


def test_types_of_labels_and_forms(folder):
    with of(folder, dtype="float64", layout="NHWC", device="cpu") as provider:
        batch = next(provider)
        assert str(batch.label[0].dtype) == "torch.float64"
        assert tuple(batch.data[0].shape) == (2, 8, 8, 3)
        provider.reshape(label_shape=(3, 5))
        assert tuple(next(provider).label[0].shape) == (2, 3, 5)
