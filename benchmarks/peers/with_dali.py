"""NVIDIA DALI on the CPU: `readers.mxnet` on the same record file, `crop_mirror_normalize`.

`random_shuffle` with its buffer of 1,024 records, `prefetch_queue_depth=2`, threads as given.
Random resized crops by `decoders.image_random_crop`, which decodes the part only, and `resize`;
otherwise `decoders.image`, `resize`, and the crop inside `crop_mirror_normalize`.  Resampling is
linear; antialiased if the job's is, as Pillow's always is.
"""

import numpy
import nvidia.dali
from nvidia.dali import fn, types
from nvidia.dali.pipeline import pipeline_def
from protocol import Unsupported, serve


@pipeline_def(device_id=None, prefetch_queue_depth=2)
def pipeline(recipe, files):
    """The steps of a recipe."""
    jpegs, labels = fn.readers.mxnet(
        path=[files["records"]],
        index_path=[files["index"]],
        random_shuffle=True,
        initial_fill=1024,
        name="records",
    )
    resampling = {"interp_type": types.INTERP_LINEAR, "antialias": recipe.pillow}
    place = {}
    if recipe.crop == "random_resized":
        images = fn.decoders.image_random_crop(
            jpegs, device="cpu", random_area=recipe.area, random_aspect_ratio=recipe.aspect
        )
        images = fn.resize(images, size=(recipe.size, recipe.size), **resampling)
    else:
        images = fn.decoders.image(jpegs, device="cpu")
        if recipe.short_side:
            images = fn.resize(images, resize_shorter=recipe.short_side, **resampling)
    if recipe.crop == "center":
        place = {"crop": (recipe.size, recipe.size)}
    elif recipe.crop == "random":
        place = {
            "crop": (recipe.size, recipe.size),
            "crop_pos_x": fn.random.uniform(range=(0, 1)),
            "crop_pos_y": fn.random.uniform(range=(0, 1)),
        }
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=recipe.mean,
        std=recipe.std,
        mirror=0 if recipe.crop == "center" else fn.random.coin_flip(),
        **place,
    )
    return images, labels


def images(job, files, threads):
    """Batches of one epoch after the other."""
    if job.recipe.extra:
        raise Unsupported("no such recipe of one call")
    source = pipeline(job.recipe, files, batch_size=job.batch, num_threads=threads)
    source.build()
    while True:
        batch, _labels = source.run()
        yield len(numpy.asarray(batch.as_tensor()))


if __name__ == "__main__":
    serve({"DALI": nvidia.dali.__version__, "NumPy": numpy.__version__}, images=images)
