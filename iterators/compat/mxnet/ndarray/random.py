"""Names of `mx.nd.random`: those of `mx.random`."""

from ..random import normal as normal
from ..random import randint as randint
from ..random import randn as randn
from ..random import seed as seed
from ..random import shuffle as shuffle
from ..random import uniform as uniform
