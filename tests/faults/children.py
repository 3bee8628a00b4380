"""What the programs of this folder share: children that are watched."""

import os
import signal
import sys
import threading
import traceback

SECONDS = 20
RAISED, STARTING, HANGING = 100, 101, 102


def end_of(job, quiet=True):
    """Do it in a child; the code with which it ends: minus a signal, RAISED, STARTING or HANGING.

    STARTING: `threading.Thread.start` of CPython waits for ever when its new thread has no memory
    for its first step.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = RAISED
        try:
            signal.signal(signal.SIGALRM, _give_up)
            signal.alarm(SECONDS)
            if quiet:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            code = job() or 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _give_up(number, frame):
    while frame is not None:
        if frame.f_code is threading.Thread.start.__code__:
            os._exit(STARTING)
        frame = frame.f_back
    os._exit(HANGING)
