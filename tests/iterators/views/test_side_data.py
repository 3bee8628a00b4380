"""What travels along with a batch."""

import numpy as np
import pytest

from iterators import DataView
from iterators.views import Carry


def test_rows_of_views_and_objects_as_they_are():
    thing = object()
    view = DataView("bf", np.arange(10.0).reshape(5, 2))
    carry = Carry({"thing": thing}, {"view": view})
    carry.put_obj("other", 3)
    assert carry.get_obj("thing") is thing and carry.get_view("view") is view
    for part, expected in ((carry.sub(1, 3), [1, 2]), (carry.index([4, 0]), [4, 0])):
        assert part.get_obj("thing") is thing and part.get_obj("other") == 3
        assert (part.get_view("view").forward_get("bf")[:, 0] / 2).tolist() == expected
    other = carry.clone()
    other.put_obj("other", 4)
    other.put_view("new", view)
    assert carry.get_obj("other") == 3 and carry.get_view("new") is None
    assert (
        carry.get_obj("nothing") is None
        and repr(other) == "Carry(['thing', 'other'], ['view', 'new'])"
    )


def test_only_views_are_views():
    with pytest.raises(TypeError, match="put_obj"):
        Carry(view_store={"view": np.zeros(3)})
