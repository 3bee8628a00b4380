"""Measure two ways of doing a job side by side, and report the ratio.

It never reports a time on its own where there is something to compare with: machines differ and
shared ones are noisy, ratios taken in alternation are what can be compared.  It knows no job.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

__all__ = [
    "Case",
    "Rate",
    "Result",
    "Stopwatch",
    "absolute",
    "best_of",
    "case",
    "cases",
    "compare",
    "markdown",
    "markdown_table",
    "number",
    "reported",
    "table",
    "timed",
]


@dataclass
class Result:
    """One line of the table.

    `ours` and `reference` are rates in `unit` (or costs, where less is better); `value` is what
    the bar is about: their median paired ratio, or `ours` itself where nothing is compared.
    `cpu_ratio` compares work per second of processor time, threads and child processes included:
    it says little about waiting, but stays meaningful while other programs use the machine.
    """

    job: str
    unit: str
    ours: float
    reference: float | None
    value: float
    bar: float
    at_least: bool = True
    detail: str = ""
    cpu_ratio: float | None = None
    rounds: list[float] = field(default_factory=list)

    @property
    def met(self) -> bool:
        """True if the bar is reached."""
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def as_dict(self) -> dict:
        """For JSON."""
        return {**asdict(self), "met": self.met}


@dataclass(frozen=True)
class Case:
    """A named function that takes the material and yields results."""

    name: str
    function: Callable

    @property
    def summary(self) -> str:
        """First line of the function's docstring."""
        return (self.function.__doc__ or "").partition("\n")[0]


_CASES: dict[str, Case] = {}


def case(function):
    """Register a case under the name of its function."""
    _CASES[function.__name__] = Case(function.__name__, function)
    return function


def cases() -> dict[str, Case]:
    """Every registered case by name, in the order of registration."""
    return dict(_CASES)


@dataclass(frozen=True)
class Rate:
    """Items per second of elapsed time and per second of processor time."""

    elapsed: float
    processor: float


def processor_seconds() -> float:
    """Processor time of this process, its threads and the child processes that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Stopwatch:
    """Elapsed and processor time since it was made."""

    def __init__(self):
        self._processor, self._start = processor_seconds(), time.perf_counter()

    def seconds(self) -> tuple[float, float]:
        """Elapsed and processor seconds."""
        return time.perf_counter() - self._start, processor_seconds() - self._processor

    def rate(self, items: int) -> Rate:
        """Items per second since the start."""
        elapsed, processor = self.seconds()
        return Rate(items / elapsed, items / processor)


def timed(work: Callable[[], int]) -> Rate:
    """Rate of one call that returns how many items it did."""
    watch = Stopwatch()
    return watch.rate(work())


def reported(measure: Callable[[], float], times: int = 1) -> Rate:
    """Rate that a single-threaded measurement reports itself, times a number of threads."""
    watch = Stopwatch()
    rate = measure()
    elapsed, processor = watch.seconds()
    return Rate(times * rate, rate * elapsed / processor)


def settle() -> None:
    """Wait until this process is idle: what prepares ahead would still work beside the other."""
    busy = True
    while busy:
        before = processor_seconds()
        time.sleep(0.05)
        busy = processor_seconds() - before > 0.01


def compare(
    job: str,
    unit: str,
    ours: Callable[[], Rate],
    reference: Callable[[], Rate],
    *,
    bar: float,
    rounds: int,
    detail: str = "",
) -> Result:
    """Median of the paired ratios of two rates, measured in alternation after a warm-up.

    Every round measures both, one directly after the other, and the order changes from round to
    round, so that a slow minute of the machine or a rising clock hits both alike.  Neither begins
    before the work that the other has begun is done.
    """

    def measured(side):
        settle()
        return side()

    ours(), reference()
    pairs = []
    for number in range(rounds):
        if number % 2:
            second = measured(reference)
            first = measured(ours)
        else:
            first = measured(ours)
            second = measured(reference)
        pairs.append((first, second))
    ratios = [first.elapsed / second.elapsed for first, second in pairs]
    return Result(
        job,
        unit,
        ours=statistics.median(first.elapsed for first, _ in pairs),
        reference=statistics.median(second.elapsed for _, second in pairs),
        value=statistics.median(ratios),
        bar=bar,
        detail=detail,
        cpu_ratio=statistics.median(first.processor / second.processor for first, second in pairs),
        rounds=ratios,
    )


def best_of(rounds: int, measure: Callable[[], float]) -> list[float]:
    """All measurements of an absolute rate after a warm-up, best first."""
    measure()
    return sorted((measure() for _ in range(rounds)), reverse=True)


def absolute(
    job: str, unit: str, values: list[float], *, bar: float, at_least: bool = True, detail: str = ""
) -> Result:
    """A result without a reference: the median against a bar in the same unit."""
    median = statistics.median(values)
    return Result(job, unit, median, None, median, bar, at_least, detail, values)


def number(value: float | None) -> str:
    """Three significant digits or more, with k and M."""
    if value is None:
        return "-"
    if abs(value) >= 1e6:
        return f"{value / 1e6:.2f} M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:.1f} k"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


NUMERIC = {1, 2, 4, 5, 6}  # columns of the table that are aligned to the right


def cells(results: list[Result]) -> list[tuple[str, ...]]:
    """The results as rows of text, the names of the columns first."""
    rows = [("Job", "ours", "reference", "unit", "ratio", "bar", "per CPU s", "")]
    for result in results:
        compared = result.reference is not None
        sign = ">=" if result.at_least else "<="
        verdict = "met" if result.met else "MISSED"
        rows.append(
            (
                result.job,
                number(result.ours),
                number(result.reference),
                result.unit,
                f"{result.value:.2f}" if compared else "-",
                f"{sign} {result.bar:.2f}" if compared else f"{sign} {number(result.bar)}",
                f"{result.cpu_ratio:.2f}" if compared else "-",
                f"{verdict}; {result.detail}" if result.detail else verdict,
            )
        )
    return rows


def table(results: list[Result]) -> str:
    """The results as aligned text columns."""
    rows = cells(results)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            text.rjust(width) if column in NUMERIC else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def markdown(results: list[Result]) -> str:
    """The results as a table for a page."""
    return markdown_table(*cells(results), numeric=NUMERIC)


def markdown_table(head, *rows, numeric=None) -> str:
    """A table of text; without `numeric` all columns but the first are aligned to the right."""
    columns = range(len(head))
    right = set(columns) - {0} if numeric is None else numeric
    rule = ["---:" if column in right else "---" for column in columns]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))
