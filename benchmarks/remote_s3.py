"""Epochs from moto's S3 server on the loopback: slow, failing, killed, and for two processes.

    python benchmarks/remote_s3.py [--library obstore] [--records 400]

Each batch is compared with that of the local file.  Moto copies the whole object for every range
that it answers, in the interpreter, so the times without latency are its own and no store's.
"""

import argparse
import hashlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import remote  # noqa: E402

from iterators import ImageRecordIter  # noqa: E402

COLUMNS = (
    "run", "latency, ms", "first epoch, s", "second epoch, s", "local, s", "requests", "retries",
    "MB", "equal",
)  # fmt: skip
KEYWORDS = {
    "data_shape": (3, 64, 64), "batch_size": 32, "shuffle": True, "rand_crop": True, "seed": 1,
    "dtype": "uint8", "preprocess_threads": 2, "verbose": False,
}  # fmt: skip
ACCESS = {"access_key_id": "me", "secret_access_key": "word", "region": "us-east-1"}


def serve(port, latency, share, *names):
    """Be the server; a share of the requests for ranges is answered with 503."""
    import logging

    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application, drawn = DomainDispatcherApplication(create_backend_app), random.Random(0)

    ready = threading.Event()

    def slow(environ, start_response):
        if "HTTP_RANGE" in environ:
            time.sleep(float(latency))
            if not ready.is_set() or drawn.random() < float(share):
                start_response("503 Slow Down", [("Content-Length", "0")])
                return [b""]
        return application(environ, start_response)

    server = make_server("127.0.0.1", int(port), slow, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    names_of = {"aws_access_key_id": "me", "aws_secret_access_key": "word"}
    client = boto3.client(
        "s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1", **names_of
    )
    client.create_bucket(Bucket="bucket")
    for name in names:
        client.put_object(Bucket="bucket", Key=Path(name).name, Body=Path(name).read_bytes())
        client.head_object(Bucket="bucket", Key=Path(name).name)  # moto finds its ETag, once
    ready.set()
    print("ready", flush=True)
    sys.stdin.read()


class Server:
    """The server in a process of its own, at a port that stays."""

    def __init__(self, path, latency=0.0, share=0.0):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.arguments = [self.port, latency, share, path, path.with_suffix(".idx")]
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "serve", *map(str, self.arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.kill()


def open_provider(port, cache, library):
    options = {**ACCESS, "endpoint_url": f"http://127.0.0.1:{port}", "library": library}
    return ImageRecordIter(
        path_imgrec="s3://bucket/photos.rec", remote_cache=cache, remote_options=options, **KEYWORDS
    )


def epoch(provider, half_way=None):
    """Seconds, and what the batches were."""
    digest, begun = hashlib.sha256(), time.perf_counter()
    for number, batch in enumerate(provider):
        digest.update(batch.data[0].tobytes() + batch.label[0].tobytes())
        if number == 1 and half_way is not None:
            half_way()
    return time.perf_counter() - begun, digest.hexdigest()


def run_process(port, cache, library):
    """Be one of two processes that share a mirror."""
    with open_provider(port, cache, library) as provider:
        print("open", flush=True)
        sys.stdin.readline()
        result = epoch(provider)
        stats = provider.stats()
    print(json.dumps([result, stats["remote_requests"], stats["remote_bytes"]]), flush=True)


def row(name, latency, first, second, local, requests, retries, nbytes, equal):
    again = "" if second is None else f"{second:.2f}"
    print(
        f"| {name} | {latency * 1e3:.0f} | {first:.2f} | {again} | {local:.2f} | "
        f"{requests:.0f} | {retries:.0f} | {nbytes / 1e6:.1f} | {'yes' if equal else 'NO'} |",
        flush=True,
    )


def measure(name, path, local, library, latency, share=0.0, killed=False):
    with Server(path, latency, share) as server, tempfile.TemporaryDirectory() as cache:
        with open_provider(server.port, cache, library) as provider:

            def restart():
                server.kill()
                threading.Timer(1, server.start).start()

            epochs = [epoch(provider, restart if killed else None), epoch(provider)]
            stats = provider.stats()
            while server.process.poll() is not None:
                time.sleep(0.1)
    row(
        name, latency, epochs[0][0], epochs[1][0], local[1][0], stats["remote_requests"],
        stats["remote_retries"], stats["remote_bytes"],
        [found for _, found in epochs] == [found for _, found in local],
    )  # fmt: skip


def measure_two(path, local, library, latency):
    with Server(path, latency) as server, tempfile.TemporaryDirectory() as cache:
        children = [
            subprocess.Popen(
                [sys.executable, __file__, "process", str(server.port), cache, library],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for _ in range(2)
        ]  # fmt: skip
        for child in children:
            child.stdout.readline()
        for child in children:
            child.stdin.write("\n")
            child.stdin.flush()
        found = [json.loads(child.communicate()[0]) for child in children]
    row(
        "two processes, one mirror", latency, max(result[0] for result, _, _ in found),
        None, local[1][0], sum(item[1] for item in found), 0,
        sum(item[2] for item in found), all(item[0][1] == local[0][1] for item in found),
    )  # fmt: skip


def main():
    if sys.argv[1:2] == ["serve"]:
        serve(*sys.argv[2:])
        return
    if sys.argv[1:2] == ["process"]:
        run_process(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", choices=["obstore", "fsspec"], default="obstore")
    parser.add_argument("--records", type=int, default=400)
    options = parser.parse_args()
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    remote.SIZES["photos"] = options.records, remote.SIZES["photos"][1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "photos.rec")
        remote.write_pack(path, "photos")
        with ImageRecordIter(path_imgrec=path, **KEYWORDS) as provider:
            local = [epoch(provider) for _ in range(2)]
        size = path.stat().st_size
        print(f"{options.records} photographs, {size / 1e6:.1f} MB, {options.library}\n")
        print(f"| {' | '.join(COLUMNS)} |")
        print("|" + "---|" * len(COLUMNS))
        for latency in (0.0, 0.03, 0.1):
            measure("as it is", path, local, options.library, latency)
        measure("1 % of 503", path, local, options.library, 0.03, share=0.01)
        measure("killed and started again", path, local, options.library, 0.03, killed=True)
        measure_two(path, local, options.library, 0.03)


if __name__ == "__main__":
    main()
