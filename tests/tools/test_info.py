"""`recordio info`: counts, JSON, and damage."""

import json

import numpy as np
import pytest

from iterators.testing import write_faces, write_pack, write_records
from recordio.tools.info import collect_info, format_info


@pytest.fixture
def face_pack(tmp_path, images):
    """Five images of two people, in the layout of the InsightFace packs."""
    contents = [images.jpeg(key + 9) for key in range(1, 6)]
    return write_faces(tmp_path / "faces.rec", [3, 2], contents).with_suffix("")


def test_everything_is_counted(photo_folder, tmp_path, command):
    assert command("from-imagefolder", photo_folder, tmp_path / "p") == 0
    info = collect_info(str(tmp_path / "p"))
    assert info.ok
    assert (info.records, info.headers, info.index_lines) == (20, 20, 20)
    assert info.kinds == {"jpeg": 12, "png": 8}
    assert info.labels == {"min": 0, "max": 1, "distinct": 2}
    assert info.label_widths == {"1": 20}
    assert info.ids_are_keys is True
    assert info.shapes["30 x 20 x 3"] == 2
    assert sum(info.shapes.values()) == 20
    assert 0 < info.sizes["min"] <= info.sizes["median"] <= info.sizes["max"]
    assert "20 lines, keys are the ids" in format_info(info)


def test_json_is_json_whatever_the_labels_are(tmp_path, command, capsys):
    np.save(tmp_path / "a.npy", np.eye(3))
    np.save(tmp_path / "l.npy", [np.nan, np.inf, np.nan])
    words = ["from-numpy", tmp_path / "a.npy", tmp_path / "t", "--labels", tmp_path / "l.npy"]
    assert command(*words) == 0
    assert command("info", tmp_path / "t.rec", "--json") == 0

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    found = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert found["labels"] == {"min": None, "max": None, "distinct": 2}
    assert found["shapes"] == {"float64 (3,)": 3}
    assert command("info", tmp_path / "t.rec") == 0
    assert "not finite" in capsys.readouterr().out


def test_identities_of_face_packs_are_counted_and_left_out_of_exports(
    face_pack, tmp_path, command, capsys
):
    info = collect_info(str(face_pack))
    assert info.identities == 2
    assert info.kinds == {"jpeg": 5, "empty": 3}
    assert command("export", face_pack, tmp_path / "x") == 0
    assert "3 records only list identities" in capsys.readouterr().err
    found = sorted(path.relative_to(tmp_path / "x").as_posix() for path in tmp_path.rglob("*.jpg"))
    assert found == ["0/1.jpg", "0/2.jpg", "0/3.jpg", "1/4.jpg", "1/5.jpg"]


@pytest.mark.parametrize("with_index", [True, False])
def test_damage_is_listed_and_the_rest_counted(photo_folder, tmp_path, command, capsys, with_index):
    assert command("from-imagefolder", photo_folder, tmp_path / "p") == 0
    data = bytearray((tmp_path / "p.rec").read_bytes())
    third = [int(line.split()[1]) for line in (tmp_path / "p.idx").read_text().splitlines()][2]
    data[third] ^= 1
    (tmp_path / "p.rec").write_bytes(data[:-8])
    if not with_index:
        (tmp_path / "p.idx").unlink()
    info = collect_info(str(tmp_path / "p.rec"))
    assert not info.ok
    assert info.records == sum(info.kinds.values()) == 18
    assert any(f"offset {third}" in problem for problem in info.problems)
    assert command("info", tmp_path / "p") == 1
    assert f"offset {third}" in capsys.readouterr().out


def test_damaged_images_are_counted(tmp_path, command, images):
    contents = [images.jpeg(), images.jpeg()[:-9], images.bomb(), b"\x93NUMPY", b"any"]
    write_pack(tmp_path / "a.rec", contents, index=False)
    info = collect_info(str(tmp_path / "a.rec"))
    assert info.damaged_contents == 2
    assert info.problems == []
    assert command("info", tmp_path / "a.rec") == 1


def test_records_without_headers_and_empty_files(tmp_path, command, capsys):
    text = b"a line of plain text, longer than a header"
    write_records(tmp_path / "a.rec", [text], index=False)
    assert command("info", tmp_path / "a") == 0
    assert "no record begins with an image header" in capsys.readouterr().out
    (tmp_path / "b.rec").touch()
    assert command("info", tmp_path / "b") == 0
    assert "records     0" in capsys.readouterr().out


def test_an_index_of_another_file_is_a_problem(photo_folder, tmp_path, command, capsys):
    assert command("from-imagefolder", photo_folder, tmp_path / "p") == 0
    (tmp_path / "p.idx").write_text("0\t0\n1\t999999999\n")
    assert command("info", tmp_path / "p") == 1
    assert "p.idx" in capsys.readouterr().out
    (tmp_path / "p.idx").write_text("no index\n")
    assert command("info", tmp_path / "p") == 1
    assert "unreadable" in capsys.readouterr().out
