"""Providers and data sets under PyTorch's loaders: parts, epochs, states, DLPack."""

import copy
import itertools
import json
import os
import pickle
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

import recordio
from iterators import (
    ArrayDataProvider,
    Conv2DSpace,
    DataBatch,
    ImageIter,
    ImageRecordIter,
    LibSVMIter,
    MixBatches,
    ResizeIter,
)
from iterators.testing import write_pack, write_records
from iterators.torch import MapDataset, RecordBatches, from_dlpack, to_dlpack

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*workers read a part", "ignore:.*os.fork", "ignore:.*set_vital"
)


def dataset(size=10, batch_size=3, **arguments):
    arguments = {"shuffle": True, "seed": 2, **arguments}
    return RecordBatches(
        ArrayDataProvider, data=np.arange(float(size)), batch_size=batch_size, **arguments
    )


def values(batches):
    return [batch[0].tolist() for batch in batches]


def loader(batches, **arguments):
    return DataLoader(batches, batch_size=None, **arguments)


def flat(batches):
    return list(itertools.chain.from_iterable(batches))


# -- epochs ----------------------------------------------------------------------------------------


def test_each_loop_is_the_next_epoch_of_the_provider():
    with ArrayDataProvider(np.arange(10.0), batch_size=3, shuffle=True, seed=2) as provider:
        wanted = [[batch.data[0][: batch.count].tolist() for batch in provider] for _ in range(3)]
    batches = dataset()
    assert len(batches) == len(loader(batches)) == 4
    assert [values(batches), values(loader(batches)), values(batches)] == wanted
    batches.set_epoch(1)
    assert [values(batches), values(batches)] == wanted[1:]
    assert values(dataset(epoch=2)) == wanted[2]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_workers_read_parts_and_count_epochs(workers, persistent):
    batches = dataset()
    loading = loader(batches, num_workers=workers, persistent_workers=persistent)
    epochs = [values(loading) for _ in range(3)]
    for epoch in epochs:
        assert sorted(flat(epoch)) == list(range(10))
    assert epochs[0] != epochs[1] != epochs[2]
    batches.set_epoch(1)
    assert [values(loading), values(loading)] == epochs[1:]


def test_spawned_workers_count_epochs_too():
    batches = dataset()
    loading = loader(batches, num_workers=1, multiprocessing_context="spawn")
    found = [values(batches), values(loading), values(batches)]
    assert found == [values(dataset(epoch=epoch)) for epoch in range(3)]


def test_an_abandoned_loop_is_followed_by_the_next_epoch():
    batches = dataset()
    next(iter(batches))
    assert values(batches) == values(dataset(epoch=1))


def test_a_provider_that_exists_is_used_as_it_is():
    with ArrayDataProvider(np.arange(10.0), batch_size=3, seed=2, shuffle=True) as provider:
        batches = RecordBatches(provider)
        assert [values(batches), values(loader(batches))] == [
            values(dataset()), values(dataset(epoch=1)),
        ]  # fmt: skip
        assert len(batches) == 4
        with pytest.raises(RuntimeError, match="cannot be used in a worker"):
            values(loader(batches, num_workers=1, multiprocessing_context="fork"))
        with pytest.raises(TypeError, match="pass what makes it"):
            pickle.dumps(batches)
        for wrong in ({"batch_size": 2}, {"rank": 0, "world_size": 1}):
            with pytest.raises(TypeError, match="cannot be given parameters"):
                RecordBatches(provider, **wrong)
        batches.close()
        with pytest.raises(ValueError, match="closed"):
            list(provider)


def test_it_describes_itself_without_making_a_provider():
    def make(**keywords):
        raise AssertionError("not asked for")

    url = "https://user:word@host/a.rec?signature=12"
    options = {"shape": (3, 4), "data": np.zeros((5, 2)), "remote_options": {"key": "secret"}}
    dataset = RecordBatches(make, path_imgrec=url, **options, rank=1, world_size=4, epoch=2)
    assert repr(dataset) == (
        "<RecordBatches of make(path_imgrec='https://host/a.rec', shape=(3, 4), "
        "data=<(5, 2) float64>, remote_options=<dict>), rank 1 of 4, epoch 2>"
    )
    provider = ArrayDataProvider(np.arange(5), batch_size=2)
    assert repr(RecordBatches(provider)) == f"<RecordBatches of {provider!r}, epoch 0>"


def test_a_description_settles_no_rank(monkeypatch):
    dataset = RecordBatches(ArrayDataProvider, data=np.arange(4.0), batch_size=2)
    assert "rank" not in repr(dataset)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert dataset.world == (1, 2)
    assert "rank 1 of 2" in repr(dataset)
    monkeypatch.setenv("WORLD_SIZE", "")
    assert "rank 1 of 2" in repr(dataset)


def test_any_function_that_makes_a_provider_will_do():
    def make():
        inside = ArrayDataProvider(np.arange(4.0), batch_size=2)
        return ResizeIter(inside, size=3, reset_internal=False)

    batches = RecordBatches(make)
    assert values(batches) == [[0, 1], [2, 3], [0, 1]]
    assert values(batches) == [[2, 3], [0, 1], [2, 3]]
    batches.set_epoch(7)
    with pytest.raises(ValueError, match="cannot begin with epoch 7"):
        values(batches)


def test_what_is_delivered_can_be_chosen():
    batches = dataset(convert=lambda batch: (batch.count, batch.index.tolist()))
    assert [count for count, _ in batches] == [3, 3, 3, 1]
    labelled = RecordBatches(
        ArrayDataProvider, data=np.ones((3, 2)), label=np.arange(3.0), batch_size=2, device="cpu"
    )
    first, last = labelled
    assert [tuple(array.shape) for array in (*first, *last)] == [(2, 2), (2,), (1, 2), (1,)]


@pytest.mark.parametrize("device", [None, "cpu"])
def test_sparse_batches(tmp_path, device):
    (tmp_path / "x.libsvm").write_text("1 0:1\n0 1:2 2:3\n1 3:4\n")
    batches = RecordBatches(
        LibSVMIter, data_libsvm=str(tmp_path / "x.libsvm"), data_shape=(4,), batch_size=2,
        device=device, round_batch=False,
    )  # fmt: skip
    dense = torch.cat([data.to_dense() for data, _ in batches])
    assert dense.tolist() == [[1, 0, 0, 0], [0, 2, 3, 0], [0, 0, 0, 4]]


# -- ranks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [False, True])
@settings(deadline=None, max_examples=25)
@given(size=st.integers(5, 20), world=st.integers(1, 4), batch=st.integers(1, 5))
def test_ranks_have_equally_many_batches_and_together_everything(shuffle, size, world, batch):
    parts = [
        values(dataset(size, batch, shuffle=shuffle, rank=rank, world_size=world))
        for rank in range(world)
    ]
    shapes = {tuple(map(len, part)) for part in parts}
    assert len(shapes) == 1
    everything = flat(flat(parts))
    assert set(everything) == set(range(size))
    assert len(everything) < size + world


def test_ranks_may_have_everything_just_once():
    parts = [values(dataset(rank=rank, world_size=3, even=False)) for rank in range(3)]
    assert sorted(flat(flat(parts))) == list(range(10))


def of_unequal_images(tmp_path, index=False):
    """Keywords of a pack whose blocks of equal bytes have quite different numbers of images."""
    sizes = [4 if number < 15 else 60 for number in range(19)]
    images = [np.random.default_rng(0).integers(0, 256, (n, n, 3)).astype(np.uint8) for n in sizes]
    path = write_pack(tmp_path / "unequal.rec", images)
    more = {"path_imgidx": str(path.with_suffix(".idx"))} if index else {}
    return {"path_imgrec": str(path), "data_shape": (3, 4, 4), **more}


UNSHUFFLED = {
    "arrays": lambda path: (
        ArrayDataProvider, {"data": np.zeros(19), "label": np.arange(19.0)},
    ),
    "index": lambda path: (ImageRecordIter, of_unequal_images(path, index=True)),
    "bytes": lambda path: (ImageRecordIter, of_unequal_images(path)),
    "ImageIter": lambda path: (ImageIter, of_unequal_images(path)),
    "a function": lambda path: (
        lambda num_parts, part_index, even, **more: ArrayDataProvider(
            np.zeros(19), np.arange(19.0), num_parts=num_parts, part_index=part_index, even=even,
            **more,
        ), {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("world", [4, 8, 16])
@pytest.mark.parametrize("kind", UNSHUFFLED)
def test_ranks_without_shuffling_differ_by_one_batch(tmp_path, kind, world, batch_size):
    make, keywords = UNSHUFFLED[kind](tmp_path)

    def labels(**more):
        parts = []
        for rank in range(world):
            batches = RecordBatches(
                make, batch_size=batch_size, rank=rank, world_size=world, **keywords, **more
            )
            parts.append([batch[1].tolist() for batch in batches])
            assert len(batches) == len(parts[-1])
            batches.close()
        return parts

    once = labels(even=False)
    counts = [len(part) for part in once]
    assert max(counts) - min(counts) <= 1
    assert sorted(flat(flat(once))) == list(range(19))
    alike = labels()
    assert len({len(part) for part in alike}) == 1
    everything = flat(flat(alike))
    assert set(everything) == set(range(19)) and len(everything) < 19 + world


def test_workers_leave_no_image_out(tmp_path):
    make, keywords = UNSHUFFLED["ImageIter"](tmp_path)
    found = loader(RecordBatches(make, batch_size=2, **keywords), num_workers=2)
    assert sorted(label for _, labels in found for label in labels.tolist()) == list(range(19))


def test_parts_by_hand_are_those_of_mxnet(tmp_path):
    make, keywords = UNSHUFFLED["index"](tmp_path)
    parts = [make(batch_size=1, num_parts=8, part_index=k, **keywords) for k in range(8)]
    assert [len(part) for part in parts] == [3] * 6 + [1, 0]
    balanced = make(batch_size=1, num_parts=8, part_index=7, even="balanced", **keywords)
    assert len(balanced) == 2
    with pytest.raises(ValueError, match="even='nearly'"):
        make(batch_size=1, even="nearly", **keywords)


def test_a_state_without_shuffling_is_for_the_same_number_of_ranks():
    batches = dataset(19, 2, shuffle=False, even=False, rank=1, world_size=4)
    loop = iter(batches)
    next(loop)
    state = batches.state_dict()
    rest = values(loop)
    again = dataset(19, 2, shuffle=False, even=False, rank=1, world_size=4)
    again.load_state_dict(state)
    assert values(again) == rest == [[7.0, 8.0], [9.0]]
    other = dataset(19, 2, shuffle=False, even=False, rank=1, world_size=2)
    with pytest.raises(ValueError, match="5 to 10"):
        other.load_state_dict(state)


def test_ranks_and_workers_together():
    parts = [
        values(loader(dataset(24, 2, rank=rank, world_size=2), num_workers=2)) for rank in range(2)
    ]
    assert len(parts[0]) == len(parts[1])
    assert sorted(flat(flat(parts))) == list(range(24))


DISTRIBUTED = """
    import json, os, sys
    import numpy as np, torch.distributed as dist
    from torch.utils.data import DataLoader
    from iterators import ArrayDataProvider
    from iterators.torch import RecordBatches

    if __name__ == "__main__":
        child = os.fork()  # which need not import torch again
        rank = int(child == 0)
        meeting = "file://" + os.path.abspath("meeting")
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
        batches = RecordBatches(
            ArrayDataProvider, data=np.arange(9.0), batch_size=2, shuffle=True, seed=1)
        worker = {"num_workers": 1, "multiprocessing_context": "spawn"}
        loaders = [DataLoader(batches, batch_size=None, **more) for more in ({}, worker)]
        with open(f"rank-{rank}", "w") as file:
            found = [[batch[0].tolist() for batch in loader] for loader in loaders[: 1 + rank]]
            json.dump(found, file)
        dist.barrier()  # whoever ends first may leave the other in the middle of connecting
        dist.destroy_process_group()
        if child:
            assert os.waitpid(child, 0)[1] == 0
"""


def test_rank_and_world_size_come_from_torch_distributed(tmp_path):
    """In the process of a rank, and in a worker of the second one in the next epoch."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(DISTRIBUTED))
    subprocess.run(
        [sys.executable, "-W", "ignore", program.name],
        cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=100, check=True,
    )  # fmt: skip
    found = [json.loads((tmp_path / f"rank-{rank}").read_text()) for rank in range(2)]
    first, second = (dataset(9, 2, seed=1, rank=rank, world_size=2) for rank in range(2))
    assert found == [[values(first)], [values(second), values(second)]]


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "distributed.md"


def test_the_script_of_the_page_divides_the_records_under_torchrun(tmp_path):
    write_pack(tmp_path / "train.rec", 24, size=(64, 64))
    script = PAGE.read_text().split("```python\n")[1].split("```")[0]
    trained = "    optimizer.step()\n"
    assert trained in script
    seen = "seen = open(f\"rank-{os.environ['RANK']}\", 'w', 1)\n"  # Gloo prints, too
    labels = "    print(labels.tolist(), file=seen)\n"
    weights = "print(network[3].weight.double().sum().item(), file=seen)\n"
    script = script.replace("train = ", f"{seen}train = ").replace(trained, trained + labels)
    (tmp_path / "train.py").write_text(script + weights)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         "train.py"],
        cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = [(tmp_path / f"rank-{k}").read_text().splitlines() for k in range(2)]
    parts = [flat(map(json.loads, lines[:-1])) for lines in files]
    assert [len(part) for part in parts] == [12, 12]
    assert sorted(flat(parts)) == list(range(24))
    assert files[0][-1] == files[1][-1]  # gradients were averaged


@pytest.fixture
def ranks(monkeypatch):
    """Says which rank this is: by the environment, or as a process group would."""

    def say(rank=None, world_size=None, group=None):
        for name, value in (("RANK", rank), ("WORLD_SIZE", world_size)):
            monkeypatch.delenv(name, raising=False)
            if value is not None:
                monkeypatch.setenv(name, str(value))
        distributed = torch.distributed
        monkeypatch.setattr(distributed, "is_initialized", lambda: group is not None)
        monkeypatch.setattr(distributed, "get_rank", lambda: group[0])
        monkeypatch.setattr(distributed, "get_world_size", lambda: group[1])

    return say


def test_ranks_of_the_environment_count_until_there_is_a_group(ranks):
    ranks()
    assert dataset().world == (0, 1)
    ranks(1, 2)
    batches = dataset(9, 2)
    assert batches.world == (1, 2)
    assert values(batches) == values(dataset(9, 2, rank=1, world_size=2))
    ranks(1, 2, group=(1, 2))
    assert values(batches) == values(dataset(9, 2, rank=1, world_size=2, epoch=1))
    ranks(5, 8, group=(0, 3))
    assert dataset().world == (0, 3) and dataset(rank=2, world_size=4).world == (2, 4)


@pytest.mark.parametrize("use", [values, RecordBatches.state_dict, lambda it: it.world])
def test_a_world_that_is_known_too_late_is_an_error(ranks, use):
    ranks()
    batches = dataset()
    use(batches)
    for later in ({"group": (1, 2)}, {"rank": 0, "world_size": 4}):
        ranks(**later)
        with pytest.raises(RuntimeError, match="divided for rank 0 of 1, and now this is rank"):
            use(batches)
        with pytest.raises(RuntimeError, match="make the process group before"):
            copy.deepcopy(batches)
    ranks(group=(0, 1))
    use(batches)
    ranks(group=(1, 2))
    early = dataset()
    assert early.world == (1, 2)
    ranks()  # the group has ended
    assert early.world == (1, 2) == copy.deepcopy(early).world


@pytest.mark.parametrize("wrong", [(None, 2), (0, None), (2, 2), ("x", 2), (0, 0), (-1, 2)])
def test_an_environment_that_names_no_rank_is_refused(ranks, wrong):
    ranks(*wrong)
    with pytest.raises(ValueError, match="RANK=.*is not a rank.*pass rank="):
        values(dataset())
    assert values(dataset(rank=0, world_size=1))
    ranks(*wrong, group=(0, 1))
    assert values(dataset())


# -- states ----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(size=st.integers(5, 12), batch=st.integers(1, 5), done=st.integers(0, 12))
def test_a_run_goes_on_with_exactly_what_is_left(size, batch, done):
    first = dataset(size, batch)
    loop = iter(first)
    for _ in itertools.islice(loop, done):
        pass
    state = pickle.loads(pickle.dumps(first.state_dict()))
    wanted = values(loop), values(first), values(first)
    second = dataset(size, batch)
    second.load_state_dict(state)
    found = values(second), values(second), values(second)
    if done > len(second):  # the loop had ended: what is next is the next epoch
        wanted = wanted[1:]
    assert found[: len(wanted)] == wanted


def test_states_before_between_and_after_loops():
    batches = dataset()
    assert batches.state_dict()["epoch"] == 0
    loop = iter(batches)
    assert batches.state_dict()["epoch"] == 0
    wanted = values(loop)
    assert batches.state_dict()["epoch"] == 1
    batches.set_epoch(0)
    state = batches.state_dict()
    other = dataset()
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert values(other) == wanted


def test_a_state_goes_on_under_another_world_size():
    before = [dataset(24, 2, rank=rank, world_size=3) for rank in range(3)]
    loops = [iter(batches) for batches in before]
    taken = [flat(values(itertools.islice(loop, 2))) for loop in loops]
    state = before[1].state_dict()
    after = [dataset(24, 2, rank=rank, world_size=4) for rank in range(4)]
    for batches in after:
        batches.load_state_dict(state)
    left = [flat(values(batches)) for batches in after]
    assert sorted(flat(taken) + flat(left)) == list(range(24))


def test_states_of_workers_are_not_guessed():
    batches = dataset()
    values(loader(batches, num_workers=1))
    with pytest.raises(RuntimeError, match="StatefulDataLoader"):
        batches.state_dict()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("done", range(6))
def test_torchdata_resumes(workers, done):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def made():
        return stateful.StatefulDataLoader(dataset(), batch_size=None, num_workers=workers)

    first, second = made(), made()
    loop = iter(first)
    assert len(values(itertools.islice(loop, done))) == min(done, 4)
    second.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
    wanted = values(loop), values(first)
    if done == 5:  # the loop had ended
        assert values(second) == wanted[1]
    else:
        assert (values(second), values(second)) == wanted


def test_wrong_arguments_and_states():
    for wrong, message in (
        ({"rank": 1}, "belong together"),
        ({"rank": 2, "world_size": 2}, "rank=2"),
        ({"epoch": -1}, "epoch"),
    ):
        with pytest.raises(ValueError, match=message):
            dataset(**wrong)
    with pytest.raises(TypeError, match="follows from rank"):
        dataset(num_parts=2)
    with pytest.raises(TypeError, match="neither a provider"):
        RecordBatches(3)
    with pytest.raises(ValueError, match="needs epoch and provider"):
        dataset().load_state_dict({"epoch": 1})
    with pytest.raises(ValueError, match="batch_size=4"):
        dataset().load_state_dict(dataset(batch_size=4).state_dict())


def test_many_workers_are_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
        with pytest.raises(Warning, match="num_workers=0 is faster"):
            values(loader(dataset(), num_workers=1, multiprocessing_context="fork"))


def test_closing_stops_the_threads_and_a_loop_starts_new_ones():
    batches = dataset()
    wanted = values(batches), values(batches)
    batches.set_epoch(0)
    assert values(batches) == wanted[0]
    batches.close()
    batches.close()
    assert values(batches) == wanted[1]


def test_copies_are_apart():
    first = dataset()
    next(iter(first))
    second = copy.deepcopy(first)
    second.set_epoch(5)
    assert values(first) == values(dataset(epoch=1))


# -- data sets that are indexed --------------------------------------------------------------------


class Records:
    def __init__(self):
        self.calls = []

    def __len__(self):
        return 5

    def __getitem__(self, i):
        return np.full(2, i)

    def __getitems__(self, indices):
        self.calls.append(list(indices))
        return [self[i] for i in indices]


def test_a_loader_fetches_in_batches():
    records = Records()
    batches = list(DataLoader(MapDataset(records), batch_size=2))
    assert [batch.tolist() for batch in batches] == [[[0, 0], [1, 1]], [[2, 2], [3, 3]], [[4, 4]]]
    assert records.calls == [[0, 1], [2, 3], [4]]


def record_tensor(record):
    return torch.frombuffer(bytearray(record), dtype=torch.uint8)


@pytest.mark.parametrize("workers", [0, 2])
def test_records_of_a_file_in_any_number_of_workers(tmp_path, workers):
    path = write_records(tmp_path / "x.rec", [bytes([i] * 4) for i in range(9)])
    reader = recordio.RecordReader(path, path.with_suffix(".idx"))
    records = MapDataset(reader, transform=record_tensor)
    assert records[3].tolist() == [3] * 4
    batches = list(DataLoader(records, batch_size=4, num_workers=workers))
    assert torch.cat(batches)[:, 0].tolist() == list(range(9))


# -- DLPack ----------------------------------------------------------------------------------------


def test_dlpack_shares_memory_both_ways():
    array, label = np.zeros((2, 3), np.float32), torch.zeros(2)
    batch = DataBatch([array], [label], pad=1)
    tensors = from_dlpack(batch)
    tensors.data[0][0, 0] = 5
    assert array[0, 0] == 5
    assert tensors.label[0] is label
    assert tensors.pad == 1
    assert batch.data[0] is array
    capsules = to_dlpack(batch)
    again = from_dlpack(capsules)
    again.data[0][1, 1] = 6
    again.label[0][0] = 7
    assert (array[1, 1], label[0].item()) == (6, 7)
    nested = from_dlpack({"a": [array, (3, None)]})
    assert nested["a"][0].data_ptr() == array.ctypes.data
    assert nested["a"][1] == (3, None)


def test_a_batch_taken_by_dlpack_is_not_overwritten():
    with ArrayDataProvider(np.arange(40.0).reshape(20, 2), batch_size=2) as provider:
        held = [from_dlpack(batch).data[0] for batch in provider]
        for _ in range(3):
            for _ in provider:
                pass
    assert torch.cat(held).tolist() == np.arange(40.0).reshape(20, 2).tolist()


def test_read_only_arrays_are_refused():
    array = np.zeros(3)
    array.flags.writeable = False
    with pytest.raises(BufferError):
        from_dlpack([array])


class Consumer:
    """A capsule as the array that another library would hand over."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **keywords):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.parametrize("writeable", [True, False])
def test_capsules_with_a_version_say_whether_an_array_is_read_only(writeable):
    array = np.arange(3.0)
    array.flags.writeable = writeable
    try:
        array.__dlpack__(max_version=(1, 0))
    except TypeError:
        pytest.skip("NumPy before 2.1 knows no versions")
    (capsule,) = to_dlpack([array], max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    again = np.from_dlpack(Consumer(capsule))
    assert again.ctypes.data == array.ctypes.data and again.flags.writeable == writeable
    if not writeable:
        with pytest.raises(BufferError):
            to_dlpack([array])


def test_libraries_without_versions_give_the_capsules_that_they_know():
    class Old(Consumer):
        def __dlpack__(self):
            return self.capsule

    array = np.arange(3.0)
    (capsule,) = to_dlpack([Old(array.__dlpack__())], max_version=(1, 0))
    assert "versioned" not in repr(capsule)
    assert torch.from_dlpack(capsule).data_ptr() == array.ctypes.data
    tensor = torch.zeros(2)
    (capsule,) = to_dlpack([tensor], max_version=(1, 0))
    assert torch.from_dlpack(capsule).data_ptr() == tensor.data_ptr()


def test_padding_is_cut_off_where_the_batch_axis_is():
    for arguments in (
        {"layout": "CHWN", "data_layout": "NCHW"},
        {"data_specs": (Conv2DSpace((4, 5), channels=3, axes=("c", 0, 1, "b")), "features")},
    ):
        images = np.arange(3 * 60.0).reshape(3, 3, 4, 5)
        provider = ArrayDataProvider(images, batch_size=2, **arguments)
        shapes = [tuple(batch[0].shape) for batch in RecordBatches(provider)]
        assert shapes == [(3, 4, 5, 2), (3, 4, 5, 1)]


# -- recipes ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("packs") / "a.rec"
    return str(write_pack(path, 11, lambda i: i % 4, size=(40, 44), index=False))


RECIPE = {
    "data_shape": (3, 32, 32), "batch_size": 4, "shuffle": True, "auto_augment": "randaugment",
    "views": [{}, {"data_shape": (3, 20, 24), "gaussian_blur": 1.0}],
}  # fmt: skip


def mixed(**keywords):
    return MixBatches(ImageRecordIter(**keywords), mixup=0.8, cutmix=1.0, classes=4)


@pytest.mark.parametrize("make", [ImageRecordIter, ImageIter, mixed])
@pytest.mark.parametrize("workers", [0, 2])
def test_recipes_views_and_mixtures_go_through_a_loader(pack, make, workers):
    batches = RecordBatches(make, path_imgrec=pack, **RECIPE)
    found = list(loader(batches, num_workers=workers))
    assert sum(len(batch[-1]) for batch in found) >= 11
    for first, second, label in found:
        assert first.shape[1:] == (3, 32, 32)
        assert second.shape[1:] == (3, 20, 24)
        assert len(first) == len(second) == len(label)
        assert label.shape[1:] == ((4,) if make is mixed else ())
        if make is mixed:
            torch.testing.assert_close(label.sum(1), torch.ones(len(label)))


@pytest.mark.parametrize("make", [ImageRecordIter, ImageIter, mixed])
def test_a_loader_of_recipes_resumes(pack, make):
    def made():
        return RecordBatches(make, path_imgrec=pack, **RECIPE)

    batches = made()
    for _ in batches:
        pass
    running = iter(batches)
    next(running)
    state = copy.deepcopy(batches.state_dict())
    wanted = list(running)
    assert len(wanted) == 2
    again = made()
    again.load_state_dict(state)
    for one, other in zip(wanted, again, strict=True):
        for mine, theirs in zip(one, other, strict=True):
            assert torch.equal(mine, theirs)


def test_dlpack_takes_bfloat16_without_a_copy():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(4).astype(ml_dtypes.bfloat16)
    for tensor in (from_dlpack([array])[0], torch.from_dlpack(to_dlpack([array])[0])):
        assert tensor.dtype is torch.bfloat16 and tensor.data_ptr() == array.ctypes.data
    array.flags.writeable = False
    for function in (from_dlpack, to_dlpack):
        with pytest.raises(BufferError, match="read-only"):
            function([array])


def test_the_loader_delivers_bfloat16():
    pytest.importorskip("ml_dtypes")
    data = np.linspace(0, 1, 10, dtype="f4").reshape(5, 2)
    dataset = RecordBatches(ArrayDataProvider, data=data, batch_size=2, dtype="bfloat16")
    batches = [batch for (batch,) in DataLoader(dataset, batch_size=None)]
    assert all(batch.dtype is torch.bfloat16 for batch in batches)
    assert torch.equal(torch.cat(batches), torch.from_numpy(data).bfloat16())


def test_a_length_settles_no_rank(monkeypatch):
    """Launchers that start the other processes later leave the first one without a rank."""
    dataset = RecordBatches(ArrayDataProvider, data=np.arange(8.0), batch_size=2)
    assert len(dataset) == 4
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    assert len(dataset) == 4
    with pytest.raises(ValueError, match="is not a rank as yet: make the process group"):
        list(dataset)
    monkeypatch.setenv("RANK", "1")
    assert len(dataset) == 2 and len(list(dataset)) == 2


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a").mkdir()
    for number in range(5):
        pixels = np.full((16, 16 + 8 * (number % 2), 3), number, np.uint8)
        (tmp_path / "a" / f"{number}.png").write_bytes(recordio.encode_image(pixels, "png"))
    return tmp_path


def test_buckets_on_two_ranks_need_no_word_about_even(folder):
    keywords = {"path_imgrec": folder, "buckets": [(16, 16), (16, 24)], "batch_size": 2}
    ranks = [RecordBatches(ImageRecordIter, **keywords, rank=k, world_size=2) for k in range(2)]
    assert len({len(list(rank)) for rank in ranks}) == 1
    with pytest.raises(ValueError, match="drop even"):
        list(RecordBatches(ImageRecordIter, **keywords, rank=0, world_size=2, even=True))


def test_images_of_their_own_size_are_lists_of_tensors(folder):
    keywords = {"path_imgrec": folder, "data_shape": None, "batch_size": 2}
    batches = list(RecordBatches(ImageRecordIter, **keywords))
    assert [len(images) for images, _ in batches] == [2, 2, 1]
    for number, image in enumerate(image for images, _ in batches for image in images):
        assert image.shape == (3, 16, 16 + 8 * (number % 2)) and (image == number).all()


@pytest.mark.parametrize("mixed", [False, True])
def test_the_epoch_of_a_loaded_state_is_not_begun_again(folder, mixed):
    def made():
        keywords = {"path_imgrec": folder, "data_shape": (3, 8, 8), "shuffle": True}
        inside = ImageRecordIter(batch_size=1, **keywords)
        return MixBatches(inside, mixup=0.2, classes=1) if mixed else inside

    batches = made()
    batches.set_epoch(1)
    loop = iter(batches)
    first = [next(loop) for _ in range(2)]
    state, rest = batches.state_dict(), [batch.index.tolist() for batch in loop]
    again = made()
    again.load_state_dict(state)
    again.set_epoch(1)
    assert [batch.index.tolist() for batch in again] == rest and len(rest) == 3
    again.load_state_dict(state)
    again.set_epoch(2)
    assert len(list(again)) == 5
    again.set_epoch(1)
    assert next(again).index.tolist() == first[0].index.tolist()


def test_record_batches_go_on_where_a_state_is(folder):
    keywords = {"path_imgrec": folder, "data_shape": (3, 8, 8), "batch_size": 1, "shuffle": True}
    batches = RecordBatches(ImageRecordIter, **keywords)
    loop = iter(batches)
    next(loop)
    state = batches.state_dict()
    again = RecordBatches(ImageRecordIter, **keywords)
    again.load_state_dict(state)
    again.set_epoch(0)
    assert len(list(again)) == 4
    again.set_epoch(0)
    assert len(list(again)) == 5


def test_a_loop_over_a_provider_goes_on_behind_a_batch_that_failed():
    def convert(batch):
        if batch.data[0][0] == 2:
            raise OSError("bad batch")
        if batch.data[0][0] == 4:
            raise StopIteration
        return batch.data[0].tolist()

    dataset = RecordBatches(ArrayDataProvider, data=np.arange(8), batch_size=2, convert=convert)
    for epoch in (1, 2):
        loop = iter(dataset)
        assert next(loop) == [0, 1]
        with pytest.raises(OSError, match="bad batch"):
            next(loop)
        with pytest.raises(RuntimeError, match="StopIteration"):
            next(loop)
        assert list(loop) == [[6, 7]] and next(loop, None) is None
        assert dataset.epoch == epoch


def test_samples_that_roll_over_come_in_the_next_epoch():
    keywords = {"data": np.arange(10), "batch_size": 4, "last_batch_handle": "roll_over"}
    provider = ArrayDataProvider(**keywords)
    wanted = [[batch.data[0].tolist() for batch in provider] for _ in range(3)]
    dataset = RecordBatches(ArrayDataProvider, **keywords)
    states, found = [], []
    for _ in range(3):
        states.append(dataset.state_dict())
        found.append([batch[0].tolist() for batch in dataset])
    assert found == wanted
    dataset.load_state_dict(states[1])
    assert [batch[0].tolist() for batch in dataset] == wanted[1]
    assert [batch[0].tolist() for batch in dataset] == wanted[2]
    dataset.set_epoch(0)
    assert [batch[0].tolist() for batch in dataset] == wanted[0]
    next(iter(dataset))  # left early, it has nothing to hand on
    assert next(iter(dataset))[0].tolist() == [0, 1, 2, 3]
