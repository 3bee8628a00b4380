"""Transforms of gluon that draw nothing."""

import sys

import mxnet as mx

transforms = mx.gluon.data.vision.transforms
record = mx.recordio.MXRecordIO(sys.argv[1] + "/photospng.rec", "r")
_, content = mx.recordio.unpack(record.read())
image = mx.image.imdecode(content)
pipeline = transforms.Compose(
    [
        transforms.Resize(24, keep_ratio=True),
        transforms.CenterCrop((20, 16)),
        transforms.ToTensor(),
        transforms.Normalize((0.4, 0.5, 0.6), (0.2, 0.25, 0.5)),
    ]
)
tensor = pipeline(image)
results = {
    "tensor": tensor.asnumpy(),
    "square": transforms.Resize(18)(image).asnumpy(),
    "wide": transforms.Resize((20, 10))(image).asnumpy(),
    "part": transforms.CropResize(2, 3, 20, 10, (10, 5), 1)(image).asnumpy(),
    "float": transforms.Cast("float16")(image)[:8, :8].asnumpy(),
    "rotated": transforms.Rotate(90)(tensor).asnumpy(),
}


class Negative(mx.gluon.Block):
    def forward(self, x):
        return 255 - x


results["own"] = transforms.Compose([Negative()])(image)[:8, :8].asnumpy()
factor = mx.nd.image.random_brightness(image[:8, :8], 0.5, 0.5)
results["dark"] = factor.asnumpy()
results["contrast"] = mx.nd.image.random_contrast(image[:8, :8], 1.5, 1.5).asnumpy()
