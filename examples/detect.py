"""Train a small detector on images with boxes, and measure its mean average precision.

    python examples/detect.py
    python examples/detect.py --rec coco.rec --valid coco-valid.rec --classes 80 --size 320

Records are those that ``recordio from-coco``, ``from-voc`` and ``from-yolo`` write. Crops, mirrors
and borders move the boxes with the pixels. Without ``--rec`` it draws two sets of shapes first.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

import recordio
from iterators import ImageDetRecordIter

STRIDE = 8  # pixels of a cell, for each of which one box is predicted


# -- data -----------------------------------------------------------------------------------------


def draw_scenes(path, count, size=96, seed=0):
    """Write a record file of discs, squares and triangles on noise, with their boxes."""
    random = np.random.default_rng(seed)
    with recordio.RecordWriter(path, Path(path).with_suffix(".idx")) as writer:
        for number in range(count):
            image = random.integers(0, 90, (size, size, 3), np.uint8)
            objects = []
            for _ in range(random.integers(1, 4)):
                label, radius = int(random.integers(3)), int(random.integers(9, 17))
                x, y = random.integers(radius, size - radius, 2).tolist()
                draw_shape(image, label, x, y, radius, random.integers(110, 256, 3).tolist())
                corners = np.array([x - radius, y - radius, x + radius + 1, y + radius + 1])
                objects += [label, *(corners / size)]
            header = recordio.IRHeader(0, [2, 5, *objects], number, 0)
            writer.write(recordio.pack_img(header, image, quality=95), number)


def draw_shape(image, label, x, y, radius, colour):
    """Draw one shape, which fills its box."""
    if label == 0:
        cv2.circle(image, (x, y), radius, colour, -1)
    elif label == 1:
        cv2.rectangle(image, (x - radius, y - radius), (x + radius, y + radius), colour, -1)
    else:
        corners = [(x, y - radius), (x - radius, y + radius), (x + radius, y + radius)]
        cv2.fillPoly(image, [np.array(corners)], colour)


def det_batches(path, size, batch_size, **augmentation):
    """Return images with their objects as batches."""
    return ImageDetRecordIter(
        path_imgrec=path,
        data_shape=(3, size, size),
        batch_size=batch_size,
        mean_r=124, mean_g=117, mean_b=104, std_r=58, std_g=57, std_b=57,
        device="cpu",
        verbose=False,
        **augmentation,
    )  # fmt: skip


def objects_of(label, size):
    """Return the classes of an image's objects, and their boxes in pixels."""
    boxes = recordio.boxes_of(label.numpy(), in_batch=True)
    found = torch.from_numpy(boxes[:, :5].copy())
    return found[:, 0].long(), found[:, 1:] * size


# -- network --------------------------------------------------------------------------------------


class Detector(nn.Module):
    """For each cell: scores of the classes, and the distances of the four sides from its centre."""

    def __init__(self, classes, width=16):
        super().__init__()
        layers, inputs = [], 3
        for stage in range(3):
            outputs = width << stage
            layers += [nn.Conv2d(inputs, outputs, 3, 2, 1), nn.BatchNorm2d(outputs), nn.ReLU()]
            layers += [nn.Conv2d(outputs, outputs, 3, 1, 1), nn.BatchNorm2d(outputs), nn.ReLU()]
            inputs = outputs
        self.body = nn.Sequential(*layers)
        self.scores = nn.Conv2d(inputs, classes, 3, padding=1)
        self.sides = nn.Conv2d(inputs, 4, 3, padding=1)
        nn.init.constant_(self.scores.bias, -4)

    def forward(self, images):
        """Return scores (batch, cells, classes) and boxes (batch, cells, 4) in pixels."""
        features = self.body(images)
        _, _, rows, columns = features.shape
        sides = STRIDE * self.sides(features).clamp(-4, 4).exp().flatten(2).transpose(1, 2)
        x, y = centres(rows, columns)
        boxes = torch.stack(
            [x - sides[..., 0], y - sides[..., 1], x + sides[..., 2], y + sides[..., 3]], -1
        )
        return self.scores(features).flatten(2).transpose(1, 2), boxes


def centres(rows, columns):
    """Return the centres of the cells in pixels."""
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    return (x.flatten() + 0.5) * STRIDE, (y.flatten() + 0.5) * STRIDE


def overlap(boxes, others):
    """Return the intersection over union of each box with each other."""
    begin = torch.maximum(boxes[:, None, :2], others[None, :, :2])
    end = torch.minimum(boxes[:, None, 2:], others[None, :, 2:])
    common = (end - begin).clamp(min=0).prod(2)

    def area(some):
        return (some[:, 2:] - some[:, :2]).clamp(min=0).prod(1)

    return common / (area(boxes)[:, None] + area(others) - common).clamp(min=1e-6)


def loss_of(scores, boxes, classes, wanted, rows):
    """Return the loss of one image: cells near the centre of an object predict it."""
    target = torch.zeros_like(scores)
    if not len(wanted):
        return binary_cross_entropy_with_logits(scores, target, reduction="sum")
    x, y = centres(rows, rows)
    middle = (wanted[:, :2] + wanted[:, 2:]) / 2
    near = (middle[:, :1] - x).abs().maximum((middle[:, 1:] - y).abs()) < STRIDE
    sizes = (wanted[:, 2:] - wanted[:, :2]).prod(1)
    # If several objects are near, the smallest counts.
    owner = torch.where(near, sizes[:, None], torch.inf).min(0)
    cells = owner.values < torch.inf
    objects = owner.indices[cells]
    target[cells, classes[objects]] = 1
    # Focal loss: cells that are right already count little.
    weights = (torch.sigmoid(scores) - target).abs().square().detach()
    rule = {"weight": weights, "reduction": "sum"}
    classified = binary_cross_entropy_with_logits(scores, target, **rule)
    fit = overlap(boxes[cells], wanted).gather(1, objects[:, None])
    return classified + 2 * (1 - fit).sum()


# -- training -------------------------------------------------------------------------------------


def train(options):
    """Train; return the network."""
    torch.manual_seed(options.seed)
    network = Detector(options.classes)
    batches = det_batches(
        options.rec, options.size, options.batch_size, shuffle=True, seed=options.seed,
        rand_mirror_prob=0.5, rand_crop_prob=0.5,
        min_crop_scales=0.6, min_crop_overlaps=0.5,
    )  # fmt: skip
    optimizer = torch.optim.Adam(network.parameters(), options.lr)
    rows = options.size // STRIDE
    for epoch in range(options.epochs):
        total = 0.0
        for batch in batches:
            scores, boxes = network(batch.data[0])
            objects = [objects_of(label, options.size) for label in batch.label[0]]
            losses = [
                loss_of(*own, *known, rows)
                for *own, known in zip(scores, boxes, objects, strict=True)
            ]
            count = sum(len(known[0]) for known in objects)
            loss = torch.stack(losses).sum() / max(count, 1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(batches)
        print(f"epoch {epoch}: loss {total:.3f}", flush=True)
    return network


@torch.no_grad()
def detect(network, images, most=20):
    """Return for each image the classes, scores and boxes of what is found, the best first."""
    network.eval()
    found = []
    for scores, boxes in zip(*network(images), strict=True):
        best, classes = scores.sigmoid().max(1)
        order, kept = best.argsort(descending=True)[:200], []
        for cell in order.tolist():  # what overlaps a better one of its class is the same object
            rivals = [one for one in kept if classes[one] == classes[cell]]
            if not rivals or overlap(boxes[[cell]], boxes[rivals]).max() < 0.5:
                kept.append(cell)
            if len(kept) == most:
                break
        found.append((classes[kept], best[kept], boxes[kept]))
    return found


def mean_average_precision(network, batches, size, classes, threshold=0.5):
    """Return the area under precision over recall, as the mean of the classes."""
    hits = [[] for _ in range(classes)]
    known = [0] * classes
    for batch in batches:
        count = batch.count
        results = detect(network, batch.data[0][:count])
        truth = batch.label[0][:count]
        for (labels, scores, boxes), label in zip(results, truth, strict=True):
            own, wanted = objects_of(label, size)
            for one in own.tolist():
                known[one] += 1
            taken = set()
            rows = zip(labels.tolist(), scores.tolist(), boxes, strict=True)
            for found, score, box in rows:
                left = [i for i in range(len(own)) if i not in taken]
                same = [i for i in left if own[i] == found]
                fits = overlap(box[None], wanted[same])[0] if same else torch.zeros(1)
                right = bool(fits.max() >= threshold)
                if right:
                    taken.add(same[int(fits.argmax())])
                hits[found].append((score, right))
    precisions = []
    for one in range(classes):
        if known[one]:
            right = np.array([hit for _, hit in sorted(hits[one], reverse=True)], bool)
            found = right.cumsum()
            precision = found / np.arange(1, len(right) + 1)
            precision = np.maximum.accumulate(precision[::-1])[::-1]
            precisions.append(float(precision[right].sum() / known[one]))
    return float(np.mean(precisions))


def parse(arguments=None):
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rec", help="record file with boxes; without it scenes are drawn")
    parser.add_argument("--valid", help="record file to measure on; by default --rec")
    parser.add_argument("--classes", type=int, default=3)
    parser.add_argument("--size", type=int, default=96, help="pixels of a side, a multiple of 8")
    parser.add_argument("--images", type=int, default=600, help="scenes that are drawn")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


def main(arguments=None):
    """Train and measure."""
    options = parse(arguments)
    with tempfile.TemporaryDirectory() as folder:
        if options.rec is None:
            options.rec, options.valid = str(Path(folder, "a.rec")), str(Path(folder, "b.rec"))
            draw_scenes(options.rec, options.images, options.size)
            draw_scenes(options.valid, max(options.images // 4, 8), options.size, seed=1)
        valid = det_batches(options.valid or options.rec, options.size, options.batch_size)
        network = train(options)
        score = mean_average_precision(network, valid, options.size, options.classes)
        print(f"mAP at 0.5: {score:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
