"""Descriptions of arrays, and batches that hold them."""

import pickle

import numpy as np
import pytest

from iterators import DataBatch, DataDesc
from iterators.core.batch import axes_of


def test_a_description_is_a_plain_pair_with_more_to_say():
    desc = DataDesc("data", [4, 3], dtype="uint8", layout="NT")
    assert desc == ("data", (4, 3))
    name, shape = desc
    assert (name, shape) == ("data", (4, 3))
    copy = pickle.loads(pickle.dumps(desc))
    assert (copy, copy.dtype, copy.layout) == (desc, np.uint8, "NT")


@pytest.mark.parametrize(("layout", "axis"), [(None, 0), ("NCHW", 0), ("CHWN", 3), ("TC", -1)])
def test_the_batch_axis_is_where_the_n_is(layout, axis):
    assert DataDesc.get_batch_axis(layout) == axis


def test_arrays_are_found_by_name_data_first():
    data, label = np.zeros((3, 2)), np.ones(3)
    batch = DataBatch(
        [data], [label], 1, None, None, [DataDesc("x", (3, 2))], [DataDesc("y", (3,))]
    )
    assert batch["x"] is data
    assert batch.get("y") is label
    with pytest.raises(KeyError, match="no array named 'z'.*x, y"):
        batch["z"]


def test_samples_are_counted_along_the_batch_axis():
    data = np.zeros((2, 5))
    batch = DataBatch([data], pad=2, provide_data=[DataDesc("x", (2, 5), layout="TN")])
    assert batch.count_samples() == batch.count == 3
    assert DataBatch([np.zeros((4, 2))]).count == 4


def test_arrays_must_come_in_lists():
    with pytest.raises(TypeError, match="data must be a list"):
        DataBatch(np.zeros(3))
    with pytest.raises(TypeError, match="label must be a list"):
        DataBatch([np.zeros(3)], np.zeros(3))


def test_the_text_is_that_of_mxnet():
    data, label = [np.zeros((4, 2)), np.zeros((4, 3, 8))], [np.zeros(4)]
    text = "DataBatch: data shapes: [(4, 2), (4, 3, 8)] label shapes: "
    assert str(DataBatch(data, label)) == f"{text}[(4,)]"
    assert str(DataBatch(data)) == f"{DataBatch(data, [])}" == f"{text}None"
    assert str(type("Mine", (DataBatch,), {})(data[:1])).startswith("Mine: data shapes: [(4, 2)] ")


def test_notebooks_show_the_arrays_in_a_table():
    batch = DataBatch([np.zeros((4, 2))], [np.ones(4, np.int64)], pad=1,
                      provide_data=[DataDesc("<x>", (4, 2))],
                      provide_label=[DataDesc("y", (4,))])  # fmt: skip
    text = batch._repr_html_()
    assert "<tr><th>&lt;x&gt;</th><td>(4, 2) float64</td></tr>" in text
    assert "<tr><th>y</th><td>(4,) int64</td></tr>" in text
    assert "<td>3, pad 1</td>" in text and "<img" not in text
    assert "(4, 2) float64" in DataBatch([np.zeros((4, 2))])._repr_html_()


def test_letters_of_a_described_array():
    assert axes_of("NCHW", 4) == "bchw"
    assert axes_of("NCHW", 2) == "bf"  # a layout for other axes says nothing
    assert axes_of("CHWN", 4) == "chwb"
