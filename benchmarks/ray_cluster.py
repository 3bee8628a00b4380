"""Packing and statistics without Ray, with one worker and with two, taken in turns.

    python benchmarks/ray_cluster.py PHOTOS [--images 2400] [--shards 8] [--rounds 3]

Elapsed seconds say what the machine had to spare; processor time says what the work took.  The
cluster is made of processes of this machine, whose workers are as urgent as this process.
"""

import argparse
import functools
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

# Ray looks at these when it is imported, or starts a node.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
os.environ["RAY_raylet_start_wait_time_s"] = "120"  # noqa: SIM112

sys.path.insert(0, str(Path(__file__).parents[1]))

import ray
from ray.cluster_utils import Cluster

import recordio
from recordio.ray import run_tasks
from recordio.tools.encode import EncodeOptions
from recordio.tools.pack_shards import shard_tasks

WAYS = ("without Ray", "1 worker", "2 workers")
EMPTY_TASKS = 3000


def make_list(photos, folder, count):
    """A list of as many images as wanted, which are copies of the photographs."""
    found = [path for path in sorted(Path(photos).rglob("*")) if path.is_file()]
    (folder / "photos").mkdir()
    lines = []
    for number in range(count):
        source = found[number % len(found)]
        name = f"{number:06d}{source.suffix}"
        shutil.copyfile(source, folder / "photos" / name)
        lines.append(f"{number}\t{number % 10}\t{name}\n")
    (folder / "p.lst").write_text("".join(lines))


def pack_again(task):
    """Make a shard, and return its checksum and the processor time that it took."""
    begun = time.process_time()
    shard = task.make(threads=1).shard
    return shard.sha256, time.process_time() - begun


def measure_again(path):
    begun = time.process_time()
    found = recordio.stats(path, mean_std=True, threads=1)
    return found.records, time.process_time() - begun


def nothing(item):
    return None


def timed(way, work, items):
    """Elapsed seconds, processor time and results of one way."""
    begun = time.perf_counter()
    if way == "without Ray":
        found = [work(item) for item in items]
    else:  # a task that occupies both processors is alone
        done = dict(run_tasks(work, items, cpus=2 if way == "1 worker" else 1))
        found = [done[number] for number in range(len(items))]
    elapsed = time.perf_counter() - begun
    return elapsed, sum(seconds for _, seconds in found), [result for result, _ in found]


def compare(name, work, items, images, rounds):
    """Print a row for each way; results must be the same."""
    rows = {way: [] for way in WAYS}
    results = []
    for _ in range(rounds):
        for way in WAYS:
            *row, found = timed(way, work, items)
            rows[way].append(row)
            results.append(found)
    assert all(found == results[0] for found in results)
    for way in WAYS:
        elapsed, spent = zip(*rows[way], strict=True)
        print(
            f"| {name}, {way} | {', '.join(f'{s:.1f}' for s in elapsed)} | "
            f"{', '.join(f'{1000 * s / images:.2f}' for s in spent)} |",
            flush=True,
        )


def resident_megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", help="folder of photographs")
    parser.add_argument("--images", type=int, default=2400)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    node = {"node_ip_address": "127.0.0.1", "object_store_memory": 80 << 20, "num_cpus": 2}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    ray.init(cluster.address, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make_list(options.photos, folder, options.images)
            encode = EncodeOptions(resize=256, quality=90)
            words = (str(folder / "p.lst"), str(folder / "photos"), encode, options.shards)
            tasks = shard_tasks(*words)
            run = functools.partial(compare, images=options.images, rounds=options.rounds)
            print("| | elapsed, s | on a processor, ms an image |\n|---|---|---|")
            timed("2 workers", pack_again, tasks)  # workers are started
            run("packing", pack_again, tasks)
            run("statistics", measure_again, [f"{task.prefix}.rec" for task in tasks])
            before, begun = resident_megabytes(), time.perf_counter()
            for _ in run_tasks(nothing, [tasks[0]] * EMPTY_TASKS):
                pass
            each = (time.perf_counter() - begun) / EMPTY_TASKS
            print(f"a task that does nothing: {1000 * each:.1f} ms")
            print(f"driver: {before:.0f} MB, after these tasks {resident_megabytes():.0f} MB")
            print(f"load: {os.getloadavg()[0]:.1f}")
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main()
