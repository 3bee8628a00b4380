"""Batches of a data set: samplers, the last batch, workers, and a function that makes batches."""

import mxnet as mx
import numpy as np

gluon = mx.gluon
data = gluon.data.ArrayDataset(np.arange(14, dtype="float32").reshape(7, 2), np.arange(7))
results = {}
for last in ("keep", "discard", "rollover"):
    loader = gluon.data.DataLoader(data, batch_size=3, last_batch=last)
    results[last + "/length"] = len(loader)
    for epoch in range(2):
        for number, (x, y) in enumerate(loader):
            results["%s/%d/%d/x" % (last, epoch, number)] = x.asnumpy()
            results["%s/%d/%d/y" % (last, epoch, number)] = y.asnumpy()
for kind, keywords in (("processes", {}), ("threads", {"thread_pool": True})):
    loader = gluon.data.DataLoader(data, batch_size=4, num_workers=2, **keywords)
    results[kind] = [x.asnumpy() for x, _ in loader][0]
batches = gluon.data.BatchSampler(gluon.data.SequentialSampler(7), 5, "keep")
loader = gluon.data.DataLoader(
    data, batch_sampler=batches, batchify_fn=lambda samples: mx.nd.array([s[1] for s in samples])
)
results["own"] = [batch.asnumpy() for batch in loader][1]
evens = gluon.data.FilterSampler(lambda sample: sample[1] % 2 == 0, data)
results["evens"] = list(evens)
np.random.seed(3)
results["random"] = list(gluon.data.RandomSampler(6))
