"""Kinds of arrays and their types, with and without packages for them."""

import numpy as np
import pytest
import scipy.sparse

from iterators.core import backend


def test_kinds_of_arrays():
    dense, sparse = np.zeros((2, 2)), scipy.sparse.eye(2)
    assert backend.backend_of(dense).name == "numpy"
    assert not backend.is_tensor(dense)
    assert (backend.is_sparse(sparse), backend.is_sparse(dense)) == (True, False)
    assert (backend.is_stored_sparse(sparse), backend.is_stored_sparse(dense)) == (True, False)


def test_a_type_of_a_package_is_cast_copied_and_stored_sparse():
    wanted = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    ops = backend.NUMPY
    x = np.arange(6, dtype="f4").reshape(2, 3)
    found = ops.cast(x, "bfloat16")
    assert ops.dtype(found) == "bfloat16" and found.dtype == wanted
    turned = ops.contiguous(found.T)
    assert turned.flags.c_contiguous and turned.tolist() == x.T.tolist()
    assert ops.contiguous(x.T, "bfloat16").dtype == ops.zeros((2,), "bfloat16").dtype == wanted
    assert ops.sparse(found).dtype == np.float32
