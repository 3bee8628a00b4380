"""Many files for one pack, read and written."""

import contextlib
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.testing import write_pack
from recordio import RecordIOError
from recordio.containers import braces
from recordio.containers.braces import expand_braces
from recordio.containers.tar import TAR
from recordio.tools.convert.shards import older_shards
from recordio.tools.samples import files_of


@pytest.fixture
def records(tmp_path, images):
    """A pack of ten images."""
    write_pack(tmp_path / "t.rec", [images.jpeg(20 + number) for number in range(10)])
    return tmp_path / "t"


def sizes(folder):
    """Files of each shard."""
    counts = {}
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as archive:
            counts[path.name] = len(archive.getnames()) // 2
    return counts


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a-{0..2}.tar", ["a-0.tar", "a-1.tar", "a-2.tar"]),
        ("a-{08..10}", ["a-08", "a-09", "a-10"]),
        ("{3..1}", ["3", "2", "1"]),
        ("{0..9..4}", ["0", "4", "8"]),
        ("{-1..1}", ["-1", "0", "1"]),
        ("{x,y}{0..1}", ["x0", "x1", "y0", "y1"]),
        ("{alone}", ["{alone}"]),
        ("{0..}", ["{0..}"]),
        ("plain.tar", ["plain.tar"]),
    ],
)
def test_braces_are_expanded_as_by_shells(pattern, names):
    assert expand_braces(pattern) == names


@pytest.mark.parametrize("pattern", ["{0..99999999999}", "{0..99}{0..99}{0..99}", "{a,b{0..1}}"])
def test_patterns_of_too_many_names_or_groups_are_refused(pattern, monkeypatch):
    monkeypatch.setattr(braces, "MOST_NAMES", 5000)
    with pytest.raises(RecordIOError, match="more than|inside of braces"):
        expand_braces(pattern)


@given(st.text("{}.,0123456789-ab", max_size=20))
def test_any_pattern_ends(pattern):
    with contextlib.suppress(RecordIOError):
        assert expand_braces(pattern)


def test_files_are_found_by_braces_wildcards_and_names(tmp_path):
    for name in ("a-0.tar", "a-1.tar", "b.tar", "{x,y}.tar"):
        (tmp_path / name).touch()

    def found(*patterns):
        files = files_of([str(tmp_path / pattern) for pattern in patterns], TAR)
        return [file.name.rpartition("/")[2] for file in files]

    assert found("a-{0..1}.tar", "b.tar") == ["a-0.tar", "a-1.tar", "b.tar"]
    assert found("a-*.tar") == found("[a]-?.tar") == ["a-0.tar", "a-1.tar"]
    assert found("{x,y}.tar") == ["{x,y}.tar"]
    with pytest.raises(RecordIOError, match=r"a-2.tar: there is no such file \(of .*a-{0..2}.tar"):
        found("a-{0..2}.tar")
    with pytest.raises(RecordIOError, match="no file has such a name"):
        found("c-*.tar")


def test_patterns_in_urls(records, tmp_path, command, contents):
    import fsspec

    assert command("export", records, tmp_path / "s-{0..1}.tar", "--to", "webdataset") == 0
    for number in range(2):
        with fsspec.open(f"memory://shards/s-{number}.tar", "wb") as file:
            file.write((tmp_path / f"s-{number}.tar").read_bytes())
    for name, pattern in (("u", "s-{0..1}.tar"), ("v", "s-*.tar")):
        assert command("from-webdataset", f"memory://shards/{pattern}", tmp_path / name) == 0
        assert len(contents(tmp_path / name)) == 10


def test_shards_of_some_records_there_and_back(records, tmp_path, command, capsys):
    folder = tmp_path / "out"
    folder.mkdir()
    words = ["export", records, folder / "t.tar", "--to", "webdataset", "--shard-records", "4"]
    assert command(*words) == 0
    assert "wrote" in capsys.readouterr().err
    assert sizes(folder) == {"t-000000.tar": 4, "t-000001.tar": 4, "t-000002.tar": 2}
    assert len(list(folder.iterdir())) == 3
    assert command("from-webdataset", folder / "t-{000000..000002}.tar", tmp_path / "u") == 0
    assert (tmp_path / "u.rec").read_bytes() == (tmp_path / "t.rec").read_bytes()
    assert command("from-webdataset", folder / "*.tar", tmp_path / "v") == 0
    assert (tmp_path / "v.rec").read_bytes() == (tmp_path / "t.rec").read_bytes()


def test_existing_and_older_shards_are_refused(records, tmp_path, command, capsys):
    folder = tmp_path / "out"
    folder.mkdir()
    words = ["export", records, folder / "t-%03d.tar", "--to", "webdataset", "--shard-records"]
    assert command(*words, "3") == 0
    assert list(sizes(folder)) == ["t-000.tar", "t-001.tar", "t-002.tar", "t-003.tar"]
    assert command(*words, "5") == 1
    assert "t-000.tar: exists already" in capsys.readouterr().err
    assert command(*words, "5", "--force") == 1
    assert "t-002.tar: an older shard" in capsys.readouterr().err
    assert sum(sizes(folder).values()) == 10
    assert command(*words, "3", "--force") == 0
    assert older_shards(str(folder / "t-%03d.tar"), []) == sorted(map(str, folder.iterdir()))


def test_shards_of_some_bytes(records, tmp_path, command):
    folder = tmp_path / "out"
    folder.mkdir()
    limit = 3 * (records.with_suffix(".rec").stat().st_size // 10)
    words = ["--to", "webdataset", "--shard-bytes", limit]
    assert command("export", records, folder / "t.tar", *words) == 0
    counts = list(sizes(folder).values())
    assert sum(counts) == 10 and 3 <= len(counts) <= 5
    assert command("export", records, tmp_path / "one.tar", *words[:-1], "1") == 0
    assert len(list(tmp_path.glob("one-*.tar"))) == 10


def test_braces_in_the_target_name_the_shards(records, tmp_path, command, capsys):
    folder = tmp_path / "out"
    folder.mkdir()
    words = ["export", records, folder / "t-{a,b,c}.tar", "--to", "webdataset"]
    assert command(*words) == 0
    assert sizes(folder) == {"t-a.tar": 4, "t-b.tar": 3, "t-c.tar": 3}
    assert command(*words, "--force", "--shard-records", "2") == 1
    assert "leave out --shard-records" in capsys.readouterr().err
    for target, text in (
        ("t-{00..99}.tar", "names 100 files, and there are 10 records"),
        ("t-{a,a}.tar", "different names in one folder"),
        ("{x,y}/t.tar", "different names in one folder"),
    ):
        assert command("export", records, folder / target, *words[3:]) == 1
        assert text in capsys.readouterr().err


@pytest.mark.parametrize("target", ["labels", "tfrecord", "mnist"])
def test_every_format_of_files_can_be_cut(records, tmp_path, command, target, capsys):
    if target == "mnist":
        import numpy as np

        np.save(tmp_path / "a.npy", np.zeros((10, 4, 4), np.uint8))
        words = ["from-numpy", tmp_path / "a.npy", records, "--encoding", ".png", "--force"]
        assert command(*words) == 0
    words = ["export", records, tmp_path / "s", "--to", target, "--shard-records", "5"]
    assert command(*words) == 0
    assert len(list(tmp_path.glob("s-00000?*"))) == (4 if target == "mnist" else 2)


def test_raw_shards_hold_every_record_once(records, tmp_path, command):
    words = ["--to", "tfrecord", "--raw", "--shard-records", "3"]
    assert command("export", records, tmp_path / "s.tfrecord", *words) == 0
    assert len(list(tmp_path.glob("s-*.tfrecord"))) == 4
    assert command("from-tfrecord", tmp_path / "s-*.tfrecord", tmp_path / "u", "--raw") == 0
    assert (tmp_path / "u.rec").read_bytes() == (tmp_path / "t.rec").read_bytes()


def test_folders_are_not_cut(records, tmp_path, command, capsys):
    with pytest.raises(SystemExit):
        command("export", records, tmp_path / "s", "--shard-records", "3")
    assert "unrecognized arguments: --shard-records" in capsys.readouterr().err


def test_an_error_in_one_shard_leaves_none(records, tmp_path, command, images):
    write_pack(tmp_path / "t.rec", [images.jpeg()] * 5 + [b"no image"])
    folder = tmp_path / "out"
    folder.mkdir()
    words = ["export", records, folder / "s.npy", "--to", "npy", "--shard-records", "2"]
    assert command(*words) == 1
    assert list(folder.iterdir()) == []
