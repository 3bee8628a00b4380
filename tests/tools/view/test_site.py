"""Addresses of pages."""

from recordio.tools.view.site import address


def test_parameters_without_a_value_are_left_out():
    assert (
        address("pack", "train", "", at=60, where="label == 3", by="")
        == "/pack/train/?at=60&where=label+%3D%3D+3"
    )
