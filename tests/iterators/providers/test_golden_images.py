"""Batches of MXNet 1.9.1 for the record files in tests/golden, compared with ours."""

import json
from pathlib import Path

import numpy as np
import pytest

import iterators

GOLDEN = Path(__file__).parents[2] / "golden"
CASES = json.loads((GOLDEN / "image_cases.json").read_text())
# Grey levels by which a pixel may differ.  Without resampling PNG files are exact; MXNet's wheel
# holds another JPEG library, and other roundings of OpenCV's vectorised cubic.
TOLERANCE = {"jpeg": 3, "inter2": 2, "resize": 1, "resize_up": 1} | {
    f"inter{method}": 1 for method in (0, 1, 3, 4)
}


@pytest.fixture(scope="module")
def expected():
    with np.load(GOLDEN / "image_batches.npz") as file:
        return dict(file)


def batches_of(name, **more):
    case = CASES[name]
    arguments = {
        key: str(GOLDEN / value) if key.startswith("path_") else value
        for key, value in case["args"].items()
    }
    provider = getattr(iterators, case["class"])(**(arguments | more))
    assert [(d.name, list(d.shape)) for d in provider.provide_data] == [
        (n, s) for n, s in case["provide_data"]
    ]
    assert [(d.name, list(d.shape)) for d in provider.provide_label] == [
        (n, s) for n, s in case["provide_label"]
    ]
    return provider


@pytest.mark.parametrize("name", [n for n in CASES if hasattr(iterators, CASES[n]["class"])])
def test_an_epoch_is_that_of_mxnet(name, expected):
    with batches_of(name) as provider:
        batches = list(provider)
    numbers = {int(key.split("/")[2]) for key in expected if key.startswith(f"{name}/0/")}
    assert len(batches) == len(numbers)
    for number, batch in enumerate(batches):
        golden = {key: expected[f"{name}/0/{number}/{key}"] for key in ("data", "label")}
        real = batch.count  # MXNet leaves padding undefined and its count wrong
        data = batch.data[0][:real].astype(np.float32)
        difference = np.abs(data - golden["data"][:real].astype(np.float32)).max()
        assert difference <= TOLERANCE.get(name, 0)
        assert np.array_equal(batch.label[0][:real], golden["label"][:real])
