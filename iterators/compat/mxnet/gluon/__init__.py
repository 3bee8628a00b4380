"""Names of `mx.gluon`: data sets, and the blocks that transforms are made of."""

from ...training_stubs import TRAINING, stand_in
from . import block as block
from . import data as data
from . import nn as nn
from . import utils as utils
from .block import Block as Block
from .block import HybridBlock as HybridBlock

#: Parts of gluon that train models.
MODELS = "Parameter ParameterDict Trainer contrib loss model_zoo rnn"

globals().update(stand_in(__name__, "mx.gluon", dict.fromkeys(MODELS.split(), TRAINING)))
