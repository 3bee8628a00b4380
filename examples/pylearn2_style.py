"""Batches in the form that a model needs, in Pylearn2's words.

Run it: ``python examples/pylearn2_style.py``.  It makes its own data and needs nothing but torch.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch

import recordio
from iterators import (
    CompositeSpace,
    Conv2DSpace,
    DataSpecsMapping,
    ImageRecordIter,
    IndexSpace,
    VectorSpace,
)
from iterators.datasets import DenseDesignMatrix


def rows_as_images():
    """A design matrix, asked for images, one-hot targets and plain rows in one go."""
    rng = np.random.default_rng(0)
    images = rng.random((100, 8, 8, 3))
    data = DenseDesignMatrix(topo_view=images, y=rng.integers(0, 10, 100), y_labels=10)

    convolution = Conv2DSpace((8, 8), num_channels=3, axes=("b", "c", 0, 1), dtype="float32")
    request = (
        CompositeSpace([convolution, VectorSpace(192), VectorSpace(10)]),
        ("features", "features", "targets"),
    )
    total = 0
    for pictures, rows, one_hot in data.iterator(
        "shuffled_sequential", batch_size=32, data_specs=request
    ):
        total += len(rows)
        print("  pictures", pictures.shape, "rows", rows.shape, "one-hot", one_hot.shape)
    return total


def nested_requests():
    """A cost of several parts asks for each of them; the dataset is asked only once for each."""
    features, targets = VectorSpace(4), IndexSpace(max_labels=3, dim=1)
    pair = CompositeSpace([features, targets])
    nested = (CompositeSpace([pair, features]), (("features", "targets"), "features"))
    mapping = DataSpecsMapping(nested)
    flat = mapping.flatten(nested[1])
    print("  flat request:", flat)
    return mapping.nest(("X", "y"))


def differentiable_conversion():
    """A tensor keeps its history on the way from one space to another."""
    image = Conv2DSpace((2, 2), num_channels=3, axes=("c", 0, 1, "b"), dtype="float32")
    batch = image.make_batch("image", batch_size=5, requires_grad=True)
    vectors = image.format_as(batch, VectorSpace(12, dtype="float32"))
    vectors.sum().backward()
    return torch.equal(batch.grad, torch.ones_like(batch))


def records_as_columns(folder):
    """Images from a record file in cuda-convnet's order of axes, written so by the decoder."""
    path = Path(folder) / "noise.rec"
    rng = np.random.default_rng(1)
    with recordio.RecordWriter(path) as writer:
        for number in range(6):
            picture = rng.integers(0, 256, (32, 32, 3), np.uint8)
            header = recordio.IRHeader(0, float(number % 4), number, 0)
            writer.write(recordio.pack_img(header, picture, img_fmt=".png"))
    request = (
        CompositeSpace(
            (
                Conv2DSpace(shape=(32, 32), num_channels=3, axes=("c", 0, 1, "b"), dtype="float32"),
                VectorSpace(dim=4),
            )
        ),
        ("features", "targets"),
    )
    with ImageRecordIter(
        path_imgrec=path, data_shape=(3, 32, 32), batch_size=3, data_specs=request
    ) as provider:
        for images, targets in provider:
            print("  images", images.shape, "targets", targets.argmax(1))
    return images.shape


def main():
    """Run all of them."""
    print("A design matrix in three forms:")
    print(f"  {rows_as_images()} examples")
    print("A nested request:")
    print("  nested again:", nested_requests())
    print("Gradients reach the source:", differentiable_conversion())
    print("A record file in the order c, 0, 1, b:")
    with tempfile.TemporaryDirectory() as folder:
        records_as_columns(folder)


if __name__ == "__main__":
    main()
