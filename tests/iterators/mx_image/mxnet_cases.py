"""Calls of `mx.image`, for MXNet and for us: the same arguments, the same seeds.

``python mxnet_cases.py FILE`` in an environment with MXNet 1.9.1 and OpenCV writes what MXNet
returns; `tests/golden/mx_image_functions.npz` is such a file.
"""

import random
import sys
import tempfile
from pathlib import Path

import numpy as np

BOXES = np.float32([[0, 0.1, 0.2, 0.45, 0.8], [1, 0.5, 0.5, 0.9, 0.95], [2, 0.3, 0.1, 0.35, 0.12]])
LABELS = [
    [2, 5, 0, 0.1, 0.2, 0.45, 0.8, 1, 0.5, 0.5, 0.9, 0.95],
    [4, 5, 60, 40, 3, 0.25, 0.25, 0.5, 1.0],
    [2, 5, 1, 0.5, 0.5, 0.5, 0.75, 2, 0.0, 0.0, 1.0, 0.5],  # the first has no area
    [2, 5, 4, 0.6, 0.1, 0.7, 0.9],
    [2, 5, 5, 0.0, 0.1, 0.25, 0.9],
]
EIGENVALUES = np.array([55.46, 4.794, 1.148])
EIGENVECTORS = np.array(
    [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
)
EVERYTHING = {
    "rand_gray": 0.3, "rand_mirror": True, "mean": True, "std": True, "brightness": 0.1,
    "contrast": 0.2, "saturation": 0.3, "hue": 0.1, "pca_noise": 0.1, "inter_method": 1,
}  # fmt: skip


def pictures():
    """Noise, and a picture whose values change slowly; both uint8."""
    noise = np.random.RandomState(7).randint(0, 256, (9, 14, 3)).astype(np.uint8)
    slope = np.add.outer(3 * np.arange(24), 4 * np.arange(31))[:, :, None] + np.array([0, 5, 9])
    return {"noise": noise, "slope": (slope % 256).astype(np.uint8)}


def functions(im, of, back):
    """Name -> array, of the functions and the augmenters of single images."""
    found = {}

    def put(name, call):
        random.seed(3)
        np.random.seed(3)
        result = call()
        if isinstance(result, tuple):
            result, found[f"{name}/place"] = result[0], np.array(result[1])
        found[name] = back(result)

    for picture, pixels in pictures().items():
        for kind in ("uint8", "float32"):

            def image(pixels=pixels, kind=kind):
                return of(pixels.astype(kind))

            calls = {
                "fixed": lambda: im.fixed_crop(image(), 2, 1, 7, 5),
                "fixed_size": lambda: im.fixed_crop(image(), 2, 1, 7, 5, (10, 11), 1),
                "center": lambda: im.center_crop(image(), (12, 11), 1),
                "random": lambda: im.random_crop(image(), (6, 5), 1),
                "sized": lambda: im.random_size_crop(image(), (12, 11), (0.3, 0.8), (0.75, 1.3), 1),
                "sized_fallback": lambda: im.random_size_crop(image(), (6, 5), 0.9, (9, 10), 1),
                "border_value": lambda: im.copyMakeBorder(image(), 1, 2, 3, 4, 0, 7),
                "border_values": lambda: im.copyMakeBorder(image(), 1, 2, 3, 4, 0, values=(1, 2)),
                "ResizeAug": lambda: im.ResizeAug(10, 1)(image()),
                "ForceResizeAug": lambda: im.ForceResizeAug((10, 8), 1)(image()),
                "CenterCropAug": lambda: im.CenterCropAug((6, 8), 1)(image()),
                "RandomCropAug": lambda: im.RandomCropAug((6, 8), 1)(image()),
                "RandomSizedCropAug": lambda: im.RandomSizedCropAug((6, 8), 0.2, (0.5, 2), 1)(
                    image()
                ),
                "HorizontalFlipAug": lambda: im.HorizontalFlipAug(0.9)(image()),
            }
            for method in range(5):
                calls[f"imresize{method}"] = lambda method=method: im.imresize(
                    image(), 12, 17, interp=method
                )
                calls[f"border{method}"] = lambda method=method: im.copyMakeBorder(
                    image(), 1, 2, 3, 4, type=method
                )
            for method in (0, 1, 9, 10):
                calls[f"resize_short{method}"] = lambda method=method: im.resize_short(
                    image(), 16, method
                )
            for name, call in calls.items():
                put(f"{picture}/{kind}/{name}", call)

        def steps(chain, pixels=pixels, kind="float32"):
            source = of(pixels.astype(kind))
            for step in chain:
                source = step(source)
            return source

        colours = {
            "BrightnessJitterAug": lambda: [im.BrightnessJitterAug(0.4)],
            "ContrastJitterAug": lambda: [im.ContrastJitterAug(0.4)],
            "SaturationJitterAug": lambda: [im.SaturationJitterAug(0.4)],
            "HueJitterAug": lambda: [im.HueJitterAug(0.4)],
            "LightingAug": lambda: [im.LightingAug(0.2, EIGENVALUES, EIGENVECTORS)],
            "RandomGrayAug": lambda: [im.RandomGrayAug(1)],
            "ColorJitterAug": lambda: [im.ColorJitterAug(0.3, 0.4, 0.5)],
            "ColorNormalizeAug": lambda: [
                im.ColorNormalizeAug(*np.float64([[9, 8, 7], [2, 3, 4]]))
            ],
        }
        for name, make in colours.items():
            put(f"{picture}/{name}", lambda make=make: steps(make()))
        created = {"resize": 12, "rand_crop": True, "rand_resize": True, **EVERYTHING}
        chain = lambda: steps(im.CreateAugmenter((3, 8, 10), **created), kind="uint8")  # noqa: E731
        put(f"{picture}/CreateAugmenter", chain)
    return found


def rotations(im, of, back):
    """Name -> array, of the functions that rotate."""
    found = {}
    pixels = pictures()["slope"][:10, :13].astype(np.float32)
    image = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    batch = np.stack([image, image[::-1]])
    for zoom in ({}, {"zoom_in": True}, {"zoom_out": True}):
        name = "rotate/" + "".join(zoom)
        np.random.seed(3)
        found[f"{name}/one"] = back(im.imrotate(of(image), 33.5, **zoom))
        found[f"{name}/all"] = back(im.imrotate(of(batch), -70, **zoom))
        found[f"{name}/each"] = back(im.imrotate(of(batch), of(np.float32([10, 100])), **zoom))
        found[f"{name}/random"] = back(im.random_rotate(of(image), (-30, 30), **zoom))
        found[f"{name}/randoms"] = back(im.random_rotate(of(batch), (-30, 30), **zoom))
    return found


def detection(im, of, back):
    """Name -> image and objects, of the detection augmenters."""
    found = {}
    ranges = [(0.1, 1.0), (0.3, 0.9)]
    created = {"resize": 30, "rand_crop": 0.7, "rand_pad": 0.7, **EVERYTHING}
    makers = {
        "flip": lambda: [im.DetHorizontalFlipAug(0.5)],
        "crop": lambda: [im.DetRandomCropAug(0.2, (0.5, 2), (0.1, 0.9), 0.3, 50)],
        "pad": lambda: [im.DetRandomPadAug((0.75, 1.33), (1.0, 3.0), 50, (1, 2, 3))],
        "select": lambda: [
            im.CreateMultiRandCropAugmenter([0.1, 0.5], area_range=ranges, skip_prob=0.3)
        ],
        "created": lambda: im.CreateDetAugmenter((3, 12, 14), **created),
    }
    for name, make in makers.items():
        for seed in range(6):
            random.seed(seed)
            np.random.seed(seed)
            image, objects = of(pictures()["slope"]), BOXES.copy()
            for step in make():
                image, objects = step(image, objects)
            found[f"det/{name}/{seed}/image"] = back(image)
            found[f"det/{name}/{seed}/objects"] = np.array(objects)
    return found


def described(im):
    """What the steps say about themselves."""
    steps = [
        *im.CreateAugmenter((3, 8, 8), 9, True, True, **EVERYTHING),
        *im.CreateDetAugmenter((3, 8, 8), resize=9, rand_crop=0.5, rand_pad=0.5, **EVERYTHING),
        im.CreateMultiRandCropAugmenter([0.1, 0.5]),
        im.SequentialAug([im.CastAug(), im.CenterCropAug((3, 4))]),
    ]
    return np.array([str(step.dumps()) for step in steps])


def epochs(im, folder, back):
    """Name -> arrays of two epochs of `ImageDetIter`, without anything random."""
    import cv2

    found, images = {}, []
    for number, label in enumerate(LABELS):
        pixels = np.roll(pictures()["slope"], 3 * number, axis=1)
        cv2.imwrite(str(Path(folder, f"{number}.png")), pixels)
        images.append([np.float32(label), f"{number}.png"])
    for handle in ("pad", "discard", "roll_over"):
        iterator = im.ImageDetIter(
            3, (3, 12, 14), imglist=images, path_root=str(folder), inter_method=1, resize=20,
            mean=True, std=True, last_batch_handle=handle,
        )  # fmt: skip
        for epoch in range(2):
            iterator.reset()
            for number, batch in enumerate(iterator):
                name = f"epochs/{handle}/{epoch}/{number}"
                found[f"{name}/data"] = back(batch.data[0])
                found[f"{name}/label"] = back(batch.label[0])
                found[f"{name}/pad"] = np.array(batch.pad)
    return found


def main(path):
    """Write what MXNet returns."""
    import mxnet

    def of(array):
        return mxnet.nd.array(array, dtype=array.dtype)

    def back(array):
        return array.asnumpy()

    with tempfile.TemporaryDirectory() as folder:
        found = epochs(mxnet.image, folder, back)
    for cases in (functions, rotations, detection):
        found |= cases(mxnet.image, of, back)
    np.savez_compressed(path, described=described(mxnet.image), **found)


if __name__ == "__main__":
    main(sys.argv[1])
