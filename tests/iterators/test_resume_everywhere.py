"""Everything with a state goes on as if it had not stopped, wherever it was saved.

Places are before the first batch, behind every batch, behind the last one before and after its loop
has ended, and after a reset.
"""

import numpy as np
import pytest

import recordio
from iterators import (
    AbstractDataProvider,
    ArrayDataProvider,
    Conv2DSpace,
    CSVIter,
    DataBatch,
    DataDesc,
    DataIter,
    DataView,
    ImageDetIter,
    ImageDetRecordIter,
    ImageIter,
    ImageRecordIter,
    IndexSpace,
    LibSVMIter,
    MixBatches,
    MNISTIter,
    MultiprocessIterator,
    MultithreadIterator,
    MXDataProvider,
    NDArrayIter,
    Pack,
    PrefetchingIter,
    ResizeIter,
    SerialIterator,
    ShuffleOrderSampler,
)
from iterators.testing import (
    box_label,
    check_provider,
    check_states,
    noise,
    write_images,
    write_list,
    write_pack,
)
from iterators.torch import RecordBatches
from iterators.views import (
    DataSet,
    ImageClassSet,
    RandomSampler,
    Sampler,
    SentenceSampler,
    SentenceSet,
    ShuffleSampler,
    TextSampler,
    TextSet,
)

COUNT, SIZE = 11, 4
CLASSES = np.arange(COUNT) % 4


# -- what is read ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("everywhere")
    rng = np.random.default_rng(0)
    images = [noise(11, 12, seed=i) for i in range(COUNT)]
    write_pack(path / "a.rec", images, CLASSES)
    write_pack(path / "b.rec", images[:7], CLASSES[:7])
    write_pack(path / "boxes.rec", images, [box_label((k, 0.1, 0.1, 0.7, 0.9)) for k in CLASSES])
    bad = [b"no image" if i in (2, 7) else image for i, image in enumerate(images)]
    write_pack(path / "bad.rec", bad, CLASSES)
    files = write_images(path, images)
    write_list(path / "a.lst", [file.name for file in files], CLASSES)
    write_images(path / "classes", images[:5], [f"{i % 2}/{i}.png" for i in range(5)])
    np.savetxt(path / "x.csv", rng.random((COUNT, 3)), delimiter=",")
    np.savetxt(path / "y.csv", CLASSES, delimiter=",")
    rows = [f"{label} 0:{i} 2:1\n" for i, label in enumerate(CLASSES)]
    (path / "a.libsvm").write_text("".join(rows))
    recordio.write_idx_array(path / "images", rng.integers(0, 256, (COUNT, 8, 8)).astype(np.uint8))
    recordio.write_idx_array(path / "labels", CLASSES.astype(np.uint8))
    return path


# -- providers -------------------------------------------------------------------------------------


def arrays(kind=ArrayDataProvider, count=COUNT, batch_size=SIZE, **more):
    data = np.random.default_rng(1).random((count, 2), np.float32)
    return kind(data, np.arange(count) % 4, batch_size=batch_size, **more)


def rolling(**more):
    return arrays(NDArrayIter, shuffle=True, last_batch_handle="roll_over", **more)


def records(folder, name="a.rec", kind=ImageRecordIter, **more):
    keywords = {
        "path_imgrec": folder / name, "data_shape": (3, 8, 8), "batch_size": SIZE, "seed": 5,
        "shuffle": True, "preprocess_threads": 1, "verbose": False,
    }  # fmt: skip
    return kind(**keywords | more)


def image_iter(folder, kind=ImageIter, **more):
    keywords = {"preprocess_threads": 1, "shuffle": True, "seed": 2}
    return kind(SIZE, (3, 8, 8), **keywords | more)


def packs(folder):
    return [Pack(folder / "a.rec"), Pack(folder / "b.rec", labels="append")]


class Shelf(AbstractDataProvider):
    """A provider of one's own, whose state says no epoch."""

    provide_data = [DataDesc("data", (SIZE, 2))]
    provide_label = [DataDesc("softmax_label", (SIZE,), np.int64)]

    def __init__(self):
        self.turn = self.at = 0

    def reset(self):
        self.turn, self.at = self.turn + (self.at > 0), 0

    def next(self):
        if self.at == 3:
            raise StopIteration
        self.at += 1
        data = np.full((SIZE, 2), self.turn + self.at / 10, np.float32)
        return DataBatch(
            [data + np.arange(SIZE, dtype=np.float32)[:, None]], [np.arange(SIZE)],
            provide_data=self.provide_data, provide_label=self.provide_label,
        )  # fmt: skip

    def state_dict(self):
        return {"turn": self.turn, "at": self.at}

    def load_state_dict(self, state):
        self.turn, self.at = state["turn"], state["at"]


class Epochs(Shelf):
    """The same with epochs."""

    @property
    def epoch(self):
        return self.turn

    def state_dict(self):
        return {"epoch": self.turn, "at": self.at}

    def load_state_dict(self, state):
        self.turn, self.at = state["epoch"], state["at"]


class OldShelf(Shelf, DataIter):
    """The same, written for MXNet."""


class Foreign:
    """An object of MXNet: no state, and the same in every epoch."""

    provide_data, provide_label, at = Shelf.provide_data, Shelf.provide_label, 0

    def reset(self):
        self.at = 0

    def next(self):
        if self.at == 3:
            raise StopIteration
        self.at += 1
        return DataBatch([np.full((SIZE, 2), self.at, np.float32)], [np.arange(SIZE)])


INSIDE = {
    "arrays": lambda: arrays(shuffle=True),
    "roll over": rolling,
    "epochs without batches": lambda: rolling(batch_size=20),
    "a short part": lambda: arrays(shuffle=True, count=9, batch_size=2, num_parts=2, part_index=1),
    "own": Shelf,
    "own with epochs": Epochs,
    "client": OldShelf,
    "foreign": lambda: MXDataProvider(Foreign()),
}

AROUND = {
    "resized": lambda it: ResizeIter(it, 3),
    "resized, longer": lambda it: ResizeIter(it, 5),
    "resized, going on": lambda it: ResizeIter(it, 2, reset_internal=False),
    "prefetching": lambda it: PrefetchingIter(it, prefetch_buffer=2),
    "mixed": lambda it: MixBatches(it, mixup=0.8, classes=4, seed=3),
    "as of MXNet": MXDataProvider,
}

PROVIDERS = {
    "arrays": lambda f: arrays(),
    "arrays, shuffled": lambda f: arrays(shuffle=True, seed=4, epoch=6),
    "arrays, even parts": lambda f: arrays(shuffle=True, num_parts=3, part_index=2, even=True),
    "arrays, a block": lambda f: arrays(num_parts=3, part_index=1, batch_size=2),
    "arrays, round_batch": lambda f: arrays(shuffle=True, round_batch=True),
    "arrays, roll over": lambda f: arrays(shuffle=True, last_batch_handle="roll_over"),
    "arrays, a form": lambda f: arrays(data_specs=(IndexSpace(max_labels=4, dim=1), "targets")),
    "arrays, tensors": lambda f: arrays(shuffle=True, device="cpu"),
    "NDArrayIter": lambda f: arrays(NDArrayIter, shuffle=True),
    "NDArrayIter, discard": lambda f: arrays(NDArrayIter, last_batch_handle="discard"),
    "CSVIter": lambda f: csv(f),
    "CSVIter, no round_batch": lambda f: csv(f, round_batch=False, num_parts=2, part_index=1),
    "CSVIter, shuffled": lambda f: csv(f, shuffle=True),
    "LibSVMIter": lambda f: LibSVMIter(
        data_libsvm=f / "a.libsvm", data_shape=(3,), batch_size=SIZE, shuffle=True
    ),
    "MNISTIter": lambda f: MNISTIter(image=f / "images", label=f / "labels", batch_size=SIZE),
    "records": lambda f: records(f, rand_crop=True, rand_mirror=True, brightness=0.3),
    "records, in order": lambda f: records(f, shuffle=False, round_batch=False),
    "records, a part": lambda f: records(f, num_parts=2, part_index=1, even=True, batch_size=2),
    "records, drawn": lambda f: records(f, shuffle=False, weights=CLASSES % 3 + 0.5),
    "records, skipped": lambda f: records(f, "bad.rec", on_error="skip", batch_size=3),
    "records, recipe": lambda f: records(f, auto_augment="randaugment", random_erasing=0.5),
    "records, views": lambda f: records(f, views=[{}, {"rand_crop": True}]),
    "records, form": lambda f: records(f, data_specs=(
        Conv2DSpace((8, 8), 3, axes=("b", "c", 0, 1)), "features"
    )),
    "packs": lambda f: records(f, path_imgrec=packs(f)),
    "packs by class": lambda f: records(
        f, path_imgrec=packs(f), images_per_class=2, classes_per_batch=2, epoch_size=12
    ),
    "boxes": lambda f: records(f, "boxes.rec", ImageDetRecordIter, rand_mirror_prob=0.5),
    "ImageIter": lambda f: image_iter(f, path_imgrec=f / "a.rec", rand_mirror=True),
    "ImageIter, files": lambda f: image_iter(f, path_imglist=f / "a.lst", path_root=f),
    "ImageIter, roll over": lambda f: image_iter(
        f, path_imgrec=f / "a.rec", last_batch_handle="roll_over"
    ),
    "ImageDetIter": lambda f: image_iter(
        f, ImageDetIter, path_imgrec=f / "boxes.rec", rand_crop=0.5, rand_pad=0.5
    ),
    "own": lambda f: Shelf(),
    "client": lambda f: OldShelf(),
    **{f"{name} in {around}": lambda f, make=make, wrap=wrap: wrap(make())
       for around, wrap in AROUND.items() for name, make in INSIDE.items()
       if not (around.startswith("resized") and name == "epochs without batches")},
    **{f"arrays in {inner} in {outer}": lambda f, first=first, then=then: then(first(rolling()))
       for inner, first in AROUND.items() for outer, then in AROUND.items()
       if not inner == outer == "mixed"},
    "images, mixed and read ahead": lambda f: PrefetchingIter(MixBatches(records(f), cutmix=1.0)),
    "side by side": lambda f: PrefetchingIter(
        [arrays(count=12, shuffle=True), ResizeIter(MXDataProvider(arrays(count=8)), 3), Shelf()],
        *([{}, {old: f"{old}_b"}, {old: f"{old}_c"}] for old in ("data", "softmax_label")),
    ),
}  # fmt: skip

#: Where nothing can tell that an epoch is over, or its state has to serve parts that are not
#: through: a loop without a batch may come first.  It never costs or repeats a batch.
EMPTY_LOOPS = {"own", "client"}
EMPTY_INSIDE = "a short part in", "epochs without batches in", "own with epochs in"


def csv(folder, **more):
    return CSVIter(
        data_csv=folder / "x.csv", data_shape=(3,), label_csv=folder / "y.csv", batch_size=SIZE,
        **more,
    )  # fmt: skip


# -- the test --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_goes_on_from_every_place(folder, name):
    empty = name in EMPTY_LOOPS or name.startswith(EMPTY_INSIDE)
    check_states(lambda: PROVIDERS[name](folder), empty_loops=empty)


@pytest.mark.parametrize("name", [name for name in PROVIDERS if "without batches" not in name])
def test_a_provider_has_the_epochs_and_batches_that_it_says(folder, name):
    rolls = "roll over" in name or name.startswith("arrays in")  # what is rolled over is left out
    check_provider(
        lambda: PROVIDERS[name](folder), resets=not rolls and "resized" not in name, states=False
    )


# -- data sets of torch, iterators over data sets, samplers ----------------------------------------

BATCHES = {
    "arrays": lambda f: RecordBatches(arrays, shuffle=True),
    "a rank": lambda f: RecordBatches(arrays, shuffle=True, rank=1, world_size=2),
    "a short rank": lambda f: RecordBatches(
        arrays, shuffle=True, rank=1, world_size=2, even=False, count=9, batch_size=2
    ),
    "records": lambda f: RecordBatches(records, folder=f, rand_mirror=True),
    "a provider": lambda f: RecordBatches(rolling()),
    **{around: lambda f, wrap=wrap: RecordBatches(lambda **more: wrap(arrays(shuffle=True, **more)))
       for around, wrap in AROUND.items() if around not in ("as of MXNet", "resized, going on")},
}  # fmt: skip


def loop_of_batches(it):
    for batch in it:
        yield it.epoch, [array.numpy().copy() for array in batch]


@pytest.mark.parametrize("name", BATCHES)
def test_a_data_set_of_torch_goes_on_from_every_place(folder, name):
    empty = name == "a short rank"
    check_states(lambda: BATCHES[name](folder), loop_of_batches, empty_loops=empty)


ITERATORS = {
    "serial": lambda: SerialIterator(range(7), 3, order_sampler=ShuffleOrderSampler(1)),
    "serial, in order": lambda: SerialIterator(range(7), 3, shuffle=False),
    "serial, NumPy's generator": lambda: np.random.seed(3) or SerialIterator(range(7), 3),
    "threads": lambda: MultithreadIterator(range(7), 3, order_sampler=ShuffleOrderSampler(1)),
    "processes": lambda: MultiprocessIterator(
        range(7), 3, n_processes=1, order_sampler=ShuffleOrderSampler(1)
    ),
}


def loop_of_examples(it):
    """The batches up to that which completes a sweep."""
    while True:
        batch = next(it)
        yield batch, it.epoch, it.current_position, it.epoch_detail, it.previous_epoch_detail
        if it.is_new_epoch:
            return


@pytest.mark.parametrize("name", ITERATORS)
def test_an_iterator_over_a_data_set_goes_on_from_every_place(name):
    check_states(ITERATORS[name], loop_of_examples, resets=False)


SAMPLERS = {
    "in order": lambda: Sampler(3),
    "short epochs": lambda: Sampler(3, epoch_size=4),
    "shuffled": lambda: ShuffleSampler(3, random_seed=2),
    "shuffled, short epochs": lambda: ShuffleSampler(3, epoch_size=5, random_seed=2),
    "random": lambda: RandomSampler(3, random_seed=2),
    "asked in advance": lambda: ShuffleSampler(2, random_seed=2).asynchronous(2),
    "text": lambda: TextSampler(3),
    "sentences": lambda: SentenceSampler(2, random_seed=2),
}


@pytest.fixture(scope="module")
def sets(folder):
    images = ImageClassSet(folder / "classes", load_size=(3, 8, 8), n_thread=1)
    sets = {
        "asked in advance": images,
        "text": TextSet(np.arange(10), context_size=1),
        "sentences": SentenceSet([[1], [2], [3], [4], [5]], 0, context_size=1),
    }
    rows = DataSet("train", DataView("bf", np.arange(7.0)[:, None]))
    yield lambda name: sets.get(name, rows)
    images.close()


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_goes_on_from_every_place(sets, name):
    def loop(it):
        for batch, seen, _ in it.sample_epoch(sets(name)):
            yield batch.indices.tolist(), seen

    check_states(SAMPLERS[name], loop)
