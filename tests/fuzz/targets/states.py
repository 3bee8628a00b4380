"""States of providers and iterators: what is loaded, what is refused, what that leaves behind."""

from __future__ import annotations

import functools
import json
import random
from typing import Any

import numpy as np

from .mutate import EDGES, change_json
from .target import Target, scratch


@functools.cache
def makers() -> dict[str, Any]:
    """One of each kind of object that has a state; made once, since loading starts it again."""
    from iterators import (
        ArrayDataProvider,
        CSVIter,
        ImageRecordIter,
        MultithreadIterator,
        PrefetchingIter,
        ResizeIter,
        SerialIterator,
    )
    from iterators.loops import SeededOrderSampler, ShuffleOrderSampler
    from iterators.views import ShuffleSampler
    from recordio import IRHeader, RecordWriter, pack

    rows = np.arange(22, dtype=np.float32).reshape(11, 2)

    def arrays(**more: Any) -> ArrayDataProvider:
        return ArrayDataProvider(rows, np.arange(11), batch_size=3, **more)

    csv = scratch("rows.csv", b"1,2\n" * 7)
    path = scratch("raw.rec")
    with RecordWriter(path) as writer:
        for i in range(5):
            writer.write(pack(IRHeader(0, i, i, 0), b"P5\n8 8\n255\n" + bytes([i] * 64)))
    generator = np.random.default_rng(0)
    return {
        "arrays": arrays(),
        "shuffled": arrays(shuffle=True, seed=5),
        "csv": CSVIter(data_csv=csv, data_shape=(2,), batch_size=2),
        "images": ImageRecordIter(
            path_imgrec=path, data_shape=(1, 8, 8), batch_size=2, shuffle=True, preprocess_threads=1
        ),
        "resized": ResizeIter(arrays(), 5),
        "prefetched": PrefetchingIter([arrays(shuffle=True)]),
        "serial": SerialIterator(list(range(7)), 3),
        "ordered": SerialIterator(list(range(7)), 3, order_sampler=ShuffleOrderSampler(generator)),
        "seeded": SerialIterator(list(range(7)), 3, order_sampler=SeededOrderSampler(3)),
        "threads": MultithreadIterator(list(range(7)), 3, n_threads=1),
        "sampler": ShuffleSampler(batch_size=3),
    }


def plain(state: Any) -> Any:
    """A state as JSON gives it back."""
    return json.loads(json.dumps(state, default=lambda array: array.tolist()))


@functools.cache
def first_states() -> dict[str, str]:
    """The states in which all begin."""
    return {name: json.dumps(plain(made.state_dict())) for name, made in makers().items()}


def check_states(data: bytes) -> None:
    """A state is taken, and is the same when it is asked for; or refused, and nothing happened."""
    try:
        asked = json.loads(data)
        name, state = asked["of"], asked["state"]
        made = makers()[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    if not isinstance(state, dict) or _near_the_end(state):
        return
    made.load_state_dict(json.loads(first_states()[name]))
    before = plain(made.state_dict())
    try:
        made.load_state_dict(state)
    except (ValueError, TypeError):
        assert plain(made.state_dict()) == before, "a state that was refused has been taken in part"
        return
    taken = plain(made.state_dict())
    if name != "sampler":
        for _, _ in zip(range(2), made, strict=False):
            pass
    made.load_state_dict(taken)
    assert plain(made.state_dict()) == taken


def _near_the_end(state: Any) -> bool:
    """Whether this is one of the last of 2**32 epochs, behind which there is none."""
    if isinstance(state, dict):
        return any(map(_near_the_end, [state.get("epoch"), state.get("inside"), state.get("done")]))
    if isinstance(state, list):
        return any(map(_near_the_end, state))
    return isinstance(state, int) and 2**32 - 2**20 <= state < 2**32


def change_states(data: bytes, draw: random.Random) -> bytes:
    """A value of the state."""
    try:
        asked = json.loads(data)
        state = asked["state"]
        state = state if isinstance(state, dict) else {}
        numbers = [name for name in state if isinstance(state[name], int)]
        if numbers and draw.random() < 0.4:
            state[draw.choice(numbers)] = draw.choice(
                [*EDGES, -1, 3, 9, 12, 10**30, "2", 2.0, None]
            )
        else:
            asked["state"] = change_json(state, draw)
        return json.dumps(asked).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return data


STATES = Target("states", check_states, change_states, errors=())
