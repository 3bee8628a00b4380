"""`report()`: where the time of an epoch went, in the threads of a provider and in the loop.

`EpochTimes` belongs to one provider and counts; an `EpochReport` has what it found, and the
`Capacity` from which rates follow.  `advice` names other settings; nothing here decodes an image.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recordio.ordered import default_threads

#: What time is spent on: first by threads, then by whoever takes a batch.  ``NAME_seconds`` are
#: counters of engines and of `EpochTimes`.
PHASES = {
    "stalled": "threads that wait for the disk, or for a processor that others use",
    "read": "finding records",
    "decode": "decoding images",
    "resample": "resizing and cropping",
    "augment": "warps and changes of pixels",
    "normalise": "mean, scale and element type",
    "fields": "what samples have beside their images",
    "collate": "orders, labels and the arrays of a batch",
    "python": "functions in Python",
    "upload": "handing batches to their device",
}


@dataclass(frozen=True)
class Capacity:
    """Limits of a rate: seconds of one image in threads and in the loop, threads, processors.

    >>> slow = Capacity(threads=1, working=0.004, on_processor=0.004, loop=0.001, processors=8)
    >>> round(slow.rate), round(replace(slow, threads=8).rate)
    (250, 1000)
    """

    threads: int
    #: Seconds of a thread, and those of them on a processor.
    working: float
    on_processor: float
    #: Seconds between two images that the loop does not wait: its own work, and that on batches.
    loop: float
    #: Seconds of processors outside the threads.
    loop_on_processor: float = 0.0
    processors: int = 1
    #: Of both, seconds in functions in Python.
    python: float = 0.0
    loop_python: float = 0.0

    @property
    def rate(self) -> float:
        """Images a second: that of the slowest of threads, loop and processors."""
        needs = (
            self.working / self.threads,
            self.loop,
            (self.on_processor + self.loop_on_processor) / self.processors,
        )
        return 1 / max(*needs, 1e-9)

    def scaled(self, ratio: float) -> Capacity:
        """Return the capacity when the work of threads takes `ratio` times as long."""
        return replace(self, working=self.working * ratio, on_processor=self.on_processor * ratio)


@dataclass(frozen=True)
class EpochReport:
    """Time of an epoch by what it was spent on: of the last one, or of the running one so far.

    Attributes
    ----------
    images : int
        Samples that were delivered, without padding.
    seconds, rate : float
        From the first request to the last batch, and images a second.
    waited_for_data : float
        Seconds that the loop waited for a batch.
    waited_for_consumer : float
        Seconds that a thread had nothing to do, on average: everything ahead was ready.
    shares : dict of str to float
        Of all time that went into samples, by `PHASES`; they add up to 1, or are empty.
    microseconds : dict of str to float
        The same for one image.
    threads : int
        Threads that may work.
    threads_busy : float
        Threads that worked at a time, on average.
    advice : str
        The change that promises most, or why there is none; empty if it was not asked for.
    keywords : dict
        Keywords of the provider that follow it; empty for commands, and where there is none.
    predicted_rate : float
        Images a second when it is followed.
    """

    images: int = 0
    seconds: float = 0.0
    rate: float = 0.0
    waited_for_data: float = 0.0
    waited_for_consumer: float = 0.0
    shares: Mapping[str, float] = field(default_factory=dict)
    microseconds: Mapping[str, float] = field(default_factory=dict)
    threads: int = 0
    threads_busy: float = 0.0
    advice: str = "no batch was delivered yet"
    keywords: Mapping[str, Any] = field(default_factory=dict)
    predicted_rate: float = 0.0
    #: None without threads of its own, or without an image.
    capacity: Capacity | None = field(default=None, repr=False)

    def __str__(self) -> str:
        if not self.images:
            return f"0 images: {self.advice}"
        waits = (self.waited_for_data, self.waited_for_consumer)
        data, consumer = (min(wait / max(self.seconds, 1e-9), 1) for wait in waits)
        lines = [
            f"{self.images} images in {self.seconds:.2f} s: {self.rate:.0f} a second",
            f"the loop waited for data {data:.0%} of the time",
        ]
        if self.threads:
            lines[1] += f", threads for the loop {consumer:.0%}"
            lines.append(f"threads busy: {self.threads_busy:.1f} of {self.threads}")
        lines += [
            f"  {name:<10}{self.shares[name]:>6.1%}{self.microseconds[name]:>10.1f} us an image"
            for name in self.shares
        ]
        if self.advice:
            predicted = f" ({self.predicted_rate:.0f} a second)"
            changes = abs(self.predicted_rate - self.rate) > 0.005 * self.rate
            lines.append(f"advice: {self.advice}{predicted if changes else ''}")
        return "\n".join(lines)

    def prometheus(self, prefix: str = "recordio", **labels: str) -> str:
        """Return the numbers in the text format of Prometheus.

        Parameters
        ----------
        prefix : str
            What the names of the metrics begin with.
        **labels : str
            Labels of every value, such as ``loader="train"``.

        Examples
        --------
        >>> print(EpochReport(images=5).prometheus(loader="train").splitlines()[2])
        recordio_epoch_images{loader="train"} 5
        """
        metrics: list[tuple[str, str, list[tuple[dict[str, str], float]]]] = [
            ("epoch_images", "Samples that were delivered", [({}, self.images)]),
            ("epoch_seconds", "Seconds to the last batch", [({}, self.seconds)]),
            ("images_per_second", "Rate of the epoch", [({}, self.rate)]),
            (
                "wait_seconds",
                "Seconds of waiting",
                [({"for": "data"}, self.waited_for_data)]
                + [({"for": "consumer"}, self.waited_for_consumer)],
            ),
            (
                "image_microseconds",
                "Time of one image by phase",
                [({"phase": name}, value) for name, value in self.microseconds.items()],
            ),
            ("threads", "Threads that may work", [({}, self.threads)]),
            ("threads_busy", "Threads that worked at a time", [({}, self.threads_busy)]),
            ("predicted_images_per_second", "Rate by the advice", [({}, self.predicted_rate)]),
        ]
        lines = []
        for name, text, values in metrics:
            lines += [f"# HELP {prefix}_{name} {text}", f"# TYPE {prefix}_{name} gauge"]
            for own, value in values:
                pairs = [f'{key}="{_escaped(text)}"' for key, text in {**labels, **own}.items()]
                shown = "{" + ",".join(pairs) + "}" if pairs else ""
                lines.append(f"{prefix}_{name}{shown} {value:.10g}")
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Escape the value of a label."""
    return str(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class EpochTimes:
    """Counts what a loop waits for and what handing over costs, epoch by epoch.

    `begin` and `finish` are told the counters of whoever makes the batches: ``NAME_seconds`` of
    `PHASES`, ``images`` made, ``working_seconds`` and ``processor_seconds`` of ``threads``.
    Iterators of one provider that run at the same time are counted together.
    """

    def __init__(self) -> None:
        #: Since the provider was made.
        self.spent: dict[str, float] = {}
        #: Seconds of loops in calls of `next`, since the provider was made.
        self.passed = 0.0
        self._images, self._waited = 0, 0.0
        self._begun: float | None = None
        self._ended = self._asked = 0.0
        self._inside = 0.0  # what `spent` was when the loop asked
        self._first: tuple[dict[str, float], dict[str, float]] | None = None
        self._last: tuple[dict[str, float], dict[str, float]] | None = None
        self._processors = (0.0, 0.0)

    def begin(self, counters: Mapping[str, float]) -> None:
        """Begin an epoch."""
        self._images, self._waited, self._begun = 0, 0.0, None
        self._first, self._last = (dict(counters), dict(self.spent)), None

    @property
    def begun(self) -> bool:
        """Return True if an epoch has begun."""
        return self._first is not None

    def ask(self) -> None:
        """Note that the loop asks for a batch."""
        self._asked = time.perf_counter()
        self._inside = self._total()
        if self._begun is None:
            self._begun = self._asked
            self._processors = (time.process_time(), 0.0)

    def deliver(self, images: int, waited: float) -> None:
        """Count a batch for which the loop `waited`; what else it took was putting it together."""
        own = self._count(images, waited) - waited - (self._total() - self._inside)
        self.add("collate", max(own, 0.0))

    def make(self, images: int, inside: float = 0.0) -> None:
        """Count a batch that the loop made itself, by Python but for the seconds `inside`."""
        elapsed = self._count(images)
        self.add("python", max(elapsed - inside, 0.0))

    def _count(self, images: int, waited: float | None = None) -> float:
        """Count a batch, and return the seconds since it was asked for."""
        self._ended = time.perf_counter()
        elapsed = self._ended - self._asked
        self._images += images
        self._waited += elapsed if waited is None else waited
        self.passed += elapsed
        self._processors = (self._processors[0], time.process_time())
        return elapsed

    def finish(self, counters: Mapping[str, float]) -> None:
        """End the epoch: what threads do from here on belongs to the next one."""
        self._last = dict(counters), dict(self.spent)

    def add(self, phase: str, seconds: float) -> None:
        """Count time of a phase."""
        name = f"{phase}_seconds"
        self.spent[name] = self.spent.get(name, 0.0) + seconds

    def timing(self, phase: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose time is counted as that of a phase."""

        def timed(*arguments: Any, **keywords: Any) -> Any:
            begin = time.perf_counter()
            try:
                return call(*arguments, **keywords)
            finally:
                self.add(phase, time.perf_counter() - begin)

        return timed

    def _total(self) -> float:
        return sum(self.spent.values())

    def report(self, counters: Mapping[str, float]) -> EpochReport:
        """Return what is known of the epoch, without advice."""
        if not self._images or self._begun is None or self._first is None:
            return EpochReport(threads=int(counters.get("threads", 0)))
        pairs = zip(self._first, self._last or (counters, self.spent), strict=True)
        work, own = (
            {name: max(value - first.get(name, 0.0), 0.0) for name, value in last.items()}
            for first, last in pairs
        )

        seconds = max(self._ended - self._begun, 1e-9)
        # Threads are ahead of the loop: their time is divided by what they have made.
        made = work.get("images") or float(self._images)
        phases = {
            name: work.get(key, 0.0) / made + own.get(key, 0.0) / self._images
            for name in PHASES
            if (key := f"{name}_seconds") in work or key in own
        }
        on_processor = work.get("processor_seconds", 0.0)
        if on_processor:
            # Whoever is stalled does not know it: all phases of threads seem to take longer.
            measured = sum(work.get(f"{name}_seconds", 0.0) for name in PHASES)
            factor = min(on_processor / max(measured, 1e-9), 1)
            for name in phases:
                phases[name] -= (1 - factor) * work.get(f"{name}_seconds", 0.0) / made
            stalled = max(work["working_seconds"] - on_processor, 0.0) / made
            phases = {"stalled": stalled, **phases}
        total = sum(phases.values())
        threads = int(counters.get("threads", 0))
        working = work.get("working_seconds", 0.0)
        # Work ahead may go on behind the last batch.
        busy = min(working / seconds * min(self._images / made, 1), threads)
        capacity = None
        if threads and working:
            on_processor = on_processor or working
            others = self._processors[1] - self._processors[0] - on_processor
            capacity = Capacity(
                threads=threads,
                working=working / made,
                on_processor=on_processor / made,
                loop=max(seconds - self._waited, 0.0) / self._images,
                python=work.get("python_seconds", 0.0) / made,
                loop_python=own.get("python_seconds", 0.0) / self._images,
                loop_on_processor=max(others, 0.0) / self._images,
                processors=default_threads(),
            )
        rate = self._images / seconds
        return EpochReport(
            images=self._images,
            seconds=seconds,
            rate=rate,
            waited_for_data=self._waited,
            waited_for_consumer=seconds * (1 - busy / threads) if threads else 0.0,
            shares={name: value / total for name, value in phases.items()} if total else {},
            microseconds={name: 1e6 * value for name, value in phases.items()} if total else {},
            threads=threads,
            threads_busy=busy,
            advice="",
            predicted_rate=rate,
            capacity=capacity,
        )
