"""`stats`: means, deviations, classes, objects and identities."""

import io
import json

import cv2
import numpy as np
import pytest
from PIL import Image

import recordio
from recordio import EmptyRecordFileError, ImageDecodeError, IRHeader, pack
from recordio.operations.statistics import RecordCounts


def picture(seed, height=20, width=30, channels=3):
    shape = (height, width, channels)[: 3 if channels > 1 else 2]
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def png(image):
    return cv2.imencode(".png", image)[1].tobytes()


@pytest.fixture
def pictures(packs):
    """Pictures of several sizes, colour and grey; the path and all RGB pixels in one array."""
    images = [picture(0), picture(1, 7, 5), picture(2, channels=1), picture(3, channels=4)]
    rows = [pack(IRHeader(0, n % 2, n, 0), png(image)) for n, image in enumerate(images)]
    pixels = [cv2.imdecode(np.frombuffer(png(image), np.uint8), 1)[..., ::-1] for image in images]
    return packs.raw("a", rows), np.concatenate([image.reshape(-1, 3) for image in pixels])


@pytest.mark.parametrize("threads", [1, 3])
def test_mean_and_deviation_of_all_pixels(pictures, threads):
    path, pixels = pictures
    found = recordio.stats(path, mean_std=True, threads=threads).pixels
    assert found.images == 4 and found.pixels == len(pixels)
    np.testing.assert_allclose(found.mean, pixels.mean(0), rtol=1e-12)
    np.testing.assert_allclose(found.std, pixels.std(0), rtol=1e-9)
    assert eval(f"dict({found})") == found.keywords()
    assert list(found.keywords()) == ["mean_r", "mean_g", "mean_b", "std_r", "std_g", "std_b"]


def test_grey_and_orientation_do_not_matter(packs):
    target = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(picture(5)).save(target, "JPEG", exif=exif)
    path = packs.raw("a", [pack(IRHeader(0, 0, 0, 0), target.getvalue())])
    assert recordio.stats(path, True).pixels.pixels == 600


def test_the_keywords_are_those_of_the_iterators(pictures):
    from iterators import ImageRecordIter

    path, _ = pictures
    keywords = recordio.stats(path, mean_std=True).pixels.keywords()
    provider = ImageRecordIter(
        path_imgrec=str(path), data_shape=(3, 5, 5), batch_size=2, resize=8, **keywords
    )
    assert next(iter(provider)).data[0].shape == (2, 3, 5, 5)
    provider.close()


def test_classes_and_labels(packs):
    found = recordio.stats(packs.plain("a", [4, 4, 0, 9, [4, 7], 9]))
    assert found.records == 6 and found.labels == {1: 5, 2: 1} and found.pixels is None
    classes = found.classes
    assert (classes.classes, classes.smallest, classes.largest) == (3, 0, 9)
    assert (classes.records_min, classes.records_median, classes.records_max) == (1, 2, 3)
    assert (classes.rarest, classes.commonest) == (0, 4)
    assert found.objects is None and found.identities is None
    assert found.bytes == packs.path("a").stat().st_size
    assert "3, from 0 to 9" in str(found)


def test_objects_and_identities(packs):
    found = recordio.stats(packs.detection("a", [[3, 1], [], [2, 2, 9]]))
    assert found.objects == 5 and found.classes.classes == 4 and found.classes.records_max == 2
    found = recordio.stats(packs.faces("b", [2, 0, 3]))
    assert found.identities == 3 and found.records == 5 and found.classes.classes == 2
    assert "empty" not in found.kinds


def test_packs_without_records_labels_or_header(packs):
    found = recordio.stats(packs.raw("a", []))
    assert found.records == 0 and found.sizes == {} and found.classes is None
    found = recordio.stats(packs.raw("b", [b"text", b"\x89PNG\r\n\x1a\n"], index=False))
    assert found.classes is None and found.kinds == {"other": 1, "png": 1} and found.labels == {}
    found = recordio.stats(packs.plain("c", [np.nan, 1]))
    assert found.classes is None
    assert json.loads(json.dumps(found.as_dict()))["records"] == 2


def test_what_is_no_image_is_named_or_counted(packs):
    rows = [pack(IRHeader(0, 0, n, 0), png(picture(n))) for n in range(3)]
    rows.insert(1, pack(IRHeader(0, 0, 7, 0), b"text"))
    path = packs.raw("a", rows)
    with pytest.raises(ImageDecodeError, match=r"a\.rec, offset \d+, record 1"):
        recordio.stats(path, mean_std=True)
    found = recordio.stats(path, mean_std=True, skip_errors=True)
    assert found.skipped == 1 and found.records == 3 and found.kinds == {"png": 3}
    assert found.pixels.images == 3 and found.labels == {1: 3} and found.sizes["min"] > 28
    assert recordio.stats(path).kinds == {"png": 3, "other": 1}
    with pytest.raises(ImageDecodeError, match="too large"):
        recordio.stats(path, mean_std=True, max_pixels=100)
    with pytest.raises(TypeError, match="did you mean .max_pixels"):
        recordio.stats(path, mean_std=True, max_pixel=100)


def test_no_image_at_all(packs):
    with pytest.raises(EmptyRecordFileError, match=r"a\.rec: there is no image"):
        recordio.stats(packs.raw("a", []), mean_std=True)
    path = packs.plain("b", [1, 2])
    with pytest.raises(EmptyRecordFileError):
        recordio.stats(path, mean_std=True, skip_errors=True)


def test_damaged_records_are_named_or_counted(packs):
    path = packs.plain("a", range(9), index=False)
    data = bytearray(path.read_bytes())
    with recordio.RecordReader(path) as reader:
        data[int(reader.offsets[4])] ^= 255
    path.write_bytes(data)
    with pytest.raises(recordio.CorruptRecordError, match="record 4"):
        recordio.stats(path)
    found = recordio.stats(path, skip_errors=True)
    assert found.records == 8 and found.skipped == 1


def test_as_json(pictures):
    found = recordio.stats(pictures[0], mean_std=True)
    said = json.loads(json.dumps(found.as_dict()))
    assert said["pixels"]["keywords"] == found.pixels.keywords()
    assert said["classes"]["records_max"] == 2


def test_records_one_by_one_are_counted_as_many_at_a_time_are():
    sizes, labels = [9, 4, 4, 8, 8, 70], [2.0, np.nan, -1.5, np.nan, 2.0, np.inf]
    one, many = RecordCounts(), RecordCounts()
    for size, label in zip(sizes, labels, strict=True):
        one.add(["png"], [size], [1], [label])
    many.add(["png"] * 6, np.array(sizes), np.ones(6, np.int64), np.array(labels, np.float32))
    for name in ("kinds", "sizes", "widths", "labels"):
        assert getattr(many, name) == getattr(one, name)
    for found in (one, many):
        assert (found.least, found.greatest) == (-1.5, np.inf)
        assert found.sizes_in_short() == {"min": 4, "median": 8.0, "max": 70}
    assert len(one.labels) == 4 and RecordCounts().sizes_in_short() == {}
