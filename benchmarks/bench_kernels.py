"""Time the pixel kernels beside OpenCV and NumPy, in one run on one thread.

Usage: ``python benchmarks/bench_kernels.py [--repeat N]``.  Every line shows microseconds for one
image and how many times faster ours is; the two are measured in turns, and the best turns count.
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import cv2
import numpy as np

from recordio.kernels.resample import variants

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from faces import colour
from faces.normalise import normalise
from faces.resample import resize

METHODS = ("nearest", "bilinear", "cubic", "area", "lanczos4")
SIZES = [
    ((344, 295), (224, 224), 3),
    ((448, 448), (224, 224), 3),
    ((672, 672), (224, 224), 3),
    ((500, 375), (224, 224), 3),
    ((150, 150), (224, 224), 3),
    ((344, 295), (224, 224), 1),
]


def best_of_turns(functions, repeat, number=20):
    """Microseconds of each function: the best of `repeat` turns of `number` calls."""
    best = [float("inf")] * len(functions)
    for _ in range(repeat):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(number):
                function()
            best[i] = min(best[i], (time.perf_counter() - start) / number * 1e6)
    return best


def report(name, theirs, ours, repeat):
    them, us = best_of_turns([theirs, ours], repeat)
    print(f"{name:50s} {them:8.0f} {us:8.0f} {them / us:7.2f}x")


def bench_resize(rng, repeat):
    print(f"\n{'resize':50s} {'cv2':>8s} {'ours':>8s}")
    for (width, height), size, channels in SIZES:
        image = rng.integers(0, 256, (height, width, channels), dtype=np.uint8).squeeze()
        out = np.empty((size[1], size[0], *image.shape[2:]), np.uint8)
        theirs = out.copy()
        for method, name in enumerate(METHODS):
            report(
                f"{width}x{height}x{channels} to {size[0]}x{size[1]} {name}",
                partial(cv2.resize, image, size, theirs, interpolation=method),
                partial(resize, image, size, method, out=out),
                repeat,
            )


def normalise_with_numpy(image, mean, factor, axes, out):
    out[...] = ((image - mean) * factor).transpose(axes)


def bench_normalise(rng, repeat):
    print(f"\n{'normalise 224x224x3':50s} {'numpy':>8s} {'ours':>8s}")
    image = rng.integers(0, 256, (224, 224, 3), dtype=np.uint8)
    mean = np.array([123, 117, 104], np.float32)
    factor = np.float32(1) / np.array([58, 57, 56], np.float32)
    for layout, dtype, mirror in [
        ("chw", "float32", False),
        ("chw", "float32", True),
        ("hwc", "float32", False),
        ("chw", "float16", False),
    ]:
        axes = ["hwc".index(axis) for axis in layout]
        out = np.empty([image.shape[axis] for axis in axes], dtype)
        theirs = out.copy()
        source = image[:, ::-1] if mirror else image
        report(
            f"{layout} {dtype}{' mirrored' if mirror else ''}",
            partial(normalise_with_numpy, source, mean, factor, axes, theirs),
            partial(
                normalise,
                image,
                mean=mean,
                std=(58, 57, 56),
                layout=layout,
                dtype=dtype,
                mirror=mirror,
                out=out,
            ),
            repeat,
        )


def bench_colour(rng, repeat):
    print(f"\n{'colour 224x224x3':50s} {'cv2':>8s} {'ours':>8s}")
    image = rng.integers(0, 256, (224, 224, 3), dtype=np.uint8)

    def hls_with_opencv():
        hls = cv2.cvtColor(image, cv2.COLOR_RGB2HLS).astype(np.int16)
        hls = np.clip(hls + np.array([5, -7, 9], np.int16), 0, [180, 255, 255]).astype(np.uint8)
        cv2.cvtColor(hls, cv2.COLOR_HLS2RGB)

    def conversions_with_opencv():
        cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2HLS), cv2.COLOR_HLS2RGB)

    def saturation_with_opencv():
        grey = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), cv2.COLOR_GRAY2BGR)
        cv2.addWeighted(image, 0.9, grey, 0.1, 0)

    def shift():
        colour.shift_hls(image, 5, -7, 9)

    report("HLS shift", hls_with_opencv, shift, repeat)
    report("HLS shift, their conversions alone", conversions_with_opencv, shift, repeat)
    report(
        "brightness",
        lambda: cv2.convertScaleAbs(image, alpha=1.1),
        lambda: colour.brightness(image, 1.1),
        repeat,
    )
    report("saturation", saturation_with_opencv, lambda: colour.saturation(image, 0.9), repeat)


def bench_variants(rng, repeat):
    print("\nvariants, bilinear 344x295x3 to 224x224")
    image = rng.integers(0, 256, (295, 344, 3), dtype=np.uint8)
    out = np.empty((224, 224, 3), np.uint8)
    times = best_of_turns(
        [lambda v=v: resize(image, (224, 224), 1, out=out, variant=v) for v in variants()], repeat
    )
    for variant, microseconds in zip(variants(), times, strict=True):
        print(f"{variant:50s} {microseconds:17.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=9)
    repeat = parser.parse_args().repeat
    cv2.setNumThreads(1)
    rng = np.random.default_rng(0)
    print(f"OpenCV {cv2.__version__}, microseconds for one image")
    for bench in (bench_resize, bench_normalise, bench_colour, bench_variants):
        bench(rng, repeat)


if __name__ == "__main__":
    main()
