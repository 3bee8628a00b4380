"""Packs that are opened without reading them: rows, identities and errors."""

import numpy as np
import pytest

import recordio
from recordio import RecordReader
from recordio.errors import CorruptRecordError, RecordIOError
from recordio.packs.names import pack_files
from recordio.packs.open_pack import OpenPack, open_listed, open_pack


def test_opening_reads_nothing(tmp_path):
    pack = OpenPack(tmp_path / "missing.rec", tmp_path / "missing.idx")
    assert pack.prefix == str(tmp_path / "missing")
    with pytest.raises(OSError, match="missing"):
        len(pack)


def test_rows_are_in_the_order_of_the_file_whatever_the_index_says(packs):
    path = packs.plain("a", range(5))
    index = path.with_suffix(".idx")
    index.write_text("".join(reversed(index.read_text().splitlines(keepends=True))))
    with OpenPack(*pack_files(path)) as pack, RecordReader(path) as reader:
        assert np.array_equal(pack.offsets, reader.offsets)
        assert pack.keys.tolist() == pack.numbers.tolist() == list(range(5))
        assert pack.lines[0].tolist() == [4, 3, 2, 1, 0]
        assert [pack.record(row) for row in range(5)] == list(reader)


@pytest.mark.parametrize("index", [True, False])
def test_identities_are_left_out_of_rows_and_keep_their_numbers(packs, index):
    path = packs.faces("a", [2, 0, 3], index)
    with OpenPack(*pack_files(path)) as pack:
        assert len(pack.faces) == 3 and pack.keys.tolist() == [1, 2, 3, 4, 5]
        assert pack.image_spans().tolist() == [[0, 2], [2, 2], [2, 5]]
        assert pack.location(0) == {"path": str(path), "offset": int(pack.offsets[0]), "record": 1}
    with OpenPack(*pack_files(path), everything=True) as pack:
        assert len(pack) == 9


def test_images_must_lie_identity_by_identity(packs):
    path = packs.faces("a", [2, 2])
    index = path.with_suffix(".idx")
    lines = [line.split() for line in index.read_text().splitlines()]
    lines[1][0], lines[4][0] = lines[4][0], lines[1][0]
    index.write_text("".join(f"{key}\t{offset}\n" for key, offset in lines))
    with OpenPack(*pack_files(path)) as pack, pytest.raises(RecordIOError, match="--by key"):
        pack.image_spans()


def test_an_error_names_the_number_of_the_record(packs):
    path = packs.plain("a", range(5))
    with OpenPack(*pack_files(path)) as pack:
        data = bytearray(path.read_bytes())
        data[pack.offsets[3]] ^= 1
        path.write_bytes(data)
    with OpenPack(*pack_files(path)) as pack, pytest.raises(CorruptRecordError) as error:
        pack.record(3)
    assert (error.value.record, error.value.offset) == (3, int(pack.offsets[3]))


def test_what_lies_beside_it_is_found_when_asked_for(packs):
    path = packs.plain("a", range(3))
    with open_pack(path.with_suffix("")) as pack:
        assert (pack.list_path, pack.entries, pack.checksums_path, pack.manifest) == (
            None,
            {},
            None,
            None,
        )
    path.with_suffix(".lst").write_text("# names\n1\t5\tb.jpg\nbad\n0\t7\ta.jpg\n")
    recordio.frames.check.write_checksums(path)
    with open_pack(path) as pack:
        assert pack.entries == {1: (1, (5.0,), "b.jpg"), 0: (0, (7.0,), "a.jpg")}
        assert (pack.list_path, pack.checksums_path) == (
            str(path.with_suffix(".lst")),
            str(path.with_suffix(".crc")),
        )


def test_files_of_a_manifest_know_it(packs, parts):
    recordio.shard(packs.faces("a", [2, 2]), parts, 2)
    opened = open_listed(str(parts / "a.shards.json"))
    assert [pack.manifest.identities for pack in opened] == [2, 2]
    other = str(packs.plain("b", range(2)))
    with pytest.raises(ValueError, match="identities of its own"):
        open_listed([other, str(parts / "a.shards.json")])
