"""Keyword arguments, each described once: name, type, default, check and text."""
