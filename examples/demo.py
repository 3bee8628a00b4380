"""The whole way from a folder of images to a trained network.

``make demo`` runs this; it can be run by itself too: ``python examples/demo.py [--photos FOLDER]``.
Everything it makes goes into ``demo/``.  It uses no network: without ``--photos`` it takes the
photographs beside it, and photographs and handwritten digits that come inside scikit-learn.
"""

import argparse
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image
from tqdm import tqdm

from iterators import ImageRecordIter
from recordio.formats import general as codec

MEAN = (123.68, 116.78, 103.94)
STD = (58.4, 57.1, 57.4)
GOAL = 0.97


# -- images as files in class folders ---------------------------------------------------------


def write_photographs(folder):
    """Write photographs and their quarters as JPEG, a folder for each class."""
    import sklearn

    sources = {
        "animals": ["chelsea.png"],
        "flowers": ["flower.jpg"],
        "food": ["coffee.png"],
        "people": ["astronaut.png"],
        "space": ["rocket.jpg"],
        "travel": ["china.jpg"],
    }
    places = [
        Path(__file__).with_name("photographs"),
        Path(sklearn.__file__).parent / "datasets" / "images",
    ]
    for name, files in sources.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file in files:
            source = next(place / file for place in places if (place / file).exists())
            with Image.open(source) as image:
                for number, piece in enumerate(pieces(image.convert("RGB"))):
                    piece.save(folder / name / f"{source.stem}-{number}.jpg", quality=90)


def pieces(image):
    """Yield the image and its four quarters, so that six photographs fill a batch."""
    yield image
    width, height = image.width // 2, image.height // 2
    for left in (0, width):
        for top in (0, height):
            yield image.crop((left, top, left + width, top + height))


def write_digits(folder):
    """Write the 1,797 digits of scikit-learn, 8x8 pixels each, as PNG files."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    for number, (image, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        file = folder / str(label) / f"{number:04d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image * 255 / 16).astype(np.uint8)).save(file)


# -- folders of images to record files --------------------------------------------------------


def im2rec(*arguments):
    """Run the command as one would type it."""
    arguments = [str(argument) for argument in arguments]
    print(f"\n$ im2rec {shlex.join(arguments)}", flush=True)
    command = Path(sys.executable).with_name("im2rec")  # installed beside the interpreter
    subprocess.run([command, *arguments], check=True)


# -- record files to batches ------------------------------------------------------------------


def stream(prefix):
    """Stream shuffled, augmented batches; return a picture of one and the images per second."""
    with ImageRecordIter(
        path_imgrec=f"{prefix}.rec",
        path_imgidx=f"{prefix}.idx",
        data_shape=(3, 224, 224),
        batch_size=32,
        shuffle=True,
        seed=1,
        random_resized_crop=True,
        min_random_area=0.08,
        max_random_area=1.0,
        min_aspect_ratio=3 / 4,
        max_aspect_ratio=4 / 3,
        rand_mirror=True,
        mean_r=MEAN[0],
        mean_g=MEAN[1],
        mean_b=MEAN[2],
        std_r=STD[0],
        std_g=STD[1],
        std_b=STD[2],
    ) as batches:
        total = min(max(5000, batches.num_samples), 20000)
        print(f"\nStreaming {total} augmented images, {len(batches)} batches an epoch")
        sheet = batches.show(classes=read_classes(f"{prefix}.classes.txt"))
        images, start = 0, time.perf_counter()
        with tqdm(total=total, unit=" images") as progress:
            while images < total:
                for batch in batches:  # one epoch, in an order of its own
                    images += batch.count_samples()
                    progress.update(min(images, total) - progress.n)
                    if images >= total:
                        break
        return sheet, images / (time.perf_counter() - start)


def read_classes(file):
    """Class names by label, from the file that im2rec writes next to the list."""
    lines = (line.split("\t") for line in Path(file).read_text().splitlines())
    return {int(label): name for label, name in lines}


# -- batches to a trained network -------------------------------------------------------------


def digit_batches(prefix, **augmentation):
    """Batches of digits as arrays (batch, 1, 8, 8)."""
    return ImageRecordIter(
        path_imgrec=f"{prefix}.rec",
        path_imgidx=f"{prefix}.idx",
        data_shape=(1, 8, 8),
        batch_size=64,
        mean_r=78,
        std_r=96,
        **augmentation,
    )


def train(prefix, epochs=30):
    """Train a small network of scikit-learn through the iterator; return its accuracy."""
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    network, classes = MLPClassifier(256, alpha=1e-3, random_state=1), np.arange(10)
    training = digit_batches(
        f"{prefix}_train", shuffle=True, seed=1, max_rotate_angle=10, max_shear_ratio=0.1
    )
    held_out = digit_batches(f"{prefix}_val")

    print(f"\nTraining on {training.num_samples} digits, testing on {held_out.num_samples} others")
    with training, held_out, threadpool_limits(1):  # small matrices: more threads only wait
        for epoch in range(1, epochs + 1):
            losses = []
            for batch in training:
                network.partial_fit(batch.data[0].reshape(-1, 64), batch.label[0], classes=classes)
                losses.append(network.loss_)
            if epoch % 5 == 0:
                accuracy = evaluate(network, held_out)
                print(f"epoch {epoch:2}  loss {np.mean(losses):.4f}  accuracy {accuracy:.2%}")
    return accuracy


def evaluate(network, batches):
    """Share of the samples that the network labels correctly."""
    correct = total = 0
    for batch in batches:
        count = batch.count_samples()  # the last batch is padded
        answers = network.predict(batch.data[0].reshape(-1, 64))
        correct += (answers == batch.label[0])[:count].sum()
        total += count
    return correct / total


def main():
    """Run the demo; the exit status is 1 when the network has not learnt its digits."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--photos", type=Path, help="a folder of your own images")
    parser.add_argument("--output", type=Path, default=Path("demo"))
    options = parser.parse_args()
    output = options.output
    output.mkdir(exist_ok=True)
    for old in output.glob("*.lst"):  # im2rec would go by the list of an earlier run
        old.unlink()
    print(f"JPEG decoder: {codec.describe()}")

    folder = options.photos or output / "images" / "photos"
    if options.photos is None:
        write_photographs(folder)
    photos = output / "photos"
    im2rec("--recursive", "--pass-through", photos, folder)
    sheet, rate = stream(photos)
    sheet.save(output / "batch.png")
    print(f"{rate:.0f} images/s; one augmented batch is in {output / 'batch.png'}")

    folder = output / "images" / "digits"
    write_digits(folder)
    digits = output / "digits"
    im2rec("--list", "--recursive", "--train-ratio", 0.8, digits, folder)
    im2rec("--pass-through", digits, folder)
    accuracy = train(digits)
    reached = accuracy >= GOAL
    print(f"\n{accuracy:.2%} of the held-out digits are right", end="")
    print("." if reached else f", short of {GOAL:.0%}.")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
