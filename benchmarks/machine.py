"""Conditions of the numbers: processor, memory, system, and other programs on the machine."""

from __future__ import annotations

import datetime
import os
import platform
import re
import statistics
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from jpeg_limits import full_decode_rate

__all__ = ["describe", "free_cores"]


def first_match(pattern, path):
    """Return the text of the first group in a file, or None."""
    try:
        found = re.search(pattern, Path(path).read_text(), re.M)
    except OSError:
        return None
    return found[1] if found else None


def caches():
    """Sizes of the caches of the first core."""
    sizes = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (
            (folder / name).read_text().strip() for name in ("level", "type", "size")
        )
        sizes[f"L{level} {kind.lower()}"] = size
    return sizes


def commit():
    """The commit that is measured, or None outside a repository."""
    command = ["git", "describe", "--always", "--dirty"]
    result = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return result.stdout.strip() or None


def free_cores(material):
    """Measure the cores that the machine gives to as many threads: decoding in all, and in one."""
    decode = partial(full_decode_rate, material.blobs, material.seconds / 3)
    ratios = []
    with ThreadPoolExecutor(material.threads) as pool:
        for _ in range(material.rounds):
            together = sum(pool.map(lambda _: decode(), range(material.threads)))
            ratios.append(together / decode())
    return statistics.median(ratios)


def describe(material):
    """All of it as a dictionary."""
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(),
        "processor": first_match(r"^model name\s*: (.*)$", "/proc/cpuinfo") or platform.processor(),
        "cores": os.cpu_count(),
        "caches": caches(),
        "memory": f"{pages * page / 2**30:.0f} GiB",
        "system": platform.platform(),
        "python": platform.python_version(),
        "load before": os.getloadavg()[0],
        "free cores": free_cores(material),
    }
