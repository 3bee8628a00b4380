"""Masks and further images of samples: the same crop, mirror and moves as their image."""

import cv2
import made_png
import numpy as np
import pytest

import recordio
from iterators import ImageDetRecordIter, ImageRecordDataset, ImageRecordIter
from iterators.fields import Image, Mask, Mirrored
from iterators.testing import write_pack
from recordio.errors import ImageDecodeError, RecordIOError

COUNT = 12


def png(values):
    return cv2.imencode(".png", values)[1].tobytes()


def write(prefix, contents, labels=None):
    write_pack(f"{prefix}.rec", contents, labels)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """Grey images, and fields with the same values: masks, depths of 200 times them, images."""
    folder, rng = tmp_path_factory.mktemp("fields"), np.random.default_rng(0)
    values = [rng.integers(0, 200, rng.integers(34, 70, 2), np.uint8) for _ in range(COUNT)]
    images = [png(np.repeat(one[..., None], 3, 2)) for one in values]
    write(folder / "a", images)
    write(folder / "a.mask", [png(one) for one in values])
    write(folder / "a.depth", [png(one.astype(np.uint16) * 200) for one in values])
    write(folder / "a.after", images)
    boxes = [[2, 5, 1, 0.2, 0.2, 0.8, 0.9]] * COUNT
    write(folder / "boxes", images, boxes)
    write(folder / "boxes.mask", [png(one) for one in values])
    return folder


FIELDS = {"mask": Mask(), "depth": Image(dtype="uint16"), "after": Image()}
CROPS = {"rand_crop": True, "rand_mirror": True, "flip_p": 0.4, "shuffle": True, "dtype": "uint8"}


def provider(pack, **keywords):
    keywords = {"data_shape": (3, 32, 32), "batch_size": 5, "fields": FIELDS, **keywords}
    return ImageRecordIter(path_imgrec=pack / "a.rec", **keywords)


def arrays(batches):
    return [[array.copy() for array in (*batch.data, *batch.label)] for batch in batches]


def same(ones, others):
    assert len(ones) == len(others)
    for one, other in zip(ones, others, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_fields_have_the_crop_and_the_mirrors_of_their_image(pack):
    with provider(pack, **CROPS) as batches:
        shapes = {desc.name: (desc.shape, desc.dtype.name) for desc in batches.provide_data}
        assert shapes == {
            "data": ((5, 3, 32, 32), "uint8"),
            "mask": ((5, 32, 32), "uint8"),
            "depth": ((5, 1, 32, 32), "uint16"),
            "after": ((5, 3, 32, 32), "uint8"),
        }
        for batch in batches:
            grey = batch["data"][:, 0]
            np.testing.assert_array_equal(batch["mask"], grey)
            np.testing.assert_array_equal(batch["depth"][:, 0], grey.astype(int) * 200)
            np.testing.assert_array_equal(batch["after"], batch["data"])
            assert batches.get(batch, "mask") is batch.data[1]


@pytest.mark.parametrize(
    "how",
    [
        {"random_resized_crop": True, "min_random_area": 0.2},
        {"max_rotate_angle": 30, "resize": 40, "rand_crop": True},
        {"rotation": 40, "perspective": 0.5, "rand_crop": True, "resample": "pillow", "resize": 40},
        {"auto_augment": "trivialaugment", "rand_crop": True},
    ],
)
def test_further_images_are_resampled_as_their_image(pack, how):
    fields = {"after": Image(colour=True)}
    with provider(pack, dtype="float32", mean_r=9, std_g=3, fields=fields, **how) as batches:
        for batch in batches:
            np.testing.assert_array_equal(batch["after"], batch["data"])


def test_colours_change_in_images_alone_unless_asked_for(pack):
    colours = {"brightness": 0.5, "random_erasing": 1.0, "rand_crop": True, "dtype": "float32"}
    fields = {"mask": Mask(), "plain": Image(), "same": Image(colour=True)}
    for name in ("plain", "same"):
        for suffix in (".rec", ".idx"):
            (pack / f"a.{name}{suffix}").write_bytes((pack / f"a.after{suffix}").read_bytes())
    with provider(pack, fields=fields, **colours) as batches:
        batch = next(iter(batches))
    np.testing.assert_array_equal(batch["plain"][:, 0], batch["mask"])
    assert (batch["same"] != batch["plain"]).mean() > 0.5
    changed = (batch["data"] != batch["same"]).any(1)
    assert 0 < changed.mean() < 0.6  # what was erased


def test_depths_are_between_those_of_their_pixels(pack):
    fields = {"depth": Image(dtype="uint16", interpolation="bilinear")}
    keywords = {"data_shape": (3, 24, 24), "resize": 24, "inter_method": 1, "dtype": "float32"}
    with provider(pack, fields=fields, scaled_decode=False, **keywords) as batches:
        for batch in batches:
            error = np.abs(batch["depth"][:, 0] - 200.0 * batch["data"][:, 0])
            assert error.max() <= 250  # the image is rounded to its 8 bits


def test_what_lies_outside_is_ignored(pack):
    fields = {"mask": Mask(ignore=-100, dtype="int64"), "depth": Image(dtype="uint16")}
    with provider(pack, pad=20, rand_crop=True, fill_value=0, fields=fields) as batches:
        batch = next(iter(batches))
    outside = batch["mask"] == -100
    assert 0.05 < outside.mean() < 0.95
    assert not batch["depth"][:, 0][outside].any() and not batch["data"][:, 0][outside].any()
    inside = ~outside
    np.testing.assert_array_equal(batch["mask"][inside], batch["data"][:, 0][inside])


REFLECTIONS = {
    "keywords": {"rand_mirror": True, "flip_p": 0.5},
    "steps": {"steps": [{"op": "hflip", "p": 0.5}, {"op": "vflip", "p": 0.5}]},
    "turned": {"rand_mirror": True, "rotation": 20, "resize": 40},
}


@pytest.mark.parametrize("how", REFLECTIONS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "int64", "float32"])
def test_values_change_places_in_a_mirror(pack, how, dtype):
    ignore = 255 if dtype.startswith("u") else -1
    kinds = {"ignore": ignore, "dtype": dtype}
    swap = [(10 * i, 10 * i + 5) for i in range(25)]
    fields = {"mask": Mask(swap=swap, **kinds), "mirrored": Mirrored()}
    more = {"rand_crop": True, "epoch": 3, **REFLECTIONS[how]}
    with provider(pack, fields={"mask": Mask(**kinds)}, **more) as plain:
        wanted = [batch["mask"] for batch in plain]
    partners = np.arange(256)
    for a, b in swap:
        partners[a], partners[b] = b, a
    seen = []
    with provider(pack, fields=fields, **more) as batches:
        assert {desc.name: desc.shape for desc in batches.provide_data}["mirrored"] == (5,)
        for batch, before in zip(batches, wanted, strict=True):
            assert batch["mirrored"].shape == (5,) and batch["mirrored"].dtype == bool
            for mirrored, found, own in zip(batch["mirrored"], batch["mask"], before, strict=True):
                changed = np.where(own == ignore, ignore, partners[own.astype(int)])
                np.testing.assert_array_equal(found, changed if mirrored else own)
            seen += batch["mirrored"].tolist()
    assert {True, False} == set(seen)


def test_two_reflections_are_a_half_turn(pack):
    fields = {"mirrored": Mirrored()}
    for how, mirrored in (
        ({"mirror": True}, True),
        ({"flip_p": 1.0}, True),
        ({"mirror": True, "flip_p": 1.0}, False),
        ({"mirror": True, "steps": ["hflip"]}, False),
        ({"mirror": True, "steps": ["hflip", "vflip"]}, True),
        ({}, False),
    ):
        with provider(pack, fields=fields, **how) as batches:
            assert next(iter(batches))["mirrored"].tolist() == [mirrored] * 5


def test_every_door_says_what_is_mirrored(pack):
    torch = pytest.importorskip("torch")
    fields = {"mask": Mask(swap=[(1, 2)]), "mirrored": Mirrored()}
    data = ImageRecordDataset(pack / "a.rec", data_shape=(3, 32, 32), mirror=True, fields=fields)
    assert [bool(data[i][2]) for i in range(2)] == [True, True]
    from iterators.torch import ImageLoader

    loader = ImageLoader(pack / "a.rec", 4, data_shape=(3, 32, 32), mirror=True, fields=fields)
    _, _, mirrored, _ = next(iter(loader))
    assert mirrored.dtype == torch.bool and mirrored.all() and mirrored.shape == (4,)
    views = [{}, {"mirror": True}]
    with provider(pack, fields={"mirrored": Mirrored()}, views=views) as batches:
        batch = next(iter(batches))
    assert not batch["mirrored0"].any() and batch["mirrored1"].all()


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        ({"swap": [(1, 255)]}, "swap has 255, which is the value to ignore"),
        ({"swap": [(1, 300)]}, "swap has 300, which no mask of uint8 has"),
        ({"swap": [(1, 2), (2, 3)]}, "a value is in one pair at most"),
        ({"swap": [1, 2]}, "expected pairs of numbers of values"),
    ],
)
def test_values_that_cannot_be_exchanged(kinds, text):
    with pytest.raises(ValueError, match=text):
        Mask(**kinds)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_epoch_is_the_same_with_any_threads_and_resumed(pack, threads):
    with provider(pack, **CROPS, preprocess_threads=2) as batches:
        whole = arrays(batches) + arrays(batches)
    with provider(pack, **CROPS, preprocess_threads=threads, prefetch_buffer=1) as batches:
        first = arrays([batches.next(), batches.next()])
        state = batches.state_dict()
    with provider(pack, **CROPS, preprocess_threads=threads) as batches:
        batches.load_state_dict(state)
        rest = arrays(batches) + arrays(batches)
    same(first + rest, whole)
    with provider(pack, **CROPS, fields={"mask": Mask(ignore=0)}) as batches:
        with pytest.raises(ValueError, match="fields="):
            batches.load_state_dict(state)


def test_the_image_is_the_one_without_fields(pack):
    with provider(pack, **CROPS) as batches, provider(pack, **CROPS, fields=None) as plain:
        same([[b["data"]] for b in batches], [[b["data"]] for b in plain])


@pytest.mark.parametrize("cache", ["ram", "file"])
def test_cached_images_have_fields(pack, tmp_path, cache):
    keywords = {**CROPS, "cache": "ram" if cache == "ram" else tmp_path / "cache"}
    with provider(pack, **CROPS) as plain:
        expected = arrays(plain) + arrays(plain)
    with provider(pack, **keywords) as batches:
        same(arrays(batches) + arrays(batches), expected)
        assert batches.cache_info().hits


def test_every_view_has_its_fields(pack):
    views = [{}, {"data_shape": (3, 20, 24)}]
    with provider(pack, views=views, **CROPS) as batches:
        names = [desc.name for desc in batches.provide_data]
        assert names == [
            "data0", "data1", "mask0", "mask1", "depth0", "depth1", "after0", "after1",
        ]  # fmt: skip
        for batch in batches:
            for view in "01":
                np.testing.assert_array_equal(batch["mask" + view], batch["data" + view][:, 0])
                np.testing.assert_array_equal(batch["after" + view], batch["data" + view])
            assert batch["mask1"].shape == (5, 20, 24)


def test_masks_of_detection_images_lie_under_them(pack):
    keywords = {
        "data_shape": (3, 40, 40), "batch_size": 4, "resize_mode": "shrink", "dtype": "uint8",
        "rand_mirror_prob": 0.5, "rand_pad_prob": 0.5, "max_pad_scale": 2, "rand_crop_prob": 0.7,
        "num_crop_sampler": 1, "min_crop_scales": 0.3, "max_crop_scales": 0.6, "fill_value": 251,
    }  # fmt: skip
    path = pack / "boxes.rec"
    with ImageDetRecordIter(path_imgrec=path, fields={"mask": Mask()}, **keywords) as batches:
        compared = 0
        for batch in batches:
            for image, mask, label in zip(
                batch["data"], batch["mask"], batch.label[0], strict=True
            ):
                height, width = label[1:3].astype(int)
                outside = np.ones(mask.shape, bool)
                outside[:height, :width] = False
                assert (mask[outside] == 255).all()
                if height < 40 and width < 40:  # nothing was resized
                    expected = np.where(image[0] == 251, 255, image[0])
                    np.testing.assert_array_equal(mask[~outside], expected[~outside])
                    compared += 1
    assert compared


def test_a_bad_field_is_a_bad_record(pack, tmp_path):
    for name in ("a", "a.mask"):
        contents = [one for _, one in (recordio.unpack(r) for r in read(pack / f"{name}.rec"))]
        if name == "a.mask":
            contents[3] = contents[3][:40]
            contents[5] = png(np.zeros((3, 4), np.uint8))
            contents[7] = png(np.zeros((50, 50, 3), np.uint8))
        write(tmp_path / name, contents)
    keywords = {"data_shape": (3, 32, 32), "batch_size": 4, "fields": {"mask": Mask()}}
    path = tmp_path / "a.rec"
    with ImageRecordIter(path_imgrec=path, **keywords) as batches:
        with pytest.raises(ImageDecodeError, match="a.mask.rec") as failed:
            list(batches)
        assert failed.value.record == 3
        with pytest.raises(ImageDecodeError, match="the field has 4 x 3 pixels, and its image"):
            batches.next()
    with ImageRecordIter(path_imgrec=path, on_error="skip", dtype="uint8", **keywords) as batches:
        for batch in batches:
            np.testing.assert_array_equal(batch["mask"], batch["data"][:, 0])
        assert len(batches.skipped) == 3
        assert "several values for each pixel" in str(batches.skipped)


def read(path):
    with recordio.RecordReader(path) as reader:
        return [bytes(record) for record in reader]


def test_short_batches_are_ignored_where_they_end(pack):
    with provider(pack, round_batch=False) as batches:
        *_, last = batches
    assert last.pad == 3 and (last["mask"][-3:] == 255).all() and not last["after"][-3:].any()


@pytest.mark.parametrize("colour", [0, 3])
@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_masks_may_be_interlaced(tmp_path, colour, depth):
    """A file of each depth, in rows and in Adam7's passes, has the same values."""
    if depth not in made_png.DEPTHS[colour]:
        return
    made = made_png.picture(colour, depth, (13, 11), seed=depth)
    files = [made.file()]
    made.interlaced = True
    files.append(made.file())
    write(tmp_path / "a", [png(np.full((11, 13), 9, np.uint8))] * 2)
    write(tmp_path / "a.mask", files)
    with ImageRecordIter(
        path_imgrec=tmp_path / "a.rec", data_shape=(3, 11, 13), batch_size=2,
        fields={"mask": Mask(dtype="int32")},
    ) as batches:  # fmt: skip
        rows, passes = batches.next()["mask"]
    assert len(np.unique(rows)) > 1
    np.testing.assert_array_equal(rows, passes)


def test_what_cannot_be_is_refused(pack):
    with pytest.raises(TypeError, match="expected one of iterators.fields: Image, Mask"):
        provider(pack, fields={"mask": "mask"})
    with pytest.raises(ValueError, match="is the name of the images or labels"):
        provider(pack, fields={"data": Mask()})
    with pytest.raises(ValueError, match="mixes several moved copies"):
        provider(pack, auto_augment="augmix")
    with pytest.raises(ValueError, match="ignore=-1 does not fit dtype='uint8'"):
        Mask(ignore=-1)
    with pytest.raises((OSError, RecordIOError)):
        provider(pack, fields={"nothing": Mask()})
