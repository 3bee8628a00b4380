"""A short run of `fuzz_text.py`; ``FUZZ_SECONDS=60`` makes it a long one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest


def test_damaged_files_never_crash_hang_or_take_much_memory():
    seconds = float(os.environ.get("FUZZ_SECONDS", "3"))
    # A long run looks at other files every time; the last line says which one it was.
    seed = int(os.environ.get("FUZZ_SEED", "0" if seconds < 10 else str(time.time_ns())))
    command = [
        sys.executable,
        str(Path(__file__).with_name("fuzz_text.py")),
        str(seconds),
        str(seed),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120)
    except subprocess.TimeoutExpired as error:
        last = (error.stdout or b"").decode().splitlines()[-1:]
        pytest.fail(f"no end in {last}: {error}")
    rounds = done.stdout.splitlines()
    assert done.returncode == 0, (done.returncode, rounds[-1:], done.stderr[-4000:])
    assert len(rounds) > 1
