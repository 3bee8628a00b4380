"""The operations of recipes done by Pillow: the judge of ours, in tests and on the pages."""

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
FACTORS = {
    "brightness": ImageEnhance.Brightness,
    "colour": ImageEnhance.Color,
    "contrast": ImageEnhance.Contrast,
    "sharpness": ImageEnhance.Sharpness,
}


def solarize_add(picture, more):
    """timm's: what is below 128 grows."""
    return picture.point([min(255, i + int(more)) if i < 128 else i for i in range(256)] * 3)


def posterize(picture, bits):
    """Pillow's; of 0 bits, which it refuses since version 13, it left black."""
    return ImageOps.posterize(picture, int(bits)) if bits else picture.point(lambda value: 0)


TABLES = {
    "posterize": posterize,
    "solarize": ImageOps.solarize,
    "solarize_add": solarize_add,
    "autocontrast": lambda picture, value: ImageOps.autocontrast(picture),
    "equalize": lambda picture, value: ImageOps.equalize(picture),
    "invert": lambda picture, value: ImageOps.invert(picture),
}
GEOMETRIC = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")


def turned_hue(picture, shift):
    """torchvision's `adjust_hue` on a Pillow image."""
    h, s, v = picture.convert("HSV").split()
    h = Image.fromarray(np.asarray(h) + np.uint8(int(shift) & 255), "L")
    return Image.merge("HSV", (h, s, v)).convert("RGB")


def of_pillow(image, name, value, method="nearest", fill=0):
    """What `recordio.kernels.operations.operate` makes, by Pillow."""
    channels = image.shape[2]
    if name in GEOMETRIC:
        return moved(image, name, value, method, fill)
    if name == "blur":
        picture = Image.fromarray(image[:, :, 0] if channels == 1 else image)
        return np.asarray(picture.filter(ImageFilter.GaussianBlur(value))).reshape(image.shape)
    colours = image[:, :, :3] if channels > 1 else image[:, :, 0]
    picture = Image.fromarray(np.ascontiguousarray(colours))
    if name in FACTORS:
        found = FACTORS[name](picture).enhance(value)
    elif name == "grey":
        found = picture.convert("L").convert(picture.mode)
    elif name == "hue":
        found = turned_hue(picture, value) if channels > 1 else picture
    elif name in TABLES:
        if name == "solarize_add" and channels == 1:
            picture = Image.merge("RGB", [picture] * 3)
        found = TABLES[name](picture, value)
        if name == "solarize_add" and channels == 1:
            found = found.getchannel(0)
    else:
        found = picture
    result = image.copy()
    result[:, :, : min(channels, 3)] = np.asarray(found).reshape(*image.shape[:2], -1)
    return result


def moved(image, name, value, method, fill):
    """Shears, shifts and turns, channel by channel."""
    height, width, channels = image.shape
    fills = (fill,) * channels if isinstance(fill, int) else fill
    # Pillow multiplies colours by alpha before it mixes them; here channels are independent.
    parts = []
    for c in range(channels):
        picture = Image.fromarray(np.ascontiguousarray(image[:, :, c]))
        if name == "rotate":
            part = picture.rotate(value, RESAMPLING[method], fillcolor=fills[c])
        else:
            matrix = {
                "shear_x": (1, value, 0, 0, 1, 0),
                "shear_y": (1, 0, 0, value, 1, 0),
                "translate_x": (1, 0, value, 0, 1, 0),
                "translate_y": (1, 0, 0, 0, 1, value),
            }[name]
            part = picture.transform(
                (width, height),
                Image.Transform.AFFINE,
                matrix,
                RESAMPLING[method],
                fillcolor=fills[c],
            )
        parts.append(np.asarray(part))
    return np.stack(parts, -1)
