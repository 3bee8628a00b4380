"""Feed damaged files to every parser: ``python driver.py [--target NAME] [--seconds 60]``.

Each target gets its share of the time, in a process of its own with limits of memory and time, so
that a crash or a hang is a finding like any other.  Findings are made small and saved, and are
repeated by naming their files.  Everything follows from the seed, which is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # threads do not survive a fork

from children import Finding, Limits, run_in_child  # noqa: E402
from targets import TARGETS, Target  # noqa: E402

FINDINGS = Path(__file__).parents[2] / "build" / "fuzz" / "findings"
#: Attempts to make a finding smaller.
ATTEMPTS = 300


def fuzz(
    target: Target, seed: int, limits: Limits, seconds: float, executions: int = 1 << 62
) -> tuple[int, float, list[Finding]]:
    """Executions of a target, seconds that they took, and what was found, each thing once."""
    corpus = [path.read_bytes() for path in target.corpus()]
    found: dict[str, Finding] = {}
    begin, done = time.monotonic(), 0
    while done < executions and (left := seconds - (time.monotonic() - begin)) > 0:
        done, findings, ended = run_in_child(target, corpus, seed, done, executions, left, limits)
        for finding in findings:
            if not finding.key.startswith("more than") or again(target, finding, limits):
                found.setdefault(finding.key, finding)
        if ended or len(found) > 20:
            break
    return done, time.monotonic() - begin, list(found.values())


def again(target: Target, finding: Finding, limits: Limits) -> bool:
    """Whether an input takes as long when it is run alone: a machine that is busy is no finding."""
    _, found, _ = run_in_child(target, [finding.data], 0, 0, 1, limits.seconds + 60, limits)
    return bool(found)


def minimised(target: Target, finding: Finding, limits: Limits, seconds: float) -> Finding:
    """The same finding from fewer bytes: pieces of half the size are left out again and again."""
    end, attempts = time.monotonic() + seconds, 0
    piece = len(finding.data) // 2
    while piece and attempts < ATTEMPTS and time.monotonic() < end:
        at = 0
        while at < len(finding.data) and attempts < ATTEMPTS and time.monotonic() < end:
            smaller = finding.data[:at] + finding.data[at + piece :]
            attempts += 1
            _, found, _ = run_in_child(target, [smaller], 0, 0, 1, limits.seconds + 60, limits)
            if found and found[0].key == finding.key:
                finding = found[0]
            else:
                at += piece
        piece //= 2
    return finding


def save(target: Target, finding: Finding) -> Path:
    """Write the input and, beside it, what it did."""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    path = FINDINGS / f"{target.name}-{finding.digest()}"
    path.write_bytes(finding.data)
    path.with_suffix(".txt").write_text(f"{finding.key}\n\n{finding.detail}\n")
    return path


def repeat(target: Target, paths: list[str], limits: Limits) -> int:
    """Run files through a target; the number of findings."""
    count = 0
    for path in paths:
        data = Path(path).read_bytes()
        _, found, _ = run_in_child(target, [data], 0, 0, 1, limits.seconds + 60, limits)
        print(f"{path}: {found[0].key if found else 'nothing found'}")
        if found:
            print(found[0].detail)
        count += len(found)
    return count


def main() -> int:
    """Read the command line; 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", choices=sorted(TARGETS), help="one target instead of all")
    parser.add_argument("--seconds", type=float, default=60, help="in all, for all targets")
    parser.add_argument("--executions", type=int, default=1 << 62, help="of each target, at most")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument("--timeout", type=float, default=10, help="seconds for one input")
    parser.add_argument(
        "--memory", type=int, default=1024, help="MiB beyond what is in use at first"
    )
    parser.add_argument(
        "--minimise", type=float, default=20, help="seconds for one finding, 0: not"
    )
    parser.add_argument("--libfuzzer", action="store_true", help="guided by coverage, with atheris")
    parser.add_argument("files", nargs="*", help="inputs for --target instead of made ones")
    asked = parser.parse_args()
    limits = Limits(asked.timeout, asked.memory << 20)
    if asked.files:
        if not asked.target:
            parser.error("files need --target")
        return min(repeat(TARGETS[asked.target], asked.files, limits), 1)
    chosen = [TARGETS[asked.target]] if asked.target else list(TARGETS.values())
    engine = fuzz
    if asked.libfuzzer:
        from libfuzzer import fuzz as engine
    print(f"seed {asked.seed}, {asked.seconds:g} seconds for {len(chosen)} targets", flush=True)
    total = count = 0
    for target in chosen:
        done, took, found = engine(
            target, asked.seed, limits, asked.seconds / len(chosen), asked.executions
        )
        print(
            f"{target.name:14} {done:10} executions {done / max(took, 1e-9):8.0f}/s"
            f" {len(found):4} findings",
            flush=True,
        )
        for finding in found:
            if not asked.libfuzzer:  # what the sanitizer sees cannot be seen without it
                finding = minimised(target, finding, limits, asked.minimise)
            path = save(target, finding)
            print(f"    {finding.key}\n    {path} ({len(path.read_bytes())} bytes)", flush=True)
        total, count = total + done, count + len(found)
    print(f"{'in all':14} {total:10} executions {'':10} {count:4} findings")
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main())
