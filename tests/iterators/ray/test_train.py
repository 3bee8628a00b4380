"""The part of a worker of Ray Train and its state, with a train context that is made up."""

from types import SimpleNamespace

import pytest

from iterators import ImageRecordIter
from iterators.testing import write_pack

train = pytest.importorskip("ray.train")
from iterators.ray import load_state, save_state, train_iterator  # noqa: E402

IMAGES = 24


@pytest.fixture
def keywords(tmp_path):
    path = write_pack(tmp_path / "a.rec", IMAGES, size=(4, 4))
    return {
        "path_imgrec": path,
        "path_imgidx": tmp_path / "a.idx",
        "data_shape": (3, 4, 4),
        "batch_size": 2,
        "preprocess_threads": 1,
        "shuffle": True,
    }


@pytest.fixture
def worker(monkeypatch):
    """Pretend to be one of several workers, with a checkpoint."""

    def be(rank, workers, checkpoint=None):
        context = SimpleNamespace(get_world_rank=lambda: rank, get_world_size=lambda: workers)
        monkeypatch.setattr(train, "get_context", lambda: context)
        monkeypatch.setattr(train, "get_checkpoint", lambda: checkpoint)

    return be


def ids(batch):
    return batch.index.tolist()


def test_workers_share_an_epoch_and_go_on_in_any_number(worker, keywords, tmp_path):
    checkpoint, found, steps = None, [], {2: 3, 3: 1, 1: 2, 4: 1}
    for workers, count in steps.items():
        for rank in range(workers):
            worker(rank, workers, checkpoint)
            with train_iterator(ImageRecordIter, **keywords) as images:
                for _ in range(count):
                    found += ids(images.next())
                (tmp_path / f"after-{workers}").mkdir(exist_ok=True)
                save_state(images, tmp_path / f"after-{workers}")  # that of any rank is the same
        checkpoint = train.Checkpoint.from_directory(tmp_path / f"after-{workers}")
    assert len(found) == 2 * (2 * 3 + 3 + 2 + 4) == IMAGES + 6
    assert sorted(found[:22]) != list(range(22)) and len(set(found[:22])) == 22
    assert sorted(set(found)) == list(range(IMAGES))


def test_a_checkpoint_of_others_starts_at_the_beginning(worker, keywords, tmp_path):
    """It may hold a model alone; one that is given must hold a state."""
    checkpoint = train.Checkpoint.from_directory(tmp_path)
    worker(0, 1, checkpoint)
    with train_iterator(ImageRecordIter, **keywords) as images:
        assert images.state_dict()["done"] == 0
    with pytest.raises(FileNotFoundError):
        train_iterator(ImageRecordIter, checkpoint=checkpoint, **keywords)


def test_the_part_is_not_to_be_given(worker, keywords):
    worker(0, 2)
    with pytest.raises(TypeError, match="num_parts follows from the train context"):
        train_iterator(ImageRecordIter, num_parts=2, **keywords)


def test_states_that_do_not_fit(worker, keywords, tmp_path):
    worker(0, 2)
    with train_iterator(ImageRecordIter, **keywords) as images:
        save_state(images, tmp_path)
        with train_iterator(ImageRecordIter, **(keywords | {"batch_size": 3})) as other:
            with pytest.raises(ValueError, match="batch_size"):
                load_state(other, tmp_path)
        (tmp_path / "iterator.json").write_text("{")
        with pytest.raises(ValueError, match="iterator.json: it is not a state"):
            load_state(images, tmp_path)
