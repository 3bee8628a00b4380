"""The commands run from a checkout by the path of their file, wherever one stands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not any((ROOT / "recordio" / "frames").glob("*.so")), reason="nothing is compiled in place"
)


@pytest.mark.parametrize("name", ["cli", "im2rec", "rec2idx"])
def test_a_command_runs_by_its_path(name, tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / f"{name}.py", "--help"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")


def test_its_errors_have_exit_codes(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "rec2idx.py", tmp_path / "none.rec", tmp_path / "a.idx"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "none.rec" in done.stderr
