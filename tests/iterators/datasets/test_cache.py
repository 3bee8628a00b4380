"""The root folder, and files that are made once, by several processes at once too."""

import errno
import os
import subprocess
import sys
import threading

import pytest

import iterators
from iterators import (
    cache_or_load_file,
    get_dataset_directory,
    get_dataset_root,
    set_dataset_root,
)


@pytest.fixture(autouse=True)
def root(tmp_path):
    before = get_dataset_root()
    set_dataset_root(tmp_path / "root")
    yield tmp_path / "root"
    set_dataset_root(before)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, os.path.join("HOME", ".chainer", "dataset")),
        ({"CHAINER_DATASET_ROOT": "chainers"}, "chainers"),
        ({"CHAINER_DATASET_ROOT": "chainers", "ITERATORS_DATASET_ROOT": "ours"}, "ours"),
        ({"CHAINER_DATASET_ROOT": ""}, os.path.join("HOME", ".chainer", "dataset")),
    ],
)
def test_the_root_is_read_from_the_environment_once(variables, expected):
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("CHAINER_DATASET_ROOT", "ITERATORS_DATASET_ROOT")
    }
    environment |= {"HOME": "HOME", "USERPROFILE": "HOME", **variables}
    program = (
        "import os, iterators; iterators.get_dataset_root();"
        "os.environ['ITERATORS_DATASET_ROOT'] = 'late';"
        "print(iterators.get_dataset_root())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == expected


def test_folders_are_made_when_asked_for(root):
    assert get_dataset_root() == str(root)
    path = get_dataset_directory("a/b", create_directory=False)
    assert path == os.path.join(root, "a/b")
    assert not root.exists()
    assert os.path.isdir(get_dataset_directory("a/b"))
    assert get_dataset_directory("a/b") == path
    (root / "file").write_text("")
    for name in ("file", "file/below"):
        with pytest.raises(OSError):
            get_dataset_directory(name)


def never(path):
    raise AssertionError("called")


def write_and_return(content):
    def create(path):
        assert not os.path.exists(path)
        with open(path, "w") as file:
            file.write(content)
        return f"made {content}"

    return create


def load(path):
    with open(path) as file:
        return f"loaded {file.read()}"


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_is_made_once_and_then_loaded(tmp_path):
    path = tmp_path / "new" / "data.npz"
    names = []

    def create(temporary):
        names.append(temporary)
        assert os.path.basename(temporary) == "data.npz"
        assert os.stat(os.path.dirname(temporary)).st_dev == os.stat(path.parent).st_dev
        return write_and_return("x")(temporary)

    assert cache_or_load_file(path, create, never) == "made x"
    assert cache_or_load_file(str(path), never, load) == "loaded x"
    assert files_in(tmp_path / "new") == ["data.npz"]
    assert not os.path.exists(os.path.dirname(names[0]))


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_a_failing_creator_leaves_nothing_behind(tmp_path, error):
    def create(path):
        write_and_return("half")(path)
        raise error

    with pytest.raises(error):
        cache_or_load_file(tmp_path / "a", create, never)
    assert files_in(tmp_path) == []


def test_a_creator_that_writes_nothing_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="creator wrote no file"):
        cache_or_load_file(tmp_path / "a", lambda path: 1, never)


def test_the_first_that_is_done_provides_the_file(tmp_path):
    path = tmp_path / "a"

    def slow(temporary):
        assert cache_or_load_file(path, write_and_return("first"), never) == "made first"
        return write_and_return("second")(temporary)

    assert cache_or_load_file(path, slow, never) == "made second"
    assert cache_or_load_file(path, never, load) == "loaded first"
    assert [name for name in files_in(tmp_path) if "lock" not in name] == ["a"]


def test_a_root_that_cannot_be_made_is_a_runtime_error(tmp_path, root):
    root.write_text("in the way")
    with pytest.raises(RuntimeError, match="root"):
        cache_or_load_file(tmp_path / "a", never, never)


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="full"):
        cache_or_load_file(tmp_path / "a", write_and_return("x"), never)
    assert [name for name in files_in(tmp_path) if "lock" not in name] == []


def test_threads_agree_on_one_file(tmp_path):
    barrier = threading.Barrier(6)
    results = []

    def work(number):
        def create(path):
            barrier.wait(30)
            return write_and_return(str(number))(path)

        results.append(cache_or_load_file(tmp_path / "a", create, load))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == [f"made {i}" for i in range(6)]
    assert load(tmp_path / "a").removeprefix("loaded ") in "012345"


RACE = """
import sys, iterators
root, number = sys.argv[1:]
iterators.set_dataset_root(root)
print("ready", flush=True)
sys.stdin.readline()
def create(path):
    with open(path, "w") as file:
        file.write(number * 100_000)
    return "made"
def load(path):
    with open(path) as file:
        text = file.read()
    assert len(text) == 100_000 and len(set(text)) == 1
    return "loaded"
for i in range(30):
    assert iterators.cache_or_load_file(f"{root}/data/{i}", create, load) in ("made", "loaded")
    assert iterators.cache_or_load_file(f"{root}/data/{i}", create, load) == "loaded"
"""


def test_processes_never_see_half_a_file(root):
    children = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(root), str(i)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(3)
    ]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        child.communicate(timeout=60)
        assert child.returncode == 0
    assert files_in(root / "data") == sorted(map(str, range(30)))


def test_the_functions_are_at_the_top():
    assert iterators.cached_download.__module__ == "iterators.datasets.download"
