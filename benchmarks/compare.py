"""Compare with the peers: ``python benchmarks/compare.py [JOB ...]``; ``--list`` names the jobs.

Every contender is a process of its own; all take turns, round by round.  With ``--docs`` and all
jobs it writes `benchmarks.json` there and renews `benchmarks.md` and the chart; ``--json`` writes
the JSON of any run.  The exit status tells whether our side ran, not whether bars were met.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import machine
import report
from contenders import CONTENDERS, OURS, Contender, Failed, Process
from environments import Absent, python_of
from material import NEARBY_PHOTOS, Material
from packs import Packs, Unavailable
from peers.jobs import JOBS

FOR_KIND = {
    "images": ("mxnet", "dali", "torch", "spdl", "litdata", "webdataset", "tensorflow"),
    "decode": (
        "simplejpeg",
        "torchcodec",
        "torchvision",
        "kornia",
        "imagecodecs",
        "opencv",
        "pillow",
    ),
    "processor": ("transformers_pillow", "transformers_torchvision"),
    "table": ("mxnet", "pyarrow", "polars", "numpy"),
}
LIMITS = ("full_decode", "coefficients")


def parse(arguments):
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("job", nargs="*", help="names of jobs; all without")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--photos", type=Path, help="folder of JPEG photographs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one turn, about")
    parser.add_argument("--contenders", help="names, separated by commas; all without")
    parser.add_argument(
        "--environments", type=Path, default=".venv-peers", help="where they are made"
    )
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="ENVIRONMENT=PATH",
        help="an interpreter to use instead of making the environment",
    )
    parser.add_argument("--json", type=Path, help="file to write the results to")
    parser.add_argument("--docs", type=Path, help="folder of benchmarks.md, when all jobs run")
    options = parser.parse_args(arguments)
    for given, known in (
        (options.job, JOBS),
        ((options.contenders or OURS).split(","), CONTENDERS),
    ):
        if unknown := set(given) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))}")
    options.python = dict(pair.split("=", 1) for pair in options.python)
    if options.photos is None and NEARBY_PHOTOS.is_dir():
        options.photos = NEARBY_PHOTOS
    return options


class Comparison:
    """Runs jobs; remembers which environments are absent."""

    def __init__(self, options, packs):
        self._options, self._packs = options, packs
        self._pythons = {None: sys.executable, **options.python}
        self.versions: dict[str, dict] = {}

    def python(self, environment):
        """The interpreter of an environment; `Failed` if there is none."""
        if environment not in self._pythons:
            try:
                self._pythons[environment] = python_of(environment, self._options.environments)
            except Absent as reason:
                self._pythons[environment] = reason
        python = self._pythons[environment]
        if isinstance(python, Absent):
            raise Failed(f"no environment: {python}")
        return python

    def names(self, job):
        """The contenders for a job, ours first."""
        own = (OURS, "untouched") if job.prepared else (OURS,)
        chosen = (self._options.contenders or "").split(",")
        others = (*(job.contenders or FOR_KIND[job.kind]), *(LIMITS if job.limits else ()))
        return [*own, *(name for name in others if chosen == [""] or name in chosen)]

    def run(self, job):
        """The rounds of a job, and who was absent, as a dictionary."""
        result = {"job": job.name, "rounds": {}, "absent": {}}
        try:
            pack = getattr(self._packs, job.pack)
            own_pack = getattr(self._packs, job.prepared) if job.prepared else pack
        except Unavailable as reason:
            return {**result, "absent": {OURS: str(reason)}}
        with contextlib.ExitStack() as stack:
            processes, steps = {}, {}
            for name in self.names(job):
                files = own_pack if name == OURS else pack
                try:
                    contender: Contender = CONTENDERS[name]
                    python = self.python(contender.environment)
                    process = stack.enter_context(Process(contender, python))
                    answer = process.ask(job=job.name, files=files, threads=self._options.threads)
                except Failed as reason:
                    # Where a library was compiled, or runs, is no part of the result.
                    result["absent"][name] = re.sub(r"(?<!\S)/\S*/", "", str(reason))
                    continue
                self.versions[name] = answer["versions"]
                processes[name], steps[name] = process, self._steps(job, answer)
                result["rounds"][name] = []
            for number in range(self._options.rounds):
                order = list(processes)
                for name in reversed(order) if number % 2 else order:
                    answer = processes[name].ask(steps=steps[name])
                    result["rounds"][name].append(answer)
                    print(".", end="", flush=True, file=sys.stderr)
        return result

    def _steps(self, job, answer):
        """Steps of about the wanted time.

        Batches come in bursts where one worker waits for another, so there are some for each, and
        as many for all.
        """
        steps = self._options.seconds * answer["steps"] / answer["elapsed"]
        if job.kind != "images":
            return max(1, round(steps))
        return self._options.threads * max(4, round(steps / self._options.threads))


def main(arguments=None):
    """Run the chosen jobs, print their tables, write what is asked for."""
    options = parse(arguments)
    if options.list:
        print("\n".join(f"{job.name:22} {job.title}" for job in JOBS.values()))
        return 0
    if not sys.platform.startswith("linux"):
        print("processes are stopped and timed as Linux does it", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # no process is left behind, stopped
    chosen = [JOBS[name] for name in options.job] or list(JOBS.values())
    failed = []
    with tempfile.TemporaryDirectory(prefix="recordio-peers-") as folder:
        material = Material(
            options.photos, folder, threads=options.threads, rounds=3, seconds=options.seconds
        )
        document = {
            "machine": machine.describe(material),
            "threads": options.threads,
            "photos": material.description,
            "jobs": [],
        }
        print(report.machine_lines(document))
        comparison = Comparison(options, Packs(material))
        for job in chosen:
            print(f"{job.name} ", end="", flush=True, file=sys.stderr)
            try:
                document["jobs"].append(comparison.run(job))
            except Exception:
                failed.append(job.name)
                traceback.print_exc()
                continue
            print(file=sys.stderr)
            print("\n" + report.job_section(document["jobs"][-1]), flush=True)
        document["versions"] = comparison.versions
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    if options.json:
        options.json.write_text(report.as_json(document))
    if options.docs and not failed and not options.job and not options.contenders:
        (options.docs / "benchmarks.json").write_text(report.as_json(document))
        report.write(document, options.docs)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
