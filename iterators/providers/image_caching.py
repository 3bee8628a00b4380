"""`cache=` of the image providers: which cache, how large, for what images.

Checks the keywords, estimates what the images need before any is decoded, and opens the cache.  How
images get into it and out again is the work of `images`.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from recordio.errors import CacheFileError, RecordIOError, RemoteFileError
from recordio.formats import by_opencv
from recordio.formats.image_header import check_pixels, read_header
from recordio.formats.jpeg import jpeg

from ..core.order import Order, SequentialOrder
from ..images.cache.image_cache import FileImageCache, ImageCache, MemoryImageCache
from ..images.render import CachedImages, cached_bytes, resizes
from ..images.sources.mixed_packs import Pack
from ..images.sources.source import Source

#: The value of `cache` that is no path.
RAM = "ram"
#: Headers that an estimate is made from, at most.
SAMPLE = 512
#: A cache is made larger than the estimate, which may be a little too low.
MARGIN, LEAST_MARGIN = 1.25, 64 << 20

#: Where the system tells the limit of a container and what it uses, in its two versions.
CGROUPS = "/sys/fs/cgroup"
CGROUP_FILES = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)

logger: logging.Logger = logging.getLogger("iterators")


class _Versioned(Protocol):
    """An `ImageSource`, as far as it matters here."""

    def __len__(self) -> int: ...

    def version(self) -> str: ...

    def bytes_source(self) -> Source: ...


@dataclass(frozen=True)
class CacheInfo:
    """Contents and counters of a cache of a provider.

    `cache` is "ram" or the path of the file, whose `images` are those of other processes and
    earlier runs as well.  They take `used_bytes`, and may take `capacity`: `cache_size`, or less
    where `estimated_bytes` is lower, which all images of the provider would take, estimated by some
    headers.  `hits` counts samples that were made from cached images, `misses` those whose image
    was decoded.
    """

    cache: str
    images: int
    used_bytes: int
    capacity: int
    estimated_bytes: int
    hits: int
    misses: int

    @classmethod
    def of(cls, caches: Sequence[OpenCache]) -> CacheInfo:
        """Count several caches together."""
        images = [opened.images for opened in caches if opened.images is not None]
        stats = [cached.stats() for cached in images]
        image_caches = [cached.cache for cached in images]
        return cls(
            cache=";".join(dict.fromkeys(opened.path for opened in caches)),
            images=sum(cache.images for cache in image_caches),
            used_bytes=sum(cache.used for cache in image_caches),
            capacity=sum(cache.capacity for cache in image_caches),
            estimated_bytes=sum(opened.estimated_bytes for opened in caches),
            hits=sum(counts["cache_hits"] for counts in stats),
            misses=sum(counts["cache_misses"] for counts in stats),
        )


class OpenCache(NamedTuple):
    """A cache of a pack: its images, where it is, and the bytes that all images would take."""

    images: CachedImages | None  # None once the provider is closed
    path: str
    estimated_bytes: int


def check_cache(cache: str, cache_size: int | None) -> None:
    """Refuse a size that has no effect, and memory of unknown size."""
    if cache_size is None:
        if cache == RAM and not available_memory():
            raise ValueError("cache_size must be given: the free memory of this system is unknown")
    elif not cache:
        raise ValueError(f"cache_size={cache_size!r} has no effect without a cache")


def cached_recipe(recipe: Any, asked: bool) -> Any:
    """Return the recipe that a provider with a cache has; `asked` if it names `scaled_decode`.

    Where whole decoded images are cached they are decoded in full: a scale that follows from the
    crop would need another image for every crop.
    """
    if resizes(recipe) or not recipe.scaled_decode:
        return recipe
    if recipe.reducing_gap is not None:
        raise ValueError(
            f"reducing_gap={recipe.reducing_gap:g}: a cache holds images that were decoded in "
            "full, unless they are resized first (resize); drop one of both"
        )
    if asked:
        raise ValueError(
            "scaled_decode=True: a cache holds images that were decoded in full, unless they are "
            "resized first (resize, with an interpolation that is not random); drop one of both"
        )
    return replace(recipe, scaled_decode=False)


def steady_records(order: Order, count: int) -> range:
    """The records that a provider delivers in every epoch, or all if they change."""
    if isinstance(order, SequentialOrder):
        return range(order.first, order.last)
    return range(count)


def open_caches(
    source: Any, records: range, packs: Sequence[Pack], recipes: Sequence[Any], options: Any
) -> list[OpenCache | None]:
    """Open the caches that keywords ask for, one or None for each pack.

    `recipes` are those that `cached_recipe` returned.  The provider will deliver only `records`.
    Memory that is not given to one pack is shared by all as they need it.
    """
    ranges = []
    for pack, member, first in zip(packs, source.members, source.firsts.tolist(), strict=True):
        mine = range(len(member))
        if (pack.cache or options.cache) == RAM:  # all parts share a file
            mine = mine[max(records.start - first, 0) : max(records.stop - first, 0)]
        ranges.append(mine)
    estimates = [
        estimated_bytes(member.bytes_source(), mine, recipe) if pack.cache or options.cache else 0
        for pack, member, mine, recipe in zip(packs, source.members, ranges, recipes, strict=True)
    ]
    opened: list[OpenCache | None] = []
    for pack, member, recipe, estimate in zip(
        packs, source.members, recipes, estimates, strict=True
    ):
        path, size, share = pack.cache, pack.cache_size, 1.0
        if options.cache and not path:
            path, size = options.cache, options.cache_size
            share = estimate / max(sum(estimates), 1)
        if not path:
            opened.append(None)
            continue
        images = _open_cache(member, recipe, estimate, path, size, share, options)
        opened.append(OpenCache(images, path, estimate))
    return opened


def _open_cache(
    source: _Versioned,
    recipe: Any,
    estimate: int,
    cache: str,
    cache_size: int | None,
    share: float,
    options: Any,
) -> CachedImages:
    """Open one cache, which may take a share of what there is; `cache_size` is that of all."""
    available = available_memory() // options.num_parts if cache == RAM else _available_disk(cache)
    limit = int(share * (available // 2 if cache_size is None else cache_size))
    capacity = min(limit, max(int(MARGIN * estimate), estimate + LEAST_MARGIN))
    made: ImageCache
    if cache == RAM:
        made = MemoryImageCache(len(source), recipe.channels, capacity)
    else:
        if min(limit, estimate) > available:
            raise CacheFileError(
                f"the cache needs about {min(limit, estimate)} bytes, of which the disk has room "
                f"for {available}: choose a smaller cache_size or another disk",
                path=cache,
            )
        made = FileImageCache(
            cache, len(source), recipe.channels, capacity, _settings(source, recipe)
        )
    if options.verbose:
        fits = min(1.0, limit / estimate) if estimate else 1.0
        logger.info(
            "cache %s: the images need about %.2f GB, cache_size is %.2f GB: %s; %d are there",
            cache,
            estimate / 1e9,
            limit / 1e9,
            "all fit" if fits == 1 else f"about {fits:.0%} of them fit",
            made.images,
        )
    return CachedImages(made, recipe)


def estimated_bytes(source: Source, records: range, recipe: Any) -> int:
    """Bytes that the images of these records need in a cache, from the headers of some."""
    numbers: Sequence[int] = records
    if len(records) > SAMPLE:
        chosen = np.random.default_rng(0).integers(0, len(records), SAMPLE)
        numbers = [records[i] for i in np.sort(chosen).tolist()]
    total = sum(_image_bytes(source, number, recipe) for number in numbers)
    return round(total * len(records) / max(len(numbers), 1))


def _image_bytes(source: Source, number: int, recipe: Any) -> int:
    """Estimate one image; 0 if it cannot be read, because it will not be cached."""
    try:
        _, content = source.image(number)
        size = read_header(content).size
        check_pixels(size)
    except RemoteFileError:
        raise
    except RecordIOError:
        return 0
    return cached_bytes(recipe, *size)


def _settings(source: _Versioned, recipe: Any) -> dict[str, str]:
    """Return what cached images depend on."""
    resized = resizes(recipe)
    return {
        "data": source.version(),
        "resize": str(recipe.resize if resized else -1),
        "inter_method": str(recipe.method) if resized else "any",
        "scaled_decode": str(resized and (recipe.reducing_gap or recipe.scaled_decode)),
        "decoder": f"{jpeg.library()} and OpenCV {by_opencv.version()}",
        # Only what differs: files that were made before there was a choice stay valid.
        **({} if recipe.orient else {"orient": "False"}),
        **({"background": str(recipe.background)} if recipe.background else {}),
        **({"max_side": str(recipe.max_side)} if resized and recipe.max_side != -1 else {}),
    }


def _available_disk(path: str) -> int:
    """Bytes that a file at this path could have: what is free, and what it has already."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise CacheFileError(f"a cache cannot be made here: {error.strerror}", path=path) from error
    try:
        return free + 512 * getattr(os.stat(path), "st_blocks", 0)
    except FileNotFoundError:
        return free


def available_memory() -> int:
    """Bytes of memory that this process could still use; 0 if the system does not tell."""
    try:
        with open("/proc/meminfo") as file:
            match = re.search(r"MemAvailable:\s+(\d+) kB", file.read())
        available = int(match[1]) * 1024 if match else 0
    except OSError:
        try:
            available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            return 0
    return _left_in_container(available)


def _left_in_container(most: int) -> int:
    """Bytes that the limit of a container leaves; `most` where there is none."""
    for limit, used in CGROUP_FILES:
        try:
            allowed, taken = (int(Path(CGROUPS, name).read_text()) for name in (limit, used))
            statistics = Path(CGROUPS, used).with_name("memory.stat").read_text()
        except (OSError, ValueError):  # no limit is "max"
            continue
        # Files that were read count as used, although they make room when others need it.
        files = re.search(r"^(?:total_)?inactive_file (\d+)$", statistics, re.M)
        most = min(most, max(allowed - taken + (int(files[1]) if files else 0), 0))
    return most
