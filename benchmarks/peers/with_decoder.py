"""One decoder alone: whole images in memory to RGB arrays, one after the other, by one thread.

Called as `decoders.py` calls it, and set to one thread where it has more.
"""

import importlib.metadata
import itertools
import sys
from functools import partial
from pathlib import Path

from protocol import Unsupported, serve

sys.path.append(str(Path(__file__).resolve().parents[1]))
from decoders import DECODERS

SLICE = 64  # images that are decoded in one step


def contents(files):
    """Contents of the image files, again and again."""
    paths = sorted(set(Path(files["list"]).read_text().splitlines()))[:2048]
    return itertools.cycle([Path(path).read_bytes() for path in paths])


def batches_of(files, count):
    """Lists of so many contents, again and again."""
    blobs = contents(files)
    while True:
        yield list(itertools.islice(blobs, count))


def decode(name, job, files, threads):
    """Steps of `SLICE` images."""
    blobs = contents(files)
    call = DECODERS[name][0]()
    try:
        call(next(blobs))
    except Exception as error:  # libraries raise what they like
        raise Unsupported(f"does not decode it: {error}"[:100]) from error
    while True:
        for data in itertools.islice(blobs, SLICE):
            call(data)
        yield SLICE


if __name__ == "__main__":
    version = importlib.metadata.version(DECODERS[sys.argv[1]][1])
    serve({sys.argv[1]: version}, decode=partial(decode, sys.argv[1]))
