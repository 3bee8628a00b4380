"""Batches in patches beside timm's NaFlex loader: ``python benchmarks/patches.py PACK``.

Needs timm and torchvision.  Rates are patches per second of processor time, of one thread each,
measured in turns; batches that are made ahead are charged, because a turn begins and ends with as
many of them.
"""

from __future__ import annotations

import argparse
import io
import itertools
import statistics
import time

import recordio
from iterators import ImageRecordIter

LENGTHS = (128, 256, 576, 784, 1024)
BATCH, PATCH, REPEATS = 64, 16, 3
MEANS = {"mean_r": 123.675, "mean_g": 116.28, "mean_b": 103.53}
DEVIATIONS = {"std_r": 58.395, "std_g": 57.12, "std_b": 57.375}
PILLOW = {"resample": "pillow", "interpolation": "bicubic"}


def rate_of(batches):
    """Patches, padding included, per second of processor time."""
    begin, patches = time.process_time(), 0
    for images, length in batches:
        patches += images * length
    return patches / (time.process_time() - begin)


def settled(provider):
    """Yield nothing, when all batches that are made ahead are made."""
    last = -1.0
    while (now := provider.stats()["images"]) != last:
        last = now
        time.sleep(0.05)
    yield from ()


def rate_of_ours(path, **more):
    """The rate of two epochs behind a first one, which makes threads and memory."""
    given = {"batch_size": BATCH, "patches": PATCH, "sequence_lengths": LENGTHS, "shuffle": True}
    with ImageRecordIter(
        path_imgrec=path, preprocess_threads=1, **given, **MEANS, **DEVIATIONS, **more
    ) as provider:
        for _ in provider:
            pass
        list(settled(provider))
        batches = (batch["patches"].shape[:2] for _ in range(2) for batch in provider)
        return rate_of(itertools.chain(batches, settled(provider)))


def timms(contents):
    """Sizes of the batches of one epoch of timm's loader over the same images in memory."""
    import torch
    from PIL import Image
    from timm.data.naflex_dataset import NaFlexMapDatasetWrapper
    from timm.data.naflex_transforms import ResizeToSequence
    from torchvision import transforms

    torch.set_num_threads(1)

    class Images(torch.utils.data.Dataset):
        transform = None

        def __len__(self):
            return len(contents)

        def __getitem__(self, number):
            image = Image.open(io.BytesIO(contents[number])).convert("RGB")
            return self.transform(image) if self.transform else image, 0

    def transform(max_seq_len=None, **_):
        return transforms.Compose(
            [
                ResizeToSequence(PATCH, max_seq_len, interpolation="bicubic"),
                transforms.ToTensor(),
                transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
            ]
        )

    loader = NaFlexMapDatasetWrapper(
        Images(),
        transform_factory=transform,
        patch_size=PATCH,
        seq_lens=LENGTHS,
        max_tokens_per_batch=BATCH * min(LENGTHS),
        shuffle=True,
    )
    for batch, _ in loader:
        yield batch["patches"].shape[:2]


def main():
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack")
    path = parser.parse_args().pack
    with recordio.RecordReader(path) as reader:
        contents = [bytes(recordio.unpack(record)[1]) for record in reader]
    found = {"as it is": [], "with Pillow's bicubic filter": []}
    for _ in range(REPEATS):
        peer = rate_of(timms(contents))
        for name, more in zip(found, ({}, PILLOW), strict=True):
            found[name].append(rate_of_ours(path, **more) / peer)
    for name, ratios in found.items():
        print(f"{statistics.median(ratios):.2f} times timm's NaFlex loader, {name}")


if __name__ == "__main__":
    main()
