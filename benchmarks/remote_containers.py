"""Epochs of photographs from moto's S3 server, each library from files of its own format.

    python benchmarks/remote_containers.py [--python PATH] [--photos FOLDER] [--latency 30]

Ours reads WebDataset's tar files in place; LitData and Mosaic's streaming read theirs, in two
workers of a DataLoader.  Every epoch begins in a process of its own with nothing cached, and every
request waits for the latency first.  All deliver the same crops by their own means: photographs
decoded in full or in part, random resized crop 224, mirrored, as float32.  `--python` names an
interpreter with both libraries, torchvision and boto3.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

BATCH, THREADS, SHARD = 32, 2, 4 << 20
KEYS = {"aws_access_key_id": "me", "aws_secret_access_key": "word"}


def serve(folder, latency):
    """Be the server, with all files of a folder in a bucket."""
    import logging

    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application, ready = DomainDispatcherApplication(create_backend_app), threading.Event()

    def slow(environ, start_response):
        if ready.is_set():
            time.sleep(float(latency))
        return application(environ, start_response)

    server = make_server("127.0.0.1", 0, slow, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **KEYS)
    client.create_bucket(Bucket="bucket")
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            key = path.relative_to(folder).as_posix()
            client.put_object(Bucket="bucket", Key=key, Body=path.read_bytes())
            client.head_object(Bucket="bucket", Key=key)  # moto finds its ETag, once
    ready.set()
    print(url, flush=True)
    sys.stdin.read()


def tars(folder, images):
    """Write the tar files of WebDataset."""
    import io
    import tarfile

    (folder / "tars").mkdir()
    share = -(-len(images) // 12)
    for number, first in enumerate(range(0, len(images), share)):
        with tarfile.open(folder / f"tars/set-{number:06d}.tar", "w") as archive:
            for i, image in enumerate(images[first : first + share], first):
                for name, content in ((f"{i:06d}.jpg", image), (f"{i:06d}.cls", b"%d" % (i % 10))):
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))


def write(kind, folder, photos, count):
    """Write the files of one library, by that library."""
    paths = sorted(path for path in Path(photos).iterdir() if path.is_file())
    images = [paths[i % len(paths)].read_bytes() for i in range(int(count))]
    folder = Path(folder)
    if kind == "tars":
        tars(folder, images)
    elif kind == "mds":
        from streaming import MDSWriter

        columns = {"image": "bytes", "label": "int"}
        with MDSWriter(out=str(folder / "mds"), columns=columns, size_limit=SHARD) as writer:
            for i, image in enumerate(images):
                writer.write({"image": image, "label": i % 10})
    else:
        from litdata.streaming.writer import BinaryWriter

        os.makedirs(folder / "lit")
        writer = BinaryWriter(str(folder / "lit"), chunk_bytes=SHARD)
        for i, image in enumerate(images):
            writer[i] = {"image": image, "label": i % 10}
        writer.done()
        writer.merge(1)


def transform():
    """What torchvision's references do to a photograph for training."""
    import io

    from PIL import Image
    from torchvision import transforms

    changes = transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )
    return lambda content: changes(Image.open(io.BytesIO(content)).convert("RGB"))


def foreign(kind, url, cache, decodes):
    """Batches of LitData or Mosaic's streaming."""
    from torch.utils.data import DataLoader

    change = transform() if decodes else len
    if kind == "mds":
        os.environ |= {"S3_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": "us-east-1"}
        os.environ |= {name.upper(): value for name, value in KEYS.items()}
        from streaming import StreamingDataset

        class Images(StreamingDataset):
            def __getitem__(self, i):
                sample = super().__getitem__(i)
                return change(sample["image"]), sample["label"]

        images = Images(
            remote="s3://bucket/mds", local=cache, shuffle=True, batch_size=BATCH,
            num_canonical_nodes=1,
        )  # fmt: skip
        return DataLoader(images, batch_size=BATCH, num_workers=THREADS)
    from litdata import StreamingDataLoader, StreamingDataset
    from litdata.streaming import downloader
    from litdata.streaming.resolver import Dir

    class Samples(StreamingDataset):
        def __getitem__(self, i):
            sample = super().__getitem__(i)
            return change(sample["image"]), sample["label"]

    # Its requests by obstore are for https alone, and moto speaks http.
    downloader._OBSTORE_CLIENT_OPTIONS = {**downloader._OBSTORE_CLIENT_OPTIONS, "allow_http": True}
    options = {"endpoint_url": url, "region_name": "us-east-1", **KEYS}
    where = Dir(path=cache, url="s3://bucket/lit")
    images = Samples(where, shuffle=True, storage_options=options)
    return StreamingDataLoader(images, batch_size=BATCH, num_workers=THREADS)


def ours(url, cache):
    """Batches of this project."""
    from iterators import ImageRecordIter

    options = {"access_key_id": "me", "secret_access_key": "word", "region": "us-east-1"}
    os.environ["RECORDIO_INDEX_CACHE"] = cache
    return ImageRecordIter(
        path_imgrec="s3://bucket/tars/set-*.tar",
        remote_cache=cache,
        remote_options={**options, "endpoint_url": url},
        data_shape=(3, 224, 224),
        batch_size=BATCH,
        shuffle=True,
        recipe="torchvision/resnet50-v1",
        preprocess_threads=THREADS,
        verbose=False,
    )


def epoch(kind, url, cache, count, decodes):
    """Print the seconds of an epoch, from the first request to the last batch, and of processor."""
    if kind == "ours":
        import iterators.providers.image_record  # noqa: F401
    else:
        import torchvision  # noqa: F401

        importlib.import_module("streaming" if kind == "mds" else "litdata")
    begun, before = time.perf_counter(), os.times()
    if kind == "ours":
        with ours(url, cache) as provider:
            images = sum(batch.count_samples() for batch in provider)
    else:
        images = sum(len(labels) for _, labels in foreign(kind, url, cache, decodes == "True"))
    seconds = time.perf_counter() - begun
    spent = sum(os.times()[:4]) - sum(before[:4])
    assert images == int(count), images
    print(json.dumps([seconds, spent]), flush=True)


def run(python, *words):
    """The last line that a part of this program prints."""
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(
            [python, __file__, *map(str, words)], stdout=subprocess.PIPE, stderr=errors, text=True
        )
        if done.returncode:
            errors.seek(0)
            raise SystemExit(f"{words}: {errors.read()[-2000:]}")
    return done.stdout.splitlines()[-1:] or [""]


def main():
    """Measure all in turns, and print a table."""
    parts = {"serve": serve, "write": write, "epoch": epoch}
    if sys.argv[1:2] and sys.argv[1] in parts:
        parts[sys.argv[1]](*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--photos", required=True)
    parser.add_argument("--latency", type=float, default=30, help="milliseconds")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--undecoded", action="store_true", help="the others deliver bytes")
    options = parser.parse_args()
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    kinds = {"ours": sys.executable, "lit": options.python, "mds": options.python}
    found = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        for kind, python in (("tars", sys.executable), *list(kinds.items())[1:]):
            run(python, "write", kind, folder, options.photos, options.count)
        server = subprocess.Popen(
            [sys.executable, __file__, "serve", folder, str(options.latency / 1e3)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        url = server.stdout.readline().strip()
        try:
            for number in range(options.rounds):
                for kind in sorted(kinds, reverse=bool(number % 2)):
                    with tempfile.TemporaryDirectory() as cache:
                        words = url, cache, options.count, not options.undecoded
                        (line,) = run(kinds[kind], "epoch", kind, *words)
                    found[kind].append(json.loads(line))
        finally:
            server.kill()
            server.communicate()
    print("| | epoch, s | processor, s | ours / theirs | processor |\n|---|---:|---:|---:|---:|")
    for kind, rounds in found.items():
        ratios = [
            statistics.median(b[i] / a[i] for a, b in zip(found["ours"], rounds, strict=True))
            for i in (0, 1)
        ]
        middle = [statistics.median(values) for values in zip(*rounds, strict=True)]
        print(f"| {kind} | {middle[0]:.2f} | {middle[1]:.2f} | {ratios[0]:.2f} | {ratios[1]:.2f} |")


if __name__ == "__main__":
    main()
