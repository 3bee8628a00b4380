"""Which layouts are meant by the forms that views offer.

Every function takes the layout of a base and gives a pair for `iterators.core.layout.plan`: the
base as the conversion has to see it, and the result.  No array comes here.
"""

from __future__ import annotations

from ..core.layout import Layout

__all__ = ["LETTERS", "flat", "only_column", "permuted", "primary", "slots"]

#: The axes of dp: batch, features, class or slot, channel, height, width or position, depth.
LETTERS = "bftchwd"

Pair = tuple[Layout, Layout]


def flat(base: Layout) -> Pair:
    """``bf``: the batch changes places with the first axis, the rest is flattened.

    Examples
    --------
    >>> flat(Layout("chwb", c=3, h=8, w=8))[1]
    Layout('bf', f=192, f_order='hwc', h=8, w=8, c=3)
    """
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
    """``b``: the only feature of each row.

    Raises
    ------
    ValueError
        If the base is neither ``b`` nor ``bf``, or there are several features.

    Examples
    --------
    >>> only_column(Layout("bf", f=1))[1]
    Layout('b')
    """
    if base.axes not in ("b", "bf", "fb"):
        raise ValueError(f"a base of {base.axes!r} has no form 'b': only 'b' and 'bf' have")
    if base.sizes.get("f", 1) != 1:
        raise ValueError(
            f"{base.sizes['f']} features cannot be given as 'b', which has room for one"
        )
    return base, Layout("b")


def permuted(base: Layout, axes: str) -> Pair:
    """The same axes in another order.

    Raises
    ------
    ValueError
        If the axes are not those of the base.

    Examples
    --------
    >>> permuted(Layout("bchw", c=3, h=8, w=8), "chwb")[1]
    Layout('chwb', c=3, h=8, w=8)
    """
    if sorted(axes) != sorted(base.axes):
        raise ValueError(
            f"a base of {base.axes!r} cannot be given as {axes!r}: "
            "both need the same axes, in any order"
        )
    return base, base.replace(axes)


def primary(base: Layout) -> Pair:
    """``b`` of classes: position 0 of ``t``.

    Examples
    --------
    >>> primary(Layout("bt", t=5))[1]
    Layout('b', t_at=0)
    """
    _check_classes(base, "b")
    return base, Layout("b") if base.axes == "b" else Layout("b", t_at=0)


def slots(base: Layout) -> Pair:
    """``bt`` of classes; a base of ``b`` gets one slot.

    Examples
    --------
    >>> slots(Layout("b"))[1], slots(Layout("tb", t=5))[1]
    (Layout('bt', t=1), Layout('bt', t=5))
    """
    _check_classes(base, "bt")
    return base, Layout("bt", t=base.sizes.get("t", 1))


def _check_classes(base: Layout, form: str) -> None:
    if base.axes not in ("b", "bt", "tb"):
        raise ValueError(
            f"a base of {base.axes!r} cannot be given as {form!r}: "
            "classes are given as 'b', 'bt' or 'tb'"
        )
