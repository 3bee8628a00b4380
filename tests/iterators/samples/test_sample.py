"""Reading and writing: the rules R, W and F of the proposal, by their numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators import concat_examples
from iterators.samples import Dataset, ReadOnlyError, Sample, fields, shape

torch = pytest.importorskip("torch")


def example(kind="numpy"):
    data = np.arange(24.0).reshape(4, 6)
    if kind == "torch":
        data = torch.from_numpy(data.copy())
    if kind == "list":
        data = data.tolist()
    return data


def plain(value):
    return np.asarray(value.detach() if isinstance(value, torch.Tensor) else value)


KINDS = pytest.mark.parametrize("kind", ["numpy", "torch", "list"])


# -- reading ---------------------------------------------------------------------------------------


def test_R2_fields_and_chains_of_fields():
    s = Sample(fields={"input": Sample(np.arange(3), {"x1": 1}), "target": np.arange(2)})
    assert s.input.x1() == 1
    assert s.target().tolist() == [0, 1]


@KINDS
def test_R3_R4_R7_elements_slices_and_iteration(kind):
    data = example(kind)
    s = Sample(data)
    for i in (0, 3, -1):
        assert np.array_equal(plain(s[i]()), plain(data[i]))
    assert np.array_equal(plain(s[1:3]()), plain(data[1:3]))
    for seen, stored in zip(s, data, strict=True):
        assert np.array_equal(plain(seen()), plain(stored))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize(
    "index",
    [
        (2, slice(None), slice(1, 3)), (slice(None), 1, slice(None, None, 2)), (..., 2),
        ([1, 0],), ([0, 2, 2], slice(None), [1, 0, 1]), (1, slice(None), [2, 0]),
        (slice(None), [2, 0]), (None, 1), (0, 1, 1), [True, False, True, True], (),
        (slice(3, 0), 1), ([1, 2], 0),
    ],
    ids=str,
)  # fmt: skip
def test_R5_any_index_of_the_data(kind, index):
    data = np.arange(4 * 5 * 6).reshape(4, 5, 6)
    stored = torch.from_numpy(data.copy()) if kind == "torch" else data
    expected = plain(stored[index])
    s = Sample(stored)[index]
    assert np.array_equal(plain(s()), expected)
    assert s._shape() == expected.shape


def test_R5_an_index_that_the_data_refuse_is_refused():
    with pytest.raises(TypeError, match="list takes no tuple"):
        Sample([[1, 2], [3, 4]])[0, 1]
    with pytest.raises(IndexError):
        Sample(np.zeros(3))["name"]
    with pytest.raises(IndexError):
        Sample(np.zeros((3, 2)))[0, 0, 0]()


def test_R6_len_shape_and_size():
    s = Sample(np.zeros((2, 3)))
    assert (len(s), s._shape(), s._size(), shape(s)) == (2, (2, 3), 6, (2, 3))
    with pytest.raises(ValueError, match="no common shape"):
        Sample([[1], [2, 3]])._shape()
    with pytest.raises(TypeError, match="only numbers"):
        Sample(["a", "b"])._shape()


def test_R8_fields_come_in_the_order_of_their_declaration():
    s = Sample(np.arange(4), {"b": 1, "a": 0, "rest": slice(2, 4)})
    assert list(dict(s._iter_fields())) == ["b", "a", "rest"] == list(fields(s))
    assert all(dict(s._iter_fields())[name] == getattr(s, name) for name in s._fields)
    s._set_field("a", np.array([7]))
    s._set_field("new", Sample(3))
    assert s._fields == ("b", "a", "rest", "new")


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (np.arange(3), [0, 1, 2], True), (np.arange(3), np.arange(3.0), True),
        (np.arange(3), np.arange(4), False), (np.array([np.nan]), np.array([np.nan]), False),
        ([[1], [2, 3]], [[1], [2, 3]], True), ([[1], [2, 3]], [[1], [2, 4]], False),
        (np.zeros((2, 1)), np.zeros(2), False), (["a", b"x"], ["a", b"x"], True),
    ],
)  # fmt: skip
def test_R9_F10_equality_is_that_of_the_data(one, other, equal):
    assert (Sample(one) == Sample(other)) is equal
    assert (Sample(one) != Sample(other)) is not equal


def test_F10_other_operands_are_unequal_and_samples_have_no_hash():
    assert (Sample(np.arange(3)) == np.arange(3)) is False
    assert (np.arange(3) == Sample(np.arange(3))) is False
    with pytest.raises(TypeError):
        hash(Sample([1]))
    assert Sample(torch.arange(3)) == Sample(np.arange(3))


def test_R10_every_public_method_begins_with_an_underscore():
    for kind in (Sample, Dataset):
        assert all(name.startswith("_") for name in dir(kind))


# -- writing ---------------------------------------------------------------------------------------


@KINDS
def test_W1_W6_what_is_written_is_seen_by_parents_and_siblings(kind):
    s = Dataset(example(kind), {"left": slice(0, 3), "first": 0})
    sibling = s[1:3]
    s[2]._write([9] * 6)
    assert np.array_equal(plain(s()[2]), [9] * 6)
    assert np.array_equal(plain(sibling()[1]), [9] * 6)
    s.first = [1, 2, 3, 4]
    assert np.array_equal(plain(s.left[:, 0]()), [1, 2, 3, 4])


@KINDS
def test_W3_F4_updates_in_place_write_and_do_not_rebind(kind):
    s = Dataset(example(kind), {"input": slice(0, 3)})
    before = plain(s()).copy()
    s.input *= 2
    s.input += 1
    s.input -= 3
    s.input /= 2
    before[:, :3] = (before[:, :3] * 2 - 2) / 2
    assert np.array_equal(plain(s()), before)
    s.input = 0
    assert not plain(s()[0])[:3].any()
    whole = s
    whole -= 1
    assert whole is s and plain(s()).min() == -1


def test_W4_W5_a_sample_rebinds_the_field_and_the_old_storage_stays():
    stored = np.arange(4.0)
    s = Sample(stored, {"x": 0, "rest": slice(1, 4)})
    other = Sample(np.array(50.0))
    s.x = other
    assert stored[0] == 0 and s.x() == 50
    s.x = 51
    assert other() == 51 and stored[0] == 0
    s._set_field("x", Sample(np.array(1.0)))
    assert s.x() == 1 and other() == 51


def test_F5_assignment_to_an_index():
    data = np.arange(12).reshape(3, 4)
    d = Dataset(data, {"a": slice(0, 2)})
    d[1] += 100
    d[0, :2] = -1
    d[2] = d[1]
    d[0].a[1] = 7
    assert data.tolist() == [[-1, 7, 2, 3], [104, 105, 106, 107], [104, 105, 106, 107]]


@pytest.mark.parametrize("make", [np.array, torch.tensor, list], ids=["numpy", "torch", "list"])
def test_F6_integers_do_not_take_what_is_no_integer(make):
    s = Sample(make([1, 2, 3]))
    with pytest.raises(TypeError, match="cannot be stored"):
        s /= 2
    with pytest.raises(TypeError, match="cannot be stored"):
        s += 0.5
    s *= 3
    assert [int(v) for v in s()] == [3, 6, 9]


def test_F6_floats_keep_their_width():
    data = np.ones(3, np.float32)
    s = Sample(data)
    s += np.float64(0.5)
    s -= np.ones(3)
    assert data.dtype == np.float32 and data.tolist() == [0.5] * 3


@KINDS
def test_F7_values_that_do_not_fit_are_refused(kind):
    s = Sample(example(kind))
    with pytest.raises(ValueError):
        s[1:3]._write([1, 2, 3, 4, 5])
    with pytest.raises(ValueError):
        s += np.zeros((9, 4, 6))


@KINDS
def test_F8_writes_through_chains_of_lists_reach_the_stored_rows(kind):
    data = example(kind)
    d = Dataset(data)
    d[[3, 1]][0:1]._write(-5.0)
    assert np.all(plain(data[3]) == -5) and not np.any(plain(data[1]) == -5)
    d[[0, 2, 0]]._write(np.array([[1.0] * 6, [2.0] * 6, [3.0] * 6]))
    assert np.all(plain(data[0]) == 3) and np.all(plain(data[2]) == 2)
    d[[0, 1]][:, [5, 4]][1:]._write(np.array([[8.0, 9.0]]))
    assert plain(data[1])[4:].tolist() == [9, 8]


def test_F9_read_only_is_inherited_and_leaves_rebinding_allowed():
    data = np.zeros((3, 2))
    d = Dataset(data, {"x": 0}, readonly=True)
    for refused in (
        lambda: d._write(1), lambda: d[0]._write(1), lambda: d.x._write(1),
        lambda: setattr(d, "x", 1), lambda: d.__setitem__(0, 1), lambda: d[1:].x.__iadd__(1),
        lambda: d._minibatches(2)[0]._write(1), lambda: d._minibatches(2)._write(1),
        lambda: d[[0, 1]].__imul__(2), lambda: d._readonly(False),
    ):  # fmt: skip
        with pytest.raises(ReadOnlyError):
            refused()
    assert isinstance(ReadOnlyError("x"), ValueError)
    d._set_field("x", Dataset(np.ones(3)))
    assert d.x().tolist() == [1, 1, 1] and not data.any()
    view = Dataset(data)._readonly(True)
    with pytest.raises(ReadOnlyError):
        view[0] = 1
    copied = d._copy()
    copied._write(4)
    assert not data.any()


@pytest.mark.parametrize("stored", [(1, 2), "text", b"bytes", range(3)])
def test_F9_storage_that_cannot_be_written_says_so(stored):
    with pytest.raises(ReadOnlyError):
        Sample(stored)._write(0)
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.raises(ReadOnlyError):
        Sample(frozen)[0]._write(1)


# -- construction and names ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["_x", "a b", "1a", "", "for", 3])
def test_F3_names_that_no_field_can_have(name):
    with pytest.raises(ValueError, match="field"):
        Sample([1], {name: 0})
    with pytest.raises(ValueError, match="field"):
        Sample([1])._set_field(name, 0)


def test_F3_unknown_fields_are_named_with_the_known_ones():
    s = Sample([1, 2], {"x": 0, "y": 1})
    with pytest.raises(AttributeError, match=r"no field 'z'; the fields are: x, y"):
        s.z  # noqa: B018
    with pytest.raises(AttributeError, match="no field 'z'"):
        s.z = 3
    with pytest.raises(AttributeError):
        s._z  # noqa: B018


def test_F1_F2_composites():
    s = Sample(fields={"a": np.arange(3), "b": np.arange(3) * 10})
    assert list(s()) == ["a", "b"] and s[1]() == {"a": 1, "b": 10}
    s._write({"b": 5})
    assert s.b().tolist() == [5, 5, 5]
    with pytest.raises(AttributeError, match="no field 'c'"):
        s._write({"a": 9, "c": 1})
    assert s.a().tolist() == [0, 1, 2]  # nothing was written
    with pytest.raises(TypeError, match="dict"):
        s._write(3)
    with pytest.raises(ValueError, match="needs data"):
        Sample()
    uneven = Dataset(fields={"a": np.zeros(3), "b": np.zeros(4)})
    for wrong in (lambda: uneven[0], lambda: len(uneven), lambda: list(uneven)):
        with pytest.raises(ValueError, match="differ in length"):
            wrong()


def test_F2_D10_a_primary_field_stands_for_the_whole():
    d = Dataset(fields={"a": np.arange(6).reshape(3, 2), "b": np.zeros(7)}, primary="a")
    assert len(d) == 3 and d._shape() == (3, 2) and d().tolist() == d.a().tolist()
    assert d[1]() is not None and d[1]().tolist() == [2, 3]
    assert [row().tolist() for row in d] == [[0, 1], [2, 3], [4, 5]]
    d *= 2
    assert d.a()[2].tolist() == [8, 10] and len(d.b) == 7
    with pytest.raises(ValueError, match="primary"):
        Dataset([1], {"a": 0}, primary="b")


def test_F11_scalars():
    s = Sample(np.arange(3))[1]
    assert s() == 1 and s._shape() == () and s._size() == 1
    for wrong in (lambda: len(s), lambda: list(s)):
        with pytest.raises(TypeError):
            wrong()


@KINDS
def test_F12_numbers_are_checked_at_once_and_lists_when_they_are_read(kind):
    s = Dataset(example(kind))
    with pytest.raises(IndexError):
        s[4]
    with pytest.raises(IndexError):
        s[-5]
    late = s[[0, 9]]
    with pytest.raises(IndexError, match="9"):
        late()
    with pytest.raises(IndexError, match="9"):
        late[0]._write(0)
    with pytest.raises(IndexError, match="mask"):
        s[[True, False]]()


class Counting:
    """Rows that count how often they are read."""

    def __init__(self, rows):
        self.rows = rows
        self.reads = []

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        self.reads.append(i)
        return self.rows[i]


def test_F13_views_read_nothing():
    source = Counting(np.arange(60).reshape(20, 3).tolist())
    d = Dataset(source, {"input": slice(0, 2), "target": 2})
    view = d.input[3:9][0]
    others = [d[[5, 2]].target, d[4].input, d._minibatches(4)[2].input, d[:, 0], d[::2][-1]]
    assert source.reads == [] and len(d[2:9]) == 7
    assert view() == [9, 10] and source.reads == [3]
    source.reads.clear()
    assert [other() for other in others] == [
        [17, 8], [12, 13], [[24, 25], [27, 28], [30, 31], [33, 34]], list(range(0, 60, 3)),
        [54, 55, 56],
    ]  # fmt: skip
    assert source.reads == [5, 2, 4, 8, 9, 10, 11, *range(20), 18]


def test_overlapping_fields_see_each_other():
    s = Sample(np.zeros(4), {"position": slice(0, 3), "x": 0, "z": 2})
    s.x = 5
    s.position[2] = 7
    assert s.position()[0] == 5 and s.z() == 7


@pytest.mark.parametrize("kind", ["numpy", "list"])
def test_a_slice_keeps_the_fields_that_lie_inside(kind):
    stored = np.arange(3.0) if kind == "numpy" else [0.0, 1.0, 2.0]
    s = Sample(stored, {"x": 0, "y": 1, "xy": slice(0, 2), "z": 2, "ends": [0, 2]})
    assert s[0:2]._fields == ("x", "y", "xy") and s[1:3]._fields == ("y", "z")
    assert s[1:3].z() == 2 and s[:].ends() is not None
    assert s[::2]._fields == () == s[[0, 1]]._fields
    s[1:3].y = 8
    assert s.y() == 8


def test_metadata_stay_with_what_they_describe():
    d = Dataset(
        np.zeros((5, 4)), {"image": slice(0, 3), "label": 3}, {"space": "28x28"},
        fields_meta={"image": {"axes": "hw"}},
    )  # fmt: skip
    assert d[3:4]._meta["space"] == d[1]._meta["space"] == d[[2, 0]]._meta["space"] == "28x28"
    assert dict(d[:, 0]._meta) == {} == dict(d.label._meta)
    assert d.image._meta["axes"] == d[2:].image._meta["axes"] == d[0].image._meta["axes"] == "hw"
    with pytest.raises(TypeError):
        d._meta["space"] = 1
    with pytest.raises(ValueError, match="fields_meta"):
        Dataset([[1]], {"a": 0}, fields_meta={"b": {}})


@pytest.mark.parametrize("data", [None, np.zeros((4, 3))])
def test_metadata_of_fields_with_storage_of_their_own(data):
    x = np.arange(8.0).reshape(4, 2)
    known = Dataset(x, meta={"unit": "m", "space": "?"})
    minibatches = Dataset(x)._minibatches(2)
    meta = {"input": {"space": "2"}, "known": {"space": "2"}, "pairs": {"of": 2}}
    d = Dataset(data, {"input": x, "known": known, "pairs": minibatches}, fields_meta=meta)
    assert dict(d.input._meta) == {"space": "2"}
    assert dict(d.known._meta) == {"unit": "m", "space": "2"}
    assert dict(known._meta) == {"unit": "m", "space": "?"}  # what was given is left as it is
    assert d.pairs._meta["of"] == d.pairs[1:]._meta["of"] == 2
    parts = Dataset(data, {"input": x}, fields_meta={"input": {"space": "2"}})
    for view in (parts, parts[1:3], parts[1], parts[[2, 0]], parts._readonly(), parts._copy()):
        assert dict(view.input._meta) == {"space": "2"}
    assert dict(parts._minibatches(2).input._meta) == {"space": "2"}
    assert dict(parts.input[:, 0]._meta) == {}
    parts.input._write(-1)
    assert (x == -1).all()  # still a view


def test_another_field_does_not_inherit_the_metadata_of_the_old_one():
    d = Dataset(np.zeros((4, 2)), {"x": 0}, fields_meta={"x": {"unit": "m"}})
    d._set_field("x", np.ones(4))
    assert dict(d.x._meta) == {} == dict(d._copy().x._meta)


@pytest.mark.parametrize("kind", [Sample, Dataset])
def test_a_mapping_is_the_fields(kind):
    x, y = np.arange(8.0).reshape(4, 2), np.arange(4)
    d = kind({"input": x, "more": {"target": y}}, meta={"from": "here"})
    assert d._fields == ("input", "more") and len(d) == 4 and d._meta["from"] == "here"
    assert np.shares_memory(d.input(), x) and np.shares_memory(d.more.target(), y)
    assert d[2].input().tolist() == [4, 5] and d[2].more.target() == 2
    with pytest.raises(TypeError, match="without fields="):
        kind({"input": x}, {"first": 0})
    with pytest.raises(ValueError, match="needs data"):
        kind({})
    with pytest.raises(ValueError, match="must be a Python name, not 'a-b'"):
        kind({"a-b": x})


@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor])
def test_samples_become_batches_of_their_data(library):
    x, y = library(np.arange(8.0).reshape(4, 2)), library(np.arange(4))
    d = Dataset({"input": x, "target": y})
    batch = concat_examples([d[2], d[0]])
    assert {name: (type(a), a.tolist()) for name, a in batch.items()} == {
        "input": (type(x), [[4, 5], [0, 1]]),
        "target": (type(x), [2, 0]),
    }
    pair = concat_examples([(d[i].input, d[i].target) for i in (2, 0)])
    assert [a.tolist() for a in pair] == [[[4, 5], [0, 1]], [2, 0]]
    assert concat_examples(d.input[1:3]).tolist() == [[2, 3], [4, 5]]
    padded = concat_examples([d.input[0], d.input[1, :1]], padding=-1)
    assert padded.tolist() == [[0, 1], [2, -1]]
    assert concat_examples([{"a": d.target[1]}, {"a": library(7)}])["a"].tolist() == [1, 7]


# -- chains of anything, against NumPy -------------------------------------------------------------


@st.composite
def chains(draw):
    """A shape, and index expressions that can follow each other."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    dummy, chain = np.zeros(shape, np.int8), []
    for _ in range(draw(st.integers(1, 4))):
        if not dummy.ndim or not dummy.size:
            break
        parts = []
        for n in dummy.shape[: draw(st.integers(1, dummy.ndim))]:
            number = st.integers(-n, n - 1)
            parts.append(draw(st.one_of(
                number, st.slices(n), st.lists(number, min_size=1, max_size=4),
                st.lists(st.booleans(), min_size=n, max_size=n),
            )))  # fmt: skip
        index = parts[0] if len(parts) == 1 else tuple(parts)
        try:
            dummy = dummy[index]
        except IndexError:
            continue  # lists that do not fit each other
        chain.append(index)
    return shape, chain


@given(chains(), st.sampled_from(["numpy", "torch"]))
def test_chains_of_indices_read_and_write_what_numpy_names(case, kind):
    shape, chain = case
    data = np.arange(np.prod(shape)).reshape(shape)
    places = data.copy()
    stored = torch.from_numpy(data.copy()) if kind == "torch" else data.copy()
    expected = places
    for index in chain:
        expected = expected[index]
    if kind == "torch":  # it has its own rule for a number beside a list, and no steps below zero
        try:
            expected = stored
            for index in chain:
                expected = expected[index]
        except (ValueError, IndexError, TypeError):
            return
        expected = expected.numpy().copy()
    s = Sample(stored)
    for index in chain:
        s = s[index]
    assert np.array_equal(plain(s()), expected)
    assert s._shape() == np.shape(expected)
    s._write(-1)
    wanted = data.copy().reshape(-1)
    wanted[np.asarray(expected).reshape(-1)] = -1
    assert np.array_equal(plain(stored).reshape(-1), wanted)


def test_tensors_can_be_seen_backwards():
    stored = torch.arange(6)
    s = Sample(stored)[::-2]
    assert s().tolist() == [5, 3, 1] and s[1:]().tolist() == [3, 1]
    s[0] = 50
    assert stored[5] == 50


def test_F19_gradients_flow_through_reading_and_tensors_share_memory():
    data = torch.arange(6.0).reshape(3, 2).requires_grad_()
    d = Dataset(data, {"x": 0})
    (d[1:].x() ** 2).sum().backward()
    assert data.grad.tolist() == [[0, 0], [4, 0], [8, 0]]
    stored = torch.zeros(4, 2)
    Dataset(stored)[1:3]()[0, 0] = 1
    assert stored[1, 0] == 1
    Dataset(stored)[[3, 0]]._write(torch.tensor([[5.0, 6.0], [7.0, 8.0]]))
    assert stored[3].tolist() == [5, 6] and stored[0].tolist() == [7, 8]


def test_samples_can_be_copied_and_pickled():
    import copy
    import pickle

    d = Dataset(np.arange(6).reshape(3, 2), {"x": 0}, {"a": 1})
    for other in (
        copy.deepcopy(d),
        pickle.loads(pickle.dumps(d)),
        pickle.loads(pickle.dumps(d))[:],
    ):
        assert other == d and other.x == d.x and other._meta == {"a": 1}
