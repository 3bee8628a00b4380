"""Write two packs and look at the bytes of their files."""

import numpy as np
from mxnet import recordio

record = recordio.MXIndexedRecordIO("labels.idx", "labels.rec", "w")
for key in range(5):
    labels = np.arange(key + 1, dtype="float32") / 4
    header = recordio.IRHeader(0, labels if key else 2.5, key * 10, 0)
    record.write_idx(key, recordio.pack(header, b"x" * (3 * key)))
record.close()
plain = recordio.MXRecordIO("plain.rec", "w")
for content in (b"", b"one", b"\x0a\x23\xd7\xce" * 3, b"last"):
    plain.write(content)
plain.close()
results = {}
for name in ("labels.rec", "labels.idx", "plain.rec"):
    with open(name, "rb") as file:
        results[name] = list(file.read())
