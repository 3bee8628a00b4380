"""Names of `mx.base`: the error that MXNet raises, and the context of a call that names a GPU."""

from recordio.errors import RecordIOError as MXNetError

__all__ = ["MXNetError"]
