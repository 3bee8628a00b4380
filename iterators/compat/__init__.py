"""Floor 4: names of older systems, for their scripts: `mxnet`, `chainer`, `pylearn2` and `dp`.

A system has its names that exist here, and nothing else does.  The classes behind them live
elsewhere, most of them on the top level of `iterators` as well; only arrays of `mxnet` have a class
of their own.  A system is loaded when it is first asked for; the names of the design note of 2010
are `iterators.samples`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
