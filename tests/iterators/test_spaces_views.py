"""Spaces and views are two faces of one engine: what both can say, both do alike."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators import ClassView, Conv2DSpace, DataView, ImageView, IndexSpace, VectorSpace
from iterators.testing import assert_same

torch = pytest.importorskip("torch")

OFFERED = ["bhwc", "bchw", "chwb"]
BASES = ["".join(order) for order in itertools.permutations("bhwc")]
SIZES = st.tuples(*[st.integers(1, 5)] * 4)
DTYPES = st.sampled_from(["float32", "float64"])


def conv(axes, sizes, dtype):
    _, h, w, c = sizes
    names = tuple({"h": 0, "w": 1}.get(axis, axis) for axis in axes)
    return Conv2DSpace((h, w), num_channels=c, axes=names, dtype=dtype)


def images(base, sizes, dtype):
    shape = [sizes["bhwc".index(axis)] for axis in base]
    return np.random.default_rng(0).random(shape).astype(dtype)


@given(
    base=st.sampled_from(BASES), form=st.sampled_from(OFFERED), sizes=SIZES, to=DTYPES, of=DTYPES
)
def test_images_in_every_order(base, form, sizes, to, of):
    x = images(base, sizes, of)
    src, dst = conv(base, sizes, of), conv(form, sizes, to)
    assert_same(src.np_format_as(x, dst), ImageView(base, x).forward_get(form, to))
    tensor = torch.from_numpy(x)
    assert_same(src.format_as(tensor, dst), ImageView(base, tensor).forward_get(form, to))


@given(base=st.sampled_from(["bhwc", "chwb"]), sizes=SIZES, to=DTYPES)
def test_flattened_images_where_both_use_the_order_of_spaces(base, sizes, to):
    # Views flatten in the order of the base with the batch swapped to the front, which is the
    # order h, w, c of spaces for these two.
    x = images(base, sizes, "float64")
    vector = VectorSpace(sizes[1] * sizes[2] * sizes[3], dtype=to)
    src = conv(base, sizes, "float64")
    assert_same(src.np_format_as(x, vector), ImageView(base, x).forward_get("bf", to))
    tensor = torch.from_numpy(x)
    assert_same(src.format_as(tensor, vector), ImageView(base, tensor).forward_get("bf", to))


@given(base=st.sampled_from(BASES), sizes=SIZES)
def test_flattened_images_when_told_the_order_of_spaces(base, sizes):
    x = images(base, sizes, "float64")
    vector = VectorSpace(sizes[1] * sizes[2] * sizes[3], dtype="float64")
    channels_last = ImageView("bhwc", ImageView(base, x).forward_get("bhwc"))
    flat = conv(base, sizes, "float64").np_format_as(x, vector)
    assert_same(flat, channels_last.forward_get("bf"))
    # And back: what a space unflattens is what a view takes in place of its base.
    channels_last.replace("bf", flat * 2)
    back = vector.np_format_as(flat * 2, conv("bhwc", sizes, "float64"))
    assert_same(back, channels_last.input)


@given(n=st.integers(0, 6), f=st.integers(1, 6), of=DTYPES, to=DTYPES)
def test_vectors(n, f, of, to):
    x = np.random.default_rng(0).random((n, f)).astype(of)
    found = VectorSpace(f, dtype=of).np_format_as(x, VectorSpace(f, dtype=to))
    assert_same(found, DataView("bf", x).forward_get("bf", to))


@given(n=st.integers(1, 6), t=st.integers(1, 4), to=st.sampled_from(["int32", "int64"]))
def test_classes(n, t, to):
    x = np.random.default_rng(0).integers(0, 9, (n, t))
    found = IndexSpace(9, t, "int64").np_format_as(x, IndexSpace(9, t, to))
    assert_same(found, ClassView("bt", x).forward_get("bt", to))
