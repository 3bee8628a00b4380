"""A batch in the form of one space is used as its array, and is a batch beside that."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse

from iterators import DataBatch, DataDesc
from iterators.providers.form_batches import ArrayBatch, FormBatch, in_form

ROWS = np.arange(6.0).reshape(3, 2)


def batch_of(array, **fields):
    fields = {"data": [array], "pad": 1, "index": np.arange(3), **fields}
    return ArrayBatch(array, provide_data=[DataDesc("features", (3, 2))], **fields)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_operators_are_those_of_the_array(kind):
    array = ROWS if kind == "numpy" else pytest.importorskip("torch").from_numpy(ROWS)
    batch = batch_of(array)
    for found, wanted in (
        (batch @ array.T, ROWS @ ROWS.T),
        (array.T @ batch, ROWS.T @ ROWS),
        (batch + 1, ROWS + 1),
        (1 - batch, 1 - ROWS),
        (array * batch, ROWS * ROWS),
        (batch / 2, ROWS / 2),
        (2.0**batch, 2.0**ROWS),
        (batch % 2, ROWS % 2),
        (batch // 2, ROWS // 2),
        (-batch, -ROWS),
        (abs(-batch), ROWS),
        (batch == array, np.full((3, 2), True)),
        (batch < 3, ROWS < 3),
        (batch + batch, ROWS + ROWS),
        (~(batch < 3) | (batch > 4), ROWS >= 3),
        (batch[1:, 0], ROWS[1:, 0]),
        (batch.T, ROWS.T),
        (batch.sum(), ROWS.sum()),
        (np.stack([np.asarray(row) for row in batch]), ROWS),
    ):
        np.testing.assert_array_equal(np.asarray(found), wanted)
        assert not isinstance(found, FormBatch)
    assert (len(batch), batch.shape, batch.ndim) == (3, (3, 2), 2) and batch.dtype == array.dtype


def test_functions_of_numpy_take_it_as_an_array():
    batch = batch_of(ROWS)
    np.testing.assert_array_equal(np.exp(batch), np.exp(ROWS))
    np.testing.assert_array_equal(np.concatenate([batch, ROWS, batch]), np.vstack([ROWS] * 3))
    np.testing.assert_array_equal(np.einsum("ij,ij->i", batch, batch), (ROWS**2).sum(1))
    assert np.shares_memory(np.asarray(batch), ROWS)
    assert np.array(batch, "float32").dtype == np.float32
    out = batch_of(np.zeros((3, 2)))
    np.add(batch, 1, out=out)
    np.testing.assert_array_equal(out.array, ROWS + 1)


def test_functions_of_torch_take_it_as_a_tensor():
    torch = pytest.importorskip("torch")
    batch = batch_of(torch.from_numpy(ROWS).float())
    layer = torch.nn.Linear(2, 4)
    assert torch.equal(layer(batch), layer(batch.array))
    assert torch.equal(torch.cat([batch, batch]), torch.cat([batch.array] * 2))
    assert torch.as_tensor(batch_of(ROWS)).tolist() == ROWS.tolist()
    assert batch.to(torch.float64).dtype == torch.float64
    with pytest.raises(TypeError):
        np.exp(batch)


def test_sparse_rows_are_never_taken_for_something_else():
    matrix = scipy.sparse.csr_matrix(ROWS)
    batch = batch_of(matrix)
    np.testing.assert_array_equal(batch @ ROWS.T, ROWS @ ROWS.T)
    assert (batch @ matrix.T).toarray().tolist() == (ROWS @ ROWS.T).tolist()
    for wrong in (lambda: np.asarray(batch), lambda: np.exp(batch), lambda: ROWS.T @ batch):
        with pytest.raises(TypeError):
            wrong()


def test_what_belongs_to_a_batch_is_beside_it():
    batch = batch_of(ROWS, label=[np.arange(3)])
    assert batch.data[0] is batch["features"] is batch.array is batch.asked
    assert (batch.count, batch.pad, batch.index.tolist()) == (2, 1, [0, 1, 2])
    assert batch.label[0].tolist() == [0, 1, 2] and "pad=1" in repr(batch)
    with pytest.raises(KeyError, match="features"):
        batch["pixels"]
    with pytest.raises(AttributeError):
        batch.nothing_of_the_kind
    with pytest.raises(TypeError, match="unhashable"):
        hash(batch)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(batch)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_it_can_be_copied(again):
    batch = again(batch_of(ROWS))
    assert type(batch) is ArrayBatch and batch.pad == 1
    np.testing.assert_array_equal(batch @ np.eye(2), ROWS)


def test_the_form_says_which_kind_it_is():
    kinds = [type(in_form(asked, data=[])).__name__ for asked in ((ROWS, None), ROWS, None, ())]
    assert kinds == ["SpecBatch", "ArrayBatch", "NullBatch", "SpecBatch"]
    with pytest.raises(TypeError, match="does not say"):
        FormBatch(data=[]).asked
    assert in_form((), size=4, data=[], pad=1).count == 3
    assert isinstance(in_form(None, data=[]), DataBatch)
