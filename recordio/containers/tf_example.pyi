from collections.abc import Collection

import numpy as np
from typing_extensions import Buffer

__all__ = [
    "BOX_KEYS",
    "CUT",
    "DAMAGED",
    "NO_LABEL",
    "ODD",
    "PLAIN",
    "decode_example",
    "find_examples",
]

BOX_KEYS: tuple[str, ...]
PLAIN: int
NO_LABEL: int
ODD: int
CUT: int
DAMAGED: int
REASONS: dict[int, str]

def find_examples(
    view: Buffer,
    at: int,
    end: int,
    spans: np.ndarray,
    labels: np.ndarray,
    kinds: np.ndarray,
    contents: tuple[bytes, ...],
    names: tuple[bytes, ...],
    boxes_first: bool = False,
) -> tuple[int, int, int]: ...
def decode_example(
    data: Buffer, names: Collection[str] | None = None
) -> dict[str, list[bytes] | list[float] | list[int]]: ...
