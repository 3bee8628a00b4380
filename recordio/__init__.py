"""Files to records: MXNet record files and their indexes, image headers, and text data.

`RecordReader` and `RecordWriter` are the door to single records.  `pack` and `unpack` are about
what is in one, `verify` and `repair` about damage, and `join`, `split`, `filter`, `stats` and their
siblings about whole packs.

This package imports nothing of `iterators`; it can be used on its own.  ``__init__.pyi`` lists what
can be imported from here, in groups, and says where it lives; a module is loaded when it is first
asked for.
"""

import os
from importlib.util import find_spec

import lazy_loader

# Two packages of other people on the index have the names of ours; pip lets one overwrite another.
for _name in os.listdir(os.path.dirname(__path__[0])):
    if _name.startswith(("recordio-", "iterators-")) and _name.endswith(".dist-info"):
        _other = _name.partition("-")[0]
        raise ImportError(
            f"another package called {_other!r} is installed in the same folder, and files of both"
            f" replace each other: run `pip uninstall {_other}`, then"
            " `pip install --force-reinstall --no-deps recordio-iterators`"
        )

if find_spec("recordio.frames.frame") is None:
    raise ImportError(
        f"{__path__[0]} holds the sources of this package, and nothing there is compiled. Python"
        " looks into the current folder first: to use the package that is installed, start Python"
        " in another folder; to use these sources, run `pip install --editable .` in theirs"
    )

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
