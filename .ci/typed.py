"""Types as checkers beside mypy see them: ``python .ci/typed.py``, ``make types``.

basedpyright tells the share of public names whose types are known; names of other packages do not
count.  ty and pyrefly find other errors than mypy does, and their number may not grow.  All three
are those of the environment whose Python runs this.  The first findings are printed where there are
too many.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("recordio", "iterators")
#: The least share.
WANTED = 0.98
SHOWN = 20
#: Options of the checkers, lines that are errors, and how many there may be: fewer, never more.
CHECKERS = {
    "ty": (
        ["check", "--python", sys.prefix, "--output-format", "concise"],
        r": error\[(?!import-not-found|unresolved-import)",
        208,
    ),
    "pyrefly": (
        ["check", "--python-interpreter-path", sys.executable, "--output-format", "min-text"],
        r"^ERROR (?!.*\[missing-import\])",
        110,
    ),
}


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


def errors_of(checker):
    """Return the lines in which a checker names an error."""
    words, pattern, _ = CHECKERS[checker]
    program = Path(sys.executable).parent / checker
    found = subprocess.run([program, *words, *PACKAGES], cwd=ROOT, capture_output=True, text=True)
    if found.returncode not in (0, 1):
        raise RuntimeError(f"{checker} ended with {found.returncode}: {found.stderr}")
    return [line for line in found.stdout.splitlines() if re.search(pattern, line)]


def main():
    """Print shares and numbers; the exit code is 1 if a share is too small, or a number grew."""
    code = 0
    for package in PACKAGES:
        share, unknown = measured(package)
        print(f"{package}: {share:.1%} of the public names have a known type")
        if share < WANTED:
            code = 1
            print(
                f"at least {WANTED:.0%} are wanted; among the rest:", *unknown[:SHOWN], sep="\n  "
            )
    for checker, (_, _, most) in CHECKERS.items():
        found = errors_of(checker)
        print(f"{checker}: {len(found)} errors, at most {most}")
        if len(found) > most:
            code = 1
            print(*found[:SHOWN], sep="\n  ")
    return code


if __name__ == "__main__":
    sys.exit(main())
