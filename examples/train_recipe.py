"""Train a residual network on few handwritten digits, plainly and with a recipe, and compare.

    python examples/train_recipe.py
    python examples/train_recipe.py --images IMAGES.gz --labels LABELS.gz    # idx files of MNIST

Both runs see the same digits in the same order, from the same start.  The recipe moves and changes
them (``auto_augment``), erases pieces (``random_erasing``), and mixes batches (`MixBatches`): its
training loss ends higher, and it knows more of the digits that were held out.  Without ``--images``
the digits are those that come inside scikit-learn.
"""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
import torch
from torch.nn.functional import cross_entropy
from train_torch import residual_network

import recordio
from iterators import ImageRecordIter, MixBatches

SIZE = 28
CLASSES = 10
# The set "weights" moves images more often than it changes their colours, which digits do not have.
RECIPE = {
    "auto_augment": "rand-m5-n2-mstd0.5-inc1-tweights",
    "augment_fill": 0,
    "random_erasing": 0.1,
    "erasing_value": 0,
}
MIXING = {"mixup": 0.2, "prob": 0.25}


def digits(options):
    """Images of 28 x 28 pixels, and labels, in an order that is always the same."""
    if options.images:
        images = recordio.read_idx_array(options.images)
        labels = recordio.read_idx_array(options.labels)
    else:
        from sklearn.datasets import load_digits

        found = load_digits()
        images = (found.images * 255 / 16).astype(np.uint8)
        images = np.stack([cv2.resize(image, (SIZE, SIZE)) for image in images])
        labels = found.target
    order = np.random.default_rng(0).permutation(len(images))
    return images[order], labels[order]


def write(path, images, labels):
    """A record file with its index."""
    with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
        for number, (image, label) in enumerate(zip(images, labels, strict=True)):
            header = recordio.IRHeader(0, float(label), number, 0)
            writer.write(recordio.pack_img(header, image, img_fmt=".png"), number)


def batches(path, **keywords):
    """Batches of tensors."""
    return ImageRecordIter(
        path_imgrec=path, path_imgidx=path.with_suffix(".idx"), data_shape=(3, SIZE, SIZE),
        mean_r=33, mean_g=33, mean_b=33, std_r=79, std_g=79, std_b=79,
        preprocess_threads=2, device="cpu", verbose=False, **keywords,
    )  # fmt: skip


def train(path, options, recipe, mixing):
    """A network, and the mean loss of its last epoch."""
    torch.manual_seed(options.seed)
    network = residual_network(CLASSES, options.width).train()
    provider = batches(
        path, batch_size=options.batch_size, shuffle=True, seed=options.seed,
        round_batch=False, **recipe,
    )  # fmt: skip
    if mixing:
        provider = MixBatches(provider, classes=CLASSES, seed=options.seed, **mixing)
    steps = options.epochs * len(provider)
    optimizer = torch.optim.SGD(network.parameters(), options.lr, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.lr, steps)
    with provider:
        for _ in range(options.epochs):
            losses = []
            for batch in provider:
                count = batch.count_samples()
                images, labels = batch.data[0][:count], batch.label[0][:count]
                # Labels of mixed batches are probabilities.
                loss = cross_entropy(network(images), labels if mixing else labels.long())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
    return network, float(np.mean(losses))


@torch.no_grad()
def accuracy(network, path):
    """Share of digits that the network knows."""
    network.eval()
    right = total = 0
    with batches(path, batch_size=256) as provider:
        for batch in provider:
            count = batch.count_samples()
            answers = network(batch.data[0][:count]).argmax(1)
            right += int((answers == batch.label[0][:count].long()).sum())
            total += count
    return right / total


def main(arguments=None):
    """Train twice; the exit status is 1 if the recipe did not do what recipes are for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", help="idx file of images of 28 x 28 pixels")
    parser.add_argument("--labels", help="idx file of their labels")
    parser.add_argument("--train", type=int, default=200, help="digits that are learnt")
    parser.add_argument("--held-out", type=int, help="digits that are asked for; all others")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--width", type=int, default=8, help="channels of the first stage")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of torch; small batches need one")
    options = parser.parse_args(arguments)
    if bool(options.images) != bool(options.labels):
        parser.error("--images and --labels belong together")
    torch.set_num_threads(options.threads)
    images, labels = digits(options)
    if options.held_out is not None:
        count = options.train + options.held_out
        images, labels = images[:count], labels[:count]
    print(f"{options.train} digits are learnt, {len(images) - options.train} are held out")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        learnt, held_out = folder / "learnt.rec", folder / "held_out.rec"
        write(learnt, images[: options.train], labels[: options.train])
        write(held_out, images[options.train :], labels[options.train :])
        found = {}
        for name, recipe, mixing in (("plain", {}, {}), ("recipe", RECIPE, MIXING)):
            network, loss = train(learnt, options, recipe, mixing)
            found[name] = loss, accuracy(network, held_out)
            print(f"{name:6}  training loss {loss:.4f}  held-out accuracy {found[name][1]:.2%}")
    (plain_loss, plain), (loss, share) = found["plain"], found["recipe"]
    return 0 if loss > plain_loss and share >= plain else 1


if __name__ == "__main__":
    sys.exit(main())
