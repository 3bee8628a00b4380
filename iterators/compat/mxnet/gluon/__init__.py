"""Names of `mx.gluon`: data sets, and the blocks that transforms are made of."""

from ..elsewhere import stand_in
from . import block as block
from . import data as data
from . import nn as nn
from . import utils as utils
from .block import Block as Block
from .block import HybridBlock as HybridBlock

globals().update(stand_in(__name__, "gluon"))
