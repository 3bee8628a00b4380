"""TensorFlow's ``tf.train.Example``: a map from names to lists of bytes, floats or integers.

The message is fixed and has five field numbers, so that reading its wire format takes fewer lines
than describing it to the protobuf package, whose version TensorFlow, Ray and others pin against one
another.  Every valid encoding is read; nothing else of protobuf is known here.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from recordio.bytes.crc32c cimport crc32c_of
from recordio.bytes.mapping cimport address_of
from recordio.wire cimport (
    BAD_LENGTH,
    BYTES,
    END,
    FIXED32,
    FOUND,
    VARINT,
    Field,
    next_field,
    read_varint,
)

from recordio.errors import RecordIOError
from recordio.wire import REASONS as WIRE_REASONS

__all__ = ["BOX_KEYS", "CUT", "DAMAGED", "NO_LABEL", "ODD", "PLAIN", "decode_example",
           "find_examples"]

#: Those that hold the objects of a detection example: the class of each, and four edges.
BOX_KEYS = ("image/object/class/label", "image/object/bbox/xmin", "image/object/bbox/ymin",
            "image/object/bbox/xmax", "image/object/bbox/ymax")

cdef enum:
    # Kinds of records: content and label found; content alone; one for `decode_example`.
    IS_PLAIN = 0
    IS_UNLABELLED = 1
    IS_ODD = 2
    # How a walk ends early: the file ends within a record, or the checksum of a length is wrong.
    IS_CUT = 3
    IS_DAMAGED = 4

    BAD_LIST = -5           # a value that such a list cannot hold
    TOO_MANY = -6

    # Features of an Example, or the context of a SequenceExample; and the lists of the latter.
    FEATURES = 1
    FEATURE_LISTS = 2
    BYTES_LIST = 1
    FLOAT_LIST = 2
    INT64_LIST = 3

    MOST_NUMBERS = 1 << 22  # of one feature
    EXACT = 1 << 24         # whole numbers up to this one are exact as 32-bit floats

    MOST_NAMES = 64

    HEAD = 12               # the length of a record and its checksum
    FRAME = 16              # with the checksum of the data

PLAIN, NO_LABEL, ODD, CUT, DAMAGED = IS_PLAIN, IS_UNLABELLED, IS_ODD, IS_CUT, IS_DAMAGED

REASONS = {
    **WIRE_REASONS,
    BAD_LIST: "a value of another wire type than its list",
    TOO_MANY: f"a feature with more than {MOST_NUMBERS} numbers",
}


cdef struct Entry:
    int64_t name, name_end
    int64_t items, items_end    # the list of values
    int list_kind               # 0 without any


cdef int read_entry(const uint8_t* data, int64_t at, int64_t end, Entry* entry) noexcept nogil:
    """Find name and list of one entry of the map of features."""
    cdef Field field
    cdef int64_t feature = at, feature_end = at
    cdef int status
    entry.name = entry.name_end = at
    entry.items = entry.items_end = at
    entry.list_kind = 0
    while True:
        status = next_field(data, &at, end, &field)
        if status != FOUND:
            break
        if field.kind == BYTES and field.number == 1:
            entry.name, entry.name_end = field.begin, field.end
        elif field.kind == BYTES and field.number == 2:
            feature, feature_end = field.begin, field.end
    if status != END:
        return status
    while True:
        status = next_field(data, &feature, feature_end, &field)
        if status != FOUND:
            return FOUND if status == END else status
        if field.kind == BYTES and BYTES_LIST <= field.number <= INT64_LIST:
            entry.list_kind = <int>field.number
            entry.items, entry.items_end = field.begin, field.end


cdef bint is_exact(int64_t value) noexcept nogil:
    if -EXACT <= value <= EXACT:
        return True
    return <double><float>value < 9.2e18 and <int64_t><float>value == value


cdef struct Value:
    int count                   # -1: absent; 2: several, or of another kind
    int64_t begin, end
    float number


cdef int read_value(const uint8_t* data, Entry* entry, Value* value) noexcept nogil:
    """Read a list with one value; others are told by the count."""
    cdef Field field
    cdef int64_t at = entry.items, packed
    cdef uint64_t integer
    cdef int status
    value.count = 0
    while True:
        status = next_field(data, &at, entry.items_end, &field)
        if status != FOUND:
            break
        if field.number != 1:
            continue
        value.count += 1
        if value.count > 1:
            continue
        value.begin, value.end = field.begin, field.end
        if entry.list_kind == BYTES_LIST:
            if field.kind != BYTES:
                return BAD_LIST
        elif entry.list_kind == FLOAT_LIST:
            if field.end - field.begin == 4 and field.kind in (BYTES, FIXED32):
                memcpy(&value.number, data + field.begin, 4)
            else:
                value.count = 2
        else:
            packed, integer = field.begin, field.value
            if field.kind == BYTES:
                if read_varint(data, &packed, field.end, &integer) or packed != field.end:
                    value.count = 2
            elif field.kind != VARINT:
                return BAD_LIST
            if is_exact(<int64_t>integer):
                value.number = <float><int64_t>integer
            else:
                value.count = 2
    if value.count != 1:
        value.count = 2
    return FOUND if status == END else status


cdef struct Name:
    const uint8_t* text
    int64_t size

cdef struct Names:
    int contents, labels, all   # those of contents come first, then labels, then boxes
    bint boxes_first
    Name[MOST_NAMES] names

cdef tuple BOX_NAMES = tuple(name.encode() for name in BOX_KEYS)


cdef int fill_names(Names* table, tuple contents, tuple labels) except -1:
    """Point at names, which have to live on."""
    cdef bytes name
    table.contents, table.labels, table.all = <int>len(contents), <int>len(labels), 0
    for name in contents + labels + (BOX_NAMES if labels else ()):
        if table.all == MOST_NAMES:
            raise ValueError(f"more than {MOST_NAMES} names")
        table.names[table.all].text = <const uint8_t*><char*>name
        table.names[table.all].size = len(name)
        table.all += 1
    return 0


cdef bint is_name(const Name* name, const uint8_t* text, int64_t size) noexcept nogil:
    return name.size == size and memcmp(name.text, text, size) == 0


cdef int key_of(const Names* table, const uint8_t* name, int64_t size) noexcept nogil:
    cdef int i
    for i in range(table.all):
        if is_name(&table.names[i], name, size):
            return i
    return -1


cdef int first_there(const Value* values, int begin, int end) noexcept nogil:
    """Find the first of some features that an example has; -1 if it has none."""
    cdef int i
    for i in range(begin, end):
        if values[i].count >= 0:
            return i
    return -1


cdef int examine(
    const uint8_t* data, int64_t size, const Names* table, int64_t* begin, int64_t* end,
    float* label
) noexcept nogil:
    """Find content and label of one example, or the content alone if no label is wanted.

    Returns what kind of record it is.
    """
    cdef Field features, field
    cdef Entry entry
    cdef Value[MOST_NAMES] values
    cdef int[MOST_NAMES] list_kinds
    cdef int i, key, content, status, named = table.contents + table.labels
    cdef int64_t at = 0, inner
    cdef bint has_boxes = False, has_lists = False
    for i in range(named):
        values[i].count, list_kinds[i] = -1, 0
    while True:
        status = next_field(data, &at, size, &features)
        if status != FOUND:
            break
        if features.number != FEATURES or features.kind != BYTES:
            has_lists |= features.number == FEATURE_LISTS
            continue
        inner = features.begin
        while True:
            status = next_field(data, &inner, features.end, &field)
            if status != FOUND:
                break
            if field.number != 1 or field.kind != BYTES:
                continue
            if read_entry(data, field.begin, field.end, &entry) != FOUND:
                return IS_ODD
            key = key_of(table, data + entry.name, entry.name_end - entry.name)
            if key >= named:
                has_boxes = True
            elif key >= 0:
                list_kinds[key] = entry.list_kind
                values[key].count = 2
                if entry.list_kind and read_value(data, &entry, &values[key]) != FOUND:
                    return IS_ODD
        if status != END:
            return IS_ODD
    if status != END:
        return IS_ODD
    content = first_there(values, 0, table.contents)
    if content < 0 or values[content].count != 1 or list_kinds[content] != BYTES_LIST:
        return IS_ODD
    begin[0], end[0] = values[content].begin, values[content].end
    if not table.labels:
        return IS_UNLABELLED
    if has_lists or (has_boxes and table.boxes_first):
        return IS_ODD
    key = first_there(values, table.contents, named)
    if key < 0:
        return IS_ODD if has_boxes else IS_UNLABELLED
    if values[key].count != 1 or list_kinds[key] == BYTES_LIST:
        return IS_ODD
    label[0] = values[key].number
    return IS_PLAIN


cdef uint32_t masked(const uint8_t* data, int64_t size) noexcept nogil:
    cdef uint32_t crc = crc32c_of(data, size)
    return ((crc >> 15) | (crc << 17)) + <uint32_t>0xA282EAD8


def find_examples(view, int64_t at, int64_t end, int64_t[:, ::1] spans, float[::1] labels,
                  int64_t[::1] kinds, tuple contents, tuple names, bint boxes_first=False):
    """Walk the records of ``view[at:end]`` and find content and label of each.

    The first of the features `contents` that is there is the content, and the first of `names` the
    label; without names there are no labels.  Boxes count where there is no label, or with
    `boxes_first` before it.

    Fills in a row for each: where the record begins and its data end, and where the content does
    (-1 without one); the label; and the kind.  Returns the number of rows, where the next record
    begins, and `CUT` or `DAMAGED` if it is not whole, 0 otherwise.  Checksums of lengths are
    compared.
    """
    cdef const uint8_t* base = address_of(view)
    cdef int64_t count = 0, most = min(len(spans), len(labels), len(kinds)), data
    cdef uint64_t length
    cdef uint32_t check
    cdef int status = 0
    cdef Names table
    fill_names(&table, contents, names)
    table.boxes_first = boxes_first
    if not 0 <= at <= end <= len(view) or spans.shape[1] != 4:
        raise ValueError("the range must lie in the view, and a row of spans must have four values")
    with nogil:
        while at < end and count < most:
            if end - at < HEAD:
                status = IS_CUT
                break
            memcpy(&check, base + at + 8, 4)
            if masked(base + at, 8) != check:
                status = IS_DAMAGED
                break
            memcpy(&length, base + at, 8)
            if end - at < FRAME or length > <uint64_t>(end - at - FRAME):
                status = IS_CUT
                break
            data = at + HEAD
            spans[count, 0], spans[count, 1] = at, data + <int64_t>length
            spans[count, 2], spans[count, 3] = 0, -1
            labels[count] = 0
            kinds[count] = examine(
                base + data, <int64_t>length, &table, &spans[count, 2], &spans[count, 3],
                &labels[count]
            )
            if spans[count, 3] >= 0:
                spans[count, 2] += data
                spans[count, 3] += data
            at = data + <int64_t>length + FRAME - HEAD
            count += 1
    return count, at, status


cdef list read_list(const uint8_t* data, Entry* entry):
    """The values of one feature; numbers may be packed together or stand alone."""
    cdef Field field
    cdef int64_t at = entry.items, packed
    cdef uint64_t integer
    cdef float number
    cdef int status, list_kind = entry.list_kind
    values = []
    while True:
        status = next_field(data, &at, entry.items_end, &field)
        if status != FOUND:
            _check(status)
            return values
        if field.number != 1:
            continue
        if list_kind == BYTES_LIST:
            if field.kind != BYTES:
                _check(BAD_LIST)
            values.append(data[field.begin:field.end])
            continue
        packed = field.begin
        if list_kind == FLOAT_LIST and field.kind in (BYTES, FIXED32):
            if (field.end - field.begin) % 4:
                _check(BAD_LENGTH)
            while packed < field.end and len(values) <= MOST_NUMBERS:
                memcpy(&number, data + packed, 4)
                values.append(number)
                packed += 4
        elif list_kind == INT64_LIST and field.kind == BYTES:
            while packed < field.end and len(values) <= MOST_NUMBERS:
                _check(read_varint(data, &packed, field.end, &integer))
                values.append(<int64_t>integer)
        elif list_kind == INT64_LIST and field.kind == VARINT:
            values.append(<int64_t>field.value)
        else:
            _check(BAD_LIST)
        if len(values) > MOST_NUMBERS:
            _check(TOO_MANY)


cdef int _check(int status) except -1:
    if status < 0:
        raise RecordIOError(f"the data are no tf.train.Example: {REASONS[status]}")
    return 0


def decode_example(data, names=None):
    """Read a serialized example: the values of its features.

    Only the features `names` have values, by default all.  Floats are 32-bit floats, integers
    64-bit ones.  The feature lists of a SequenceExample have none.
    """
    cdef const uint8_t* base = address_of(memoryview(data))
    cdef Field features, field
    cdef Entry entry
    cdef int64_t at = 0, inner, size = len(data)
    cdef int status
    values = {}
    while True:
        status = next_field(base, &at, size, &features)
        _check(status)
        if status == END:
            return values
        if features.kind != BYTES or features.number not in (FEATURES, FEATURE_LISTS):
            continue
        inner = features.begin
        while True:
            status = next_field(base, &inner, features.end, &field)
            _check(status)
            if status == END:
                break
            if field.number != 1 or field.kind != BYTES:
                continue
            _check(read_entry(base, field.begin, field.end, &entry))
            name = base[entry.name:entry.name_end].decode("utf-8", "replace")
            if features.number == FEATURE_LISTS:
                values.setdefault(name, [])
            elif entry.list_kind and (names is None or name in names):
                values[name] = read_list(base, &entry)
            else:
                values[name] = []
