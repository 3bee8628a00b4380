"""The order of examples, and the end of each batch: every order of this library, side by side.

`cutting` says where a run is and cuts positions into batches; all others follow it.  Permutations,
blocks and weights (`epochs`), several packs as one and classes in turn (`mixed`) are dealt to parts
(`parts`) and planned as batches (`plans`), of one shape or of many, of the shapes of `buckets`, of
as many `tokens` or of at most so much cost (`costs`) each.  The orders of older designs are in
their rooms: `spaces`, `loops` and `views`.
"""

from .buckets import BucketPlan, Buckets, Members
from .costs import CostPlan
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
    "CostPlan",
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
