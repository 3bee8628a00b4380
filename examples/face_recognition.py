"""Train face recognition on an InsightFace pack without MXNet.

    python examples/face_recognition.py faces_folder      # with train.rec and train.idx
    python examples/face_recognition.py faces_folder --verify lfw.bin

`MXFaceDataset` stands in for the class of that name in ArcFace training scripts: the same
arguments, attributes and samples.  Beside it the fast way, `ImageRecordIter`, which decodes and
normalises with threads.  `verify` scores a network on a verification set by the protocol of
InsightFace's ``verification.py``.  Without a folder a small pack of drawn faces is made, and
without a verification set one of people that are not in it.
"""

import argparse
import pickle
import random
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear, normalize
from torch.utils.data import DataLoader, Dataset

import recordio
from iterators import ImageRecordIter, VerificationPairs
from iterators.torch import RecordBatches
from recordio.packs.open_pack import OpenPack


class MXFaceDataset(Dataset):
    """Images and identities of a face pack.

    Parameters
    ----------
    root_dir : path
        Folder with ``train.rec`` and ``train.idx``.
    local_rank : int
        Taken for the sake of scripts that pass it; samples are in host memory.
    transform : callable, optional
        Called with an image (height, width, 3), RGB, uint8.  Default: mirror half of them, scale to
        [-1, 1], channels first.

    Attributes
    ----------
    imgidx : numpy.ndarray
        Keys of the images.
    header0 : tuple of int
        Keys ``[first, end)`` of the identity records; absent if the pack has none.
    """

    def __init__(self, root_dir, local_rank=0, transform=None):
        self.root_dir, self.local_rank = root_dir, local_rank
        self.transform = transform or mirror_and_scale
        pack = OpenPack(Path(root_dir, "train.rec"), Path(root_dir, "train.idx"))
        self.imgrec = pack.reader
        self.imgidx = self.imgrec.keys
        # Record 0 names the identity records by labels, which round keys from 2**24 on.
        faces = pack.faces
        if faces is not None:
            self.header0 = (faces.keys.start, faces.keys.stop)
            self.imgidx = np.sort(self.imgidx[faces.are_images(self.imgidx)])

    def __len__(self):
        return len(self.imgidx)

    def __getitem__(self, index):
        """Return the image as a float tensor (3, height, width) and its identity."""
        header, data = recordio.unpack(self.imgrec.by_key(self.imgidx[index]))
        label = header.label if np.isscalar(header.label) else header.label[0]
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        image = cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)
        return self.transform(image), torch.tensor(int(label))


def mirror_and_scale(image):
    """Do what the transform of those scripts does."""
    if random.random() < 0.5:
        image = image[:, ::-1]
    tensor = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))
    return tensor.float().sub_(127.5).div_(127.5)


def record_batches(root_dir, batch_size, size, **arguments):
    """Return the same samples as batches of a provider, shuffled by its own seed."""
    return RecordBatches(
        ImageRecordIter,
        path_imgrec=f"{root_dir}/train.rec",
        path_imgidx=f"{root_dir}/train.idx",
        data_shape=(3, size, size),
        batch_size=batch_size,
        shuffle=True,
        rand_mirror=True,
        mean_r=127.5, mean_g=127.5, mean_b=127.5, scale=1 / 127.5,
        verbose=False,
        **arguments,
    )  # fmt: skip


# -- a pack of drawn faces ------------------------------------------------------------------------


def make_pack(folder, identities=8, images=24, size=112):
    """Write a pack: record 0, the images, and one record per identity with its range of keys."""
    first = 1 + identities * images
    with recordio.RecordWriter(Path(folder, "train.rec"), Path(folder, "train.idx")) as writer:
        header = recordio.IRHeader(2, [first, first + identities], 0, 0)
        writer.write(recordio.pack(header, b""), 0)
        for key in range(1, first):
            identity = (key - 1) // images
            header = recordio.IRHeader(0, float(identity), key, 0)
            face = draw_face(identity, np.random.default_rng(key), size)
            writer.write(recordio.pack_img(header, face, quality=95), key)
        for identity in range(identities):
            start = 1 + identity * images
            header = recordio.IRHeader(2, [start, start + images], first + identity, 0)
            writer.write(recordio.pack(header, b""), first + identity)


def make_pairs(path, pairs=60, size=112, first=100):
    """Write a verification set of people from number `first` on; every other pair is of one."""
    images, same = [], [pair % 2 == 0 for pair in range(pairs)]
    for pair, is_same in enumerate(same):
        for side in (0, 1):
            identity = first + pair // 2 + (not is_same) * side * pairs
            face = draw_face(identity, np.random.default_rng((pair, side)), size)
            images.append(recordio.encode_image(face[:, :, ::-1], "jpeg", quality=95))
    Path(path).write_bytes(pickle.dumps((images, same)))


def draw_face(identity, noise, size):
    """Draw an oval with eyes and a mouth that belong to the identity, in a light that does not."""
    own = np.random.default_rng(1000 + identity)
    skin, eyes, shirt = (own.integers(60, 256, 3).tolist() for _ in range(3))
    width, height, gap, mouth = own.uniform((0.2, 0.3, 0.07, 0.05), (0.32, 0.42, 0.14, 0.15))
    image = np.empty((size, size, 3), np.uint8)
    image[:] = shirt
    x, y = (0.5 + noise.uniform(-0.04, 0.04, 2)) * size

    def oval(dx, dy, rx, ry, colour):
        centre = (int(x + dx * size), int(y + dy * size))
        cv2.ellipse(image, centre, (int(rx * size), int(ry * size)), 0, 0, 360, colour, -1)

    oval(0, 0, width, height, skin)
    oval(-gap, -0.08, 0.04, 0.03, eyes)
    oval(gap, -0.08, 0.04, 0.03, eyes)
    oval(0, 0.18, mouth, 0.03, (40, 40, 160))
    light = noise.uniform(0.7, 1.2) * image + noise.normal(0, 12, image.shape)
    return light.clip(0, 255).astype(np.uint8)


# -- training -------------------------------------------------------------------------------------


class ArcFace(nn.Module):
    """Class scores with an angular margin: the right class has to win by it."""

    def __init__(self, features, classes, scale=16.0, margin=0.2):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(classes, features) * 0.01)
        self.scale, self.margin = scale, margin

    def forward(self, embeddings, labels):
        """Return the loss."""
        cosine = linear(normalize(embeddings), normalize(self.centres))
        cosine = cosine.clamp(-0.999, 0.999)
        right = nn.functional.one_hot(labels, len(self.centres)).bool()
        scores = torch.where(right, torch.cos(torch.acos(cosine) + self.margin), cosine)
        return cross_entropy(self.scale * scores, labels)


def backbone(features=32):
    """Embed an image with a few strided convolutions."""
    layers, inputs = [], 3
    for outputs in (8, 16, 32, 32):
        layers += [nn.Conv2d(inputs, outputs, 3, 2, 1), nn.BatchNorm2d(outputs), nn.PReLU(outputs)]
        inputs = outputs
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, features)
    )


def rate(batches):
    """Images per second of a loop over batches."""
    start, count = time.perf_counter(), 0
    for images, _ in batches:
        count += len(images)
    return count / (time.perf_counter() - start)


def train(root_dir, epochs=8, batch_size=32, size=112):
    """Train; return the network, and the area under the ROC curve of pairs of faces."""
    torch.manual_seed(0)
    dataset = MXFaceDataset(root_dir)
    batches = record_batches(root_dir, batch_size, size, seed=1)
    print(f"{len(dataset)} images; one loop, images/s:")
    loader = DataLoader(dataset, batch_size, True)
    print(f"  MXFaceDataset in a DataLoader  {rate(loader):8.0f}")
    print(f"  ImageRecordIter                {rate(batches):8.0f}")

    labels = torch.tensor([int(label) for _, label in dataset])
    network, head = backbone(), ArcFace(32, int(labels.max()) + 1)
    optimizer = torch.optim.Adam([*network.parameters(), *head.parameters()], 5e-3)
    for epoch in range(epochs):
        for images, targets in batches:
            loss = head(network(images), targets.reshape(-1).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss:.3f}")
    network.eval()
    with torch.no_grad():
        faces = torch.stack([image for image, _ in dataset])
        embeddings = normalize(network(faces))
    first, second = torch.triu_indices(len(faces), len(faces), 1)
    similarity = (embeddings[first] * embeddings[second]).sum(1)
    same = labels[first] == labels[second]
    ranks = similarity.argsort().argsort().double() + 1
    positives, negatives = int(same.sum()), int((~same).sum())
    above = ranks[same].sum() - positives * (positives + 1) / 2
    return network, float(above / positives / negatives)


# -- verification ---------------------------------------------------------------------------------


def embed_pairs(pairs, network, batch_size=64, flip=True):
    """Embed the images of all pairs; with `flip` the mirrored images count as much.

    Returns unit vectors: those of the first images and those of the second.
    """
    found = []
    for start in range(0, len(pairs), batch_size):
        some = pairs[start : start + batch_size]
        sides = [np.stack([pair[side] for pair in some]) for side in (0, 1)]
        images = torch.from_numpy(np.concatenate(sides).transpose(0, 3, 1, 2))
        images = images.float().sub_(127.5).div_(127.5)
        with torch.no_grad():
            embeddings = network(images)
            if flip:
                embeddings = embeddings + network(images.flip(3))
        found.append(normalize(embeddings).reshape(2, len(some), -1))
    return torch.cat(found, 1).double().numpy()


def fold_rows(count, folds=10):
    """Yield the pairs that are measured and the others: folds of pairs after each other."""
    rows = np.arange(count)
    for part in np.array_split(rows, folds):
        yield part, np.setdiff1d(rows, part)


def accepted(distances, same, thresholds):
    """Count, for each threshold, the pairs below it: of one person, and of two."""
    below = distances[:, None] < thresholds
    return below[same].sum(0), below[~same].sum(0)


def accuracies(distances, same, folds=10):
    """Accuracy in each fold, at the threshold that is best for the other folds."""
    thresholds = np.arange(0, 4, 0.01)
    found = []
    for part, others in fold_rows(len(same), folds):
        right, wrong = accepted(distances[others], same[others], thresholds)
        threshold = thresholds[np.argmax(right - wrong)]
        found.append(np.mean((distances[part] < threshold) == same[part]))
    return np.array(found)


def accepted_at(distances, same, rate, folds=10):
    """Share of the pairs of one person that are accepted where so many others are, by folds.

    The threshold is that at which the other folds accept this share of pairs of two people; it is
    interpolated between thresholds, and 0 where none accepts so many.
    """
    thresholds = np.arange(0, 4, 0.001)
    found = []
    for part, others in fold_rows(len(same), folds):
        wrong = accepted(distances[others], same[others], thresholds)[1] / (~same[others]).sum()
        threshold = np.interp(rate, wrong, thresholds) if wrong.max() >= rate else 0
        mine = distances[part][same[part]]
        if len(mine):
            found.append(np.mean(mine < threshold))
    return float(np.mean(found))


def verify(path, network, flip=True):
    """Score a network on a verification set; print and return what InsightFace reports."""
    pairs = VerificationPairs(path)
    first, second = embed_pairs(pairs, network.eval(), flip=flip)
    distances = ((first - second) ** 2).sum(1)
    folds = min(10, len(pairs))
    accuracy = accuracies(distances, pairs.same, folds)
    scores = {
        "accuracy": float(accuracy.mean()),
        "deviation": float(accuracy.std()),
        "TAR@FAR=1e-3": accepted_at(distances, pairs.same, 1e-3, folds),
        "TAR@FAR=1e-4": accepted_at(distances, pairs.same, 1e-4, folds),
    }
    print(f"{Path(path).name}: {len(pairs)} pairs, accuracy {scores['accuracy']:.5f}+-"
          f"{scores['deviation']:.5f}{' with flipped images' * flip}")  # fmt: skip
    for name in ("TAR@FAR=1e-3", "TAR@FAR=1e-4"):
        print(f"  {name} {scores[name]:.5f}")
    return scores


def main(arguments=None):
    """Run; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", help="a pack: train.rec and train.idx")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--size", type=int, default=112, help="pixels of a side")
    parser.add_argument("--images", type=int, default=24, help="of each drawn identity")
    parser.add_argument("--verify", nargs="*", default=[], help="verification sets, as lfw.bin")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        if options.folder is None:
            make_pack(folder, images=options.images, size=options.size)
        network, area = train(options.folder or folder, options.epochs, size=options.size)
        print(f"two faces of one or of two persons are told apart with an area of {area:.3f}")
        drawn = Path(folder, "drawn.bin")
        if not options.verify:
            make_pairs(drawn, size=options.size)
        for path in options.verify or [drawn]:
            verify(path, network)
    return 0


if __name__ == "__main__":
    sys.exit(main())
