"""Pairs of a verification set as a data set."""

import pickle

import numpy as np
import pytest
from torch.utils.data import DataLoader

import recordio
from iterators import VerificationPairs
from recordio import ImageDecodeError, VerificationFileError

PIXELS = np.random.default_rng(0).integers(0, 256, (8, 5, 6, 3), np.uint8)
SAME = [True, False, False, True]


@pytest.fixture
def path(tmp_path):
    """A set of 4 pairs."""
    path = tmp_path / "agedb_30.bin"
    path.write_bytes(pickle.dumps(([recordio.encode_image(one, "png") for one in PIXELS], SAME)))
    return path


def test_pairs(path):
    pairs = VerificationPairs(path)
    assert len(pairs) == 4
    for i in range(4):
        first, second, same = pairs[i]
        assert np.array_equal(first, PIXELS[2 * i])
        assert np.array_equal(second, PIXELS[2 * i + 1])
        assert same is SAME[i]
    assert pairs.same.tolist() == SAME
    assert len(pairs.images) == 8
    assert np.array_equal(recordio.decode_image(pairs.images[3]), PIXELS[3])
    assert np.array_equal(pairs[-1][1], PIXELS[7])
    with pytest.raises(IndexError):
        pairs[4]
    assert repr(pairs) == f"<VerificationPairs of {path}: 4 pairs, 2 of them the same>"


@pytest.mark.parametrize("threads", [1, 3])
def test_slices_and_masks(path, threads):
    pairs = VerificationPairs(path, threads=threads)
    for index, rows in [(slice(1, 3), [1, 2]), ([3, 0, 3], [3, 0, 3]), (pairs.same, [0, 3])]:
        found = pairs[index]
        assert [same for *_, same in found] == [SAME[row] for row in rows]
        for (first, second, _), row in zip(found, rows, strict=True):
            assert np.array_equal(first, PIXELS[2 * row])
            assert np.array_equal(second, PIXELS[2 * row + 1])


def test_images_are_upright(path):
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(PIXELS[0]).save(path.with_suffix(".png"), exif=exif)
    image = path.with_suffix(".png").read_bytes()
    path.write_bytes(pickle.dumps(([image] * 2, [True])))
    assert np.array_equal(VerificationPairs(path)[0][0], np.rot90(PIXELS[0], -1))


@pytest.mark.filterwarnings("ignore:.*os.fork")
@pytest.mark.parametrize("workers", [0, 2])
def test_loaders(path, workers):
    loader = DataLoader(VerificationPairs(path), 2, num_workers=workers)
    first, second, same = (list(part) for part in zip(*loader, strict=True))
    assert np.array_equal(np.concatenate(first), PIXELS[::2])
    assert np.array_equal(np.concatenate(second), PIXELS[1::2])
    assert np.concatenate(same).tolist() == SAME


def test_it_can_be_pickled(path):
    pairs = pickle.loads(pickle.dumps(VerificationPairs(path, threads=1)))
    assert np.array_equal(pairs[2][0], PIXELS[4])
    assert pairs.same.tolist() == SAME


def test_an_image_that_cannot_be_decoded(path):
    good = recordio.encode_image(PIXELS[0], "png")
    path.write_bytes(pickle.dumps(([good, good, good, b"no image"], [True, True])))
    pairs = VerificationPairs(path)
    assert len(pairs[:1]) == 1
    with pytest.raises(ImageDecodeError, match=r"agedb_30.bin, record 3"):
        pairs[1]
    path.write_bytes(pickle.dumps(([good, good], [True])))
    with pytest.raises(ImageDecodeError, match="max_pixels"):
        VerificationPairs(path, max_pixels=10)[0]


def test_errors_of_the_file_and_of_keywords(path):
    path.write_bytes(pickle.dumps(([b"a"], [True])))
    with pytest.raises(VerificationFileError, match="agedb_30.bin"):
        VerificationPairs(path)
    with pytest.raises(TypeError, match="thread"):
        VerificationPairs(path, thread=2)


def test_a_pair_of_a_subclass_is_read_in_batches_as_well(path):
    class Numbered(VerificationPairs):
        def get_example(self, i):
            return (*super().get_example(i), i)

    assert [pair[3] for pair in Numbered(path).__getitems__([2, 0])] == [2, 0]
