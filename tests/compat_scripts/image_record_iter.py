"""Train from a pack, in the order of the file."""

import sys

import mxnet as mx

train = mx.io.ImageRecordIter(
    path_imgrec=sys.argv[1] + "/photospng.rec",
    data_shape=(3, 24, 24),
    batch_size=4,
    resize=26,
    mean_r=120,
    mean_g=110,
    mean_b=100,
    std_r=2,
    std_g=2,
    std_b=2,
    preprocess_threads=2,
    shuffle=False,
)
results = {"provide_data": train.provide_data[0].shape, "batch_size": train.batch_size}
train.reset()
for number, batch in enumerate(train):
    results["%d/data" % number] = batch.data[0].asnumpy()[:, :, ::4, ::4]
    results["%d/label" % number] = batch.label[0].asnumpy()
    results["%d/pad" % number] = batch.pad
