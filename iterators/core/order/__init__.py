"""The order of examples, and the end of each batch: every order of this library, side by side.

`cutting` cuts positions into batches, and `position` says where a run is; all others follow these
two.  Permutations, blocks and weights (`epochs`), several packs as one and classes in turn
(`mixed`) are dealt to parts (`parts`) and planned as batches (`plans`).  Beside them are the orders
of the older designs: Pylearn2's modes (`modes`), Chainer's sweeps (`sweeps`, `sweep_orders`) and
dp's samplers (`sampling`).
"""

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

__all__ = [
    "BatchPlan",
    "BlockOrder",
    "ClassOrder",
    "DealtOrder",
    "EpochOrder",
    "MixedOrder",
    "Order",
    "PartRule",
    "PlainOrder",
    "RollOverPlan",
    "SequentialOrder",
    "ShuffledOrder",
    "Tail",
    "WeightedOrder",
    "as_weights",
    "check_of",
    "make_epoch_order",
    "make_order",
]
