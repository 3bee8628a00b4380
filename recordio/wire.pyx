"""Fields of protobuf messages, one after another: the one walk for all that read such messages.

Only the wire format is known here; every valid encoding is read, groups included, whose content is
passed over.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

__all__ = ["REASONS", "fields"]

cdef enum:
    DEEPEST = 64            # groups in one another

REASONS = {
    BAD_NUMBER: "an integer that does not end, or of more than 64 bits",
    BAD_KIND: "a field of no valid wire type or number",
    BAD_LENGTH: "a field that is longer than its message",
    BAD_GROUP: f"a group that does not end, or more than {DEEPEST} in one another",
}


cdef int read_varint(
    const uint8_t* data, int64_t* at, int64_t end, uint64_t* value
) noexcept nogil:
    cdef int shift = 0
    cdef uint8_t byte
    value[0] = 0
    while at[0] < end and shift < 64:
        byte = data[at[0]]
        at[0] += 1
        value[0] |= (<uint64_t>(byte & 0x7F)) << shift
        if byte < 0x80:
            return BAD_NUMBER if shift == 63 and byte > 1 else FOUND
        shift += 7
    return BAD_NUMBER


cdef int next_field(
    const uint8_t* data, int64_t* at, int64_t end, Field* field
) noexcept nogil:
    cdef uint64_t groups[DEEPEST]
    cdef int depth = 0, status
    cdef uint64_t tag, length
    while at[0] < end or depth:
        status = read_varint(data, at, end, &tag)
        if status != FOUND:
            return BAD_GROUP if depth and at[0] >= end else status
        field.number, field.kind = tag >> 3, <int>(tag & 7)
        if not 1 <= field.number < <uint64_t>1 << 29:
            return BAD_KIND
        if field.kind == GROUP:
            if depth == DEEPEST:
                return BAD_GROUP
            groups[depth] = field.number
            depth += 1
            continue
        if field.kind == GROUP_END:
            if not depth or groups[depth - 1] != field.number:
                return BAD_KIND
            depth -= 1
            continue
        field.begin = at[0]
        if field.kind == VARINT:
            status = read_varint(data, at, end, &field.value)
            if status != FOUND:
                return status
        else:
            if field.kind == BYTES:
                status = read_varint(data, at, end, &length)
                if status != FOUND:
                    return status
            elif field.kind == FIXED32 or field.kind == FIXED64:
                length = 4 if field.kind == FIXED32 else 8
            else:
                return BAD_KIND
            if length > <uint64_t>(end - at[0]):
                return BAD_LENGTH
            field.begin = at[0]
            at[0] += <int64_t>length
        field.end = at[0]
        if not depth:           # what is in a group is unknown
            return FOUND
    return END


def fields(const uint8_t[::1] data not None):
    """Yield number, wire type, and value of each field of a message; of bytes (begin, end).

    What is no message ends it with a ValueError.
    """
    cdef Field field
    cdef int64_t at = 0
    cdef int status = END if not len(data) else FOUND
    while status == FOUND:
        status = next_field(&data[0], &at, len(data), &field)
        if status == FOUND:
            if field.kind == VARINT:
                yield field.number, field.kind, field.value
            else:
                yield field.number, field.kind, (field.begin, field.end)
    if status != END:
        raise ValueError(REASONS[status])
