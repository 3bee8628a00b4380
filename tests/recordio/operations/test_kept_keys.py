"""Copies whose keys stay bring what stands beside their source, and nothing of an older pack."""

import struct

import pytest

import recordio
from iterators.testing import write_pack
from recordio import FieldError, IRHeader, RecordWriter, narrow, pack, repair
from recordio.packs.check import check_pack
from recordio.packs.fields_meta import FieldMeta, format_fields
from recordio.packs.open_pack import open_pack
from recordio.packs.pack_writer import PackWriter
from recordio.tools.optimize import optimize_records

NAMES = "0\tcat\n1\tdog\n"


def write_set(path, classes, field=None, wide=False, checksums=False):
    """Write a pack of four images, with everything beside it."""
    field_names = [field] if field else []
    with PackWriter(
        path,
        path.with_suffix(".idx"),
        field_names,
        checksums,
        lambda: {field: FieldMeta(kind="text")},
    ) as writer:
        for key in (3, 5, 8, 9):
            content = b"image %d" % key
            header = struct.pack("IdQQ", 0, key % 2, key, 0) if wide else b""
            record = header + content if wide else pack(IRHeader(0, key % 2, key, 0), content)
            writer.write(record, key)
            if field:
                writer.fields[field].write(pack(IRHeader(0, 0, key, 0), b"text %d" % key), key)
    path.with_suffix(".classes.txt").write_text(classes)
    path.with_suffix(".lst").write_text("".join(f"{key}\t0\t{key}.jpg\n" for key in (3, 5, 8, 9)))
    return path


def optimized(source, out):
    optimize_records(str(source), str(out.with_suffix("")), str(source.with_suffix(".idx")))


def repaired(source, out):
    checksums = source.with_suffix(".crc")
    return repair(
        source, out, source.with_suffix(".idx"), checksums=checksums if checksums.exists() else None
    )


def texts(path):
    with open_pack(path) as main:
        field = main.field("text")
        return {
            int(key): bytes(recordio.unpack(field.record(row))[1])
            for row, key in enumerate(main.keys)
        }


def keys_of(prefix):
    with recordio.RecordReader(f"{prefix}.rec", f"{prefix}.idx") as reader:
        return reader.keys.tolist()


COPIES = pytest.mark.parametrize(
    "copy", [pytest.param(optimized, marks=pytest.mark.libjpeg), narrow, repaired]
)


@COPIES
def test_a_copy_has_the_classes_the_list_and_the_fields_of_its_source(tmp_path, copy):
    source = write_set(tmp_path / "a.rec", NAMES, "text", wide=copy is narrow)
    out = write_set(tmp_path / "b.rec", "0\tolder\n", "text", checksums=True)
    out.with_suffix(".sizes").write_bytes(b"recordio sizes 1")
    out.with_suffix(".entry").write_bytes(b"recordio entry 1")
    copy(source, out)
    names = {path.name.partition(".")[2] for path in tmp_path.glob("b.*")}
    assert names == {"rec", "idx", "classes.txt", "lst", "fields.json", "text.rec", "text.idx"}
    assert out.with_suffix(".lst").read_bytes() == source.with_suffix(".lst").read_bytes()
    assert texts(out) == {key: b"text %d" % key for key in (3, 5, 8, 9)}
    with open_pack(out) as opened:
        assert opened.classes == {0: "cat", 1: "dog"}
        assert check_pack(opened, opened.checksums_path).ok


@COPIES
def test_nothing_of_an_older_pack_stays(tmp_path, copy):
    source = write_set(tmp_path / "a.rec", NAMES, wide=copy is narrow)
    for name in ("a.lst", "a.classes.txt"):
        (tmp_path / name).unlink()
    out = write_set(tmp_path / "b.rec", "0\tolder\n", checksums=True)
    out.with_suffix(".fields.json").write_bytes(format_fields({"gone": FieldMeta(kind="text")}))
    if copy is not repaired:
        (tmp_path / "a.lst").write_text("3\t0\tof the source.jpg\n")
    copy(source, out)
    assert not out.with_suffix(".classes.txt").exists()
    assert not out.with_suffix(".fields.json").exists()
    assert not out.with_suffix(".crc").exists()
    assert out.with_suffix(".lst").exists() == source.with_suffix(".lst").exists()


@COPIES
def test_a_field_of_another_pack_is_named(tmp_path, copy):
    source = write_set(tmp_path / "a.rec", NAMES, wide=copy is narrow)
    out = write_set(tmp_path / "b.rec", NAMES, "mask")
    before = out.read_bytes()
    with pytest.raises(FieldError, match=r"b\.mask\.rec"):
        copy(source, out)
    assert out.read_bytes() == before


def test_a_repaired_pack_has_the_fields_of_the_records_that_are_left(tmp_path):
    source = write_set(tmp_path / "a.rec", NAMES, "text", checksums=True)
    data = bytearray(source.read_bytes())
    data[34] ^= 1  # in the first record
    source.write_bytes(data)
    field = tmp_path / "a.text.rec"
    data = bytearray(field.read_bytes())
    data[-4] ^= 1  # in the last one
    field.write_bytes(data)
    report = repaired(source, tmp_path / "b.rec")
    assert [problem.kind for problem in report.problems] == ["checksum", "field"]
    assert "a.text.rec" in str(report.problems[1])
    assert keys_of(tmp_path / "b") == [5, 8, 9]
    assert keys_of(tmp_path / "b.text") == [5, 8]
    assert recordio.verify(tmp_path / "b.text.rec", checksums=tmp_path / "b.text.crc").ok


def test_without_an_index_a_repair_says_that_fields_are_not_copied(tmp_path):
    source = write_set(tmp_path / "a.rec", NAMES, "text")
    report = repair(source, tmp_path / "b.rec")
    assert "field text: it is not copied" in str(report.problems[0])
    assert not (tmp_path / "b.text.rec").exists()
    assert not (tmp_path / "b.fields.json").exists()


def test_narrow_copies_the_fields_that_are_asked_for(tmp_path):
    source = write_set(tmp_path / "a.rec", NAMES, "text", wide=True)
    assert narrow(source, tmp_path / "b.rec", fields=[]).outputs[0].fields == ()
    assert not list(tmp_path.glob("b.text.*")) and not (tmp_path / "b.fields.json").exists()
    with RecordWriter(source, source.with_suffix(".idx")) as writer:
        for key in (3, 5):
            record = struct.pack("IdQQ", 0, 1, key, 0) + b"image"
            writer.write(record if key == 5 else pack(IRHeader(0, 1, key, 0), b"image"), key)
    report = narrow(source, tmp_path / "c.rec", skip_errors=True)
    assert report.outputs[0].fields == ("text",)
    assert keys_of(tmp_path / "c.text") == [5]
    with pytest.raises(FieldError, match=r"a\.other\.rec"):
        narrow(source, tmp_path / "d.rec", fields=["other"], skip_errors=True)


def test_an_operation_leaves_nothing_of_an_older_pack(tmp_path):
    source = write_pack(tmp_path / "a.rec", 3)
    out = write_set(tmp_path / "b.rec", NAMES, checksums=True)
    recordio.shuffle(source, out, seed=1)
    assert sorted(path.name for path in tmp_path.glob("b.*")) == ["b.idx", "b.lst", "b.rec"]


def test_a_list_by_which_records_are_chosen_stays(tmp_path):
    source = write_set(tmp_path / "a.rec", NAMES)
    out = write_set(tmp_path / "b.rec", NAMES)
    listed = out.with_suffix(".lst").read_bytes()
    recordio.relabel(source, out, str(out.with_suffix(".lst")))
    recordio.filter(source, out, keys=str(out.with_suffix(".lst")))
    assert out.with_suffix(".lst").read_bytes() == listed
