"""Several views of an image that is decoded once: each as if it had been made alone."""

import json

import cv2
import numpy as np
import pytest

import recordio
from iterators import ImageRecordIter
from iterators.testing import assert_same, copies, maker, write_pack

VIEWS = [
    {"gaussian_blur": 1.0, "rand_mirror": True},
    {"gaussian_blur": 0.1, "solarize_p": 0.2, "color_jitter": 0.4},
    {"data_shape": (3, 16, 20), "min_random_area": 0.05, "max_random_area": 0.4},
]


@pytest.fixture(scope="module", params=[".jpg", ".png", ".pnm"])
def pack(request, tmp_path_factory):
    rng = np.random.default_rng(0)
    images = []
    for i in range(10):
        image = rng.integers(0, 256, (9, 11, 3), dtype=np.uint8)
        images.append(cv2.resize(image, (110 - 3 * i, 90), interpolation=cv2.INTER_CUBIC))
    return write_pack(tmp_path_factory.mktemp("packs") / "a.rec", images, kind=request.param)


provider = maker(
    ImageRecordIter, views=VIEWS, data_shape=(3, 32, 32), batch_size=4, shuffle=True, seed=5,
    mean_r=99, random_resized_crop=True, min_random_area=0.3, min_aspect_ratio=0.75,
    max_aspect_ratio=4 / 3, scaled_decode=False, preprocess_threads=2,
)  # fmt: skip


def test_batches_have_an_array_for_every_view(pack):
    with provider(pack) as images:
        batch = images.next()
        shapes = [(4, 3, 32, 32), (4, 3, 32, 32), (4, 3, 16, 20)]
        assert [array.shape for array in batch.data] == shapes
        assert [desc.shape for desc in images.provide_data] == shapes
        assert [desc.name for desc in images.provide_data] == ["data0", "data1", "data2"]
        assert batch["data2"] is batch.data[2]
        assert batch.label[0].shape == (4,)


def test_the_first_view_is_what_it_is_alone(pack):
    with provider(pack) as views, provider(pack, views=None, **VIEWS[0]) as alone:
        for several, one in zip(views, alone, strict=True):
            np.testing.assert_array_equal(several.data[0], one.data[0])
            np.testing.assert_array_equal(several.label[0], one.label[0])


def test_views_with_the_same_keywords_differ(pack):
    with provider(pack, views=[{}, {}, {}]) as images:
        first, second, third = images.next().data
    for one, other in ((first, second), (second, third), (first, third)):
        assert all(not np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_whole_image_is_the_same_in_every_view(pack):
    """Nothing random: what is shared of the decoding does not show."""
    still = {"random_resized_crop": False, "min_random_area": 1.0, "resize": 40}
    still |= {"min_aspect_ratio": None, "max_aspect_ratio": 0.0}
    places = [{"crop_x_start": 0, "crop_y_start": 0}, {"pad": 5}, {"rotate": 30}, {"resize": -1}]
    places += [{"rotation": (30, 30)}, {"resize": -1, "affine": {"shear": (9, 9)}}]
    places += [{"pad": 9, "padding_mode": "reflect"}, {"crop_position": "bottom_left", "flip_p": 1}]
    with provider(pack, **still, views=places) as images:
        found = images.next().data
    for number, place in enumerate(places):
        with provider(pack, **still | place, views=None) as images:
            np.testing.assert_array_equal(found[number], images.next().data[0])


def test_views_depend_on_the_seed_and_not_on_threads_or_interruptions(pack):
    with provider(pack) as whole:
        epochs = [copies(whole) for _ in range(2)]
    with provider(pack, preprocess_threads=4, prefetch_buffer=1) as other:
        assert_same(epochs[0], copies(other))
    with provider(pack) as first:
        list(first)
        first.reset()
        first.next()
        state = json.loads(json.dumps(first.state_dict()))
    with provider(pack, preprocess_threads=1) as second:
        second.load_state_dict(state)
        assert_same(epochs[1][1:], copies(second))
    with provider(pack, views=VIEWS[:2]) as fewer, pytest.raises(ValueError, match="views"):
        fewer.load_state_dict(state)


def test_bad_records_are_replaced_in_every_view(pack, tmp_path):
    path = tmp_path / "bad.rec"
    with recordio.RecordReader(pack) as reader, recordio.RecordWriter(path) as writer:
        for i, record in enumerate(reader):
            header, content = recordio.unpack(bytes(record))
            writer.write(recordio.pack(header, content[:9] if i == 2 else content))
    with provider(path, shuffle=False, on_error="skip") as images:
        batch = images.next()
        assert len(images.skipped) == 1
    for array in batch.data:
        assert all(view.std() > 1 for view in array)


def test_torch_and_layouts(pack):
    pytest.importorskip("torch")
    with provider(pack, layout="NHWC", dtype="uint8", device="cpu", mean_r=0) as images:
        shapes = [tuple(array.shape) for array in images.next().data]
    assert shapes == [(4, 32, 32, 3), (4, 32, 32, 3), (4, 16, 20, 3)]


def test_the_first_view_can_be_shown(pack):
    with provider(pack) as images, provider(pack, views=None, **VIEWS[0]) as alone:
        assert images.show().tobytes() == alone.show().tobytes()


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"views": [{}]}, ValueError, "expected 2 to 16"),
        ({"views": {}}, TypeError, "a sequence of dictionaries"),
        ({"views": [{}, 3]}, TypeError, "dictionaries of keywords"),
        ({"views": [{}, {"gausian_blur": 1}]}, TypeError, "did you mean 'gaussian_blur'"),
        ({"views": [{}, {"data_shape": (1, 8, 8)}]}, ValueError, "same number of channels"),
        ({"cache": "ram"}, ValueError, "drop cache"),
        ({"mean_img": "m.bin", "mean_r": 0}, ValueError, "drop mean_img"),
    ],
)
def test_what_cannot_be_viewed_is_refused(pack, keywords, error, text):
    with pytest.raises(error, match=text):
        provider(pack, **keywords)


def test_dinos_recipe_has_ten_views(pack):
    with ImageRecordIter(path_imgrec=pack, batch_size=2, recipe="dino") as images:
        shapes = [array.shape[2] for array in images.next().data]
    assert shapes == [224] * 2 + [96] * 8
