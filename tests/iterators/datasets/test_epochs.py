"""Random images differ from epoch to epoch, without a word in loops of this package."""

import itertools
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset

from iterators import (
    AugmentedDataset,
    ImageRecordDataset,
    MultiprocessIterator,
    MultithreadIterator,
    SerialIterator,
    TransformDataset,
    TupleDataset,
)
from iterators.compat.mxnet import gluon
from iterators.datasets.gluon import SimpleDataset
from iterators.testing import write_pack
from iterators.torch import ImageLoader, MapDataset

COUNT = 18
CROPS = {"data_shape": (3, 12, 12), "rand_crop": True, "rand_mirror": True, "seed": 3}

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*os.fork", "ignore:.*multi-threaded", "ignore:.*made by its own __getitem__"
)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return str(write_pack(tmp_path_factory.mktemp("epochs") / "a.rec", COUNT, size=(40, 40)))


def of_records(pack):
    return ImageRecordDataset(pack, **CROPS)


def of_arrays(pack):
    return AugmentedDataset(ImageRecordDataset(pack), **CROPS)


def same(example):
    return example


def both(image, label):
    return image, label


WRAPPED = {
    "as it is": lambda data: data,
    "Subset": lambda data: Subset(data, range(COUNT)),
    "ConcatDataset": lambda data: ConcatDataset([Subset(data, range(k, k + 9)) for k in (0, 9)]),
    "TransformDataset": lambda data: TransformDataset(data, same),
    "TupleDataset": lambda data: TransformDataset(TupleDataset(data, range(COUNT)), first_of),
    "gluon": lambda data: SimpleDataset(data).transform(both),
    "MapDataset": MapDataset,
}  # fmt: skip


def first_of(pair):
    return pair[0]


def expected(data, epoch):
    """The images of an epoch that was set."""
    data.set_epoch(epoch)
    return [image for image, _ in data[:]]


def by_iterator(kind, **keywords):
    def run(data, epochs):
        with kind(data, 5, shuffle=False, **keywords) as batches:
            images = [image for batch in take(batches, epochs) for image, _ in batch]
        return [images[COUNT * epoch : COUNT * (epoch + 1)] for epoch in range(epochs)]

    return run


def take(batches, epochs):
    """The batches of a loop that goes on for ever, of which some reach into the next epoch."""
    return [list(batch) for batch in itertools.islice(batches, -(-COUNT * epochs // 5))]


def by_loader(make, **keywords):
    def run(data, epochs):
        loader = make(data, 5, **keywords)
        return [
            [np.asarray(image) for batch in loader for image in as_array(batch[0])]
            for _ in range(epochs)
        ]

    return run


def as_array(images):
    return images.asnumpy() if hasattr(images, "asnumpy") else np.asarray(images)


LOOPS = {
    "SerialIterator": by_iterator(SerialIterator),
    "MultithreadIterator": by_iterator(MultithreadIterator, n_threads=3),
    "MultiprocessIterator": by_iterator(MultiprocessIterator, n_processes=2),
    "gluon": by_loader(gluon.data.DataLoader),
    "gluon in threads": by_loader(gluon.data.DataLoader, num_workers=2, thread_pool=True),
    "gluon in processes": by_loader(gluon.data.DataLoader, num_workers=2),
    "ImageLoader": by_loader(ImageLoader),
    "ImageLoader in threads": by_loader(ImageLoader, num_workers=3),
}


@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("loop", LOOPS)
def test_each_epoch_of_a_loop_has_its_own_crops(pack, loop, wrapped):
    turn = list(WRAPPED).index(wrapped) + list(LOOPS).index(loop)
    make = (of_records, of_arrays)[turn % 2]  # both of them in every loop and in every wrapping
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        epochs = LOOPS[loop](WRAPPED[wrapped](make(pack)), 3)
    assert not [str(one.message) for one in seen if "asked for again" in str(one.message)]
    data = make(pack)
    for epoch, images in enumerate(epochs):
        assert np.array_equal(images, expected(data, epoch))
    assert not np.array_equal(epochs[0], epochs[1])


@pytest.mark.parametrize("kind", [SerialIterator, MultithreadIterator])
def test_a_loop_goes_on_with_the_crops_of_its_epoch(pack, kind):
    batches = kind(of_records(pack), 5, shuffle=False)
    take(batches, 1)
    state = batches.state_dict()
    rest = [image for batch in take(batches, 1) for image, _ in batch]
    again = SerialIterator(of_records(pack), 5, shuffle=False)
    again.load_state_dict(state)
    assert np.array_equal([image for batch in take(again, 1) for image, _ in batch], rest)
    batches.finalize()


def test_an_epoch_that_was_set_counts_for_every_loop(pack):
    data = of_records(pack)
    wanted = expected(data, 7)
    found = [
        image
        for batch in SerialIterator(data, 5, repeat=False, shuffle=False)
        for image, _ in batch
    ]
    assert np.array_equal(found, wanted)


def told(pack, make, run, **more):
    """How often a data set is warned of."""
    data = make(pack)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run(data, **more)
    return len([one for one in seen if "set_epoch" in str(one.message)])


def epochs_of(data, count=4, **keywords):
    loader = DataLoader(data, 4, **keywords)
    for _ in range(count):
        list(loader)


def counted(data):
    for epoch in range(3):
        data.set_epoch(epoch)
        list(DataLoader(data, 4))


def looked_at(data):
    for number in range(4):
        data[number]
    list(DataLoader(data, 4, shuffle=True))


def anew(data):
    for _ in range(3):
        list(SerialIterator(data, 4, repeat=False))


def unchanging(pack):
    return ImageRecordDataset(pack, data_shape=(3, 12, 12))


@pytest.mark.parametrize("make", [of_records, of_arrays])
def test_loops_of_others_are_warned_of_once(pack, make):
    assert told(pack, make, epochs_of) == 1
    assert told(pack, make, lambda data: epochs_of(WRAPPED["ConcatDataset"](data))) == 1
    assert told(pack, make, anew) == 1


def test_nobody_is_warned_of_what_is_right(pack):
    assert told(pack, of_records, counted) == 0
    assert told(pack, of_records, looked_at) == 0
    assert told(pack, of_records, epochs_of, count=1, shuffle=True) == 0
    assert told(pack, unchanging, epochs_of) == 0
    assert told(pack, unchanging, anew) == 0
    assert told(pack, ImageRecordDataset, lambda data: [data[:] for _ in range(4)]) == 0


def test_threads_of_a_data_set_know_the_epoch(pack):
    data = ImageRecordDataset(pack, threads=3, **CROPS)
    batches = SerialIterator(data, COUNT, shuffle=False)
    found = [[image for image, _ in next(batches)] for _ in range(2)]
    assert np.array_equal(found[1], expected(of_records(pack), 1))


FORMS = {
    "floats": {},
    "views": {"views": [{}, {"scale": 0.5}]},
    "bytes, channels last": {"dtype": "uint8", "layout": "HWC", "channels": 3, "threads": 2},
    "labels": {"label_dtype": "int64"},
    "rows of classes": {"multi_hot": COUNT},
    "recipe": {"recipe": {"scale": 1 / 255}},
}


@pytest.mark.parametrize("form", FORMS)
def test_the_loader_makes_the_images_of_records_in_threads(pack, form):
    data = ImageRecordDataset(pack, **CROPS, **FORMS[form])
    chosen = Subset(data, [5, 2, 9, 11, 3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast = ImageLoader(chosen, 3, shuffle=False)
    assert fast.provider is not None
    for epoch in range(2):
        data.set_epoch(epoch)
        for mine, theirs in zip(fast, DataLoader(chosen, 3), strict=True):
            assert len(mine) == len(theirs)
            for one, other in zip(mine, theirs, strict=True):
                assert one.dtype == other.dtype and torch.equal(one, other)


def test_labels_of_several_numbers_stay_vectors(tmp_path):
    path = write_pack(tmp_path / "b.rec", 4, lambda i: [i, 7])
    data = ImageRecordDataset(path, data_shape=(3, 8, 8))
    assert next(iter(ImageLoader(data, 4)))[1].tolist() == [[i, 7] for i in range(4)]


@pytest.mark.parametrize("keywords", [{}, {**CROPS, "transform": same}])
def test_what_only_python_makes_is_told(pack, keywords):
    with pytest.warns(UserWarning, match="data_shape|transform of examples"):
        ImageLoader(ImageRecordDataset(pack, **keywords))
