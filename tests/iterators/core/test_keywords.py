"""`iterators/core/keywords.py` and `pack_keywords.py`, for editors, say what the options say.

``python tests/iterators/core/test_keywords.py`` writes them.
"""

import inspect
from dataclasses import MISSING, fields
from itertools import chain
from pathlib import Path

import pytest

from iterators.core import dtypes
from iterators.datasets.augmented import AugmentedDataset, AugmentedDatasetOptions
from iterators.datasets.records import (
    ImageRecordDataset,
    ImageRecordDatasetOptions,
    RecordDataset,
    RecordDatasetOptions,
)
from iterators.images.augment.augmenter import AugmenterOptions
from iterators.images.augment.det_recipe import DetRecipe
from iterators.images.augment.recipe import Recipe, image_shape
from iterators.images.examples import ExampleOptions, SeededRecipeOptions
from iterators.images.sources.mixed_packs import AUGMENTATION_FAMILIES, PackOptions
from iterators.mx_image.create import CreateAugmenter, CreateDetAugmenter, DetAugmenterOptions
from iterators.mx_image.det_iter import ImageDetIter
from iterators.providers.arrays import ArrayDataProvider, ArrayOptions, NDArrayIter, NDArrayOptions
from iterators.providers.csv import CSVIter, CSVOptions
from iterators.providers.image_det_record import ImageDetRecordIter
from iterators.providers.image_iter import ImageIter
from iterators.providers.image_options import (
    ImageClassIterOptions,
    ImageClassOptions,
    ImageDetIterOptions,
    ImageDetOptions,
)
from iterators.providers.image_record import ImageRecordIter
from iterators.providers.libsvm import LibSVMIter, LibSVMOptions
from iterators.providers.mix_batches import MixBatches, MixOptions
from iterators.providers.mnist import MNISTIter, MNISTOptions
from iterators.providers.protobuf import ProtobufOptions, ProtobufRecordIter
from recordio.keywords.checks import boolean, choice, integers, path, paths
from recordio.keywords.options import Options

FILE = Path(inspect.getfile(dtypes)).with_name("keywords.py")
PACK_FILE = FILE.with_name("pack_keywords.py")
PROVIDERS = {
    RecordDataset: (RecordDatasetOptions,),
    ArrayDataProvider: (ArrayOptions,),
    CSVIter: (CSVOptions,),
    ImageDetRecordIter: (ImageDetOptions, DetRecipe),
    ImageIter: (ImageClassIterOptions, AugmenterOptions),
    ImageDetIter: (ImageDetIterOptions, DetAugmenterOptions),
    ImageRecordIter: (ImageClassOptions, Recipe),
    LibSVMIter: (LibSVMOptions,),
    MixBatches: (MixOptions,),
    MNISTIter: (MNISTOptions,),
    NDArrayIter: (NDArrayOptions,),
    ProtobufRecordIter: (ProtobufOptions,),
}
#: What takes those of augmentation as well, where nothing is required of them.
AUGMENTING = {
    AugmentedDataset: (AugmentedDatasetOptions, ExampleOptions, Recipe),
    ImageRecordDataset: (ImageRecordDatasetOptions, SeededRecipeOptions, Recipe),
}
FAMILIES = {
    **PROVIDERS,
    CreateAugmenter: (AugmenterOptions,),
    CreateDetAugmenter: (DetAugmenterOptions,),
}
HEAD = '''"""Keywords of providers and data sets for type checkers, by test_keywords.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import DTypeLike

Path = str | os.PathLike[str]
'''
PACK_HEAD = '''"""The keywords of `Pack` as type checkers and editors read them.

Written by ``python tests/iterators/core/test_keywords.py`` from the options, which say more
about each; nothing imports this at run time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict
'''
#: What may be passed where the option itself has another type.
ACCEPTED = {
    path: "str | os.PathLike[str] | None",
    paths: "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None",
    integers: "Sequence[int]",
    boolean: "bool",
    choice: "str",
    image_shape: "Sequence[int | None] | Sequence[Sequence[int]] | None",
}


def accepted(item):
    check = item.metadata.get("check")
    return ACCEPTED.get(getattr(check, "func", check), item.type)


def name_of(family):
    """Of the dictionary of a family of options."""
    return family.__name__.removesuffix("Options") + "Keywords"


def dictionary(name, bases, items, what):
    bases = ", ".join([*(bases or ["TypedDict"]), "total=False"])
    head = f"class {name}({bases}):"
    head = head if len(head) <= 100 else f"class {name}(\n    {bases}\n):"
    text = f'\n\n{head}\n    """{what}"""\n'
    return text + "\n" * bool(items) + "".join(f"    {i.name}: {accepted(i)}\n" for i in items)


def of_family(family, known):
    """The dictionaries of a family and of those that it adds to, as far as they are not `known`."""
    if family in known:
        return ""
    bases = [base for base in family.__bases__ if base is not Options]
    text = "".join(of_family(base, known) for base in bases)
    inherited = {item.name for base in bases for item in fields(base)}
    own = [item for item in fields(family) if item.name not in inherited]
    names = [name_of(base) for base in bases]
    takers = [PackOptions, *chain(*PROVIDERS.values(), *AUGMENTING.values())]
    positional = {
        name for other in takers if issubclass(other, family) for name in other.positional.split()
    }
    needed = [i for i in own if i.default is MISSING and i.name not in positional]
    if needed:
        names = [f"_{name_of(family)}", *names]
        text += f"\n\nclass {names[0]}(TypedDict):\n"
        text += "".join(f"    {item.name}: {accepted(item)}\n" for item in needed)
    known.add(family)
    own = [item for item in own if item not in needed]
    return text + dictionary(name_of(family), names, own, f"Of `{family.__name__}`.")


def needing_nothing(family, known):
    """The name of a dictionary of a family in which nothing is required, and its text."""
    if not any(item.default is MISSING for item in fields(family)):
        return name_of(family), of_family(family, known)
    name, bases, text = f"Some{name_of(family)}", [], ""
    for base in family.__bases__:
        if base is not Options:
            inner, more = needing_nothing(base, known)
            bases, text = [*bases, inner], text + more
    if name in known:
        return name, text
    known.add(name)
    inherited = {item.name for base in family.__bases__ for item in fields(base)}
    own = [item for item in fields(family) if item.name not in inherited]
    what = f"Of `{family.__name__}`, none of them required."
    return name, text + dictionary(name, bases, own, what)


def written():
    text, known = HEAD, set()
    for taker, families in PROVIDERS.items():
        text += "".join(of_family(family, known) for family in families)
        if len(families) > 1:
            names = [name_of(family) for family in families]
            text += dictionary(f"{taker.__name__}Parameters", names, [], f"Of `{taker.__name__}`.")
    for taker, (own, *families) in AUGMENTING.items():
        text, names = text + of_family(own, known), [name_of(own)]
        for family in families:
            name, more = needing_nothing(family, known)
            names, text = [*names, name], text + more
        text += dictionary(f"{taker.__name__}Parameters", names, [], f"Of `{taker.__name__}`.")
    return text


def written_of_packs():
    """The dictionary of `Pack`, whose augmentation is that of any iterator."""
    found = {}
    for family in AUGMENTATION_FAMILIES:
        for item in fields(family):
            found.setdefault(item.name, []).append(accepted(item))
    text = PACK_HEAD + of_family(PackOptions, set())
    text += dictionary("PackParameters", [name_of(PackOptions)], [], "Of `Pack`.") + "\n"
    for name, types in found.items():
        kinds = dict.fromkeys(kind for accepted in types for kind in accepted.split(" | "))
        text += f"    {name}: {'Any' if 'Any' in kinds else ' | '.join(kinds)}\n"
    return text


def test_the_files_say_what_the_options_say():
    assert FILE.read_text() == written()
    assert PACK_FILE.read_text() == written_of_packs()


@pytest.mark.parametrize("taker", FAMILIES)
def test_signatures_and_docstrings_name_every_keyword(taker):
    names = {item.name for family in FAMILIES[taker] for item in fields(family)}
    signature = inspect.signature(taker)
    assert set(signature.parameters) == names
    described = inspect.getdoc(taker).split("Parameters\n----------\n")[1].split("\n\n")[0]
    found = {
        name.strip()
        for line in described.splitlines()
        if not line.startswith(" ")
        for name in line.split(" : ")[0].split(",")
    }
    assert found == names
    assert "{parameters}" not in inspect.getdoc(taker)


if __name__ == "__main__":
    FILE.write_text(written())
    PACK_FILE.write_text(written_of_packs())
