"""Positions in turns and streams of samplers."""

from iterators.core.order.cutting import Position
from iterators.views.samplers import in_turn, streams


def test_the_last_rows_of_a_turn():
    rows, behind = in_turn(Position(0, 3), size=5, batch_size=3)
    assert rows.tolist() == [3, 4]
    assert behind == Position(epoch=1, done=0)


def test_streams_side_by_side():
    rows, step, behind = streams(Position(0, 2), size=9, batch_size=3, stride=1)
    assert rows.tolist() == [2, 5, 8]
    assert (step, behind) == (2, Position(epoch=1, done=0))


def test_a_position_under_the_names_of_its_owner():
    found = Position.saved({"turn": 3, "start": 8}, done="start", epoch="turn")
    assert found == Position(epoch=3, done=8)
