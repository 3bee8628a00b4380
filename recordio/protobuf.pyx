"""SageMaker's recordio-protobuf: records of ``aialgs.data.Record`` as arrays, read and written.

A record has a map of features and one of labels, both with the one key ``values``, and a tensor at
that key.  Records are read in chunks by several threads, without the GIL.
"""

import os

import numpy as np

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from recordio.bytes.mapping cimport address_of
from recordio.wire cimport (
    BAD_LENGTH,
    BYTES,
    END,
    FIXED32,
    FIXED64,
    FOUND,
    VARINT,
    Field,
    next_field,
    read_varint,
)

from recordio.bytes.files import named_files
from recordio.bytes.remote.settings import RemoteSettings
from recordio.bytes.storage import AtomicOutput
from recordio.errors import ProtobufRecordError, RecordTooLargeError
from recordio.extras import need
from recordio.frames.reader import RecordReader
from recordio.file_limits import check_array_bytes
from recordio.ordered import OrderedWork, default_threads
from recordio.wire import REASONS as WIRE_REASONS

__all__ = ["read_protobuf", "write_protobuf"]

cdef enum:
    # What a map may have at its key; the first three are the numbers of fields of `Value`.
    NOTHING = 0
    FLOAT32 = 2
    FLOAT64 = 3
    INT32 = 7
    RAW = 9

    NO_VALUES = -10         # the map has no entry of the name `values`
    RAW_BYTES = -11         # bytes instead of numbers
    TWICE = -12             # two tensors of one type, which protobuf would join
    BAD_VALUE = -13         # numbers of another wire type than their tensor
    BAD_SHAPE = -14         # a product of more than 63 bits

    # Columns of the table of records: the tensor of features, then that of labels.
    COLUMNS = 7
    KIND = 0
    BEGIN = 1
    LAST = 2
    COUNT = 3               # values
    KEYS = 4                # -1: none, nor a shape
    WIDTH = 5               # product of the shape; -1 without one
    STATUS = 6

REASONS = {
    **WIRE_REASONS,
    NO_VALUES: "its map has no entry of the name 'values'",
    RAW_BYTES: "it holds bytes, not numbers: read it by RecordReader",
    TWICE: "it has two tensors of one type",
    BAD_VALUE: "numbers of another type than their tensor",
    BAD_SHAPE: "a shape of more than 2**63 entries",
}
DTYPES = {FLOAT32: np.dtype("<f4"), FLOAT64: np.dtype("<f8"), INT32: np.dtype("<i4")}
KINDS = {dtype: kind for kind, dtype in DTYPES.items()}

#: Records that are read together.
CHUNK = 1024
MAGIC = (0xCED7230A).to_bytes(4, "little")
LONGEST = (1 << 29) - 1


cdef int64_t count_numbers(const uint8_t* data, Field* field, int kind) noexcept nogil:
    """Count the numbers of a field, packed or alone; `kind` is that of a tensor, or VARINT."""
    cdef int64_t count = 0, at
    cdef int size = 4 if kind == FLOAT32 else 8
    if kind == FLOAT32 or kind == FLOAT64:
        if field.kind == (FIXED32 if kind == FLOAT32 else FIXED64):
            return 1
        if field.kind != BYTES:
            return BAD_VALUE
        return BAD_LENGTH if (field.end - field.begin) % size else (field.end - field.begin) // size
    if field.kind == VARINT:
        return 1
    if field.kind != BYTES:
        return BAD_VALUE
    for at in range(field.begin, field.end):
        count += data[at] < 0x80
    return count


cdef int read_tensor(const uint8_t* data, int64_t* row) noexcept nogil:
    """Count values and keys of a tensor, and multiply the lengths of its shape."""
    cdef Field field
    cdef int64_t at = row[BEGIN], count, inner
    cdef uint64_t length
    cdef int status
    row[COUNT], row[KEYS], row[WIDTH] = 0, 0, -1
    while True:
        status = next_field(data, &at, row[LAST], &field)
        if status != FOUND:
            return FOUND if status == END else status
        if not 1 <= field.number <= 3:
            continue
        count = count_numbers(data, &field, <int>row[KIND] if field.number == 1 else VARINT)
        if count < 0:
            return <int>count
        if field.number == 1:
            row[COUNT] += count
        elif field.number == 2:
            row[KEYS] += count
        else:
            inner = field.begin
            while count:
                length = field.value
                if field.kind == BYTES and read_varint(data, &inner, field.end, &length) != FOUND:
                    return BAD_SHAPE
                if row[WIDTH] < 0:
                    row[WIDTH] = 1
                if length and <uint64_t>row[WIDTH] > <uint64_t>INT64_MAX // length:
                    return BAD_SHAPE
                row[WIDTH] *= <int64_t>length
                count -= 1


cdef int read_map(const uint8_t* data, int64_t at, int64_t end, int64_t* row) noexcept nogil:
    """Find the tensor in one entry of a map; entries of other names are passed over."""
    cdef Field field
    cdef int64_t name = at, name_end = at, value = at, value_end = at
    cdef int64_t kind = NOTHING
    cdef int status
    while True:
        status = next_field(data, &at, end, &field)
        if status != FOUND:
            break
        if field.kind == BYTES and field.number == 1:
            name, name_end = field.begin, field.end
        elif field.kind == BYTES and field.number == 2:
            value, value_end = field.begin, field.end
    if status != END:
        return status
    if name_end - name != 6 or memcmp(data + name, b"values", 6) != 0:
        return FOUND
    while True:
        status = next_field(data, &value, value_end, &field)
        if status != FOUND:
            break
        if field.kind != BYTES or field.number not in (FLOAT32, FLOAT64, INT32, RAW):
            continue
        if kind == <int64_t>field.number and kind != RAW:
            return TWICE
        kind = <int64_t>field.number
        row[BEGIN], row[LAST] = field.begin, field.end
    row[KIND] = kind
    return FOUND if status == END else status


cdef void examine(const uint8_t* data, int64_t size, int64_t* rows) noexcept nogil:
    """Fill in the two tensors of a record; the status is in the row of the one that is damaged."""
    cdef Field field
    cdef int64_t at = 0
    cdef int64_t* row
    cdef int i, status, maps = 0
    for i in range(2 * COLUMNS):
        rows[i] = 0
    while True:
        status = next_field(data, &at, size, &field)
        if status != FOUND:
            break
        if field.kind != BYTES or not 1 <= field.number <= 2:
            continue
        maps |= <int>field.number
        row = rows + (field.number - 1) * COLUMNS
        row[STATUS] = read_map(data, field.begin, field.end, row)
        if row[STATUS] != FOUND:
            return
    if status != END:
        rows[STATUS] = status
        return
    for i in range(2):
        row = rows + i * COLUMNS
        if row[KIND] == RAW:
            row[STATUS] = RAW_BYTES
        elif row[KIND] != NOTHING:
            row[STATUS] = read_tensor(data, row)
        elif i == 0 or maps & 2:
            row[STATUS] = NO_VALUES


cdef int copy_numbers(
    const uint8_t* data, int64_t* row, int number, uint8_t* target, int64_t count
) noexcept nogil:
    """Write the numbers of one field of a tensor, keys as int64, behind one another."""
    cdef Field field
    cdef int64_t at = row[BEGIN], inner, done = 0, size
    cdef uint64_t value
    cdef int kind = <int>row[KIND] if number == 1 else VARINT
    cdef int status, width = 4 if kind == FLOAT32 or kind == INT32 else 8
    cdef int narrow
    while True:
        status = next_field(data, &at, row[LAST], &field)
        if status != FOUND:
            return FOUND if status == END and done == count else BAD_LENGTH
        if field.number != <uint64_t>number:
            continue
        if kind == FLOAT32 or kind == FLOAT64:
            size = field.end - field.begin
            if size // width > count - done:
                return BAD_LENGTH
            memcpy(target + done * width, data + field.begin, size)
            done += size // width
            continue
        inner = field.begin
        while inner < field.end:
            value = field.value
            if field.kind == BYTES:
                status = read_varint(data, &inner, field.end, &value)
                if status != FOUND:
                    return status
            else:
                inner = field.end
            if done == count:
                return BAD_LENGTH
            if kind == INT32:
                narrow = <int>value        # as protobuf does
                memcpy(target + done * 4, &narrow, 4)
            else:
                if value > <uint64_t>INT64_MAX:
                    return BAD_SHAPE
                memcpy(target + done * 8, &value, 8)
            done += 1


class _Part:
    """The tensors of a chunk of records: a type, values side by side, and keys if there are any."""

    def __init__(self, payloads, first, path):
        cdef int64_t[:, ::1] rows = np.empty((len(payloads), 2 * COLUMNS), np.int64)
        cdef uint64_t[::1] addresses = np.array([<uint64_t>address_of(p) for p in payloads],
                                                np.uint64)
        cdef int64_t[::1] sizes = np.array([len(p) for p in payloads], np.int64)
        cdef int64_t i
        with nogil:
            for i in range(len(sizes)):
                examine(<const uint8_t*>addresses[i], sizes[i], &rows[i, 0])
        table = np.asarray(rows)
        self.count = len(payloads)
        self.location = lambda number: {"path": path, "record": first + int(number)}
        self.features = self._tensor(rows, table[:, :COLUMNS], 0, addresses, "features")
        self.labels = self._tensor(rows, table[:, COLUMNS:], COLUMNS, addresses, "labels")

    def _tensor(self, int64_t[:, ::1] rows, table, int64_t first, uint64_t[::1] addresses, what):
        """Return type, numbers of values, values, keys and widths of one side of the records."""
        cdef int64_t[::1] counts, key_counts
        cdef uint8_t[::1] values, keys
        cdef int64_t i, at = 0, key_at = 0, width
        cdef int status = FOUND
        for number in np.flatnonzero(table[:, STATUS])[:1]:
            raise ProtobufRecordError(
                f"its {what} cannot be read: {REASONS[int(table[number, STATUS])]}",
                **self.location(number),
            )
        for number in np.flatnonzero(table[:, KIND] != table[0, KIND])[:1]:
            raise ProtobufRecordError(
                f"its {what} are {named(table[number, KIND])}, those of the records before it are "
                f"{named(table[0, KIND])}: a file has one type", **self.location(number),
            )
        kind = int(table[0, KIND])
        if kind == NOTHING:
            return kind, None, None, None, None
        width = DTYPES[kind].itemsize
        counts = np.ascontiguousarray(table[:, COUNT])
        key_counts = np.ascontiguousarray(table[:, KEYS])
        values = np.empty(int(table[:, COUNT].sum()) * width, np.uint8)
        keys = np.empty(int(table[:, KEYS].sum()) * 8, np.uint8)
        with nogil:
            for i in range(len(counts)):
                if counts[i]:
                    status = copy_numbers(<const uint8_t*>addresses[i], &rows[i, first], 1,
                                          &values[at], counts[i])
                if status == FOUND and key_counts[i]:
                    status = copy_numbers(<const uint8_t*>addresses[i], &rows[i, first], 2,
                                          &keys[key_at], key_counts[i])
                if status != FOUND:
                    break
                at += counts[i] * width
                key_at += key_counts[i] * 8
        if status != FOUND:
            raise ProtobufRecordError(
                f"its {what} cannot be read: {REASONS[status]}", **self.location(i)
            )
        numbers = np.asarray(values).view(DTYPES[kind]), np.asarray(keys).view(np.int64)
        return kind, np.asarray(counts), *numbers, np.column_stack([key_counts, table[:, WIDTH]])

    @property
    def nbytes(self):
        """Bytes of all values and keys."""
        return sum(a.nbytes for side in (self.features, self.labels) for a in side[2:4]
                   if a is not None)


def named(kind):
    """Return the type of a tensor in words."""
    return DTYPES[kind].name if kind in DTYPES else "missing"


def read_protobuf(path, *, threads=None, max_array_bytes=None, remote_options=None):
    """Read a file of SageMaker's recordio-protobuf: features and labels of all its records.

    Parameters
    ----------
    path : str or os.PathLike
        A file, a folder (all its files, in the order of their names), a pattern such as
        ``part-*``, several of them with semicolons in between, or fsspec URLs.
    threads : int, optional
        Threads that parse; by default one for every processor of the process.
    max_array_bytes : int, optional
        Larger arrays are an error.  By default 64 times the size of the files, at least 256 MiB.
    remote_options : mapping, optional
        How the server of a URL is reached, as for `read_csv`.

    Returns
    -------
    features : numpy.ndarray, (records, width), or scipy.sparse.csr_array
        float32, float64 or int32, as stored.  Sparse if a record has keys, or a shape that its
        values do not fill.
    labels : numpy.ndarray, (records,) or (records, width), or None
        None if no record has a label.

    Raises
    ------
    ProtobufRecordError
        For a record that cannot be read, or has another type, width or shape than those before it,
        with its number; beyond the limit; and if there is no record.
    RecordIOError
        If a file is damaged.
    ValueError
        If `threads` is below 1.
    ImportError
        For sparse features if SciPy is not installed.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.pbr")
    >>> write_protobuf(path, np.float32([[1, 2], [3, 4]]), np.float32([0, 1]))
    >>> features, labels = read_protobuf(path)
    >>> features.tolist(), labels.tolist()
    ([[1.0, 2.0], [3.0, 4.0]], [0.0, 1.0])
    """
    count = default_threads() if threads is None else threads.__index__()
    if count < 1:
        raise ValueError(f"threads must be at least 1, not {count}")
    name = os.fsdecode(path)
    settings = RemoteSettings(remote_options=remote_options)
    parts, stored, nbytes = [], 0, 0
    for file in named_files(name, settings=settings, look=True):
        stored += file.size()
        with RecordReader(file.name, remote_options=remote_options) as reader:
            starts = iter(range(0, len(reader), CHUNK))

            def read(buffer, reader=reader, starts=starts):
                start = next(starts, None)
                if start is None:
                    return None
                return start, reader.read_many(range(start, min(start + CHUNK, len(reader))),
                                               copy=True)

            work = OrderedWork(read, lambda chunk, file=file: _Part(chunk[1], chunk[0], file.name),
                               threads=count, ahead=4 * count)
            try:
                for part in work:
                    parts.append(part)
                    nbytes += part.nbytes
                    check_array_bytes(nbytes, stored, max_array_bytes, ProtobufRecordError, name)
            finally:
                work.close()
    if not parts:
        raise ProtobufRecordError("the file holds no records", path=name)
    features = _joined(parts, [part.features for part in parts], "features", True)
    labels = _joined(parts, [part.labels for part in parts], "labels", False)
    if labels is not None and labels.shape[1] == 1:
        labels = labels[:, 0]
    return features, labels


def _joined(parts, sides, what, may_be_sparse):
    """Return the tensors of all chunks as one array."""
    kind = sides[0][0]
    for part, side in zip(parts, sides):
        if side[0] != kind:
            raise ProtobufRecordError(
                f"its {what} are {named(side[0])}, those of the records before it are "
                f"{named(kind)}: a file has one type", **part.location(0),
            )
    if kind == NOTHING:
        return None
    counts, values, keys, widths = (
        np.concatenate([side[i] for side in sides]) for i in range(1, 5)
    )

    def refuse(wrong, text):
        for number in np.flatnonzero(wrong)[:1]:
            behind = int(number)
            for part in parts:
                if behind < part.count:
                    raise ProtobufRecordError(text(int(number)), **part.location(behind))
                behind -= part.count

    key_counts, shapes = widths.T
    if not key_counts.any() and ((shapes < 0) | (shapes == counts)).all():
        refuse(counts != counts[0], lambda i: (
            f"it has {counts[i]} numbers as {what}, those before it {counts[0]}"))
        return values.reshape(len(counts), int(counts[0]))
    if not may_be_sparse:
        refuse((key_counts > 0) | (shapes >= 0), lambda i: (
            f"its {what} are sparse, which cannot be used"))
    refuse(key_counts != counts, lambda i: (
        f"it has {counts[i]} numbers and {key_counts[i]} keys, and the {what} are sparse"))
    refuse((shapes >= 0) & (shapes != shapes.max()), lambda i: (
        f"its shape has {shapes[i]} entries, that of others {shapes.max()}"))
    width = int(shapes.max()) if shapes.max() >= 0 else int(keys.max(initial=-1)) + 1
    sparse = need("scipy.sparse", "sparse features of read_protobuf")
    pointers = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=pointers[1:])
    if keys.size and keys.max() >= width:
        refuse(np.arange(len(counts)) == np.searchsorted(pointers, keys.argmax(), "right") - 1,
               lambda i: f"it has the key {keys.max()}, and its shape {width} entries")
    index_type = np.int32 if max(len(keys), width) < 1 << 31 else np.int64
    return sparse.csr_array(
        (values, keys.astype(index_type), pointers.astype(index_type)), shape=(len(counts), width)
    )


def write_protobuf(path, features, labels=None):
    """Write a file of SageMaker's recordio-protobuf, byte for byte as its SDK does.

    Parameters
    ----------
    path : str or os.PathLike
        The file, replaced if it exists; it appears complete or not at all.
    features : numpy.ndarray, (records, width), or sparse matrix of SciPy
        float32, float64, or integers that fit into 32 bits.
    labels : numpy.ndarray, (records,) or (records, width), optional
        Of the same types; None for records without labels.

    Raises
    ------
    TypeError, ValueError
        For arrays of another type, shape or length.
    RecordTooLargeError
        For a record of 2**29 bytes or more.
    OSError
        If the file cannot be written.

    Notes
    -----
    Neither the SDK nor this function escapes the magic word: a record that contains it stays in one
    part, where MXNet would store two.  Reading from record to record needs no escape; only a reader
    that searches for the next record, after damage or at the start of a part, may take such bytes
    for one.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.pbr")
    >>> write_protobuf(path, np.int32([[1, -1]]))
    >>> read_protobuf(path)
    (array([[ 1, -1]], dtype=int32), None)
    """
    is_sparse = hasattr(features, "tocsr")
    matrix = features.tocsr() if is_sparse else np.asarray(features)
    if matrix.ndim != 2:
        raise ValueError(f"features of shape {matrix.shape}: expected (records, width)")
    kind, values = _as_tensor("features", matrix.data if is_sparse else matrix)
    label_kind = NOTHING
    if labels is not None:
        label_kind, label_values = _as_tensor("labels", np.asarray(labels))
        if label_values.ndim not in (1, 2) or len(label_values) != matrix.shape[0]:
            raise ValueError(
                f"labels of shape {label_values.shape} for features of shape {matrix.shape}"
            )
    with AtomicOutput(path) as output:
        for i in range(matrix.shape[0]):
            if is_sparse:
                row = slice(matrix.indptr[i], matrix.indptr[i + 1])
                tensor = _packed(1, kind, values[row])
                tensor += _packed(2, VARINT, matrix.indices[row].astype(np.int64))
                tensor += _packed(3, VARINT, [matrix.shape[1]])
            else:
                tensor = _packed(1, kind, values[i])
            record = _field(1, _entry(kind, tensor))
            if label_kind != NOTHING:
                record += _field(2, _entry(label_kind, _packed(1, label_kind, label_values[i])))
            if len(record) > LONGEST:
                raise RecordTooLargeError(
                    f"it has {len(record)} bytes, and a record at most {LONGEST}",
                    path=os.fsdecode(path), record=i,
                )
            size = len(record)
            output.write(MAGIC + size.to_bytes(4, "little") + record + bytes((4 - size % 4) % 4))


def _as_tensor(name, array):
    """Return the kind of a tensor, and its values in that type."""
    if array.dtype.kind in "iu":
        narrow = array.astype(np.int32)
        if not np.array_equal(narrow, array):
            raise ValueError(f"{name}: integers of more than 32 bits")
        array = narrow
    dtype = array.dtype.newbyteorder("<")
    if dtype not in KINDS:
        raise TypeError(f"{name} of {array.dtype}: expected float32, float64 or integers")
    return KINDS[dtype], np.ascontiguousarray(array, dtype)


def _varint(value):
    """Return an integer as protobuf writes it; negative ones take ten bytes."""
    value, data = int(value) & (1 << 64) - 1, bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _field(number, content):
    return bytes([number << 3 | BYTES]) + _varint(len(content)) + content


def _packed(number, kind, values):
    """Return the field of a list of numbers; nothing for an empty one."""
    if kind in (FLOAT32, FLOAT64):
        content = values.tobytes()
    else:
        content = b"".join(map(_varint, np.atleast_1d(values).tolist()))
    return _field(number, content) if content else b""


def _entry(kind, tensor):
    return _field(1, b"values") + _field(2, _field(kind, tensor))
