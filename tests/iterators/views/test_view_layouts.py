"""Layouts of the forms of views."""

from iterators import Layout
from iterators.views import view_layouts


def test_layouts_of_the_forms():
    images = Layout("chwb", c=3, h=8, w=8)
    assert view_layouts.flat(images)[1] == Layout("bf", f=192, f_order="hwc", h=8, w=8, c=3)
    assert view_layouts.only_column(Layout("bf", f=1))[1] == Layout("b")
    assert view_layouts.permuted(Layout("bchw", c=3, h=8, w=8), "chwb")[1] == images


def test_layouts_of_classes():
    assert view_layouts.primary(Layout("bt", t=5))[1] == Layout("b", t_at=0)
    assert view_layouts.slots(Layout("b"))[1] == Layout("bt", t=1)
    assert view_layouts.slots(Layout("tb", t=5))[1] == Layout("bt", t=5)
