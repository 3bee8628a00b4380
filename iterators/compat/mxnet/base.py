"""Names of `mx.base`: the error that MXNet raises, and types that scripts compare with."""

import numpy as np

from recordio.errors import RecordIOError as MXNetError

from ..training_stubs import stand_in

__all__ = ["MXNetError", "integer_types", "numeric_types", "string_types"]

integer_types: tuple[type, ...] = (int, np.int32, np.int64)
numeric_types: tuple[type, ...] = (float, int, np.generic)
string_types: tuple[type, ...] = (str,)

#: Names that call MXNet's library in C.
C_LIBRARY = "there is no such library: `tell()` of a reader and `rec2idx` know positions"

globals().update(stand_in(__name__, "mx.base", dict.fromkeys(["_LIB", "check_call"], C_LIBRARY)))
