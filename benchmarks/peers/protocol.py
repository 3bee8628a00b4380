"""Messages to a contender: one JSON object a line over stdin, one answer over stdout.

`{"job": NAME, "files": {...}, "threads": N}` prepares a job and warms up, `{"steps": N}` measures N
steps (batches, or whole files); each is answered by the items done and the elapsed and processor
seconds.  `{"memory": true}` is answered by the memory of its processes.  Between the requests the
process is stopped by whoever asks.  Standard library only, Python 3.8 or newer, Linux.
"""

from __future__ import annotations

import glob
import itertools
import json
import os
import sys
import time

from jobs import JOBS

__all__ = ["Unsupported", "serve"]

WARM_UP_SECONDS = 1.0


class Unsupported(Exception):
    """This contender cannot do the job, for the reason given."""


def processes():
    """Each process of this group: its folder in /proc, and its `stat` from the state on."""
    group = os.getpgrp()
    for path in glob.glob("/proc/[0-9]*"):
        try:
            with open(path + "/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        if int(fields[2]) == group:
            yield path, fields


def processor_seconds():
    """Processor time of all processes of this group, ended children included."""
    ticks = sum(sum(map(int, fields[11:15])) for _, fields in processes())
    return ticks / os.sysconf("SC_CLK_TCK")


def memory():
    """Bytes of all processes of this group: PSS, which divides a page among those that have it."""
    found = {"processes": 0, "bytes": 0}
    for path, _ in processes():
        try:
            with open(path + "/smaps_rollup") as file:
                (line,) = [line for line in file if line.startswith("Pss:")]
        except (OSError, ValueError):  # ended meanwhile
            continue
        found["processes"] += 1
        found["bytes"] += 1024 * int(line.split()[1])
    return found


def lead_of(kind, threads):
    """Batches that a contender may have ready, two of each thread or worker: they are not new."""
    return max(8, 2 * threads) if kind == "images" else 0


def measure(items, lead, steps=None):
    """Do `lead` steps, then measure so many, or as many as the warm-up takes."""
    for _ in itertools.islice(items, lead):
        pass
    processor, start = processor_seconds(), time.perf_counter()
    done = count = 0
    for number in items:
        done += number
        count += 1
        elapsed = time.perf_counter() - start
        if count == steps or (steps is None and elapsed >= WARM_UP_SECONDS):
            break
    return {
        "steps": count,
        "items": done,
        "elapsed": elapsed,
        "processor": processor_seconds() - processor,
    }


def serve(versions, **kinds):
    """Answer requests until stdin ends.

    Parameters
    ----------
    versions : dict
        What the numbers depend on, by name.
    **kinds : callable
        For each kind of job a generator function of the job, its files (a dict) and the number of
        threads.  It yields the number of items of one step after the other and never ends; what it
        prepares before the first is not measured.  It may raise `Unsupported`.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    items = job = lead = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "job" in request:
                job = JOBS[request["job"]]
                if job.kind not in kinds:
                    raise Unsupported(f"has nothing for {job.kind}")
                items = kinds[job.kind](job, request["files"], request["threads"])
                lead = lead_of(job.kind, request["threads"])
                answer = {"versions": versions, **measure(items, lead)}
            elif "memory" in request:
                answer = memory()
            else:
                answer = measure(items, lead, request["steps"])
        except Unsupported as reason:
            answer = {"unsupported": str(reason)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    os._exit(0)  # threads that wait for nothing any more are none of anybody's business
