"""Operations over containers: what they write is what they write of the converted pack."""

import os
from pathlib import Path

import pytest
from fake_containers import write_container

import recordio
from iterators.testing import write_rows
from recordio import IRHeader, RecordReader, RecordWriter, pack
from recordio.errors import CorruptRecordError, RecordIOError
from recordio.packs.check import SoundRecords, check_pack
from recordio.packs.open_pack import OpenPack, open_pack
from recordio.packs.scanned_container import ScannedContainer, scan_pack

pytestmark = pytest.mark.usefixtures("fake_containers")
MAGIC = b"\x0a\x23\xd7\xce"
SINGLE = [
    ([float(n % 3)], f"{n}.txt", b"content" * (n % 5) + MAGIC * (n % 4 == 3)) for n in range(20)
]
SEVERAL = [([float(n), n + 0.5], "", b"x" * n) for n in range(7)]
OBJECTS = [
    ([4.0, 5, 7, 7] + [v for c in range(n % 3) for v in (c, 0.1, 0.2, 0.8, 0.9)], "", b"o%d" % n)
    for n in range(9)
]
CLASSES = {0: "cat", 1: "dog", 2: "emu"}


@pytest.fixture(params=[".spans", ".packed"])
def sources(tmp_path, request):
    """Write samples as a container of two files and as a record file; return both names."""

    def make(samples, name="set", classes=None):
        half = len(samples) // 2
        for number, part in enumerate([samples[:half], samples[half:]]):
            write_container(tmp_path / f"{name}-{number}{request.param}", part, classes)
        path = tmp_path / f"{name}.converted.rec"
        with RecordWriter(path, path.with_suffix(".idx")) as writer:
            for number, (labels, _, content) in enumerate(samples):
                if not isinstance(content, str):
                    label = labels[0] if len(labels) == 1 else labels
                    writer.write(pack(IRHeader(0, label, number, 0), content), number)
        if classes:
            lines = "".join(f"{label}\t{word}\n" for label, word in classes.items())
            path.with_suffix(".classes.txt").write_text(lines)
        return str(tmp_path / f"{name}-{{0,1}}{request.param}"), str(path)

    return make


def written(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


OPERATIONS = {
    "filter": lambda source, out: recordio.filter(
        source, out, "(label == 1 or id > 5) and bytes > 1"
    ),
    "filter_by_class": lambda source, out: recordio.filter(source, out, "1 in labels or id == 3"),
    "filter_by_format": lambda source, out: recordio.filter(source, out, "format != 'jpeg'"),
    "filter_by_key": lambda source, out: recordio.filter(source, out, keys=[5, 2, 0]),
    "sample": lambda source, out: recordio.sample(source, out, n=4, seed=3),
    "sort": lambda source, out: recordio.sort(source, out, by="bytes", reverse=True),
    "sort_by_label": lambda source, out: recordio.sort(source, out, by="label"),
    "shuffle": lambda source, out: recordio.shuffle(source, out, seed=5),
    "relabel": lambda source, out: recordio.relabel(source, out, "dense"),
    "dedup": lambda source, out: recordio.dedup(source, out),
    "split": lambda source, out: recordio.split(source, {out: 0.5, f"{out}-b": 0.5}, seed=1),
    "shard": lambda source, out: recordio.shard(source, f"{out}-%02d", 3),
    "join": lambda source, out: recordio.join([source, source], out, labels="append"),
}


@pytest.mark.parametrize(
    "samples", [SINGLE, SEVERAL, OBJECTS], ids=["single", "several", "objects"]
)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_container_gives_the_bytes_of_the_converted_pack(sources, tmp_path, name, samples):
    results = []
    for number, source in enumerate(sources(samples, classes=CLASSES)):
        folder = tmp_path / str(number)
        folder.mkdir()
        OPERATIONS[name](source, f"{folder}/new")
        results.append(written(folder))
    assert results[0] == results[1] and len(results[0]) >= 2


def test_small_windows_change_nothing(sources, tmp_path, small_blocks):
    for number, source in enumerate(sources(SINGLE)):
        recordio.shuffle(source, tmp_path / f"{number}.rec", seed=5, window=32)
    assert (tmp_path / "0.rec").read_bytes() == (tmp_path / "1.rec").read_bytes()


def test_statistics_and_differences_are_those_of_the_converted_pack(sources):
    mine, converted = (recordio.stats(source) for source in sources(OBJECTS))
    different = {"path", "bytes"}
    one, other = mine.as_dict(), converted.as_dict()
    assert {k: v for k, v in one.items() if k not in different} == {
        k: v for k, v in other.items() if k not in different
    }
    assert recordio.diff(*sources(OBJECTS)).equal
    assert not recordio.diff(sources(OBJECTS)[0], sources(SINGLE, "other")[1]).equal


FAULTY = [*SINGLE[:3], ([1.0], "bad.txt", "the file is too long"), *SINGLE[4:]]


def test_a_sample_without_content_is_an_error_or_left_out(sources, tmp_path):
    container, converted = sources(FAULTY)
    with pytest.raises(RecordIOError, match=r"set-0.* record 3: the file is too long"):
        recordio.shuffle(container, tmp_path / "a.rec")
    assert not (tmp_path / "a.rec").exists()
    report = recordio.shuffle(container, tmp_path / "a.rec", skip_errors=True)
    assert report.skipped == 1 and "set-0" in report.problems[0]
    assert report.problems[0].endswith("the file is too long")
    recordio.shuffle(converted, tmp_path / "b.rec")
    assert (tmp_path / "a.rec").read_bytes() == (tmp_path / "b.rec").read_bytes()
    assert (tmp_path / "a.idx").read_bytes() == (tmp_path / "b.idx").read_bytes()


def test_a_file_that_was_cut_names_each_sample_behind_the_cut(tmp_path):
    path = write_container(tmp_path / "a.spans", SINGLE)
    os.truncate(path, path.stat().st_size - 20)
    with pytest.raises(RecordIOError, match=r"a\.spans, offset \d+, record 1\d: the file ends"):
        scan_pack(path)
    with scan_pack(path, skip_errors=True) as source:
        assert 0 < len(source) < 20 and len(source.problems) == 20 - len(source)
    report = check_pack(open_pack(path))
    assert not report.ok and len(report.problems) == 20 - report.records


def test_what_a_library_cannot_read_is_left_out_when_errors_are_skipped(tmp_path):
    path = write_container(tmp_path / "a.packed", SINGLE)
    data = bytearray(path.read_bytes())
    data[-30:-20] = bytes(10)
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError, match=r"a\.packed.*cannot be unpacked"):
        recordio.shuffle(path, tmp_path / "b.rec")
    report = recordio.shuffle(path, tmp_path / "b.rec", skip_errors=True)
    assert 0 < report.skipped < 20 and report.records == 20 - report.skipped
    assert recordio.verify(tmp_path / "b.rec").ok


def test_a_run_that_was_killed_goes_on(sources, tmp_path, killed_after):
    container, converted = sources(SINGLE)
    out = tmp_path / "new.rec"
    killed_after(9, lambda progress: recordio.shuffle(container, out, seed=1, progress=progress))
    report = recordio.shuffle(container, out, seed=1)
    assert report.continued > 0 and report.records == 20
    recordio.shuffle(converted, tmp_path / "other.rec", seed=1)
    assert out.read_bytes() == (tmp_path / "other.rec").read_bytes()


def test_a_source_is_not_overwritten(sources, tmp_path):
    path = write_container(tmp_path / "a.spans", SINGLE)
    os.symlink(path, tmp_path / "b.rec")
    with pytest.raises(RecordIOError, match="would be overwritten"):
        recordio.shuffle(path, tmp_path / "b.rec")


def test_names_that_lead_nowhere_are_errors(tmp_path):
    for number in range(2):
        write_container(tmp_path / f"set-{number}.spans", SINGLE)
    with pytest.raises(RecordIOError, match=r"set-2\.spans: there is no such file \(of .*{0\.\.2}"):
        scan_pack(tmp_path / "set-{0..2}.spans")
    with pytest.raises(FileNotFoundError, match="no file has a name like that"):
        scan_pack(tmp_path / "none-*.spans")
    write_container(tmp_path / "a.spans", SINGLE)
    write_container(tmp_path / "a.packed", SINGLE)
    with pytest.raises(RecordIOError, match="a file of spans and a packed file"):
        scan_pack(f"{tmp_path}/a.{{spans,packed}}")
    write_rows(tmp_path / "a.rec", [(0, 0, b"x")])
    with pytest.raises(RecordIOError, match="is no container"):
        scan_pack(f"{tmp_path}/a.{{spans,rec}}")


def test_a_record_file_comes_before_a_folder_of_its_name(tmp_path):
    folder = tmp_path / "photos"
    (folder / "cat").mkdir(parents=True)
    (folder / "cat" / "1.jpg").write_bytes(b"\xff\xd8\xff")
    assert isinstance(scan_pack(folder), ScannedContainer)
    write_rows(tmp_path / "photos.rec", [(0, 0, b"x")])
    assert not isinstance(scan_pack(folder), ScannedContainer)
    assert isinstance(scan_pack(f"{folder}/"), ScannedContainer)


def test_files_of_a_folder_that_are_gone_are_faults(tmp_path):
    folder = tmp_path / "photos"
    for name in ("cat/1.jpg", "cat/2.jpg", "dog/1.jpg"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\xff\xd8\xff" + name.encode())
    with scan_pack(folder) as pack:
        os.remove(folder / "cat" / "2.jpg")
        with pytest.raises(RecordIOError, match=r"cat/2\.jpg.*record 1: .*No such file"):
            pack.record(1)


def test_sound_records_are_those_of_a_record_file_too(tmp_path):
    rows = [(n, n, b"content %d" % n) for n in range(3)]
    path = write_rows(tmp_path / "a.rec", rows)
    opened = open_pack(path)
    with SoundRecords(opened, check_pack(opened)) as records, RecordReader(path) as reader:
        assert [bytes(records.read(row)) for row in range(len(records))] == list(map(bytes, reader))
        assert records.problem(1, "content", "bad").record == 1 and records.key(2) == 2


def test_files_of_a_list_are_one_pack(tmp_path):
    names = [
        write_container(tmp_path / f"{name}.spans", part)
        for name, part in (("b", SINGLE[:5]), ("a", SINGLE[5:]))
    ]
    for given in (names, ";".join(map(str, names))):
        recordio.shuffle(given, tmp_path / "list.rec", seed=2)
        with open_pack(given) as opened:
            assert len(opened.reader) == 20 and opened.path.endswith("b.spans;" + str(names[1]))
            assert opened.version() != OpenPack(names[0]).version()
    write_container(tmp_path / "all.spans", SINGLE)
    recordio.shuffle(tmp_path / "all.spans", tmp_path / "all.rec", seed=2)
    assert (tmp_path / "list.rec").read_bytes() == (tmp_path / "all.rec").read_bytes()
