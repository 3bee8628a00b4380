"""Record files in Ray Data: read in ranges by many tasks, and written as shards with a manifest.

``import recordio.ray`` needs Ray; nothing else in `recordio` imports this package.
"""

from recordio.extras import need

need("ray", "recordio.ray")
need("pyarrow", "recordio.ray", extra="ray")

from .sink import RecordDatasink  # noqa: E402
from .source import RecordDatasource, read_images, read_records  # noqa: E402
from .tasks import run_tasks  # noqa: E402

__all__ = [
    "RecordDatasink",
    "RecordDatasource",
    "read_images",
    "read_records",
    "run_tasks",
]
