"""Runs the scripts of this folder: here with one line of each changed, and as they are with MXNet.

``python run_scripts.py FOLDER`` with a Python that has mxnet 1.9.1 (`benchmarks/environments.py`
makes one) writes FOLDER/compat_scripts.json; FOLDER is ``tests/golden``, which has the inputs.
"""

import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: The line of a script that changes: its import of mxnet.
IMPORT = re.compile(r"^(?:import mxnet as mx|from mxnet(\.\S+)? import .*)$", re.M)


def scripts():
    """Paths of all scripts, without this one."""
    return sorted(path for path in HERE.glob("*.py") if path != Path(__file__).resolve())


def changed(text):
    """Return the text of a script whose imports of mxnet are of this package, and how many."""

    def line(found):
        if found[0] == "import mxnet as mx":
            return "from iterators.compat import mxnet as mx"
        return found[0].replace("from mxnet", "from iterators.compat.mxnet", 1)

    return IMPORT.subn(line, text)


def plain(value):
    """Return a result as JSON can hold it: numbers, texts and lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def run(path, folder, scratch):
    """Run a script in a folder of its own and return what it found."""
    before, arguments = os.getcwd(), sys.argv
    os.chdir(scratch)
    sys.argv = [str(path), str(folder)]
    try:
        found = runpy.run_path(str(path), run_name="__main__")["results"]
    finally:
        os.chdir(before)
        sys.argv = arguments
    return {name: plain(value) for name, value in found.items()}


def main():
    """Write the results of all scripts with MXNet, each run by a process of its own."""
    if len(sys.argv) > 2:
        with tempfile.TemporaryDirectory() as scratch:
            found = run(sys.argv[2], sys.argv[1], scratch)
        Path(sys.argv[3]).write_text(json.dumps(found, separators=(",", ":")))
        return
    folder = Path(sys.argv[1]).resolve()
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for path in scripts():
            output = Path(scratch, path.stem)
            command = [sys.executable, __file__, str(folder), str(path), str(output)]
            subprocess.run(command, check=True, timeout=60)
            found.append(f'"{path.stem}":{output.read_text()}')
    (folder / "compat_scripts.json").write_text("{" + ",\n".join(found) + "}\n")


if __name__ == "__main__":
    main()
