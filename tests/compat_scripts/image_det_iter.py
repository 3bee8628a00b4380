"""Images with boxes."""

import sys

import mxnet as mx

it = mx.io.ImageDetRecordIter(
    path_imgrec=sys.argv[1] + "/det_boxes.rec",
    data_shape=(3, 32, 32),
    batch_size=3,
    label_pad_width=40,
    label_pad_value=-1,
    shuffle=False,
)
batch = it.next()
results = {
    "label": batch.label[0].asnumpy(),
    "shape": batch.data[0].shape,
    "pad": batch.pad,
}
