"""Feed damaged files to the readers of text and idx arrays: ``python fuzz_text.py SECONDS SEED``.

Every round makes a file from well-formed ones, reads it in every way, and demands that the ways
agree and that only typed errors come out.  The number of the round is printed before it begins, so
that a crash can be repeated; memory is limited where the system can do that.
"""

import contextlib
import gzip
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from recordio import CSVReader, RecordIOError, TextFormatError, read_csv, read_idx_array
from recordio.row_count import count_rows

try:
    from recordio import read_libsvm
except ImportError:
    read_libsvm = None

SEEDS = [
    b"1,2,3\n4.5,-6e3,7\n\n8,9,1e-45\n",
    b"\xef\xbb\xbf1;2\r\n3;4;\r\n \t\r\n-5;+6",
    b"255 0 \n 1 \t2\n",
    b"nan,inf,-infinity\n1e400,4.9e-324,0.1\n",
    b"1 0:0.5 2:3 # c\n-1:0.5 qid:3 1:2\n\n#\n+1e3 7:nan\n",
    bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]),
    bytes([0, 0, 13, 2, 0, 0, 0, 1, 0, 0, 0, 2]) + bytes(8),
    b"9223372036854775807,-9223372036854775808\n2147483648,256\n",
]
PIECES = [b"\n", b"\r\n", b",", b";", b" ", b":", b"#", b"-", b"e", b".", b"\0", b"\xff", b"qid:"]
PIECES += [b"x", b"1" * 400, b"," * 300, b"\n" * 300, b"0x10", b"\xef\xbb\xbf", b"\x1f\x8b\x08"]
DTYPES = ["float32", "float64", "int32", "int64", "uint8"]


def mutated(draw):
    """A file made of others."""
    content = bytearray(draw.choice(SEEDS) * draw.choice([1, 1, 1, 2, 50]))
    for _ in range(draw.randrange(8)):
        at = draw.randrange(len(content) + 1)
        kind = draw.randrange(6)
        if kind == 0 and content:
            content[at % len(content)] = draw.randrange(256)
        elif kind == 1:
            content[at:at] = draw.choice(PIECES)
        elif kind == 2:
            del content[at : at + draw.randrange(9)]
        elif kind == 3:
            del content[at:]
        elif kind == 4:
            content[at:at] = draw.choice(SEEDS)
        else:
            content[at:at] = draw.randbytes(draw.randrange(30))
    data = bytes(content)
    if draw.random() < 0.2:
        data = bytearray(gzip.compress(data))
        if draw.random() < 0.5:
            data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data)


def outcome(read):
    """Rows and bad rows, or the text of the error."""
    bad = {}
    try:
        rows = read(bad)
    except RecordIOError as error:
        # Which line is the last one before damage in gzip depends on how much is read at a time.
        return "damaged gzip" if "gzip data" in str(error) else str(error)
    return rows.shape, rows.tobytes(), {row: str(error) for row, error in bad.items()}


def check_csv(path, draw):
    """All ways of reading CSV agree."""
    columns, delimiter = draw.choice([1, 2, 3]), draw.choice(",; \t")
    form = {"shape": columns, "dtype": draw.choice(DTYPES), "delimiter": delimiter}
    form["skip_header"] = draw.choice([0, 0, 1, 3])
    chunk_bytes = draw.choice([1, 5, 40, 1 << 16])

    def streamed(bad, start=0):
        with CSVReader(path, chunk_bytes=chunk_bytes, threads=2, **form) as reader:
            empty = np.empty((0, columns), form["dtype"])
            return np.concatenate([empty, *reader.rows(start, bad)])

    whole = outcome(lambda bad: read_csv(path, threads=2, bad_rows=bad, **form))
    assert outcome(streamed) == whole, (whole, outcome(streamed))
    if isinstance(whole, str):
        return
    shape, raw, bad = whole
    assert count_rows(path, form["skip_header"], delimiter) == shape[0]
    rows = np.frombuffer(raw, form["dtype"]).reshape(shape)
    start = draw.randrange(shape[0] + 2)
    later = {row: text for row, text in bad.items() if row >= start}
    want = rows[start:]
    got = outcome(lambda bad: streamed(bad, start))
    assert got == (want.shape, want.tobytes(), later), (start, got, want)
    try:
        read_csv(path, **form)
    except TextFormatError as error:
        assert error.line == int(bad[min(bad)].split("line ")[1].split(",")[0])
    else:
        assert not bad
    with contextlib.suppress(RecordIOError):
        read_csv(path, delimiter=delimiter)


def check_libsvm(path, draw):
    """A valid matrix or a typed error; bad rows are empty and the others as without them."""
    features = draw.choice([None, 3, 100])
    bad = {}
    try:
        data, labels = read_libsvm(path, features, threads=2, bad_rows=bad)
    except RecordIOError:
        return
    data.check_format(full_check=True)
    assert data.shape[0] == len(labels)
    for row in bad:
        assert data.indptr[row] == data.indptr[row + 1]
        assert labels[row] == 0
    try:
        again, others = read_libsvm(path, features, threads=1)
    except TextFormatError as error:
        assert error.line == bad[min(bad)].line
    else:
        assert not bad
        assert again.data.tobytes() == data.data.tobytes()
        assert others.tobytes() == labels.tobytes()


def main(seconds, seed):
    """Go on for so long."""
    try:
        import resource
    except ImportError:
        pass
    else:
        used = (
            int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
        )
        if used:
            limit = used * resource.getpagesize() + (1 << 30)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    end = time.monotonic() + seconds
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "any")
        while time.monotonic() < end:
            print(f"round {seed}:{number}", flush=True)
            draw = random.Random(f"{seed}:{number}")
            path.write_bytes(mutated(draw))
            check_csv(path, draw)
            if read_libsvm is not None:
                check_libsvm(path, draw)
            with contextlib.suppress(RecordIOError):
                read_idx_array(path)
            number += 1


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
