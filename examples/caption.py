"""Train a small network that describes images, and measure its captions.

    python examples/caption.py
    python examples/caption.py --rec coco.rec --valid coco-valid.rec --size 96 --epochs 30

Records are those that ``recordio from-coco --fields caption --captions FILE`` writes: captions lie
in a pack of their own beside the images.  Without ``--rec`` it draws two sets of scenes first.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from detect import draw_shape  # the example beside this one
from torch import nn
from torch.nn.functional import cross_entropy

import recordio
from iterators import ImageDetRecordIter
from iterators.fields import Text

COLOURS = {"red": (60, 60, 230), "green": (60, 200, 60), "blue": (230, 90, 60)}  # as OpenCV: BGR
SHAPES = ("disc", "square", "triangle")
END, BEGIN, UNKNOWN = range(3)  # numbers of words; those of the captions come after them


# -- data -----------------------------------------------------------------------------------------


def draw_scenes(path, count, size=48, seed=0):
    """Write a pack with two shapes on each image, their boxes, and two captions."""
    random = np.random.default_rng(seed)
    with pack_of(path) as images, pack_of(Path(path).with_suffix(".caption.rec")) as captions:
        for number in range(count):
            image = random.integers(0, 90, (size, size, 3), np.uint8)
            across, names, objects = random.integers(2), [], []
            for low in (size // 4, 3 * size // 4):  # left and right, or above and below
                label, radius = int(random.integers(3)), int(random.integers(6, 10))
                place = [low, size // 2] if across else [size // 2, low]
                x, y = (place + random.integers(-3, 4, 2)).tolist()
                colour = str(random.choice(list(COLOURS)))
                draw_shape(image, label, x, y, radius, COLOURS[colour])
                names.append(f"a {colour} {SHAPES[label]}")
                corners = np.array([x - radius, y - radius, x + radius + 1, y + radius + 1])
                objects += [label, *(corners / size)]
            first, second = names
            there, back = ("left of", "right of") if across else ("above", "below")
            text = f"{first} {there} {second}\n{second} {back} {first}"
            header = recordio.IRHeader(0, [2, 5, *objects], number, 0)
            images.write(recordio.pack_img(header, image, quality=95), number)
            header = recordio.IRHeader(0, 0.0, number, 0)
            captions.write(recordio.pack(header, text.encode()), number)


def pack_of(path):
    """Return a writer of a record file and its index."""
    return recordio.RecordWriter(path, Path(path).with_suffix(".idx"))


def caption_batches(path, size, batch_size, line, **keywords):
    """Return images as batches, with the captions of each, or another one in every epoch."""
    return ImageDetRecordIter(
        path_imgrec=path,
        data_shape=(3, size, size),
        batch_size=batch_size,
        mean_r=124, mean_g=117, mean_b=104, std_r=58, std_g=57, std_b=57,
        fields={"caption": Text(line=line)},
        device="cpu",
        verbose=False,
        **keywords,
    )  # fmt: skip


class Vocabulary:
    """The words of all captions of a pack, and their numbers."""

    def __init__(self, path, least=1):
        counts = Counter()
        with recordio.RecordReader(Path(path).with_suffix(".caption.rec")) as captions:
            for record in captions:
                counts.update(words_of(bytes(recordio.unpack(record)[1]).decode()))
        known = sorted(word for word in counts if counts[word] >= least)
        self.words = ["", "", "?", *known]
        self.numbers = {word: number for number, word in enumerate(known, UNKNOWN + 1)}

    def inputs_and_targets(self, captions):
        """Return words read and to predict, both int64 (captions, longest + 1)."""
        rows = []
        for text in captions:
            rows.append([self.numbers.get(word, UNKNOWN) for word in words_of(text)])
        length = max(map(len, rows)) + 1
        inputs = torch.full((len(rows), length), END)
        targets = torch.full((len(rows), length), -100)  # left out by cross_entropy
        for row, numbers in enumerate(rows):
            inputs[row, : len(numbers) + 1] = torch.tensor([BEGIN, *numbers])
            targets[row, : len(numbers) + 1] = torch.tensor([*numbers, END])
        return inputs, targets

    def text(self, numbers):
        """Return the words up to the end of a caption."""
        end = numbers.index(END) if END in numbers else len(numbers)
        return [self.words[number] for number in numbers[:end]]


def words_of(text):
    """Return the words of a caption in lower case, without punctuation."""
    return text.lower().replace(".", " ").replace(",", " ").split()


# -- network --------------------------------------------------------------------------------------


class Describer(nn.Module):
    """Looks at the cells of an image, and at the word before, for each word of its caption."""

    def __init__(self, words, size, width=64):
        super().__init__()
        layers, inputs = [], 3
        for outputs in (width // 2, width, width):
            layers += [nn.Conv2d(inputs, outputs, 3, 2, 1), nn.BatchNorm2d(outputs), nn.ReLU()]
            inputs = outputs
        self.body = nn.Sequential(*layers)
        self.places = nn.Parameter(0.1 * torch.randn((size // 8) ** 2, width))
        self.embed = nn.Embedding(words, width)
        self.query = nn.Linear(width, width)
        self.cell = nn.GRUCell(2 * width, width)
        self.scores = nn.Linear(2 * width, words)

    def look(self, images):
        """Return features of the cells (batch, cells, width)."""
        return self.body(images).flatten(2).transpose(1, 2) + self.places

    def read(self, word, state, cells):
        """Take in a word of each caption; return the state and the scores of the next word."""
        weights = (cells @ self.query(state)[:, :, None]).softmax(1)
        seen = (weights * cells).sum(1)
        state = self.cell(torch.cat([self.embed(word), seen], 1), state)
        return state, self.scores(torch.cat([state, seen], 1))

    def forward(self, images, inputs):
        """Return scores (batch, words, vocabulary) of the word behind each of `inputs`."""
        cells = self.look(images)
        state, found = cells.mean(1), []
        for word in inputs.T:
            state, scores = self.read(word, state, cells)
            found.append(scores)
        return torch.stack(found, 1)

    @torch.no_grad()
    def describe(self, images, longest):
        """Return for each image the numbers of the words of its caption, each the likeliest."""
        cells = self.look(images)
        state, word, found = cells.mean(1), torch.full((len(images),), BEGIN), []
        for _ in range(longest):
            state, scores = self.read(word, state, cells)
            word = scores.argmax(1)
            found.append(word)
        return torch.stack(found, 1).tolist()


# -- training -------------------------------------------------------------------------------------


def train(options, vocabulary):
    """Train; return the network."""
    torch.manual_seed(options.seed)
    network = Describer(len(vocabulary.words), options.size)
    order = {"line": "random", "shuffle": True, "seed": options.seed}
    batches = caption_batches(options.rec, options.size, options.batch_size, **order)
    optimizer = torch.optim.Adam(network.parameters(), options.lr)
    for epoch in range(options.epochs):
        total = 0.0
        for batch in batches:
            inputs, targets = vocabulary.inputs_and_targets(batch["caption"])
            scores = network(batch.data[0], inputs)
            loss = cross_entropy(scores.flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(batches)
        print(f"epoch {epoch}: loss {total:.3f}", flush=True)
    return network


def describe(network, batches, vocabulary, longest=30):
    """Return for every image the caption found, and those that it has, in words."""
    network.eval()
    found, wanted = [], []
    for batch in batches:
        for numbers in network.describe(batch.data[0][: batch.count], longest):
            found.append(vocabulary.text(numbers))
        for text in batch["caption"][: batch.count]:
            wanted.append([words_of(line) for line in text.splitlines()])
    return found, wanted


def bleu(found, wanted, most=4):
    """Return corpus BLEU: the share of runs of 1 to `most` words in a caption."""
    hits, counts = np.zeros(most), np.zeros(most)
    length = nearest = 0
    for words, captions in zip(found, wanted, strict=True):
        length += len(words)
        nearest += min(map(len, captions), key=lambda one: (abs(one - len(words)), one))
        for n in range(most):
            known = Counter()
            for caption in captions:
                known |= runs(caption, n + 1)
            own = runs(words, n + 1)
            hits[n] += (own & known).total()
            counts[n] += own.total()
    if not hits.all():
        return 0.0
    return float(np.exp(np.log(hits / counts).mean() + min(0.0, 1 - nearest / length)))


def runs(words, length):
    """Count the runs of so many words."""
    return Counter(zip(*(words[begin:] for begin in range(length)), strict=False))


def parse(arguments=None):
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rec", help="record file with captions; without it scenes are drawn")
    parser.add_argument("--valid", help="record file to measure on; by default --rec")
    parser.add_argument("--size", type=int, default=48, help="pixels of a side, a multiple of 8")
    parser.add_argument("--images", type=int, default=3000, help="scenes that are drawn")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--least", type=int, default=1, help="times that a word must occur")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


def main(arguments=None):
    """Train and measure."""
    options = parse(arguments)
    with tempfile.TemporaryDirectory() as folder:
        if options.rec is None:
            options.rec, options.valid = str(Path(folder, "a.rec")), str(Path(folder, "b.rec"))
            draw_scenes(options.rec, options.images, options.size)
            draw_scenes(options.valid, max(options.images // 8, 8), options.size, seed=1)
        vocabulary = Vocabulary(options.rec, options.least)
        valid = caption_batches(
            options.valid or options.rec, options.size, options.batch_size, "all"
        )
        network = train(options, vocabulary)
        found, wanted = describe(network, valid, vocabulary)
        print("first image:", " ".join(found[0]))
        right = np.mean([words in captions for words, captions in zip(found, wanted, strict=True)])
        print(f"BLEU-4 {bleu(found, wanted):.3f}, captions without a mistake {right:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
