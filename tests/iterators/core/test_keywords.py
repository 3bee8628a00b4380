"""`iterators/core/keywords.py` and `pack_keywords.py`, for editors, say what the options say.

``python tests/iterators/core/test_keywords.py`` writes them.
"""

import inspect
from dataclasses import MISSING, fields
from itertools import chain
from pathlib import Path

import pytest

from iterators.core import dtypes, keywords
from iterators.datasets.augmented import AugmentedDataset, AugmentedDatasetOptions
from iterators.datasets.records import (
    ImageRecordDataset,
    ImageRecordDatasetOptions,
    RecordDataset,
    RecordDatasetOptions,
)
from iterators.datasets.verification import VerificationPairs, VerificationPairsOptions
from iterators.images.augment.augmenter import AugmenterOptions
from iterators.images.augment.det_recipe import DetRecipe
from iterators.images.augment.named_recipes import NamedRecipeOptions
from iterators.images.augment.recipe import Recipe, image_shape
from iterators.images.examples import ExampleOptions, SeededRecipeOptions
from iterators.images.sources.mixed_packs import AUGMENTATION_FAMILIES, PackOptions
from iterators.mx_image.create import CreateAugmenter, CreateDetAugmenter, DetAugmenterOptions
from iterators.mx_image.det_iter import ImageDetIter
from iterators.mx_image.image_iter import ImageIter
from iterators.providers.arrays import ArrayDataProvider, ArrayOptions, NDArrayIter, NDArrayOptions
from iterators.providers.csv import CSVIter, CSVOptions
from iterators.providers.image_det_record import ImageDetRecordIter
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
from iterators.providers.provider_options import evenness
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
    VerificationPairs: (VerificationPairsOptions,),
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
from typing import Any, Literal, Required, TypedDict

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
    evenness: 'bool | Literal["balanced"]',
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


def kinds_of(family):
    """The family and those that it adds to."""
    return [kind for kind in family.__mro__ if issubclass(kind, Options) and kind is not Options]


def own_of(family):
    """The options of a family that it adds to others, except those that a taker needs.

    They have no default and are not given by position: the dictionary of the taker has them, since
    another taker may do without.
    """
    others = {i.name for base in family.__bases__ if base is not Options for i in fields(base)}
    return [
        item
        for item in fields(family)
        if item.name not in others
        and (item.default is not MISSING or item.name in family.positional.split())
    ]


def of_family(family, known):
    """The dictionaries of a family and of those that it adds to, as far as they are not `known`."""
    if family in known:
        return ""
    known.add(family)
    bases = [base for base in family.__bases__ if base is not Options]
    text = "".join(of_family(base, known) for base in bases)
    names = [name_of(base) for base in bases]
    return text + dictionary(name_of(family), names, own_of(family), f"Of `{family.__name__}`.")


def of_taker(taker, families):
    """The dictionary of a taker: those of its families, and what no family has; else nothing."""
    kinds = [kind for family in families for kind in kinds_of(family)]
    kept = {item.name for kind in kinds for item in own_of(kind)}
    left = {i.name: i for family in families for i in fields(family) if i.name not in kept}
    if len(families) == 1 and not left:
        return ""
    names = [name_of(family) for family in families]
    text = dictionary(f"{taker.__name__}Parameters", names, [], f"Of `{taker.__name__}`.")
    text += "\n" * bool(left)
    free = {name for family in families for name in family.positional.split()}
    if NamedRecipeOptions in kinds:
        free.add("data_shape")  # the recipe may have it
    for name, item in left.items():
        kind = accepted(item)
        is_free = taker in AUGMENTING or name in free
        text += f"    {name}: {kind if is_free else f'Required[{kind}]'}\n"
    return text


def written():
    text, known = HEAD, set()
    for taker, families in chain(PROVIDERS.items(), AUGMENTING.items()):
        text += "".join(of_family(family, known) for family in families)
        text += of_taker(taker, families)
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


@pytest.mark.parametrize("taker", [*PROVIDERS, *AUGMENTING])
def test_the_dictionary_of_a_taker_has_all_of_its_keywords(taker):
    families = PROVIDERS.get(taker, AUGMENTING.get(taker))
    name = f"{taker.__name__}Parameters"
    found = getattr(keywords, name, None) or getattr(keywords, name_of(families[0]))
    assert set(found.__annotations__) == {item.name for one in families for item in fields(one)}


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
