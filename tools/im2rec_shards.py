"""`im2rec --shards`, `--part` and `--ray`: shards, the workers that make them, and messages."""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from recordio.extras import need

from .console import Interruption, progress_bar, say
from .im2rec_options import encode_options, note_on_bits
from .pack_shards import ShardNote, ShardTask, finish, part_of, shard_tasks


def pack_in_shards(
    settings: argparse.Namespace, paths: Sequence[str], interruption: Interruption
) -> int:
    """Make the shards of lists that are this worker's, and the manifest after the last of all.

    The exit code is 1 if images were skipped, also in shards that had been made before.
    """
    options = encode_options(settings)
    skipped = 0
    with interruption.deferring():
        for path in paths:
            tasks = shard_tasks(
                path, settings.root, options, settings.shards, checksums=settings.checksums
            )
            notes = _shard_notes(tasks, settings, interruption)
            skipped += _say_made(tasks, notes)
    return int(bool(skipped) and not settings.skip_errors)


def _shard_notes(
    tasks: Sequence[ShardTask], settings: argparse.Namespace, interruption: Interruption
) -> list[ShardNote]:
    """Return the notes of this worker's shards, made where they are not whole."""
    start = time.perf_counter()
    whole, left = divided(tasks, settings.part)
    if whole:
        say("im2rec", f"{len(whole)} of {len(whole) + len(left)} shards are whole already")
    total, name = sum(task.span.images for task in left), tasks[0].manifest
    with progress_bar(total, name, "images", sys.stderr.isatty()) as advance:
        new_notes = make_shards(
            left,
            threads=settings.num_thread,
            strict=settings.strict,
            ray=settings.ray,
            progress=advance,
            cancelled=interruption.requested,
        )
    shards = [note.shard for note in new_notes if note.shard is not None]
    seconds = time.perf_counter() - start
    images = sum(shard.records for shard in shards)
    say(
        "im2rec",
        f"packed {images} images, {sum(shard.bytes for shard in shards) / 1e6:.1f} MB, into "
        f"{len(shards)} of {len(tasks)} shards in {seconds:.1f} s "
        f"({images / max(seconds, 1e-9):.0f} images/s)",
    )
    return whole + new_notes


def divided(
    tasks: Sequence[ShardTask], part: tuple[int, int] | None
) -> tuple[list[ShardNote], list[ShardTask]]:
    """Return the notes of a worker's shards that are whole, and those that it has to make."""
    pairs = [(task, task.done()) for task in part_of(tasks, *(part or (1, 1)))]
    whole = [note for _, note in pairs if note is not None]
    return whole, [task for task, note in pairs if note is None]


def make_shards(
    tasks: Sequence[ShardTask],
    *,
    threads: int | None = None,
    strict: bool = False,
    ray: str | None = None,
    progress: Callable[[int], object] = lambda count: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[ShardNote]:
    """Make shards one after the other, or with an address (which may be empty) on a Ray cluster."""
    if ray is not None and tasks:
        return list(_made_on_ray(tasks, threads or 1, strict, ray, progress, cancelled))
    return [
        task.make(threads=threads, strict=strict, progress=progress, cancelled=cancelled)
        for task in tasks
    ]


def _made_on_ray(
    tasks: Sequence[ShardTask],
    threads: int,
    strict: bool,
    address: str,
    advance: Callable[[int], object],
    cancelled: Callable[[], bool],
) -> Iterator[ShardNote]:
    """Make shards as tasks of a cluster; yield notes in the order in which they are ready."""
    need("ray", "--ray")
    from recordio.ray import run_tasks

    for number, note in run_tasks(
        functools.partial(ShardTask.make, threads=threads, strict=strict),
        tasks,
        address=address or None,
        cpus=threads,
        cancelled=cancelled,
    ):
        advance(tasks[number].span.images)
        yield note


def _say_made(tasks: Sequence[ShardTask], notes: Sequence[ShardNote]) -> int:
    """Write the manifest if all is there, say what was skipped, and return how many images."""
    skipped = sum(note.skipped for note in notes)
    if skipped:
        say("im2rec", f"{skipped} skipped in all; see the .skipped.txt files of the shards")
    for line in note_on_bits(sum(note.reduced_to_8_bits for note in notes)):
        say("im2rec", line)
    manifest = finish(tasks, notes)
    if manifest is None:
        say("im2rec", f"{tasks[0].manifest} is written when the other shards are whole")
    else:
        say(
            "im2rec",
            f"wrote {manifest.path}: {manifest.records} images in {len(manifest.shards)} shards",
        )
    return skipped
