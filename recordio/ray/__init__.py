"""Record files in Ray Data: read in ranges by many tasks, and written as shards with a manifest.

``import recordio.ray`` needs Ray; nothing else in `recordio` imports this package.
"""

from .duplicates import dedup
from .sink import RecordDatasink
from .source import RecordDatasource, read_images, read_records
from .tasks import run_tasks

__all__ = [
    "RecordDatasink",
    "RecordDatasource",
    "dedup",
    "read_images",
    "read_records",
    "run_tasks",
]
