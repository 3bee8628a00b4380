"""`recordio export` leaves out records that cannot be stored, and reports them, on request."""

import cv2
import numpy as np
import pytest

import recordio
import recordio.convert
from iterators.testing import write_pack

IMAGE = cv2.imencode(".png", np.full((4, 4), 7, np.uint8))[1].tobytes()


@pytest.fixture
def pack(tmp_path):
    path = write_pack(tmp_path / "a.rec", [IMAGE, b"", IMAGE, b"text"], [1] * 4)
    return path.with_suffix("")


@pytest.mark.parametrize("form", ["folders", "npy", "mnist"])
def test_good_records_are_stored_without_the_others(pack, tmp_path, form):
    with pytest.raises(recordio.RecordIOError, match="record 1"):
        recordio.convert.export(pack, tmp_path / "out", to=form)
    report = recordio.convert.export(pack, tmp_path / "out", to=form, skip_errors=True)
    assert report.records == 2
    assert ["record 1" in report.problems[0], "record 3" in report.problems[1]] == [True, True]
    if form == "folders":
        assert len(list((tmp_path / "out").rglob("*.png"))) == 2
    else:
        made = {"npy": recordio.convert.from_numpy, "mnist": recordio.convert.from_mnist}[form]
        made(*report.paths[:1], *([report.paths[1]] if form == "mnist" else []), tmp_path / "b")
        assert len(recordio.RecordReader(tmp_path / "b.rec")) == 2


def test_an_export_of_nothing_is_an_error(pack, tmp_path):
    with pytest.raises(recordio.RecordIOError, match=r"none of its records can be stored \(4\)"):
        recordio.convert.export(pack, tmp_path / "out.csv", to="csv", skip_errors=True)
    assert not (tmp_path / "out.csv").exists()


def test_the_command_names_what_is_left_out(pack, tmp_path, command, capsys):
    assert command("export", pack, tmp_path / "out") == 1
    assert "it holds nothing, no image" in (said := capsys.readouterr().err)
    assert "--skip-errors" in said
    assert command("export", pack, tmp_path / "out", "--skip-errors") == 0
    assert capsys.readouterr().err.count("left out: ") == 2
