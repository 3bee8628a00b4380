"""ImageIter: MXNet's Python iterator on the image stage, from records, lists of files and lists."""

import json
import os
import threading

import cv2
import numpy as np
import pytest

from iterators import (
    Conv2DSpace,
    CreateAugmenter,
    ImageIter,
    ImageRecordIter,
    IndexSpace,
    SpecError,
)
from iterators.spaces import CompositeSpace
from iterators.testing import encode, noise, write_images, write_list, write_pack
from recordio.errors import ErrorBudgetError, ImageDecodeError, ImageFileError, LabelError

torch = pytest.importorskip("torch")


def of(**arguments):
    defaults = {"batch_size": 2, "data_shape": (3, 8, 8), "verbose": False}
    return ImageIter(**(defaults | arguments))


NAMES = ["a.png", "b c.png", "sub/d.png", "sub/é.png", "f.png"]


def pixels(number, height=10, width=12):
    return noise(height, width, seed=number)


@pytest.fixture
def folder(tmp_path):
    """Five PNG images, a list file with ids 10, 20..., and the same images in a record file."""
    ids = range(10, 60, 10)
    contents = [encode(pixels(i)) for i in range(5)]
    write_pack(tmp_path / "all.rec", contents, ids=ids, keys=ids)
    write_images(tmp_path, contents, NAMES)
    write_list(tmp_path / "all.lst", NAMES, float, ids=ids)
    return tmp_path


def items(folder, labels=range(5)):
    names = [[label, name] for label, name in zip(labels, NAMES, strict=True)]
    return {"imglist": names, "path_root": folder}


def labels_of(provider):
    return [(batch.label[0].tolist(), batch.pad) for batch in provider]


# -- where images come from ------------------------------------------------------------------------


def test_the_three_sources_give_the_same_batches(folder):
    record = of(path_imgrec=folder / "all.rec", rand_mirror=True, rand_crop=True)
    listed = of(path_imglist=folder / "all.lst", path_root=folder, rand_mirror=True, rand_crop=True)
    memory = of(**items(folder), rand_mirror=True, rand_crop=True)
    with record, listed, memory:
        for a, b, c in zip(record, listed, memory, strict=True):
            np.testing.assert_array_equal(a.data[0], b.data[0])
            np.testing.assert_array_equal(a.data[0], c.data[0])
            assert a.label[0].tolist() == b.label[0].tolist() == c.label[0].tolist()
            assert a.index.tolist() == b.index.tolist() and a.pad == b.pad == c.pad
            assert c.index.tolist() == (a.index // 10 - 1).tolist()


def test_a_list_replaces_the_labels_of_records(folder):
    (folder / "new.lst").write_text("".join(f"{10 * i}\t{-i}\tx\n" for i in range(1, 6)))
    with of(path_imgrec=folder / "all.rec", path_imglist=folder / "new.lst") as provider:
        assert labels_of(provider)[0] == ([-1, -2], 0)


def test_pixels_are_those_of_the_files(folder):
    with of(data_shape=(3, 10, 12), **items(folder)) as provider:
        for batch in provider:
            for image, label in zip(batch.data[0], batch.label[0], strict=True):
                np.testing.assert_array_equal(image, pixels(int(label)).transpose(2, 0, 1))


def test_absolute_paths_and_the_working_directory(folder, monkeypatch):
    with of(imglist=[[1, folder / "a.png"]], path_root=folder / "sub") as provider:
        assert labels_of(provider) == [([1, 1], 1)]
    monkeypatch.chdir(folder)
    with of(imglist=[[2, "a.png"]]) as provider:
        monkeypatch.undo()
        assert provider.num_samples == 1


@pytest.mark.parametrize(
    "listed",
    [[[1, 2, "a.png"], [3, 4, "f.png"]], [[[1, 2], "a.png"], (np.array([3, 4.0]), "f.png")]],
)
def test_label_vectors(folder, listed):
    with of(imglist=listed, path_root=folder, label_width=2) as provider:
        assert provider.provide_label[0].shape == (2, 2)
        assert labels_of(provider) == [([[1, 2], [3, 4]], 0)]
    (folder / "two.lst").write_text("7\t1\t2\ta.png\n\n5\t3\t4\tf.png\n")
    with of(path_imglist=folder / "two.lst", path_root=folder, label_width=2) as provider:
        (batch,) = provider
        assert batch.label[0].tolist() == [[1, 2], [3, 4]] and batch.index.tolist() == [7, 5]


def test_labels_that_are_no_numbers_are_no_integers(folder):
    with (
        of(dtype="int64", **items(folder, [float("nan"), 1, 2, 3, 4])) as provider,
        pytest.raises(ValueError, match="there is a label nan"),
    ):
        next(provider)


@pytest.mark.parametrize(
    "listed, text",
    [
        ([["a.png"]], "record 0: imglist: expected"),
        ([[1, "a.png"], [None, "a.png"]], "record 1: imglist: expected"),
        ([[1, "a.png"], ["cat", "a.png"]], "record 1: imglist: expected"),
        ([[1, 2, "a.png"]], "has 2 labels, label_width is 1"),
        ([[1, 7]], "expected"),
        ([[1, b"a.png"]], "expected"),
        ([3], "expected"),
        ([[2**24 + 1, "a.png"]], "16777217 is too large"),
    ],
)
def test_a_bad_item_is_named(folder, listed, text):
    with pytest.raises(LabelError, match=text):
        of(imglist=listed, path_root=folder)


@pytest.mark.parametrize("line", ["1\ta.png", "x\t1\ta.png", "1\t1\t2\ta.png", "-1\t1\ta.png"])
def test_a_bad_line_is_named(folder, line):
    (folder / "bad.lst").write_text(f"0\t1\ta.png\n{line}\n")
    with pytest.raises(LabelError, match=r"bad\.lst, line 2"):
        of(path_imglist=folder / "bad.lst", path_root=folder)


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({}, ValueError, "give path_imgrec, path_imglist or imglist"),
        ({"imglist": []}, ValueError, "imglist names no image"),
        ({"imglist": [[1, "a"]], "path_imglist": "b"}, ValueError, "not both"),
        ({"imglist": [[1, "a"]], "path_imgidx": "b"}, ValueError, "path_imgidx needs path_imgrec"),
        ({"imglist": [[1, "a"]], "path_imgrec": "b"}, ValueError, "imglist has no effect"),
        ({"path_root": "a", "path_imgrec": "b"}, ValueError, "path_root has no effect"),
        ({"imglist": [[1, "a\0b"]]}, ValueError, "zero character"),
        ({"imglist": [[1, "a"]], "aug_list": [3]}, TypeError, "aug_list has 3"),
        ({"imglist": [[1, "a"]], "aug_list": [len], "cache": "ram"}, ValueError, "cache is for"),
        ({"imglist": [[1, "a"]], "aug_list": [len], "hue": 1}, ValueError, "drop hue"),
        ({"imglist": [[1, "a"]], "aug_list": 3}, TypeError, "aug_list=3"),
        ({"imglist": [[1, "a"]], "rand_miror": 1}, TypeError, "did you mean 'rand_mirror'"),
        ({"imglist": [[1, "a"]], "shufle": 1}, TypeError, "did you mean 'shuffle'"),
        ({"imglist": [[1, "a"]], "max_rotate_angle": 1}, TypeError, "no parameter"),
        ({"imglist": [[1, "a"]], "last_batch_handle": "keep"}, ValueError, "'roll_over'"),
        ({"imglist": [[1, "a"]], "dtype": "uint8"}, ValueError, "dtype='uint8'"),
        ({"imglist": [[1, "a"]], "label_width": 0}, ValueError, "label_width=0"),
        ({"imglist": [[1, "a"]], "path_root": 3}, TypeError, "path_root=3: expected a path"),
        ({"path_imglist": 3}, TypeError, "path_imglist=3: expected a path"),
        ({"imglist": 3}, TypeError, "imglist=3: expected a sequence"),
        ({"imglist": "photos"}, TypeError, "imglist='photos': expected a sequence"),
        ({"imglist": [[1, "a"]], "data_shape": (8, 8)}, ValueError, "data_shape"),
        ({"imglist": [[1, "a"]], "data_shape": (2, 8, 8)}, ValueError, "data_shape"),
        ({"imglist": [[1, "a"]], "num_parts": 2, "part_index": 2}, ValueError, "part_index=2"),
        ({"imglist": [[1, "a"]], "hue": -1}, ValueError, "hue=-1"),
        (
            {"imglist": [[1, "a"]], "aug_list": CreateAugmenter((3, 8, 8)), "hue": 1},
            ValueError,
            "drop hue",
        ),
        (
            {"imglist": [[1, "a"]], "aug_list": CreateAugmenter((3, 8, 9))},
            ValueError,
            "differs from that of aug_list",
        ),
        (
            {
                "imglist": [[1, "a"], [1, "b"]],
                "last_batch_handle": "roll_over",
                "num_parts": 2,
                "shuffle": True,
            },
            ValueError,
            "roll_over",
        ),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused(arguments, error, text, new_threads):
    with pytest.raises(error, match=text):
        of(**arguments)
    assert not new_threads()


def test_positional_arguments_are_those_of_mxnet(folder):
    with ImageIter(
        2, (3, 8, 8), 1, None, folder / "all.lst", folder, None, False, 1, 2, None, None,
        "images", "classes", "int64", "discard",
    ) as provider:  # fmt: skip
        assert provider.provide_data == [("images", (2, 3, 8, 8))]
        assert provider.provide_label == [("classes", (2,))]
        assert provider.provide_label[0].dtype == np.int64
        (batch,) = provider
        assert batch.label[0].tolist() == [2, 3] and batch.label[0].dtype == np.int64


# -- batches and epochs ----------------------------------------------------------------------------

# What MXNet 1.9.1 gives for five images in batches of three.
EPOCHS = {
    "pad": [[([0, 1, 2], 0), ([3, 4, 0], 1)]] * 4,
    "discard": [[([0, 1, 2], 0)]] * 4,
    "roll_over": [
        [([0, 1, 2], 0)],
        [([3, 4, 0], 1), ([1, 2, 3], 0)],
        [([4, 0, 1], 2), ([2, 3, 4], 0)],
        [([0, 1, 2], 0)],
    ],
}


@pytest.mark.parametrize("handle", EPOCHS)
def test_the_last_batch_is_that_of_mxnet(folder, handle):
    with of(batch_size=3, last_batch_handle=handle, **items(folder)) as provider:
        for expected in EPOCHS[handle]:
            assert len(provider) == len(expected)
            assert labels_of(provider) == expected
            provider.reset()


def test_rolled_over_images_count(folder):
    with of(batch_size=3, last_batch_handle="roll_over", **items(folder)) as provider:
        batches = [batch for _ in range(2) for batch in provider]
        assert [batch.count_samples() for batch in batches] == [3, 3, 3]
        assert provider.stats()["samples"] == 9
        provider.hard_reset()
        assert labels_of(provider) == [([0, 1, 2], 0)]


@pytest.mark.parametrize("handle", EPOCHS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_batch_can_be_resumed(folder, handle, shuffle):
    arguments = {
        "batch_size": 3, "last_batch_handle": handle, "shuffle": shuffle, "rand_crop": True,
        "brightness": 0.4, "rand_mirror": True,
    } | items(folder)  # fmt: skip
    with of(**arguments) as whole:
        states, batches = [whole.state_dict()], []
        for _ in range(3):
            for batch in whole:
                batches.append(batch.data[0])
                states.append(whole.state_dict())
    for done, state in enumerate(states):
        json.dumps(state)
        with of(**arguments, preprocess_threads=1) as resumed:
            resumed.load_state_dict(state)
            rest = []
            while len(rest) < len(batches) - done:
                rest += [batch.data[0] for batch in resumed]
            for expected, found in zip(batches[done:], rest, strict=False):
                np.testing.assert_array_equal(expected, found)


def test_a_state_of_other_images_or_rules_is_refused(folder):
    with of(**items(folder)) as provider:
        state = provider.state_dict()
    for name, changed in {
        "file": items(folder, labels=[0, 1, 2, 3, 5]),
        "last_batch_handle": items(folder) | {"last_batch_handle": "discard"},
        "hue": items(folder) | {"hue": 0.1},
    }.items():
        with of(**changed) as other, pytest.raises(ValueError, match=f"saved with {name}="):
            other.load_state_dict(state)


@pytest.mark.parametrize("source", ["record", "files"])
def test_parts_without_shuffling_are_equal_blocks(folder, source):
    where = {"path_imgrec": folder / "all.rec"} if source == "record" else items(folder)
    found = []
    for part in range(2):
        with of(num_parts=2, part_index=part, **where) as provider:
            assert provider.num_samples == 2
            found.append(labels_of(provider))
    assert found == [[([0, 1], 0)], [([2, 3], 0)]]


def test_shuffled_parts_leave_no_image_out(folder):
    found = []
    for part in range(2):
        with of(batch_size=1, num_parts=2, part_index=part, shuffle=True, **items(folder)) as one:
            found += [label for labels, _ in labels_of(one) for label in labels]
    assert sorted(found) == [0, 1, 2, 3, 4]


def test_parts_roll_over_where_their_blocks_are_their_own(folder):
    arguments = {"batch_size": 3, "num_parts": 2, "part_index": 1, "last_batch_handle": "roll_over"}
    with of(**arguments, **items(folder)) as provider:
        assert labels_of(provider) == []
        assert labels_of(provider) == [([2, 3, 2], 1)]


def test_weights_of_files(folder):
    weights = {0: 1, 1: 0, 2: 0, 3: 0, 4: 1}
    with of(batch_size=5, weights=weights, **items(folder)) as provider:
        found = [label for _ in range(4) for labels, _ in labels_of(provider) for label in labels]
        assert set(found) == {0, 4}


# -- pixels ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judged(golden):
    with np.load(golden / "mx_image.npz") as file:
        return dict(file)


def cases(golden_file="mx_image.npz"):
    with np.load(f"{os.path.dirname(__file__)}/../../golden/{golden_file}") as file:
        return json.loads(str(file["cases"]))["cases"]


@pytest.mark.parametrize("name", cases())
def test_pixels_are_those_of_mxnet(golden, judged, name):
    """Images larger and smaller than the result, on one side and on both."""
    arguments = cases()[name]
    with of(path_imgrec=golden / "mx_image.rec", data_shape=(3, 16, 12), **arguments) as provider:
        data = np.concatenate([batch.data[0] for batch in provider])
    expected = judged[name].astype(np.float32)
    difference = np.abs(data - expected)
    if arguments.get("inter_method", 2) in (2, 9):  # OpenCV's cubic changed between its versions
        assert difference.max() <= 1 and (difference > 0).mean() < 0.06
    elif arguments.get("mean"):
        assert difference.max() <= 1e-5
    else:
        assert difference.max() == 0


def test_larger_areas_are_read_from_jpeg_in_full_or_scaled(tmp_path, photos):
    cv2.imwrite(str(tmp_path / "p.jpg"), photos["coffee"])
    for scaled in (True, False):
        with of(
            imglist=[[0, tmp_path / "p.jpg"]], resize=32, data_shape=(3, 32, 32), inter_method=3,
            scaled_decode=scaled, batch_size=1,
        ) as provider:  # fmt: skip
            (batch,) = provider
            assert batch.data[0].std() > 20


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "CHWN"])
@pytest.mark.parametrize("augmentation", [{}, {"brightness": 0.3, "hue": 0.2, "mean": True}])
def test_layouts_hold_the_same_numbers(folder, layout, augmentation):
    plain = of(rand_mirror=True, **augmentation, **items(folder))
    other = of(rand_mirror=True, layout=layout, **augmentation, **items(folder))
    with plain, other:
        for a, b in zip(plain, other, strict=True):
            axes = ["NCHW".index(axis) for axis in layout]
            np.testing.assert_array_equal(a.data[0].transpose(axes), b.data[0])


def test_mirroring_and_colours_do_not_meet(folder):
    """A mirrored image with changed colours is the mirror image of the other."""
    found = {}
    for mirror in (False, True):
        with of(contrast=0.5, rand_mirror=mirror, batch_size=5, **items(folder)) as provider:
            (batch,) = provider
            found[mirror] = batch.data[0]
    flips = [not np.array_equal(*pair) for pair in zip(found[False], found[True], strict=True)]
    assert any(flips)
    for flipped, straight, turned in zip(flips, found[False], found[True], strict=True):
        np.testing.assert_array_equal(straight, turned[..., ::-1] if flipped else turned)


@pytest.mark.parametrize("channels", [1, 4])
def test_grey_and_alpha_without_colours(folder, channels):
    rgba = np.dstack([pixels(0, 8, 8), np.full((8, 8), 9, np.uint8)])
    cv2.imwrite(str(folder / "alpha.png"), rgba)
    with of(
        data_shape=(channels, 8, 8), imglist=[[0, folder / "alpha.png"]], batch_size=1
    ) as provider:
        (batch,) = provider
        assert batch.data[0].shape == (1, channels, 8, 8)
    with pytest.raises(ValueError, match="hue=0.1 needs RGB"):
        of(data_shape=(channels, 8, 8), imglist=[[0, "alpha.png"]], hue=0.1)


def test_torch_and_data_specs(folder):
    with of(device="cpu", brightness=0.1, **items(folder)) as provider:
        assert all(isinstance(batch.data[0], torch.Tensor) for batch in provider)
    space = Conv2DSpace((8, 8), num_channels=3, axes=("b", 0, 1, "c"), dtype="float16")
    specs = CompositeSpace((space, IndexSpace(dim=1, max_labels=5))), ("features", "targets")
    for handle in ("pad", "roll_over"):
        arguments = {"batch_size": 3, "last_batch_handle": handle, "data_specs": specs}
        with of(**arguments, **items(folder)) as provider:
            next(iter(provider))
            provider.reset()
            for batch in provider:
                images, targets = batch
                assert images.dtype == np.float16 and images.shape == (3, 8, 8, 3)
                assert targets.shape == (3, 1)
            assert provider.stats()["samples"] in (8, 9)
    with pytest.raises(ValueError, match="drop dtype"):
        of(data_specs=specs, dtype="int32", **items(folder))
    with pytest.raises(SpecError):
        of(data_specs=(space, "faces"), **items(folder))


def test_labels_that_do_not_fit_their_type_are_refused(folder):
    with of(dtype="int32", **items(folder, [0, 1, 1.5, 2, 3])) as provider:
        assert next(provider).label[0].dtype == np.int32
        with pytest.raises(ValueError, match=r"dtype='int32', but there is a label 1\.5"):
            next(provider)


# -- files that cannot be used ---------------------------------------------------------------------


@pytest.fixture
def damaged(folder):
    """`folder` with a file missing, one that is no image, one empty, and one no file at all."""
    (folder / "b c.png").unlink()
    (folder / "sub/d.png").write_bytes(b"text")
    (folder / "f.png").unlink()
    os.mkfifo(folder / "f.png")
    return folder


def test_a_file_that_cannot_be_used_is_named(damaged):
    with of(batch_size=1, **items(damaged)) as provider:
        next(provider)
        with pytest.raises(ImageFileError, match=r"b c\.png, record 1, id 1: .*No such file"):
            next(provider)
        with pytest.raises(ImageDecodeError, match=r"d\.png, record 2, id 2: "):
            next(provider)
        next(provider)
        with pytest.raises(OSError, match="no regular file"):
            next(provider)
        with pytest.raises(StopIteration):
            next(provider)


def test_files_that_cannot_be_used_are_replaced(damaged):
    with of(on_error="skip", preprocess_threads=3, **items(damaged)) as provider:
        assert labels_of(provider) == [([0, 3], 0), ([3, 3], 0), ([0, 0], 1)]
        assert [number for number, _ in provider.skipped] == [1, 2, 4]
    with (
        of(on_error="skip", error_budget=1, **items(damaged)) as provider,
        pytest.raises(ErrorBudgetError),
    ):
        list(provider)


def test_a_folder_and_an_enormous_file_are_no_images(folder):
    with open(folder / "huge.png", "wb") as file:
        file.truncate(1 << 40)
    listed = [[0, "sub"], [1, "huge.png"]]
    with of(batch_size=1, imglist=listed, path_root=folder) as provider:
        with pytest.raises(ImageFileError, match=r"no regular file|Is a directory"):
            next(provider)
        with pytest.raises(ImageFileError, match="too large"):
            next(provider)


def test_files_that_change_while_they_are_read_crash_nothing(folder):
    stop = threading.Event()

    def shorten():
        whole = (folder / "a.png").read_bytes()
        while not stop.is_set():
            os.truncate(folder / "a.png", 20)
            (folder / "a.png").write_bytes(whole)

    thread = threading.Thread(target=shorten)
    thread.start()
    try:
        with of(on_error="skip", batch_size=5, **items(folder)) as provider:
            for _ in range(20):
                for batch in provider:
                    assert batch.data[0].shape == (5, 3, 8, 8)
    finally:
        stop.set()
        thread.join()


def test_only_the_files_being_rendered_are_open(folder):
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with of(**items(folder)) as provider:
        for _ in range(3):
            list(provider)
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after <= before


def test_the_record_iterator_has_not_changed_its_crops(folder):
    """Too small images: grown first there, cropped first here."""
    arguments = {"batch_size": 5, "data_shape": (3, 16, 8), "verbose": False}
    with (
        ImageRecordIter(path_imgrec=folder / "all.rec", inter_method=2, **arguments) as there,
        ImageIter(path_imgrec=folder / "all.rec", **arguments) as here,
    ):
        assert not np.array_equal(next(there).data[0], next(here).data[0])


def test_a_batch_larger_than_the_list_is_refused_where_it_would_be_discarded(folder):
    for handle, batches in (("pad", 1), ("roll_over", 0)):
        with ImageIter(9, (3, 8, 8), **items(folder), last_batch_handle=handle) as provider:
            assert len(list(provider)) == batches
    with pytest.raises(ValueError, match="batch_size=9: there are only"):
        ImageIter(9, (3, 8, 8), **items(folder), last_batch_handle="discard")
