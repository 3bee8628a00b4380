"""Output appears whole and together, or not at all."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from recordio import RecordIOError
from recordio.bytes.storage import AtomicOutput


def names(folder):
    return sorted(os.listdir(folder))


@pytest.fixture
def pair(tmp_path):
    main, companion = tmp_path / "main", tmp_path / "companion"
    main.write_bytes(b"old main")
    companion.write_bytes(b"old companion")
    return main, companion


def is_untouched(pair):
    main, companion = pair
    return (
        main.read_bytes() == b"old main"
        and companion.read_bytes() == b"old companion"
        and names(main.parent) == ["companion", "main"]
    )


def write_both(output):
    output.write(b"new main")
    output.files[1].write(b"new companion")


def test_nothing_shows_before_commit_and_all_after(pair):
    main, companion = pair
    output = AtomicOutput(*pair)
    write_both(output)
    assert main.read_bytes() == b"old main"
    assert companion.read_bytes() == b"old companion"
    assert len(names(main.parent)) == 4
    assert all(name.endswith(".partial") for name in names(main.parent) if "." in name)
    output.commit()
    assert main.read_bytes() == b"new main"
    assert companion.read_bytes() == b"new companion"
    assert names(main.parent) == ["companion", "main"]
    assert output.closed


def test_new_files_and_mixed_groups(tmp_path):
    (tmp_path / "companion").write_bytes(b"old")
    with AtomicOutput(tmp_path / "main", tmp_path / "companion", tmp_path / "third") as output:
        for number, file in enumerate(output.files):
            file.write(b"%d" % number)
    assert [(tmp_path / name).read_bytes() for name in ("main", "companion", "third")] == [
        b"0",
        b"1",
        b"2",
    ]
    assert names(tmp_path) == ["companion", "main", "third"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit, SystemExit])
def test_an_exception_in_the_block_leaves_everything_alone(pair, error):
    with pytest.raises(error):
        with AtomicOutput(*pair) as output:
            write_both(output)
            raise error
    assert is_untouched(pair)
    assert output.closed


def test_discarding_and_dropping(pair):
    output = AtomicOutput(*pair)
    write_both(output)
    output.discard()
    output.discard()
    assert is_untouched(pair)
    for use in (output.commit, output.check_usable):
        with pytest.raises(ValueError, match="closed"):
            use()
    output = AtomicOutput(*pair)
    output.files[0].close()
    output.files[1].close()
    del output
    assert is_untouched(pair)


@pytest.mark.parametrize(
    ("call", "nth"), [("fsync", 1), ("fsync", 2), ("fsync", 3), ("rename", 1), ("replace", 1)]
)
@pytest.mark.parametrize("error", [PermissionError(1, "not permitted"), KeyboardInterrupt()])
def test_a_failing_system_call_before_the_main_file_is_replaced(
    pair, monkeypatch, call, error, nth
):
    if nth == 3 and isinstance(error, OSError):
        pytest.skip("a file system may refuse to flush folders")
    output = AtomicOutput(*pair)
    write_both(output)
    real, calls = getattr(os, call), []

    def fail(*args, **kwargs):
        calls.append(args)
        if len(calls) == nth:
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(type(error)):
        output.commit()
    monkeypatch.undo()
    assert len(calls) >= nth
    assert is_untouched(pair)


def test_an_interruption_behind_the_main_file_completes_the_group(pair, monkeypatch):
    main, companion = pair
    output = AtomicOutput(*pair)
    write_both(output)
    real, calls = os.replace, []

    def fail(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        output.commit()
    assert main.read_bytes() == b"new main"
    assert companion.read_bytes() == b"new companion"
    assert names(main.parent) == ["companion", "main"]


def test_an_interruption_just_behind_the_replacement_completes_the_group(pair, monkeypatch):
    """Ctrl-C while the system renames is noticed when the call returns."""
    main, companion = pair
    output = AtomicOutput(*pair)
    write_both(output)
    real = os.replace

    def interrupted(*args):
        monkeypatch.undo()
        real(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        output.commit()
    assert main.read_bytes() == b"new main"
    assert companion.read_bytes() == b"new companion"
    assert names(main.parent) == ["companion", "main"]


def test_a_temporary_file_that_somebody_removed_publishes_nothing(pair):
    output = AtomicOutput(*pair)
    write_both(output)
    next(pair[0].parent.glob("main.*.partial")).unlink()
    with pytest.raises(FileNotFoundError):
        output.commit()
    assert is_untouched(pair)


def test_versions_never_mix_at_any_step(pair, monkeypatch):
    main, companion = pair
    output = AtomicOutput(*pair)
    write_both(output)
    seen = []

    def watch(name):
        real = getattr(os, name)

        def call(*args, **kwargs):
            state = main.read_bytes(), companion.read_bytes() if companion.exists() else None
            seen.append(state)
            return real(*args, **kwargs)

        monkeypatch.setattr(os, name, call)

    for name in ("rename", "replace", "fsync", "unlink"):
        watch(name)
    output.commit()
    assert set(seen) == {
        (b"old main", b"old companion"),
        (b"old main", None),
        (b"new main", None),
        (b"new main", b"new companion"),
    }


def test_data_is_on_the_disk_before_it_is_renamed(pair, monkeypatch):
    calls = []
    for name in ("fsync", "rename", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *args, name=name, real=real: (calls.append(name), real(*args))[1]
        )
    with AtomicOutput(*pair) as output:
        write_both(output)
    assert calls == ["fsync", "fsync", "rename", "fsync", "replace", "fsync", "replace", "fsync"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with AtomicOutput(link) as output:
        output.write(b"new")
        assert len(names(tmp_path / "there")) == 2
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_modes_are_kept_or_follow_the_umask(tmp_path):
    (tmp_path / "old").write_bytes(b"")
    (tmp_path / "old").chmod(0o640)
    before = os.umask(0o027)
    try:
        with AtomicOutput(tmp_path / "old", tmp_path / "new"):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_targets_that_cannot_be_replaced(tmp_path):
    with pytest.raises(RecordIOError, match="no regular file"):
        AtomicOutput(tmp_path)
    with pytest.raises(FileNotFoundError):
        AtomicOutput(tmp_path / "new", tmp_path / "none" / "new")
    with pytest.raises(RecordIOError, match="twice"):
        AtomicOutput(tmp_path / "new", tmp_path / "." / "new")
    with pytest.raises(TypeError):
        AtomicOutput()
    if os.path.exists("/dev/null"):
        with pytest.raises(RecordIOError, match="no regular file"):
            AtomicOutput("/dev/null")
    assert names(tmp_path) == []


@pytest.mark.parametrize("old", [b"", b"a", b"abc\n", b"x" * 3_000_000])
@pytest.mark.parametrize("by_hand", [False, True])
def test_beginning_with_the_existing_content(tmp_path, monkeypatch, old, by_hand):
    if by_hand and hasattr(os, "copy_file_range"):

        def refuse(*args):
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(os, "copy_file_range", refuse)
    path = tmp_path / "file"
    path.write_bytes(old)
    with AtomicOutput(path) as output:
        size = output.copy_existing(0, end_with=b"\n")
        output.write(b"more")
    expected = old if old.endswith(b"\n") or not old else old + b"\n"
    assert size == len(expected)
    assert path.read_bytes() == expected + b"more"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_neither_writes_nor_publishes_nor_removes(pair):
    program = textwrap.dedent(
        """
        import os, sys
        from recordio.bytes.storage import AtomicOutput
        output = AtomicOutput(sys.argv[1], sys.argv[2])
        output.write(b"new main")                   # still in the buffer
        output.files[1].write(b"new companion")
        child = os.fork()
        if child == 0:
            for use in (output.commit, output.check_usable):
                try:
                    use()
                except RuntimeError as error:
                    assert "forked" in str(error)
                else:
                    os._exit(3)
            output.discard()
            sys.exit(0)                             # finalizers run and buffers are flushed
        assert os.waitpid(child, 0)[1] == 0
        output.commit()
        """
    )
    subprocess.run([sys.executable, "-c", program, *map(str, pair)], check=True)
    main, companion = pair
    assert main.read_bytes() == b"new main"
    assert companion.read_bytes() == b"new companion"
    assert names(main.parent) == ["companion", "main"]


@pytest.mark.parametrize(
    ("ending", "expected"), [("sys.exit()", 0), ("raise KeyError", 1), ("pass", 0)]
)
def test_the_end_of_the_program_removes_temporary_files(pair, ending, expected):
    program = (
        "import os, sys\nfrom recordio.bytes.storage import AtomicOutput\n"
        f"output = AtomicOutput(*sys.argv[1:])\noutput.write(b'x' * 3000000)\n{ending}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, pair)], stderr=subprocess.DEVNULL, check=False
    )
    assert done.returncode == expected
    assert is_untouched(pair)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and locks")
def test_a_killed_program_is_continued(tmp_path):
    path, index = tmp_path / "a.rec", tmp_path / "a.idx"
    if os.fork() == 0:
        output = AtomicOutput(path, index)
        for file in output.files:
            file.write(b"kept and not kept")
            file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    os.wait()
    asked = []
    with AtomicOutput(path, index, go_on=lambda path: asked.append(path) or 4) as output:
        assert output.kept == 4
        output.write(b", more")
    assert asked == [f"{path}.00000000.partial"]
    assert path.read_bytes() == b"kept, more" and index.read_bytes() == b""
    with AtomicOutput(path, go_on=asked.append) as output:
        assert output.kept == 0
    assert len(asked) == 1 and sorted(os.listdir(tmp_path)) == ["a.idx", "a.rec"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_killed_program_leaves_only_recognisable_files(pair):
    program = (
        "import os, signal, sys\nfrom recordio.bytes.storage import AtomicOutput\n"
        "output = AtomicOutput(*sys.argv[1:])\noutput.write(b'x' * 3000000)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *map(str, pair)], check=False)
    assert done.returncode == -signal.SIGKILL
    for path in pair[0].parent.glob("*.partial"):
        path.unlink()
    assert is_untouched(pair)


def test_no_memory_for_the_buffer_is_that_and_leaves_nothing(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise MemoryError

    monkeypatch.setattr("recordio.bytes.storage.io.BufferedWriter", refuse)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with pytest.raises(MemoryError):
        AtomicOutput(tmp_path / "a")
    assert os.listdir(tmp_path) == []
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before
