"""Names of `pylearn2.format.target_format`."""

from ....spaces import OneHotFormatter as OneHotFormatter
