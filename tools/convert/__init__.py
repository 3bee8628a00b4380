"""Conversions to record files and back, one module for each format, listed in `registry`."""
