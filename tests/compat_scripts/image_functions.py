"""Functions of mx.image on one image."""

import sys

import mxnet as mx

record = mx.recordio.MXRecordIO(sys.argv[1] + "/photospng.rec", "r")
_, content = mx.recordio.unpack(record.read())
image = mx.image.imdecode(content)
small = mx.image.resize_short(image, 24)
results = {
    "resized": small.asnumpy(),
    "nearest": mx.image.imresize(image, 20, 10, interp=0).asnumpy(),
    "fixed": mx.image.fixed_crop(image, 3, 5, 16, 12).asnumpy(),
    "fixed resized": mx.image.fixed_crop(image, 3, 5, 16, 12, (8, 8), 1).asnumpy(),
    "scaled": mx.image.scale_down((30, 20), (40, 10)),
}
cropped, place = mx.image.center_crop(small, (16, 20))
results["centre"] = cropped.asnumpy()
results["place"] = place
normal = mx.image.color_normalize(
    cropped.astype("float32"), mx.nd.array([1, 2, 3]), mx.nd.array([2, 2, 4])
)
results["normalised"] = normal.asnumpy()
results["border"] = mx.image.copyMakeBorder(cropped, 1, 2, 3, 4, 0, 9).asnumpy()
