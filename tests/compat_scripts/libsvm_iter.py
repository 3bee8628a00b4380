"""A sparse matrix."""

import sys

import mxnet as mx

it = mx.io.LibSVMIter(data_libsvm=sys.argv[1] + "/data.libsvm", data_shape=(20,), batch_size=3)
results = {}
for number, batch in enumerate(it):
    results["%d/data" % number] = batch.data[0].asnumpy()
    results["%d/stype" % number] = batch.data[0].stype
    results["%d/label" % number] = batch.label[0].asnumpy()
