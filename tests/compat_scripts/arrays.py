"""Arrays as data code uses them."""

import mxnet as mx
import numpy as np

a = mx.nd.array([[0, 1, 2], [3, 4, 5]])
b = mx.nd.zeros((2, 3), dtype="uint8")
a.copyto(a.copy())
b[:] = 7
b[0, 1:] = 9
target = mx.nd.empty((2, 3))
a.copyto(target)
results = {
    "array": a.asnumpy(),
    "type": str(np.dtype(mx.nd.array(np.arange(3)).dtype)),
    "row": a[1].asnumpy(),
    "entry": a[1, 2].asnumpy(),
    "scalar": a[1, 2].asscalar(),
    "sum": a.sum().asnumpy(),
    "mean": a.mean(axis=0).asnumpy(),
    "largest": a.argmax(axis=1).asnumpy(),
    "set": b.asnumpy(),
    "target": target.asnumpy(),
    "expanded": a.expand_dims(0).shape,
    "reshaped": a.reshape((0, 3, 1)).shape,
    "flat": a.reshape((-1,)).asnumpy(),
    "flattened": mx.nd.zeros((2, 3, 4)).flatten().shape,
    "joined": mx.nd.concat(a, a * 2, dim=0).asnumpy(),
    "listed": mx.nd.concatenate([a, a], axis=1).asnumpy(),
    "stacked": mx.nd.stack(a, a).shape,
    "clipped": mx.nd.clip(a, 1, 3).asnumpy(),
    "flipped": mx.nd.flip(a, axis=1).asnumpy(),
    "hot": mx.nd.one_hot(mx.nd.array([2, 0, 5]), 3).asnumpy(),
    "halves": [part.asnumpy() for part in mx.nd.split(a, num_outputs=3, axis=1)],
    "cut": mx.nd.slice_axis(a, axis=1, begin=1, end=None).asnumpy(),
    "loop": [float(x.asscalar()) for x in a[0]],
    "text": str(a),
    "range": mx.nd.arange(2, 8, step=2, repeat=2).asnumpy(),
    "cast": a.astype("int32").asnumpy(),
    "shape": a.T.shape,
    "bool": bool(a[0, 0]),
    "int": int(a[1, 0].asscalar()),
}
a.wait_to_read()
mx.nd.waitall()
