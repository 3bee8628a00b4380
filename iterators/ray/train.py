"""The batches of one worker of Ray Train: its part of the data and its position in checkpoints."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import ray.train

from recordio.bytes.storage import AtomicOutput

#: The file of a checkpoint that holds the state.
STATE_FILE = "iterator.json"


class Resumable(Protocol):
    """An object with a state that can be saved and loaded."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state: Any) -> None:
        """Go on where a state says."""


Provider = TypeVar("Provider", bound=Resumable)


def train_iterator(
    make: Callable[..., Provider],
    *,
    checkpoint: ray.train.Checkpoint | None = None,
    **arguments: Any,
) -> Provider:
    """Make the provider of a worker of Ray Train, for its part of the data, from a checkpoint on.

    Parameters
    ----------
    make : callable
        A class of providers, such as `ImageRecordIter`, or a function: called with `arguments` and
        with ``num_parts``, ``part_index`` and ``even=True``, so that all workers have as many
        batches.
    checkpoint : ray.train.Checkpoint, optional
        Where `save_state` left a state; by default that of `ray.train.get_checkpoint`, which is the
        last one of a run that is resumed.
    **arguments
        Keywords of the provider; pass ``shuffle=True`` to be able to resume with another number of
        workers.

    Returns
    -------
    provider
        The result of `make`, at the saved position or, without one, at the beginning.

    Raises
    ------
    TypeError
        If the part is among the arguments.
    FileNotFoundError
        If `checkpoint` is given and holds no state.
    ValueError
        If the state belongs to other data or other settings.
    RuntimeError
        Outside of a worker of Ray Train.

    Notes
    -----
    With ``shuffle=True`` part k of n has every n-th position of one global order, and the state
    counts positions: a run that was saved with any number of workers goes on with any other,
    without an image missing or repeated, at the same `batch_size` of a worker.  The state of any
    worker serves all, as long as they have taken as many steps; save that of rank 0.

    Examples
    --------
    In the function that every worker runs::

        images = train_iterator(ImageRecordIter, path_imgrec="train.shards.json", shuffle=True,
                                data_shape=(3, 224, 224), batch_size=64)
        for epoch in range(images.epoch, epochs):
            for batch in images:
                ...
                if time_to_save:
                    save_state(images, folder)  # where the model is saved
                    ray.train.report(metrics, checkpoint=Checkpoint.from_directory(folder))
    """
    names = sorted({"num_parts", "part_index", "even"} & set(arguments))
    if names:
        raise TypeError(f"{', '.join(names)} follows from the train context: drop it")
    context = ray.train.get_context()
    provider = make(
        num_parts=context.get_world_size(),
        part_index=context.get_world_rank(),
        even=True,
        **arguments,
    )
    source = ray.train.get_checkpoint() if checkpoint is None else checkpoint
    if source is not None:
        with source.as_directory() as folder:
            if checkpoint is not None or os.path.exists(os.path.join(folder, STATE_FILE)):
                load_state(provider, folder)
    return provider


def save_state(provider: Resumable, folder: str | os.PathLike[str]) -> None:
    """Write the state of a provider into the folder of a checkpoint.

    Parameters
    ----------
    provider : provider
    folder : str or os.PathLike
        It must exist; the file is ``iterator.json``.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    with AtomicOutput(os.path.join(folder, STATE_FILE)) as output:
        output.write(json.dumps(provider.state_dict()).encode())


def load_state(provider: Resumable, folder: str | os.PathLike[str]) -> None:
    """Go on where a provider was when its state was saved.

    Parameters
    ----------
    provider : provider
        It may be for another part of the data, out of any number.
    folder : str or os.PathLike
        That of the checkpoint.

    Raises
    ------
    FileNotFoundError
        If there is no state.
    ValueError
        If it belongs to other data or other settings, or is damaged.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from iterators import NDArrayIter
    >>> folder = tempfile.mkdtemp()
    >>> rows = NDArrayIter(np.arange(6.0), batch_size=2)
    >>> _ = rows.next()
    >>> save_state(rows, folder)
    >>> other = NDArrayIter(np.arange(6.0), batch_size=2)
    >>> load_state(other, folder)
    >>> other.next().data[0].tolist()
    [2.0, 3.0]
    """
    path = os.path.join(folder, STATE_FILE)
    with open(path, "rb") as file:
        text = file.read()
    try:
        state = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path}: it is not a state of a provider: {error}") from None
    provider.load_state_dict(state)
