"""Records and arrays to batches, for NumPy and PyTorch.

Everything public can be imported from here; ``__init__.pyi`` is the list of names and says where
they live.  A module is loaded when something of it is first asked for, torch only when a device is.

The way of a record to a batch is `core`, `images` and `providers`.  Five older designs stand behind
it: `spaces` (Pylearn2), `views` (torch's ``dp``), `samples` (a design note), `datasets` and `loops`
(Chainer).
"""

import lazy_loader

import recordio  # noqa: F401  (which tells what is wrong where nothing is compiled)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
