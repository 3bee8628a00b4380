import numpy as np
import scipy.sparse

from iterators.core import backend


def test_kinds_of_arrays():
    dense, sparse = np.zeros((2, 2)), scipy.sparse.eye(2)
    assert backend.backend_of(dense).name == "numpy"
    assert not backend.is_tensor(dense)
    assert (backend.is_sparse(sparse), backend.is_sparse(dense)) == (True, False)
    assert (backend.is_stored_sparse(sparse), backend.is_stored_sparse(dense)) == (True, False)
