"""A program that is killed after every batch of an epoch, and started again where it was.

``killed_runs.py PACK CONTAINER [KEYWORD=VALUE ...]`` delivers the epochs of a container, a process
for each batch: it loads the state that the one before has left, with another number of threads,
takes a batch, leaves the state, and kills itself.  It prints how many batches there were, and how
many differ from those of the pack, read without an interruption.
"""

import hashlib
import json
import os
import signal
import sys
from ast import literal_eval
from pathlib import Path
from tempfile import TemporaryDirectory

from iterators import ImageRecordIter

EPOCHS = 2
KEYWORDS = {"data_shape": (3, 32, 32), "shuffle": True, "seed": 5, "rand_crop": True}


def delivered(batch):
    """A digest of all that a batch holds."""
    arrays = (*batch.data, *batch.label, batch.index)
    content = b"".join(array.tobytes() for array in arrays) + bytes([batch.pad])
    return hashlib.sha256(content).hexdigest()


def make(source, threads, more):
    return ImageRecordIter(path_imgrec=source, preprocess_threads=threads, **KEYWORDS | more)


def whole(source, more):
    """Digests of all batches."""
    with make(source, 2, more) as images:
        return [delivered(batch) for _ in range(EPOCHS) for batch in images]


def one_more(source, more, kept):
    """Deliver the batch that comes next, and die; return if there is none."""
    past = json.loads(kept.read_text()) if kept.exists() else {"found": [], "state": None}
    number = len(past["found"])
    images = make(source, 1 + number % 3, more)
    if past["state"] is not None:
        images.load_state_dict(past["state"])
    if number == EPOCHS * len(images):
        return
    for batch in images:
        past["found"].append(delivered(batch))
        break
    else:
        past["found"].append(delivered(next(iter(images))))  # the state was that of an epoch's end
    past["state"] = images.state_dict()
    kept.with_suffix(".new").write_text(json.dumps(past))
    os.replace(kept.with_suffix(".new"), kept)
    os.kill(os.getpid(), signal.SIGKILL)


def killed(source, more):
    """Digests of all batches, each by a process that was killed behind it."""
    with TemporaryDirectory() as folder:
        kept = Path(folder, "state")
        while True:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    one_more(source, more, kept)
                    code = 0
                finally:
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code == 0:
                return json.loads(kept.read_text())["found"]
            assert code == -signal.SIGKILL, code


if __name__ == "__main__":
    pack, container, *words = sys.argv[1:]
    more = {"batch_size": 5}
    for word in words:
        name, _, value = word.partition("=")
        more[name] = literal_eval(value)
    found = killed(container, more)  # first: a process with threads cannot be forked
    wanted = whole(pack, more)
    assert len(found) == len(wanted)
    print(len(found), sum(a != b for a, b in zip(found, wanted, strict=True)))
