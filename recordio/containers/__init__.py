"""Samples in files that are no record files, used where they lie: tar, TFRecord, folders, ..."""
