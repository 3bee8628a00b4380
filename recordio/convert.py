"""Conversions of data sets as functions: other formats to record files, and back.

They do what the commands ``recordio from-FORMAT``, ``recordio pack`` and ``recordio export`` do,
with the same options; ``convert.pyi`` has their signatures.
"""

from .tools.convert.exporting import ExportReport
from .tools.convert.functions import export, functions, pack
from .tools.convert.importing import ImportReport
from .tools.pack_source import SourceReport

_FUNCTIONS = functions()
__all__ = ["ExportReport", "ImportReport", "SourceReport", "export", "pack", *_FUNCTIONS]
#: For doctest, which looks for functions that were defined here.
__test__ = {f.__name__: f.__doc__ for f in (*_FUNCTIONS.values(), export, pack)}

globals().update(_FUNCTIONS)
