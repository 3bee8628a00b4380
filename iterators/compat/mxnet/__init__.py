"""MXNet's module tree, as far as it concerns data: ``from iterators.compat import mxnet as mx``.

`mx.io`, `mx.recordio`, `mx.image`, `mx.gluon.data`, `mx.nd`, contexts and seeds have MXNet's paths
and names over the classes of this package; only here arrays are `NDArray`.  Parts that train models
can be imported, and using them is an error that says so.
"""

from types import ModuleType as _ModuleType

from ...core.batch import AbstractDataBatch as AbstractDataBatch
from ...core.batch import DataBatch as DataBatch
from ...providers.abstract import AbstractDataProvider as AbstractDataProvider
from ...providers.protocol import SlicedNDArray as SlicedNDArray
from ...providers.protocol import count_samples as count_samples
from ...providers.protocol import eachbatch as eachbatch
from ...providers.protocol import get as get
from ...providers.protocol import get_batch_size as get_batch_size
from ...providers.protocol import get_data as get_data
from ...providers.protocol import get_label as get_label
from ...providers.protocol import load_data as load_data
from ...providers.protocol import load_label as load_label
from ...providers.protocol import provide_data as provide_data
from ...providers.protocol import provide_label as provide_label
from ..training_stubs import TRAINING, stand_in
from . import base as base
from . import context as context
from . import gluon as gluon
from . import image as image
from . import io as io
from . import ndarray as ndarray
from . import random as random
from . import recordio as recordio
from . import test_utils as test_utils
from .base import MXNetError as MXNetError
from .context import Context as Context
from .context import cpu as cpu
from .context import cpu_pinned as cpu_pinned
from .context import current_context as current_context
from .context import gpu as gpu
from .io import ArrayDataProvider as ArrayDataProvider
from .io import CSVProvider as CSVProvider
from .io import ImageRecordProvider as ImageRecordProvider
from .io import MNISTProvider as MNISTProvider
from .io import MXDataProvider as MXDataProvider

#: The version of MXNet whose names these are.
__version__ = "1.9.1"

img: _ModuleType = image
nd: _ModuleType = ndarray
rnd: _ModuleType = random
#: Parts of MXNet that train models.
MODELS = """
attribute autograd callback contrib executor init initializer kv kvstore library
lr_scheduler metric mod model module mon monitor onnx operator optimizer rnn sym symbol
visualization viz
"""
#: Other parts of MXNet, and the reason why each is not here.
OTHERS = {
    "engine": "there is no engine: nothing is computed in the background",
    "np": "arrays here are NumPy arrays: import numpy",
    "npx": "arrays here are NumPy arrays: import numpy",
    "numpy": "arrays here are NumPy arrays: import numpy",
    "profiler": "measure with a profiler of Python; provider.stats() has times of the data part",
}

globals().update(stand_in(__name__, "mx", dict.fromkeys(MODELS.split(), TRAINING) | OTHERS))
