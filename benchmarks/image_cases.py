"""Cases of the image pipeline: batches of `ImageRecordIter` against decoding alone.

The reference is the rate at which one thread of libjpeg-turbo decodes the same photographs
completely, times the number of threads: a pipeline that decodes everything and does the rest for
nothing would have the ratio 1.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import Stopwatch, absolute, case, compare, reported
from jpeg_limits import full_decode_rate

from iterators import CreateAugmenter, ImageIter, ImageRecordIter, Pack

PREFETCH = 4
IMAGENET = {
    "mean_r": 123.68,
    "mean_g": 116.779,
    "mean_b": 103.939,
    "std_r": 58.393,
    "std_g": 57.12,
    "std_b": 57.375,
}
#: Of random resized crops.
AREA = {
    "min_random_area": 0.08,
    "max_random_area": 1.0,
    "min_aspect_ratio": 3 / 4,
    "max_aspect_ratio": 4 / 3,
}


def steady_rate(provider, epochs=1):
    """Rate of some epochs, from when the batches that were prepared ahead have been taken."""
    watch, images = None, 0
    for number, batch in enumerate(chain.from_iterable(repeat(provider, epochs))):
        if watch:
            images += batch.count_samples()
        elif number == PREFETCH:
            watch = Stopwatch()
    return watch.rate(images)


def provider_of(material, records, threads=None, **parameters):
    """Shuffled batches of a record file."""
    return ImageRecordIter(
        path_imgrec=str(records),
        path_imgidx=str(records.with_suffix(".idx")),
        shuffle=True,
        seed=1,
        preprocess_threads=threads or material.threads,
        prefetch_buffer=PREFETCH,
        **parameters,
    )


def against_full_decode(material, job, records, blobs, bar, **parameters):
    """Compare epochs of the record file with decoding its images."""
    with provider_of(material, records, **parameters) as provider:
        return compare(
            job,
            "images/s",
            partial(steady_rate, provider),
            partial(reported, partial(full_decode_rate, blobs, material.seconds), material.threads),
            bar=bar,
            rounds=material.rounds,
            detail=f"reference: {material.threads} x one thread decoding fully",
        )


@case
def free_cores(material):
    """Compare decoding in all threads with one: the other cases need all the cores."""

    def all_threads():
        with ThreadPoolExecutor(material.threads) as pool:
            decode = partial(full_decode_rate, material.blobs, material.seconds)
            return sum(pool.map(lambda _: decode(), range(material.threads)))

    yield compare(
        f"decoding in {material.threads} threads",
        "images/s",
        partial(reported, all_threads),
        partial(reported, partial(full_decode_rate, material.blobs, material.seconds)),
        bar=0.9 * material.threads,
        rounds=material.rounds,
        detail="reference: one thread; missed means that others use the machine",
    )


@case
def random_resized_crop(material):
    """Random resized crop and mirror to 3x224x224, float32 with mean and std."""
    yield against_full_decode(
        material,
        "random resized crop 224",
        material.photo_records,
        material.blobs,
        1.0,
        data_shape=(3, 224, 224),
        batch_size=128,
        random_resized_crop=True,
        min_random_area=0.08,
        max_random_area=1.0,
        min_aspect_ratio=3 / 4,
        max_aspect_ratio=4 / 3,
        rand_mirror=True,
        **IMAGENET,
    )


@case
def heavy_recipe(material):
    """Resize, warp, crop, mirror and colours against the random resized crop, in turn."""
    common = {
        "path_imgrec": str(material.photo_records),
        "path_imgidx": str(material.photo_records.with_suffix(".idx")),
        "data_shape": (3, 224, 224),
        "batch_size": 128,
        "shuffle": True,
        "rand_mirror": True,
        "preprocess_threads": material.threads,
        "prefetch_buffer": PREFETCH,
        **IMAGENET,
    }
    heavy = ImageRecordIter(
        resize=256, rand_crop=True, random_h=36, random_s=50, random_l=50, max_rotate_angle=10,
        max_shear_ratio=0.1, **common,
    )  # fmt: skip
    light = ImageRecordIter(
        random_resized_crop=True, min_random_area=0.08, min_aspect_ratio=3 / 4,
        max_aspect_ratio=4 / 3, **common,
    )  # fmt: skip
    with heavy, light:
        yield compare(
            "heavy recipe 224",
            "images/s",
            partial(steady_rate, heavy),
            partial(steady_rate, light),
            bar=0.6,
            rounds=material.rounds,
            detail="reference: random resized crop",
        )


@case
def functions_in_python(material):
    """`ImageIter` with the steps of `CreateAugmenter` in Python against the same in the stage."""
    shape = (3, 224, 224)
    plain = {"rand_crop": True, "rand_mirror": True, "mean": True, "std": True}
    colours = {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "pca_noise": 0.1}
    for job, more in (("plain", {"resize": 256}), ("colours", {"rand_resize": True} | colours)):
        described = CreateAugmenter(shape, **plain, **more)
        common = {
            "path_imgrec": str(material.photo_records),
            "path_imgidx": str(material.photo_records.with_suffix(".idx")),
            "shuffle": True,
            "preprocess_threads": material.threads,
            "prefetch_buffer": PREFETCH,
        }
        with (
            ImageIter(128, shape, aug_list=list(described), **common) as python,
            ImageIter(128, shape, aug_list=described, **common) as stage,
        ):
            yield compare(
                f"aug_list of functions, {job}",
                "images/s",
                partial(steady_rate, python),
                partial(steady_rate, stage),
                bar=0.3,
                rounds=material.rounds,
                detail="reference: what CreateAugmenter returns",
            )


@case
def resize_crop(material):
    """Shorter side to 256, random crop and mirror to 3x224x224, float32 with mean and std."""
    yield against_full_decode(
        material,
        "resize 256, random crop 224",
        material.photo_records,
        material.blobs,
        0.85,
        data_shape=(3, 224, 224),
        batch_size=128,
        resize=256,
        rand_crop=True,
        rand_mirror=True,
        **IMAGENET,
    )


@case
def cached(material):
    """Epochs of resize 256 and random crop from a cache, and the epoch that fills it."""
    common = {
        "path_imgrec": str(material.photo_records),
        "path_imgidx": str(material.photo_records.with_suffix(".idx")),
        "data_shape": (3, 224, 224),
        "batch_size": 128,
        "resize": 256,
        "rand_crop": True,
        "rand_mirror": True,
        "shuffle": True,
        "seed": 1,
        "preprocess_threads": material.threads,
        "prefetch_buffer": PREFETCH,
        "verbose": False,
        **IMAGENET,
    }

    def first_epoch(**cache):
        with ImageRecordIter(**common, **cache) as provider:
            return steady_rate(provider)

    with TemporaryDirectory() as folder, ImageRecordIter(**common) as plain:
        for name, cache in (("memory", "ram"), ("a file", Path(folder, "images.cache"))):
            with ImageRecordIter(**common, cache=cache) as provider:
                for _batch in provider:
                    pass
                yield compare(
                    f"resize 256, random crop 224, cached in {name}",
                    "images/s",
                    partial(steady_rate, provider),
                    partial(steady_rate, plain),
                    bar=3.0,
                    rounds=material.rounds,
                    detail="reference: the same without a cache",
                )
    yield compare(
        "the epoch that fills a cache in memory",
        "images/s",
        partial(first_epoch, cache="ram"),
        first_epoch,
        bar=0.4,
        rounds=material.rounds,
        detail="reference: a first epoch without a cache",
    )


@case
def faces(material):
    """112x112 faces: mirror, mean and scale, no resampling."""
    yield against_full_decode(
        material,
        "faces 112",
        material.face_records,
        material.face_blobs,
        0.85,
        data_shape=(3, 112, 112),
        batch_size=256,
        rand_mirror=True,
        mean_r=127.5,
        mean_g=127.5,
        mean_b=127.5,
        scale=1 / 127.5,
    )


@case
def mixed_packs(material):
    """Faces of two packs, in shares of 70 and 30 % and by class, against a list of paths."""
    path = str(material.face_records)
    two = [Pack(path, share=0.7), Pack(path, share=0.3, labels="append")]
    alike = [Pack(path), Pack(path, labels="append")]
    for job, parameters in (
        ("two packs in shares, faces 112", {"path_imgrec": two, "shuffle": True}),
        ("batches by class, faces 112", {"path_imgrec": alike, "images_per_class": 4}),
    ):
        common = {
            "data_shape": (3, 112, 112),
            "batch_size": 256,
            "rand_mirror": True,
            "preprocess_threads": material.threads,
            "prefetch_buffer": PREFETCH,
            "seed": 1,
            **IMAGENET,
        }
        with (
            ImageRecordIter(**parameters, **common) as mixed,
            ImageRecordIter(path_imgrec=[path, path], shuffle=True, **common) as listed,
        ):
            yield compare(
                job,
                "images/s",
                partial(steady_rate, mixed),
                partial(steady_rate, listed),
                bar=0.97,
                rounds=material.rounds,
                detail="reference: the same packs as a list of paths",
            )


@case
def raw_pixels(material):
    """Photographs of short side 256 as raw pixels against the same as JPEG of quality 95."""
    packs = [material.resized_records(encoding) for encoding in ("raw", ".jpg")]
    larger = packs[0].stat().st_size / packs[1].stat().st_size
    for job, parameters in (
        ("raw, random resized crop 224", {"random_resized_crop": True, **AREA, **IMAGENET}),
        ("raw, random crop 224", {"rand_crop": True, **IMAGENET}),
        ("raw, random crop 224, uint8", {"rand_crop": True, "dtype": "uint8", "layout": "NHWC"}),
    ):
        providers = [
            provider_of(
                material,
                path,
                data_shape=(3, 224, 224),
                batch_size=128,
                rand_mirror=True,
                **parameters,
            )
            for path in packs
        ]
        with providers[0] as ours, providers[1] as reference:
            yield compare(
                job,
                "images/s",
                partial(steady_rate, ours, 8),  # an epoch takes a tenth of a second
                partial(steady_rate, reference),
                bar=5.0,
                rounds=material.rounds,
                detail=f"reference: the same as JPEG; {larger:.1f} x the bytes",
            )


def resident_bytes():
    """Memory of this process that is in use now, without pages of mapped files."""
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))


def growth_over_epochs(records, threads, epochs, settled):
    """Print how many bytes the process grows from the end of epoch `settled` to the last."""
    with ImageRecordIter(
        path_imgrec=records,
        path_imgidx=records[:-3] + "idx",
        data_shape=(3, 224, 224),
        batch_size=64,
        shuffle=True,
        random_resized_crop=True,
        min_random_area=0.08,
        rand_mirror=True,
        preprocess_threads=threads,
    ) as provider:
        used = []
        for _ in range(epochs):
            for _batch in provider:
                pass
            gc.collect()
            used.append(resident_bytes())
    print(used[-1] - used[settled - 1])


@case
def memory(material):
    """Growth of resident memory from the end of epoch 5 to the end of epoch 20."""
    program = "import sys; from image_cases import growth_over_epochs as measure; " + (
        f"measure(sys.argv[1], {material.threads}, 20, 5)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program, str(material.few_photo_records)],
        cwd=Path(__file__).parent,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    grown = int(printed) / 2**20
    yield absolute("memory grown, epochs 5-20", "MiB", [grown], bar=16, at_least=False)
