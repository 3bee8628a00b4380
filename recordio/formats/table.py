"""Which codecs give the rows of encoded images, in the order in which they are asked."""

from .general_rows import GeneralRows
from .jpeg.jpeg import JpegRows
from .png.png import PngRows
from .pnm import RawRows

__all__ = ["CODECS"]

#: The first one that takes an image has it; the last one takes everything.
CODECS = (JpegRows, PngRows, RawRows, GeneralRows)
