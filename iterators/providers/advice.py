"""Advice for a report: the change of settings that promises most, and the rate that it will have.

Threads follow from the `Capacity` of a report.  What decoding and writing would cost with other
keywords, or in another pack, is tried on some images of the provider, in the calling thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from recordio.errors import RecordIOError
from recordio.formats.image_header import read_header
from recordio.formats.jpeg import encoder
from recordio.formats.jpeg.entry_store import EntryStore
from recordio.formats.jpeg.resize import decode_resized
from recordio.formats.transcode.transcode import optimize_jpeg
from recordio.header import pack

from ..images.augment.recipe import Recipe
from ..images.augment.rules import EXPOSURE_RULE
from ..images.cache.image_cache import MemoryImageCache
from ..images.render import Renderer
from ..images.render_cache import CachedImages, cached_bytes
from ..images.sections import Section, Sections
from ..images.view_plans import PackPlan
from .device_images import decoded_there
from .image_caching import available_memory, cached_recipe, estimated_bytes
from .report import Capacity, Report

if TYPE_CHECKING:
    from .image_engines import ImageEngines

__all__ = ["advised"]

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
TRIAL_SECONDS, TRIAL_IMAGES, ROUNDS = 0.04, (6, 32), 3
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
    report: Report,
    engines: ImageEngines | None = None,
    epoch: int = 0,
    python: str = "",
    threads: str = "preprocess_threads",
) -> Report:
    """Return the report with advice.

    `python` names the functions in Python that it counts, and `threads` the keyword for their
    number.
    """
    now = report.capacity
    nothing = replace(report, advice="nothing was found that is faster")
    if now is None:
        return nothing
    if engines is not None and engines.job.change is not None:
        change = engines.job.change(engines.plans[0].plan, engines.label_shape)
        steps = getattr(change, "steps", ())
        python = ", ".join(getattr(step, "__name__", type(step).__name__) for step in steps)
    changes = [*_more_threads(now, threads), *_without_python(now, python)]
    if engines is not None:
        changes += _tried(report, now, engines, epoch)
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
        found = replace(now, threads=count)
        if found.rate >= 0.98 * most:
            yield Change(f"{name}={count} in place of {now.threads}", found, {name: count})
            return


def _fewer_threads(report: Report, now: Capacity, waits: bool) -> int:
    """Find a number of threads below the present one that is enough; 0 if there is none."""
    most = now.processors if waits else now.threads
    enough = int(np.ceil(SPARE * report.rate * now.working))
    fewer = max(min(most, now.threads if waits else enough), 1)
    return fewer if fewer < now.threads else 0


def _without_python(now: Capacity, names: str) -> Iterator[Change]:
    """Leave out functions in Python, if enough is left to tell what that costs."""
    left = max(now.working - now.python, 0)
    if now.python + now.loop_python == 0 or left < LEAST_LEFT * now.working:
        return
    found = replace(
        now.scaled(left / now.working),
        loop=max(now.loop - now.loop_python, 0),
        loop_on_processor=max(now.loop_on_processor - now.loop_python, 0),
        python=0.0,
        loop_python=0.0,
    )
    yield Change(f"keywords of the recipe in place of {names or 'functions'} in Python", found)


def _share(report: Report, *names: str) -> float:
    """Return the share of phases in all work, without that of waiting."""
    work = max(1 - report.shares.get("stalled", 0), 1e-9)
    return sum(report.shares.get(name, 0) for name in names) / work


# -- changes that are tried -----------------------------------------------------------------------


class _Trial:
    """Some records of a provider, and what it costs to make samples of them."""

    def __init__(self, engines: ImageEngines, epoch: int, seconds: float) -> None:
        self.engines, self.epoch = engines, epoch
        self.source = engines.source.bytes_source()
        count = len(engines.source)
        wanted = int(np.clip(TRIAL_SECONDS / max(seconds, 1e-9), *TRIAL_IMAGES))
        self.numbers = np.unique(np.linspace(0, count - 1, wanted).astype(np.int64)).tolist()
        found = [self.source.image(number) for number in self.numbers]
        self.headers = [header for header, _ in found]
        self.contents = [bytes(content) for _, content in found]
        self.records = self.packed(self.contents)
        self.plan = engines.plans[0]

    def packed(self, contents: Sequence[bytes]) -> list[bytes]:
        """Return records of other images, with the labels of these."""
        return [pack(*pair) for pair in zip(self.headers, contents, strict=True)]

    def changed(self, recipe: dict[str, Any], **keywords: Any) -> PackPlan:
        """Return the plan with other keywords of the recipe and of its own."""
        return self.plan.changed(replace(self.plan.recipe, **recipe), **keywords)

    def renderer(self, plan: PackPlan, **keywords: Any) -> Renderer:
        return Renderer(plan.plan, strict=self.engines.job.options.strict, **keywords)

    def ratio(self, other: Renderer, records: Sequence[bytes] | None = None) -> float:
        """Return the time that samples take there, by the time here."""
        here = self.renderer(self.plan, entries=self.engines.entries)
        pairs = [(here, self.records), (other, records or self.records)]
        for pair in pairs:  # entry points and caches are filled, and memory is there
            self._seconds(*pair, self.epoch)
        rounds = [[self._seconds(*pair, self.epoch + 1) for pair in pairs] for _ in range(ROUNDS)]
        before, after = np.min(rounds, axis=0)
        return float(after / max(before, 1e-9))

    def _seconds(self, renderer: Renderer, records: Sequence[bytes], epoch: int) -> float:
        begin = time.thread_time()
        for number, record in zip(self.numbers, records, strict=True):
            renderer.sample(record, epoch, number)
        return time.thread_time() - begin


def _tried(report: Report, now: Capacity, engines: ImageEngines, epoch: int) -> Iterator[Change]:
    """Try what suits the provider, the cheapest first."""
    options = engines.job.options
    if len(engines.plans) > 1 or engines.job.change is not None or decoded_there(options):
        return
    recipe = engines.plans[0].recipe
    # What a thread does besides is not tried: samples with fields, mosaics, images in a cache.
    if type(recipe) is not Recipe or engines.fields or any(engines.caches):
        return
    try:
        trial = _Trial(engines, epoch, now.on_processor)
        tries = (_scaled, _entries, _as_uint8, _cached, _optimized, _resized)
        found = [attempt(trial, recipe, report, now) for attempt in tries]
    except RecordIOError:
        return  # a record that the trial cannot use tells nothing
    yield from chain.from_iterable(found)


Found = Sequence[Change]
Attempt = Callable[[_Trial, Any, Report, Capacity], Found]


def _scaled(trial: _Trial, recipe: Any, report: Report, now: Capacity) -> Found:
    """Decode at the scale that is needed."""
    if recipe.scaled_decode or _share(report, "decode") < LEAST_SHARE:
        return ()
    keywords = {"scaled_decode": True}
    ratio = trial.ratio(trial.renderer(trial.changed(keywords)))
    return [Change("scaled_decode=True", now.scaled(ratio), keywords)]


def _entries(trial: _Trial, recipe: Any, report: Report, now: Capacity) -> Found:
    """Begin within images from the second epoch on."""
    options = trial.engines.job.options
    if not hasattr(options, "entry_points") or trial.engines.entries is not None:
        return ()
    if _share(report, "decode") < LEAST_SHARE:
        return ()
    store = EntryStore(len(trial.engines.source))
    ratio = trial.ratio(trial.renderer(trial.plan, entries=store))
    text = "entry_points=True, from the second epoch on"
    return [Change(text, now.scaled(ratio), {"entry_points": True})]


def _as_uint8(trial: _Trial, recipe: Any, report: Report, now: Capacity) -> Found:
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
    ratio = trial.ratio(trial.renderer(trial.changed(plain, dtype="uint8")))
    found = now.scaled(ratio)
    if there:
        upload = report.microseconds.get("upload", 0) / 1e6 * 0.75
        found = replace(found, loop=max(found.loop - upload, 0))
        return [Change('normalise_on="device"', found, {"normalise_on": "device"})]
    keywords = {name: plain[name] for name in recipe.changed() if name in plain}
    text = 'dtype="uint8", and mean and scale in the model or by normalise_on="device"'
    return [Change(text, found, {"dtype": "uint8", **keywords})]


def _cached(trial: _Trial, recipe: Any, report: Report, now: Capacity) -> Found:
    """Keep decoded images, if they fit."""
    options, source = trial.engines.job.options, trial.source
    if recipe.reducing_gap is not None or trial.plan.keywords["dtype"] == "uint16":
        return ()
    own = cached_recipe(recipe, False)
    needed = estimated_bytes(source, range(len(trial.engines.source)), own)
    if not 0 < needed <= available_memory() // 2 // options.num_parts:
        return ()
    sizes = [read_header(content).size for content in trial.contents]
    room = sum(cached_bytes(own, *size) for size in sizes)
    cache = CachedImages(MemoryImageCache(source.count, own.channels, 2 * room + (1 << 20)), own)
    plan = trial.changed({"scaled_decode": own.scaled_decode})
    crew = Sections((Section(plan.plan, cache),)).crew(source, options.strict)
    ratio = trial.ratio(crew.renderers[0])
    text = f'cache="ram", {needed / 1e9:.1f} GB, from the second epoch on'
    return [Change(text, now.scaled(ratio), {"cache": "ram"})]


def _optimized(trial: _Trial, recipe: Any, report: Report, now: Capacity) -> Found:
    """Rewrite the pack without loss."""
    if not _is_plain(trial) or _share(report, "decode") < LEAST_SHARE:
        return ()
    records = trial.packed([optimize_jpeg(content) for content in trial.contents])
    ratio = trial.ratio(trial.renderer(trial.plan, entries=trial.engines.entries), records)
    return [Change("recordio optimize PACK PREFIX, once", now.scaled(ratio))]


def _resized(trial: _Trial, recipe: Any, report: Report, now: Capacity) -> Found:
    """Pack the images no larger than they are needed."""
    if not _is_plain(trial) or not encoder.available() or _share(report, "decode") < LEAST_SHARE:
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
    ratio = trial.ratio(trial.renderer(trial.plan), trial.packed(made))
    text = f"im2rec --resize {side}: the images are larger than they are needed"
    return [Change(text, now.scaled(ratio))]


def _is_plain(trial: _Trial) -> bool:
    """Return True for JPEG images in record files on this machine, which can be written again."""
    source = trial.engines.source
    packs = [file for member in source.members for file in getattr(member, "files", [])]
    local = packs and not source.is_remote and all(file.container is None for file in packs)
    return bool(local) and all(content[:2] == b"\xff\xd8" for content in trial.contents)
