"""Draws the pictures of the augmentations before the pages are read, with ``make_pictures.py``."""

from pathlib import Path

import make_pictures


def draw(app):
    """All pictures, into ``_pictures``."""
    make_pictures.main(Path(app.srcdir, "_pictures"))


def setup(app):
    """Register what is to be done."""
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True}
