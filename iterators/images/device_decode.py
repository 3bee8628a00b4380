"""Decoding and resampling on a CUDA device: nvImageCodec and torch, by the geometry of the stage.

`DeviceDecoder` decodes rectangles of JPEG images where the batch is wanted, and `resampled` takes
them through the steps that the image stage has drawn.  Neither knows records or batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from recordio.extras import need

from ..core.layout import plan as layout_plan
from .augment.recipe import FILTERS, FIRST_FILTER

#: What torch resamples as the stage does, by the numbers of the kernels: mode and antialias.
INTERPOLATIONS = {
    1: ("bilinear", False),
    2: ("bicubic", False),
    FIRST_FILTER + FILTERS.index("bilinear"): ("bilinear", True),
    FIRST_FILTER + FILTERS.index("bicubic"): ("bicubic", True),
}
CHANNELS_FIRST = layout_plan("hwc", "chw")


class DrawnStep(NamedTuple):
    """One resize: the rectangle of its input, the size that it becomes, and the window of that."""

    method: int
    x: int
    y: int
    width: int
    height: int
    target_width: int
    target_height: int
    left: int
    top: int
    out_width: int
    out_height: int


def resampled(image: Any, steps: Sequence[DrawnStep], mirror: bool, flip: bool) -> Any:
    """Return the tensor (C, H, W) of whole grey levels that an image (H, W, C) becomes.

    The image is the rectangle of the first step.
    """
    import torch

    pixels = CHANNELS_FIRST(image)[None].to(torch.float32)
    for number, step in enumerate(steps):
        if number:
            pixels = pixels[..., step.y : step.y + step.height, step.x : step.x + step.width]
        size = step.target_height, step.target_width
        if size != (step.height, step.width):
            mode, antialias = INTERPOLATIONS[step.method]
            pixels = torch.nn.functional.interpolate(pixels, size, mode=mode, antialias=antialias)
            pixels = pixels.round_().clamp_(0, 255)
        pixels = pixels[
            ..., step.top : step.top + step.out_height, step.left : step.left + step.out_width
        ]
    axes = [axis for axis, turned in ((-1, mirror), (-2, flip)) if turned]
    return (pixels.flip(axes) if axes else pixels)[0]


class DeviceDecoder:
    """nvImageCodec on a `torch.device`, for images of 1 or 3 channels."""

    def __init__(self, device: Any, channels: int) -> None:
        self._codec = codec = need(
            "nvidia.nvimgcodec", 'decode_on="device"', 'or leave decode_on="host"'
        )
        self._params = codec.DecodeParams(
            apply_exif_orientation=False,
            color_spec=codec.ColorSpec.GRAY if channels == 1 else codec.ColorSpec.SRGB,
        )
        # The engine of the device where it has one, and no decoder that is the processor's alone.
        kinds = codec.BackendKind
        backends = kinds.HW_GPU_ONLY, kinds.GPU_ONLY, kinds.HYBRID_CPU_GPU
        self._decoder = codec.Decoder(
            device_id=device.index,
            max_num_cpu_threads=1,  # with more, the hybrid decoder waits for ever for one image
            backends=[codec.Backend(kind) for kind in backends],
            options=":fancy_upsampling=1",  # whatever the version takes by default
        )

    def __call__(
        self, contents: Sequence[bytes], steps: Sequence[DrawnStep], stream: Any
    ) -> list[Any]:
        """Decode the rectangle of a step of each image, on a stream of torch.

        Each is a uint8 tensor (height, width, channels), or None if it cannot be decoded there.
        """
        import torch

        opened = [self._opened(*each) for each in zip(contents, steps, strict=True)]
        known = [view for view in opened if view is not None]
        images = iter(
            self._decoder.decode(known, params=self._params, cuda_stream=stream.cuda_stream)
            if known
            else []
        )
        decoded = [None if view is None else next(images) for view in opened]
        return [None if one is None else torch.from_dlpack(one) for one in decoded]

    def _opened(self, content: bytes, step: DrawnStep) -> Any:
        codec = self._codec
        try:
            opened = codec.CodeStream(content)
            if (step.width, step.height) == (opened.width, opened.height):
                return opened
            right, bottom = step.x + step.width, step.y + step.height
            return opened.get_sub_code_stream(region=codec.Region(step.y, step.x, bottom, right))
        except RuntimeError:  # it makes no sense of the header
            return None
