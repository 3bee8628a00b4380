"""Advice for a report: the most promising change of settings, and its expected rate.

Threads follow from the `Capacity` of a report.  What decoding and writing would cost with other
keywords, or in another pack, is tried on some images of the provider, in the calling thread.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recordio.errors import RecordIOError
from recordio.formats.image_header import read_header
from recordio.formats.jpeg import encoder, jpeg
from recordio.formats.jpeg.entry_store import EntryStore
from recordio.formats.jpeg.resize import decode_resized
from recordio.formats.transcode.transcode import optimize_jpeg
from recordio.frames.writer import RecordWriter
from recordio.header import pack

from ..core.order.cutting import pieces
from ..images.augment.recipe import Recipe
from ..images.augment.rules import EXPOSURE_RULE
from ..images.cache.image_cache import MemoryImageCache
from ..images.render import CachedImages
from ..images.sources.record_source import RecordSource
from ..images.stage import Stage
from ..images.view_plans import PackPlan
from ..images.workers import PlanGroup
from .device_images import decoded_there
from .image_caching import available_memory, cached_recipe, estimated_bytes
from .report import Capacity, EpochReport

if TYPE_CHECKING:
    from ..images.sources.source import Source
    from .image_engines import ImageEngines

#: A change is worth its name from this gain on; of changes nearly as good the cheapest is named.
LEAST_GAIN = 1.05
NEARLY = 0.9
#: A loop that waits less than this share of its time is not held up by the loader.
NO_WAIT = 0.05
#: Threads that are more than the loop can use, to be sure.
SPARE = 1.15
#: Phases below this share of the time are not worth a trial.
LEAST_SHARE = 0.1
#: Threads that work in Python for the rest of the time keep each other waiting, and without Python
#: nothing would be left to predict a rate from.
LEAST_LEFT = 0.1
#: Seconds of one round of a trial, images in it, and rounds, of which the fastest counts.
TRIAL_SECONDS, TRIAL_IMAGES, ROUNDS = 0.1, (8, 256), 2
#: Images of a batch there, and batches ahead: as in a loop, and more than a processor caches.
TRIAL_BATCH, TRIAL_AHEAD = 16, 4
#: Short side of a packed image by that of what is cut out of it.
PACKED_SIDE = 256 / 224
#: A source that is larger than it has to be by this factor is worth being packed again.
TOO_LARGE = 1.5


@dataclass(frozen=True)
class Change:
    """A change of settings, with the capacity that it leads to."""

    text: str
    capacity: Capacity
    keywords: dict[str, Any] = field(default_factory=dict)


def advised(
    report: EpochReport,
    engines: ImageEngines | None = None,
    epoch: int = 0,
    python: str = "",
    threads: str = "preprocess_threads",
) -> EpochReport:
    """Return the report with advice.

    `python` names the functions in Python that it counts, and `threads` the keyword for their
    number.
    """
    now = report.capacity
    nothing = replace(report, advice="nothing was found that is faster")
    if now is None:
        return nothing
    if engines is not None and engines.job.change is not None:
        steps = getattr(engines.job.change(engines.plans[0].plan, engines.label_shape), "steps", ())
        python = ", ".join(getattr(step, "__name__", type(step).__name__) for step in steps)
    changes = [*_more_threads(now, threads), *_without_python(now, python)]
    if engines is not None:
        changes += tried(report, now, engines, epoch, python)
    most = max((change.capacity.rate for change in changes), default=0.0)
    if most >= LEAST_GAIN * now.rate:
        best = next(change for change in changes if change.capacity.rate >= NEARLY * most)
        rate = report.rate * best.capacity.rate / now.rate
        return replace(report, advice=best.text, keywords=best.keywords, predicted_rate=rate)
    waits = report.waited_for_data > NO_WAIT * report.seconds
    if fewer := _fewer_threads(report, now, waits):
        text = f"{threads}={fewer}: as fast as {now.threads}, with less memory"
        return replace(report, advice=text, keywords={threads: fewer})
    if waits and now.python > (1 - LEAST_LEFT) * now.working:
        return replace(report, advice=f"threads are busy with {python or 'functions'} in Python")
    if waits:
        return nothing
    return replace(report, advice="none: the loop takes the time, and a faster loader waits for it")


def _more_threads(now: Capacity, name: str) -> Iterator[Change]:
    """Find the smallest number of threads that is as good as one for every processor."""
    if now.python > (1 - LEAST_LEFT) * now.working:
        return
    numbers = range(now.threads + 1, now.processors + 1)
    most = max((replace(now, threads=count).rate for count in numbers), default=0.0)
    for count in numbers:
        capacity = replace(now, threads=count)
        if capacity.rate >= 0.98 * most:
            yield Change(f"{name}={count} in place of {now.threads}", capacity, {name: count})
            return


def _fewer_threads(report: EpochReport, now: Capacity, waits: bool) -> int:
    """Find a number of threads below the present one that is enough; 0 if there is none."""
    most = now.processors if waits else now.threads
    enough = int(np.ceil(SPARE * report.rate * now.working))
    fewer = max(min(most, now.threads if waits else enough), 1)
    return fewer if fewer < now.threads else 0


def _without_python(now: Capacity, names: str) -> Iterator[Change]:
    """Leave out functions in Python, if enough is left to tell what that costs."""
    left = max(now.working - now.python, 0)
    if now.loop_python == 0 or left < LEAST_LEFT * now.working:
        return
    capacity = replace(
        now.scaled(left / now.working),
        loop=max(now.loop - now.loop_python, 0),
        loop_on_processor=max(now.loop_on_processor - now.loop_python, 0),
        python=0.0,
        loop_python=0.0,
    )
    yield Change(f"keywords of the recipe in place of {names or 'functions'} in Python", capacity)


def _share(report: EpochReport, *names: str) -> float:
    """Return the share of phases in all work, without that of waiting."""
    work = max(1 - report.shares.get("stalled", 0), 1e-9)
    return sum(report.shares.get(name, 0) for name in names) / work


# -- changes that are tried -----------------------------------------------------------------------


class _Trial:
    """Some records of a provider, in a pack of their own, and what samples of them cost."""

    def __init__(self, engines: ImageEngines, epoch: int, seconds: float, folder: str) -> None:
        self.engines, self.epoch, self._folder = engines, epoch, folder
        source, count = engines.source.bytes_source(), len(engines.source)
        num_images = int(np.clip(TRIAL_SECONDS / max(seconds, 1e-9), *TRIAL_IMAGES))
        numbers = np.unique(np.linspace(0, count - 1, num_images).astype(np.int64))
        images = [source.image(number) for number in numbers.tolist()]
        self.headers = [header for header, _ in images]
        self.contents = [bytes(content) for _, content in images]
        self.count = len(images)
        self.repeats = int(np.clip(TRIAL_SECONDS / max(seconds * self.count, 1e-9), 1, 20))
        self.source = self.packed(self.contents)
        self.plan = engines.plans[0]

    def packed(self, contents: Sequence[bytes]) -> Source:
        """Pack other images with the labels of these, and open them."""
        path = os.path.join(self._folder, f"{len(os.listdir(self._folder))}.rec")
        with RecordWriter(path) as writer:
            for pair in zip(self.headers, contents, strict=True):
                writer.write(pack(*pair))
        return RecordSource.open(path).bytes_source()

    def changed(self, recipe: dict[str, Any], **keywords: Any) -> PackPlan:
        """Return the plan with another recipe and other keywords."""
        return self.plan.changed(replace(self.plan.recipe, **recipe), **keywords)

    def seconds(self, *others: dict[str, Any]) -> list[float]:
        """Return seconds of a processor for one image, by each of several ways to make it."""
        with contextlib.ExitStack() as stack:
            stages = [self._stage(**other) for other in others]
            for stage in stages:
                stack.callback(stage.close)
                self._spent(stage, self.epoch, 1)  # fills entry points, caches and memory
            rounds = [
                [self._spent(stage, self.epoch + 1, self.repeats) for stage in stages]
                for _ in range(ROUNDS)
            ]
        return [float(seconds) for seconds in np.min(rounds, axis=0)]

    def _stage(
        self,
        plan: PackPlan | None = None,
        source: Source | None = None,
        cache: CachedImages | None = None,
        entries: EntryStore | None = None,
    ) -> Stage:
        return Stage(
            source or self.source,
            PlanGroup((plan or self.plan).plan, cache),
            batch_size=TRIAL_BATCH,
            threads=1,
            depth=TRIAL_AHEAD,
            strict=self.engines.job.options.strict,
            entries=entries,
        )

    def _spent(self, stage: Stage, epoch: int, repeats: int) -> float:
        before = stage.stats()["processor_seconds"]
        batches = product(range(repeats), list(pieces(np.arange(self.count), TRIAL_BATCH)))
        more: Any = True
        while more or stage.pending:
            while stage.pending < stage.depth and (more := next(batches, None)):
                at, rows = more
                stage.submit(rows, epoch + at)
            for _, error in stage.collect()[3] if stage.pending else ():
                raise error
        return (stage.stats()["processor_seconds"] - before) / repeats / self.count


def tried(
    report: EpochReport, now: Capacity, engines: ImageEngines, epoch: int, python: str
) -> Iterator[Change]:
    """Try what suits the provider, the cheapest first."""
    options = engines.job.options
    one_recipe = len(engines.plans) == 1 and not engines.plans[0].views
    # What a thread does besides is not tried: fields, boxes, images on servers or in a cache.
    more = engines.source.is_remote or engines.fields or any(engines.caches)
    if not one_recipe or decoded_there(options) or more:
        return
    recipe = engines.plans[0].recipe
    tries: tuple[Attempt, ...] = ()
    if engines.job.change is not None:
        tries = (partial(_plain, python),)
    elif type(recipe) is Recipe:
        tries = (_scaled, _entries, _as_uint8, _cached, _optimized, _resized)
    # A record that the trial cannot use tells nothing, and neither does a full disk.
    with (
        contextlib.suppress(RecordIOError, OSError),
        tempfile.TemporaryDirectory() as folder,
    ):
        trial = _Trial(engines, epoch, now.on_processor, folder)
        candidates = list(chain.from_iterable(one(trial, recipe, report) for one in tries))
        # Points that were noted belong to other numbers: they are noted again.
        own = {} if engines.entries is None else {"entries": EntryStore(trial.count)}
        before, *after = trial.seconds(own, *({**own, **one.how} for one in candidates))
        if engines.job.change is not None:  # what they cost has nothing to do with the stage
            before = now.on_processor
        for one, seconds in zip(candidates, after, strict=True):
            then = replace(now.scaled(seconds / max(before, 1e-9)), python=0.0)
            then = replace(then, loop=max(then.loop - one.spared, 0))
            yield Change(one.text, then, one.keywords)


class _Try(NamedTuple):
    """A change, and how a stage tries it; `spared` are seconds of the loop for one image."""

    text: str
    how: dict[str, Any]
    keywords: dict[str, Any] = {}
    spared: float = 0.0


Attempt = Callable[[_Trial, Any, EpochReport], Sequence[_Try]]


def _plain(python: str, trial: _Trial, recipe: Any, report: EpochReport) -> Sequence[_Try]:
    """Leave all to the stage that functions in Python do, for which its crop stands."""
    return [_Try(f"keywords of the recipe in place of {python} in Python", {})]


def _scaled(trial: _Trial, recipe: Any, report: EpochReport) -> Sequence[_Try]:
    """Decode at the scale that is needed."""
    if recipe.scaled_decode or _share(report, "decode") < LEAST_SHARE:
        return ()
    keywords = {"scaled_decode": True}
    return [_Try("scaled_decode=True", {"plan": trial.changed(keywords)}, keywords)]


def _entries(trial: _Trial, recipe: Any, report: EpochReport) -> Sequence[_Try]:
    """Begin within images from the second epoch on."""
    options = trial.engines.job.options
    if not hasattr(options, "entry_points") or trial.engines.entries is not None:
        return ()
    if not jpeg.available() or _share(report, "decode") < LEAST_SHARE:
        return ()
    how = {"entries": EntryStore(trial.count)}
    return [_Try("entry_points=True, from the second epoch on", how, {"entry_points": True})]


def _as_uint8(trial: _Trial, recipe: Any, report: EpochReport) -> Sequence[_Try]:
    """Leave pixels as they are, for a device to normalise them."""
    options = trial.engines.job.options
    if (
        not trial.plan.keywords["dtype"].startswith(("float", "bfloat"))
        or options.mean_img
        or _share(report, "normalise", "upload") < LEAST_SHARE
        or {*EXPOSURE_RULE.names.split(), "random_erasing"} & {*recipe.changed()}
    ):
        return ()
    there = getattr(trial.engines.job.placement.device, "type", None) == "cuda"
    names = [
        item.name
        for item in fields(recipe)
        if item.name.startswith(("mean_", "std_")) or item.name == "scale"
    ]
    plain = {item.name: item.default for item in fields(recipe) if item.name in names}
    how = {"plan": trial.changed(plain, dtype="uint8")}
    if there:  # a quarter of the bytes is uploaded
        spared = 0.75 * report.microseconds.get("upload", 0) / 1e6
        return [_Try('normalise_on="device"', how, {"normalise_on": "device"}, spared)]
    keywords = {name: plain[name] for name in recipe.changed() if name in plain}
    text = 'dtype="uint8", and mean and scale in the model or by normalise_on="device"'
    return [_Try(text, how, {"dtype": "uint8", **keywords})]


def _cached(trial: _Trial, recipe: Any, report: EpochReport) -> Sequence[_Try]:
    """Keep decoded images, if they fit."""
    options, source = trial.engines.job.options, trial.engines.source
    if recipe.reducing_gap is not None or trial.plan.keywords["dtype"] == "uint16":
        return ()
    own = cached_recipe(recipe, False)
    needed = estimated_bytes(source.bytes_source(), range(len(source)), own)
    if not 0 < needed <= available_memory() // 2 // options.num_parts:
        return ()
    room = 2 * estimated_bytes(trial.source, range(trial.count), own) + (1 << 20)
    cache = CachedImages(MemoryImageCache(trial.count, own.channels, room), own)
    how = {"plan": trial.changed({"scaled_decode": own.scaled_decode}), "cache": cache}
    text = f'cache="ram", {needed / 1e9:.1f} GB, from the second epoch on'
    return [_Try(text, how, {"cache": "ram"})]


def _optimized(trial: _Trial, recipe: Any, report: EpochReport) -> Sequence[_Try]:
    """Rewrite the pack without loss."""
    if not _is_plain(trial) or _share(report, "decode") < LEAST_SHARE:
        return ()
    how = {"source": trial.packed([optimize_jpeg(one) for one in trial.contents])}
    return [_Try("recordio optimize PACK PREFIX, once", how)]


def _resized(trial: _Trial, recipe: Any, report: EpochReport) -> Sequence[_Try]:
    """Pack the images no larger than they are needed."""
    if not _is_plain(trial) or _share(report, "decode") < LEAST_SHARE:
        return ()
    _, height, width = recipe.data_shape
    side = recipe.resize if recipe.resize > 0 else round(min(height, width) * PACKED_SIDE)
    sizes = [read_header(content).size for content in trial.contents]
    if np.mean([min(size) for size in sizes]) < TOO_LARGE * side:
        return ()
    smaller = [decode_resized(content, side, 3) for content in trial.contents]
    made = [
        content if pixels is None else encoder.encode(pixels)
        for pixels, content in zip(smaller, trial.contents, strict=True)
    ]
    text = f"im2rec --resize {side}: the images are larger than they are needed"
    return [_Try(text, {"source": trial.packed(made)})]


def _is_plain(trial: _Trial) -> bool:
    """Return True for JPEG images in record files on this machine, which can be written again."""
    if not encoder.available():
        return False
    source = trial.engines.source
    packs = [file for member in source.members for file in getattr(member, "files", [])]
    local = packs and not source.is_remote and all(file.container is None for file in packs)
    return bool(local) and all(content[:2] == b"\xff\xd8" for content in trial.contents)
