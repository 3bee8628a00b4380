"""A lock of threads in a process that forks."""

import os
import pickle
import threading

import pytest

from iterators.core.fork_safe_lock import ForkSafeLock


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_a_thread_that_it_has_not():
    access, taken, done = ForkSafeLock(), threading.Event(), threading.Event()

    def hold():
        with access.lock:
            taken.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if access.lock.acquire(timeout=10) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not access.lock.acquire(blocking=False)
    done.set()
    thread.join()
    assert access.lock.acquire(blocking=False)


def test_copies_have_access_of_their_own():
    access = ForkSafeLock()
    with access.lock:
        other = pickle.loads(pickle.dumps(access))
        found = []
        thread = threading.Thread(target=lambda: found.append(other.lock.acquire(blocking=False)))
        thread.start()
        thread.join()
    assert found == [True]
