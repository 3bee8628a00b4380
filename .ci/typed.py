"""The share of public names whose types are known: ``python .ci/typed.py``, ``make types``.

basedpyright is that of the environment whose Python runs this.  Names of other packages do not
count; the first of ours without a full type are printed where there are too many.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("recordio", "iterators")
#: The least share.
WANTED = 0.98
SHOWN = 20


def measured(package):
    """Return the share of a package, and a line for each name whose type is not known."""
    words = ["-m", "basedpyright", "--verifytypes", package, "--ignoreexternal", "--outputjson"]
    found = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    report = json.loads(found.stdout)["typeCompleteness"]
    unknown = [
        f"{symbol['name']}: {symbol['diagnostics'][0]['message'] if symbol['diagnostics'] else ''}"
        for symbol in report["symbols"]
        if symbol["isExported"] and not symbol["isTypeKnown"]
    ]
    return report["completenessScore"], unknown


def main():
    """Print the shares; the exit code is 1 if one is too small."""
    code = 0
    for package in PACKAGES:
        share, unknown = measured(package)
        print(f"{package}: {share:.1%} of the public names have a known type")
        if share < WANTED:
            code = 1
            print(
                f"at least {WANTED:.0%} are wanted; among the rest:", *unknown[:SHOWN], sep="\n  "
            )
    return code


if __name__ == "__main__":
    sys.exit(main())
