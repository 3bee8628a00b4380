"""The systems; `__init__.py` loads each of them by this list."""

from . import chainer as chainer
from . import dp as dp
from . import mxnet as mxnet
from . import pylearn2 as pylearn2
