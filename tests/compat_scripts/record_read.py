"""Read a pack by key, out of order, and take its records apart."""

import sys

import mxnet as mx

folder = sys.argv[1]
record = mx.recordio.MXIndexedRecordIO(folder + "/photospng.idx", folder + "/photospng.rec", "r")
results = {"keys": list(record.keys)}
for key in (7, 0, 3):
    header, content = mx.recordio.unpack(record.read_idx(key))
    results["%d/label" % key] = header.label
    results["%d/id" % key] = header.id
    results["%d/content" % key] = list(content[:64])
header, following = mx.recordio.unpack(record.read())
results["following/id"] = header.id
record.close()
