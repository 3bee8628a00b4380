"""The workloads of imread_benchmark, over the decoders of `decoders.py`; our row in its registry.

``python benchmarks/imread.py [FOLDER] [WORKERS ...]`` decodes the JPEG files of a folder to RGB
arrays as imread_benchmark does: one after the other from memory ("memory") and from files
("disk"), and from memory in a torch `DataLoader` with batches of 32 and so many workers, 0 and 2
if none are named.  Rates are images per second by the clock, as there, and for a second of the
processor.  Decoders that are not installed are left out, the loader without torch.

``python benchmarks/imread.py --theirs MODULE ARGUMENT ...`` runs a module of imread_benchmark
itself, if it is installed (``benchmark_single``, ``benchmark_dataloader``), with ``recordio``
among its libraries.

``python benchmarks/imread.py --into CHECKOUT`` adds our decoder to a checkout of imread_benchmark
0.2, for a pull request there: a module, and its entry point in ``pyproject.toml``.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from decoders import DECODERS, IMAGES, Decoder

from recordio import decode_image

ROUNDS, BATCH = 5, 32
#: Our module in imread_benchmark, whose registry is the entry points of this group.
GROUP, MODULE = "imread_benchmark.decoders", "recordio_decoder"
DECODER = '''from __future__ import annotations

import numpy as np

from imread_benchmark.decoders import BaseDecoder


class RecordioDecoder(BaseDecoder):
    """recordio-iterators: libjpeg-turbo with an entropy decoder of its own, without threads."""

    name = "recordio"
    package_name = "recordio-iterators"

    def decode(self, data: bytes) -> np.ndarray:
        from recordio import decode_image

        return decode_image(data)
'''


def register() -> None:
    """Add our decoder to the registry of imread_benchmark."""
    from imread_benchmark.decoders import REGISTRY, BaseDecoder

    class Recordio(BaseDecoder):
        """`recordio.decode_image`, which never uses a thread of its own."""

        name = "recordio"
        package_name = "recordio-iterators"

        def decode(self, data: bytes) -> Any:
            return decode_image(data)

    REGISTRY[Recordio.name] = Recordio


def put_into(checkout: Path) -> None:
    """Add our decoder to a checkout of imread_benchmark."""
    project = checkout / "pyproject.toml"
    text = project.read_text()
    value = f'"{GROUP}.{MODULE}:RecordioDecoder"'
    places = (
        (rf'^\[project\.entry-points\."{re.escape(GROUP)}"\]\n', f"recordio = {value}\n"),
        (
            rf'(?=^entry-points\."{re.escape(GROUP)}"\.)',
            f'entry-points."{GROUP}".recordio = {value}\n',
        ),
    )
    for pattern, line in places:
        found = re.search(pattern, text, re.M)
        if found:
            project.write_text(text[: found.end()] + line + text[found.end() :])
            target = checkout / "imread_benchmark" / "decoders" / f"{MODULE}.py"
            target.write_text(DECODER)
            print(f"{target}, {project}: add recordio-iterators to a group of its dependencies")
            return
    raise SystemExit(f"{project} has no entry points of {GROUP}: this is another version")


class InMemory:
    """Images as bytes, decoded when they are asked for."""

    def __init__(self, files: list[bytes], decode: Decoder) -> None:
        self.files, self.decode = files, decode

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, number: int) -> Any:
        return self.decode(self.files[number])


def processor_seconds() -> float:
    """Processor time of this process and of its workers that run."""
    ticks = 0
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def as_they_are(batch: list[Any]) -> list[Any]:
    """Images of a batch, which have sizes of their own."""
    return batch


def loading(files: list[bytes], decode: Decoder, workers: int) -> Callable[[], None]:
    """One epoch of a loader, whose workers stay from epoch to epoch."""
    from torch.utils.data import DataLoader

    loader: Any = DataLoader(
        InMemory(files, decode),  # type: ignore[arg-type]
        batch_size=BATCH,
        num_workers=workers,
        collate_fn=as_they_are,
        persistent_workers=workers > 0,
    )

    def epoch() -> None:
        for _ in loader:
            pass

    return epoch


def jobs(paths: list[Path], decode: Decoder, workers: Sequence[int]) -> dict[str, Callable]:
    """The workloads of one decoder, each as one round."""
    files = [path.read_bytes() for path in paths]

    def memory() -> None:
        for data in files:
            decode(data)

    def disk() -> None:
        for path in paths:
            decode(path.read_bytes())

    found: dict[str, Callable] = {"memory": memory, "disk": disk}
    if importlib.util.find_spec("torch"):
        for number in workers:
            found[f"DataLoader, workers={number}"] = loading(files, decode, number)
    return found


def main(folder: str = "../shared/data/photos", *workers: str) -> None:
    """Print a table of all decoders over all workloads."""
    paths = sorted(p for p in Path(folder).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    runs: dict[str, dict[str, Callable]] = {}
    for name, (make, _) in DECODERS.items():
        try:
            runs[name] = jobs(paths[:IMAGES], make(), [int(word) for word in workers] or [0, 2])
            runs[name]["memory"]()
        except Exception as error:  # not installed, or not for this machine
            runs.pop(name, None)
            print(f"without {name}: {error}"[:100], file=sys.stderr)
    print("| |", " | ".join(runs), "|")
    print("|---" * (len(runs) + 1) + "|")
    for job in runs["ours"]:
        rates: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
        for number in range(ROUNDS + 1):
            for name, found in runs.items():
                begin = processor_seconds(), time.perf_counter()
                found[job]()
                spent = processor_seconds() - begin[0], time.perf_counter() - begin[1]
                if number:  # the first is for warming up
                    rates[name].append((IMAGES / spent[1], IMAGES / spent[0]))
        cells = (
            " / ".join(
                f"{statistics.median(column):,.0f}" for column in zip(*rates[name], strict=True)
            )
            for name in runs
        )
        print(f"| {job} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--theirs"]:
        register()
        sys.argv[1:3], module = [], sys.argv[2]
        importlib.import_module(f"imread_benchmark.{module}").main()
    elif sys.argv[1:2] == ["--into"]:
        put_into(Path(sys.argv[2]))
    else:
        main(*sys.argv[1:])
