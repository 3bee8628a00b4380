"""Cases of the layout engine: a batch of images into another order of axes."""

from __future__ import annotations

import numpy as np
import torch
from harness import case, compare, timed

from iterators.core.layout import plan

SHAPE = (256, 3, 224, 224)


@case
def transpose_batch(material):
    """``bchw -> chwb`` of 256 float32 images: the plan against NumPy and torch doing that copy."""
    images = np.random.default_rng(3).random(SHAPE, np.float32)
    tensor = torch.from_numpy(images)
    convert = plan("bchw", "chwb")

    def ours():
        convert(images, contiguous=True)
        return len(images)

    def with_numpy():
        np.ascontiguousarray(images.transpose(1, 2, 3, 0))
        return len(images)

    def with_torch():
        tensor.permute(1, 2, 3, 0).contiguous()
        return len(images)

    for name, reference in (("numpy", with_numpy), ("torch", with_torch)):
        yield compare(
            f"bchw -> chwb, against {name}",
            "images/s",
            lambda: timed(ours),
            lambda reference=reference: timed(reference),
            bar=1 / 1.3,
            rounds=material.rounds,
            detail=f"torch uses {torch.get_num_threads()} threads" if name == "torch" else "",
        )
