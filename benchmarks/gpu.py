"""What a CUDA device gets: ``python benchmarks/gpu.py [copies cores decoding training timeline]``.

Copies beside torch's own; rates by threads; decoding on the device beside the processor's; training
fed by this project, by DALI and by nothing; and the order of events of some batches as a picture.
``python benchmarks/gpu.py device`` is for a machine that is lent for a quarter of an hour: a check
of decoding there, rates by the calls of nvJPEG, and `decoding` and `training`, in that order.  A
contender that is not installed, or fails, is named in the table.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np
import torch
from contenders import CONTENDERS, Failed, Process
from gpu_device import check, widths
from gpu_feeds import FEEDS, provider
from gpu_models import MODELS, Training
from harness import markdown_table
from material import NEARBY_PHOTOS, Material
from packs import Packs
from peers.jobs import JOBS

from iterators import ImageRecordIter
from iterators.core.device import placement

THREADS = (1, 2, 4, 8, 16)
#: What is measured by threads: a job, and further keywords.
SCALED = {
    "photographs": ("random_resized_crop", {}),
    "short side 256": ("resize_crop", {}),
    "faces 112": ("faces", {}),
    "heavy": ("heavy", {}),
    "raw": ("raw", {}),
    "cached": ("resize_crop", {"cache": "ram"}),
}


def copies(options, packs):
    """Bytes a second to the device, beside plain copies of page-locked memory."""
    lines = []
    for dtype in ("float32", "float16", "uint8"):
        ours = placement("cuda", ring=4)
        count = 256 * 3 * 224 * 224
        arrays = [ours.allocate(count * np.dtype(dtype).itemsize).view(dtype) for _ in range(6)]
        pinned = [torch.from_numpy(array) for array in arrays]
        target = torch.empty_like(pinned[0], device="cuda")

        def plain(number, pinned=pinned, target=target):
            target.copy_(pinned[number % 6], non_blocking=True)

        def placed(number, ours=ours, arrays=arrays):
            ours.place([arrays[number % 6]])

        rates = {plain: [], placed: []}
        for turn in range(options.rounds + 1):
            for way in rates:
                torch.cuda.synchronize()
                start = time.perf_counter()
                for number in range(60):
                    way(number)
                torch.cuda.synchronize()
                if turn:
                    rates[way].append(60 * arrays[0].nbytes / (time.perf_counter() - start))
        ratio = statistics.median(b / a for a, b in zip(*rates.values(), strict=True))
        lines.append((dtype, *(f"{statistics.median(r) / 1e9:.1f}" for r in rates.values()), ratio))
    lines = [(*line[:3], f"{line[3]:.2f}") for line in lines]
    return markdown_table(["Element type", "plain, GB/s", "ours, GB/s", "ours/plain"], *lines)


def rate(items, seconds, warm):
    """Images a second, and processor seconds an image, of counts of images."""
    for _ in range(warm):
        next(items)
    start, processor, images = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - start < seconds:
        images += next(items)
    return images / (time.perf_counter() - start), (time.process_time() - processor) / images


def counts(job, files, threads, **more):
    """Images in each batch of this project, on the processor."""
    with provider(job, files, threads, **more) as source:
        if more:  # the first epoch fills the cache
            for _ in source:
                pass
        while True:
            for batch in source:
                yield batch.count_samples()


def cores(options, packs):
    """Rates by threads, beside DALI and torch with as many."""
    lines = []
    for name, (job_name, more) in SCALED.items():
        job = JOBS[job_name]
        files = getattr(packs, job.prepared or job.pack)
        found = []
        for threads in THREADS:
            items = counts(job, files, threads, **more)
            found.append(rate(items, options.seconds, 4 * threads)[0])
            items.close()
        lines.append((name, f"{found[0]:.0f}", *(f"{each / found[0]:.1f}" for each in found[1:])))
        print(lines[-1], file=sys.stderr, flush=True)
    table = markdown_table(
        ["", "1 thread, images/s", *(f"{threads}" for threads in THREADS[1:])], *lines
    )
    lines = []
    for job_name in ("random_resized_crop", "faces"):
        job = JOBS[job_name]
        files = getattr(packs, job.pack)
        for threads in (1, 16):
            rates = {}
            for who in ("recordio", "dali", "torch"):
                try:
                    with Process(CONTENDERS[who], sys.executable, 60) as process:
                        answer = process.ask(job=job_name, files=files, threads=threads)
                        steps = max(threads, round(answer["steps"] / answer["elapsed"]))
                        answer = process.ask(steps=steps * 2)
                        rates[who] = answer["items"] / answer["elapsed"]
                except Failed as reason:
                    print(who, reason, file=sys.stderr)
            shown = [
                f"{rates['recordio'] / rates[w]:.2f}" if w in rates else "-"
                for w in ("dali", "torch")
            ]
            lines.append((job_name, threads, f"{rates['recordio']:.0f}", *shown))
            print(lines[-1], file=sys.stderr, flush=True)
    head = ["Job", "threads", "ours, images/s", "ours/DALI (CPU)", "ours/torch + OpenCV"]
    return table + "\n\n" + markdown_table(head, *lines)


def feed_of(name, job, files, batch, threads):
    """An endless feed, its first batch made; the reason if it cannot be had."""
    try:
        items = FEEDS[name](job, files, batch, threads)
        next(items)
    except Exception as reason:
        traceback.print_exc()
        return None, f"{type(reason).__name__}: {reason}"
    return items, ""


def decoding(options, packs):
    """Rates of feeds without training, and how far the device's pixels are from the processor's."""
    lines, notes = [], []
    for job_name in ("random_resized_crop", "resize_crop", "faces"):
        job, line = JOBS[job_name], [job_name]
        files = getattr(packs, job.pack)
        for name in FEEDS:
            if name == "synthetic":
                continue
            items, reason = feed_of(name, job, files, job.batch, options.threads)
            if items is None:
                line.append("-")
                notes.append(f"{job_name}, {name}: {reason}")
                continue
            sizes = (len(images) for images, _ in items)
            found, processor = rate(sizes, options.seconds, 10)
            line.append(f"{found:.0f} ({1e6 * processor:.0f} us)")
            items.close()
            del items, sizes
        lines.append(line)
        print(line, file=sys.stderr, flush=True)
        try:
            lines[-1].append(levels(job, files))
        except Exception:
            traceback.print_exc()
            lines[-1].append("-")
    head = ["Job", *(f"{name}, images/s (processor time)" for name in list(FEEDS)[1:]), "levels"]
    return "\n".join([markdown_table(head, *lines), *notes])


def levels(job, files):
    """Differences of grey levels between the device and the processor, of 2,000 images."""
    plain = {"dtype": "uint8", "layout": "NCHW", "seed": 5}
    parameters = {
        key: value
        for key, value in job.record_iter_parameters().items()
        if not key.startswith(("mean_", "std_"))
    }
    found = []
    for more in ({"decode_on": "device", "device": "cuda"}, {}):
        with ImageRecordIter(
            path_imgrec=files["records"], verbose=False, **parameters, **plain, **more
        ) as source:
            batches = [source.next().data[0] for _ in range(2000 // job.batch)]
            found.append(torch.cat([torch.as_tensor(one).cpu() for one in batches]).to(torch.int16))
    off = (found[0] - found[1]).abs().flatten().numpy()
    shares = np.bincount(off, minlength=8) / off.size
    beyond = [str(n) for n in range(len(shares)) if shares[n:].sum() <= 1e-3][:1]
    return f"mean {off.mean():.2f}, at most {off.max()}, 99.9 % below {beyond[0]}"


def training(options, packs):
    """Images a second of training, by what feeds it: the feeds take turns."""
    tables = []
    for model_name, (make, job_name, batch) in MODELS.items():
        job = JOBS[job_name]
        files = getattr(packs, job.pack)
        step = Training(make)
        found, reasons = {name: [] for name in FEEDS}, dict.fromkeys(FEEDS, "")
        for _ in range(options.turns):
            for name in FEEDS:
                items, reason = feed_of(name, job, files, batch, options.threads)
                if items is None:
                    reasons[name] = reason
                    continue
                found[name].append(trained(step, items, options.steps))
                items.close()
                del items
        best = statistics.mean(rate for rate, _ in found["synthetic"])
        lines = []
        for name, turns in found.items():
            if not turns:
                lines.append((name, "-", "-", "-", reasons[name]))
                continue
            mean, used = (statistics.mean(column) for column in zip(*turns, strict=True))
            share = f"{100 * (1 - mean / best):.1f} %"
            lines.append((name, f"{mean:.0f}", share, f"{used:.1f}", ""))
        head = [f"{model_name}, fed by", "images/s", "below synthetic", "processor cores", ""]
        tables.append(markdown_table(head, *lines))
        print(tables[-1], file=sys.stderr, flush=True)
        del step
        torch.cuda.empty_cache()
    return "\n\n".join(tables)


def trained(step, items, steps):
    """Images a second of some steps, and the processor cores that they took."""
    images = 0
    for number in range(12 + steps):
        if number == 12:
            torch.cuda.synchronize()
            start, processor, images = time.perf_counter(), time.process_time(), 0
        batch, labels = next(items)
        step(batch, labels)
        images += len(batch)
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - start
    return images / elapsed, (time.process_time() - processor) / elapsed


def timeline(options, packs):
    """Profile some batches of training; the share of time without kernels, and the events."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile, record_function

    make, job_name, batch = MODELS["resnet50"]
    job = JOBS[job_name]
    step = Training(make)
    batches = FEEDS["ours"](job, packs.photos, batch, options.threads)

    def one():
        with record_function("next batch"):
            images, labels = next(batches)
        with record_function("launch step"):
            step(images, labels)

    for _ in range(12):
        one()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        for _ in range(8):
            one()
        torch.cuda.synchronize()
    batches.close()
    rows = {"next batch": [], "launch step": [], "copies": [], "kernels": []}
    for event in profiled.events():
        span = event.time_range.start, event.time_range.end
        on_device = event.device_type == DeviceType.CUDA
        if event.name in rows:
            if not on_device:
                rows[event.name].append(span)
        elif on_device:
            rows["copies" if "HtoD" in event.name else "kernels"].append(span)
    busy = merged(rows["kernels"])
    # From the second step on: the first begins with an empty queue.
    first = rows["launch step"][1][0]
    busy = [(max(a, first), b) for a, b in busy if b > first]
    idle = 1 - sum(b - a for a, b in busy) / (busy[-1][1] - busy[0][0])
    rows["kernels"] = merged(rows["kernels"], gap=20)
    if options.picture:
        draw(rows, options.picture)
    return f"Without kernels: {100 * idle:.2f} % of {(busy[-1][1] - busy[0][0]) / 1e3:.0f} ms"


def draw(rows, path):
    """Draw the events, a row for each kind, in milliseconds."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "timeline"  # the same file for the same events
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 2.2), layout="constrained")
    colours = "tab:orange", "tab:gray", "tab:blue", "tab:green"
    for height, (spans, colour) in enumerate(zip(rows.values(), colours, strict=True)):
        # No bar is narrower than what can be seen.
        bars = [(begin / 1e3, max(end - begin, 400) / 1e3) for begin, end in spans]
        axes.broken_barh(bars, (-height - 0.4, 0.8), facecolors=colour)
    axes.set_yticks([-height for height in range(len(rows))], list(rows))
    axes.set_xlabel("ms")
    figure.savefig(path, metadata={"Date": None})


def merged(spans, gap=0.0):
    """Spans in order, those joined that are at most `gap` apart."""
    joined = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1] + gap:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined


def checks(options, packs):
    """Whether what the device decodes and resamples is right."""
    return check(packs.photos["records"])


def calls(options, packs):
    """Rates by the width of a call of nvJPEG, and by the number of decoders."""
    return widths(packs.photos["records"], seconds=options.seconds)


#: Parts of `device`; each is printed when it is done.
DEVICE = {"check": checks, "calls": calls, "decoding": decoding, "training": training}
SECTIONS = {
    "copies": copies,
    "timeline": timeline,
    "training": training,
    "decoding": decoding,
    "cores": cores,
}


def main(arguments=None):
    """Measure the chosen sections and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "section", nargs="*", help=f"of {', '.join(SECTIONS)}, or device; all but that without"
    )
    parser.add_argument("--photos", type=Path, help="folder of JPEG photographs")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement of a rate")
    parser.add_argument("--turns", type=int, default=2, help="of each feed, in training")
    parser.add_argument("--steps", type=int, default=40, help="of training, for each feed")
    parser.add_argument("--picture", type=Path, help="SVG file for the timeline")
    options = parser.parse_args(arguments)
    if unknown := set(options.section) - {*SECTIONS, "device"}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if not torch.cuda.is_available():
        print("torch finds no CUDA device", file=sys.stderr)
        return 2
    sections = {name: SECTIONS[name] for name in options.section or SECTIONS if name != "device"}
    if "device" in options.section:
        sections |= DEVICE
        options.turns, options.steps = 1, 30
    photos = options.photos or (NEARBY_PHOTOS if NEARBY_PHOTOS.is_dir() else None)
    failed = []
    with tempfile.TemporaryDirectory(prefix="recordio-gpu-") as folder:
        packs = Packs(Material(photos, folder, threads=2, rounds=1, seconds=1), 2_000, 20_000)
        for name, section in sections.items():
            start = time.perf_counter()
            try:
                table = section(options, packs)
            except Exception:
                failed.append(name)
                traceback.print_exc()
                continue
            print(f"\n## {name} ({time.perf_counter() - start:.0f} s)\n\n{table}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
