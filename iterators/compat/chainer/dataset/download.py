"""Names of `chainer.dataset.download`."""

from ....datasets import cache_or_load_file as cache_or_load_file
from ....datasets import cached_download as cached_download
from ....datasets import get_dataset_directory as get_dataset_directory
from ....datasets import get_dataset_root as get_dataset_root
from ....datasets import set_dataset_root as set_dataset_root
