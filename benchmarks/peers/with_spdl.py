"""SPDL: a pipeline of threads over the JPEG files, OpenCV in them.

As many threads as are given; images are transformed by as many at a time, batches are made of them
in another stage, two ahead, and normalised as for the `DataLoader`.
"""

import importlib.metadata
import random

import cv2
import torch
from opencv_images import Transform
from protocol import serve
from spdl.pipeline import PipelineBuilder
from torch_batches import collate, normalised


def endless(paths):
    """Paths with their numbers, one permutation after the other."""
    order = list(enumerate(paths))
    while True:
        random.shuffle(order)
        yield from order


def images(job, files, threads):
    """Batches of one epoch after the other."""
    transform = Transform(job.recipe)

    def sample(numbered):
        number, path = numbered
        with open(path, "rb") as file:
            return transform(file.read()), number % 1000

    with open(files["list"]) as file:
        paths = file.read().splitlines()
    pipeline = (
        PipelineBuilder()
        .add_source(endless(paths))
        .pipe(sample, concurrency=threads)
        .aggregate(job.batch)
        .pipe(collate)
        .add_sink(2)
        .build(num_threads=threads)
    )
    with pipeline.auto_stop():
        for batch in normalised(pipeline, job.recipe):
            yield len(batch)


if __name__ == "__main__":
    versions = {
        "SPDL": importlib.metadata.version("spdl-core"),
        "torch": torch.__version__,
        "OpenCV": cv2.__version__,
    }
    serve(versions, images=images)
