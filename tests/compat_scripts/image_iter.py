"""Images of a pack through the iterator that MXNet wrote in Python."""

import sys

import mxnet as mx

prefix = sys.argv[1] + "/photospng"


class Darker(mx.image.Augmenter):
    def __call__(self, src):
        return mx.nd.array(src.asnumpy() * 0.5)


it = mx.image.ImageIter(
    batch_size=4,
    data_shape=(3, 20, 20),
    path_imgrec=prefix + ".rec",
    path_imgidx=prefix + ".idx",
    aug_list=[mx.image.ForceResizeAug((20, 20), 1), Darker()],
)
results = {}
for number, batch in enumerate(it):
    results["%d/data" % number] = batch.data[0].asnumpy()[: 4 - batch.pad, :, ::3, ::3]
    results["%d/label" % number] = batch.label[0].asnumpy()[: 4 - batch.pad]
    results["%d/pad" % number] = batch.pad
