"""Read a pack from its beginning, twice."""

import sys

import mxnet as mx

record = mx.recordio.MXRecordIO(sys.argv[1] + "/frames.rec", "r")
lengths = []
for _ in range(2):
    while True:
        item = record.read()
        if item is None:
            break
        lengths.append(len(item))
    record.reset()
results = {"lengths": lengths, "first": list(record.read()[:20])}
