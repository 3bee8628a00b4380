"""What more than one test of datasets needs."""

import pickle
import subprocess
import sys
import warnings

import pytest

IN_A_NEW_PROCESS = """
import pickle, sys
dataset, index = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(pickle.dumps(dataset[index]))
"""


@pytest.fixture(scope="session")
def read_in_a_new_process():
    """``read(dataset, index)``: the example as a process that shares nothing reads it."""

    def read(dataset, index):
        done = subprocess.run(
            [sys.executable, "-c", IN_A_NEW_PROCESS],
            input=pickle.dumps((dataset, index)),
            capture_output=True,
            check=True,
            timeout=60,
        )
        return pickle.loads(done.stdout)

    return read


@pytest.fixture(scope="session")
def read_in_forks():
    """``read(dataset, indices)``: the examples as several forked children read them at once."""
    import multiprocessing

    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("no fork on this system")
    context = multiprocessing.get_context("fork")

    def read(dataset, indices, processes=3):
        def work(connection):
            try:
                connection.send([dataset[i] for i in indices])
            except BaseException as error:
                connection.send(error)

        running = []
        for _ in range(processes):
            mine, theirs = context.Pipe()
            child = context.Process(target=work, args=(theirs,))
            with warnings.catch_warnings():  # newer versions warn that there are other threads
                warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
                child.start()
            running.append((child, mine))
        results = []
        for child, mine in running:
            assert mine.poll(60), "a child hangs"
            results.append(mine.recv())
            child.join(60)
        return results

    return read
