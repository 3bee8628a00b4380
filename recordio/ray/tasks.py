"""A function of many things, each a task of a Ray cluster, with results as they are ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from ..errors import RecordIOError

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Repetitions of a task whose worker or node died; an exception that a task raises is final.
RETRIES = 10
#: Seconds between two calls of `cancelled`.
PATIENCE = 0.2
#: Tasks that are handed to Ray for each processor of the cluster; the others wait here.
TASKS_PER_CPU = 4


def run_tasks(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    address: str | None = None,
    cpus: int = 1,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, Result]]:
    """Apply a function to things on a cluster.

    Parameters
    ----------
    work : callable
        Importable on all nodes.  It must give the same result, and leave the same files, when it is
        repeated: that is what happens if its worker dies.
    items : sequence
        Things that are each small enough to be sent to a worker.
    address : str, optional
        Of the cluster, as for `ray.init`; by default the one that is named by ``RAY_ADDRESS`` or
        runs on this machine, else one that is started for this process.  Not used if this process
        is connected already.
    cpus : int
        Processors that a task occupies.
    cancelled : callable, optional
        Asked now and then; when true, tasks are cancelled and `KeyboardInterrupt` is raised.

    Yields
    ------
    number : int
        Position among the items.
    result

    Raises
    ------
    RecordIOError
        If a task was repeated so often that there must be something wrong with it.
    Exception
        What a task raises.
    """
    if not ray.is_initialized():
        ray.init(address, log_to_driver=False)

    def task(item: Item) -> Result:
        return work(item)

    remote = ray.remote(num_cpus=cpus, max_retries=RETRIES)(task)
    running: dict[Any, int] = {}
    waiting = iter(enumerate(items))
    done = 0
    try:
        while done < len(items):
            most = max(int(TASKS_PER_CPU * ray.cluster_resources().get("CPU", 1) / cpus), 1)
            while len(running) < most and (following := next(waiting, None)) is not None:
                number, item = following
                running[remote.remote(item)] = number
            ready, _ = ray.wait(list(running), num_returns=1, timeout=PATIENCE)
            if cancelled():
                raise KeyboardInterrupt
            for reference in ready:
                yield running.pop(reference), _result(reference)
                done += 1
    finally:
        for reference in running:
            ray.cancel(reference)


def _result(reference: Any) -> Any:
    try:
        return ray.get(reference)
    except RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from None
        raise
    except RayError as error:
        raise RecordIOError(f"a task of the Ray cluster could not be done: {error}") from error
