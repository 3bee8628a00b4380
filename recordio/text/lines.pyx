"""Text files as chunks of whole lines, whatever they are stored in.

Local files and folders, fsspec URLs, and gzip around any of them.  At most one chunk, or one
line if that is longer, is read at a time.
"""

import gzip
import os
import zlib

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr

from recordio.errors import TextFormatError
from recordio.bytes.files import named_files, unpacked
from recordio.bytes.remote.settings import RemoteSettings
from recordio.file_kinds import other_text

__all__ = [
    "MAX_BAD_ROWS", "MAX_LINE_BYTES", "LineChunks", "TextChunk", "note_bad_row",
]

#: No line may be longer where nothing else is asked for: a file without line ends shall not fill
#: the memory.
MAX_LINE_BYTES = 1 << 26
#: No chunk may have more bad rows, so that errors do not fill the memory where all rows are bad.
MAX_BAD_ROWS = 1 << 14

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HEAD = 512                 # bytes that tell the kind of a file

cdef enum:
    COUNT_BLOCK = 224       # counts stay below 256, and compilers make vector code of it


cdef int64_t count_byte(const uint8_t* text, int64_t length, uint8_t byte) noexcept nogil:
    cdef int64_t total = 0
    cdef int i
    cdef uint8_t matches
    while length >= COUNT_BLOCK:
        matches = 0
        for i in range(COUNT_BLOCK):
            matches += <uint8_t>(text[i] == byte)
        total += matches
        text += COUNT_BLOCK
        length -= COUNT_BLOCK
    for i in range(<int>length):
        total += text[i] == byte
    return total


cdef int64_t rows_in(const uint8_t* at, const uint8_t* end, uint8_t delimiter) noexcept nogil:
    cdef int64_t rows = 0
    while at < end:
        if (at[0] == c' ' or at[0] == c'\t' or at[0] == c'\r') and at[0] != delimiter:
            at += 1
        elif at[0] == c'\n':
            at += 1
        else:
            rows += 1
            at = <const uint8_t*>memchr(at, c'\n', end - at) + 1
    return rows


def note_bad_row(bad, row, error):
    """Add the error of a row, counted from the first of its chunk, to those of the chunk.

    If `bad` is None, the error is raised; with more than `MAX_BAD_ROWS` errors, another one.
    """
    if bad is None:
        raise error
    if len(bad) == MAX_BAD_ROWS:
        raise TextFormatError(
            f"{MAX_BAD_ROWS} rows shortly before this one cannot be read either, so that this seems"
            f" to be another kind of file: {error.reason}",
            path=error.path, line=error.line, column=error.column,
        )
    bad.append((row, error))


cdef class TextChunk:
    """Whole lines of one file.

    `file_number` counts the files of the folder from 0, `first_line` the lines of the file from 1;
    `lines` includes blank ones.  `offset` is where the first line begins, in bytes of unpacked
    text.  `buffer` holds `length` bytes of text, the last one a line end, and at least 16 bytes
    behind it.  `target` is None at first, and free for whoever works on the chunk.
    """


class LineChunks:
    """Lines of a file, or of all files in a folder in the order of their names, in chunks.

    `path` is read as by `bytes.files.named_files`: a folder, a pattern like ``part-*.csv``, or
    several names with semicolons.  Files may be URLs and gzip.  A chunk of about `chunk_bytes` ends
    at a line end; a longer line gets a chunk of its own.  A line longer than `max_line_bytes` is an
    error, which may go unnoticed where it is shorter than a chunk.  The first `skip_header` lines
    of every file are left out.  With `first_bytes` the first chunk has about so many bytes and
    comes soon; the following ones double up to `chunk_bytes`.

    Text that is not UTF-8, or no text, is an error at the start of a file, where it shows there.
    A byte order mark is left out, and a missing line end at its end is
    added.  One thread at a time may call `read`.  `sizes` has the bytes of text of every file that
    was read from its start to its end; `stored_read` counts the bytes that were read so far, before
    anything was unpacked.
    """

    def __init__(
        self, path, chunk_bytes=1 << 20, skip_header=0, first_bytes=None,
        max_line_bytes=MAX_LINE_BYTES, remote_options=None,
    ):
        self._settings = RemoteSettings(remote_options=remote_options)
        self._max_line_bytes = max_line_bytes
        self.stored_read = 0
        self._before = 0        # of that in the files before the one that is open
        try:
            self._files = named_files(os.fsdecode(path), settings=self._settings, look=True)
        except FileNotFoundError:
            self._files = []
        if not self._files:
            raise TextFormatError(
                "there is no file of that name, or the folder holds no file", path=str(path)
            )
        self.sizes = []
        self._next = 0
        self._most_bytes = chunk_bytes
        self._chunk_bytes = min(chunk_bytes, first_bytes or chunk_bytes)
        self._skip_header = skip_header
        self._file = self._path = None
        self._rest = b""
        self._offset = 0        # bytes of text before what `_fill` gives next
        self._line = 1
        self._skip = 0
        self._added = 0         # bytes of that which are not in the file
        self._at_start = False

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Close the file that is being read; there are no further chunks."""
        self._next = len(self._files)
        self._close_file()

    def stored_bytes(self):
        """Return the size of all files as they are stored; 0 for those behind a URL."""
        return sum(file.size() for file in self._files if file.is_local)

    def _close_file(self):
        file, self._file, self._rest = self._file, None, b""
        if file is not None:
            file.close()

    def _open_next(self):
        file = self._files[self._next]
        self._next += 1
        self._path = file.name
        self._file, packed = unpacked(file.open(0, self._settings))
        self._stored_position = self._file.stored_read if packed else self._file.tell
        self._before = self.stored_read
        self._offset = 0
        self._line = 1
        self._skip = self._skip_header
        self._at_start = True

    def go_to(self, file_number, offset, line):
        """Make the next chunk begin at the position of an earlier chunk of the same files.

        If no line begins there, because the file was changed, it raises TextFormatError.
        """
        self._close_file()
        self._next = file_number
        self._open_next()
        if not offset:
            return
        mark = len(_BYTE_ORDER_MARK)
        try:
            # Gzip has to be unpacked up to there, but nobody looks at the text.
            self._file.seek(offset - 1)
            before = self._file.read(1)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self._damaged(error) from error
        if before != (_BYTE_ORDER_MARK[mark - 1:] if offset == mark and line == 1 else b"\n"):
            raise TextFormatError(
                f"no line begins at byte {offset} any more: the file was changed while it was read",
                path=self._path, line=line,
            )
        self._offset, self._line, self._skip, self._at_start = offset, line, 0, False

    def read(self, buffer=None):
        """Return the next chunk, or None at the end of the last file.

        `buffer` is memory to use; a larger one is made where it does not suffice.
        """
        cdef TextChunk chunk
        cdef const uint8_t[::1] view
        cdef int64_t start, count
        if buffer is None or len(buffer) < self._chunk_bytes + TEXT_PADDING:
            buffer = bytearray(self._chunk_bytes + TEXT_PADDING)
        while True:
            if self._file is None:
                if self._next == len(self._files):
                    return None
                self._open_next()
            buffer, length = self._fill(buffer)
            self.stored_read = self._before + self._stored_position()
            if length == 0:
                self.sizes.append(self._offset)
                self._close_file()
                continue
            offset = self._offset
            self._offset += length - self._added
            start = self._skip_start(buffer, length)
            if start == length:
                continue
            if start:
                length -= start
                buffer[:length] = buffer[start:start + length]
            view = buffer
            count = length
            with nogil:
                count = count_byte(&view[0], count, c'\n')
            view = None
            chunk = TextChunk.__new__(TextChunk)
            chunk.path = self._path
            chunk.file_number = self._next - 1
            chunk.offset = offset + start
            chunk.first_line = self._line
            chunk.lines = count
            chunk.length = length
            chunk.buffer = buffer
            self._line += count
            self._chunk_bytes = min(2 * self._chunk_bytes, self._most_bytes)
            return chunk

    def _fill(self, buffer):
        """Read whole lines of the open file; return the buffer, perhaps another, and their size."""
        self._added = 0
        have = len(self._rest)
        stop = 0        # behind the last line end
        while have + TEXT_PADDING >= len(buffer):
            buffer = bytearray(2 * len(buffer))
        buffer[:have] = self._rest
        self._rest = b""
        while True:
            got = self._read_into(memoryview(buffer)[have:len(buffer) - TEXT_PADDING])
            PyErr_CheckSignals()
            if not got:
                if have and buffer[have - 1] != 10:
                    buffer[have] = 10       # the line end that the last line lacks
                    have += 1
                    self._added = 1
                return buffer, have
            newline = buffer.rfind(b"\n", have, have + got)
            have += got
            if newline >= 0:
                stop = newline + 1
            # Less than half a chunk (from a pipe, say) is not worth a chunk of its own.
            if stop and 2 * have >= self._chunk_bytes:
                self._rest = bytes(memoryview(buffer)[stop:have])
                return buffer, stop
            if not stop and have > self._max_line_bytes:
                raise TextFormatError(
                    f"a line is longer than {self._max_line_bytes} bytes; raise max_line_bytes to "
                    "allow it",
                    path=self._path, line=self._line,
                )
            if have + TEXT_PADDING == len(buffer):
                buffer += bytes(min(len(buffer), self._max_line_bytes + 1))

    def _read_into(self, view):
        try:
            return self._file.readinto(view)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self._damaged(error) from error

    def _damaged(self, error):
        return TextFormatError(
            f"the gzip data is damaged or truncated: {error}", path=self._path, line=self._line
        )

    def _skip_start(self, buffer, length):
        """Return the start of the text behind byte order mark and header lines."""
        start = 0
        if self._at_start:
            self._at_start = False
            if other := other_text(bytes(buffer[:min(length, _HEAD)]), self._path):
                raise TextFormatError(
                    f"this looks like {other[0]}; {other[1]}", path=self._path, line=1
                )
            if buffer.startswith(_BYTE_ORDER_MARK):
                start = len(_BYTE_ORDER_MARK)
        while self._skip and start < length:
            start = buffer.find(b"\n", start, length) + 1
            self._skip -= 1
            self._line += 1
        return start
