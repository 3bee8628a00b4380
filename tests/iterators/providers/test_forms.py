"""ImageRecordIter asked for batches by data_specs: the exact form, the same pixels, one write."""

import numpy as np
import pytest

import recordio
from iterators import (
    CompositeSpace,
    Conv2DSpace,
    DataBatch,
    ImageRecordIter,
    IndexSpace,
    NullSpace,
    VectorSequenceSpace,
    VectorSpace,
)
from iterators.testing import write_pack

torch = pytest.importorskip("torch")

LABELS = [3, 0, 9, 4, 4]


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """Five PNG images of noise with labels below 10."""
    return write_pack(tmp_path_factory.mktemp("forms") / "noise.rec", 5, LABELS, size=(8, 9))


def provider(pack, data_specs=None, **arguments):
    arguments = {"batch_size": 2, "data_shape": (3, 8, 9), "verbose": False, **arguments}
    return ImageRecordIter(path_imgrec=pack, data_specs=data_specs, **arguments)


def image(axes=("c", 0, 1, "b"), dtype="float32"):
    return Conv2DSpace((8, 9), num_channels=3, axes=axes, dtype=dtype)


def both(first, second):
    return CompositeSpace((first, second)), ("features", "targets")


@pytest.mark.parametrize(
    "axes", [("c", 0, 1, "b"), ("b", 0, 1, "c"), ("b", "c", 0, 1), (1, "b", "c", 0)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "float16", "int32", None])
def test_images_and_one_hot_targets(pack, axes, dtype):
    space, sources = both(image(axes, dtype), VectorSpace(dim=10))
    with provider(pack) as plain, provider(pack, (space, sources)) as asked:
        for expected, batch in zip(plain, asked, strict=True):
            images, targets = batch
            space.np_validate(batch)
            assert images.dtype == (dtype or np.float32) and targets.dtype == np.float64
            moved = Conv2DSpace((8, 9), num_channels=3, axes=("b", "c", 0, 1), dtype=dtype)
            np.testing.assert_array_equal(
                moved.undo_np_format_as(images, image(axes, dtype)), expected.data[0]
            )
            np.testing.assert_array_equal(targets, np.eye(10)[expected.label[0].astype(int)])
            assert images.flags.c_contiguous, "the stage wrote this very memory"
            assert isinstance(batch, DataBatch) and batch.pad == expected.pad
            assert batch["features"] is batch.data[0] is images is batch[0]
            assert batch["targets"] is batch.label[0] is targets
            np.testing.assert_array_equal(batch.index, expected.index)
            assert asked.provide_data[0] == ("features", images.shape)
            assert asked.provide_data[0].dtype == images.dtype
            assert asked.provide_label[0] == ("targets", targets.shape)
            assert batch.count_samples() == expected.count_samples()


def test_vectors_are_the_memory_that_the_stage_wrote(pack):
    with provider(pack, (VectorSpace(216, dtype="float32"), "features")) as asked:
        rows = next(iter(asked)).array
        assert rows.shape == (2, 216) and asked.provide_label == []
    with provider(pack, layout="NHWC") as plain:
        np.testing.assert_array_equal(next(iter(plain)).data[0].reshape(2, -1), rows)


def test_nested_repeated_and_null_parts(pack):
    first, rows = image(), VectorSpace(216, dtype="float32")
    space = CompositeSpace(
        [CompositeSpace([first, NullSpace(), rows]), first, IndexSpace(10, 1), VectorSpace(1)]
    )
    sources = (("features", "", "data"), "features", "targets", "softmax_label")
    with provider(pack, (space, sources)) as asked:
        batch = next(iter(asked))
    (images, nothing, flat), again, labels, raw = batch
    space.np_validate(tuple(batch))
    assert nothing is None and again is images
    assert labels.tolist() == raw.tolist() == [[3], [0]] and labels.dtype == np.int64
    assert len(batch.data) == 2 and len(batch.label) == 2


@pytest.mark.parametrize(("normalise_on", "dtype"), [("host", "float32"), ("device", "float64")])
def test_tensors(pack, normalise_on, dtype):
    space, sources = both(image(dtype=dtype), VectorSpace(dim=10, dtype="float32"))
    arguments = {"mean_r": 100, "std_r": 50, "device": "cpu", "normalise_on": normalise_on}
    with (
        provider(pack, (space, sources), **arguments) as asked,
        provider(pack, **arguments) as plain,
    ):
        batch = next(iter(asked))
        space.validate(batch)
        expected = next(iter(plain)).data[0].permute(1, 2, 3, 0).to(getattr(torch, dtype))
        torch.testing.assert_close(batch[0], expected, rtol=0, atol=1e-4)
        assert batch[1].argmax(1).tolist() == LABELS[:2]


def test_several_labels(tmp_path):
    path = tmp_path / "wide.rec"
    with recordio.RecordWriter(path) as writer:
        for i in range(3):
            header = recordio.IRHeader(0, [i, 2], i, 0)
            image_ = np.zeros((8, 9, 3), np.uint8)
            writer.write(recordio.pack_img(header, image_, img_fmt=".png"))
    for target, expected in (
        (VectorSpace(2), [[0, 2], [1, 2]]),
        (IndexSpace(3, 2), [[0, 2], [1, 2]]),
    ):
        with provider(path, both(image(), target), label_width=2) as asked:
            assert next(iter(asked))[1].tolist() == expected
    with pytest.raises(ValueError, match=r"shape \(2, 2\).*does not fit into VectorSpace\(dim=10"):
        provider(path, both(image(), VectorSpace(10)), label_width=2)


@pytest.mark.parametrize(
    ("data_specs", "word"),
    [
        ((image(), "pixels"), "'pixels'"),
        ((Conv2DSpace((8, 8), num_channels=3), "features"), "does not fit"),
        ((Conv2DSpace((8, 9), num_channels=1), "features"), "does not fit"),
        ((VectorSpace(215), "features"), "does not fit"),
        ((IndexSpace(10, 216), "features"), "does not fit"),
        (both(image(), image()), "'targets'.*does not fit"),
        (both(image(), IndexSpace(10, 2)), "'targets'.*does not fit"),
        (both(image(), VectorSequenceSpace(10)), "one sequence"),
        ((CompositeSpace([image()]), "features"), "'features'"),
    ],
)
def test_requests_that_cannot_be_met(pack, data_specs, word):
    with pytest.raises(ValueError, match=word):
        provider(pack, data_specs)


def test_other_arguments_that_do_not_go_together(pack):
    with pytest.raises(ValueError, match="layout"):
        provider(pack, (image(), "features"), layout="NHWC")
    with pytest.raises(ValueError, match="'targets'"):
        provider(pack, both(image(), VectorSpace(10)), label_name=None)


def test_labels_that_do_not_fit_are_named(pack):
    with provider(pack, both(image(), VectorSpace(3))) as asked:
        with pytest.raises(ValueError, match="expected labels from 0 to 2"):
            next(iter(asked))


def test_a_state_can_be_resumed(pack):
    specs = both(image(), VectorSpace(10))
    with provider(pack, specs) as first, provider(pack, specs) as second:
        batches = list(first)
        run = iter(second)
        next(run)
        state = second.state_dict()
    with provider(pack, specs) as third:
        third.load_state_dict(state)
        for expected, batch in zip(batches[1:], third, strict=True):
            np.testing.assert_array_equal(batch[0], expected[0])
