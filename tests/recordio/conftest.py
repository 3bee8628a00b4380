"""Record files that many tests need."""

from pathlib import Path

import pytest
from hypothesis import settings

from recordio.frames.encoder import encode

# Other work on the machine must not fail a test.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

GOLDEN = Path(__file__).parent.parent / "golden"
MAGIC = b"\x0a\x23\xd7\xce"


@pytest.fixture
def golden():
    """Files written by MXNet: payloads in hex, one a line, the record file and its index."""
    return GOLDEN


@pytest.fixture
def golden_payloads():
    return [bytes.fromhex(line) for line in (GOLDEN / "frames.hex").read_text().split("\n")[:-1]]


@pytest.fixture
def write_records(tmp_path):
    """Write payloads to a record file, and an index if keys are given; returns the path or both."""

    def write(payloads, keys=None, name="some.rec"):
        path = tmp_path / name
        frames = [encode(payload) for payload in payloads]
        path.write_bytes(b"".join(frames))
        if keys is None:
            return path
        offset, lines = 0, []
        for key, frame in zip(keys, frames, strict=True):
            lines.append(f"{key}\t{offset}\n")
            offset += len(frame)
        index = path.with_suffix(".idx")
        index.write_text("".join(lines))
        return path, index

    return write
