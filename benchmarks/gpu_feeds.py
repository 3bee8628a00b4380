"""Endless batches of images and labels on a CUDA device, from this project and from others.

Each is a generator function of the job, its files, images in a batch and threads; images are
bfloat16 or float16, normalised, (N, C, H, W) with the channels last in memory.
"""

from __future__ import annotations

import torch

from iterators import ImageRecordIter

__all__ = ["FEEDS", "provider"]


def synthetic(job, files, batch, threads):
    """One batch of noise on the device, again and again."""
    size = job.recipe.size
    images = torch.randn(batch, 3, size, size, device="cuda", dtype=torch.bfloat16)
    images = images.to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    while True:
        yield images, labels


def provider(job, files, threads, **more):
    """This project's provider for a job, with other keywords."""
    return ImageRecordIter(
        path_imgrec=files["records"],
        path_imgidx=files["index"],
        preprocess_threads=threads,
        prefetch_buffer=4,
        verbose=False,
        **{**job.record_iter_parameters(), **more},
    )


def ours(job, files, batch, threads, **more):
    """Batches of this project, decoded on the processor and normalised on the device."""
    form = {"layout": "NHWC", "dtype": "bfloat16", "label_dtype": "int64", "batch_size": batch}
    where = {"device": "cuda", "normalise_on": "device", **more}
    with provider(job, files, threads, **form, **where) as source:
        while True:
            for made in source:
                yield made.data[0].permute(0, 3, 1, 2), made.label[0]


def ours_on_device(job, files, batch, threads):
    """Batches of this project, decoded on the device."""
    yield from ours(job, files, batch, threads, normalise_on="host", decode_on="device")


def dali(job, files, batch, threads, decoder="cpu"):
    """DALI: decoding by the processor or by both, cropping and normalising on the device."""
    from nvidia.dali import fn, types
    from nvidia.dali.pipeline import pipeline_def
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    recipe = job.recipe

    @pipeline_def(device_id=0, prefetch_queue_depth=2, batch_size=batch, num_threads=threads)
    def pipeline():
        jpegs, labels = fn.readers.mxnet(
            path=[files["records"]], index_path=[files["index"]], random_shuffle=True, name="r"
        )
        if recipe.crop == "random_resized":
            images = fn.decoders.image_random_crop(
                jpegs, device=decoder, random_area=recipe.area, random_aspect_ratio=recipe.aspect
            )
        else:
            images = fn.decoders.image(jpegs, device=decoder)
        place = {}
        if recipe.crop == "random":
            place = {
                "crop": (recipe.size, recipe.size),
                "crop_pos_x": fn.random.uniform(range=(0, 1)),
                "crop_pos_y": fn.random.uniform(range=(0, 1)),
            }
        size = {"size": (recipe.size, recipe.size)}
        if recipe.short_side:
            size = {"resize_shorter": recipe.short_side}
        resizes = recipe.short_side or recipe.crop == "random_resized"
        if resizes:
            images = fn.resize(images, interp_type=types.INTERP_LINEAR, antialias=False, **size)
        images = fn.crop_mirror_normalize(
            images.gpu(),
            dtype=types.FLOAT16,
            output_layout="HWC",
            mean=recipe.mean,
            std=recipe.std,
            mirror=fn.random.coin_flip(),
            **place,
        )
        return images, labels.gpu()

    source = DALIGenericIterator(pipeline(), ["images", "labels"], reader_name="r", auto_reset=True)
    while True:
        for (made,) in source:
            yield made["images"].permute(0, 3, 1, 2), made["labels"].flatten().long()


def dali_mixed(job, files, batch, threads):
    """DALI with its mixed decoder."""
    yield from dali(job, files, batch, threads, "mixed")


FEEDS = {
    "synthetic": synthetic,
    "ours": ours,
    "ours, decode_on": ours_on_device,
    "DALI, CPU": dali,
    "DALI, mixed": dali_mixed,
}
