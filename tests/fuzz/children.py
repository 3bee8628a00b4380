"""Run a target in a child process that may crash, hang or ask for too much memory."""

from __future__ import annotations

import faulthandler
import hashlib
import json
import mmap
import os
import random
import re
import select
import signal
import struct
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from typing import Any

from targets import Target
from targets.target import LONGEST, clear_scratch

STATE = struct.Struct("=QQ")  # number of the input, its length
#: How often a child is looked at, in seconds.
PAUSE = 0.25


@dataclass(frozen=True)
class Limits:
    """What one input may need: seconds, and bytes beyond what the process has at first."""

    seconds: float
    memory: int


@dataclass(frozen=True)
class Finding:
    """An input, and what it did; findings with the same key are taken for the same."""

    key: str
    data: bytes
    detail: str

    def digest(self) -> str:
        """A short name of the key."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:12]


class Board:
    """Memory of parent and child: what the child is at, which outlives it."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, STATE.size + LONGEST + (1 << 16))

    def begin(self, number: int, data: bytes) -> None:
        """An input is about to be run."""
        self.memory[STATE.size : STATE.size + len(data)] = data
        STATE.pack_into(self.memory, 0, number, len(data))

    def state(self) -> tuple[int, bytes]:
        """Number and bytes of what was begun last."""
        number, length = STATE.unpack_from(self.memory)
        return number, self.memory[STATE.size : STATE.size + length]


def inputs(target: Target, corpus: list[bytes], seed: int, number: int) -> bytes:
    """Input `number` of a run: first the corpus, then what is made of it."""
    if number < len(corpus):
        return corpus[number]
    return target.mutated(random.Random(f"{target.name}:{seed}:{number}"), corpus)


def run_in_child(
    target: Target,
    corpus: list[bytes],
    seed: int,
    first: int,
    last: int,
    seconds: float,
    limits: Limits,
) -> tuple[int, list[Finding], bool]:
    """Run inputs ``[first, last)`` as long as there is time.

    Returns
    -------
    number : int
        Of the input to go on with.
    findings : list of Finding
    ended : bool
        Whether that was all; False if the child died before.
    """
    board = Board()
    board.begin(first, b"")
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as log:
        child = os.fork()
        if child == 0:
            os.close(reading)
            _be_child(target, corpus, seed, first, last, seconds, limits, board, writing, log)
        os.close(writing)
        findings, hung = _watch(child, reading, board, limits)
        _, status = os.waitpid(child, 0)
        log.seek(0)
        said = log.read().decode(errors="replace")
    number, data = board.state()
    if hung:
        findings.append(
            Finding(f"more than {limits.seconds:g} seconds: {_place(said)}", data, said)
        )
    elif os.WIFSIGNALED(status) or os.WEXITSTATUS(status):
        name = f"exit status {os.waitstatus_to_exitcode(status)}"
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
        findings.append(Finding(f"{name}: {_place(said)}", data, said[-8000:]))
    else:
        return number + 1, findings, True
    return number + 1, findings, False


def _watch(child: int, reading: int, board: Board, limits: Limits) -> tuple[list[Finding], bool]:
    """Findings that the child reports until it ends, or is ended because it hangs."""
    hung, text, at, looks = False, b"", None, 0
    with open(reading, "rb", buffering=0) as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], PAUSE)
            if ready:
                piece = pipe.read(1 << 16)
                if not piece:
                    break
                text += piece
                continue
            # Looks are counted, not time, which also goes by while the whole machine stands still.
            at, before = board.state()[0], at
            looks = looks + 1 if at == before else 0
            if not hung and looks * PAUSE > limits.seconds:
                hung = True
                os.kill(child, signal.SIGABRT)  # its stack is written down
    reports = [json.loads(line) for line in text.split(b"\n")[:-1]]
    return [
        Finding(report["key"], bytes.fromhex(report["data"]), report["detail"])
        for report in reports
    ], hung


def _be_child(target, corpus, seed, first, last, seconds, limits, board, writing, log) -> None:
    """The child: never returns."""
    status = 1
    try:
        os.dup2(log.fileno(), 2)
        os.dup2(log.fileno(), 1)
        faulthandler.enable(log)
        _limit_memory(limits.memory)
        end = time.monotonic() + seconds
        number = first
        while number < last:
            data = inputs(target, corpus, seed, number)
            board.begin(number, data)
            try:
                target.run(data)
            except Exception as error:
                report = {"key": _key(error), "data": data.hex(), "detail": traceback.format_exc()}
                _write_all(writing, json.dumps(report).encode() + b"\n")
            number += 1
            if time.monotonic() > end:
                break
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        clear_scratch()
        sys.stderr.flush()
        os._exit(status)


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _key(error: BaseException) -> str:
    """What kind of finding: the error, and the two innermost places it came from."""
    places = traceback.extract_tb(error.__traceback__)
    names = [f"{os.path.basename(place.filename)}:{place.lineno}" for place in places[-2:]]
    if isinstance(error, AssertionError):
        return f"AssertionError at {' > '.join(names)}"
    text = re.sub(r"-?\d[\d.]*( .iB)?", "N", str(error)[:60])
    return f"{type(error).__name__} at {' > '.join(names)}: {text!a}"


def _place(said: str) -> str:
    """Where a crashed process was, from what faulthandler wrote."""
    lines = [line for line in said.splitlines() if line.startswith("  File ")]
    places: Any = [line.split('"')[1].rpartition("/")[2] + line.split('"')[2] for line in lines[:2]]
    return " < ".join(places) or said.strip()[-80:] or "no stack"


def _limit_memory(extra: int) -> None:
    """No more address space than there is now and so much; not everywhere can that be done."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return
    resource.setrlimit(resource.RLIMIT_AS, (used + extra, used + extra))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
