"""The order of examples, and the end of each batch: every order of this library, side by side.

`cutting` cuts positions into batches, and `position` says where a run is; all others follow these
two.  Permutations, blocks and weights (`epochs`), several packs as one and classes in turn
(`mixed`) are dealt to parts (`parts`) and planned as batches (`plans`), of one shape, of the shapes
of `buckets`, or of as many `tokens` each.  Beside them are the orders
of the older designs: Pylearn2's modes (`modes`), Chainer's sweeps (`sweeps`, `sweep_orders`) and
dp's samplers (`sampling`).
"""

from .buckets import BucketPlan, Buckets, Members
from .cutting import Tail
from .epochs import BlockOrder, EpochOrder, PlainOrder, ShuffledOrder, WeightedOrder, check_of
from .mixed import ClassOrder, MixedOrder
from .parts import (
    DealtOrder,
    Order,
    PartRule,
    SequentialOrder,
    as_weights,
    make_epoch_order,
    make_order,
)
from .plans import BatchPlan, RollOverPlan
from .tokens import TokenPlan, naflex_size

__all__ = [
    "BatchPlan",
    "BlockOrder",
    "BucketPlan",
    "Buckets",
    "ClassOrder",
    "DealtOrder",
    "EpochOrder",
    "Members",
    "MixedOrder",
    "Order",
    "PartRule",
    "PlainOrder",
    "RollOverPlan",
    "SequentialOrder",
    "ShuffledOrder",
    "Tail",
    "TokenPlan",
    "WeightedOrder",
    "as_weights",
    "check_of",
    "make_epoch_order",
    "make_order",
    "naflex_size",
]
