"""Layouts of the forms that views offer.

Every function takes the layout of a base and gives a pair for `iterators.core.layout.plan`: the
base as the conversion has to see it, and the result.  No array comes here.
"""

from __future__ import annotations

from ..core.layout import Layout

#: The axes of dp: batch, features, class or slot, channel, height, width or position, depth.
LETTERS = "bftchwd"

Pair = tuple[Layout, Layout]


def flat(base: Layout) -> Pair:
    """Plan ``bf``: the batch changes places with the first axis, the rest is flattened."""
    if base.axes == "b":
        return base, Layout("bf", f=1)
    # An axis called f would have to hold itself; what it is called here is of no consequence.
    spare = next(letter for letter in "xyzuvqrs" if letter not in base.axes)
    axes = base.axes.replace("f", spare)
    sizes = {axis.replace("f", spare): size for axis, size in base.sizes.items()}
    order = list(axes)
    batch = order.index("b")
    order[0], order[batch] = order[batch], order[0]
    return Layout(axes, **sizes), Layout("bf", f_order="".join(order[1:]), **sizes)


def only_column(base: Layout) -> Pair:
    """Plan ``b``: the only feature of each row, of a base ``b`` or ``bf``."""
    if base.axes not in ("b", "bf", "fb"):
        raise ValueError(f"a base of {base.axes!r} has no form 'b': only 'b' and 'bf' have")
    if base.sizes.get("f", 1) != 1:
        raise ValueError(
            f"{base.sizes['f']} features cannot be given as 'b', which has room for one"
        )
    return base, Layout("b")


def permuted(base: Layout, axes: str) -> Pair:
    """Plan the same axes in another order."""
    if sorted(axes) != sorted(base.axes):
        raise ValueError(
            f"a base of {base.axes!r} cannot be given as {axes!r}: "
            "both need the same axes, in any order"
        )
    return base, base.replace(axes)


def primary(base: Layout) -> Pair:
    """Plan ``b`` of classes: position 0 of ``t``."""
    _check_classes(base, "b")
    return base, Layout("b") if base.axes == "b" else Layout("b", t_at=0)


def slots(base: Layout) -> Pair:
    """Plan ``bt`` of classes; a base of ``b`` gets one slot."""
    _check_classes(base, "bt")
    return base, Layout("bt", t=base.sizes.get("t", 1))


def _check_classes(base: Layout, form: str) -> None:
    if base.axes not in ("b", "bt", "tb"):
        raise ValueError(
            f"a base of {base.axes!r} cannot be given as {form!r}: "
            "classes are given as 'b', 'bt' or 'tb'"
        )
