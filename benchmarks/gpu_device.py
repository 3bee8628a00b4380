"""Decoding on the device: whether it is right, and which calls of nvJPEG are fast.

`check` compares the kernel on the device with the same kernel on the processor, to the bit, and the
pixels of nvJPEG with those of the processor; `widths` finds rates by images of a call and decoders.
"""

from __future__ import annotations

import time
from itertools import islice
from unittest import mock

import numpy as np
import torch
from harness import markdown_table

from iterators import ImageRecordIter
from iterators.images.augment.recipe import Recipe
from iterators.images.device.cuda import CudaMachine
from iterators.images.device.decoder import lay_out
from iterators.images.device.table import TablePlan, TableRenderer, empty_block, run_kernel
from iterators.images.plan import RenderPlan
from iterators.providers import image_engines
from recordio import RecordReader

__all__ = ["check", "checked", "widths"]

CROPS = {"random_resized_crop": True, "min_random_area": 0.08, "max_random_area": 1.0}
CROPS |= {"min_aspect_ratio": 0.75, "max_aspect_ratio": 4 / 3, "rand_mirror": True}
#: What is checked: keywords of `ImageRecordIter`.
CHECKED = {
    "random resized crop 224": CROPS,
    "the same of 64, scaled": {"data_shape": (3, 64, 64), **CROPS},
    "in full": {"scaled_decode": False, **CROPS},
    "OpenCV's cubic": {"inter_method": 2, **CROPS},
    "Pillow's bilinear": {"resample": "pillow", **CROPS},
    "Pillow's bicubic": {"resample": "pillow", "interpolation": "bicubic", **CROPS},
    "resized twice": {"resize": 400, **CROPS},
    "short side 256, crop, NHWC": {"resize": 256, "rand_crop": True, "layout": "NHWC"},
    "grey": {"data_shape": (1, 224, 224), **CROPS},
}
WIDTHS, DECODERS = (1, 2, 4, 5, 8, 16), (1, 2, 3, 4)


def checked(machine):
    """A kind of machine whose kernel's results are compared with those of the processor."""

    class Checked(machine):
        batches = differing = 0

        def resample(self, layout, tail, pixels, out, form, slots):
            super().resample(layout, tail, pixels, out, form, slots)
            tail, pixels = tail.cpu().clone(), pixels.cpu().clone()
            wanted = torch.zeros(out.shape, dtype=out.dtype)
            memory = [one.data_ptr() for one in (pixels, wanted)]
            run_kernel(tail.data_ptr(), layout.rows, *memory, form, slots, layout.most)
            Checked.batches += 1
            Checked.differing += not torch.equal(out.cpu(), wanted)

    return Checked


def check(path, machine=CudaMachine, batches=4, batch=32):
    """A table of recipes: whether kernels agree, and how far pixels are from the processor's."""
    lines = []
    for name, keywords in CHECKED.items():
        asked = {"path_imgrec": path, "data_shape": (3, 224, 224), "batch_size": batch, "seed": 5}
        asked |= {"shuffle": True, "verbose": False, "dtype": "uint8", **keywords}
        kind = checked(machine)
        with (
            mock.patch.object(image_engines, "CudaMachine", kind),
            ImageRecordIter(**asked, device="cuda", decode_on="device") as there,
            ImageRecordIter(**asked) as here,
        ):
            pairs = [(there.next().data[0].cpu(), here.next().data[0]) for _ in range(batches)]
            counts = there.stats()
        off = np.abs(np.stack([np.int16(one) - other for one, other in pairs], dtype=np.int16))
        # As floats, the kernel normalises as well.
        with (
            mock.patch.object(image_engines, "CudaMachine", kind),
            ImageRecordIter(
                **{**asked, "dtype": "float16", "mean_r": 120, "std_r": 57},
                device="cuda",
                decode_on="device",
            ) as there,
        ):
            there.next()
        same = "yes" if kind.batches and not kind.differing else f"NO: {kind.differing} differ"
        share = counts["device_images"] / (counts["device_images"] + counts["host_images"])
        lines.append((name, same, f"{share:.0%}", f"{off.mean():.3f}", f"{off.max()}"))
    head = ["", "kernel to the bit", "on the device", "levels, mean", "most"]
    return markdown_table(head, *lines)


def widths(path, machine=CudaMachine, device=None, seconds=2.0, batch=256, slots=()):
    """A table of rates by images of a call (lines) and decoders (columns), without resampling."""
    device = device or torch.device("cuda", 0)
    plan = RenderPlan(Recipe(data_shape=(3, 224, 224), **CROPS))
    with RecordReader(path) as reader:
        records = list(islice(reader, batch))
    lines = []
    for width in slots or WIDTHS:
        line = [str(width)]
        for decoders in DECODERS:
            try:
                line.append(
                    f"{rate_of(plan, records, machine(device, decoders), width, seconds):.0f}"
                )
            except (RuntimeError, MemoryError) as error:
                line.append(str(error).partition(";")[0])
        lines.append(line)
    opened = machine(device, 1).decoder(3)
    described = (
        f"Engines for JPEG: {'yes' if opened.hardware else 'no'}, "
        f"{opened.images_per_call} images in a call by default, "
        f"scales: {'yes' if opened.scales else 'no'}, "
        f"smooth chroma: {'yes' if opened.smooth else 'no'}"
    )
    return described + "\n\n" + markdown_table(["images in a call", *map(str, DECODERS)], *lines)


def rate_of(plan, records, machine, width, seconds):
    """Images a second of the decoder alone, for the same block again and again."""
    decoder = machine.decoder(3, images_per_call=width)
    table = TablePlan(plan, decoder, len(records))
    renderer = TableRenderer(table)
    room = 2 * sum(map(len, records)) + len(records) * (1 << 16)
    block = empty_block(room, len(records), machine.allocate)
    for slot, record in enumerate(records):
        renderer.fill(record, 0, slot, 0, block, slot)
    layout = lay_out(block, 3, decoder.hardware)
    pixels = machine.empty(max(layout.pixels, 1))
    for turn in range(2):  # the first one takes memory
        start, images = time.perf_counter(), 0
        while images == 0 or (turn and time.perf_counter() - start < seconds):
            with machine.working():
                machine.decode(decoder, block, pixels)
                machine.mark()()
            images += layout.jpegs
    return images / (time.perf_counter() - start)
