"""Scripts written for MXNet 1.9.1 give here what they gave there, with one line changed."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

TESTS = Path(__file__).parents[2]
sys.path.insert(0, str(TESTS / "compat_scripts"))
import run_scripts  # noqa: E402

GOLDEN = TESTS / "golden"
EXPECTED = json.loads((GOLDEN / "compat_scripts.json").read_text())

#: Scripts whose numbers may differ in their last digits; those of the others are equal.
DIGITS = {
    "arrays": 1e-6,
    "augmenters": 1e-4,
    "colour_distortion": 1e-6,
    "csv_iter": 1e-6,
    "gluon_transforms": 1e-4,
    "image_functions": 1e-4,
    "libsvm_iter": 1e-6,
}
#: Results that differ by a level of grey: OpenCV rounds cubic weights otherwise today.
LEVELS = {("augmenters", "chain"): 1}


def test_there_are_at_least_twenty_scripts_and_a_result_of_each():
    assert [path.stem for path in run_scripts.scripts()] == sorted(EXPECTED)
    assert len(EXPECTED) >= 20


@pytest.mark.parametrize("path", run_scripts.scripts(), ids=lambda path: path.stem)
def test_a_script_gives_what_it_gives_with_mxnet(path, tmp_path):
    text, changes = run_scripts.changed(path.read_text())
    assert changes == 1, "exactly one line changes"
    script = tmp_path / path.name
    script.write_text(text)
    found = json.loads(json.dumps(run_scripts.run(script, GOLDEN, tmp_path)))
    expected = EXPECTED[path.stem]
    assert list(found) == list(expected) and expected
    for name, value in expected.items():
        tolerance = LEVELS.get((path.stem, name), DIGITS.get(path.stem, 0))
        assert_same(found[name], value, tolerance, name)


def assert_same(found, expected, tolerance, name):
    first = expected[0] if isinstance(expected, list) and expected else expected
    if isinstance(first, str | bool | None):
        assert found == expected, name
    elif isinstance(first, list):
        assert len(found) == len(expected), name
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other, tolerance, name)
    else:
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=name)
