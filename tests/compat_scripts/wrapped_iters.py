"""An epoch of another length, batches made ahead, and an iterator of one's own."""

import mxnet as mx
import numpy as np


class Squares(mx.io.DataIter):
    def __init__(self, count):
        super(Squares, self).__init__(2)
        self.count, self.number = count, 0
        self.provide_data = [mx.io.DataDesc("data", (2, 1))]
        self.provide_label = [mx.io.DataDesc("softmax_label", (2,))]

    def reset(self):
        self.number = 0

    def next(self):
        if self.number == self.count:
            raise StopIteration
        self.number += 1
        squares = mx.nd.array([[self.number**2], [-self.number]])
        return mx.io.DataBatch([squares], [mx.nd.array([self.number, 0])], pad=0)


results = {"own": [batch.data[0].asnumpy() for batch in Squares(3)]}
inner = mx.io.NDArrayIter(np.arange(8), np.arange(8) % 2, batch_size=4)
resized = mx.io.ResizeIter(inner, 3)
results["resized"] = [batch.data[0].asnumpy() for batch in resized]
ahead = mx.io.PrefetchingIter(mx.io.NDArrayIter(np.arange(8), batch_size=4))
results["ahead"] = [batch.data[0].asnumpy() for batch in ahead]
