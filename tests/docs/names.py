"""What examples take for granted: the names that a page uses and does not define, and its files."""

import io
import pickle
import tarfile

import numpy as np

import recordio


def of(page, folder):
    """The namespace that the examples of a page begin with."""
    common = {"__name__": "__main__", "step": step, "np": np}
    return {**common, **OF_PAGES.get(page, lambda folder: {})(folder)}


def step(*arrays):
    """Stands for training on a batch."""
    return sum(float(array.sum()) for array in arrays if hasattr(array, "sum"))


def arrays():
    random = np.random.default_rng(0)
    return random.normal(size=(200, 3, 4, 4)), np.arange(200) % 10


def for_datasets(folder):
    """The four files of MNIST, and the archive of CIFAR-10."""
    place = folder / "folder-with-four-idx-files"
    place.mkdir()
    for part, count in (("train", 20), ("t10k", 10)):
        images, labels = np.zeros((count, 28, 28), np.uint8), np.arange(count, dtype=np.uint8) % 10
        recordio.write_idx_array(place / f"{part}-images-idx3-ubyte", images)
        recordio.write_idx_array(place / f"{part}-labels-idx1-ubyte", labels)
    with tarfile.open(folder / "cifar-10-python.tar.gz", "w:gz") as archive:
        for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
            content = {b"data": np.zeros((4, 3072), np.uint8), b"labels": [0, 1, 2, 3]}
            data = pickle.dumps(content, protocol=2)
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return {}


def for_forms(folder):
    images, classes = arrays()
    return {"images": images.transpose(0, 2, 3, 1), "classes": classes[:, None]}


def for_loops(folder):
    from iterators import TupleDataset

    return {"dataset": TupleDataset(*arrays())}


def for_providers(folder):
    from iterators import ArrayDataProvider

    provider = ArrayDataProvider(*arrays(), batch_size=64)
    names = {"provider": provider, "batch": next(iter(provider)), "everything": np.zeros(64)}
    names["images"], names["labels"] = arrays()
    return {
        **names,
        "on_first_gpu": np.zeros((32, 3, 4, 4)),
        "on_second_gpu": np.zeros((32, 3, 4, 4)),
    }


def for_views(folder):
    import torch

    from iterators import ArrayDataProvider

    images = np.zeros((64, 3, 32, 32))
    names = {"images": images, "provider": ArrayDataProvider(*arrays(), batch_size=64)}
    names["flat_gradient"] = np.zeros((64, 3072), np.float32)
    names["there_gradient"] = torch.zeros(64, 32, 32, 3, dtype=torch.float16)
    return names


OF_PAGES = {
    "coming-from/mxnet.md": for_datasets,
    "reference/datasets.md": for_datasets,
    "reference/forms.md": for_forms,
    "reference/loops.md": for_loops,
    "reference/providers.md": for_providers,
    "reference/views.md": for_views,
}
