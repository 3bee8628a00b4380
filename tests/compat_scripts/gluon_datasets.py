"""Data sets of gluon: arrays, records, images, and what is made of them."""

import sys

import mxnet as mx
import numpy as np

ArrayDataset = mx.gluon.data.ArrayDataset
SimpleDataset = mx.gluon.data.SimpleDataset
arrays = ArrayDataset(mx.nd.arange(6).reshape((3, 2)), mx.nd.array([5, 6, 7]))
results = {
    "item": arrays[1][0].asnumpy(),
    "label": arrays[1][1],
    "doubled": arrays.transform_first(lambda x: x * 2)[2][0].asnumpy(),
    "lazy": list(SimpleDataset([1, 2, 3]).transform(lambda x: x + 1, lazy=False)[:]),
    "odd": [x for x in SimpleDataset(list(range(9))).filter(lambda x: x % 2)],
    "shard": [x for x in SimpleDataset(list(range(9))).shard(4, 1)],
}
records = mx.gluon.data.RecordFileDataset(sys.argv[1] + "/photospng.rec")
results["records"] = len(records)
results["record"] = list(records[2][:40])
images = mx.gluon.data.vision.ImageRecordDataset(
    sys.argv[1] + "/photospng.rec",
    transform=lambda image, label: (image.astype("float32") / 255, label),
)
image, label = images[4]
results["image"] = image.asnumpy()[::6, ::6]
results["image label"] = np.float32(label)
