"""Contexts, seeds, and a batch for several devices."""

import mxnet as mx
import numpy as np

contexts = [mx.gpu(i) for i in range(mx.context.num_gpus())] or [mx.cpu(0)]
batch = mx.nd.arange(8).reshape((4, 2))
parts = mx.gluon.utils.split_and_load(batch, [mx.cpu(0), mx.cpu(1)])
uneven = mx.gluon.utils.split_data(mx.nd.arange(7), 3, even_split=False)
mx.random.seed(5)
first = mx.nd.random.uniform(0, 1, shape=(3,)).asnumpy()
mx.random.seed(5)
again = mx.nd.random.uniform(0, 1, shape=(3,)).asnumpy()
array = mx.nd.ones((2,), ctx=contexts[0])
results = {
    "contexts": [str(context) for context in contexts],
    "gpu": str(mx.gpu(3)),
    "equal": mx.cpu() == mx.Context("cpu", 0),
    "context": str(array.context),
    "moved": array.as_in_context(mx.cpu()).asnumpy(),
    "parts": [part.asnumpy() for part in parts],
    "uneven": [part.shape for part in uneven],
    "seeded": bool((first == again).all()),
    "sorted": np.sort(mx.nd.random.shuffle(mx.nd.arange(5)).asnumpy()),
}
with mx.Context("cpu", 0):
    results["current"] = str(mx.current_context())
mx.test_utils.assert_almost_equal(array, np.ones(2))
