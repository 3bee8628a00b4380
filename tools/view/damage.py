"""Findings of `recordio check` about a pack, in the background, and for all records on request."""

from __future__ import annotations

from typing import NamedTuple

from recordio.frames.check import Problem, Report
from recordio.ordered import default_threads
from recordio.packs.check import check_pack

from .lines import Background
from .pack import ShownPack

MOST_SHOWN = 1000


class FoundProblem(NamedTuple):
    """Problem, and the position of the record that it is about, where there is one."""

    problem: Problem
    position: int | None


class Check(Background):
    """Check of one pack."""

    def __init__(self, pack: ShownPack) -> None:
        super().__init__()
        self.pack = pack
        self.stage = ""  # the work under way
        self.share = 0.0  # of the stage, 0 to 1
        self.decoded = False
        self.report: Report | None = None

    def start(self, decode: bool = False) -> None:
        """Begin, unless it is under way."""
        with self._lock:
            if self.running:
                return
            self.report, self.failed, self.share, self.decoded = None, "", 0.0, decode
            self.stage = "Reading the records"
            self._thread = None
        super().start()

    def work(self) -> None:
        """Check the records, and decode their contents if that is wanted."""
        opened = self.pack.opened
        report = check_pack(opened, opened.checksums_path, self._tell)
        if self.decoded:
            from ..decode_check import check_contents

            self.stage, self.share = "Decoding the images", 0.0
            check_contents(
                report,
                opened,
                threads=max(default_threads() - 1, 1),
                progress=False,
                cancelled=lambda: self.pack.closing,
                tell=self._tell,
            )
        self.report = report

    def _tell(self, done: int, total: int) -> None:
        if self.pack.closing:
            raise KeyboardInterrupt
        self.share = done / max(total, 1)

    def first_problems(self) -> list[FoundProblem]:
        """Return the first problems, with the positions of their records."""
        problems = self.report.problems[:MOST_SHOWN] if self.report else []
        locations = self.pack.locations
        return [
            FoundProblem(p, None if p.offset is None else locations.position_at(p.offset))
            for p in problems
        ]
