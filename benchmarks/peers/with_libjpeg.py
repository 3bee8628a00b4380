"""No pipeline, only the decoder: libjpeg-turbo in as many threads as are given, pixels dropped.

"full decode" decodes whole images, "coefficients" stops before the inverse transform, which no
decoder of whole images that uses libjpeg-turbo can avoid.  Data in memory, one decompressor for
each thread (`jpeg_limits.c`).
"""

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from protocol import serve

sys.path.append(str(Path(__file__).resolve().parents[1]))
import jpeg_limits

SLICE = 64  # images that a thread decodes in one step


def images(kernel, job, files, threads):
    """Steps of `SLICE` images for each thread."""
    paths = sorted(set(Path(files["list"]).read_text().splitlines()))[:2048]
    blobs = [Path(path).read_bytes() for path in paths]
    blobs = list(itertools.islice(itertools.cycle(blobs), -(-len(blobs) // SLICE) * SLICE))
    slices = [blobs[start : start + SLICE] for start in range(0, len(blobs), SLICE)]
    decode = partial(jpeg_limits.decode_once, kernel)
    with ThreadPoolExecutor(threads) as pool:
        for number in itertools.count():
            chosen = [slices[(number * threads + i) % len(slices)] for i in range(threads)]
            list(pool.map(decode, chosen))
            yield threads * SLICE


if __name__ == "__main__":
    serve({"decoder": "libjpeg-turbo"}, images=partial(images, sys.argv[1]))
