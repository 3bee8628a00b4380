"""Draw what the parameters of the image iterators do: ``python docs/make_pictures.py``.

Each picture is one batch from the iterator itself, made of one photograph of the
examples; the photograph is its first column.  Sphinx calls `main` before it reads the pages,
which include the Markdown that is written beside the pictures.  ``--readme`` renews the one picture
that is kept, that of the README.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import iterators
import recordio

HERE = Path(__file__).parent
PHOTOGRAPHS = HERE.parent / "examples" / "photographs"
SIDE = 112
COLUMNS = 6
GAP = 8
# What noise after normalisation needs; it is undone for the pictures.
IMAGENET = {"mean_r": 124, "mean_g": 116, "mean_b": 104, "std_r": 58, "std_g": 57, "std_b": 57}
ROWS = [
    {"resize": 112},
    {"resize": 150, "rand_crop": True},
    {"resize": 150, "crop_x_start": 0, "crop_y_start": 0},
    {"random_resized_crop": True, "min_random_area": 0.08},
    {"random_resized_crop": True, "min_random_area": 0.08, "min_aspect_ratio": 0.75,
     "max_aspect_ratio": 1.333},
    {"min_crop_size": 60, "max_crop_size": 280, "rand_crop": True},
    {"resize": 112, "mirror": True},
    {"resize": 112, "rand_mirror": True},
    {"resize": 150, "max_rotate_angle": 30, "fill_value": 127},
    {"resize": 150, "rotate": 20, "fill_value": 127},
    {"resize": 150, "rotate_list": (-90, 0, 90, 180), "fill_value": 127},
    {"resize": 150, "max_shear_ratio": 0.4, "fill_value": 127},
    {"resize": 112, "min_random_scale": 0.6, "max_random_scale": 1.4, "fill_value": 127},
    {"resize": 150, "max_aspect_ratio": 0.5, "fill_value": 127},
    {"resize": 112, "pad": 16, "rand_crop": True, "fill_value": 0},
    {"resize": 112, "brightness": 0.5},
    {"resize": 112, "contrast": 0.7},
    {"resize": 112, "saturation": 1.0},
    {"resize": 112, "random_h": 60},
    {"resize": 112, "random_s": 120},
    {"resize": 112, "random_l": 80},
    {"resize": 112, "pca_noise": 0.5},
    {"resize": 112, "max_random_contrast": 0.5},
    {"resize": 112, "max_random_illumination": 60},
    {"resize": 112, "auto_augment": "randaugment"},
    {"resize": 112, "auto_augment": "randaugment", "num_ops": 4, "magnitude": 20},
    {"resize": 112, "auto_augment": "trivialaugment"},
    {"resize": 112, "auto_augment": "autoaugment"},
    {"resize": 112, "auto_augment": "autoaugment-cifar10"},
    {"resize": 112, "auto_augment": "autoaugment-svhn"},
    {"resize": 112, "auto_augment": "augmix"},
    {"resize": 112, "auto_augment": "augmix", "magnitude": 10},
    {"resize": 112, "auto_augment": "rand-m9-mstd0.5-inc1"},
    {"resize": 112, "auto_augment": "rand-m9-mstd0.5-inc1", "augment_interpolation": "bicubic",
     "augment_fill": (124, 116, 104)},
    {"resize": 112, "auto_augment": "randaugment", "augment_table": "timm", "magnitude": 7,
     "magnitude_std": 2, "increasing": True},
    {"resize": 112, "auto_augment": "original-mstd0.5"},
    {"resize": 112, "auto_augment": "v0"},
    {"resize": 112, "auto_augment": "3a"},
    {"resize": 112, "auto_augment": "augmix-m5-w4-d2-mstd0.5"},
    {"resize": 112, "three_augment": True},
    {"resize": 112, "three_augment": True, "blur_sigma": 3, "solarize_threshold": 64},
    {"resize": 112, "color_jitter": 0.4},
    {"resize": 112, "color_jitter": (0.4, 0.4, 0.2, 0.1), "color_jitter_prob": 0.8},
    {"resize": 112, "random_grayscale": 0.5},
    {"resize": 112, "gaussian_blur": 0.5},
    {"resize": 112, "gaussian_blur": 1, "blur_sigma": (0.1, 5)},
    {"resize": 112, "solarize_p": 0.5},
    {"resize": 112, "solarize_p": 1, "solarize_threshold": 64},
    {"resize": 112, "random_erasing": 0.5},
    {"resize": 112, "random_erasing": 1, "erasing_value": "pixel", **IMAGENET},
    {"resize": 112, "random_erasing": 1, "erasing_value": "colour", **IMAGENET},
    {"resize": 112, "random_erasing": 1, "erasing_value": 255, "erasing_count": (2, 5),
     "erasing_area": 0.2, "erasing_ratio": (0.5, 2)},
    {"resize": 112, "low_resolution": 0.5},
    {"resize": 112, "low_resolution": 1, "low_resolution_side": 0.2},
    {"resize": 112, "crop_on_fill": 0.5},
    {"resize": 112, "crop_on_fill": 1, "crop_on_fill_area": (0.2, 0.4)},
    {"random_resized_crop": True, "min_random_area": 0.08, "min_aspect_ratio": 0.75,
     "max_aspect_ratio": 1.333, "log_aspect_ratio": True},
]  # fmt: skip
# Detection: the head and one eye of the cat, as class, xmin, ymin, xmax, ymax.
BOXES = [2, 5, 0, 0.2, 0.02, 0.75, 0.9, 1, 0.31, 0.2, 0.43, 0.38]
DET_ROWS = [
    {"resize_mode": "force"},
    {"resize_mode": "fit"},
    {"resize_mode": "fit", "rand_mirror_prob": 0.5},
    {"rand_pad_prob": 1, "max_pad_scale": 3},
    {"rand_crop_prob": 1, "min_crop_scales": 0.4, "max_crop_scales": 0.9,
     "min_crop_object_coverages": 0.5},
    {"rand_crop_prob": 1, "min_crop_scales": 0.3, "min_crop_aspect_ratios": 0.5,
     "max_crop_aspect_ratios": 2, "min_crop_overlaps": 0.3},
    {"max_random_hue": 60, "random_hue_prob": 1},
    {"max_random_saturation": 120, "random_saturation_prob": 1},
    {"max_random_illumination": 80, "random_illumination_prob": 1},
    {"max_random_contrast": 0.6, "random_contrast_prob": 1},
    {"mosaic": 1, "crop_emit_mode": "overlap"},
    {"mosaic": 1, "mosaic_center": 1, "rand_crop_prob": 1, "min_crop_scales": 0.5},
    {"auto_augment": "randaugment"},
    {"auto_augment": "trivialaugment", "augment_interpolation": "bilinear", "augment_fill": 127},
    {"auto_augment": "augmix"},
    {"auto_augment": "rand-m9-n2-mstd0.5-inc1", "crop_emit_mode": "overlap"},
    {"color_jitter": (0.4, 0.4, 0.4, 0.1)},
    {"three_augment": True},
    {"random_grayscale": 0.5, "gaussian_blur": 0.5, "solarize_p": 0.5},
    {"random_erasing": 1, "erasing_value": 200},
]  # fmt: skip
LIST_ROWS = [
    {"resize": 112},
    {"resize": 150, "rand_crop": True, "rand_mirror": True},
    {"rand_crop": True, "rand_resize": True},
    {"resize": 112, "brightness": 0.5},
    {"resize": 112, "contrast": 0.7},
    {"resize": 112, "saturation": 1.0},
    {"resize": 112, "hue": 0.5},
    {"resize": 112, "pca_noise": 0.5},
    {"resize": 112, "rand_gray": 0.5},
]
README = {"random_resized_crop": True, "min_random_area": 0.08, "min_aspect_ratio": 0.75,
          "max_aspect_ratio": 1.333, "rand_mirror": True, "random_h": 20, "random_s": 40,
          "random_l": 40}  # fmt: skip


def main(target=HERE / "_pictures"):
    """A picture for each row, and a Markdown file for each iterator that shows them all."""
    target.mkdir(exist_ok=True)
    photo = (PHOTOGRAPHS / "chelsea.png").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        plain = pack(folder, "plain", 0, [photo] * COLUMNS)
        boxed = pack(folder, "boxed", BOXES, [photo] * COLUMNS)
        for name, kind, records, rows in (
            ("image-record-iter", iterators.ImageRecordIter, plain, ROWS),
            ("image-det-record-iter", iterators.ImageDetRecordIter, boxed, DET_ROWS),
            ("image-iter", iterators.ImageIter, plain, LIST_ROWS),
        ):
            original = next(batches(kind, records, rows[0]))
            text = ""
            for number, settings in enumerate(rows):
                path = target / f"{name}-{number:02d}.jpg"
                draw(path, original, next(batches(kind, records, settings)))
                words = ", ".join(f"{key}={value}" for key, value in settings.items())
                text += f"`{words}`\n\n![The photograph, and {COLUMNS} samples]({path.name})\n\n"
            (target / f"{name}.md").write_text(text)


def pack(folder, name, label, photos):
    """A record file that holds photographs, all with one label."""
    path = Path(folder, f"{name}.rec")
    with recordio.RecordWriter(path) as writer:
        for number, photo in enumerate(photos):
            writer.write(recordio.pack(recordio.IRHeader(0, label, number, 0), photo))
    return path


def batches(kind, records, settings):
    """The batches of the iterator `kind`, as pictures with their boxes."""
    mean, std = (
        np.array([settings.get(f"{name}_{colour}", default) for colour in "rgb"])
        for name, default in (("mean", 0), ("std", 1))
    )
    with kind(
        path_imgrec=records, data_shape=(3, SIDE, SIDE), batch_size=COLUMNS, layout="NHWC",
        seed=3, **settings,
    ) as provider:  # fmt: skip
        for batch in provider:
            pictures = []
            for pixels, label in zip(batch.data[0], batch.label[0], strict=True):
                pixels = (pixels * std + mean).clip(0, 255).round().astype(np.uint8)
                picture = Image.fromarray(pixels)
                if np.ndim(label):
                    draw_boxes(ImageDraw.Draw(picture), label)
                pictures.append(picture)
            yield pictures


def draw(path, original, pictures):
    """The original and, a little apart, the pictures of a batch."""
    strip = Image.new("RGB", (SIDE * (1 + len(pictures)) + GAP, SIDE), "white")
    strip.paste(original[0], (0, 0))
    for column, picture in enumerate(pictures):
        strip.paste(picture, (SIDE * (column + 1) + GAP, 0))
    strip.save(path, quality=80)


def draw_boxes(draw, label):
    """Outline the objects of a label row: channels, rows, columns, length, header, objects."""
    rows, columns, length = label[1:4]
    for box in label[6 : 4 + int(length)].reshape(-1, 5):
        corners = box[1:] * (columns, rows, columns, rows)
        draw.rectangle(corners.tolist(), outline=("red", "yellow")[int(box[0])])


def draw_readme(path=HERE / "batch.jpg", columns=8):
    """Two batches of four photographs, one above the other."""
    data = PHOTOGRAPHS
    photos = [(data / name).read_bytes() for name in ("chelsea.png", "astronaut.png", "coffee.png")]
    sheet = Image.new("RGB", (columns * SIDE, 2 * SIDE))
    with tempfile.TemporaryDirectory() as folder:
        records = pack(folder, "photos", 0, [photos[i % 3] for i in range(columns * 2)])
        made = [picture for batch in batches(iterators.ImageRecordIter, records, README)
                for picture in batch]  # fmt: skip
    for place in range(2 * columns):
        sheet.paste(made[place], (place % columns * SIDE, place // columns * SIDE))
    sheet.save(path, quality=80, optimize=True)


if __name__ == "__main__":
    draw_readme() if "--readme" in sys.argv else main()
