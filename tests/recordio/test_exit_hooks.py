"""What is done when a process ends, in every kind of process that Python can make."""

import os
import subprocess
import sys
import textwrap

import pytest

import recordio
from recordio.exit_hooks import at_end

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
PROCESSES = """
import multiprocessing, sys
import recordio

KEPT = {}

def write(path):
    KEPT[path] = writer = recordio.MXRecordIO(path, "w")  # never closed
    writer.write(b"from a worker")
"""


def run(program, *arguments):
    program = textwrap.dedent(PROCESSES) + textwrap.dedent(program)
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def contents(path):
    with recordio.RecordReader(str(path)) as reader:
        return [bytes(record) for record in reader]


@FORKS
def test_a_writer_in_a_global_of_a_forked_worker_is_published(tmp_path):
    path = tmp_path / "a.rec"
    run(
        """
        context = multiprocessing.get_context("fork")
        worker = context.Process(target=write, args=(sys.argv[1],))
        worker.start()
        worker.join()
        sys.exit(worker.exitcode)
        """,
        path,
    )
    assert contents(path) == [b"from a worker"]
    assert os.listdir(tmp_path) == ["a.rec"]


@FORKS
def test_the_workers_of_a_pool_publish_when_it_is_closed(tmp_path):
    run(
        """
        pool = multiprocessing.get_context("fork").Pool(2)
        pool.map(write, sys.argv[1:], chunksize=1)
        pool.close()
        pool.join()
        """,
        *(tmp_path / f"{number}.rec" for number in range(3)),
    )
    assert sorted(os.listdir(tmp_path)) == ["0.rec", "1.rec", "2.rec"]
    assert contents(tmp_path / "2.rec") == [b"from a worker"]


@FORKS
@pytest.mark.parametrize(("leave", "there"), [("sys.exit(0)", True), ("os._exit(0)", False)])
def test_a_forked_child_publishes_unless_it_leaves_at_once(tmp_path, leave, there):
    path = tmp_path / "a.rec"
    run(
        f"""
        import os
        if not (child := os.fork()):
            write(sys.argv[1])
            {leave}
        assert os.waitpid(child, 0)[1] == 0
        """,
        path,
    )
    assert path.exists() == there
    if there:
        assert contents(path) == [b"from a worker"]


@FORKS
def test_a_worker_leaves_the_writers_of_its_parent_alone(tmp_path):
    path = tmp_path / "a.rec"
    run(
        """
        write(sys.argv[1])
        worker = multiprocessing.get_context("fork").Process(target=print)
        worker.start()
        worker.join()
        import os
        assert not os.path.exists(sys.argv[1])
        KEPT[sys.argv[1]].write(b"from its parent")
        """,
        path,
    )
    assert contents(path) == [b"from a worker", b"from its parent"]


@FORKS
def test_a_worker_removes_output_that_was_not_published(tmp_path):
    run(
        """
        from recordio.bytes.storage import AtomicOutput

        def begin(path):
            KEPT[path] = AtomicOutput(path)

        worker = multiprocessing.get_context("fork").Process(target=begin, args=sys.argv[1:])
        worker.start()
        worker.join()
        """,
        tmp_path / "a.txt",
    )
    assert os.listdir(tmp_path) == []


def test_a_spawned_worker_publishes(tmp_path):
    path, script = tmp_path / "a.rec", tmp_path / "script.py"
    script.write_text(
        PROCESSES
        + textwrap.dedent("""
            if __name__ == "__main__":
                context = multiprocessing.get_context("spawn")
                worker = context.Process(target=write, args=(sys.argv[1],))
                worker.start()
                worker.join()
        """)
    )
    done = subprocess.run([sys.executable, script, path], capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert contents(path) == [b"from a worker"]


def test_an_object_that_is_dropped_calls_once():
    class File:
        pass

    calls = []
    file = File()
    finalizer = at_end(file, calls.append, "closed")
    del file
    finalizer()
    assert calls == ["closed"]
