"""Names of `pylearn2.datasets.preprocessing`: steps that are fitted and applied to data sets."""

from ....views import GCN as GlobalContrastNormalization  # noqa: F401
from ....views import ZCA as ZCA
from ....views import LeCunLCN as LeCunLCN
from ....views import Pipeline as Pipeline
from ....views import Preprocess as Preprocessor  # noqa: F401
from ....views import Standardize as Standardize
