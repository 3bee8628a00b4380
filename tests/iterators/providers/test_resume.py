"""A run that was interrupted anywhere goes on exactly as if it had not been."""

import hashlib
import json
import subprocess
import sys
import textwrap

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recordio
from iterators import ImageRecordIter
from iterators.testing import maker, strategies, write_pack

COUNT = 23
AUGMENT = {"rand_crop": True, "rand_mirror": True, "brightness": 0.3}


def write(path, count=COUNT, first_id=500):
    numbers = range(first_id, first_id + count)
    return write_pack(path, count, lambda i: i % 4, ids=numbers, size=(11, 12))


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write(tmp_path_factory.mktemp("resume") / "small.rec")


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A file of 5 MiB, so that blocks of 1 MiB cut it."""
    images = [np.full((280, 270, 3), 10 * i, np.uint8) for i in range(COUNT)]
    path = tmp_path_factory.mktemp("resume") / "wide.rec"
    numbers = range(500, 500 + COUNT)
    return write_pack(path, images, lambda i: i % 4, ids=numbers, kind=".bmp", index=False)


provider_of = maker(
    ImageRecordIter, data_shape=(3, 8, 9), batch_size=5, preprocess_threads=2, seed=3, **AUGMENT
)


def content(batch):
    return batch.data[0].tobytes(), batch.label[0].tobytes(), batch.index.tolist(), batch.pad


def run(provider, epochs):
    return [content(batch) for _ in range(epochs) for batch in provider]


def saved(provider):
    text = json.dumps(provider.state_dict())
    assert len(text) < 1000
    return json.loads(text)


def run_with_states(provider, epochs):
    states, batches = [saved(provider)], []
    for _ in range(epochs):
        for batch in provider:
            batches.append(content(batch))
            states.append(saved(provider))
    return batches, states


def check_every_state(path, epochs, reading, **arguments):
    with provider_of(path, **arguments) as provider:
        batches, states = run_with_states(provider, epochs)
    for place, state in enumerate(states[:-1]):
        with provider_of(path, **(arguments | reading)) as resumed:
            resumed.load_state_dict(state)
            assert saved(resumed) == state
            got = run(resumed, epochs - state["epoch"])
        assert got == batches[place:]
    return batches


orders = st.sampled_from(
    [
        {},
        {"shuffle": True},
        {"weights": {0: 1.0, 1: 0.5, 2: 0.0, 3: 4.0}},
        {"weights": np.arange(COUNT, dtype=float)},
    ]
)
readings = st.fixed_dictionaries(
    {"preprocess_threads": st.integers(1, 4), "prefetch_buffer": st.integers(1, 6)}
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    order=orders,
    part=strategies.parts(),
    round_batch=st.booleans(),
    batch_size=st.sampled_from([3, 4, 5, 7, 23, 40]),
    indexed=st.booleans(),
    first=readings,
    then=readings,
)
def test_every_batch_of_three_epochs_can_be_resumed(
    pack, order, part, round_batch, batch_size, indexed, first, then
):
    index = {"path_imgidx": pack.with_suffix(".idx")} if indexed else {}
    arguments = order | part | index | first
    arguments |= {"round_batch": round_batch, "batch_size": batch_size}
    check_every_state(pack, 3, then, **arguments)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("part", [{}, {"num_parts": 3, "part_index": 2}])
def test_blocks_can_be_resumed(wide, shuffle, part):
    arguments = {"shuffle_chunk_size": 1, "shuffle": shuffle, "batch_size": 4} | part
    batches = check_every_state(wide, 3, {"preprocess_threads": 1}, **arguments)
    assert len(set(map(str, batches))) == len(batches)


def test_a_new_process_goes_on_with_the_same_bytes(pack):
    script = """
        import hashlib, json, sys
        from iterators import ImageRecordIter
        arguments, state, epochs = json.loads(sys.argv[1])
        with ImageRecordIter(**arguments) as provider:
            provider.load_state_dict(state)
            for _ in range(epochs):
                for batch in provider:
                    whole = batch.data[0].tobytes() + batch.label[0].tobytes()
                    print(hashlib.sha256(whole + batch.index.tobytes()).hexdigest(), batch.pad)
    """
    arguments = {
        "path_imgrec": str(pack),
        "data_shape": [3, 8, 9],
        "batch_size": 4,
        "shuffle": True,
        "seed": 9,
        **AUGMENT,
    }
    with ImageRecordIter(**arguments) as provider:
        for _ in range(2):
            provider.next()
        message = json.dumps([arguments, provider.state_dict(), 2])
        rest = [*provider_batches(provider), *provider]
    wanted = []
    for batch in rest:
        whole = batch.data[0].tobytes() + batch.label[0].tobytes() + batch.index.tobytes()
        wanted.append(f"{hashlib.sha256(whole).hexdigest()} {batch.pad}")
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), message],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert child.stderr == ""
    assert child.stdout.splitlines() == wanted


def provider_batches(provider):
    """What is left of the epoch, through MXNet's protocol."""
    while provider.iter_next():
        yield provider.current


def test_what_was_prefetched_does_not_count(pack):
    with provider_of(pack, prefetch_buffer=6, batch_size=2) as provider:
        fresh = saved(provider)
        provider.next()
        assert provider._engine.pending == 6
        assert saved(provider)["done"] == 2
        provider.load_state_dict(fresh)
        assert provider.next().index.tolist() == [500, 501]


# -- other numbers of parts ------------------------------------------------------------------------


def delivered(batch):
    return batch.index[: batch.count].tolist()


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (3, 5), (5, 2), (2, 2), (4, 23)])
@pytest.mark.parametrize("kind", ["permuted", "blocks"])
def test_any_number_of_parts_goes_on(pack, wide, kind, before, after, even):
    arguments = {"even": even, "batch_size": 2}
    arguments |= {"shuffle": True} if kind == "permuted" else {"shuffle_chunk_size": 1}
    path = pack if kind == "permuted" else wide
    most = COUNT // (2 * before)
    for steps in {0, 1, most // 2, most - 1, most}:
        seen, states = [], []
        for part in range(before):
            with provider_of(path, num_parts=before, part_index=part, **arguments) as provider:
                provider.load_state_dict(saved(provider) | {"epoch": 2})
                for _ in range(steps):
                    seen += delivered(provider.next())
                states.append(saved(provider))
        assert all(state == states[0] for state in states)
        lengths = []
        for part in range(after):
            with provider_of(path, num_parts=after, part_index=part, **arguments) as provider:
                provider.load_state_dict(states[-1])
                batches = [delivered(batch) for batch in provider]
                lengths.append(len(batches))
                seen += [sample for batch in batches for sample in batch]
                assert len(list(provider)) == len(provider)  # and the next epoch is a whole one
                assert provider.epoch == 3
        everything = list(range(500, 500 + COUNT))
        if even:
            assert set(seen) == set(everything)
            assert len(seen) < COUNT + after
            assert len(set(lengths)) == 1
        else:
            assert sorted(seen) == everything


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (3, 2)])
def test_any_number_of_parts_draws_the_same_weighted_epoch(pack, before, after):
    """Every occurrence of a record has its own crop and colours, whoever delivers it."""

    def rendered(batch):
        images = [image.tobytes() for image in batch.data[0][: batch.count]]
        return list(zip(delivered(batch), images, strict=True))

    arguments = {"weights": {0: 1, 1: 0, 2: 0, 3: 1.5}, "batch_size": 2}
    with provider_of(pack, **arguments) as provider:
        expected = [pair for batch in provider for pair in rendered(batch)]
    assert len({number for number, _ in expected}) < len(expected) == len(set(expected)) == COUNT
    for steps in range(4):
        seen = []
        for part in range(before):
            with provider_of(pack, num_parts=before, part_index=part, **arguments) as provider:
                for _ in range(steps):
                    seen += rendered(provider.next())
                state = saved(provider)
        for part in range(after):
            with provider_of(pack, num_parts=after, part_index=part, **arguments) as provider:
                provider.load_state_dict(state)
                seen += [pair for batch in provider for pair in rendered(batch)]
        assert sorted(seen) == sorted(expected)


@pytest.mark.timeout(600)  # hundreds of providers, which take long on a busy machine
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    count=st.integers(1, 12),
    num_parts=st.integers(1, 14),
    batch_size=st.integers(1, 5),
    order=st.sampled_from([{}, {"shuffle": True}, {"shuffle_chunk_size": 1}, {"indexed": True}]),
    round_batch=st.booleans(),
)
def test_even_parts_have_the_same_number_of_batches(
    tmp_path, count, num_parts, batch_size, order, round_batch
):
    path = write(tmp_path / f"{count}.rec", count)
    order = dict(order)
    if order.pop("indexed", False):
        order["path_imgidx"] = path.with_suffix(".idx")
    lengths, seen = set(), set()
    for part in range(num_parts):
        with provider_of(
            path, num_parts=num_parts, part_index=part, even=True, batch_size=batch_size,
            round_batch=round_batch, preprocess_threads=1, **order,
        ) as provider:  # fmt: skip
            batches = list(provider)
            assert len(batches) == len(provider)
            lengths.add(len(batches))
            seen.update(sample for batch in batches for sample in delivered(batch))
            if batches:
                next(iter(provider))  # of the next epoch
                state = saved(provider)
        with provider_of(
            path, num_parts=num_parts, part_index=part, even=True, batch_size=batch_size,
            round_batch=round_batch, preprocess_threads=1, **order,
        ) as provider:  # fmt: skip
            provider.load_state_dict(state)
            lengths.add(len(list(provider)) + 1 if state["done"] else len(list(provider)))
    assert len(lengths) == 1
    assert seen == set(range(500, 500 + count))


def test_a_part_without_a_rest_joins_the_next_epoch_after_an_empty_one(pack):
    with provider_of(pack, shuffle=True, batch_size=2, num_parts=11) as provider:
        provider.next()
        state = saved(provider)
    assert state["done"] == 22
    with provider_of(pack, shuffle=True, batch_size=2, num_parts=11, part_index=5) as provider:
        provider.load_state_dict(state)
        assert saved(provider) == state
        assert [len(list(provider)), len(list(provider)), len(list(provider))] == [0, 1, 1]
        assert provider.epoch == 2


def test_a_part_without_samples_counts_epochs_all_the_same(pack):
    index = pack.with_suffix(".idx")
    with provider_of(pack, path_imgidx=index, num_parts=22, part_index=21) as provider:
        for epoch in range(3):
            provider.reset()
            assert list(provider) == []
            assert provider.epoch == epoch
        provider.load_state_dict(saved(provider))
        assert list(provider) == []


# -- reset and load --------------------------------------------------------------------------------


def test_loading_in_the_middle_moves_back_and_forth(pack):
    with provider_of(pack, shuffle=True) as provider:
        batches, states = run_with_states(provider, 2)
        for place in (7, 2, 9, 0, 5, 4):
            provider.load_state_dict(states[place])
            assert content(provider.next()) == batches[place]
            provider.load_state_dict(states[place])
            assert content(next(iter(provider))) == batches[place]


def test_reset_after_loading(pack):
    with provider_of(pack, shuffle=True) as provider:
        batches, states = run_with_states(provider, 3)
        provider.load_state_dict(states[2])
        provider.reset()  # in the middle of epoch 0: the next one begins
        assert provider.epoch == 1
        assert content(provider.next()) == batches[5]
        provider.load_state_dict(states[5])  # the end of epoch 0 is the start of epoch 1 ...
        provider.reset()  # ... where reset() does nothing
        assert run(provider, 2) == batches[5:]


def test_the_state_at_the_end_of_an_epoch_is_the_start_of_the_next(pack):
    with provider_of(pack) as provider:
        list(provider)
        state = saved(provider)
        assert (state["epoch"], state["done"]) == (1, 0)
        assert provider.epoch == 0
        with pytest.raises(StopIteration):
            provider.next()
        assert saved(provider) == state
        provider.reset()
        assert saved(provider) == state


def test_a_loop_that_was_left_is_resumed_where_it_was_left(pack):
    with provider_of(pack, shuffle=True) as provider:
        batches, _ = run_with_states(provider, 1)
    with provider_of(pack, shuffle=True) as provider:
        for _batch in provider:
            break
        provider.load_state_dict(saved(provider))
        assert run(provider, 1) == batches[1:]


# -- states that do not belong ---------------------------------------------------------------------


def lists(tmp_path, factor):
    path = tmp_path / f"{factor}.lst"
    path.write_text("".join(f"{500 + i}\t{factor * i}\tx.png\n" for i in range(COUNT)))
    return path


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("seed", {"seed": 4}),
        ("seed_aug", {"seed_aug": 4}),
        ("batch_size", {"batch_size": 6}),
        ("round_batch", {"round_batch": False}),
        ("dtype", {"dtype": "uint8"}),
        ("label_width", {"label_width": 2}),
        ("order", {"shuffle": False}),
        ("order", {"shuffle": False, "weights": {0: 1, 1: 1, 2: 1, 3: 1}}),
        ("order", {"shuffle_chunk_size": 1}),
        ("data_shape", {"data_shape": (3, 9, 8)}),
        ("rand_mirror", {"rand_mirror": False}),
        ("resize", {"resize": 30}),
        ("mean_r", {"mean_r": 1}),
        ("inter_method", {"inter_method": 2}),
        ("rotate_list", {"rotate_list": "3,4"}),
    ],
)
def test_a_state_of_other_settings_is_refused_by_name(pack, name, changed):
    arguments = {"shuffle": True}
    with provider_of(pack, **arguments) as one, provider_of(pack, **(arguments | changed)) as other:
        before = one.next().index.tolist()
        for first, second in ((one, other), (other, one)):
            if second is one:
                state = saved(other)
                with pytest.raises(ValueError, match=rf"state was saved with {name}=.*has {name}="):
                    one.load_state_dict(state)
            else:
                with pytest.raises(ValueError, match=rf"state was saved with {name}=.*has {name}="):
                    other.load_state_dict(saved(one))
        assert one.next().index.tolist() != before  # a refused state leaves the position alone
        assert saved(one)["done"] == 10


def test_a_state_of_other_labels_weights_means_or_blocks_is_refused(pack, wide, tmp_path):
    mean = [tmp_path / "0.bin", tmp_path / "1.bin"]
    from iterators.images.augment.mean_image import write_mean_image

    for i in range(2):
        write_mean_image(mean[i], np.full((3, 8, 9), i))
    pairs = [
        (
            pack,
            "path_imglist",
            {"path_imglist": lists(tmp_path, 1)},
            {"path_imglist": lists(tmp_path, 2)},
        ),
        (pack, "path_imglist", {"path_imglist": lists(tmp_path, 1)}, {}),
        (pack, "mean_img", {"mean_img": mean[0]}, {"mean_img": mean[1]}),
        (pack, "mean_img", {}, {"mean_img": mean[1]}),
        (pack, "order", {"weights": np.ones(COUNT)}, {"weights": np.arange(COUNT)}),
        (wide, "order", {"shuffle_chunk_size": 2}, {"shuffle_chunk_size": 3}),
        (
            wide,
            "order",
            {"shuffle_chunk_size": 2},
            {"shuffle_chunk_size": 2, "shuffle_chunk_seed": 1},
        ),
    ]
    for path, name, first, second in pairs:
        with provider_of(path, **first) as one, provider_of(path, **second) as other:
            with pytest.raises(ValueError, match=f"saved with {name}="):
                other.load_state_dict(saved(one))


def test_two_block_sizes_that_give_as_many_blocks_are_told_apart(tmp_path):
    path = tmp_path / "uneven.rec"
    with recordio.RecordWriter(path) as writer:
        for rows in (700, 300, 300, 700):  # about 1.9, 0.8, 0.8 and 1.9 MiB
            image = cv2.imencode(".bmp", np.zeros((rows, 900, 3), np.uint8))[1].tobytes()
            writer.write(recordio.pack(recordio.IRHeader(0, 0, rows, 0), image))
    sizes = {}
    for chunk in range(1, 6):
        with provider_of(path, shuffle_chunk_size=chunk, batch_size=1) as provider:
            edges = provider._plan.order.whole.edges
            sizes.setdefault(len(edges), {})[edges.tobytes()] = saved(provider)
    (alike,) = [states for states in sizes.values() if len(states) > 1]
    assert len({state["settings"]["order"] for state in alike.values()}) == len(alike)


def test_a_state_of_another_file_or_part_is_refused(pack, tmp_path):
    other = write(tmp_path / "other.rec", COUNT, first_id=501)
    shorter = write(tmp_path / "shorter.rec", COUNT - 1)
    for path in (other, shorter):
        with provider_of(pack) as one, provider_of(path) as two:
            with pytest.raises(
                ValueError, match=r"file=23 records, check \w+, this provider has file="
            ):
                two.load_state_dict(saved(one))
    with provider_of(pack, num_parts=2) as one, provider_of(pack, num_parts=2, part_index=1) as two:
        with pytest.raises(ValueError, match="order=records 0 to"):
            two.load_state_dict(saved(one))


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: {},
        lambda state: state | {"version": 99},
        lambda state: {k: v for k, v in state.items() if k != "settings"},
        lambda state: {k: v for k, v in state.items() if k != "epoch"},
        lambda state: {k: v for k, v in state.items() if k != "done"},
        lambda state: state | {"settings": []},
        lambda state: state | {"epoch": -1},
        lambda state: state | {"epoch": 1 << 32},
        lambda state: state | {"done": -5},
        lambda state: state | {"done": "x"},
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(pack, damage):
    with provider_of(pack) as provider:
        provider.next()
        state = saved(provider)
        with pytest.raises(ValueError):
            provider.load_state_dict(damage(state))
        assert saved(provider) == state
        assert provider.next().index[0] == 505


def test_a_state_with_more_done_than_there_is_ends_the_epoch(pack):
    with provider_of(pack) as provider:
        provider.load_state_dict(saved(provider) | {"done": 10**15})
        assert list(provider) == []
        assert len(list(provider)) == 5


def test_spellings_of_the_same_settings_are_one(pack):
    strings = {"seed": "3", "round_batch": "False", "batch_size": "5", "data_shape": "(3, 8, 9)"}
    with provider_of(pack, round_batch=False) as one, provider_of(pack, **strings) as other:
        one.next()
        other.load_state_dict(saved(one))
        assert other.next().index[0] == 505


def test_the_state_is_small_for_any_recipe(pack):
    everything = {
        "rotate_list": tuple(range(64)), "max_shear_ratio": 0.123456789,
        "max_aspect_ratio": 0.123456789, "contrast": 0.3, "saturation": 0.3, "pca_noise": 0.1,
        "random_h": 36, "random_s": 50, "random_l": 50, "mean_r": 123.456, "mean_g": 1, "mean_b": 2,
        "std_r": 3, "std_g": 4, "std_b": 5, "scale": 0.0039215686274509803, "pad": 4,
    }  # fmt: skip
    with provider_of(pack, **everything, weights=np.ones(COUNT)) as provider:
        saved(provider)
