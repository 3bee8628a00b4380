"""Images in files and zip archives."""

import pickle
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from iterators import (
    ImageDataset,
    LabeledImageDataset,
    LabeledZippedImageDataset,
    MultiZippedImageDataset,
)
from iterators.datasets import ZippedImageDataset
from iterators.testing import assert_same
from recordio.errors import ImageDecodeError

rng = np.random.default_rng(5)
PIXELS = {
    "colour.png": rng.integers(0, 256, (5, 7, 3), np.uint8),
    "grey.png": rng.integers(0, 256, (4, 6), np.uint8),
    "sub/alpha.png": rng.integers(0, 256, (3, 2, 4), np.uint8),
}


def expected(name, dtype=np.float32):
    pixels = PIXELS[name]
    pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    return pixels.astype(dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    (folder / "sub").mkdir()
    for name, pixels in PIXELS.items():
        Image.fromarray(pixels).save(folder / name)
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        archive.writestr("sub/", b"")
        for name in PIXELS:
            archive.write(folder / name, name)
    with zipfile.ZipFile(folder / "one.zip", "w") as archive:
        archive.write(folder / "grey.png", "grey.png")
    (folder / "paths.txt").write_text("\n".join(PIXELS) + "\n\n")
    (folder / "pairs.txt").write_text("".join(f"{name} {i}\n" for i, name in enumerate(PIXELS)))
    return folder


@pytest.mark.parametrize("dtype", [None, np.uint8, "float64"])
def test_images_are_channel_row_column(folder, dtype):
    for paths in (list(PIXELS), folder / "paths.txt", str(folder / "paths.txt")):
        images = ImageDataset(paths, root=folder, dtype=dtype)
        assert len(images) == 3
        for i, name in enumerate(PIXELS):
            assert_same(images[i], expected(name, dtype or np.float32))
        assert_same(images[-1], expected("sub/alpha.png", dtype or np.float32))


def test_images_can_be_changed_by_their_owner(folder):
    image = ImageDataset(["grey.png"], root=folder)[0]
    image += 1
    assert_same(ImageDataset(["grey.png"], root=folder)[0], expected("grey.png"))


def test_labels_are_arrays_without_axes(folder):
    pairs = [(name, i) for i, name in enumerate(PIXELS)]
    for given in (pairs, folder / "pairs.txt"):
        data = LabeledImageDataset(given, root=folder)
        assert len(data) == 3
        for i, (image, label) in enumerate(data):
            assert_same(image, expected(list(PIXELS)[i]))
            assert isinstance(label, np.ndarray)
            assert_same(label, np.array(i, np.int32))
    (folder / "real.txt").write_text("grey.png 0.5\n")
    label = LabeledImageDataset(folder / "real.txt", root=folder, label_dtype=np.float64)[0][1]
    assert_same(label, np.array(0.5))


@pytest.mark.parametrize("line", ["grey.png", "grey.png 1 2", "grey.png one", "", "grey.png 0.5"])
def test_a_line_that_is_no_path_and_label_is_named(folder, line):
    path = folder / "bad.txt"
    path.write_text(f"grey.png 0\n{line}\ngrey.png 1\n")
    for build in (
        lambda: LabeledImageDataset(path, root=folder),
        lambda: LabeledZippedImageDataset(folder / "all.zip", path),
    ):
        with pytest.raises(ValueError, match=r"line 1 in file .*bad\.txt"):
            build()


def test_pillow_missing_is_an_import_error(folder, monkeypatch):
    images = ImageDataset(["grey.png"], root=folder)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        images[0]


def test_zipped_images_by_position_and_by_name(folder):
    images = ZippedImageDataset(folder / "all.zip")
    assert len(images) == 3
    for i, name in enumerate(PIXELS):
        assert_same(images[i], expected(name))
        assert_same(images[np.int64(i)], expected(name))
        assert_same(images[name], expected(name))
    assert len(images[1:]) == len(images[[0, 2]]) == 2
    with pytest.raises(KeyError):
        images["nothing.png"]
    with pytest.raises(IndexError):
        images[3]


def test_several_archives_one_behind_the_other(folder):
    images = MultiZippedImageDataset([folder / "one.zip", folder / "all.zip"], dtype=np.uint8)
    assert len(images) == 4
    assert_same(images[0], expected("grey.png", np.uint8))
    assert_same(images[1], expected("colour.png", np.uint8))
    assert_same(images[-1:][0], expected("sub/alpha.png", np.uint8))
    for i in (-1, 4):
        with pytest.raises(IndexError):
            images[i]


def test_zipped_images_with_labels(folder):
    data = LabeledZippedImageDataset(folder / "all.zip", folder / "pairs.txt")
    assert len(data) == 3
    for i, name in enumerate(PIXELS):
        image, label = data[i]
        assert_same(image, expected(name))
        assert_same(label, np.array(i, np.int32))


def test_no_archive_is_an_error(folder):
    with pytest.raises(zipfile.BadZipFile):
        ZippedImageDataset(folder / "grey.png")


def test_archives_are_opened_again_in_other_processes(folder, read_in_a_new_process, read_in_forks):
    images = ZippedImageDataset(folder / "all.zip")
    images[0]
    assert_same(read_in_a_new_process(images, 1), expected("grey.png"))
    for found in read_in_forks(images, list(PIXELS) * 20):
        for image, name in zip(found, list(PIXELS) * 20, strict=True):
            assert_same(image, expected(name))
    assert_same(pickle.loads(pickle.dumps(images))["grey.png"], expected("grey.png"))


def test_threads_may_share_an_archive(folder):
    images = ZippedImageDataset(folder / "all.zip")
    names = list(PIXELS) * 30
    with ThreadPoolExecutor(8) as pool:
        for image, name in zip(pool.map(images.get_example, names), names, strict=True):
            assert_same(image, expected(name))


def test_images_that_are_too_large_are_not_decoded(tmp_path):
    Image.new("RGB", (40, 30)).save(tmp_path / "a.png")
    for dataset in (
        ImageDataset(["a.png"], tmp_path, max_pixels=1199),
        LabeledImageDataset([("a.png", 1)], tmp_path, max_pixels=1199),
    ):
        with pytest.raises(ImageDecodeError, match=r"a\.png: .*40 x 30 .* raise max_pixels"):
            dataset[0]
    assert ImageDataset(["a.png"], tmp_path, max_pixels=1200)[0].shape == (3, 30, 40)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "a.png", "a.png")
    with pytest.raises(ImageDecodeError, match="raise max_pixels"):
        ZippedImageDataset(tmp_path / "a.zip", max_pixels=1199)[0]
    assert pickle.loads(pickle.dumps(ZippedImageDataset(tmp_path / "a.zip")))[0].shape == (
        3,
        30,
        40,
    )
    with pytest.raises(TypeError, match="max_pixels, max_scans, max_scan_pixels, not max_pixel$"):
        ImageDataset(["a.png"], tmp_path, max_pixel=5)


def test_limits_on_scans_and_on_members(tmp_path, monkeypatch):
    Image.effect_noise((40, 30), 50).save(tmp_path / "a.jpg", progressive=True)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "a.jpg", "a.jpg")
    with pytest.raises(ImageDecodeError, match=r"a\.jpg: .* more than 5 scans"):
        ImageDataset(["a.jpg"], tmp_path, max_scans=5)[0]
    with pytest.raises(ImageDecodeError, match=r"a\.zip: member a\.jpg: .* raise max_scan_pixels"):
        ZippedImageDataset(tmp_path / "a.zip", max_scan_pixels=40 * 30)[0]
    assert ZippedImageDataset(tmp_path / "a.zip")[0].shape == (1, 30, 40)
    monkeypatch.setattr("iterators.datasets.image_files.MOST_BYTES", 100)
    with pytest.raises(ImageDecodeError, match=r"a\.jpg: \d+ bytes are more than the 100"):
        ZippedImageDataset(tmp_path / "a.zip")["a.jpg"]


@pytest.mark.parametrize("suffix", ["jpg", "png", "gif", "tiff", "webp"])
def test_damaged_files_are_one_kind_of_error(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    Image.effect_noise((40, 30), 50).convert("RGB").save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ImageDecodeError, match=rf"a\.{suffix}: "):
        ImageDataset([path])[0]
