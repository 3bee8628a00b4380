"""Disks that are full or read-only: an error that names the file, and everything as it was."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts of Linux")

#: What a program in this file begins with.
BEGINNING = """
import contextlib, errno, io, os, sys
from pathlib import Path
import recordio
from iterators import ImageRecordIter, cache_or_load_file, set_dataset_root
from recordio.tools import cli, im2rec
disk, pack = Path(sys.argv[1]), sys.argv[2]
def names():
    return sorted(path.relative_to(disk).as_posix() for path in disk.rglob("*"))
def fails(number, job):
    try:
        job()
    except OSError as error:
        assert error.errno == number or isinstance(error, recordio.RecordIOError), error
        return str(error)
    raise AssertionError("nothing failed")
def write():
    with recordio.RecordWriter(disk / "a.rec", disk / "a.idx") as writer:
        for number in range(3000):
            writer.write(bytes(1000))
def command(main, *words):
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = main([str(word) for word in words])
    return code, said.getvalue()
def epoch(**keywords):
    with ImageRecordIter(path_imgrec=pack, data_shape=(3, 32, 32), resize=100, batch_size=10,
                         verbose=False, **keywords) as provider:
        return [batch.data[0].tobytes() for batch in provider], provider.cache_info()
"""


def test_a_full_disk(small_disk, script, pack, photos_folder):
    disk, words = small_disk("1m")
    program = """
old = [(disk / name).write_bytes(b"old") and name for name in ("a.rec", "a.idx")]
fails(errno.ENOSPC, write)
assert names() == ["a.idx", "a.rec"] and (disk / "a.rec").read_bytes() == b"old"
for _ in range(3):      # the place of what failed is free again
    record = recordio.MXRecordIO(disk / "b.rec", "w")
    fails(errno.ENOSPC, lambda: [record.write(bytes(1 << 20)) for _ in range(3)])
with recordio.RecordWriter(disk / "b.rec") as writer:
    writer.write(bytes(900_000))
assert names() == ["a.idx", "a.rec", "b.rec"]
(disk / "b.rec").unlink()
code, said = command(im2rec.main, "--resize", 2000, "--encoding", ".png", disk / "p", sys.argv[3])
assert code == 1 and "No space left on device" in said and "p.rec" in said, said
rows = disk / "rows.csv"
rows.write_text("1,2,3\\n" * 20_000)
for shuffle in ([], ["--shuffle"]):
    code, said = command(cli.main, "from-csv", rows, disk / "p", *shuffle)
    assert code == 1 and "No space left on device" in said, said
rows.unlink()
code, said = command(cli.main, "optimize", pack.removesuffix(".rec"), disk / "p")
assert code == 0
assert names() == ["a.idx", "a.rec", "p.idx", "p.rec"]
(disk / "a.rec").write_bytes(bytes(900_000))
for words in (["join", pack, pack, pack], ["split", pack, "--by", "class"]):
    words += [disk / "q"] if words[0] == "join" else [f"{disk}/q=0.5", f"{disk}/r=0.5"]
    code, said = command(cli.main, *words)
    assert code == 1 and "No space left on device" in said, said
assert names() == ["a.idx", "a.rec", "p.idx", "p.rec"]
"""
    script(BEGINNING + program, disk, pack, photos_folder, before=words)


def test_a_full_disk_for_packs_in_another_order(small_disk, script, pack, tmp_path):
    disk, words = small_disk("1m")
    program = """
with recordio.RecordWriter(sys.argv[3]) as writer:
    for number in range(2000):
        writer.write(recordio.pack(recordio.IRHeader(0, number % 3, number, 0), os.urandom(1000)))
(disk / "p.rec").write_bytes(b"old")
for job in (("shuffle", "p"), ("sort", "p"), ("dedup", "--remove", "p"), ("shard", "p", "3")):
    words = [str(disk / "p") if word == "p" else word for word in job]
    code, said = command(cli.main, words[0], sys.argv[3], *words[1:], "--force")
    assert code == 1 and "No space left on device" in said and str(disk) in said, said
    assert names() == ["p.rec"] and (disk / "p.rec").read_bytes() == b"old", names()
code, said = command(cli.main, "shard", pack, disk / "p", 3)
assert code == 0 and "p.shards.json" in names(), said
"""
    script(BEGINNING + program, disk, pack, tmp_path / "large.rec", before=words)


def test_a_full_disk_for_a_cache(small_disk, script, pack):
    disk, words = small_disk("2m")
    program = """
expected, _ = epoch(cache="ram")
try:
    epoch(cache=disk / "images.cache", cache_size=1 << 30)
except recordio.RecordIOError as error:
    assert "images.cache" in str(error)
assert epoch(cache=disk / "images.cache", cache_size=1 << 20)[0] == expected
(disk / "images.cache").unlink()
# Somebody else fills the disk after the cache was made, and while it is being filled.
for left in (0, 4096, 100_000):
    with ImageRecordIter(path_imgrec=pack, data_shape=(3, 32, 32), resize=100, batch_size=10,
                         verbose=False, cache=disk / "images.cache",
                         cache_size=3 << 19) as provider:
        size = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        (disk / "other").write_bytes(bytes(max(size - left, 0)))
        for _ in range(2):
            assert [batch.data[0].tobytes() for batch in provider] == expected
        assert provider.cache_info().images < 60
    (disk / "other").unlink()
    assert epoch(cache=disk / "images.cache", cache_size=3 << 19)[0] == expected
    (disk / "images.cache").unlink()
"""
    script(BEGINNING + program, disk, pack, before=words)


def test_a_read_only_folder(read_only, script, pack, photos_folder, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    for suffix in (".rec", ".idx"):
        shutil.copy(pack.with_suffix(suffix), folder)
    words = read_only(folder)
    program = """
before = names()
epoch()                                      # reading needs nothing else
with recordio.RecordReader(pack, pack[:-3] + "idx") as reader:
    assert len(list(reader)) == 60
fails(errno.EROFS, write)
fails(errno.EROFS, lambda: recordio.RecordWriter(pack, pack[:-3] + "idx", append=True))
fails(errno.EROFS, lambda: recordio.MXRecordIO(pack, "w"))
fails(errno.EROFS, lambda: recordio.build_index(pack, pack[:-3] + "idx"))
for job in (
    (im2rec.main, disk / "p", sys.argv[3]),
    (im2rec.main, "--list", "--recursive", disk / "p", sys.argv[3]),
    (cli.main, "optimize", pack[:-4], disk / "p"),
    (cli.main, "export", pack[:-4], disk / "x"),
    (cli.main, "index", pack, "--force"),
):
    code, said = command(*job)
    assert code == 1 and "Read-only file system" in said and str(disk) in said, (job, said)
fails(errno.EROFS, lambda: epoch(cache=disk / "images.cache"))
set_dataset_root(str(disk / "root"))
try:
    cache_or_load_file(str(disk / "root" / "x"), print, print)
except RuntimeError as error:
    assert "cannot make the root folder" in str(error)
assert names() == before
"""
    script(BEGINNING + program, folder, folder / pack.name, photos_folder, before=words)


def test_a_cache_that_may_only_be_read(read_only, script, pack, tmp_path):
    """It cannot be used: its users write into it.  The error says so, and the file stays."""
    folder = tmp_path / "disk"
    folder.mkdir()
    script(BEGINNING + "epoch(cache=disk / 'images.cache')\n", folder, pack)
    program = """
print(fails(errno.EROFS, lambda: epoch(cache=disk / "images.cache")))
"""
    done = script(BEGINNING + program, folder, pack, before=read_only(folder))
    assert "images.cache" in done.stdout
    again = script(BEGINNING + "print(epoch(cache=disk / 'images.cache')[1].hits)\n", folder, pack)
    assert int(again.stdout) >= 60


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs users")
def test_files_of_others(script, pack):
    """What may not be read or written is said before anything is done."""
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    program = """
# Python may lie in the home of root: what the command needs is loaded before.
assert command(cli.main, "info", disk / "secret.rec")[0] == 0
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
secret = disk / "secret.rec"
fails(errno.EACCES, lambda: recordio.RecordReader(secret))
fails(errno.EACCES, lambda: epoch(path_imgidx=disk / "secret.rec"))
fails(errno.EACCES, write)
code, said = command(cli.main, "info", secret)
assert code == 1 and "Permission denied" in said, said
assert names() == ["secret.rec"]
"""
    with tempfile.TemporaryDirectory() as place:  # pytest closes its folders to others
        folder = Path(place)
        folder.chmod(0o755)
        shutil.copy(pack, folder / "secret.rec")
        (folder / "secret.rec").chmod(0o600)
        script(BEGINNING + program, folder, folder / "secret.rec")
