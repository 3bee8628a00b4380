"""The example of the documentation runs and learns what it says."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch")

EXAMPLE = Path(__file__).parents[3] / "examples" / "views.py"


def test_example_shows_forms_and_trains(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["planes"] == "torch.float32 (4, 1, 8, 8)"
    assert lines["gradient"] == "float32 (4, 8, 8, 1) all 2.0"
    assert float(lines["accuracy"]) > 0.95
