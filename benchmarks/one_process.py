"""One training process with threads beside `DataLoader` with workers, and beside SPDL.

``python benchmarks/one_process.py`` prints, for photographs with a random resized crop, work per
second and per second of processor time, and the memory of all processes: PSS, in which a page that
several processes have is divided among them.  Memory is taken of one contender at a time, as others
would share its libraries; speeds in turns.  ``--python free=PATH`` adds an interpreter without the
GIL, which has this project and perhaps torch; ``--python torch=PATH`` names one that has SPDL.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import machine
from compare import Comparison
from contenders import CONTENDERS, Contender, Failed, Process
from harness import markdown_table, number
from material import NEARBY_PHOTOS, Material
from packs import Packs
from peers.jobs import JOBS

JOB = JOBS["random_resized_crop"]
#: What makes the images: the library, or Python of the user's own; ours first.
KINDS = {
    "images made by the library": {
        "ours": Contender("`ImageLoader`", "with_image_loader.py"),
        "one": Contender(
            "`ImageLoader`, uint8, one ahead", "with_image_loader.py", None, ("uint8",)
        ),
        "record": Contender("`ImageRecordIter`, no torch", "with_recordio.py"),
        "torch": Contender("`DataLoader` + OpenCV", "with_torch.py"),
        "spdl": CONTENDERS["spdl"],
    },
    "images changed by Python of one's own": {
        "ours": Contender("`ImageLoader`", "with_own_python.py", None, ("image_loader",)),
        "threads": Contender(
            "`MultithreadIterator`, no torch", "with_own_python.py", None, ("threads",)
        ),
        "torch": Contender("`DataLoader`", "with_own_python.py", None, ("data_loader",)),
        "free": Contender("`ImageLoader`, no GIL", "with_own_python.py", "free", ("image_loader",)),
        "free_threads": Contender(
            "`MultithreadIterator`, no torch, no GIL", "with_own_python.py", "free", ("threads",)
        ),
        "free_torch": Contender(
            "`DataLoader`, no GIL", "with_own_python.py", "free", ("data_loader",)
        ),
    },
}


def parse(arguments, description):
    """Command line."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--photos", type=Path, help="folder of JPEG photographs")
    parser.add_argument("--workers", type=int, default=8, help="threads, or processes of torch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0, help="of one turn, about")
    parser.add_argument("--environments", type=Path, default=".venv-peers")
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    options = parser.parse_args(arguments)
    options.python = dict(pair.split("=", 1) for pair in options.python)
    if options.photos is None and NEARBY_PHOTOS.is_dir():
        options.photos = NEARBY_PHOTOS
    return options


def started(contender, pythons, files, workers):
    """A process with its job prepared, its first answer, and its memory without the job."""
    process = Process(contender, pythons(contender.environment))
    empty = process.ask(memory=True)
    return process, process.ask(job=JOB.name, files=files, threads=workers), empty["bytes"]


def memory_of(contender, pythons, files, options):
    """Processes, bytes of all, and bytes before the loader was made; nobody else runs."""
    process, answer, empty = started(contender, pythons, files, options.workers)
    with process:
        most = {"bytes": 0}
        for _ in range(options.rounds):
            process.ask(steps=answer["steps"])
            most = max(most, process.ask(memory=True), key=lambda found: found["bytes"])
    return {**most, "empty": empty}


def turns_of(contenders, pythons, files, options):
    """The rounds of each contender, one directly after the other, in an order that changes."""
    processes, steps, rounds = {}, {}, {name: [] for name in contenders}
    try:
        for name, contender in contenders.items():
            process, answer, _ = started(contender, pythons, files, options.workers)
            processes[name] = process
            # Workers that make a batch each deliver as many at once, and then none for a while.
            enough = round(options.seconds * answer["steps"] / answer["elapsed"])
            steps[name] = max(10 * options.workers, enough)
        for turn in range(options.rounds):
            for name in reversed(contenders) if turn % 2 else contenders:
                rounds[name].append(processes[name].ask(steps=steps[name]))
    finally:
        for process in processes.values():
            process.__exit__()
    return rounds


def measured(contenders, pythons, files, options):
    """What each contender needs and does; those that cannot run are named on stderr."""
    found = {}
    for name, contender in contenders.items():
        try:
            found[name] = {"memory": memory_of(contender, pythons, files, options)}
        except Failed as reason:
            print(f"{contender.title}: {reason}", file=sys.stderr)
    rounds = turns_of({name: contenders[name] for name in found}, pythons, files, options)
    for name, turns in rounds.items():
        found[name]["rounds"] = turns
    return found


def lines_of(contenders, found):
    """A line of the table for each contender."""
    ours = found["ours"]
    for name, results in found.items():
        rate, busy = (
            statistics.median(turn["items"] / turn[time] for turn in results["rounds"])
            for time in ("elapsed", "processor")
        )
        ratio = statistics.median(
            (a["items"] / a["processor"]) / (b["items"] / b["processor"])
            for a, b in zip(ours["rounds"], results["rounds"], strict=True)
        )
        memory = results["memory"]
        yield (
            contenders[name].title,
            str(memory["processes"]),
            number(rate),
            number(busy),
            f"{ratio:.2f}",
            f"{memory['bytes'] / 1e6:.0f}",
            f"{(memory['bytes'] - memory['empty']) / 1e6:.0f}",
            f"{memory['bytes'] / ours['memory']['bytes']:.1f}",
        )


def main(arguments=None):
    """Measure, and print a table for each kind."""
    options = parse(arguments, __doc__)
    head = ["Contender", "processes", "images/s", "images per processor second", "ours to it"]
    head += ["memory, MB", "of which for the loader", "to ours"]
    document = {"workers": options.workers, "kinds": {}}
    with tempfile.TemporaryDirectory(prefix="recordio-one-process-") as folder:
        material = Material(
            options.photos, folder, threads=options.workers, rounds=3, seconds=options.seconds
        )
        packs = Packs(material, photos=1_000)
        document["machine"] = machine.describe(material)
        print(document["machine"], material.description, sep="\n")
        pythons = Comparison(options, packs).python
        for kind, contenders in KINDS.items():
            if "free" not in options.python:
                contenders = {n: c for n, c in contenders.items() if c.environment != "free"}
            found = measured(contenders, pythons, packs.photos, options)
            document["kinds"][kind] = found
            print(f"\n{kind}, {options.workers} threads or workers\n")
            print(markdown_table(head, *lines_of(contenders, found)), flush=True)
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
