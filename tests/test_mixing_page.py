"""The code of docs/how-to/mixing.md runs as it stands, with packs under the names that it uses."""

import re
from pathlib import Path

import cv2
import numpy as np
import pytest

import recordio

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "mixing.md"
CODE = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.S | re.M)


def write(path, labels):
    path.parent.mkdir(exist_ok=True)
    with recordio.RecordWriter(path) as writer:
        for key, label in enumerate(labels):
            image = cv2.imencode(".png", np.full((120, 120, 3), key % 251, np.uint8))[1].tobytes()
            writer.write(recordio.pack(recordio.IRHeader(0, float(label), key, 0), image))


@pytest.mark.parametrize("number", range(len(CODE)))
def test_code_runs(tmp_path, monkeypatch, number):
    write(tmp_path / "ms1mv3" / "train.rec", np.arange(700) % 140)
    write(tmp_path / "mine" / "train.rec", np.arange(40) % 4)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec("from iterators import ImageRecordIter, Pack\n" + CODE[number], names)
    if "train" in names:
        with names["train"] as train:
            assert train.num_classes == 144
            assert next(iter(train)).data[0].shape == (512, 3, 112, 112)


def test_there_is_code():
    assert len(CODE) == 3
