"""The checksums that are stored, computed by google-crc32c.

They are compared by `recordio.frames.checksums` without it, so that two implementations have to
agree.
"""

from __future__ import annotations

import numpy as np

from recordio.extras import need
from recordio.frames.checksums import ENTRY

__all__ = ["checksum_entries", "library_crc32c"]

_PIECE = 1 << 20  # bytes that the library gets at a time: it takes nothing but bytes objects


def library_crc32c(purpose="checksums of records", extra="checksums"):
    """The function of google-crc32c, for any contiguous bytes.

    Parameters
    ----------
    purpose : str
        What it is for, and
    extra : str
        which extra of this package brings it: both for the error.

    Returns
    -------
    callable
        From bytes-like to int.

    Raises
    ------
    ImportError
        If it is not installed; the text says how to.
    """
    google_crc32c = need("google_crc32c", f"the CRC-32C of {purpose}", extra=extra)

    def of(data):
        crc, view = 0, memoryview(data)
        for start in range(0, len(view), _PIECE):
            crc = google_crc32c.extend(crc, bytes(view[start : start + _PIECE]))
        return crc

    return of


def checksum_entries(data, offsets):
    """Compute the checksums of the records of a file.

    Parameters
    ----------
    data : bytes-like
        The whole record file.
    offsets : numpy.ndarray of int64
        Where the records begin: all of them, in the order of the file.

    Returns
    -------
    numpy.ndarray of ENTRY
        One for each record.

    Raises
    ------
    ImportError
        If google-crc32c is not installed.
    """
    crc = library_crc32c()
    view = memoryview(data)
    entries = np.zeros(len(offsets), ENTRY)
    entries["offset"] = offsets
    entries["length"] = np.diff(np.append(offsets, len(view)))
    for place, (begin, length, _) in enumerate(entries.tolist()):
        entries["crc"][place] = crc(view[begin : begin + length])
    return entries
