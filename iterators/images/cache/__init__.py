"""Decoded images by record number, in memory or in a file."""
