"""Rows, minibatches, streams and data without an end: the rules D, F15 to F18 and section 4."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordio
from iterators.samples import Dataset, Minibatches, Sample, StreamDataset, minibatches
from iterators.testing import write_records

torch = pytest.importorskip("torch")


def worked_example(kind=np.array):
    rows = [[1, 2, 3, 9], [4, 5, 6, 8], [7, 8, 9, 7]]
    return Dataset(kind(rows), {"input": slice(0, 3), "target": 3})


def listed(value):
    return value.tolist() if hasattr(value, "tolist") else value


@pytest.mark.parametrize("kind", [np.array, torch.tensor, list], ids=["numpy", "torch", "list"])
def test_the_worked_example(kind):
    d = worked_example(kind)
    assert listed(d[1].input()) == [4, 5, 6] and listed(d.target()) == [9, 8, 7]
    assert d.input._width() == 3 and listed(d[[2, 0]].target()) == [7, 9]
    assert listed(d.input[:, 1]()) == [2, 5, 8]
    assert d.input._shape() == (3, 3) and d.target._shape() == (3,)  # F15
    d.input -= 1
    assert listed(d()[0]) == [0, 1, 2, 9]
    assert len(d._minibatches(2)) == 2 and len(d._minibatches(2)[-1]) == 1


@pytest.mark.parametrize("kind", [np.array, torch.tensor, list], ids=["numpy", "torch", "list"])
def test_D1_D5_rows_and_fields_commute(kind):
    d = worked_example(kind)
    for i in (0, 2, -1):
        assert d[i].input == d.input[i] and d[i].target == d.target[i]
        for e in (0, 2, slice(1, 3)):
            assert d[i, e] == d[i][e] == d[:, e][i]
        assert type(d[i]) is Sample
    assert all(row == d[i] for i, row in enumerate(d))  # D8
    for rows in (slice(1, 3), [2, 0, 2], [True, False, True], np.array([1])):
        assert isinstance(d[rows], Dataset)
        assert listed(d[rows].target()) == [9 - i for i in np.arange(3)[rows]]
        assert len(d[rows]) == len(np.arange(3)[rows])
    assert d._width() == len(d[0]) == d._shape()[1]  # D7


def test_D6_the_mean_can_be_removed():
    d = Dataset(np.random.default_rng(0).normal(3, 2, (50, 4)))
    d -= np.mean(d())
    assert abs(np.mean(d())) < 1e-12
    d -= np.mean(d(), axis=0)
    assert np.allclose(np.mean(d(), axis=0), 0)


def test_D9_fields_may_differ_in_length():
    d = Dataset(np.zeros((3, 2)), {"x": 0, "names": ["a", "b"]})
    d._set_field("names", Dataset(["a", "b"]))
    assert len(d.names) == 2 and len(d.x) == 3 and d[1].names() == "b" and d[1:2].names() == ["b"]
    assert d[2].x() == 0
    with pytest.raises(IndexError):
        d[2].names()


@given(st.integers(0, 20), st.integers(1, 7), st.booleans())
def test_D11_D12_F16_minibatches(n, k, drop_last):
    data = np.arange(n * 3).reshape(n, 3)
    d = Dataset(data, {"input": slice(0, 2), "target": 2})
    mb = d._minibatches(batch_size=k, drop_last=drop_last)
    assert isinstance(mb, Minibatches) and isinstance(mb, Dataset)
    assert len(mb) == (n // k if drop_last else math.ceil(n / k))
    for j, batch in enumerate(mb):
        assert np.array_equal(batch(), data[j * k : (j + 1) * k])
        assert np.array_equal(mb.input[j](), data[j * k : (j + 1) * k, :2])
        assert all(batch[i] == d[j * k + i] for i in range(len(batch)))  # F18
        assert batch.target == mb.target[j] == mb[j].target
    pairs = list(zip(mb.input, mb.target, strict=True))  # D14
    assert all(len(one) == len(other) for one, other in pairs)
    if len(mb):
        rows = len(mb[0])
        assert rows == min(n, k) == mb.input._width()
        assert mb.input._shape() == (len(mb), rows, 2) and mb.input._shape()[2] == d.input._width()
        assert mb._size() == sum(batch._size() for batch in mb)
        assert mb[::-1]._shape() == mb._shape()
        assert mb[:, 0]._shape() == (len(mb), 3)
    if len(mb) and (drop_last or n % k == 0):
        assert mb().shape == (len(mb), k, 3)
    elif len(mb) > 1:
        assert isinstance(mb(), list)


def test_F17_batches_have_rows():
    for size in (0, -1):
        with pytest.raises(ValueError, match="batch_size"):
            Dataset([1])._minibatches(size)
        with pytest.raises(ValueError, match="batch_size"):
            StreamDataset(lambda: [])._minibatches(size)


def test_writing_through_minibatches():
    data = np.ones((7, 2))
    d = Dataset(data, {"x": 0})
    mb = d._minibatches(3)
    mb[1] *= 0
    assert not data[3:6].any() and data[:3].all() and data[6].all()
    mb.x = 5
    assert (data[:, 0] == 5).all()
    mb[:2]._write([[7], [8]])
    assert data[:, 1].tolist() == [7] * 3 + [8] * 3 + [1]
    mb -= 1
    assert data[6].tolist() == [4, 0]
    mb[1:]._write(Sample(np.array([[3.0], [2.0]])))
    assert data[5].tolist() == [3, 3] and data[6].tolist() == [2, 2]
    with pytest.raises(ValueError, match="do not fit"):
        mb._write([1, 2, 3, 4])


def test_parts_of_minibatches():
    d = Dataset(np.arange(24).reshape(6, 4), {"x": 0})
    mb = minibatches(d, 2)
    assert mb[[2, 0]]().tolist() == [d[4:6]().tolist(), d[0:2]().tolist()]
    assert mb[1:, 0]().tolist() == [[8, 9, 10, 11], [16, 17, 18, 19]]  # the first row of each
    assert mb[1, 0]().tolist() == [8, 9, 10, 11]
    assert mb[-1].x().tolist() == [16, 20] and mb[[0]].x._shape() == (1, 2)
    assert d[[5, 4, 3]]._minibatches(2)[0]().tolist() == [d[5]().tolist(), d[4]().tolist()]
    with pytest.raises(IndexError):
        mb[3]


def test_D13_the_shuffling_example():
    rng = np.random.default_rng(1)
    stored = np.arange(20).reshape(10, 2)
    d = Dataset(stored, {"input": 0, "target": 1})
    shuffled = d[rng.permutation(len(d))]
    assert sorted(shuffled.input()) == sorted(d.input()) and shuffled.input() is not d.input()
    assert all(row.target() == row.input() + 1 for row in shuffled)
    shuffled.target = 0
    assert not stored[:, 1].any()


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_the_linear_regression_example(library):
    rng = np.random.default_rng(2)
    inputs = rng.normal(size=(200, 3))
    data = np.column_stack([inputs, inputs @ [2.0, -1.0, 0.5] + 4])
    if library == "torch":
        data = torch.from_numpy(data)
    d = Dataset(data, {"input": slice(0, 3), "target": slice(3, 4)})
    model = Sample(np.zeros(4), {"weight": slice(0, 3), "bias": 3})
    for _ in range(30):
        for batch in d[rng.permutation(len(d))]._minibatches(20):
            x, y = (np.asarray(part()) for part in (batch.input, batch.target))
            error = x @ model.weight() + model.bias() - y[:, 0]
            model.weight -= 0.1 * x.T @ error / len(batch)
            model.bias -= 0.1 * error.mean()
    assert np.allclose(model(), [2, -1, 0.5, 4], atol=1e-3)


# -- without an end --------------------------------------------------------------------------------


class Numbers:
    """Rows (i, i * i) without an end."""

    def __init__(self):
        self.reads = 0

    def __getitem__(self, i):
        self.reads += 1
        return [i, i * i]


def test_data_without_an_end():
    source = Numbers()
    d = Dataset(source, {"root": 0, "square": 1})
    assert d._length() == math.inf and source.reads == 0
    assert len(d[2:5]) == 3 and d[2:5].square() == [4, 9, 16]
    assert d[10:][3].root() == 13 and d[5::2][1].root() == 7 and d[[4, 1]].square() == [16, 1]
    assert [row.square() for row in itertools.islice(d, 4)] == [0, 1, 4, 9]
    batches = itertools.islice(d.root._minibatches(3), 2)
    assert [batch() for batch in batches] == [[0, 1, 2], [3, 4, 5]]
    assert d._minibatches(2)[1000].root() == [2000, 2001]
    for wrong, error in [
        (lambda: len(d), TypeError), (d, TypeError), (lambda: d[-1], IndexError),
        (lambda: d[-3:](), IndexError), (lambda: d[:-1](), IndexError),
        (lambda: d[::-1](), IndexError), (lambda: len(d._minibatches(2)), TypeError),
        (lambda: d[[1, -1]](), IndexError),
        (d._minibatches(3), TypeError), (lambda: d[2:]._write(0), TypeError),
    ]:  # fmt: skip
        with pytest.raises(error):
            wrong()


def test_sources_may_be_unpredictable():
    class Dice:
        _deterministic = False

        def __len__(self):
            return 3

        def __getitem__(self, i):
            return 4

    d = Dataset(Dice(), {"a": Dataset([1, 2, 3])})
    assert d._deterministic is d[1:]._deterministic is d[0]._deterministic is False
    assert d._minibatches(2)._deterministic is False
    assert Dataset([1])._deterministic is d.a._deterministic is True
    assert Sample(fields={"dice": d, "b": [1]})._deterministic is False


# -- files -----------------------------------------------------------------------------------------


def test_memory_mapped_arrays_are_written_through(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, np.zeros((100, 3)))
    d = Dataset(np.load(path, mmap_mode="r+"), {"x": 0})
    d[[7, 5]].x = [1, 2]
    del d
    assert np.load(path)[[5, 7], 0].tolist() == [2, 1]
    with pytest.raises(ValueError, match="read-only"):
        Dataset(np.load(path, mmap_mode="r"))[0]._write(1)


def test_record_files_are_read_row_by_row(tmp_path):
    write_records(tmp_path / "a.rec", [bytes([i]) * 5 for i in range(10)])
    with recordio.RecordReader(tmp_path / "a.rec") as reader:
        d = Dataset(reader, {"head": slice(0, 2), "first": 0})
        assert len(d) == 10 and bytes(d[3]()) == b"\3" * 5
        assert d[[9, 2]].first() == [9, 2] and bytes(d[4].head()) == b"\4\4"
        assert [bytes(row()) for row in d[7:]] == [bytes([i]) * 5 for i in (7, 8, 9)]
        assert d._minibatches(4)[1].first() == [4, 5, 6, 7]
        with pytest.raises(ValueError, match="cannot be written"):
            d[0] = b"x"


def test_csv_files_as_arrays_and_as_streams(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{i},{i + 0.5},{i % 2}\n" for i in range(9)))
    fields = {"input": slice(0, 2), "target": 2}
    d = Dataset(recordio.read_csv(path), fields)
    stream = StreamDataset(
        lambda: itertools.chain.from_iterable(recordio.CSVReader(path)), fields
    )  # fmt: skip
    assert [row.input().tolist() for row in stream] == d.input().tolist()
    assert stream._materialize() == d and stream._take(4).target == d[:4].target
    batches = [b().tolist() for b in stream.target._minibatches(4)]
    assert batches == [[0, 1, 0, 1], [0, 1, 0, 1], [0]]
    assert list(stream._minibatches(4, drop_last=True))[1].input == d[4:8].input


# -- streams ---------------------------------------------------------------------------------------


def test_streams_begin_anew_and_read_only_what_is_asked_for():
    taken = []

    def source():
        for i in itertools.count():
            taken.append(i)
            yield np.array([i, -i])

    stream = StreamDataset(source, {"minus": 1})
    assert stream._take(3)().tolist() == [[0, 0], [1, -1], [2, -2]] and taken == [0, 1, 2]
    assert [row.minus() for row in itertools.islice(stream, 3)] == [0, -1, -2]
    assert next(iter(stream.minus._minibatches(2)))().tolist() == [0, -1]
    assert stream._length() is None and stream._fields == ("minus",)
    assert next(iter(stream._minibatches(2).minus))().tolist() == [0, -1]
    once = StreamDataset(lambda: iter([1, 2]))
    assert [s() for s in once] == [s() for s in once] == [1, 2]


@pytest.mark.parametrize(
    "rows",
    [
        [np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]), np.array([7.0, 8.0, 9.0])],
        [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
        [(1, 2, 3), (4, 5, 6), (7, 8, 9)],
    ],
)
def test_batches_of_streams_are_arrays_however_they_are_taken(rows):
    stream = StreamDataset(lambda: iter(rows), {"first": 0, "rest": slice(1, 3)})
    for name, expected in (("first", [1, 4]), ("rest", [[2, 3], [5, 6]])):
        field = getattr(stream, name)
        for batch in (
            next(iter(getattr(stream._minibatches(2), name)))(),
            getattr(next(iter(stream._minibatches(2))), name)(),
            next(iter(field._minibatches(2)))(),
            field._take(2)(),
            getattr(stream._take(2), name)(),
            getattr(stream._materialize()._minibatches(2), name)[0](),
            getattr(stream._minibatches(2)._materialize(), name)[0](),
        ):
            assert isinstance(batch, np.ndarray) and batch.tolist() == expected


def test_a_stream_of_images_with_labels_gives_arrays_of_both():
    rows = [(np.full((2, 2), i), i) for i in range(5)]
    stream = StreamDataset(lambda: iter(rows), {"image": 0, "label": 1})
    shapes = [(b.image().shape, b.label().tolist()) for b in stream._minibatches(3)]
    assert shapes == [((3, 2, 2), [0, 1, 2]), ((2, 2, 2), [3, 4])]
    batch = stream._take(2)
    assert len(batch()) == 2 and batch[1].label() == 1 and batch.image[1]().shape == (2, 2)
    assert isinstance(batch(), list)
    ragged = StreamDataset(lambda: iter([[1], [2, 3]]))
    assert ragged._take(2)() == [[1], [2, 3]]
    words = StreamDataset(lambda: iter(["a", "b"]))
    assert words._take(2)() == ["a", "b"]
    torch = pytest.importorskip("torch")
    tensors = StreamDataset(lambda: iter([torch.ones(2)] * 2), {"x": 0})
    assert torch.equal(tensors._take(2)(), torch.ones(2, 2))
    assert torch.equal(tensors.x._take(2)(), torch.ones(2))


# -- fields with fields ----------------------------------------------------------------------------


def test_a_field_may_have_fields():
    data = np.arange(12.0).reshape(3, 4)
    d = Dataset(data, {"input": {"x1": slice(0, 2), "rest": {"x2": 2}}, "target": 3})
    assert d.input.x1._shape() == (3, 2) and d.input.rest.x2().tolist() == [2, 6, 10]
    assert d._fields == ("input", "target") and d.input._fields == ("x1", "rest")
    assert d[1].input.x1().tolist() == [4, 5] and d.input[1].rest.x2() == 6
    assert d[[2, 0]].input.x1 == d.input.x1[[2, 0]] and len(d.input) == 3
    assert d.input()["x1"].tolist() == data[:, :2].tolist()
    mb = d._minibatches(2)
    assert mb.input.x1[1]().tolist() == [[8, 9]] and mb[0].input.rest.x2().tolist() == [2, 6]
    d.input.x1 *= 10
    d.input.rest.x2 = -1
    assert data[1].tolist() == [40, 50, -1, 7]
    d[0].input = {"x1": [5, 6]}
    assert data[0].tolist() == [5, 6, -1, 3]
    copied = d._copy()
    copied.input.x1 = 0
    assert copied()[0].tolist() == [0, 0, -1, 3] and data[0, 0] == 5
    with pytest.raises(ValueError, match="read-only"):
        d._readonly().input.x1._write(0)


def test_fields_with_fields_follow_indices():
    s = Sample(np.arange(5.0), {"all": {"x": 0, "y": slice(1, 3)}, "late": {"z": 4}})
    assert s[0:3]._fields == ("all",) and s[0:3].all.y().tolist() == [1, 2]
    assert s[1:5]._fields == ("late",) and s[1:5].late.z() == 4
    own = Dataset(np.zeros((2, 3)), {"input": {"x": 0, "word": np.array(["a", "b"])}})
    assert own[1].input.word() == "b" and own.input.x().tolist() == [0, 0]
    composite = Sample(fields={"input": {"x1": np.ones(2), "x2": 5}})
    assert composite.input.x1().tolist() == [1, 1] and composite()["input"]["x2"] == 5
    composite._set_field("other", {"y": np.zeros(1)})
    assert composite.other.y().tolist() == [0]


@pytest.mark.parametrize("fields", [{"a": {}}, {"a": {"_b": 0}}, {"a": {"b": 0, "class": 1}}])
def test_fields_of_fields_need_names(fields):
    with pytest.raises(ValueError, match="field"):
        Dataset(np.zeros((2, 2)), fields)


def test_streams_refuse_what_they_cannot_do():
    stream = StreamDataset(lambda: iter([[1, 2]]), {"a": 0})
    for wrong in (
        lambda: stream[0], lambda: len(stream), stream, lambda: stream._write(1),
        lambda: setattr(stream, "a", 1), lambda: StreamDataset([1, 2]),
        lambda: stream._minibatches(2)._minibatches(2),
        lambda: StreamDataset(list, {"input": {"x1": 0}}),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(AttributeError, match="the fields are: a"):
        stream.b  # noqa: B018
    with pytest.raises(ValueError, match="negative"):
        stream._take(-1)
    with pytest.raises(ValueError, match="underscore"):
        StreamDataset(lambda: [], {"_a": 0})
    assert stream._materialize().a() == [1] and bool(stream)


# -- bridges --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.array, torch.tensor, list], ids=["numpy", "torch", "list"])
def test_rows_at_once_are_data(kind):
    d = worked_example(kind)
    assert [listed(row) for row in d.__getitems__([2, 0])] == [[7, 8, 9, 7], [1, 2, 3, 9]]
    assert [listed(row) for row in d.target.__getitems__(np.array([2, -1]))] == [7, 7]
    both = Dataset({"x": kind([[1, 2], [3, 4]]), "y": {"z": kind([5, 6])}})
    rows = both.__getitems__([1])
    assert len(rows) == 1 and listed(rows[0]["x"]) == [3, 4] and rows[0]["y"]["z"] == 6


def test_a_loader_of_torch_takes_samples():
    d = Dataset({"input": np.arange(12.0).reshape(6, 2), "target": np.arange(6)})
    for workers in (0, 1):
        loader = torch.utils.data.DataLoader(d, batch_size=4, num_workers=workers)
        first, second = loader
        assert first["input"].shape == (4, 2) and second["target"].tolist() == [4, 5]
    assert len(next(iter(torch.utils.data.DataLoader(worked_example(), batch_size=2)))) == 2


def test_providers_take_samples():
    from iterators import ArrayDataProvider

    d = Dataset({"input": np.arange(12.0).reshape(6, 2), "extra": np.arange(6)})
    with ArrayDataProvider(d, np.arange(6), batch_size=6) as provider:
        batch = provider.next()
        np.testing.assert_array_equal(batch["input"], d.input())
        np.testing.assert_array_equal(batch["extra"], d.extra())
    rows = worked_example()
    with ArrayDataProvider(rows.input, rows.target, batch_size=3) as provider:
        batch = provider.next()
        np.testing.assert_array_equal(batch.data[0], rows.input())
        np.testing.assert_array_equal(batch.label[0], rows.target())


def test_facts_of_fields():
    from iterators.samples import fields_meta

    d = Dataset(np.zeros((4, 3)), {"x": 0, "y": 1}, fields_meta={"x": {"unit": "m"}})
    assert fields_meta(d) == {"x": {"unit": "m"}, "y": {}} == fields_meta(d[1:3])
    assert fields_meta(d[0])["x"] == {"unit": "m"}


def test_a_source_that_reads_many_rows_is_called_once():
    class Source:
        calls = 0

        def __len__(self):
            return 9

        def __getitem__(self, row):
            raise AssertionError

        def __getitems__(self, rows):
            Source.calls += 1
            return [(row, -row) for row in rows]

    d = Dataset(Source(), {"y": 1})
    assert d.y[2:5]() == [-2, -3, -4] and Source.calls == 1
