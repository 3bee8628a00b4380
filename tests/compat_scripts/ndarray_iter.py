"""Arrays with names, and the three ways to end an epoch."""

import mxnet as mx
import numpy as np

data = {"image": np.arange(42.0).reshape(7, 3, 2), "extra": mx.nd.arange(7)}
label = np.arange(7)
results = {}
for handle in ("pad", "discard", "roll_over"):
    it = mx.io.NDArrayIter(data, label, batch_size=3, last_batch_handle=handle)
    for epoch in range(2):
        it.reset()
        for number, batch in enumerate(it):
            name = "%s/%d/%d/" % (handle, epoch, number)
            arrays = dict(zip([desc[0] for desc in it.provide_data], batch.data))
            results[name + "image"] = arrays["image"].asnumpy()
            results[name + "extra"] = arrays["extra"].asnumpy()
            results[name + "label"] = batch.label[0].asnumpy()
    results[handle + "/names"] = sorted(desc.name for desc in it.provide_data)
