"""Draw what the parameters of ImageRecordIter do: ``python docs/make_pictures.py``.

Every row of ``docs/image-record-iter.jpg`` is one batch from the provider itself, of one photograph
that comes with scikit-image.
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


def main():
    """Pack one photograph several times and draw a batch for every row."""
    here = Path(__file__).parent
    photo = (Path(skimage.__file__).parent / "data" / "chelsea.png").read_bytes()
    sheet = Image.new("RGB", (COLUMNS * SIDE, len(ROWS) * (SIDE + CAPTION)), "white")
    draw = ImageDraw.Draw(sheet)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "photo.rec")
        with recordio.RecordWriter(path) as writer:
            for i in range(COLUMNS):
                writer.write(recordio.pack(recordio.IRHeader(0, 0, i, 0), photo))
        for number, settings in enumerate(ROWS):
            with iterators.ImageRecordIter(
                path_imgrec=path, data_shape=(3, SIDE, SIDE), batch_size=COLUMNS, layout="NHWC",
                dtype="uint8", seed=3, **settings,
            ) as provider:  # fmt: skip
                strip = np.concatenate(list(provider.next().data[0]), axis=1)
            top = number * (SIDE + CAPTION)
            draw.text((2, top + 2), ", ".join(f"{k}={v}" for k, v in settings.items()), "black")
            sheet.paste(Image.fromarray(strip), (0, top + CAPTION))
    sheet.save(here / "image-record-iter.jpg", quality=70)


if __name__ == "__main__":
    main()
