"""What torchvision makes of a picture, in bytes, for each step with fixed numbers.

``python tests/iterators/images/augment/library_pixels.py`` stores it in ``tests/golden/steps.npz``.
"""

from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parents[3] / "golden" / "steps.npz"
WIDTH, HEIGHT = 33, 24

#: Steps of ours without chance, and torchvision's functions with their arguments.
STEPS = {
    "brightness": ([{"op": "color_jitter", "brightness": (1.3, 1.3)}], "adjust_brightness", 1.3),
    "contrast": ([{"op": "color_jitter", "contrast": (0.6, 0.6)}], "adjust_contrast", 0.6),
    "saturation": ([{"op": "color_jitter", "saturation": (1.7, 1.7)}], "adjust_saturation", 1.7),
    "hue": ([{"op": "color_jitter", "hue": (-0.31, -0.31)}], "adjust_hue", -0.31),
    "grayscale": (["grayscale"], "rgb_to_grayscale", 3),
    "solarize": ([{"op": "solarize", "threshold": 99.5}], "solarize", 99.5),
    "posterize": ([{"op": "posterize", "bits": 3}], "posterize", 3),
    "equalize": (["equalize"], "equalize"),
    "autocontrast": (["autocontrast"], "autocontrast"),
    "sharpness": ([{"op": "sharpness", "factor": 2.5}], "adjust_sharpness", 2.5),
    "invert": (["invert"], "invert"),
    "hflip": (["hflip"], "hflip"),
    "vflip": (["vflip"], "vflip"),
    "blur": (
        [{"op": "gaussian_blur", "kernel_size": (5, 9), "sigma": 1.3}],
        "gaussian_blur", [5, 9], [1.3, 1.3],
    ),
    "wide blur": (
        [{"op": "gaussian_blur", "kernel_size": 23, "sigma": 2.0}],
        "gaussian_blur", [23, 23], [2.0, 2.0],
    ),
}  # fmt: skip
for _name in ("nearest", "bilinear", "bicubic"):
    _moved = {"interpolation": _name, "fill": (9, 80, 255)}
    STEPS[f"rotate {_name}"] = (
        [{"op": "rotate", "degrees": (37.5, 37.5), **_moved}], "rotate", 37.5, _name,
    )  # fmt: skip
    STEPS[f"affine {_name}"] = (
        [{"op": "affine", "degrees": (-20, -20), "scale": (1.2, 1.2), "shear": (8, 8, -5, -5),
          **_moved}],
        "affine", -20.0, [0, 0], 1.2, [8.0, -5.0], _name,
    )  # fmt: skip


def picture():
    """Noise on slopes, so that smooth and rough parts are there."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    slopes = np.dstack([7 * x, 10 * y, 255 - 4 * (x + y)])
    noise = np.random.default_rng(1).integers(-30, 30, slopes.shape)
    return np.clip(slopes + noise * (x[..., None] > WIDTH // 2), 0, 255).astype(np.uint8)


def main():
    from PIL import Image
    from torchvision.transforms import InterpolationMode, functional

    found = {}
    for name, (_, function, *arguments) in STEPS.items():
        more = {}
        if arguments and arguments[-1] in ("nearest", "bilinear", "bicubic"):
            more = {"interpolation": InterpolationMode(arguments.pop()), "fill": [9, 80, 255]}
        image = getattr(functional, function)(Image.fromarray(picture()), *arguments, **more)
        found[name] = np.asarray(image)
    np.savez_compressed(GOLDEN, **found)


if __name__ == "__main__":
    main()
