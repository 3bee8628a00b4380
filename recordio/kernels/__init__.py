"""Arithmetic on rows of pixels, with and without vector instructions."""
