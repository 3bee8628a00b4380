"""A fork while an object is open: the child goes on or is told, and the parent goes on.

docs/internals/threads.md has the table that this file checks.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import shared_objects
from shared_objects import Makers

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

GOES_ON = ["reader_iterator", "serial_iterator", "multithread_iterator", "multiprocess_iterator"]
IS_TOLD = [
    "image_record_iter",
    "cached_in_memory",
    "cached_in_a_file",
    "image_det_record_iter",
    "image_iter",
    "array_provider",
    "csv_iter",
    "resize_iter",
    "prefetching_iter",
    "finite_iterator",
]

PROGRAM = """
import os, signal, sys, threading, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore", DeprecationWarning)     # of forks with threads
import shared_objects
make, take, wanted = getattr(shared_objects.Makers(sys.argv[2]), sys.argv[3])()
goes_on, busy = sys.argv[4] == "on", sys.argv[5] == "busy"
shared = make()
assert take(shared) == wanted[0]
stop, caught = threading.Event(), []
def look():             # holds the object's lock, if it has one, again and again
    while not stop.is_set():
        try:
            getattr(shared, "state_dict", lambda: None)()
        except TypeError:       # of an iterator around one that has no state
            return
threads = [threading.Thread(target=look) for _ in range(3 * busy)]
for thread in threads:
    thread.start()
for turn in range(8 if busy else 2):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            following = take(shared)
        except RuntimeError as error:
            assert not goes_on and ("fork" in str(error) or "process" in str(error)), error
        else:
            assert goes_on and following == wanted[1], following
        getattr(shared, "close", lambda: None)()
        del shared
        sys.stdout.flush()
        # With finalizers once; in a child of a bare fork those of multiprocessing would end the
        # worker processes of the parent.
        sys.exit(0) if turn == 0 and not busy and "multiprocessing" not in sys.modules else 0
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
assert [take(shared) for _ in wanted[1:]] == wanted[1:]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forked")
    shared_objects.prepare(folder)
    return folder


@pytest.mark.parametrize("busy", ["idle", "busy"])
@pytest.mark.parametrize("name", [*GOES_ON, *IS_TOLD])
def test_a_forked_child(script, folder, name, busy):
    rule = "on" if name in GOES_ON else "told"
    script(PROGRAM, Path(__file__).parents[1], folder, name, rule, busy)


def test_nothing_is_left_out():
    makers = {name for name, value in vars(Makers).items() if callable(value)}
    helpers = {"__init__", "batches", "loop", "reader", "csv_reader"}  # tested beside the reader
    assert {*GOES_ON, *IS_TOLD} == makers - helpers
