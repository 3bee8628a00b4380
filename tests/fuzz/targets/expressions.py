"""Conditions on records: text that is parsed by Python and given a meaning by us."""

from __future__ import annotations

import random

import numpy as np

from recordio import ExpressionError
from recordio.operations.expression import NAMES, Condition

from .mutate import EDGES
from .target import Target

#: What is known of four records, edges included.
KNOWN = {
    "label": np.array([0, 1, -2.5, np.nan], np.float32),
    "objects": np.array([0, 1, 2, 0]),
    "width": np.array([10.0, 20, np.nan, 40]),
    "height": np.array([40.0, 30, np.nan, 10]),
    "bytes": np.array([5, 6, 7, 2**29 - 1], np.uint32),
    "format": np.array(["jpeg", "png", "other", "jpeg"]),
    "decodable": np.array([True, True, False, False]),
    "id": np.array([0, 5, 2**53 + 1, 2**64 - 1], np.uint64),
    "key": np.array([-1, 0, 1, 2**63 - 1]),
}
LABELS = [[7], [1, 2], [], [3, 7, 2]]
COUNT = len(LABELS)
WORDS = (
    *(name.encode() for name in NAMES),
    *b"and|or|not|in|not in|is|if|else|lambda|len(|abs(|(|)|[|]|{|}|'jpeg'|True|None".split(b"|"),
    *b"+|-|*|/|//|%|**|==|!=|<|<=|>|>=|~|:=|.|,|;|#|\\|\n|\t|0x|1e999|1_0|1j|\xc3\xa4|\0".split(b"|"),
    *(b"%d" % number for number in EDGES),
)  # fmt: skip


def column(name: str, rows: np.ndarray) -> object:
    """What is known of some records."""
    if name != "labels":
        return KNOWN[name][rows]
    chosen = [LABELS[row] for row in rows.tolist()]
    counts = np.array([len(values) for values in chosen], np.int64)
    return counts, np.array(sum(chosen, []), np.float32)


def outcome(condition: Condition, rows: list[int]) -> list[bool] | None:
    """Which of some records fulfil it; None if it cannot be worked out for them."""
    every = np.array(rows, np.int64)
    try:
        result = condition(len(rows), lambda name, some: column(name, every[some]))
    except ExpressionError as error:
        assert error.column is not None
        return None
    assert result.shape == (len(rows),) and result.dtype == np.bool_
    return result.tolist()


def check(data: bytes) -> None:
    """A record fulfils a condition or not, whatever other records are asked about with it."""
    condition = Condition(data.decode("utf-8", "surrogateescape"))
    assert condition.names <= set(NAMES)
    together = outcome(condition, list(range(COUNT)))
    alone = [outcome(condition, [row]) for row in range(COUNT)]
    if together is None:
        assert None in alone
    else:
        assert alone == [[value] for value in together], (together, alone)
    assert outcome(condition, []) in ([], None)


def change(data: bytes, draw: random.Random) -> bytes:
    """A word gone, another, or more; or a part in parentheses."""
    words = data.split(b" ")
    at = draw.randrange(len(words))
    kind = draw.randrange(5)
    if kind == 0:
        del words[at]
    elif kind == 1:
        words[at] = draw.choice(WORDS)
    elif kind == 2:
        words.insert(at, draw.choice(WORDS))
    elif kind == 3:
        end = draw.randrange(at, len(words)) + 1
        words[at:end] = [b"(", *words[at:end], b")"]
    else:
        joint = draw.choice([b" and ", b" or ", b" + ", b" == ", b" in ", b" not in "])
        return data + joint + data[: draw.randrange(len(data) + 1)]
    return b" ".join(words)


EXPRESSIONS = Target("expressions", check, change, words=WORDS, errors=(ExpressionError,))
