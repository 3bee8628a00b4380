"""MNIST's files, flat and as images."""

import sys

import mxnet as mx

folder = sys.argv[1]
results = {}
for flat in (True, False):
    it = mx.io.MNISTIter(
        image=folder + "/images-idx3-ubyte",
        label=folder + "/labels-idx1-ubyte",
        batch_size=5,
        shuffle=False,
        flat=flat,
        silent=True,
    )
    batches = list(it)
    results["flat %s/count" % flat] = len(batches)
    results["flat %s/data" % flat] = batches[0].data[0].asnumpy()
    results["flat %s/label" % flat] = batches[-1].label[0].asnumpy()
