"""Pylearn2's module tree, as far as it concerns data: ``from iterators.compat import pylearn2``.

Parts that train models can be imported, and using them is an error that says so.
"""

from ..training_stubs import TRAINING, stand_in
from . import datasets as datasets
from . import format as format
from . import space as space
from . import utils as utils

#: Parts of Pylearn2 that train models.
MODELS = """
base blocks config corruption costs cross_validation energy_functions expr gui linear models
monitor optimization scripts termination_criteria testing train train_extensions
training_algorithms
"""

globals().update(stand_in(__name__, "pylearn2", dict.fromkeys(MODELS.split(), TRAINING)))
