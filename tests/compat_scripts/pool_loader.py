"""A loader with a pool of its own, as gluon-cv has one: the transform changes with the batch."""

from multiprocessing.pool import ThreadPool

import mxnet as mx


class Changing(mx.gluon.data.dataloader._MultiWorkerIter):
    """Doubles the samples of every second batch."""

    def _push_next(self):
        indices = next(self._iter, None)
        if indices is None:
            return
        work = indices, self._sent_idx % 2 + 1, self._batchify_fn, self._dataset
        self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(self._worker_fn, work)
        self._sent_idx += 1


class Loader(mx.gluon.data.DataLoader):
    """Hands its batches to a pool of two threads."""

    def __iter__(self):
        return Changing(
            pool, self._batchify_fn, self._batch_sampler, self._pin_memory, worker_fn=many,
            prefetch=2, dataset=self._dataset,
        )  # fmt: skip


def many(indices, factor, batchify, data):
    return batchify([mx.nd.array(data[i]) * factor for i in indices])


def plain(indices, batchify, data):
    return batchify([mx.nd.array(data[i]) for i in indices])


pool = ThreadPool(2)
data = [[i, i + 0.5] for i in range(7)]
loader = Loader(data, batch_size=2)
sampler = mx.gluon.data.BatchSampler(mx.gluon.data.SequentialSampler(7), 3, "discard")
unchanged = mx.gluon.data.dataloader._MultiWorkerIter(
    pool, mx.gluon.data.dataloader.default_batchify_fn, sampler, worker_fn=plain, dataset=data
)
results = {
    "epochs": [[batch.asnumpy() for batch in loader] for _ in range(2)],
    "length": len(unchanged),
    "first": next(unchanged).asnumpy(),
    "rest": [batch.asnumpy() for batch in unchanged],
}
pool.terminate()
