"""Draw what the parameters of the image iterators do: ``python docs/make_pictures.py``.

Every row of ``docs/image-record-iter.jpg``, ``docs/image-det-record-iter.jpg`` and
``docs/image-iter.jpg`` is one batch from the provider itself, of one photograph that comes with
scikit-image.
"""

import tempfile
from pathlib import Path

import numpy as np
import skimage
from PIL import Image, ImageDraw

import iterators
import recordio

SIDE = 112
COLUMNS = 6
CAPTION = 16
ROWS = [
    {"resize": 112},
    {"resize": 150, "rand_crop": True, "rand_mirror": True},
    {"random_resized_crop": True, "min_random_area": 0.08, "min_aspect_ratio": 0.75,
     "max_aspect_ratio": 1.333, "rand_mirror": True},
    {"resize": 150, "max_rotate_angle": 30, "fill_value": 127},
    {"resize": 150, "max_shear_ratio": 0.4, "fill_value": 127},
    {"resize": 112, "min_random_scale": 0.6, "max_random_scale": 1.4, "fill_value": 127},
    {"resize": 112, "pad": 16, "rand_crop": True, "fill_value": 0},
    {"resize": 112, "brightness": 0.4, "contrast": 0.4, "saturation": 0.8},
    {"resize": 112, "random_h": 36, "random_s": 50, "random_l": 50},
    {"resize": 112, "pca_noise": 0.5},
]  # fmt: skip
# Detection: the head and one eye of the cat, as class, xmin, ymin, xmax, ymax.
BOXES = [2, 5, 0, 0.2, 0.02, 0.75, 0.9, 1, 0.31, 0.2, 0.43, 0.38]
DET_ROWS = [
    {"resize_mode": "fit"},
    {"rand_mirror_prob": 0.5},
    {"rand_pad_prob": 1, "max_pad_scale": 3},
    {"rand_crop_prob": 1, "min_crop_scales": 0.4, "max_crop_scales": 0.9,
     "min_crop_object_coverages": 0.5},
    {"max_random_hue": 30, "random_hue_prob": 1, "max_random_contrast": 0.4,
     "random_contrast_prob": 1},
]  # fmt: skip
LIST_ROWS = [
    {"resize": 112},
    {"rand_crop": True, "rand_resize": True, "rand_mirror": True},
    {"resize": 112, "brightness": 0.4, "contrast": 0.4, "saturation": 0.8},
    {"resize": 112, "hue": 0.5},
    {"resize": 112, "pca_noise": 0.5},
    {"resize": 112, "rand_gray": 0.5},
]


def main():
    """Pack one photograph several times and draw a batch for every row."""
    here = Path(__file__).parent
    photo = (Path(skimage.__file__).parent / "data" / "chelsea.png").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        plain, boxed = pack(folder, "plain", 0, photo), pack(folder, "boxed", BOXES, photo)
        draw_sheet(here / "image-record-iter.jpg", iterators.ImageRecordIter, plain, ROWS)
        draw_sheet(
            here / "image-det-record-iter.jpg", iterators.ImageDetRecordIter, boxed, DET_ROWS
        )
        draw_sheet(here / "image-iter.jpg", iterators.ImageIter, plain, LIST_ROWS)


def pack(folder, name, label, photo):
    """A record file that holds the photograph once for every column."""
    path = Path(folder, f"{name}.rec")
    with recordio.RecordWriter(path) as writer:
        for i in range(COLUMNS):
            writer.write(recordio.pack(recordio.IRHeader(0, label, i, 0), photo))
    return path


def draw_sheet(path, kind, records, rows):
    """One row of pictures for each of `rows`, which are parameters of the iterator `kind`."""
    sheet = Image.new("RGB", (COLUMNS * SIDE, len(rows) * (SIDE + CAPTION)), "white")
    draw = ImageDraw.Draw(sheet)
    for number, settings in enumerate(rows):
        with kind(
            path_imgrec=records, data_shape=(3, SIDE, SIDE), batch_size=COLUMNS, layout="NHWC",
            seed=3, **settings,
        ) as provider:  # fmt: skip
            batch = provider.next()
        top = number * (SIDE + CAPTION)
        draw.text((2, top + 2), ", ".join(f"{k}={v}" for k, v in settings.items()), "black")
        for column, (picture, label) in enumerate(zip(batch.data[0], batch.label[0], strict=True)):
            place = column * SIDE, top + CAPTION
            sheet.paste(Image.fromarray(picture.clip(0, 255).round().astype(np.uint8)), place)
            if np.ndim(label):
                draw_boxes(draw, place, label)
    sheet.save(path, quality=70)


def draw_boxes(draw, place, label):
    """Outline the objects of a label row: channels, rows, columns, length, header, objects."""
    rows, columns, length = label[1:4]
    for box in label[6 : 4 + int(length)].reshape(-1, 5):
        corners = box[1:] * (columns, rows, columns, rows) + (*place, *place)
        draw.rectangle(corners.tolist(), outline=("red", "yellow")[int(box[0])])


if __name__ == "__main__":
    main()
