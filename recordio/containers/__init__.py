"""Samples in files other than record files, read in place: tar, TFRecord, folders, ..."""
