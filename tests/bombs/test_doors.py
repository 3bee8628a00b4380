"""No small file takes much memory or time, at whatever door: `bombs.py` times `doors.py`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bombs import BOMBS

pytest.importorskip("cv2", reason="some doors are OpenCV's")

#: The largest costs measured were 60 MB and 0.2 seconds; without limits they are gigabytes, and
#: seconds for each bomb.
MOST_MEGABYTES, MOST_SECONDS = 150, 1.5

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="costs are measured as Linux tells them"),
    pytest.mark.address_space,
]


@pytest.fixture(scope="module")
def costs():
    """``costs(bomb)``: what it cost at each door; one process measures all, bomb after bomb."""
    with subprocess.Popen(
        [sys.executable, Path(__file__).with_name("doors.py")], stdout=subprocess.PIPE
    ) as process:
        found, complete = {}, set()

        def read(bomb):
            while bomb not in complete:
                row = json.loads(process.stdout.readline())
                found.setdefault(row["bomb"], []).append(row)
                complete.update([row["bomb"]] if row["last"] else [])
            return found[bomb]

        yield read
        process.kill()


@pytest.mark.libjpeg
def test_every_door_takes_a_sound_image(costs):
    assert {row["door"]: row["end"] for row in costs("sound") if row["end"] != "done"} == {}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_costs_little_at_every_door(costs, bomb):
    found = costs(bomb)
    assert len(found) > 30
    for row in found:
        assert row["mb"] < MOST_MEGABYTES, row
        assert row["seconds"] < MOST_SECONDS, row
        assert not row["end"].startswith("failed"), row


def test_the_bombs_are_small(costs):
    assert max(costs(bomb)[0]["bytes"] for bomb in BOMBS) < 1 << 18
