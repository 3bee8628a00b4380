"""What data sets of face recognition do with a record: decode it, and give pixels and a label."""

import numbers
import sys

import mxnet as mx
import numpy as np

prefix = sys.argv[1] + "/photospng"
imgrec = mx.recordio.MXIndexedRecordIO(prefix + ".idx", prefix + ".rec", "r")
s = imgrec.read_idx(0)
header, _ = mx.recordio.unpack(s)
if header.flag > 0:
    imgidx = np.array(range(1, int(header.label[0])))
else:
    imgidx = np.array(list(imgrec.keys))
images, labels = [], []
for index in range(3):
    header, img = mx.recordio.unpack(imgrec.read_idx(imgidx[index]))
    label = header.label
    if not isinstance(label, numbers.Number):
        label = label[0]
    sample = mx.image.imdecode(img).asnumpy()
    images.append(sample[:20, :20])
    labels.append(int(label))
results = {"images": np.stack(images), "labels": labels}
grey = mx.image.imdecode(img, flag=0)
results["grey shape"] = grey.shape
results["bgr"] = mx.image.imdecode(img, to_rgb=False)[:10, :10].asnumpy()
results["type"] = str(np.dtype(grey.dtype))
