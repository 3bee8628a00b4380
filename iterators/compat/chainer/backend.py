"""Names of `chainer.backend`: a device by its name; on a GPU arrays are torch tensors."""

from ...core.device import get_device as get_device
