"""Memory, descriptors and threads stay flat, however many epochs there are.

After a warm-up the resident memory is noted behind every epoch, and the slope of the straight line
through the notes must lie below a bound that one leaked batch in twenty epochs would exceed.
``FAULTS_LONG=1`` makes it twenty times as long.
"""

import os
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

EPOCHS = 4000 if os.environ.get("FAULTS_LONG") else 200

PROGRAM = """
import gc, os, sys, threading
import numpy as np
import recordio
from iterators import (
    ImageDetRecordIter, ImageRecordDataset, ImageRecordIter, MultithreadIterator, NDArrayIter,
    PrefetchingIter,
)
path, kind, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
image = dict(path_imgrec=path, data_shape=(3, 64, 64), batch_size=16, preprocess_threads=2,
             prefetch_buffer=2, verbose=False, shuffle=True, rand_crop=True)

def epoch_of(shared):
    for batch in shared:
        pass
    getattr(shared, "reset", lambda: None)()

def made_anew(make):
    def epoch():
        shared = make()
        for batch in shared:
            break
        if len(made) % 2:
            shared.close()
        made.append(None)
    made = []
    return epoch

def interrupted(shared):
    def epoch():
        # Errors, states and resets in the middle of epochs.
        for number, batch in enumerate(shared):
            if number == 2:
                shared.load_state_dict(shared.state_dict())
                break
        shared.reset()
    return epoch

def bad(shared):
    def epoch():
        try:
            for batch in shared:
                pass
        except recordio.RecordIOError:
            pass
        shared.reset()
    return epoch

def files():
    with recordio.RecordReader(path) as reader:
        records = reader.read_many(range(len(reader)))
        with recordio.RecordWriter(path + ".new", path + ".new.idx") as writer:
            for record in records:
                writer.write(record)

def make_epoch():
    if kind == "images":
        return lambda shared=ImageRecordIter(**image): epoch_of(shared)
    if kind == "cached":
        shared = ImageRecordIter(**image, cache="ram", cache_size=1 << 21)
        return lambda: epoch_of(shared)
    if kind == "again":
        return made_anew(lambda: ImageRecordIter(**image, cache="ram", cache_size=1 << 21))
    if kind == "states":
        return interrupted(ImageRecordIter(**image))
    if kind == "skipped":
        broken = path + ".broken"
        with recordio.RecordReader(path) as reader, recordio.RecordWriter(broken) as writer:
            for number, record in enumerate(reader):
                writer.write(bytes(record)[: 60 if number % 5 == 0 else None])
        return bad(ImageRecordIter(**image | {"path_imgrec": broken}, on_error="skip"))
    if kind == "rows":
        inside = NDArrayIter(np.zeros((4000, 30), np.float32), batch_size=100, shuffle=True)
        shared = PrefetchingIter(inside)
        return lambda: epoch_of(shared)
    if kind == "loop":
        data = ImageRecordDataset(path)
        def epoch():
            with MultithreadIterator(data, 10, repeat=False, n_threads=2) as batches:
                for batch in batches:
                    pass
        return epoch
    return files

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

epoch = make_epoch()
for _ in range(max(epochs // 4, 20)):
    epoch()
gc.collect()
before = len(os.listdir("/proc/self/fd")), threading.active_count()
notes = []
for number in range(epochs):
    epoch()
    notes.append(resident())
gc.collect()
after = len(os.listdir("/proc/self/fd")), threading.active_count()
slope = np.polyfit(np.arange(epochs), notes, 1)[0]
first, last = notes[0] / 1e6, notes[-1] / 1e6
print(f"{slope:.0f} bytes an epoch, {first:.1f} MB at first, {last:.1f} MB at last")
assert after[0] <= before[0] and after[1] <= before[1], (before, after)
"""

#: Bytes an epoch.  A batch of the images is 786 kB, one of the rows 12 kB, a record about 1 kB.
BOUND = 16_384


@pytest.mark.parametrize(
    "kind", ["images", "cached", "again", "states", "skipped", "rows", "loop", "files"]
)
def test_memory_stays_flat(script, tmp_path, pack, kind):
    source = tmp_path / pack.name
    source.write_bytes(pack.read_bytes())
    # One arena: those of glibc fill at different times, which looks like growth for a while.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "131072"}
    done = script(PROGRAM, source, kind, EPOCHS, env=environment)
    slope = float(done.stdout.split()[0])
    print(kind, done.stdout.strip())
    assert slope < BOUND, done.stdout
