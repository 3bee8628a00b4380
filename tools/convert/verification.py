"""Verification sets of face recognition (``lfw.bin``): two records after each other are a pair."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from recordio.errors import RecordIOError
from recordio.verification import VerificationSet

from ..image_list import Skipped
from ..payloads import check_content
from .folders import CheckOptions
from .format import Import, ImportSource, Item, Items


@dataclass(frozen=True, kw_only=True)
class BinOptions(CheckOptions):
    """Options of from-bin."""


def open_bin(settings: argparse.Namespace) -> ImportSource:
    """Read the pairs; images stay in the file until their record is written."""
    pairs = VerificationSet(settings.source)
    return ImportSource(read_items(pairs, settings.check), len(pairs.images))


def read_items(pairs: VerificationSet, check: str) -> Items:
    """Yield an item for each image, with what is said of its pair as its label.

    A pair whose images are not both sound is left out as a whole.
    """
    for pair, same in enumerate(pairs.same.tolist()):
        contents, wrong = [], ""
        for number in (2 * pair, 2 * pair + 1):
            content = pairs.images[number]
            try:
                if check == "header":
                    check_content(content)
            except RecordIOError as error:
                wrong = wrong or f"image {number}: {error.reason}"
            contents.append(content)
        for number, content in enumerate(contents, start=2 * pair):
            if wrong:
                yield Skipped(f"{pairs.path}, image {number}", f"pair {pair} is left out: {wrong}")
            else:
                yield Item([float(same)], content)


FROM_BIN = Import(
    "bin",
    "a verification set of face recognition, such as lfw.bin",
    [("source", "the set: a pickle of images and pairs, which is read and never run", False)],
    open_bin,
    BinOptions,
    """Each image becomes an image record, untouched. The records with keys 2 i and 2 i + 1 are
    pair i, and the label of both is 1 if they show one person, else 0.""",
    example=""">>> import pickle, numpy as np
>>> image = recordio.encode_image(np.zeros((4, 6, 3), np.uint8), "png")
>>> _ = (folder / "lfw.bin").write_bytes(pickle.dumps(([image] * 4, [True, False])))
>>> recordio.convert.from_bin(folder / "lfw.bin", folder / "lfw").records
4""",
)
