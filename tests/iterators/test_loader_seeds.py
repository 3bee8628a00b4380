"""Transforms in Python repeat by the seed of a loader."""

import json
import random

import numpy as np
import pytest
import torch
from torch.utils.data import Subset

from iterators import NamedRecipe
from iterators.testing import write_pack
from iterators.torch import ImageLoader

COUNT = 12

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*made by its own __getitem__", "ignore:.*run in Python", "ignore:.*os.fork",
    "ignore:.*multi-threaded", "ignore:.*worker processes in total",
)  # fmt: skip

DRAWS = {
    "torch": lambda: float(torch.rand(())),
    "numpy": lambda: float(np.random.uniform()),
    "random": random.random,
}


class Noisy:
    """Its samples are random numbers and their own number."""

    def __init__(self, draw):
        self.draw = draw

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return torch.tensor([self.draw(), self.draw()], dtype=torch.float64), index


def epochs(count=2, dataset=None, **keywords):
    loader = ImageLoader(dataset or Noisy(DRAWS["torch"]), 4, **{"seed": 5, **keywords})
    return [[(x.tolist(), y.tolist()) for x, y in loader] for _ in range(count)]


@pytest.mark.parametrize("draw", DRAWS)
def test_the_seed_decides(draw):
    data = Noisy(DRAWS[draw])
    found = [epochs(dataset=data, shuffle=True) for _ in range(2)]
    assert found[0] == found[1]
    first, second = ({y: tuple(x) for b in e for x, y in zip(*b, strict=True)} for e in found[0])
    assert len(set(first.values()) | set(second.values())) == 2 * COUNT
    assert epochs(dataset=data, shuffle=True, seed=6) != found[0]


def states():
    return hash(
        (random.getstate(), np.random.get_state()[1].tobytes(), bytes(torch.get_rng_state()))
    )


@pytest.mark.parametrize("workers", [0])
def test_the_generators_of_the_program_stay_as_they_are(workers):
    before = states()
    epochs(num_workers=workers)
    assert states() == before


@pytest.mark.parametrize("workers", [0])
def test_the_rest_of_an_epoch_is_repeated(workers):
    loader = ImageLoader(Noisy(DRAWS["torch"]), 4, shuffle=True, seed=5)
    loop = iter(loader)
    next(loop)
    state = loader.state_dict()
    rest = [x.tolist() for x, _ in loop]
    again = ImageLoader(Noisy(DRAWS["torch"]), 4, shuffle=True, seed=5, num_workers=workers)
    again.load_state_dict(state)
    again.set_epoch(0)
    assert [x.tolist() for x, _ in again] == rest


def test_the_rest_of_an_epoch_of_a_sampler_is_repeated():
    def loader(seed=None):
        return ImageLoader(Noisy(DRAWS["torch"]), 4, sampler=range(12), seed=seed)

    first = loader()
    batches = iter(first)
    next(batches)
    state = json.loads(json.dumps(first.state_dict()))
    again = loader()
    again.load_state_dict(state)
    assert [x.tolist() for x, _ in again] == [x.tolist() for x, _ in batches]
    with pytest.raises(ValueError, match="saved with seed="):
        loader(seed=5).load_state_dict(state)
    del state["settings"]["seed"]  # as older releases saved it
    loader(seed=5).load_state_dict(state)


class Rare(Noisy):
    """Only some samples draw, and the first cannot be had."""

    broken = False

    def __getitem__(self, index):
        if index % 4 != 2:
            return torch.zeros(2, dtype=torch.float64), index
        sample = super().__getitem__(index)
        if self.broken and index == 6:
            raise OSError("bad file")
        return sample


@pytest.mark.parametrize("size", [1, 4, COUNT])
@pytest.mark.parametrize("draw", DRAWS)
def test_samples_that_draw_now_and_then_are_repeated(draw, size):
    def run():
        before = states()
        loader = ImageLoader(Rare(DRAWS[draw]), size, sampler=[0, 1, 4, 5, 2, 6, 10, 2], seed=5)
        found = [[x for batch, _ in loader for x in batch.tolist()] for _ in range(2)]
        assert states() == before
        return found

    first, again = run()
    assert run() == [first, again] and first != again
    assert first[:4] == [[0, 0]] * 4 and len({x for x, _ in first[4:]}) == 4


def test_a_normal_deviate_that_numpy_keeps_is_no_sample():
    class Normal:
        def __len__(self):
            return COUNT

        def __getitem__(self, index):
            return np.random.randn() if index % 5 == 3 else 0.0, index

    def run(start):
        np.random.seed(start)
        np.random.randn()  # which draws two, and keeps one
        before = np.random.get_state()
        found = [x.tolist() for x, _ in ImageLoader(Normal(), 4, seed=7)]
        assert str(np.random.get_state()) == str(before)
        return found

    assert run(0) == run(5)


def test_a_batch_that_failed_leaves_the_generators_as_they_are():
    data = Rare(DRAWS["numpy"])
    data.broken = True
    loop = iter(ImageLoader(data, 1, sampler=[0, 6, 2], seed=5))
    before = states()
    next(loop)
    with pytest.raises(OSError, match="bad file"):
        next(loop)
    ((sample, _),) = loop
    assert states() == before
    again = iter(ImageLoader(Rare(DRAWS["numpy"]), 1, sampler=[0, 6, 2], seed=5))
    assert [x.tolist() for x, _ in again][2] == sample.tolist()


def test_a_function_that_collates_may_draw_as_it_does_in_dataloader():
    def collate(samples):
        return torch.rand(())

    class Plain(Noisy):
        def __getitem__(self, index):
            return index

    loader = ImageLoader(Plain(None), 4, collate_fn=collate, seed=5)
    torch.manual_seed(3)
    wanted = [torch.rand(()).item() for _ in range(3)]
    torch.manual_seed(3)
    assert [x.item() for x in loader] == wanted


def test_torch_manual_seed_decides():
    def run(seed):
        torch.manual_seed(seed)
        return epochs(seed=None)

    assert run(1) == run(1) != run(2)


def test_copies_on_several_ranks_differ():
    def run(rank):
        sampler = list(range(4))
        return epochs(1, sampler=sampler, rank=rank, world_size=2)

    assert run(0) != run(1)


@pytest.mark.parametrize("workers", [0, 3])
def test_transforms_at_the_end_repeat(tmp_path, workers):
    path = str(write_pack(tmp_path / "a.rec", COUNT, size=(16, 16)))

    def noise(image):
        return image + torch.rand(())

    recipe = NamedRecipe(
        "mine", keywords={"data_shape": (3, 8, 8)}, tail=(noise,), tail_of="tensor"
    )

    def run(**keywords):
        loader = ImageLoader(path, 5, transform=recipe, seed=3, shuffle=True, **keywords)
        return [hash(x.numpy().tobytes()) for _ in range(2) for x, _ in loader]

    before = states()
    wanted = run()
    assert run(num_workers=workers) == wanted
    assert wanted[:3] != wanted[3:] and states() == before


def test_a_data_set_that_draws_nothing_stays_in_threads():
    class Plain(Noisy):
        def __getitem__(self, index):
            return torch.tensor([index]), index

    data = Plain(None)
    loader = ImageLoader(Subset(data, [3, 1]), 1, num_workers=2)
    assert [y.tolist() for _, y in loader] == [[3], [1]]
