"""The head of a part in NumPy is what the encoder writes."""

import numpy as np
import pytest

from recordio import IRHeader, pack
from recordio.frames.encoder import MAGIC, encode
from recordio.frames.head import FRAMED_HEADER, HEAD, MAGIC_WORD, flag_of, length_of, part_at
from recordio.header import HEADER, HEADER_FIELDS, ID_OFFSET, LABEL_OFFSET


@pytest.mark.parametrize("payload", [b"", b"abcde", MAGIC, b"abcd" + MAGIC * 2 + b"ef"])
def test_parts_lead_to_the_end_of_their_record(payload):
    data = b"pad!" + encode(payload) + b"next"
    end, last, lengths, flags = 4, False, [], []
    while not last:
        lrec = np.frombuffer(data, HEAD, 1, end)["lrec"]
        lengths += length_of(lrec).tolist()
        flags += flag_of(lrec).tolist()
        end, last = part_at(data, end)
    assert end == len(data) - 4
    assert sum(lengths) + 4 * (len(lengths) - 1) == len(payload)
    assert flags == ([0] if len(flags) == 1 else [1, *[2] * (len(flags) - 2), 3])


def test_what_is_no_head_leads_nowhere():
    assert part_at(b"no head!", 0) is None
    with pytest.raises(ValueError, match="buffer"):
        part_at(b"short", 0)


def test_a_header_in_its_frame():
    header = IRHeader(0, 2.5, 2**64 - 2, 3)
    record = np.frombuffer(encode(pack(header, b"content")), FRAMED_HEADER, 1)[0]
    assert record.item() == (MAGIC_WORD, HEADER.size + 7, *header)
    assert HEADER.size == HEADER_FIELDS.itemsize and HEADER_FIELDS.names == IRHeader._fields
    assert HEADER.unpack(record.tobytes()[HEAD.itemsize :]) == header
    assert HEADER_FIELDS.fields["label"][1] == LABEL_OFFSET
    assert HEADER_FIELDS.fields["id"][1] == ID_OFFSET
