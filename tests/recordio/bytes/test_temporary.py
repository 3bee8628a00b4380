"""Temporary files and folders: whose they are, and what becomes of those of the dead."""

import contextlib
import errno
import os
import subprocess
import sys

import pytest

from recordio.bytes import temporary
from recordio.bytes.temporary import Temporary

fcntl = pytest.importorskip("fcntl")

FOLDER = pytest.mark.parametrize("folder", [False, True])


@pytest.fixture
def target(tmp_path):
    return str(tmp_path / "a.rec")


def names(target):
    return sorted(os.listdir(os.path.dirname(target)))


def make(target, folder=False):
    made = Temporary(target, folder)
    descriptor = made.make()
    if descriptor is not None:
        os.close(descriptor)
    return made


def abandon(target, folder):
    """What a process that was killed leaves."""
    program = (
        "import os, signal, sys\nfrom recordio.bytes.temporary import Temporary\n"
        f"made = Temporary(sys.argv[1], {folder})\nmade.make()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, target]).returncode == -9


@FOLDER
def test_what_a_killed_process_left_makes_room(target, folder):
    abandon(target, folder)
    assert names(target) == ["a.rec.00000000.partial"]
    made = make(target, folder)
    assert names(target) == [os.path.basename(made.path)] == ["a.rec.00000000.partial"]
    made.remove()
    assert names(target) == []


@FOLDER
def test_a_folder_that_was_left_may_have_anything_in_it(target, folder):
    os.makedirs(f"{target}.00000000.partial/deep/deeper")
    made = make(target, folder)
    assert made.path.endswith(".00000000.partial")
    assert os.path.isdir(made.path) == folder and not os.path.exists(f"{made.path}/deep")
    made.remove()


def test_what_a_killed_process_left_can_be_taken_over(target, monkeypatch):
    assert Temporary(target).take_over() is None
    abandon(target, False)
    kept = Temporary(target)
    descriptor = kept.take_over()
    assert kept.path == f"{target}.00000000.partial" and os.fstat(descriptor).st_size == 0
    os.write(descriptor, b"more")
    os.close(descriptor)
    other = Temporary(target)
    assert other.take_over() is None and not other.path  # somebody has it
    kept.remove()
    assert names(target) == []
    abandon(target, True)
    assert Temporary(target).take_over() is None  # a folder
    os.rmdir(f"{target}.00000000.partial")
    abandon(target, False)
    monkeypatch.setattr(temporary, "_try_lock", lambda descriptor: None)
    assert Temporary(target).take_over() is None  # no locks that could tell


@FOLDER
def test_nobody_takes_what_a_living_process_uses(target, folder):
    first = make(target, folder)
    second = make(target, not folder)
    assert names(target) == ["a.rec.00000000.partial", "a.rec.00000001.partial"]
    first.remove()
    third = make(target, folder)
    assert third.path == first.path
    for made in (second, third):
        made.remove()
    assert names(target) == []


@FOLDER
def test_nothing_is_removed_where_there_are_no_locks(target, folder, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    first, second = make(target, folder), make(target, folder)
    assert len({first.path, second.path}) == 2
    assert len(names(target)) == 2
    for made in (first, second):
        made.remove()
    assert names(target) == []


def test_a_link_or_a_pipe_is_somebody_elses(target, tmp_path):
    (tmp_path / "precious").write_text("keep")
    os.symlink(tmp_path / "precious", f"{target}.00000000.partial")
    os.mkfifo(f"{target}.00000001.partial")
    made = make(target)
    assert made.path.endswith(".00000002.partial")
    made.remove()
    assert (tmp_path / "precious").read_text() == "keep"
    assert len(names(target)) == 3


@FOLDER
def test_what_another_process_takes_away_before_it_is_locked(target, folder, monkeypatch):
    """The other one finds it without a lock, and is faster: a new one is made."""
    real, taken = temporary._try_lock, []

    def late(descriptor):
        if not taken:
            taken.append(names(target))
            assert temporary._remove_abandoned(f"{target}.00000000.partial")
        return real(descriptor)

    def first_late(descriptor):
        monkeypatch.setattr(temporary, "_try_lock", real)
        return late(descriptor)

    monkeypatch.setattr(temporary, "_try_lock", first_late)
    made = make(target, folder)
    assert taken == [["a.rec.00000000.partial"]]
    assert names(target) == [os.path.basename(made.path)]
    made.remove()
    assert names(target) == []


@FOLDER
@pytest.mark.parametrize("step", ["open", "mkdir", "dup", "_try_lock"])
def test_an_interrupt_behind_any_step_leaves_nothing(target, folder, step, monkeypatch):
    owner = temporary if step == "_try_lock" else os
    real = getattr(owner, step)

    def interrupted(*arguments):
        monkeypatch.undo()
        real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, step, interrupted)
    with contextlib.suppress(KeyboardInterrupt):
        make(target, folder).remove()
    assert names(target) == []


@FOLDER
def test_an_error_removes_nothing_of_others(target, folder, monkeypatch):
    first = make(target, folder)

    def exhausted(*_):
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(os, "mkdir" if folder else "open", exhausted)
    with pytest.raises(OSError, match="too many"):
        Temporary(target, folder).make()
    monkeypatch.undo()
    assert names(target) == [os.path.basename(first.path)]
    first.remove()


def test_a_folder_that_another_process_takes_away_before_it_is_seen(target, monkeypatch):
    look = os.lstat

    def taken(path):
        monkeypatch.setattr(os, "lstat", look)
        os.rmdir(path)
        return look(path)

    monkeypatch.setattr(os, "lstat", taken)
    made = temporary.Temporary(str(target), folder=True)
    made.make()
    assert os.path.isdir(made.path)
    assert made.path.endswith(".00000001.partial")
    made.remove()


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Temporary(str(tmp_path / "no" / "a.rec")).make()
