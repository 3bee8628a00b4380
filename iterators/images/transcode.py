"""`optimize_jpeg` of `recordio`, importable from `iterators` as well."""

from recordio.formats.transcode.transcode import optimize_jpeg as optimize_jpeg
