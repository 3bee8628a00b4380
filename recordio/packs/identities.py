"""The identities of face-recognition packs: which records list them, and which images are theirs.

Such a pack (the layout of the InsightFace packs) begins with a record of two labels, the keys
``[first, end)`` of its identity records; those hold no image, and their own two labels are the keys
of that identity's images.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from ..errors import RecordHeaderError, RecordIOError, RemoteFileError
from ..frames.reader import RecordReader
from ..header import HEADER

__all__ = ["FacePack", "face_pack", "in_file_order", "joined_identities", "label_pair"]


class FacePack(NamedTuple):
    """What a face-recognition pack consists of, besides its images.

    Attributes
    ----------
    identities : numpy.ndarray of int64, (identities, 2)
        The keys ``[first, end)`` of the images of every identity.
    images : numpy.ndarray of int64
        Offsets of the images, ascending.
    """

    identities: np.ndarray
    images: np.ndarray


def face_pack(reader: RecordReader, table: np.ndarray) -> FacePack | None:
    """Identities and images of a pack, or None if it is an ordinary one.

    Parameters
    ----------
    reader : RecordReader
        The file; without an index a record's number is its key.
    table : numpy.ndarray of int64
        Offsets of all records, ascending.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import IRHeader, RecordWriter, pack
    >>> path = f"{tempfile.mkdtemp()}/faces.rec"
    >>> with RecordWriter(path) as writer:
    ...     _ = writer.write(pack(IRHeader(2, [3, 5], 0, 0), b""))
    ...     for key, identity in ((1, 0), (2, 1)):
    ...         _ = writer.write(pack(IRHeader(0, identity, key, 0), b"an image"))
    ...     for key in (3, 4):
    ...         _ = writer.write(pack(IRHeader(2, [key - 2, key - 1], key, 0), b""))
    >>> with RecordReader(path) as reader:
    ...     found = face_pack(reader, reader.offsets)
    >>> found.identities.tolist(), len(found.images)
    ([[1, 2], [2, 3]], 2)
    """
    keyed = reader.index_path is not None

    def pair_of(key: int) -> tuple[int, int] | None:
        try:
            offset = reader.offset_of(reader.position_of(key)) if keyed else int(table[key])
            return label_pair(reader.read_at(offset)[0])
        except RemoteFileError:
            raise
        except RecordIOError:  # no such key, or a damaged record: no pack in either case
            return None

    labels = pair_of(0) if len(table) else None
    if labels is None:
        return None
    first, end = labels
    last_key = int(reader.keys.max()) if keyed else len(table) - 1
    # Two labels alone could be those of an ordinary image; that every record they point to is empty
    # and holds a range of image keys could not be.
    if not 1 < first < end <= last_key + 1:
        return None
    rows = []
    for key in range(first, end):
        row = pair_of(key)
        if row is None or not 1 <= row[0] <= row[1] <= first:
            return None
        rows.append(row)
    if keyed:
        wanted = (reader.keys >= 1) & (reader.keys < first)
        images = in_file_order(reader.offsets[wanted])
    else:
        images = table[1:first]
    return FacePack(np.array(rows, np.int64).reshape(-1, 2), images)


def joined_identities(parts: list[np.ndarray]) -> np.ndarray:
    """The keys of the images of every identity in a pack whose files list all identities.

    Parameters
    ----------
    parts : list of numpy.ndarray of int64, (identities, 2)
        What each file lists.

    Returns
    -------
    numpy.ndarray of int64, (identities, 2)
        The keys ``[first, end)`` in one file with the images of all.

    Raises
    ------
    RecordHeaderError
        If the files do not list the same number of identities.

    Examples
    --------
    >>> joined_identities([np.array([[1, 3], [3, 4]]), np.array([[1, 1], [1, 6]])]).tolist()
    [[1, 3], [3, 9]]
    """
    if len(parts) == 1:
        return parts[0]
    if len({len(part) for part in parts}) != 1:
        counts = sorted({len(part) for part in parts})
        raise RecordHeaderError(f"the files of one pack list {counts} identities")
    ends = 1 + np.cumsum(sum(part[:, 1] - part[:, 0] for part in parts))
    return np.stack([np.concatenate([[1], ends[:-1]]), ends], -1)


def label_pair(record: memoryview | bytes | None) -> tuple[int, int] | None:
    """The two labels of a record if it has two whole numbers and no image, else None."""
    if record is None or len(record) != HEADER.size + 8 or HEADER.unpack_from(record)[0] != 2:
        return None
    first, second = struct.unpack_from("<2f", record, HEADER.size)
    return (int(first), int(second)) if first.is_integer() and second.is_integer() else None


def in_file_order(offsets: np.ndarray) -> np.ndarray:
    """Ascending offsets; the same array if they are already."""
    if len(offsets) < 2 or bool((offsets[1:] > offsets[:-1]).all()):
        return offsets
    return np.sort(offsets)
