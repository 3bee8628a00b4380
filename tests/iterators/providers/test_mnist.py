"""`MNISTIter`: the batches of MXNet, parts, padding, and files that are refused."""

import gzip
import json

import numpy as np
import pytest

from iterators import MNISTIter, MNISTProvider
from recordio import write_idx_array
from recordio.errors import ArrayFileError, RecordIOError


@pytest.fixture(scope="module")
def cases(golden):
    return json.loads((golden / "text_cases.json").read_text()), np.load(
        golden / "text_batches.npz"
    )


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (23, 4, 3), np.uint8)
    labels = rng.integers(0, 10, 23).astype(np.uint8)
    write_idx_array(tmp_path / "images", images)
    write_idx_array(tmp_path / "labels", labels)
    return tmp_path / "images", tmp_path / "labels", images, labels


def provider_of(files, **arguments):
    defaults = {
        "image": files[0],
        "label": files[1],
        "batch_size": 5,
        "shuffle": False,
        "silent": True,
    }
    return MNISTIter(**(defaults | arguments))


@pytest.mark.parametrize("name", ["mnist", "mnist_flat"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_batches_are_those_of_mxnet(golden, cases, name, suffix):
    described, expected = cases
    case = described[name]
    arguments = {**case["args"]}
    for file in ("image", "label"):
        arguments[file] = golden / (arguments[file] + suffix)
    with MNISTIter(**arguments) as provider:
        assert [[d[0], list(d[1])] for d in provider.provide_data] == case["provide_data"]
        assert [[d[0], list(d[1])] for d in provider.provide_label] == case["provide_label"]
        for epoch in range(2):
            count = 0
            for count, batch in enumerate(provider, 1):
                key = f"{name}/{epoch}/{count - 1}"
                assert np.array_equal(batch.data[0], expected[f"{key}/data"])
                assert np.array_equal(batch.label[0], expected[f"{key}/label"])
                assert batch.data[0].dtype == batch.label[0].dtype == np.float32
                assert batch.pad == expected[f"{key}/pad"]
                assert batch.index.tolist() == list(range(5 * count - 5, 5 * count))
            assert f"{name}/{epoch}/{count - 1}/data" in expected
            assert f"{name}/{epoch}/{count}/data" not in expected


def test_every_byte_is_divided_by_256(tmp_path):
    write_idx_array(tmp_path / "images", np.arange(256, dtype=np.uint8).reshape(1, 16, 16))
    write_idx_array(tmp_path / "labels", np.zeros(1, np.uint8))
    provider = MNISTIter(image=tmp_path / "images", label=tmp_path / "labels", batch_size=1)
    (batch,) = provider
    assert batch.data[0].ravel().tolist() == [i / 256 for i in range(256)]


def test_the_tail_is_dropped_or_padded(files):
    with provider_of(files) as provider:
        assert (len(provider), provider.num_samples) == (4, 23)
        assert [batch.pad for batch in provider] == [0] * 4
    with provider_of(files, last_batch="pad") as provider:
        *_, last = provider
        assert (last.pad, last.count, len(provider)) == (2, 3, 5)
        assert not last.data[0][3:].any()
        assert np.array_equal(last.data[0][:3, 0], files[2][20:].astype(np.float32) / 256)


@pytest.mark.parametrize("more", [{"batch_size": 24}, {"batch_size": 9, "num_parts": 3}])
def test_a_batch_larger_than_the_set_or_part_is_refused_unless_it_is_padded(files, more):
    with pytest.raises(ValueError, match=r"batch_size=.* every epoch would be empty"):
        provider_of(files, **more)
    with provider_of(files, **more, last_batch="pad") as provider:
        assert len(list(provider)) == 1


def test_a_part_without_images_has_no_batches(files):
    assert list(provider_of(files, num_parts=40, part_index=0)) == []


@pytest.mark.parametrize("shape", [(1, 4, 3), (4, 3), (12,), "(1, 4, 3)"])
@pytest.mark.parametrize("flat", [False, True])
def test_data_shape_is_compared_with_the_file(files, shape, flat):
    want = (5, 12) if flat else (5, 1, 4, 3)
    with provider_of(files, data_shape=shape, flat=flat) as provider:
        assert provider.provide_data == [("data", want)]


def test_another_data_shape_is_refused(files):
    with pytest.raises(ArrayFileError, match=r"\(1, 4, 3\), not data_shape=\(1, 28, 28\)"):
        provider_of(files, data_shape=(1, 28, 28))


def test_shuffled_epochs_differ_and_labels_follow(files):
    with provider_of(files, shuffle=True, batch_size=23) as provider:
        orders = []
        for _ in range(2):
            (batch,) = provider
            rows = batch.index.astype(int)
            assert sorted(rows) == list(range(23))
            assert np.array_equal(batch.label[0], files[3][rows])
            assert np.array_equal(batch.data[0][:, 0] * 256, files[2][rows])
            orders.append(rows.tolist())
    assert orders[0] != orders[1]


def test_parts_follow_mxnets_rule(files):
    for parts in (1, 2, 3, 7, 30):
        rows = []
        for part in range(parts):
            with provider_of(files, num_parts=parts, part_index=part, batch_size=1) as provider:
                mine = [int(batch.index[0]) for batch in provider]
                begin, end = int(23 / parts * part), int(23 / parts * (part + 1))
                if part + 1 < parts:
                    assert mine == list(range(begin, end))
                rows += mine
        assert rows == list(range(23))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "CHWN", "HWNC"])
def test_any_order_of_axes(files, layout):
    with provider_of(files, layout=layout, shuffle=True) as provider:
        assert provider.provide_data[0].layout == layout
        assert provider.batch_size == 5
        for batch in provider:
            want = files[2][batch.index.astype(int)][:, None] / np.float32(256)
            want = want.transpose(["NCHW".index(axis) for axis in layout])
            assert np.array_equal(batch.data[0], want)
            assert batch.data[0].shape == provider.provide_data[0].shape


def test_layouts_and_types(files):
    with provider_of(files, layout="NHWC", dtype="uint8") as provider:
        batch = provider.next()
        assert provider.provide_data[0].layout == "NHWC"
        assert batch.data[0].dtype == np.uint8
        assert np.array_equal(batch.data[0][..., 0], files[2][:5])
        assert batch.label[0].dtype == np.float32
    with provider_of(files, label_name=None, data_name="image") as provider:
        assert provider.provide_label == []
        assert provider.next()["image"].shape == (5, 1, 4, 3)


def test_a_run_resumed_at_any_batch_is_the_run(files):
    with provider_of(files, shuffle=True) as provider:
        states, whole = [], []
        for _ in range(2):
            for batch in provider:
                states.append(provider.state_dict())
                whole.append(batch.index.tolist())
    for done, state in enumerate(states):
        with provider_of(files, shuffle=True) as provider:
            provider.load_state_dict(state)
            rest = [b.index.tolist() for _ in range(2) for b in provider]
            assert rest[: len(whole) - done - 1] == whole[done + 1 :]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"last_batch": "wrap"}, ValueError, "last_batch='wrap'"),
        ({"dtype": "float64"}, ValueError, "dtype='float64'"),
        ({"layout": "NHW"}, ValueError, "has the axes 'NCHW'"),
        ({"layout": "NHWC", "flat": True}, ValueError, "no effect"),
        ({"batch_size": 0}, ValueError, "batch_size=0"),
        ({"part_index": 1}, ValueError, "part_index=1"),
        ({"sufle": True}, TypeError, "did you mean 'shuffle'"),
        ({"image": "nowhere"}, OSError, "nowhere"),
    ],
)
def test_bad_parameters(files, arguments, error, text):
    with pytest.raises(error, match=text):
        provider_of(files, **arguments)


def test_files_that_are_damaged_or_do_not_belong_together(files, tmp_path):
    with pytest.raises(RecordIOError, match="expected images"):
        provider_of(files, image=files[1])
    with pytest.raises(RecordIOError, match="expected labels"):
        provider_of(files, label=files[0])
    write_idx_array(tmp_path / "fewer", files[3][:-1])
    with pytest.raises(RecordIOError, match="22 labels, but .*images has 23 images"):
        provider_of(files, label=tmp_path / "fewer")
    content = files[0].read_bytes()
    (tmp_path / "short").write_bytes(content[:-1])
    with pytest.raises(RecordIOError, match="short"):
        provider_of(files, image=tmp_path / "short")
    (tmp_path / "short.gz").write_bytes(gzip.compress(content)[:-9])
    with pytest.raises(RecordIOError, match="short.gz"):
        provider_of(files, image=tmp_path / "short.gz")
    write_idx_array(tmp_path / "none", files[2][:0])
    with pytest.raises(RecordIOError, match="no samples"):
        provider_of(files, image=tmp_path / "none")


def test_the_other_name():
    assert MNISTProvider is MNISTIter


def test_large_arrays_are_refused_until_asked_for(files):
    image, label, _, _ = files
    with pytest.raises(ArrayFileError, match="raise max_array_bytes"):
        MNISTIter(image=image, label=label, max_array_bytes=10)
