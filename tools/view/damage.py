"""Findings of `recordio check` about a pack, in the background, and for all records on request."""

from __future__ import annotations

import threading
from typing import NamedTuple

from recordio.frames.check import Problem, Report
from recordio.ordered import default_threads
from recordio.packs.check import check_pack

from .pack import ShownPack

__all__ = ["Check", "FoundProblem"]

MOST_SHOWN = 1000


class FoundProblem(NamedTuple):
    """Problem, and the position of the record that it is about, where there is one."""

    problem: Problem
    position: int | None


class Check:
    """Check of one pack."""

    def __init__(self, pack: ShownPack) -> None:
        self.pack = pack
        self.stage = self.failed = ""  # the work under way; the reason why there is no report
        self.share = 0.0  # of the stage, 0 to 1
        self.decoded = False
        self.report: Report | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """True while it is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, decode: bool) -> None:
        """Begin, unless it is under way."""
        with self._lock:
            if self.running:
                return
            self.report, self.failed, self.share, self.decoded = None, "", 0.0, decode
            self.stage = "Reading the records"
            self._thread = threading.Thread(target=self._run, args=(decode,), daemon=True)
            self._thread.start()

    def join(self) -> None:
        """Wait for the end."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, decode: bool) -> None:
        try:
            self.report = self._checked(decode)
        except KeyboardInterrupt:
            self.failed = "the page was closed"
        except Exception as error:  # shown on the page; there is nobody else to tell
            self.failed = f"{type(error).__name__}: {error}"
        self.stage = ""

    def _checked(self, decode: bool) -> Report:
        opened = self.pack.opened
        report = check_pack(opened, opened.checksums_path, self._tell)
        if decode:
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
        return report

    def _tell(self, done: int, total: int) -> None:
        if self.pack.closing:
            raise KeyboardInterrupt
        self.share = done / max(total, 1)

    def found(self) -> list[FoundProblem]:
        """Return the first problems, with the positions of their records."""
        problems = self.report.problems[:MOST_SHOWN] if self.report else []
        locations = self.pack.locations
        return [
            FoundProblem(p, None if p.offset is None else locations.position_at(p.offset))
            for p in problems
        ]
