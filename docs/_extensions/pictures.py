"""Draws the pictures of the augmentations before the pages are read.

``make_pictures.py`` draws what iterators make, ``make_recipe_pictures.py`` ours beside Pillow's,
``make_shape_pictures.py`` batches of many shapes, ``make_processor_pictures.py`` patches and tiles.
"""

from pathlib import Path

import make_pictures
import make_processor_pictures
import make_recipe_pictures
import make_shape_pictures


def draw(app):
    """All pictures, into ``_pictures``."""
    make_pictures.main(Path(app.srcdir, "_pictures"))
    make_recipe_pictures.main(Path(app.srcdir, "_pictures"))
    make_shape_pictures.main(Path(app.srcdir, "_pictures"))
    make_processor_pictures.main(Path(app.srcdir, "_pictures"))


def setup(app):
    """Register what is to be done."""
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True}
