"""Chainer's module tree, as far as it concerns data: ``from iterators.compat import chainer``.

Parts that train models can be imported, and using them is an error that says so.
"""

from ..training_stubs import TRAINING, stand_in
from . import backend as backend
from . import dataset as dataset
from . import datasets as datasets
from . import iterators as iterators
from . import serializer as serializer
from . import serializers as serializers
from .backend import get_device as get_device
from .serializer import Deserializer as Deserializer
from .serializer import Serializer as Serializer

#: Parts of Chainer that train models, and classes of them.
MODELS = """
Chain ChainList Function FunctionNode Link Optimizer Parameter Reporter Sequential Variable
as_variable computational_graph config cuda distributions function functions gradient_check
initializers link links optimizer optimizers report reporter testing training using_config utils
variable
"""

globals().update(stand_in(__name__, "chainer", dict.fromkeys(MODELS.split(), TRAINING)))
