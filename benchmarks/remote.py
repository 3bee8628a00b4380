"""Epochs from a server with a latency and a limited link, beside the local file and other ways.

    python benchmarks/remote.py [--latency 0 0.03 0.1] [--library obstore]

The server is the one of the tests, on the loopback, in a process of its own.  What "one request a
record" gives is modelled by a reader that waits for one range after the other, as DALI's reader of
record files on S3 does.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import recordio  # noqa: E402
from iterators import ImageRecordIter  # noqa: E402
from recordio.bytes.remote.objects import RemoteObject  # noqa: E402
from recordio.bytes.remote.settings import RemoteSettings  # noqa: E402

LINK = 125e6  # bytes per second
KINDS = {
    "photos": {"data_shape": (3, 64, 64), "rand_crop": True},
    "faces": {"data_shape": (3, 112, 112)},
}
COLUMNS = (
    "pack",
    "latency, ms",
    "first epoch, s",
    "of the link",
    "second epoch, of local",
    "requests",
    "MiB each",
    "records/s",
    "one request a record, records/s",
    "times",
)
#: Records, and the bytes of one at least.
SIZES = {"photos": (4000, 110_000), "faces": (40_000, 5000)}


def write_pack(path, kind):
    """JPEG images of noise and gradients; what they lack in bytes is put behind them."""
    rng = np.random.default_rng(0)
    count, least = SIZES[kind]
    height, width = (401, 468) if kind == "photos" else (112, 112)
    images = []
    for _ in range(64):
        small = rng.integers(0, 256, (height // 16, width // 16, 3)).astype(np.uint8)
        image = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
        jpeg = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes()
        images.append(jpeg.ljust(least, b"\0"))
    with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
        for key in range(count):
            header = recordio.IRHeader(0, float(key % 10), key, 0)
            writer.write(recordio.pack(header, images[key % len(images)]), key=key)


def serve(arguments):
    """Be the server; a line on standard input asks for what was counted so far."""
    from range_server import RangeServer

    server = RangeServer()
    server.latency, server.bandwidth = float(arguments[0]), LINK
    for name in arguments[1:]:
        server.objects[Path(name).name] = Path(name).read_bytes()
    print(server.url, flush=True)
    for _ in sys.stdin:
        print(len(server.requests), server.most_at_once, flush=True)


def epoch_seconds(provider):
    begun = time.perf_counter()
    for _ in provider:
        pass
    return time.perf_counter() - begun


def one_request_a_record(url, path, library):
    """Records per second of a reader that waits for one range after the other."""
    remote = RemoteObject(url, RemoteSettings(remote_options={"library": library}))
    with recordio.RecordReader(path) as reader:
        offsets = reader.offsets
    begun, count = time.perf_counter(), 0
    for i in np.random.default_rng(0).permutation(len(offsets) - 1).tolist():
        remote.read(int(offsets[i]), int(offsets[i + 1]))
        count += 1
        if time.perf_counter() - begun > 2:
            break
    return count / (time.perf_counter() - begun)


def measure(kind, path, latency, library, folder):
    keywords = {**KINDS[kind], "batch_size": 128, "shuffle": True, "dtype": "uint8"}
    keywords.update(preprocess_threads=2, verbose=False)
    size = path.stat().st_size
    server = subprocess.Popen(
        [sys.executable, __file__, "serve", str(latency), str(path), str(path.with_suffix(".idx"))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        url = f"{server.stdout.readline().strip()}/{path.name}"
        slow = one_request_a_record(url, path, library)
        with (
            tempfile.TemporaryDirectory(dir=folder) as cache,
            ImageRecordIter(path_imgrec=path, **keywords) as local,
            ImageRecordIter(
                path_imgrec=url, remote_cache=cache, remote_options={"library": library}, **keywords
            ) as remote,
        ):
            first = epoch_seconds(remote)
            stats = remote.stats()
            epoch_seconds(local)
            pairs = [(epoch_seconds(local), epoch_seconds(remote)) for _ in range(5)]
            here, there = (min(times) for times in zip(*pairs, strict=True))
            count = remote.num_samples
        print(
            f"| {kind} | {latency * 1e3:.0f} | {first:.2f} | {size / first / LINK:.2f} | "
            f"{here / there:.2f} | {stats['remote_requests']:.0f} | "
            f"{size / stats['remote_requests'] / 2**20:.2f} | {count / first:.0f} | {slow:.0f} | "
            f"{count / first / slow:.0f} |",
            flush=True,
        )
    finally:
        server.kill()
        server.wait()


def main():
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--latency", type=float, nargs="+", default=[0, 0.03, 0.1])
    parser.add_argument("--library", choices=["obstore", "fsspec"], default="obstore")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    options = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |")
    print("|" + "---|" * len(COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds:
            path = Path(folder, f"{kind}.rec")
            write_pack(path, kind)
            for latency in options.latency:
                measure(kind, path, latency, options.library, folder)


if __name__ == "__main__":
    main()
