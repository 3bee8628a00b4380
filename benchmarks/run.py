"""Run the benchmarks: ``python benchmarks/run.py [CASE ...]``; ``--list`` names the cases.

Prints one table; ``--markdown`` also writes it to a file, and ``--json`` with every round and the
machine.  Peers that need environments of their own are compared by `compare.py`.
The exit status tells whether every case ran, not whether its bar was met: bars are for people.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
import traceback
from pathlib import Path

import array_cases  # noqa: F401  (importing registers the cases)
import codec_cases  # noqa: F401
import container_cases  # noqa: F401
import dataset_cases  # noqa: F401
import field_cases  # noqa: F401
import harness
import image_cases  # noqa: F401
import layout_cases  # noqa: F401
import loop_cases  # noqa: F401
import numpy
import recipe_cases  # noqa: F401
import record_cases  # noqa: F401
import text_cases  # noqa: F401
import tool_cases  # noqa: F401
from material import NEARBY_PHOTOS, Material

from recordio.formats import general as codec


def parse(arguments):
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("case", nargs="*", help="names of cases; all without")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--photos", type=Path, help="folder of JPEG photographs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a decode measurement")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    parser.add_argument("--markdown", type=Path, help="file to write the table to")
    options = parser.parse_args(arguments)
    unknown = set(options.case) - set(harness.cases())
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    if options.photos is None and NEARBY_PHOTOS.is_dir():
        options.photos = NEARBY_PHOTOS
    return options


def machine():
    """Return the conditions of the numbers."""
    return {
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "decoder": codec.describe(),
    }


def main(arguments=None):
    """Run the chosen cases and print their table."""
    options = parse(arguments)
    chosen = [harness.cases()[name] for name in options.case] or list(harness.cases().values())
    if options.list:
        print("\n".join(f"{case.name:22} {case.summary}" for case in chosen))
        return 0
    facts = machine()
    print(f"{facts['system']}, {facts['cores']} cores, Python {facts['python']}")
    print(f"{facts['decoder']}; {options.threads} threads, {options.rounds} rounds")
    print(f"photographs: {options.photos or 'of the examples'}\n")
    results, failed = [], []
    with tempfile.TemporaryDirectory(prefix="recordio-bench-") as folder:
        material = Material(
            options.photos,
            folder,
            threads=options.threads,
            rounds=options.rounds,
            seconds=options.seconds,
        )
        for case in chosen:
            start = time.perf_counter()
            print(f"{case.name} ...", end="", flush=True, file=sys.stderr)
            try:
                results += case.function(material)
            except Exception:
                failed.append(case.name)
                print(file=sys.stderr)
                traceback.print_exc()
            print(f" {time.perf_counter() - start:.0f} s", file=sys.stderr)
    print("\n" + harness.table(results))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    if options.markdown:
        options.markdown.write_text(harness.markdown(results) + "\n")
    if options.json:
        document = {
            "machine": facts,
            "threads": options.threads,
            "photos": str(options.photos or "examples"),
            "results": [result.as_dict() for result in results],
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
