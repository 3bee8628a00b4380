"""Numbers in text."""

import sys

import mxnet as mx

folder = sys.argv[1]
it = mx.io.CSVIter(
    data_csv=folder + "/data.csv",
    data_shape=(3, 2),
    label_csv=folder + "/label.csv",
    batch_size=4,
    round_batch=True,
)
results = {}
for number, batch in enumerate(it):
    results["%d/data" % number] = batch.data[0].asnumpy()
    results["%d/label" % number] = batch.label[0].asnumpy()
    results["%d/pad" % number] = batch.pad
