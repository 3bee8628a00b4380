"""Folders of images as a set: classes, crops, threads and requests in advance."""

import gc
import threading

import numpy as np
import pytest
from PIL import Image

from iterators import ClassView, ImageView
from iterators.views import ImageClassSet, RandomSampler, Sampler, ShuffleSampler
from recordio.errors import ImageDecodeError

#: Class, name and grey level of every image, in the order of the set.
FILES = [("ape", "a.png", 10), ("ape", "b.PNG", 20), ("bee", "c.jpg", 30), ("cow", "x/d.png", 40)]
GREY = [level for _, _, level in FILES]


@pytest.fixture
def folder(tmp_path):
    for name, file, level in FILES:
        path = tmp_path / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (24, 16), (level,) * 3).save(path)
    (tmp_path / "ape" / "notes.txt").write_text("no image")
    (tmp_path / "stray.png").write_bytes(b"")
    return tmp_path


def made(folder, **arguments):
    return ImageClassSet(folder, (3, 8, 8), **{"which_set": "valid", **arguments})


def levels(batch):
    assert isinstance(batch.inputs, ImageView) and isinstance(batch.targets, ClassView)
    pixels = batch.inputs.forward_get("bhwc")
    assert pixels.dtype == np.uint8 and (pixels == pixels[:, :1, :1, :1]).all()
    return pixels[:, 0, 0, 0].tolist()


@pytest.mark.parametrize("n_thread", [0, 3])
def test_images_and_classes(folder, n_thread):
    images = made(folder, n_thread=n_thread)
    assert images.classes == ["ape", "bee", "cow"] and images.labels.tolist() == [0, 0, 1, 2]
    assert images.n_sample == 4 and images.io_shapes == ("bhwc", "b")
    batch = images.batch(9)
    assert levels(batch) == GREY and batch.targets.classes == images.classes
    assert batch.inputs.forward_get("bchw", "float").shape == (4, 3, 8, 8)
    assert images.index([3, 0, 3], out=batch) is batch and levels(batch) == [40, 10, 40]
    assert batch.targets.forward_get("b").tolist() == [2, 0, 2]
    images.close()
    images.close()


def test_several_folders_are_one_set(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "bee").mkdir()
    Image.new("RGB", (8, 8), (50,) * 3).save(other / "bee" / "z.png")
    images = made([folder, other])
    assert images.classes == ["ape", "bee", "cow"] and images.n_sample == 5
    assert sorted(levels(images.batch(5))) == [*GREY, 50]


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB"), (4, "RGBA")])
def test_channels(folder, channels, mode):
    images = ImageClassSet(folder, (channels, 8, 8), which_set="test")
    assert images.batch(2).inputs.input.shape == (2, 8, 8, channels)


def test_scaled_in_proportion_and_cut_out(tmp_path):
    (tmp_path / "one").mkdir()
    ramp = np.tile(np.arange(0, 240, 10, np.uint8), (12, 1))  # 24 wide, grey grows to the right
    Image.fromarray(ramp).save(tmp_path / "one" / "ramp.png")
    full = ImageClassSet(tmp_path, (1, 12, 24), which_set="test").batch(1).inputs.input[0, ..., 0]
    assert (full == ramp).all()
    centre = ImageClassSet(tmp_path, (1, 12, 24), (1, 4, 8), "test")
    assert (centre.batch(1).inputs.input[0, ..., 0] == ramp[4:8, 8:16]).all()
    covered = ImageClassSet(tmp_path, (1, 6, 6), which_set="test").batch(1).inputs.input
    assert covered.shape == (1, 6, 6, 1), "half the size, and the middle columns of twelve"
    assert 60 <= covered[0, 0, 0, 0] <= 70 and 160 <= covered[0, 0, 5, 0] <= 170
    seen = set()
    random = ImageClassSet(tmp_path, (1, 12, 24), (1, 4, 8))
    for _ in range(40):
        row = random.batch(1).inputs.input[0, 0, :, 0].astype(int)
        assert set(np.diff(row)) in ({10}, {-10})
        seen.add((int(row.min()), int(row[1] - row[0])))
    assert len(seen) > 15, "places and mirroring vary"


def test_what_is_random_follows_from_the_seed_not_from_threads(folder, tmp_path):
    (tmp_path / "noise").mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise" / "n.png")

    def run(**arguments):
        images = ImageClassSet(tmp_path, (3, 32, 32), (3, 8, 8), **arguments)
        ids = [i % images.n_sample for i in range(12)]
        return np.stack([images.index(ids).inputs.input for _ in range(3)])

    plain = run()
    assert (plain == run(n_thread=4)).all() and (plain[0] != plain[1]).any()
    assert (plain != run(random_seed=1)).any()


def test_a_function_of_ones_own(folder):
    images = made(folder, sample_func=lambda image, rng: np.full((8, 8, 3), 7, np.uint8))
    assert levels(images.batch(1)) == [7]
    images = made(folder, sample_func=lambda image, rng: image[:3])
    with pytest.raises(ValueError, match="sample_func made uint8 of shape"):
        images.batch(1)


def test_classes_are_drawn_equally_often(folder):
    for i in range(50):
        Image.new("RGB", (8, 8), (10,) * 3).save(folder / "ape" / f"more{i}.png")
    images = made(folder)
    batch = images.sample(600, rng=0)
    counts = np.bincount(batch.targets.input)
    assert batch.n_sample == 600 and (batch.indices < 54).all() and counts.min() > 150
    drawn = [b.indices for b, _, _ in RandomSampler(200, epoch_size=600).sample_epoch(images)]
    assert np.bincount(images.labels[np.concatenate(drawn)]).min() > 150


def test_requests_are_answered_in_order(folder):
    images = made(folder, n_thread=2)
    images.sub_async_put(1, 3)
    images.index_async_put([0, 0])
    images.sample_async_put(5, rng=1)
    batch = images.async_get()
    assert levels(batch) == [20, 30] and batch.indices.tolist() == [1, 2]
    assert images.async_get(out=batch) is batch and levels(batch) == [10, 10]
    assert images.async_get().n_sample == 5
    with pytest.raises(RuntimeError, match="async_put"):
        images.async_get()
    images.sub_async_put(0, 4)
    images.synchronize()
    with pytest.raises(RuntimeError, match="async_put"):
        images.async_get()
    with pytest.raises(TypeError, match="n_thread="):
        made(folder).sub_async_put(0, 1)


@pytest.mark.parametrize("kind", [Sampler, ShuffleSampler, RandomSampler])
def test_samplers_ask_in_advance(folder, kind):
    images = made(folder, n_thread=2)

    def run(sampler, epochs=2):
        found = []
        for _ in range(epochs):
            for batch, seen, size in sampler.sample_epoch(images):
                assert levels(batch) == [GREY[i] for i in batch.indices]
                found.append((batch.indices.tolist(), seen, size, sampler.state_dict()))
        return found

    for size, epoch_size in ((1, -1), (3, -1), (3, 7)):
        plain = run(kind(size, epoch_size))
        assert run(kind(size, epoch_size).asynchronous(3)) == plain
    # An epoch that is left early loses nothing: the position is that of what was delivered.
    one, two = kind(1), kind(1).asynchronous(3)
    for sampler in (one, two):
        next(sampler.sample_epoch(images))
    assert one.state_dict() == two.state_dict() and run(one) == run(two)
    with pytest.raises(TypeError, match="no threads"):
        kind(1).asynchronous().sample_epoch(made(folder))


@pytest.mark.parametrize("n_thread", [0, 2])
def test_a_damaged_image_is_named(folder, n_thread):
    (folder / "bee" / "c.jpg").write_bytes(b"\xff\xd8 no more")
    images = made(folder, n_thread=n_thread)
    with pytest.raises(ImageDecodeError, match=r"c\.jpg"):
        images.batch(4)
    assert levels(images.batch(2)) == [10, 20]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"load_size": (2, 8, 8)}, "1, 3 or 4 channels"),
        ({"load_size": (3, 8)}, "load_size"),
        ({"load_size": (3, 8, 8), "sample_size": (3, 9, 8)}, "does not fit"),
        ({"load_size": (3, 8, 8), "sample_size": (1, 8, 8)}, "does not fit"),
        ({"load_size": (3, 8, 8), "sample_func": "corner"}, "'centre', 'random'"),
        ({"load_size": (3, 8, 8), "n_thread": -1}, "n_thread"),
        ({"load_size": (3, 8, 8), "extensions": (".xyz",)}, "no images"),
    ],
)
def test_wrong_arguments(folder, arguments, word):
    with pytest.raises(ValueError, match=word):
        ImageClassSet(folder, **arguments)


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(ValueError, match="not a folder"):
        ImageClassSet(tmp_path / "nowhere", (3, 8, 8))


def test_threads_end_with_the_set(folder):
    images = made(folder, n_thread=2)
    images.batch(4)
    assert any("image-class-set" in thread.name for thread in threading.enumerate())
    threads = [t for t in threading.enumerate() if "image-class-set" in t.name]
    del images
    gc.collect()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_images_that_are_too_large_are_not_decoded(folder):
    images = ImageClassSet(folder, (3, 4, 4), max_pixels=5)
    with pytest.raises(ImageDecodeError, match="raise max_pixels"):
        images.batch(1)
    with pytest.raises(TypeError, match="max_scan_pixels"):
        ImageClassSet(folder, (3, 4, 4), max_pixel=5)
