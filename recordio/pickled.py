"""Pickles as data: the content of a file, while nothing that it names is run or imported.

A few known data sets are distributed as pickles of lists, texts, numbers and NumPy's arrays.  Only
the opcodes of these are understood, and calls are kept as a name with its arguments.
"""

from __future__ import annotations

import codecs
import math
import pickletools
import re
import struct
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from recordio.errors import RecordIOError

#: Opcodes of a pickle at most: so many in any case, and one for so many bytes of a larger file.
#: Each makes an object, so that a file cannot take many times its own size.
FEWEST_OPCODES, BYTES_FOR_OPCODE = 1 << 16, 8
LARGEST_INTEGER = 8
#: A number in a line of text; strings in lines may be as long as the file.
LONGEST_NUMBER = 24
PROTOCOL = 5
#: Texts so short are copied: names of fields among them, which are looked up.
SHORT = 255

#: What such files name, by module: functions and types whose arguments are the data themselves.
#: NumPy's modules had other names before its version 2.
NAMES = {
    ("_codecs", "encode"): "encode",
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
} | {
    (f"numpy.{core}.{module}", name): name.strip("_")
    for core in ("core", "_core")
    for module, names in (("multiarray", ("_reconstruct", "scalar")), ("numeric", ("_frombuffer",)))
    for name in names
}
#: Names of types of numbers as `numpy.dtype` is called with them.
TYPE = re.compile("[biuf][1248]|bool|u?int(8|16|32|64)|float(32|64)")
#: A text as Python 2 shows it.
ESCAPED = r"""\\(?:[\\'"nrt]|x[0-9a-fA-F]{2})"""
LITERAL = re.compile(rf"""'(?:[^\\']|{ESCAPED})*+'|"(?:[^\\"]|{ESCAPED})*+\"""".encode())
MARK = object()


class Name:
    """Name of a function or type in a pickle."""

    def __init__(self, name: str) -> None:
        self.name = name


class Call:
    """Call in a pickle that was not made: the name, its arguments, and the state set afterwards."""

    def __init__(self, name: str, arguments: tuple[Any, ...]) -> None:
        self.name, self.arguments = name, arguments
        self.state: Any = None


def is_pickle(start: bytes) -> bool:
    """Tell whether a file whose first bytes these are is a pickle; no record file begins so.

    >>> import pickle
    >>> is_pickle(pickle.dumps(([], []))), is_pickle(pickle.dumps(([], []), 0))
    (True, True)
    """
    if start[:1] == b"\x80":
        return 2 <= start[1] <= PROTOCOL if len(start) > 1 else False
    return start.startswith((b"(]", b"((l"))  # a tuple that begins with a list


def read_pickle(data: memoryview, path: str, kind: type[RecordIOError] = RecordIOError) -> Any:
    """Read the one object of a pickle.

    Texts of bytes, Python 2's among them, are views of `data`, short ones bytes.  Errors are of a
    `kind`, with the position and the opcode.

    >>> import pickle
    >>> read_pickle(memoryview(pickle.dumps(["a", 7, {b"b": None}])), "a.pkl")
    ['a', 7, {b'b': None}]
    """
    return _Reading(data, path, kind).run()


def bytes_of(value: Any) -> bytes:
    """Return the bytes of a text, as Python 2 or 3 wrote it, or of an array of bytes.

    A ValueError says what else it is.
    """
    if isinstance(value, Call) and value.name == "encode":  # as protocols 0 to 2 of Python 3 write
        if len(value.arguments) != 2 or value.arguments[1] not in ("latin1", "latin-1"):
            raise ValueError("a text in another encoding than latin1")
        value = value.arguments[0]
    if isinstance(value, str):
        return value.encode("latin-1")
    if isinstance(value, (bytes, memoryview)):
        return bytes(value)
    array = array_of(value)
    if array.dtype != np.uint8 or array.ndim == 0 or array.shape[0] != array.size:
        raise ValueError(f"an array of {array.dtype} of shape {array.shape}, not of bytes")
    return array.tobytes()


def array_of(value: Any) -> np.ndarray[Any, Any]:
    """Return the array of numbers that NumPy would make; a view of the file, and read-only.

    A ValueError says what else it is.
    """
    if not isinstance(value, Call):
        raise ValueError(f"a {type(value).__name__}, no array")
    shape: Any = ()
    try:
        if value.name == "scalar":
            kind, stored = value.arguments
            order = "C"
        elif value.name == "frombuffer":  # since protocol 5
            stored, kind, shape, order = value.arguments
        elif value.name == "reconstruct" and value.state is not None:
            _, shape, kind, fortran, stored = value.state
            order = "F" if fortran else "C"
        else:
            raise ValueError("no array")
        dtype = _dtype_of(kind)
        stored = stored if isinstance(stored, memoryview) else bytes_of(stored)
        if order not in ("C", "F") or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"an array of shape {shape!r} in the order {order!r}")
        if len(shape) > 8 or math.prod(shape) * dtype.itemsize != len(stored):
            raise ValueError(f"{len(stored)} bytes for an array of {dtype} of shape {shape}")
        return np.frombuffer(stored, dtype).reshape(tuple(shape), order=cast("Any", order))
    except (TypeError, LookupError):
        raise ValueError("no array of numbers") from None


def _dtype_of(call: Any) -> np.dtype[Any]:
    if not isinstance(call, Call) or call.name != "dtype" or not call.arguments:
        raise ValueError("an array without a type")
    name = call.arguments[0]
    name = name if isinstance(name, str) else bytes_of(name).decode("latin-1")
    if not TYPE.fullmatch(name):
        raise ValueError(f"an array of {name[:20]!r}, not of numbers")
    order = "|"
    if call.state is not None:
        order = call.state[1]
        order = order if isinstance(order, str) else bytes_of(order).decode("latin-1")
    if order not in ("|", "<", ">", "="):
        raise ValueError(f"an array in the byte order {order[:20]!r}")
    return np.dtype(name).newbyteorder(cast("Any", order))


class _Reading:
    """One pickle while it is read."""

    def __init__(self, data: memoryview, path: str, kind: type[RecordIOError]) -> None:
        self.data, self.path, self.kind = data, path, kind
        self.position = self.start = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        most = max(FEWEST_OPCODES, len(self.data) // BYTES_FOR_OPCODE)
        for _ in range(most):
            self.start = self.position
            code = self.take(1)
            if code == b".":
                break
            step = STEPS.get(bytes(code))
            if step is None:
                raise self.error("is none that a set of images or numbers needs; nothing is run")
            try:
                step(self)
            except RecordIOError:
                raise
            except (ValueError, TypeError, LookupError, struct.error, AttributeError) as error:
                raise self.error(f"does not fit what is before it ({error})") from None
        else:
            raise self.error(f"is number {most + 1}: too many for {len(self.data)} bytes")
        if len(self.stack) != 1 or self.stack[0] is MARK:
            raise self.error(f"ends the pickle with {len(self.stack)} objects instead of one")
        if self.position != len(self.data):
            behind = len(self.data) - self.position
            raise self.error(f"ends the pickle, and {behind} bytes are behind it")
        return self.stack[0]

    def error(self, reason: str) -> RecordIOError:
        """Make an error for the opcode that is being read."""
        code = chr(self.data[self.start])
        opcode = {item.code: item for item in pickletools.opcodes}.get(code)
        name = "opcode " + (opcode.name if opcode else repr(code))
        return self.kind(f"{name} {reason}", path=self.path, offset=self.start)

    def take(self, count: int) -> memoryview:
        """Return the next bytes as a view."""
        end = self.position + count
        if end > len(self.data):
            raise self.kind(
                f"the file ends within the pickle: {count} bytes are expected here, and "
                f"{len(self.data) - self.position} follow; copy it again",
                path=self.path,
                offset=self.position,
            )
        self.position, start = end, self.position
        return self.data[start:end]

    def number(self, form: str) -> int:
        """Read a number in a form of `struct`."""
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return value

    def line(self, limit: int | None = None) -> bytes:
        """Read a line of text, without its end."""
        length, step = 0, 1 << 8
        while True:
            piece = bytes(self.data[self.position + length : self.position + length + step])
            end = piece.find(b"\n")
            if end >= 0:
                length += end
                break
            length += len(piece)
            if not piece:
                self.take(length + 1)  # the file ends
            step *= 2
        if limit is not None and length > limit:
            raise ValueError(f"a number of {length} characters")
        line = bytes(self.take(length))
        self.take(1)
        return line

    def text(self, form: str) -> None:
        """Read bytes behind their length."""
        length = self.number(form)
        if length < 0:
            raise ValueError(f"{length} bytes")
        view = self.take(length)
        self.stack.append(bytes(view) if length <= SHORT else view)

    def unicode(self, form: str) -> None:
        self.stack.append(str(self.take(self.number(form)), "utf-8", "surrogatepass"))

    def pop(self) -> Any:
        """Return the last object."""
        value = self.stack.pop()
        if value is MARK:
            raise ValueError("a mark is no object")
        return value

    def last(self, kind: type) -> Any:
        """Return the last object without removing it."""
        if type(self.stack[-1]) is not kind:
            raise ValueError(f"a {type(self.stack[-1]).__name__} is no {kind.__name__}")
        return self.stack[-1]

    def marked(self) -> list[Any]:
        """Return the objects behind the last mark."""
        place = len(self.stack) - 1
        while self.stack[place] is not MARK:
            place -= 1
            if place < 0:
                raise ValueError("there is no mark")
        objects = self.stack[place + 1 :]
        del self.stack[place:]
        return objects

    def some(self, count: int) -> tuple[Any, ...]:
        """Return the last objects."""
        return tuple(self.pop() for _ in range(count))[::-1]

    def integer(self, text: bytes) -> None:
        """Read a number as text; 00 and 01 stand for truths."""
        self.stack.append(text == b"01" if text in (b"00", b"01") else int(text))

    def extend(self, items: list[Any]) -> None:
        self.last(list).extend(items)

    def dictionary(self, items: list[Any]) -> None:
        self.stack.append({})
        self.fill(items)

    def fill(self, items: list[Any]) -> None:
        """Put names and values into a dictionary."""
        texts = (memoryview, Call)
        names = [bytes_of(name) if isinstance(name, texts) else name for name in items[::2]]
        if any(type(name) not in (bytes, str, int) for name in names):
            raise ValueError("a key is no text")
        self.last(dict).update(zip(names, items[1::2], strict=True))

    def keep(self, place: int) -> None:
        if self.stack[-1] is MARK:
            raise ValueError("a mark is no object")
        self.memo[place] = self.stack[-1]

    def name(self, module: Any, name: Any) -> None:
        """Keep a name, if it is one of those that data need."""
        module, name = (str(bytes_of(part), "latin-1")[:80] for part in (module, name))
        own_name = NAMES.get((module, name))
        if own_name is None:
            raise self.error(f"names {module}.{name}, which is refused; nothing is run")
        self.stack.append(Name(own_name))

    def call(self) -> None:
        arguments, name = self.pop(), self.pop()
        if type(name) is not Name or type(arguments) is not tuple:
            raise ValueError("no call")
        self.stack.append(Call(name.name, arguments))

    def build(self) -> None:
        state, call = self.pop(), self.last(Call)
        if type(state) is not tuple:
            raise ValueError("a state that is no tuple")
        call.state = state

    def frame(self) -> None:
        length, position = self.number("<Q"), self.position
        if length > len(self.data) - position:
            self.take(length)  # the file ends

    def protocol(self) -> None:
        version = self.number("B")
        if version > PROTOCOL:
            raise self.error(f"says protocol {version}, and those up to {PROTOCOL} are known")

    def literal(self) -> None:
        """Read a text of Python 2 as its source shows it."""
        line = self.line().strip()
        if not LITERAL.fullmatch(line):
            raise ValueError("a text that is not as Python 2 shows it")
        self.stack.append(codecs.escape_decode(line[1:-1])[0])


def _pushed(value: Any) -> Callable[[_Reading], None]:
    return lambda reading: reading.stack.append(value)


def _tuple(count: int) -> Callable[[_Reading], None]:
    return lambda reading: reading.stack.append(reading.some(count))


def _long(reading: _Reading) -> None:
    length = reading.number("B")
    if length > LARGEST_INTEGER:
        raise ValueError(f"a number of {length} bytes")
    reading.stack.append(int.from_bytes(reading.take(length), "little", signed=True))


#: The opcodes that are understood.  All others, which make objects, are not.
STEPS: dict[bytes, Callable[[_Reading], Any]] = {
    b"\x80": _Reading.protocol,
    b"\x95": _Reading.frame,
    b"(": _pushed(MARK),
    b"]": lambda reading: reading.stack.append([]),
    b"}": lambda reading: reading.stack.append({}),
    b")": _pushed(()),
    b"d": lambda reading: reading.dictionary(reading.marked()),
    b"l": lambda reading: reading.stack.append(reading.marked()),
    b"t": lambda reading: reading.stack.append(tuple(reading.marked())),
    b"\x85": _tuple(1),
    b"\x86": _tuple(2),
    b"\x87": _tuple(3),
    b"a": lambda reading: reading.extend([reading.pop()]),
    b"e": lambda reading: reading.extend(reading.marked()),
    b"s": lambda reading: reading.fill(list(reading.some(2))),
    b"u": lambda reading: reading.fill(reading.marked()),
    b"N": _pushed(None),
    b"\x88": _pushed(True),
    b"\x89": _pushed(False),
    b"I": lambda reading: reading.integer(reading.line(LONGEST_NUMBER)),
    b"L": lambda reading: reading.integer(reading.line(LONGEST_NUMBER).rstrip(b"L")),
    b"J": lambda reading: reading.stack.append(reading.number("<i")),
    b"K": lambda reading: reading.stack.append(reading.number("<B")),
    b"M": lambda reading: reading.stack.append(reading.number("<H")),
    b"\x8a": _long,
    b"S": _Reading.literal,
    b"T": lambda reading: reading.text("<i"),
    b"U": lambda reading: reading.text("<B"),
    b"B": lambda reading: reading.text("<I"),
    b"C": lambda reading: reading.text("<B"),
    b"\x8e": lambda reading: reading.text("<Q"),
    b"\x96": lambda reading: reading.text("<Q"),
    b"V": lambda reading: reading.stack.append(str(reading.line(), "raw-unicode-escape")),
    b"X": lambda reading: reading.unicode("<I"),
    b"\x8c": lambda reading: reading.unicode("<B"),
    b"\x8d": lambda reading: reading.unicode("<Q"),
    b"p": lambda reading: reading.keep(int(reading.line(LONGEST_NUMBER))),
    b"q": lambda reading: reading.keep(reading.number("<B")),
    b"r": lambda reading: reading.keep(reading.number("<I")),
    b"\x94": lambda reading: reading.keep(len(reading.memo)),
    b"g": lambda reading: reading.stack.append(reading.memo[int(reading.line(LONGEST_NUMBER))]),
    b"h": lambda reading: reading.stack.append(reading.memo[reading.number("<B")]),
    b"j": lambda reading: reading.stack.append(reading.memo[reading.number("<I")]),
    b"c": lambda reading: reading.name(reading.line(), reading.line()),
    b"\x93": lambda reading: reading.name(*reading.some(2)),
    b"R": _Reading.call,
    b"b": _Reading.build,
}
