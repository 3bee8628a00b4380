"""Taking turns in a process that forks."""

import os
import pickle
import threading

import pytest

from iterators.core.turns import Turns


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_a_thread_that_it_has_not():
    turns, taken, done = Turns(), threading.Event(), threading.Event()

    def hold():
        with turns.lock:
            taken.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if turns.lock.acquire(timeout=10) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not turns.lock.acquire(blocking=False)
    done.set()
    thread.join()
    assert turns.lock.acquire(blocking=False)


def test_copies_have_turns_of_their_own():
    turns = Turns()
    with turns.lock:
        other = pickle.loads(pickle.dumps(turns))
        found = []
        thread = threading.Thread(target=lambda: found.append(other.lock.acquire(blocking=False)))
        thread.start()
        thread.join()
    assert found == [True]
