"""Bytes from a pack, asked for one batch after the other."""

import sys

import mxnet as mx

it = mx.io.ImageRecordUInt8Iter(
    path_imgrec=sys.argv[1] + "/photospng.rec", data_shape=(3, 20, 20), batch_size=5
)
data, label = [], []
while True:
    try:
        batch = it.next()
    except StopIteration:
        break
    data.append(batch.data[0].asnumpy()[:, :, 5:9, 5:9])
    label.append(batch.label[0].asnumpy())
results = {"data": data, "label": label, "pad": batch.pad}
