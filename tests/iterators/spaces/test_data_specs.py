"""data_specs: which pairs make sense, and how trees of them are flattened and nested again."""

import numpy as np
import pytest

from iterators.datasets import DenseDesignMatrix
from iterators.spaces import (
    CompositeSpace,
    Conv2DSpace,
    DataSpecsMapping,
    NullSpace,
    VectorSpace,
    is_flat_source,
    is_flat_space,
    is_flat_specs,
)

C = CompositeSpace
iv = VectorSpace(3072)
ic = Conv2DSpace((32, 32), num_channels=3, axes=("b", "c", 0, 1))
tv = VectorSpace(10)


@pytest.mark.parametrize(
    ("space", "source", "mapping"),
    [
        (iv, "features", 0),
        (ic, "features", 0),
        (C([iv, tv]), ("features", "targets"), (0, 1)),
        (C([tv, ic]), ("targets", "features"), (0, 1)),
        (C([iv, iv, iv, tv]), ("features",) * 3 + ("targets",), (0, 0, 0, 1)),
        (C([C([iv] * 3), tv]), (("features",) * 3, "targets"), ((0, 0, 0), 1)),
        (C([iv, VectorSpace(3072, dtype="float32")]), ("features",) * 2, (0, 1)),
        (iv, ("features",), 0),
        (C([NullSpace(), iv]), ("", "features"), (None, 0)),
        (C([]), (), ()),
    ],
)
def test_valid_specs(space, source, mapping):
    found = DataSpecsMapping((space, source))
    assert found.spec_mapping == mapping
    assert found.n_unique_specs == len(found.specs_to_index)
    assert list(found.specs_to_index.values()) == list(range(found.n_unique_specs))


@pytest.mark.parametrize(
    ("space", "source", "error", "word"),
    [
        (C([iv, ic]), "features", ValueError, "'features'"),
        (C([iv]), "features", ValueError, "'features'"),
        (C([iv, ic]), "ab", ValueError, "'ab'"),
        (C([iv]), "f", ValueError, "'f'"),
        (C([iv] * 3 + [tv]), (("features",) * 3, "targets"), ValueError, "4 components"),
        (C([C([iv] * 3), tv]), ("features",) * 3 + ("targets",), ValueError, "2 components"),
        (iv, ("features", "targets"), ValueError, "one source"),
        ("features", iv, TypeError, "expected a space"),
        (None, "features", TypeError, "expected a space"),
        (iv, 5, TypeError, "source"),
        (iv, ["features"], TypeError, "source"),
        (NullSpace(), "features", ValueError, "NullSpace"),
        (C([NullSpace()]), ("features",), ValueError, "NullSpace"),
    ],
)
def test_invalid_specs(space, source, error, word):
    for caught in (error, AssertionError):
        with pytest.raises(caught, match=word):
            DataSpecsMapping((space, source))


@pytest.mark.parametrize("wrong", [None, (iv,), (iv, "features", 1), "ab"])
def test_specs_are_pairs(wrong):
    with pytest.raises((TypeError, ValueError)):
        DataSpecsMapping(wrong)


def test_flatten_and_nest_drop_and_restore_repeats():
    mapping = DataSpecsMapping((C([iv, C([ic, tv])]), ("features", ("features", "targets"))))
    flat = mapping.flatten(("features", ("features", "targets")))
    assert flat == ("features", "features", "targets")
    assert mapping.nest((1, 2, 3)) == (1, (2, 3))
    assert mapping.flatten(C([iv, C([ic, tv])])) == C([iv, ic, tv])
    assert mapping.flatten(C([iv, C([ic, tv])]), return_tuple=True) == (iv, ic, tv)
    assert mapping.nest(C([iv, ic, tv])) == C([iv, C([ic, tv])])

    pair = C([iv, tv])
    twice = DataSpecsMapping((C([pair, pair]), (("features", "targets"),) * 2))
    assert twice.flatten((("features", "targets"),) * 2) == ("features", "targets")
    assert twice.nest((1, 2)) == ((1, 2), (1, 2))


def test_a_single_entry_stands_for_itself():
    mapping = DataSpecsMapping((C([iv, C([iv])]), ("features", ("features",))))
    assert mapping.flatten((5, (5,))) == 5
    assert mapping.flatten((5, (5,)), return_tuple=True) == (5,)
    assert mapping.nest(5) == mapping.nest((5,)) == mapping.nest([5]) == (5, (5,))
    assert mapping.nest(iv) == C([iv, C([iv])])
    assert mapping.flatten(C([iv, C([iv])])) == iv


def test_arrays_as_entries():
    x, y = np.zeros((2, 3072)), np.zeros((2, 10))
    twice = DataSpecsMapping((C([iv, iv, tv]), ("features", "features", "targets")))
    flat = twice.flatten((x, x, y))
    assert flat[0] is x and flat[1] is y
    assert twice.flatten((x, x.copy(), y))[0] is x
    assert twice.nest(flat)[1] is x
    with pytest.raises(AssertionError, match="different"):
        twice.flatten((x, x + 1, y))


def test_nullspace():
    mapping = DataSpecsMapping((C([NullSpace(), iv]), ("", "features")))
    assert mapping.flatten(("", "features")) == "features"
    assert mapping.nest(7) == (None, 7)
    assert mapping.flatten(C([NullSpace(), iv])) == iv
    assert mapping.nest(iv) == C([NullSpace(), iv])
    for nothing in (None, (), "", NullSpace()):
        assert mapping.flatten((nothing, 7)) == 7
    with pytest.raises(AssertionError):
        mapping.flatten((5, 7))

    alone = DataSpecsMapping((NullSpace(), ""))
    assert alone.flatten("") is None and alone.flatten("", return_tuple=True) == ()
    assert alone.nest(()) is None and alone.flatten(NullSpace()) == C([])
    with pytest.raises(AssertionError):
        alone.nest(None)

    empty = DataSpecsMapping((C([]), ()))
    assert empty.flatten(()) == () and empty.nest(()) == ()


@pytest.mark.parametrize("wrong", [(None, "targets"), ("features",), "features", (1, 2, 3)])
def test_trees_of_another_shape(wrong):
    mapping = DataSpecsMapping((C([iv, tv]), ("features", "targets")))
    with pytest.raises(AssertionError):
        mapping.flatten(wrong)
    for flat in ((1,), (1, 2, 3), 1):
        with pytest.raises(AssertionError):
            mapping.nest(flat)


def test_a_composite_space_is_a_sequence_of_its_components():
    both = C([iv, C([ic, tv])])
    assert both == (iv, (ic, tv)) and (iv, (ic, tv)) == both and hash(both) == hash((iv, (ic, tv)))
    assert both != (iv, ic, tv) and both != [iv, ic] and C([iv]) != iv and C([]) == ()
    assert (
        list(both) == both.components and len(both) == 2 and both[1][0] is ic and both[:1] == [iv]
    )
    assert C(both) == both
    x, nested = both
    assert x is iv and nested == (ic, tv)


def test_the_closing_example_of_the_guide_line_by_line():
    pytest.importorskip("torch")
    rng = np.random.RandomState(0)
    X, y = rng.rand(6, 3072), np.eye(10)[[1, 2, 3, 4, 5, 6]]
    my_dataset = DenseDesignMatrix(X=X, y=y)
    input_vecspace, input_convspace, target_space = iv, ic, tv

    source = ("features", ("features", "targets"))
    space = CompositeSpace((input_vecspace, CompositeSpace((input_convspace, target_space))))
    mapping = DataSpecsMapping((space, source))
    flat_source = mapping.flatten(source)
    assert flat_source == ("features", "features", "targets")
    flat_space = mapping.flatten(space)
    assert flat_space == (input_vecspace, input_convspace, target_space)
    nested_source = mapping.nest(flat_source)
    assert source == nested_source
    nested_space = mapping.nest(flat_space)
    assert space == nested_space
    assert mapping.nest((1, 2, 3)) == (1, (2, 3))

    source = (("features", "targets"), ("features", "targets"))
    space = CompositeSpace(
        (
            CompositeSpace((input_vecspace, target_space)),
            CompositeSpace((input_vecspace, target_space)),
        )
    )
    mapping = DataSpecsMapping((space, source))
    flat_source = mapping.flatten(source)
    assert flat_source == ("features", "targets")
    flat_space = mapping.flatten(space)
    assert flat_space == (input_vecspace, target_space)
    assert mapping.nest(flat_source) == source and mapping.nest(flat_space) == space
    assert mapping.nest((1, 2)) == ((1, 2), (1, 2))

    flat_composite_space = CompositeSpace(flat_space)
    flat_inputs = flat_composite_space.make_theano_variables(name="input")
    assert [variable.batch_name for variable in flat_inputs] == ["input[0]", "input[1]"]
    nested_inputs = mapping.nest(flat_inputs)
    assert nested_inputs == (flat_inputs, flat_inputs)
    assert [tuple(variable.shape) for variable in nested_inputs[0]] == [(1, 3072), (1, 10)]

    def f(inputs, targets):
        return (inputs @ np.ones((3072, 10)) - targets).sum()

    it = my_dataset.iterator(
        "sequential", batch_size=4, data_specs=(flat_composite_space, flat_source)
    )
    outs = [f(*flat_data) for flat_data in it]
    np.testing.assert_allclose(outs, [f(X[:4], y[:4]), f(X[4:], y[4:])])


def test_flatness():
    assert is_flat_space(iv) and is_flat_space(C([iv, tv])) and not is_flat_space(C([C([iv])]))
    assert is_flat_source("a") and is_flat_source(("a", "b")) and not is_flat_source((("a",),))
    assert is_flat_specs((C([iv]), ("a",))) and not is_flat_specs((C([C([iv])]), (("a",),)))
    for wrong in ("a", None):
        with pytest.raises(TypeError):
            is_flat_space(wrong)
    for wrong in (iv, None, ("a", 5), ["a"]):
        with pytest.raises(TypeError):
            is_flat_source(wrong)


@pytest.mark.parametrize("nothing", [None, "", (), [], 0, False, NullSpace()])
def test_nothing_stands_for_nothing(nothing):
    mapping = DataSpecsMapping((CompositeSpace([VectorSpace(2), NullSpace()]), ("features", "")))
    assert mapping.flatten(("X", nothing)) == "X"


@pytest.mark.parametrize("something", ["X", 1, np.zeros(0), np.zeros((0, 2)), VectorSpace(2)])
def test_something_does_not_stand_for_nothing(something):
    mapping = DataSpecsMapping((CompositeSpace([VectorSpace(2), NullSpace()]), ("features", "")))
    with pytest.raises(AssertionError, match="NullSpace"):
        mapping.flatten(("X", something))
