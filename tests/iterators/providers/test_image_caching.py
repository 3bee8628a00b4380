"""`cache=`: batches are the same to the byte with any cache, cold, half full, full, too small."""

import gc
import io
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import recordio
from iterators import ImageDetRecordIter, ImageIter, ImageRecordIter
from iterators.images.augment.recipe import Recipe
from iterators.images.cache.image_cache import image_bytes
from iterators.images.render import cached_bytes, resizes
from iterators.providers import image_caching
from iterators.testing import box_label, maker, write_images, write_pack
from recordio.errors import CacheFileError, RecordIOError
from recordio.formats.jpeg import jpeg

MIB = 1 << 20


def smooth(seed, height, width, channels=3):
    small = np.random.default_rng(seed).integers(0, 256, (5, 7, channels), np.uint8)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC).reshape(
        height, width, channels
    )


def encoded(pixels, kind=".png", **options):
    file = io.BytesIO()
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    if "orientation" in options:
        options["exif"] = Image.Exif()
        options["exif"][0x0112] = options.pop("orientation")
    image.save(file, {".png": "PNG", ".jpg": "JPEG", ".ppm": "PPM"}[kind], **options)
    return file.getvalue()


def damaged(blob, share):
    place = int(len(blob) * share)
    return blob[:place] + b"\x12\xff\xd3\x55" + blob[place + 4 :]


def contents():
    """Images of every kind that is treated differently on the way to a batch."""
    large = encoded(smooth(1, 301, 222), ".jpg", quality=92)
    return [
        large,
        encoded(smooth(2, 64, 48), ".jpg"),
        encoded(smooth(3, 90, 131), ".jpg", subsampling=0, quality=97),
        encoded(smooth(4, 100, 77), ".jpg", progressive=True),
        encoded(smooth(5, 70, 71, 1), ".jpg"),
        encoded(smooth(6, 240, 320), ".jpg", orientation=6),
        encoded(smooth(7, 121, 163), ".jpg", orientation=3),
        encoded(smooth(8, 88, 97), ".jpg", orientation=5, progressive=True),
        encoded(smooth(9, 40, 50)),
        encoded(smooth(10, 33, 30, 1)),
        encoded(smooth(11, 61, 52), ".ppm"),
        encoded(smooth(12, 3, 2)),
        encoded(smooth(13, 3, 90), ".jpg"),
        # Cut off below the crop of most draws; decoded without the cache where it is.
        large[: int(len(large) * 0.9)],
        large[: int(len(large) * 0.4)],
        damaged(large, 0.6),
        damaged(large, 0.95),
        b"no image at all",
        b"",
        large[:100],
        encoded(smooth(14, 128, 128), ".jpg"),
    ]


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(tmp_path_factory.mktemp("pack") / "images.rec", contents())


provider_of = maker(
    ImageRecordIter, data_shape=(3, 24, 28), batch_size=4, preprocess_threads=2,
    prefetch_buffer=2, on_error="skip", verbose=False,
)  # fmt: skip


def taken(provider, batches):
    """So many batches, across epochs, each as bytes and numbers."""
    found = []
    while len(found) < batches:
        for batch in provider:
            label = [np.array(array) for array in batch.label]
            found.append(
                (
                    np.array(batch.data[0]).tobytes(),
                    [array.tobytes() for array in label],
                    batch.pad,
                    batch.index.tolist(),
                )
            )
            if len(found) == batches:
                break
    return found


def run(make, batches, **arguments):
    """What a provider delivers and skips."""
    with make(**arguments) as provider:
        return taken(provider, batches), sorted(provider.skipped, key=str)


def without_cache(recipe):
    """What a provider without a cache needs to deliver the same."""
    return (
        {} if resizes(Recipe(**{"data_shape": (3, 1, 1), **recipe})) else {"scaled_decode": False}
    )


resized = {"resize": 40, "rand_crop": True, "rand_mirror": True, "shuffle": True, "seed": 3}

recipes = st.fixed_dictionaries(
    {
        "resize": st.sampled_from([-1, 26, 40, 77]),
        "inter_method": st.sampled_from([0, 1, 2, 3, 4, 9, 10]),
    },
    optional={
        "rand_mirror": st.just(True),
        "scaled_decode": st.just(False),
        "pad": st.just(3),
        "brightness": st.just(0.4),
        "random_h": st.just(30),
        "pca_noise": st.just(0.1),
        "max_random_contrast": st.just(0.3),
    },
)
crops = st.sampled_from(
    [
        {},
        {"rand_crop": True},
        {"crop_x_start": 1, "crop_y_start": 2},
        {"random_resized_crop": True, "min_random_area": 0.1, "min_aspect_ratio": 0.5,
         "max_aspect_ratio": 2.0},
        {"min_crop_size": 14, "max_crop_size": 20, "rand_crop": True},
    ]
)  # fmt: skip
warps = st.sampled_from(
    [
        {},
        {},
        {"max_rotate_angle": 20, "max_shear_ratio": 0.1, "fill_value": 9},
        {"rotate": 90},
        {"rotation": 20, "perspective": 0.4, "warp_interpolation": "bilinear"},
        {"flip_p": 0.5},
    ]
)
runs = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 5),
        "preprocess_threads": st.integers(1, 4),
        "cache_size": st.sampled_from([1, 9_000, 40_000, 150_000, 8 * MIB]),
    },
    optional={
        "shuffle": st.just(True),
        "num_parts": st.just(2),
        "part_index": st.just(1),
        "layout": st.sampled_from(["NHWC", "CHWN"]),
    },
).filter(lambda run: "part_index" not in run or "num_parts" in run)


def strict(recipe, crop, warp):
    """Leave out what the recipes refuse in combination."""
    together = {**recipe, **crop, **warp}
    if together["inter_method"] == 0 and warp:
        together["inter_method"] = 1
    if together["resize"] == -1 or not resizes(Recipe(data_shape=(3, 1, 1), **together)):
        together["scaled_decode"] = False
    return together


# -- the promise -----------------------------------------------------------------------------------


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    recipe=recipes, crop=crops, warp=warps, arguments=runs, where=st.sampled_from(["ram", "file"])
)
def test_batches_are_those_without_a_cache(pack, tmp_path, recipe, crop, warp, arguments, where):
    recipe = strict(recipe, crop, warp)
    plain = {name: value for name, value in arguments.items() if name != "cache_size"}
    expected = run(provider_of, 18, path=pack, **recipe, **plain)
    file = tmp_path / "images.cache"
    file.unlink(missing_ok=True)
    cache = "ram" if where == "ram" else file
    for _ in range(1 if where == "ram" else 2):
        assert run(provider_of, 18, path=pack, cache=cache, **recipe, **arguments) == expected


@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("resize", [-1, 30])
def test_grey_and_rgba(tmp_path, channels, resize):
    path = tmp_path / "images.rec"
    with recordio.RecordWriter(path) as writer:
        for i in range(9):
            blob = encoded(smooth(i, 40 + i, 45, channels))
            if channels == 1:
                blob = [
                    blob,
                    encoded(smooth(i, 50, 41), ".jpg"),
                    encoded(smooth(i, 50, 41), ".ppm"),
                ][i % 3]
            writer.write(recordio.pack(recordio.IRHeader(0, float(i), i, 0), blob))
    common = {
        "data_shape": (channels, 20, 20),
        "resize": resize,
        "rand_crop": True,
        "on_error": "raise",
    }
    expected = run(provider_of, 9, path=path, scaled_decode=resize != -1, **common)
    with provider_of(path, cache="ram", **common) as provider:
        assert taken(provider, 9) == expected[0]
        # Raw pixels as they are in the file are not put into memory a second time.
        assert provider.cache_info().images == (6 if (channels, resize) == (1, -1) else 9)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.integers(0, 14),
    resize=st.sampled_from([-1, 40]),
    first=st.booleans(),
    second=st.booleans(),
    threads=st.integers(1, 3),
)
def test_a_run_goes_on_with_or_without_a_cache(pack, before, resize, first, second, threads):
    common = {"path": pack, **resized, "resize": resize, "scaled_decode": False}
    expected, _ = run(provider_of, 20, **common)
    with provider_of(**common, **({"cache": "ram"} if first else {})) as provider:
        assert taken(provider, before) == expected[:before] if before else True
        state = provider.state_dict()
    common["preprocess_threads"] = threads
    with provider_of(
        **common, **({"cache": "ram", "cache_size": 90_000} if second else {})
    ) as other:
        other.load_state_dict(state)
        assert taken(other, 20 - before) == expected[before:]


def test_the_state_names_full_decoding_where_the_cache_needs_it(pack):
    with provider_of(pack, cache="ram") as cached, provider_of(pack) as plain:
        with pytest.raises(ValueError, match="scaled_decode"):
            plain.load_state_dict(cached.state_dict())
    with provider_of(pack, cache="ram", **resized) as cached, provider_of(pack, **resized) as plain:
        assert cached.state_dict() == plain.state_dict()


def test_weights_that_draw_a_record_again_and_again(pack):
    common = {"path": pack, "resize": 40, "rand_crop": True, "rand_mirror": True, "batch_size": 8}
    common["weights"] = [1.0, 0.0, 5.0] + [0.1] * (len(contents()) - 3)
    expected = run(provider_of, 20, **common)
    assert run(provider_of, 20, cache="ram", **common) == expected


def test_parts_share_a_file(pack, tmp_path):
    file = tmp_path / "images.cache"
    for part in (0, 1, 0):
        common = {"path": pack, **resized, "num_parts": 2, "part_index": part}
        assert run(provider_of, 9, cache=file, **common) == run(provider_of, 9, **common)
    with provider_of(pack, cache=file, **resized) as provider:
        taken(provider, 1)
        assert provider.cache_info().images >= 10


# -- the other providers ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Image files, and what `imglist` says of them."""
    root = tmp_path_factory.mktemp("files")
    files = write_images(root, contents(), kind=".img")
    names = [[float(i), file.name] for i, file in enumerate(files)]
    return root, [*names, [99.0, "missing.img"]]


def image_iter(folder, **arguments):
    root, images = folder
    defaults = {"on_error": "skip", "verbose": False, "preprocess_threads": 2, "shuffle": True}
    return ImageIter(4, (3, 24, 28), imglist=images, path_root=root, **(defaults | arguments))


@pytest.mark.parametrize("handle", ["pad", "discard", "roll_over"])
@pytest.mark.parametrize(
    "recipe",
    [
        {"resize": 40, "rand_crop": True, "inter_method": 2},
        {"resize": 40, "rand_crop": True, "rand_gray": 0.5, "brightness": 0.3, "hue": 0.2},
        {"rand_crop": True, "rand_resize": True, "scaled_decode": False},
        {"inter_method": 10, "resize": 30, "scaled_decode": False},
    ],
    ids=lambda recipe: "-".join(recipe),
)
def test_image_iter_over_files(folder, tmp_path, recipe, handle):
    common = {"folder": folder, "last_batch_handle": handle, **recipe}
    expected = run(image_iter, 17, **common)
    for cache in ("ram", tmp_path / "images.cache", tmp_path / "images.cache"):
        for size in (60_000, MIB):
            assert run(image_iter, 17, cache=cache, cache_size=size, **common) == expected


def test_image_iter_has_the_keywords_and_full_decoding(folder):
    with image_iter(folder, cache="ram", cache_size=MIB) as provider:
        assert provider.cache_info().capacity == MIB
        assert provider.state_dict()["settings"]["scaled_decode"] == "False"
    with pytest.raises(ValueError, match="scaled_decode=True"):
        image_iter(folder, cache="ram", scaled_decode=True)


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    path = tmp_path_factory.mktemp("boxes") / "boxes.rec"
    labels = [box_label(*[(i, 0.2, 0.1, 0.7, 0.8)] * (1 + i % 3)) for i in range(len(contents()))]
    return write_pack(path, contents(), labels)


def det_iter(path, **arguments):
    defaults = {"data_shape": (3, 32, 36), "batch_size": 4, "on_error": "skip", "verbose": False}
    return ImageDetRecordIter(path_imgrec=path, **(defaults | arguments))


@pytest.mark.parametrize("mode", ["force", "shrink", "fit"])
@pytest.mark.parametrize("resize", [-1, 50])
@pytest.mark.parametrize(
    "recipe",
    [
        {"rand_mirror_prob": 0.5, "random_hue_prob": 0.5, "max_random_hue": 20},
        {"rand_pad_prob": 0.7, "max_pad_scale": 2.0, "rand_mirror_prob": 0.5},
        {"rand_crop_prob": 0.9, "num_crop_sampler": 1, "min_crop_scales": 0.3,
         "max_crop_scales": 0.9, "rand_mirror_prob": 0.5},
    ],
    ids=["mirror", "pad", "crop"],
)  # fmt: skip
def test_boxes(boxes, recipe, resize, mode):
    common = {"path": boxes, "resize": resize, "resize_mode": mode, "shuffle": True, **recipe}
    full = {} if resize != -1 else {"scaled_decode": False}
    expected = run(det_iter, 14, **common, **full)
    for size in (40_000, 8 * MIB):
        assert run(det_iter, 14, cache="ram", cache_size=size, **common) == expected


# -- what is cached --------------------------------------------------------------------------------


@pytest.mark.libjpeg
def test_only_sound_images_are_cached_and_each_is_decoded_once(pack):
    sound = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 20]
    with provider_of(pack, cache="ram", preprocess_threads=1, **resized) as provider:
        taken(provider, 30)
        info, stats = provider.cache_info(), provider.stats()
    assert info.images == len(sound)
    assert info.used_bytes == info.estimated_bytes - sum(
        cached_bytes(Recipe(data_shape=(3, 24, 28), resize=40), 222, 301) for _ in range(4)
    )
    # The threads are ahead of who asks.
    assert info.hits <= stats["cache_hits"] and info.misses <= stats["cache_misses"]
    assert stats["cache_hits"] + stats["cache_misses"] >= stats["images"] >= 120


def test_a_damaged_image_fails_every_time_in_the_same_way(tmp_path):
    large = contents()[0]
    path = write_pack(tmp_path / "bad.rec", [large, large[: len(large) // 3], b"junk"])

    def messages(**arguments):
        found = []
        with provider_of(path, batch_size=1, on_error="raise", resize=40, **arguments) as provider:
            while len(found) < 6:
                try:
                    provider.next()
                except StopIteration:
                    provider.reset()
                except RecordIOError as error:
                    found.append((type(error), str(error)))
        return found

    assert messages(cache="ram") == messages()


def test_hits_decode_nothing(pack, tmp_path):
    sound = {"weights": [1.0] * 8 + [0.0] * (len(contents()) - 8), "on_error": "raise"}
    file = tmp_path / "images.cache"
    with provider_of(pack, cache=file, resize=40, **sound) as provider:
        taken(provider, 40)
        assert provider.stats()["cache_misses"] >= 8
    with provider_of(pack, cache=file, resize=40, **sound) as provider:
        taken(provider, 20)
        stats = provider.stats()
    assert stats["cache_misses"] == 0 and stats["decode_seconds"] == 0
    assert stats["announced"] == 0  # nor is anything read ahead but headers


def test_cached_image_files_are_not_read_again(tmp_path):
    for i in range(4):
        (tmp_path / f"{i}.png").write_bytes(encoded(smooth(i, 30, 30)))
    images = [[float(i), 2.0 * i, f"{i}.png"] for i in range(4)]
    common = {"folder": (tmp_path, images), "label_width": 2, "resize": 28, "on_error": "raise"}
    expected, _ = run(image_iter, 8, **common)
    with image_iter(cache="ram", **common) as provider:
        assert taken(provider, 1) == expected[:1]
        for i in range(4):
            (tmp_path / f"{i}.png").unlink()
        assert taken(provider, 7) == expected[1:]


def test_the_size_of_a_cache_is_a_limit(pack):
    for size in (1, 10_000, 50_000):
        with provider_of(pack, cache="ram", cache_size=size, **resized) as provider:
            taken(provider, 20)
            info = provider.cache_info()
            assert info.used_bytes <= info.capacity == size
            assert info.images > 0 or size < 10_000
            assert info.estimated_bytes > 100_000


# -- the estimate ----------------------------------------------------------------------------------


def test_the_estimate_of_a_small_file_is_exact(tmp_path):
    sizes = [(30 + i, 50 + 3 * i) for i in range(20)]
    kinds = (".jpg", ".png", ".ppm")
    blobs = [encoded(smooth(i, *size), kinds[i % 3]) for i, size in enumerate(sizes)]
    path = write_pack(tmp_path / "few.rec", blobs, lambda i: [1.0] * (i % 3) or 1.0)
    full = sum(image_bytes(width, height, 3) for height, width in sizes)
    for resize, expected in (
        (-1, full),
        (24, sum(image_bytes(24 * w // h, 24, 3) for h, w in sizes)),
    ):
        with provider_of(path, cache="ram", resize=resize, label_width=1) as provider:
            assert provider.cache_info().estimated_bytes == expected
    index = path.with_suffix(".idx")
    with provider_of(path, cache="ram", num_parts=2, part_index=1, path_imgidx=index) as provider:
        assert provider.cache_info().estimated_bytes == sum(
            image_bytes(width, height, 3) for height, width in sizes[10:]
        )


def test_the_estimate_of_many_records_comes_from_some(tmp_path, caplog):
    blobs = [encoded(smooth(0, 20, 20)), encoded(smooth(1, 20, 60))]
    path = write_pack(tmp_path / "many.rec", blobs * 2500, lambda i: 0, index=False)
    exact = 2500 * (image_bytes(20, 20, 3) + image_bytes(60, 20, 3))
    with caplog.at_level(logging.INFO, "iterators"):
        provider = provider_of(path, cache="ram", cache_size=exact // 4, verbose=True)
        provider.close()
    line = next(r.getMessage() for r in caplog.records if r.getMessage().startswith("cache ram"))
    assert 0.20 < int(re.search(r"about (\d+)% of them fit", line)[1]) / 100 < 0.30
    with provider_of(path, cache="ram") as provider:
        assert 0.9 * exact < provider.cache_info().estimated_bytes < 1.1 * exact


# -- keywords --------------------------------------------------------------------------------------


def test_keywords(pack, tmp_path, monkeypatch):
    with provider_of(pack) as provider:
        assert provider.cache_info() is None and "cache_hits" not in provider.stats()
    with provider_of(pack, cache=None, cache_size=None) as provider:
        assert provider.cache_info() is None
    for arguments, error, message in (
        ({"cache_size": 5}, ValueError, "no effect without a cache"),
        ({"cache": "ram", "cache_size": 0}, ValueError, "cache_size=0"),
        ({"cache": "ram", "cache_size": "20GB"}, ValueError, "cache_size='20GB': expected an int"),
        ({"cache": 3}, TypeError, "cache=3: expected a path"),
        ({"cache": "ram", "scaled_decode": True}, ValueError, "decoded in full"),
        ({"cache": tmp_path}, CacheFileError, "must be a regular file"),
        ({"cache": tmp_path / "none" / "x"}, CacheFileError, "cannot be made here"),
        ({"cache": pack}, CacheFileError, "not a cache of images"),
        ({"cachesize": 1}, TypeError, "did you mean 'cache_size'"),
    ):
        with pytest.raises(error, match=message):
            provider_of(pack, **arguments)
    with provider_of(pack, cache="ram", scaled_decode=True, resize=40):
        pass
    monkeypatch.setattr(image_caching, "available_memory", lambda: 0)
    with pytest.raises(ValueError, match="cache_size must be given"):
        provider_of(pack, cache="ram")


def test_the_default_size_is_half_of_what_there_is(pack, tmp_path, monkeypatch):
    monkeypatch.setattr(image_caching, "available_memory", lambda: 400_000)
    with provider_of(pack, cache="ram", resize=40) as provider:
        assert provider.cache_info().capacity == 200_000
    with provider_of(pack, cache="ram", resize=40, num_parts=4, shuffle=True) as provider:
        assert provider.cache_info().capacity == 50_000
    monkeypatch.setattr(
        shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(9, 9, 300_000)
    )
    with provider_of(pack, cache=tmp_path / "c", resize=40) as provider:
        assert provider.cache_info().capacity == 150_000


def test_a_disk_without_room_is_an_error_at_the_start(pack, tmp_path, monkeypatch):
    monkeypatch.setattr(
        shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(9, 9, 100_000)
    )
    with pytest.raises(CacheFileError, match="choose a smaller cache_size or another disk"):
        provider_of(pack, cache=tmp_path / "c", cache_size=MIB, resize=40)
    assert os.listdir(tmp_path) == []
    with provider_of(pack, cache=tmp_path / "c", cache_size=90_000, resize=40) as provider:
        taken(provider, 9)


# -- files that belong to something else -----------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"records", None], ids=["empty", "text", "records"])
def test_a_file_that_is_no_cache_is_to_be_left_alone(pack, tmp_path, content):
    mine = tmp_path / "train.rec"
    mine.write_bytes(Path(pack).read_bytes() if content is None else content)
    before = mine.read_bytes()
    with pytest.raises(CacheFileError, match="not a cache of images: leave it alone") as caught:
        provider_of(pack, cache=mine)
    assert "delete" not in str(caught.value)
    assert mine.read_bytes() == before


def test_a_file_of_other_data_or_another_recipe_is_refused(pack, tmp_path, monkeypatch):
    file, records = tmp_path / "images.cache", tmp_path / "copy.rec"
    shutil.copy(pack, records)
    run(provider_of, 6, path=records, cache=file, **resized)
    for arguments, message in (
        ({"resize": 41}, "resize=40, but now resize=41"),
        ({"resize": -1}, "resize=40, but now resize=-1"),
        ({"inter_method": 2}, "inter_method=1, but now inter_method=2"),
        ({"scaled_decode": False}, "scaled_decode=True, but now scaled_decode=False"),
        ({"data_shape": (1, 24, 24)}, "channels=3, but now channels=1"),
    ):
        with pytest.raises(CacheFileError, match=message):
            provider_of(records, cache=file, **{**resized, **arguments})
    # What comes after the cached image may change.
    for arguments in (
        {"data_shape": (3, 9, 9)},
        {"rand_crop": False},
        {"seed": 9},
        {"mirror": True, "rand_mirror": False},
    ):
        provider_of(records, cache=file, **{**resized, **arguments}).close()
    status = records.stat()
    os.utime(records, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    with pytest.raises(CacheFileError, match="data=.*delete the file or name another"):
        provider_of(records, cache=file, **resized)
    os.utime(records, ns=(status.st_atime_ns, status.st_mtime_ns))
    provider_of(records, cache=file, **resized).close()
    monkeypatch.setattr(jpeg, "library", lambda: "another library")
    with pytest.raises(CacheFileError, match="decoder="):
        provider_of(records, cache=file, **resized)


def test_image_files_that_changed_are_noticed(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.png").write_bytes(encoded(smooth(i, 30, 30)))
    images = [[float(i), f"{i}.png"] for i in range(3)]
    common = {"folder": (tmp_path, images), "resize": 28, "on_error": "raise"}
    file = tmp_path / "images.cache"
    first = run(image_iter, 3, cache=file, **common)
    assert run(image_iter, 3, cache=file, **common) == first
    (tmp_path / "1.png").write_bytes(encoded(smooth(7, 30, 31)))
    with pytest.raises(CacheFileError, match="data="):
        image_iter(cache=file, **common)
    file.unlink()
    assert run(image_iter, 3, cache=file, **common) == run(image_iter, 3, **common) != first


# -- life ------------------------------------------------------------------------------------------


def anonymous():
    gc.collect()
    return int(re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def test_close_gives_the_memory_back_and_batches_stay(tmp_path, new_threads):
    images = [smooth(i, 700, 700) for i in range(40)]
    path = write_pack(tmp_path / "large.rec", images, lambda i: 0, kind=".jpg")
    del images
    provider = provider_of(path, cache="ram", rand_crop=True)
    (batch, *_) = provider
    copy = np.array(batch.data[0])
    assert provider.cache_info().images == 40
    held = anonymous()
    provider.close()
    assert held - anonymous() > 50_000_000
    np.testing.assert_array_equal(batch.data[0], copy)
    assert provider.stats()["cache_misses"] >= 40
    with pytest.raises(ValueError, match="closed"):
        provider.cache_info()
    assert not new_threads()


def test_a_provider_that_is_dropped_half_way_frees_its_cache(pack, tmp_path):
    descriptors = len(os.listdir("/proc/self/fd"))
    for cache in ("ram", tmp_path / "images.cache"):
        for _ in range(5):
            provider = provider_of(pack, cache=cache, **resized)
            provider.next()
            del provider
            gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 2


FILLER = """
import sys
sys.path.insert(0, {folder!r})
sys.path.append({root!r})
import conftest  # hides OpenCV here, too
from test_image_caching import *
with provider_of(sys.argv[1], cache=sys.argv[2], **resized) as provider:
    print("ready", flush=True)
    while True:
        taken(provider, 1)
"""


def test_a_training_that_is_killed_leaves_a_cache_that_can_be_used(tmp_path):
    images = [smooth(i, 100, 100 + i % 50) for i in range(400)]
    path = write_pack(tmp_path / "many.rec", images, kind=".jpg")
    file, folder = tmp_path / "images.cache", Path(__file__).parent
    expected = run(provider_of, 110, path=path, **resized)
    for images in (1, 200):
        program = FILLER.format(folder=str(folder), root=str(folder.parents[2]))
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(path), str(file)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout.readline() == "ready\n"
            with provider_of(path, cache=file, **resized) as provider:
                while provider.cache_info().images < images:
                    assert process.poll() is None
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        with provider_of(path, cache=file, **resized) as provider:
            assert provider.cache_info().images >= images
            assert (taken(provider, 110), sorted(provider.skipped, key=str)) == expected


def test_a_child_may_forget_what_its_parent_goes_on_with(pack, tmp_path):
    expected, _ = run(provider_of, 12, path=pack, **resized)
    for cache in ("ram", tmp_path / "images.cache"):
        with provider_of(pack, cache=cache, **resized) as provider:
            assert taken(provider, 3) == expected[:3]
            child = os.fork()
            if child == 0:
                try:
                    provider.close()
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(child, 0)[1] == 0
        with provider_of(pack, cache=cache, **resized) as provider:
            assert taken(provider, 12) == expected


@pytest.mark.parametrize(
    ("folder", "limit", "used"),
    [
        (".", "memory.max", "memory.current"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ],
)
def test_what_a_container_uses_already_counts(tmp_path, monkeypatch, folder, limit, used):
    monkeypatch.setattr(image_caching, "CGROUPS", str(tmp_path))
    assert image_caching._left_in_container(1 << 40) == 1 << 40
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / limit).write_text("5000\n")
    (tmp_path / folder / used).write_text("3000\n")
    (tmp_path / folder / "memory.stat").write_text("anon 7\ninactive_file 500\nfile 9\n")
    assert image_caching._left_in_container(1 << 40) == 2500
    assert image_caching._left_in_container(100) == 100
    (tmp_path / folder / used).write_text("9000\n")
    assert image_caching._left_in_container(1 << 40) == 0
    (tmp_path / folder / limit).write_text("max\n")
    assert image_caching._left_in_container(1 << 40) == 1 << 40
