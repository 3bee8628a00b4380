"""`iterators.mx_image` returns what MXNet 1.9.1 returns for the same calls and seeds."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from iterators import mx_image

_spec = importlib.util.spec_from_file_location(
    "mxnet_cases", Path(__file__).with_name("mxnet_cases.py")
)
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)


@pytest.fixture(scope="module")
def judged(golden):
    with np.load(golden / "mx_image_functions.npz") as file:
        return dict(file)


def check(found, judged, name):
    expected, array = judged[name], np.asarray(found[name])
    assert array.shape == expected.shape and array.dtype == expected.dtype
    if array.dtype == np.uint8 or array.dtype.kind == "i":
        np.testing.assert_array_equal(array, expected)
    else:
        np.testing.assert_allclose(array, expected, rtol=2e-5, atol=2e-4)


def names_of(judged, kinds):
    return [name for name in judged if name.split("/")[0] in kinds]


def test_functions_and_augmenters_of_images(judged):
    found = cases.functions(mx_image, np.array, np.asarray)
    names = names_of(judged, ("noise", "slope"))
    assert sorted(found) == sorted(names) and len(names) > 100
    for name in names:
        check(found, judged, name)


def test_rotations(judged):
    found = cases.rotations(mx_image, np.array, np.asarray)
    names = names_of(judged, ("rotate",))
    assert sorted(found) == sorted(names) and len(names) == 15
    for name in names:
        np.testing.assert_allclose(found[name], judged[name], atol=0.02)


def test_detection_augmenters(judged):
    found = cases.detection(mx_image, np.array, np.asarray)
    names = names_of(judged, ("det",))
    assert sorted(found) == sorted(names) and len(names) == 60
    for name in names:
        check(found, judged, name)


def test_epochs_of_detection_batches(judged, tmp_path):
    found = cases.epochs(mx_image, tmp_path, np.asarray)
    names = names_of(judged, ("epochs",))
    assert sorted(found) == sorted(names) and len(names) >= 24
    for name in names:
        check(found, judged, name)


def test_dumps(judged):
    def rounded(text):  # MXNet keeps means as float32 in one of its two functions
        return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.4g}", text)

    expected = [rounded(text) for text in judged["described"].tolist()]
    assert [rounded(text) for text in cases.described(mx_image).tolist()] == expected
