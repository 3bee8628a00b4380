"""Run a command from a checkout whose modules are compiled in place: ``python tools/im2rec.py``."""

import importlib.util
import sys
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def run(name):
    """End the process with the exit code of `main` in a module of this folder."""
    sys.path[0] = str(FOLDER.parent)  # this folder, whose modules are those of `recordio.tools`
    spec = importlib.util.spec_from_file_location(
        "recordio.tools", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
    )
    package = sys.modules["recordio.tools"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    sys.exit(import_module(f"recordio.tools.{name}").main())
