"""Public names of the originals' data modules: `docs/coming-from/names.md` says which are missing.

``python tests/iterators/compat/test_original_names.py`` writes its tables. The names are those of
mxnet 1.9.1 as it is imported, of Chainer 7.8.1, of Pylearn2's data modules and of dp's files.
"""

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
NAMES = json.loads((TESTS / "golden" / "original_names.json").read_text())
PAGE = TESTS.parent / "docs" / "coming-from" / "names.md"
BEGIN, END = "<!-- the tables -->\n", "<!-- end of the tables -->\n"
SHOWN = {"mxnet": "MXNet 1.9.1", "chainer": "Chainer 7.8.1", "pylearn2": "Pylearn2", "dp": "dp"}
#: Why a name is missing, by system, module and name; the first that fits.
REASONS = [
    (r"mxnet nd.NDArray (attach_grad|grad|backward|.*softm.*|relu|.*sigmoid)$", "training"),
    (r"mxnet nd.NDArray (as_np_ndarray|handle|writable|to_dlpack.*|detach)$", "MXNet's internals"),
    (r"mxnet nd.NDArray ", "an operator: NumPy's function takes these arrays"),
    (r"mxnet gluon.utils download", "nothing is downloaded: `iterators.cached_download`"),
    (r"mxnet context gpu_memory_info", "no array is on a GPU"),
    (r"mxnet random ", "distributions that data code does not draw from: `numpy.random`"),
    (r"chainer .* (HDF5.*|.*hdf5)$", "npz files only"),
    (r"chainer iterators DaliIterator", "DALI's own iterators, or `ImageRecordIter`"),
    (r"chainer datasets get_(ptb|svhn)", "no reader of that file"),
    (r"chainer datasets .*_labels$", "names of classes: a list in the script"),
    (r"chainer backend ", "arrays are NumPy's or torch's: their own functions"),
    (r"pylearn2 .*PyTables", "HDF5 files: a memory-mapped array in DenseDesignMatrix"),
    (r"pylearn2 .* (ForcedEvenIterator)$", "`as_even` of a mode is the same"),
    (r"pylearn2 space SimplyTypedSpace", "a base class: spaces with a type derive from `Space`"),
    (r"dp  (FacialKeypoints|BillionWords|Svhn)$", "no reader of that file: `DataSource`"),
]


def here(system, module, name):
    """True if a name is here."""
    value = import_module(f"iterators.compat.{system}")
    for part in [*filter(None, module.split(".")), name]:
        try:
            value = getattr(value, part)
        except (AttributeError, NotImplementedError):
            return False
    return True


def missing(system, module):
    return [name for name in NAMES[system][module] if not here(system, module, name)]


def reason(system, module, name):
    """The reason of a missing name; None if nobody has thought of it."""
    full = f"{system} {module} {name}"
    return next((text for pattern, text in REASONS if re.match(pattern, full)), None)


def tables():
    """The tables of the page."""
    text = ""
    for system, modules in NAMES.items():
        total = sum(map(len, modules.values()))
        absent = sum(len(missing(system, module)) for module in modules)
        text += f"## {SHOWN[system]}\n\n{total} public names, {total - absent} of them here.\n\n"
        text += "| Module | Names | Here | Missing |\n|---|---|---|---|\n"
        for module, names in modules.items():
            reasons = {}
            for name in missing(system, module):
                reasons.setdefault(reason(system, module, name), []).append(f"`{name}`")
            why = "; ".join(f"{', '.join(found)}: {text}" for text, found in reasons.items())
            count = len(names) - len(missing(system, module))
            text += f"| `{module or 'dp'}` | {len(names)} | {count} | {why} |\n"
        text += "\n"
    return text


@pytest.mark.parametrize(
    ("system", "module"), [(system, module) for system in NAMES for module in NAMES[system]]
)
def test_every_missing_name_has_a_reason(system, module):
    assert [n for n in missing(system, module) if reason(system, module, n) is None] == []


def test_modules_that_must_be_whole():
    whole = ["io", "recordio", "gluon.data", "gluon.data.vision", "gluon.data.vision.transforms"]
    assert all(not missing("mxnet", module) for module in whole)


def test_the_page_has_the_tables():
    assert PAGE.read_text().split(BEGIN)[1].split(END)[0] == tables()


def main():
    """Write the tables."""
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + tables() + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
