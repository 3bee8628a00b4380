from collections.abc import Collection

import numpy as np
from typing_extensions import Buffer

__all__ = [
    "BOX_KEYS",
    "CONTENTS",
    "CUT",
    "DAMAGED",
    "LABELS",
    "NO_LABEL",
    "ODD",
    "PLAIN",
    "decode_example",
    "find_examples",
]

CONTENTS: tuple[str, ...]
LABELS: tuple[str, ...]
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
    feature: bytes | None = None,
) -> tuple[int, int, int]: ...
def decode_example(
    data: Buffer, wanted: Collection[str] | None = None
) -> dict[str, list[bytes] | list[float] | list[int]]: ...
