"""A list of augmenters, called one by one as MXNet's own iterators do."""

import sys

import mxnet as mx
import numpy as np

record = mx.recordio.MXRecordIO(sys.argv[1] + "/photospng.rec", "r")
_, content = mx.recordio.unpack(record.read())
steps = mx.image.CreateAugmenter(
    (3, 20, 28), resize=32, mean=np.array([10.0, 20, 30]), std=np.array([2.0, 3, 4])
)
data = mx.image.imdecode(content)
for step in steps:
    data = step(data)
results = {"image": data.asnumpy(), "steps": len(steps)}
chain = mx.image.SequentialAug(
    [mx.image.ForceResizeAug((12, 10)), mx.image.CastAug(), mx.image.HorizontalFlipAug(1)]
)
results["chain"] = chain(mx.image.imdecode(content)).asnumpy()
results["channels first"] = mx.nd.transpose(data, axes=(2, 0, 1)).asnumpy()
