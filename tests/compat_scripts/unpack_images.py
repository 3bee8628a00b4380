"""Decode the images of records as OpenCV orders them, grey and in colour."""

import sys

import numpy as np
from mxnet import recordio

record = recordio.MXIndexedRecordIO(
    sys.argv[1] + "/photospng.idx", sys.argv[1] + "/photospng.rec", "r"
)
results = {}
for key in (1, 4):
    header, image = recordio.unpack_img(record.read_idx(key))
    results["%d/image" % key] = image[::5, ::5]
    header, grey = recordio.unpack_img(record.read_idx(key), 0)
    results["%d/grey" % key] = grey[::5, ::5]
pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
packed = recordio.pack_img(recordio.IRHeader(0, 3.0, 9, 0), pixels, quality=3, img_fmt=".png")
header, again = recordio.unpack_img(packed)
results["again"] = again
results["label"] = header.label
