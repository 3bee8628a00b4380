"""Numbers and truth values in files of other programs, read by the same rules in all files.

JSON, XML, tables and lists hold the same number as ``12``, ``12.0``, ``"12"`` or ``1.2e+01``, and
the same truth as ``false``, ``0``, ``"False"`` or nothing at all.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

#: Texts that say no, in lower case; "unspecified" is what VOC's own files write.
NO = frozenset(["", "0", "false", "no", "n", "f", "none", "null", "nan", "unspecified", "-"])
#: No longer texts are taken for numbers; Python refuses longer ones with an error of its own.
LONGEST = 400


def number(value: Any) -> float | int | None:
    """Read a finite number in any form, whole if it can be; None of anything else.

    A whole number keeps all of its digits.  Booleans are no numbers.

    >>> [number(value) for value in (12, "12.0", " 1.5 ", "1e3", "nan", True, "", "1_0", None)]
    [12, 12, 1.5, 1000, None, None, None, None, None]
    """
    if type(value) is float and math.isfinite(value) and not value.is_integer():
        return value  # as most are in the outlines of a large file
    if isinstance(value, (bytes, bytearray)):
        value = value.decode("ascii", "replace")
    if isinstance(value, str):
        value = value.strip()
        if len(value) > LONGEST or "_" in value:
            return None
        try:
            return int(value)
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    result = float(value)
    if not math.isfinite(result):
        return None
    return int(result) if result.is_integer() else result


def whole_number(value: Any) -> int | None:
    """Read a whole number in any form; None of anything else.

    >>> [whole_number(value) for value in ("000012", 12.0, "1.000e+00", 1.5, "cat", False)]
    [12, 12, 1, None, None, None]
    """
    result = number(value)
    return result if isinstance(result, int) else None


def is_true(value: Any) -> bool:
    """Tell whether a value says yes; nothing, zero in any form and words for no do not.

    >>> [is_true(value) for value in (1, "1", "True", 0, "0.0", "False", None, "Unspecified", "")]
    [True, True, True, False, False, False, False, False, False]
    """
    if value is None or isinstance(value, bool):
        return bool(value)
    text = str(value).strip().lower()
    return text not in NO and number(text) != 0
