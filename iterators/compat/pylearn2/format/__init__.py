"""Names of `pylearn2.format`: `target_format`."""

from . import target_format as target_format
