"""What batches and iterators say about themselves."""

import mxnet as mx
import numpy as np

desc = mx.io.DataDesc("data", (4, 3, 8, 8), dtype=np.uint8, layout="NCHW")
it = mx.io.NDArrayIter(np.zeros((4, 2)), np.zeros(4), 2, label_name="softmax_label")
batch = next(iter(it))
results = {
    "pair": list(desc)[0],
    "shape": desc.shape,
    "equal": desc == ("data", (4, 3, 8, 8)),
    "axis": mx.io.DataDesc.get_batch_axis("TNC"),
    "label name": it.provide_label[0].name,
    "data shape": it.provide_data[0].shape,
    "text": str(batch),
    "batch": batch.data[0].shape,
}
