"""Pipelines of other libraries, read by class name and attributes: keywords that mean the same."""
