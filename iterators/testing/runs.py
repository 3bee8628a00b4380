"""Checks of providers and data sets: epochs, resets, states, indices, and use by threads."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np

from ..core.batch import DataBatch, DataDesc
from ..providers.abstract import AbstractDataProvider
from .checks import require
from .comparing import assert_same, copies, same


def maker(kind: Callable[..., Any], **defaults: Any) -> Callable[..., Any]:
    """Give a provider of record files other defaults, and its file by position.

    Parameters
    ----------
    kind : callable
        `ImageRecordIter`, or another that has the keyword `path_imgrec`.
    **defaults : object
        Keyword arguments, small ones for tests.

    Returns
    -------
    callable
        ``make(path, **more)``, where `more` goes before `defaults`.

    Examples
    --------
    >>> from iterators import ImageRecordIter
    >>> make = maker(ImageRecordIter, data_shape=(3, 8, 8), batch_size=4)
    >>> make("missing.rec", batch_size=2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    FileNotFoundError: ...
    """

    def make(path: Any, **more: Any) -> Any:
        return kind(path_imgrec=path, **(defaults | more))

    return make


def check_provider(
    make: Callable[..., Any],
    *,
    variants: Iterable[Mapping[str, Any]] = (),
    resets: bool = True,
    states: bool = True,
) -> None:
    """Check a provider: the descriptions of its batches, its epochs, resets and states.

    Parameters
    ----------
    make : callable
        ``make()`` gives a new provider every time, and all of them give the same batches.
    variants : iterable of mapping
        Keyword arguments of `make` that change nothing about the batches, such as
        ``{"preprocess_threads": 4}``.
    resets : bool
        Whether an epoch that was left early is followed by the same as one that ran to its end;
        False for ``last_batch_handle="roll_over"``, and where an epoch is not one of the data.
    states : bool
        Whether it has a state; False for a provider that has none.

    Raises
    ------
    AssertionError
        If batches are not as `provide_data` and `provide_label` say; if ``len`` is not their
        number; if a kept batch changes later; if an epoch that was left, reset or run to its end
        is not followed by the next one; if two providers of `make` differ; or if `check_states`
        finds something.

    Examples
    --------
    >>> from iterators import ArrayDataProvider
    >>> def make(**more):
    ...     return ArrayDataProvider(np.arange(11), batch_size=4, shuffle=True, **more)
    >>> check_provider(make, variants=[{"prefetch_buffer": 1}, {"prefetch_buffer": 3}])
    """
    with make() as provider:
        kept = list(provider)
        epochs = [copies(kept)]
        require(kept, "the first epoch has no batch")
        for number, batch in enumerate(kept):
            _check_batch(provider, batch, f"batch {number}")
        _check_length(provider, len(kept))
        require(next(provider, None) is None, "there is a batch behind the last one")
        begun = getattr(provider, "epoch", None)
        epochs += [copies(provider) for _ in range(4)]
        if begun is not None:
            require(provider.epoch > begun, f"the epoch is still {begun} after four more")
        assert_same(copies(kept), epochs[0])
    provider.close()  # once more
    assert_same(copies(kept), epochs[0])
    for arguments in ({}, *variants):
        with make(**arguments) as provider:
            provider.reset()  # nothing was asked for
            assert_same(copies(provider), epochs[0])
            if not resets:
                assert_same(copies(provider), epochs[1])
                continue
            next(iter(provider))
            assert_same(copies(provider), epochs[2])
            next(iter(provider))
            provider.reset()
            provider.reset()  # nothing was asked for
            assert_same(copies(provider), epochs[4])
    if states:
        check_states(make)


def _check_batch(provider: Any, batch: DataBatch, position: str) -> None:
    """Check a batch against the descriptions of its provider."""
    owner = provider if batch.bucket_key is None else batch  # one of many shapes describes itself
    described = [*owner.provide_data, *(owner.provide_label or ())]
    arrays = [*batch.data, *(batch.label or ())]
    require(
        len(batch.data) == len(owner.provide_data) and len(arrays) == len(described),
        f"{position} has {len(arrays)} arrays, {len(described)} are described",
    )
    for desc, array in zip(described, arrays, strict=True):
        name, shape = desc[0], tuple(desc[1])
        require(
            tuple(array.shape) == shape,
            f"{position}: {name} has shape {tuple(array.shape)}, not {shape}",
        )
        dtype = str(array.dtype).removeprefix("torch.")
        expected_dtype = getattr(desc, "dtype", None)
        if expected_dtype is not None:
            require(
                dtype == str(np.dtype(expected_dtype)),
                f"{position}: {name} is {dtype}, not {expected_dtype}",
            )
        axis = DataDesc.get_batch_axis(getattr(desc, "layout", None))
        require(
            shape[axis] == provider.batch_size,
            f"{position}: {name} has {shape[axis]} samples, not {provider.batch_size}",
        )
    require(
        0 <= (batch.pad or 0) <= provider.batch_size,
        f"{position}: {batch.pad} of {provider.batch_size} samples are padding",
    )
    if batch.index is not None:
        require(
            len(batch.index) == provider.batch_size,
            f"{position}: {len(batch.index)} ids for {provider.batch_size} samples",
        )


def _check_length(provider: Any, batches: int) -> None:
    try:
        length = len(provider)
    except TypeError:
        return
    require(length == batches, f"len() is {length}, but the epoch has {batches} batches")


def _content(it: Any) -> Iterator[Any]:
    """Loop over an epoch: each item, a batch being copied, with the number of its epoch."""
    for item in it:
        kept = copies([item])[0] if isinstance(item, DataBatch) else item
        yield getattr(it, "epoch", None), kept


def check_states(
    make: Callable[[], Any],
    loop: Callable[[Any], Iterable[Any]] = _content,
    *,
    resets: bool = True,
    empty_loops: bool = False,
) -> None:
    """Check that an object continues from its states as if it had not stopped.

    States are saved before the first item of an epoch, after a reset, after every item, and after
    the last one when its loop has ended.  Each is loaded by a new object and by one in use.

    Parameters
    ----------
    make : callable
        ``make()`` gives a new object every time, with `state_dict` and `load_state_dict`; `close`
        is called where there is one.  States of providers go through JSON, others through pickle.
    loop : callable
        ``loop(it)`` gives the items of one epoch, one by one, as things that `same` compares; by
        default what a loop over the object gives, with the number of the epoch.
    resets : bool
        Whether `reset` is called before each epoch, where there is such a method.
    empty_loops : bool
        Whether a loop without an item may come first, where the object cannot tell that its epoch
        is over.

    Raises
    ------
    AssertionError
        If another item comes.

    Examples
    --------
    >>> from iterators import ArrayDataProvider
    >>> check_states(lambda: ArrayDataProvider(np.arange(7), batch_size=3, shuffle=True))
    """
    with _closing(make()) as it:
        epochs, states = _run_with_states(it, loop, resets)
    with _closing(make()) as it:
        assert_same([list(loop(it)) for _ in epochs], epochs)
    with _closing(make()) as used:
        for name, epoch, done, state in states:
            position = f"from a state of epoch {epoch}, {name}, {done} items"
            expected = [epochs[epoch][done:], *epochs[epoch + 1 : epoch + 3]]
            flat = [item for part in expected for item in part]
            with _closing(make()) as fresh:
                for it in (fresh, used):
                    it.load_state_dict(state)
                    actual: list[list[Any]] = []
                    while len(actual) < 5 and (not actual or sum(map(len, actual)) < len(flat)):
                        actual.append(list(loop(it)))
                    if name != "behind" and not empty_loops:
                        first = expected[0] or expected[1]
                        require(same(actual[0], first), f"{position}: another first epoch")
                    items = [item for part in actual for item in part][: len(flat)]
                    require(same(items, flat), f"{position}: other items")
            next(iter(loop(used)), None)  # the next state finds it in the middle


def _closing(it: Any) -> Any:
    return closing(it) if hasattr(it, "close") else _Open(it)


class _Open:
    """A ``with`` for what cannot be closed."""

    def __init__(self, inside: Any) -> None:
        self.inside = inside

    def __enter__(self) -> Any:
        return self.inside

    def __exit__(self, *exception: object) -> None:
        pass


def _saved(it: Any) -> Any:
    """Take a state through the form in which it is stored."""
    state = it.state_dict()
    if isinstance(it, AbstractDataProvider):
        return json.loads(json.dumps(state))
    return pickle.loads(pickle.dumps(state))


def _run_with_states(
    it: Any, loop: Callable[[Any], Iterable[Any]], resets: bool
) -> tuple[list[Any], list[Any]]:
    """Run four epochs, and save at all positions of the first two.

    A state comes with the name of its position, its epoch and the number of items before it.
    """
    epochs: list[list[Any]] = []
    states = []
    for epoch in range(4):
        items: list[Any] = []
        if epoch < 2:
            states.append(("before", epoch, 0, _saved(it)))
            if resets and hasattr(it, "reset"):
                it.reset()
                states.append(("reset", epoch, 0, _saved(it)))
        for item in loop(it):
            items.append(item)
            if epoch < 2:
                states.append(("behind", epoch, len(items), _saved(it)))
        epochs.append(items)
        if epoch < 2:
            states.append(("end", epoch, len(items), _saved(it)))
    return epochs, states


def check_dataset(
    dataset: Any,
    *,
    several: bool = True,
    negative: bool = True,
    drawn: bool = False,
    threads: int = 4,
) -> None:
    """Check a data set: the number of its examples, and that every kind of index finds them.

    Parameters
    ----------
    dataset : object
        With ``__len__`` and ``__getitem__``; with at least one example.
    several : bool
        Whether slices, lists, arrays and masks are indices of it too, as for `DatasetMixin`; False
        for a data set that takes integers only, as those of torch do.
    negative : bool
        Whether it counts negative integers from its end; otherwise it must refuse them.
    drawn : bool
        Whether its examples are drawn anew every time, so that they cannot be compared.
    threads : int
        How many read it at the same time; 0 for a data set that must not be shared.

    Raises
    ------
    AssertionError
        If an index gives another example than it should, or one beyond the end gives any.

    Examples
    --------
    >>> from iterators import TransformDataset
    >>> check_dataset(TransformDataset(np.arange(5), float))
    """
    count = len(dataset)
    require(count > 0, "the data set is empty")

    def compare(actual: Any, expected: Any, index: str) -> None:
        actual, expected = list(actual), list(expected)
        if drawn:
            require(len(actual) == len(expected), f"{index}: {len(actual)} examples")
        else:
            require(same(actual, expected), f"{index}: other examples")

    examples = [dataset[number] for number in range(count)]
    compare((dataset[number] for number in range(count)), examples, "integers, a second time")
    compare((dataset[np.int64(number)] for number in range(count)), examples, "NumPy's integers")
    if negative:
        compare((dataset[number - count] for number in range(count)), examples, "negative integers")
    compare(_iterated(dataset, count + 1), examples, "iteration")
    for number in (count, -count - 1 if negative else -1):
        require(_refuses(dataset, number, IndexError), f"there is an example {number} of {count}")
    if several:
        _check_indices(dataset, examples, compare, -1 if negative else count - 1)
    if threads:
        with ThreadPoolExecutor(threads) as pool:
            rows = [*range(count)] * threads
            compare(pool.map(dataset.__getitem__, rows), examples * threads, "threads")


def _iterated(dataset: Any, most: int) -> list[Any]:
    return [example for _, example in zip(range(most), dataset, strict=False)]


def _check_indices(
    dataset: Any, examples: list[Any], compare: Callable[..., None], last: int
) -> None:
    """Check the indices that ask for several examples."""
    count = len(examples)
    bounds = (None, 0, 1, -1, count // 2, count + 2, -count - 2)
    for index in (slice(a, b, c) for a in bounds for b in bounds for c in (None, 2, -1)):
        compare(dataset[index], examples[index], str(index))
    rows = [count - 1, 0, last, 0]
    mask = [number % 2 == 0 for number in range(count)]
    for asked, places, kind in ((rows, rows, int), ([], [], int), (mask, range(0, count, 2), bool)):
        for form in (asked, np.array(asked, kind)):
            compare(dataset[form], [examples[row] for row in places], repr(form))
    if hasattr(dataset, "__getitems__"):
        compare(dataset.__getitems__(rows), [examples[row] for row in rows], f"getitems {rows}")
    require(_refuses(dataset, [*mask, True], ValueError), "a mask that is too long is taken")
    require(_refuses(dataset, 0.0, TypeError), "a float is taken as an index")


def _refuses(dataset: Any, index: Any, kind: type[Exception]) -> bool:
    try:
        dataset[index]
    except kind:
        return True
    return False
