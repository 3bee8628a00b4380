"""The same targets under libFuzzer, which is guided by what an input makes the code do.

``driver.py --libfuzzer`` runs this file once for each target; ``python libfuzzer.py NAME`` is
libFuzzer itself, with the options and folders that it takes.  It needs the package atheris, and
extensions that clang compiled with ``-fsanitize=fuzzer-no-link``; `make fuzz` makes them.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from targets import Target

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "fuzz"
PYTHON = ROOT / ".venv-fuzz" / "bin" / "python"
SANITIZER = "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1024"
RUNS = re.compile(r"stat::number_of_executed_units: *(\d+)")
FILE = re.compile(r"Test unit written to (\S+)")
CAUSE = re.compile(
    r"ERROR: (?:AddressSanitizer|libFuzzer): (.*)|Uncaught Python exception: ===\s+(.*)"
)


def environment() -> dict[str, str]:
    """Where the sanitizer, and the mutator that it has to find, are loaded before anything else."""
    find = "import atheris.custom_mutator as m; print(m.__file__)"
    mutator = subprocess.run([PYTHON, "-c", find], capture_output=True, text=True, check=True)
    path = Path(mutator.stdout.strip())
    return {
        **os.environ,
        "LD_PRELOAD": f"{path.parents[1] / 'asan_with_fuzzer.so'} {path}",
        "ASAN_OPTIONS": SANITIZER,
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(FOLDER / "lib"),
    }


def fuzz(target: Target, seed: int, limits, seconds: float, executions: int):
    """As `driver.fuzz`; libFuzzer ends at the first finding, and then begins again."""
    from children import Finding

    corpus, artifacts = FOLDER / "corpus" / target.name, FOLDER / "artifacts"
    corpus.mkdir(parents=True, exist_ok=True)
    artifacts.mkdir(parents=True, exist_ok=True)
    found: dict[str, Finding] = {}
    begin, done = time.monotonic(), 0
    while done < executions and (left := int(seconds - (time.monotonic() - begin))) > 0:
        command = [
            PYTHON, __file__, target.name, f"-max_total_time={left}",
            f"-timeout={limits.seconds:.0f}", f"-rss_limit_mb={(limits.memory >> 20) + 1024}",
            f"-seed={seed % 2**32 or 1}", "-print_final_stats=1", f"-artifact_prefix={artifacts}/",
            f"-runs={min(executions - done, 2**31 - 1)}", str(corpus),
            str(target.corpus()[0].parent),
        ]  # fmt: skip
        ended = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=environment()
        )
        runs = RUNS.search(ended.stderr)
        done, seed = done + (int(runs[1]) if runs else 0), seed + 1
        if ended.returncode == 0:
            break
        cause, file = CAUSE.search(ended.stderr), FILE.search(ended.stderr)
        key = next(filter(None, cause.groups()), "?")[:80] if cause else f"exit {ended.returncode}"
        data = Path(file[1]).read_bytes() if file else b""
        known = len(found)
        found.setdefault(key, Finding(key, data, ended.stderr[-8000:]))
        if len(found) == known or not runs:
            break
    return done, time.monotonic() - begin, list(found.values())


def main() -> None:
    """Hand a target to libFuzzer."""
    import atheris

    with atheris.instrument_imports(include=["recordio", "iterators"]):
        from targets import TARGETS

    target = TARGETS[sys.argv[1]]
    seeds = [path.read_bytes() for path in target.corpus()]

    def mutator(data: bytes, most: int, seed: int) -> bytes:
        draw = random.Random(seed)
        if draw.random() < 0.5:
            changed = target.changed(data, draw, seeds)
        else:
            changed = atheris.Mutate(data, max(len(data), 1) + 64)
        if target.mend is not None and draw.random() < 0.9:
            changed = target.mend(bytes(changed))
        return bytes(changed)[:most]

    def run(data: bytes) -> None:
        # A MemoryError is what asking for too much looks like, with the sanitizer as without.
        target.run(bytes(data))

    atheris.Setup([sys.argv[0], *sys.argv[2:]], run, custom_mutator=mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
