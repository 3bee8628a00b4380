"""Files to records: MXNet record files and their indexes, image headers, and text data.

This package imports nothing of `iterators`; it can be used on its own.
"""

from recordio.index import build_index
from recordio.reader import RecordReader

__all__ = ["RecordReader", "build_index"]
