"""Conditions on records, as text: ``label < 10 and width >= 112``.

The text is parsed by Python's `ast` and never executed: only what is listed here has a meaning,
and it is worked out for many records at once, by NumPy.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import ExpressionError
from ..keywords.checks import did_you_mean

#: Characters, and depth of nesting, of what people write.
LONGEST, DEEPEST = 4096, 60
LARGEST_INTEGER = 2**64 - 1
#: Whole numbers up to here can be added and multiplied in 64 bits.
EASY_INTEGER = 2**31
#: Facts about a record, and the kind of their values.
NAMES = {
    "label": "a number",
    "class": "a number",
    "labels": "labels",
    "objects": "a number",
    "width": "a number",
    "height": "a number",
    "bytes": "a number",
    "format": "text",
    "decodable": "true or false",
    "id": "a number",
    "key": "a number",
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
#: Texts between quotation marks, and the word for which Python has another use.
CLASS = re.compile(r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|\bclass\b""", re.S)
BY_NAME = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
#: ``column(name, rows)``: facts about some records; of labels pairs of counts and values.
Columns = Callable[[str, np.ndarray], Any]


class Condition:
    """A condition on records.

    It has comparisons (also chained, and with ``in`` and ``not in``) of names, numbers, texts and
    arithmetic (``+ - * / // %``) of these, joined by ``and``, ``or`` and ``not``.  ``labels`` can
    be asked for a number of them, ``len(labels)``, and whether one of them is a number,
    ``3 in labels``.  ``class`` is another name of ``label``, and both, and ``labels``, may be
    compared with the name of a class by ``==``, ``!=``, ``in`` and ``not in``: `with_classes` gives
    the names, without which such a condition can be made but not called.  `names` are those that it
    asks about.  A text without meaning raises an ExpressionError that names the column.

    >>> condition = Condition("label in (1, 2) and not bytes > 100")
    >>> sorted(condition.names)
    ['bytes', 'label']
    >>> columns = {"label": np.array([1, 2, 3]), "bytes": np.array([50, 200, 50])}
    >>> condition(3, lambda name, rows: columns[name][rows]).tolist()
    [True, False, False]
    >>> dogs = Condition("class == 'dog'", {1: "cat", 2: "dog"})
    >>> dogs(3, lambda name, rows: columns[name][rows]).tolist()
    [False, True, False]
    >>> Condition("label == 3 or size > 4")
    Traceback (most recent call last):
        ...
    recordio.errors.ExpressionError: column 15: there is no name 'size': expected label, ...
    """

    def __init__(self, text: str, classes: Mapping[int, str] | None = None) -> None:
        if len(text) > LONGEST:
            raise ExpressionError(f"it has {len(text)} characters, more than {LONGEST}", column=1)
        try:
            # `class` becomes `label`, which is as long: columns stay what they are.
            words = CLASS.sub(lambda match: match[1] or "label", text.strip())
            self._tree = ast.parse(words or "?", mode="eval").body
        except SyntaxError as error:
            column = (error.offset or 1) + len(text) - len(text.lstrip())
            raise ExpressionError(f"{error.msg}: {text!r:.200}", column=column) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise ExpressionError(f"{error}: {text!r:.200}", column=1) from None
        self._text, self._indent = text, len(text) - len(text.lstrip())
        self._classes = classes
        self.names_classes: bool = False
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Compare):
                self._number_classes(node)
        self._names: set[str] = set()
        if (kind := self._check(self._tree, 0)) != "true or false":
            raise self._error(
                self._tree, f"it is {kind}: expected a condition, which is true or false"
            )
        self.names: frozenset[str] = frozenset(self._names)

    def __call__(self, count: int, column: Columns) -> np.ndarray:
        """Find out which of `count` records fulfil it: bool, (count,).

        ``column(name, rows)`` returns facts about records, and is asked only about records on which
        the condition still depends.  For ``labels`` it returns two arrays: how many each of them
        has, and all of these, one after the other.
        """
        if self.names_classes and self._classes is None:
            raise self._error(self._tree, "the names of the classes are not known")
        rows = np.arange(count)
        try:
            with np.errstate(all="ignore"):
                return np.array(np.broadcast_to(self._value(self._tree, rows, column), count), bool)
        except OverflowError:
            raise self._error(self._tree, "a number in it becomes too large") from None

    def _error(self, node: ast.AST, reason: str) -> ExpressionError:
        # The parser counts bytes of UTF-8.
        text = self._text[self._indent :].encode("utf-8", "surrogateescape")
        before = text[: getattr(node, "col_offset", 0)].decode("utf-8", "surrogateescape")
        column = self._indent + len(before) + 1
        return ExpressionError(f"{reason}: {self._text!r:.200}", column=column)

    # -- names of classes -------------------------------------------------------------------------

    def with_classes(self, classes: Mapping[int, str]) -> Condition:
        """Return the condition about classes with these names."""
        return Condition(self._text, classes)

    def _number_classes(self, node: ast.Compare) -> None:
        """Put numbers in the place of names of classes, where these are compared with labels."""
        sides = [node.left, *node.comparators]
        for position, op in enumerate(node.ops):
            for label_at, class_at in ((position, position + 1), (position + 1, position)):
                name = getattr(sides[label_at], "id", "")
                if isinstance(op, BY_NAME) and name in ("label", "labels"):
                    sides[class_at] = self._numbered(sides[class_at])
        node.left, *node.comparators = sides

    def _numbered(self, node: ast.expr) -> ast.expr:
        """Return the number of the class that a text names; other values stay."""
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            node.elts = [self._numbered(item) for item in node.elts]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            return ast.copy_location(ast.Constant(self._class_called(node, node.value)), node)
        return node

    def _class_called(self, node: ast.expr, name: str) -> int:
        self.names_classes = True
        if self._classes is None:
            return 0  # never looked at
        labels = [label for label, called in self._classes.items() if called == name]
        if len(labels) == 1:
            return labels[0]
        if labels:
            numbers = " and ".join(map(str, labels))
            raise self._error(node, f"the classes {numbers} are called {name!r}: use their numbers")
        if not self._classes:
            raise self._error(node, "the pack has no names of classes (PREFIX.classes.txt)")
        hint = did_you_mean(name, self._classes.values())
        text = f" ({hint})" if hint else ""
        raise self._error(node, f"no class is called {name!r}{text}")

    # -- kinds of values --------------------------------------------------------------------------

    def _check(self, node: ast.expr, depth: int) -> str:
        """Return the kind of value that an expression has."""
        if depth > DEEPEST:
            raise self._error(node, "it is nested too deeply")
        check = getattr(self, f"_check_{type(node).__name__.lower()}", None)
        if check is None:
            raise self._error(node, "this has no meaning here")
        return check(node, depth + 1)

    def _want(self, node: ast.expr, kind: str, depth: int) -> None:
        actual_kind = self._check(node, depth)
        if actual_kind != kind:
            raise self._error(node, f"this is {actual_kind} instead of {kind}")

    def _check_boolop(self, node: ast.BoolOp, depth: int) -> str:
        for value in node.values:
            self._want(value, "true or false", depth)
        return "true or false"

    def _check_unaryop(self, node: ast.UnaryOp, depth: int) -> str:
        if isinstance(node.op, ast.Invert):
            raise self._error(node, "~ has no meaning here")
        kind = "true or false" if isinstance(node.op, ast.Not) else "a number"
        self._want(node.operand, kind, depth)
        return kind

    def _check_binop(self, node: ast.BinOp, depth: int) -> str:
        if type(node.op) not in ARITHMETIC:
            raise self._error(node, "an operator has no meaning here")
        self._want(node.left, "a number", depth)
        self._want(node.right, "a number", depth)
        return "a number"

    def _check_compare(self, node: ast.Compare, depth: int) -> str:
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            kind = self._check(left, depth)
            if isinstance(op, (ast.In, ast.NotIn)):
                self._check_membership(kind, left, right, depth)
            elif type(op) not in COMPARISONS:
                raise self._error(left, "`is` has no meaning here: use ==")
            elif kind == "labels":
                raise self._error(
                    left, "a record may have several labels: use `in labels`, or label"
                )
            else:
                self._want(right, kind, depth)
                if kind != "a number" and not isinstance(op, (ast.Eq, ast.NotEq)):
                    raise self._error(left, f"this is {kind}, which has no order")
            left = right
        return "true or false"

    def _check_membership(self, kind: str, left: ast.expr, right: ast.expr, depth: int) -> None:
        if isinstance(right, (ast.Tuple, ast.List, ast.Set)):
            for item in right.elts:
                self._want(item, kind, depth)
        elif self._check(right, depth) != "labels" or kind != "a number":
            raise self._error(right, "`in` needs labels or a list of values")
        elif any(isinstance(part, ast.Name) for part in ast.walk(left)):
            raise self._error(left, "`in labels` needs one number")

    def _check_name(self, node: ast.Name, depth: int) -> str:
        if node.id not in NAMES:
            raise self._error(node, f"there is no name {node.id!r}: expected {', '.join(NAMES)}")
        self._names.add(node.id)
        return NAMES[node.id]

    def _check_constant(self, node: ast.Constant, depth: int) -> str:
        value = node.value
        if isinstance(value, bool):
            return "true or false"
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            raise self._error(node, "a number is too large")
        if isinstance(value, (int, float)):
            return "a number"
        if isinstance(value, str):
            return "text"
        raise self._error(node, "this has no meaning here")

    def _check_call(self, node: ast.Call, depth: int) -> str:
        function = node.func
        if not isinstance(function, ast.Name) or function.id not in ("len", "abs"):
            raise self._error(node, "only len(labels) and abs(a number) can be called")
        if len(node.args) != 1 or node.keywords:
            raise self._error(node, f"{function.id} takes one value")
        self._want(node.args[0], "labels" if function.id == "len" else "a number", depth)
        return "a number"

    # -- values -----------------------------------------------------------------------------------

    def _value(self, node: ast.expr, rows: np.ndarray, column: Columns) -> Any:
        """Work out an array with a value for each row, or one value for all."""
        return getattr(self, f"_value_{type(node).__name__.lower()}")(node, rows, column)

    def _value_constant(self, node: ast.Constant, rows: np.ndarray, column: Columns) -> Any:
        return node.value

    def _value_name(self, node: ast.Name, rows: np.ndarray, column: Columns) -> Any:
        return column(node.id, rows)

    def _value_boolop(self, node: ast.BoolOp, rows: np.ndarray, column: Columns) -> np.ndarray:
        """Work out the operands one after the other, each only where it still matters."""
        ends = isinstance(node.op, ast.Or)  # the value with which nothing matters any more
        result = np.full(len(rows), not ends)
        open_rows = np.arange(len(rows))
        for operand in node.values:
            value = np.broadcast_to(self._value(operand, rows[open_rows], column), open_rows.shape)
            result[open_rows] = value
            open_rows = open_rows[value != ends]
            if not len(open_rows):
                break
        return result

    def _value_unaryop(self, node: ast.UnaryOp, rows: np.ndarray, column: Columns) -> Any:
        value = self._value(node.operand, rows, column)
        if isinstance(node.op, ast.Not):
            return np.logical_not(value)
        return -_exact(value)[0] if isinstance(node.op, ast.USub) else value

    def _value_binop(self, node: ast.BinOp, rows: np.ndarray, column: Columns) -> Any:
        left, right = (self._value(part, rows, column) for part in (node.left, node.right))
        if isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)) and not np.all(right):
            raise self._error(node.right, "something is divided by this, which can be zero")
        return ARITHMETIC[type(node.op)](*_exact(left, right))

    def _value_compare(self, node: ast.Compare, rows: np.ndarray, column: Columns) -> np.ndarray:
        result = np.ones(len(rows), bool)
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, (ast.In, ast.NotIn)):
                is_member = self._contains(left, right, rows, column)
                result &= np.logical_not(is_member) if isinstance(op, ast.NotIn) else is_member
            else:
                pair = (self._value(part, rows, column) for part in (left, right))
                result &= COMPARISONS[type(op)](*pair)
            left = right
        return result

    def _contains(
        self, left: ast.expr, right: ast.expr, rows: np.ndarray, column: Columns
    ) -> np.ndarray:
        value = self._value(left, rows, column)
        if isinstance(right, ast.Name):
            counts, labels = column("labels", rows)
            owners = np.repeat(np.arange(len(rows)), counts)
            return np.bincount(owners[labels == value], minlength=len(rows)) > 0
        is_member = np.zeros(len(rows), bool)
        for item in right.elts:  # type: ignore[attr-defined]
            is_member |= value == self._value(item, rows, column)
        return is_member

    def _value_call(self, node: ast.Call, rows: np.ndarray, column: Columns) -> Any:
        value = self._value(node.args[0], rows, column)
        return value[0] if isinstance(value, tuple) else abs(_exact(value)[0])


def _exact(*values: Any) -> list[Any]:
    """Make numbers whose arithmetic neither wraps nor rounds; large whole ones become Python's."""
    arrays = [np.asarray(value) for value in values]
    whole = [array for array in arrays if array.dtype.kind in "iuO"]
    easy = all(np.all((array >= -EASY_INTEGER) & (array <= EASY_INTEGER)) for array in whole)
    kind = np.int64 if easy else object
    return [array.astype(kind)[()] if array.dtype.kind in "iu" else array[()] for array in arrays]
