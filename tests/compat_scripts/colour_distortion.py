"""Colours and boxes of a detection image, changed as gluon-cv's transforms do it."""

import mxnet as mx
import numpy as np

image = mx.nd.array(np.arange(4 * 5 * 3).reshape(4, 5, 3) * 3, dtype="uint8").astype("float32")
image *= 1.25
grey = mx.nd.sum(image * mx.nd.array([[[0.299, 0.587, 0.114]]]), axis=2, keepdims=True)
image *= 0.75
image += grey * (1.0 - 0.75)
turned = mx.nd.dot(image, mx.nd.array([[0.5, 0.25, 0.0], [0.25, 0.5, 0.25], [0.0, 0.25, 0.5]]))
canvas = mx.nd.tile(mx.nd.array([124, 116, 103]).reshape((1, 3)), reps=(48, 1)).reshape((6, 8, 3))
canvas[1:5, 2:7, :] = turned
heat = mx.nd.array([[[0.0, 2.0, -1.0], [3.0, -4.0, 3.0]]])
sizes = 4, 5, 8, 9
interp = mx.image.image._get_interp_method
stacked = mx.nd.empty((2, 4, 5, 3), dtype=image.dtype, ctx=mx.context.Context("cpu_shared", 0))
same = mx.nd.stack(image, turned, out=stacked)
results = {
    "grey": grey.asnumpy(),
    "turned": turned.asnumpy(),
    "canvas": canvas.asnumpy(),
    "stacked": stacked.asnumpy(),
    "joined": mx.nd.concat(image, turned, dim=0).shape,
    "filled": isinstance(124, mx.base.numeric_types),
    "not filled": isinstance((124, 116), mx.base.numeric_types),
    "argmax": mx.nd.argmax(heat, 2).asnumpy(),
    "argmin": mx.nd.argmin(heat, axis=1).asnumpy(),
    "max": mx.nd.max(heat, 2).asnumpy(),
    "min": mx.nd.min(heat, axis=(0, 2)).asnumpy(),
    "mean": mx.nd.mean(heat).asnumpy(),
    "sign": mx.nd.sign(heat).asnumpy(),
    "positive": mx.nd.greater(heat, 0.0).asnumpy().astype("float32"),
    "product": mx.nd.dot(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[5], [6]])).asnumpy(),
    "methods": [interp(9, sizes), interp(9, sizes[2:] + sizes[:2]), interp(9, (4, 9, 8, 5))],
    "others": [interp(9), interp(2), interp(0, sizes)],
    "returned": type(same).__name__,
}
