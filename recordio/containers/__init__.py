"""Samples in files that are not record files, used where they lie: tar, TFRecord, zip, folders and others."""
