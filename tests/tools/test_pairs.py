"""Verification sets in commands: `recordio info` and `recordio from-bin`, and what others say."""

import json
import pickle

import numpy as np
import pytest

import recordio
from iterators import ImageRecordIter, VerificationPairs
from recordio.convert import from_bin
from recordio.tools.cli import main


def images(count, size=16):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (count, size, size, 3), np.uint8)
    return [recordio.encode_image(one, "png") for one in pixels]


@pytest.fixture
def path(tmp_path):
    """A set of 3 pairs."""
    path = tmp_path / "lfw.bin"
    path.write_bytes(pickle.dumps((images(6), [True, False, True]), 2))
    return path


def test_info(path, capsys):
    assert main(["info", str(path)]) == 0
    text = capsys.readouterr().out
    assert "pairs       3: 2 the same, 1 different" in text
    assert "shapes      6 x 16 x 16 x 3" in text
    assert "problems    none" in text
    assert main(["info", "--json", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["pairs"], found["same"], found["images"], found["kinds"]) == (3, 2, 6, {"png": 6})


def test_info_of_damage(path, capsys):
    stored = images(6)
    stored[4] = stored[4][:30]
    path.write_bytes(pickle.dumps((stored, [True, False, True])))
    assert main(["info", str(path)]) == 1
    assert "problems    image 4: " in capsys.readouterr().out
    path.write_bytes(pickle.dumps((stored, [True, False])))
    assert main(["info", str(path)]) != 0
    assert "says of 2 pairs" in capsys.readouterr().err


def test_pairs_are_packed_and_read_back(path, tmp_path, capsys):
    assert main(["from-bin", str(path), str(tmp_path / "lfw")]) == 0
    capsys.readouterr()
    pairs = VerificationPairs(path)
    with recordio.RecordReader(tmp_path / "lfw.rec", tmp_path / "lfw.idx") as reader:
        assert reader.keys.tolist() == list(range(6))
        for key in range(6):
            header, content = recordio.unpack(reader.by_key(key))
            assert (header.id, header.flag, header.label) == (key, 0, pairs.same[key // 2])
            assert bytes(content) == pairs.images[key]
    provider = ImageRecordIter(
        path_imgrec=tmp_path / "lfw.rec", data_shape=(3, 16, 16), batch_size=6, layout="NHWC"
    )
    batch = next(iter(provider))
    assert batch.label[0].tolist() == [1, 1, 0, 0, 1, 1]
    for i, (first, second, _) in enumerate(pairs):
        assert np.array_equal(batch.data[0][2 * i], first)
        assert np.array_equal(batch.data[0][2 * i + 1], second)


def test_a_pair_is_left_out_as_a_whole(path, tmp_path):
    stored = images(6)
    stored[3] = b"no image"
    path.write_bytes(pickle.dumps((stored, [True, False, True])))
    report = from_bin(path, tmp_path / "lfw")
    assert report.records == 4
    assert [item.path.partition(", ")[2] for item in report.skipped] == ["image 2", "image 3"]
    assert all("pair 1 is left out: image 3" in item.reason for item in report.skipped)
    with recordio.RecordReader(tmp_path / "lfw.rec", tmp_path / "lfw.idx") as reader:
        assert reader.keys.tolist() == [0, 1, 4, 5]


def test_other_commands_say_what_it_is(path, tmp_path, capsys):
    assert main(["pack", str(path), str(tmp_path / "out")]) != 0
    error = capsys.readouterr().err
    assert "pickle" in error and "from-bin" in error
