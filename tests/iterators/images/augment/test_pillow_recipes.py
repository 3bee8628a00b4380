"""`resample="pillow"`: Pillow's pixels at torchvision's places, in all that makes batches."""

import io
import math

import numpy as np
import PIL
import pytest
from PIL import Image

from iterators import ImageDetRecordIter, ImageIter, ImageRecordIter, Pack
from iterators.images.augment.augmenter import Augmenter
from iterators.images.augment.geometry import drawn_steps
from iterators.images.augment.recipe import FILTERS, Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from iterators.images.view_plans import augment_key
from iterators.testing import box_label, write_pack
from recordio import IRHeader, pack
from recordio.errors import ImageDecodeError, RecordIOError
from recordio.formats.jpeg import jpeg

pytestmark = pytest.mark.skipif(
    int(PIL.__version__.partition(".")[0]) < 13, reason="needs Pillow 13 or later"
)
PILLOW = {name: Image.Resampling[name.upper()] for name in FILTERS}
SIZES = [(500, 375), (257, 256), (120, 333), (224, 224), (131, 97), (40, 300)]
AREA = {
    "random_resized_crop": True,
    "min_random_area": 0.08,
    "min_aspect_ratio": 3 / 4,
    "max_aspect_ratio": 4 / 3,
    "log_aspect_ratio": True,
}


@pytest.fixture(scope="module")
def pictures(photos):
    return [Image.fromarray(photos["chelsea"]).resize(size) for size in SIZES]


def encoded(picture, kind="PNG"):
    file = io.BytesIO()
    picture.save(file, kind, compress_level=1)  # which PNG alone looks at
    return file.getvalue()


def rendered(picture, epoch=0, number=0, kind="PNG", **keywords):
    plan = RenderPlan(Recipe(**keywords), key=1, layout="NHWC", dtype="uint8")
    record = pack(IRHeader(0, 0.0, 0, 0), encoded(picture, kind))
    return Renderer(plan).sample(np.frombuffer(record, np.uint8), epoch, number)[0][0]


# ---- torchvision's transforms in the words of Pillow ----


def padded(picture, left, top, right, bottom, fill):
    width, height = picture.size
    result = Image.new("RGB", (left + width + right, top + height + bottom), (fill,) * 3)
    result.paste(picture, (left, top))
    return result


def resized(picture, size, interpolation):
    width, height = picture.size
    if isinstance(size, tuple):
        return picture.resize(size[::-1], PILLOW[interpolation])
    long = int(size * max(width, height) / min(width, height))
    new = (size, long) if width <= height else (long, size)
    return picture.resize(new, PILLOW[interpolation])


def centre(picture, height, width, fill):
    x, y = max(width - picture.width, 0), max(height - picture.height, 0)
    picture = padded(picture, x // 2, y // 2, (x + 1) // 2, (y + 1) // 2, fill)
    top = round((picture.height - height) / 2.0)
    left = round((picture.width - width) / 2.0)
    return np.asarray(picture.crop((left, top, left + width, top + height)))


# ---- the same ----


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize(
    ("size", "crop"),
    [(256, (224, 224)), (97, (65, 60)), ((90, 201), (80, 197)), (60, (101, 64)), (50, (49, 300))],
)
def test_resize_and_crop_at_the_centre(pictures, interpolation, size, crop):
    for picture in pictures:
        result = rendered(
            picture, data_shape=(3, *crop), resize=size, resample="pillow",
            interpolation=interpolation, fill_value=9,
        )  # fmt: skip
        expected = centre(resized(picture, size, interpolation), *crop, 9)
        np.testing.assert_array_equal(result, expected)


def test_the_default_filter_is_bilinear(pictures):
    settings = {"data_shape": (3, 30, 40), "resize": 50, "resample": "pillow"}
    for picture in pictures:
        np.testing.assert_array_equal(
            rendered(picture, **settings), rendered(picture, interpolation="bilinear", **settings)
        )


@pytest.mark.skipif(not jpeg.available(), reason="needs libjpeg-turbo")
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_random_areas(pictures, kind):
    recipe = Recipe(data_shape=(3, 64, 56), resample="pillow", interpolation="bicubic", **AREA)
    for picture in pictures:
        with Image.open(io.BytesIO(encoded(picture, kind))) as stored:
            stored = stored.convert("RGB")
        for epoch in range(8):
            (step,), _ = drawn_steps(recipe, 1, epoch, 0, *picture.size)
            left, top = step["x"], step["y"]
            crop = stored.crop((left, top, left + step["width"], top + step["height"]))
            expected = np.asarray(crop.resize((56, 64), Image.Resampling.BICUBIC))
            keywords = {"resample": "pillow", "interpolation": "bicubic", **AREA}
            result = rendered(picture, epoch, kind=kind, data_shape=(3, 64, 56), **keywords)
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("size", "expected"),
    [((1000, 10), (493, 0, 13, 10)), ((10, 1000), (0, 493, 10, 13)), ((9, 60), (0, 24, 9, 12))],
)
def test_an_area_that_never_fits_is_the_largest_at_the_centre(size, expected):
    recipe = Recipe(data_shape=(3, 8, 8), resample="pillow", **AREA)
    kept = [drawn_steps(recipe, 0, 0, record, *size)[0] for record in range(30)]
    found = {tuple(step[name] for name in ("x", "y", "width", "height")) for (step,) in kept}
    assert expected in found


def test_areas_are_drawn_as_torchvision_draws_them():
    recipe = Recipe(data_shape=(3, 8, 8), resample="pillow", **AREA)
    steps = [drawn_steps(recipe, 0, 0, record, 1000, 1000)[0][0] for record in range(4000)]
    ratios = [math.log(step["width"] / step["height"]) for step in steps]
    assert abs(np.mean(ratios)) < 0.02
    assert np.isclose(np.std(ratios), math.log(4 / 3) / math.sqrt(3), rtol=0.1)


@pytest.mark.parametrize("crop", [(40, 50), (130, 160), (40, 160)])
def test_random_crops_of_padded_images(pictures, crop):
    height, width = crop
    picture = pictures[4]
    keywords = {"data_shape": (3, *crop), "pad": 4, "fill_value": 7, "rand_crop": True}
    keywords |= {"resample": "pillow", "pad_if_needed": True}
    whole = padded(picture, 4, 4, 4, 4, 7)
    x, y = max(width - whole.width, 0), max(height - whole.height, 0)
    whole = np.asarray(padded(whole, x, y, x, y, 7))
    windows = np.lib.stride_tricks.sliding_window_view(whole, (*crop, 3))[:, :, 0]
    places = set()
    for epoch in range(12):
        result = rendered(picture, epoch, **keywords)
        found = np.argwhere((windows == result).all((2, 3, 4)))
        assert len(found) >= 1
        places.add(tuple(found[0]))
    assert len(places) > 6


def test_a_random_crop_of_a_smaller_image_is_an_error(pictures):
    with pytest.raises(ImageDecodeError, match="pad_if_needed=True"):
        rendered(pictures[4], data_shape=(3, 130, 20), rand_crop=True, resample="pillow")


def test_alpha_is_multiplied_as_in_pillow(photos):
    rgba = np.dstack([photos["chelsea"], photos["chelsea"][:, :, 0]])[:200, :300]
    rgba[50:90, 50:90, 3] = 0
    picture = Image.fromarray(rgba)
    result = rendered(picture, data_shape=(4, 64, 96), resize=64, resample="pillow")
    np.testing.assert_array_equal(result, np.asarray(picture.resize((96, 64), PILLOW["bilinear"])))


def test_grey(photos):
    picture = Image.fromarray(photos["chelsea"]).convert("L")
    result = rendered(picture, data_shape=(1, 64, 96), resize=(64, 96), resample="pillow")
    expected = np.asarray(picture.resize((96, 64), PILLOW["bilinear"]))
    np.testing.assert_array_equal(result[:, :, 0], expected)


@pytest.mark.skipif(not jpeg.available(), reason="needs libjpeg-turbo")
def test_a_jpeg_is_scaled_by_the_rule_of_draft_alone(photos):
    picture = Image.fromarray(photos["astronaut"])
    keywords = {"data_shape": (3, 60, 60), "resize": (60, 60), "resample": "pillow"}
    file = encoded(picture, "JPEG")
    with Image.open(io.BytesIO(file)) as stored:
        full = np.asarray(stored.resize((60, 60), PILLOW["bilinear"]))
    np.testing.assert_array_equal(rendered(picture, kind="JPEG", **keywords), full)
    for gap in (1, 2, 3.5):
        with Image.open(io.BytesIO(file)) as stored:
            box = stored.draft(None, (60 * gap, 60 * gap))[1]
            expected = np.asarray(stored.resize((60, 60), PILLOW["bilinear"], box=box))
        result = rendered(picture, kind="JPEG", reducing_gap=gap, **keywords)
        np.testing.assert_array_equal(result, expected)
        assert not np.array_equal(result, full)


# ---- providers ----


@pytest.fixture(scope="module")
def packed(pictures, tmp_path_factory):
    images = [np.asarray(picture) for picture in pictures]
    return write_pack(tmp_path_factory.mktemp("pack") / "a.rec", images, kind=".png")


def batches(path, **keywords):
    settings = {"data_shape": (3, 60, 60), "batch_size": 3, "resample": "pillow"}
    settings |= {"interpolation": "lanczos", "dtype": "uint8", "layout": "NHWC", "seed": 4}
    with ImageRecordIter(path_imgrec=path, **settings | keywords) as images:
        return np.concatenate([batch.data[0] for _ in range(2) for batch in images])


@pytest.mark.parametrize("keywords", [{"resize": 70}, {"resize": (70, 90)}, AREA])
def test_caches_change_nothing(packed, tmp_path, keywords):
    expected = batches(packed, **keywords)
    for cache in ("ram", tmp_path / "images.cache", tmp_path / "images.cache"):
        np.testing.assert_array_equal(batches(packed, cache=cache, **keywords), expected)


def test_a_cache_of_another_filter_is_not_used(packed, tmp_path):
    cache = tmp_path / "images.cache"
    batches(packed, resize=70, cache=cache)
    with pytest.raises(RecordIOError, match="inter_method"):
        batches(packed, resize=70, cache=cache, interpolation="box")


def test_threads_change_nothing(packed):
    one, four = (batches(packed, preprocess_threads=count, **AREA) for count in (1, 4))
    np.testing.assert_array_equal(one, four)


def test_a_provider_delivers_what_pillow_gives(packed, pictures):
    result = batches(packed, resize=70)[: len(pictures)]
    for picture, image in zip(pictures, result, strict=True):
        np.testing.assert_array_equal(image, centre(resized(picture, 70, "lanczos"), 60, 60, 255))


def test_views_are_what_they_are_alone(packed):
    settings = {"data_shape": (3, 60, 60), "batch_size": 3, "dtype": "uint8", "layout": "NHWC"}
    views = [{"resample": "pillow", **AREA}, {"data_shape": (3, 20, 30), **AREA}]
    with ImageRecordIter(path_imgrec=packed, views=views, seed=4, **settings) as images:
        first = images.next().data[0]
    expected = batches(packed, interpolation=None, **AREA)[:3]
    np.testing.assert_array_equal(first, expected)


def test_packs_may_differ(packed):
    settings = {"data_shape": (3, 60, 60), "batch_size": 6, "dtype": "uint8", "layout": "NHWC"}
    packs = [Pack(packed), Pack(packed, resample="pillow", interpolation="lanczos")]
    with ImageRecordIter(path_imgrec=packs, resize=70, seed=4, **settings) as images:
        ours, theirs = (batch.data[0] for batch in images)
    np.testing.assert_array_equal(theirs, batches(packed, resize=70)[:6])
    assert not np.array_equal(ours, theirs)


def test_detection_images_and_mosaics(pictures, tmp_path):
    images = [np.asarray(picture) for picture in pictures]
    labels = [box_label([0, 0.1, 0.1, 0.9, 0.9])] * len(images)
    path = write_pack(tmp_path / "a.rec", images, labels, kind=".png")
    settings = {"data_shape": (3, 50, 40), "batch_size": len(images), "dtype": "uint8"}
    settings |= {"layout": "NHWC", "resample": "pillow", "interpolation": "hamming"}
    with ImageDetRecordIter(path_imgrec=path, **settings) as provider:
        found = provider.next().data[0]
    for picture, image in zip(pictures, found, strict=True):
        expected = np.asarray(picture.resize((40, 50), PILLOW["hamming"]))
        np.testing.assert_array_equal(image, expected)
    centred = {"mosaic": 1.0, "mosaic_center": (1.0, 1.0), "resize_mode": "force"}
    with ImageDetRecordIter(path_imgrec=path, **settings | centred) as provider:
        assert provider.next().data[0].any()


def test_resuming_goes_on_with_the_same_pixels(packed):
    settings = {"data_shape": (3, 60, 60), "batch_size": 2, "resample": "pillow", **AREA}
    with ImageRecordIter(path_imgrec=packed, seed=4, **settings) as images:
        images.next()
        state = images.state_dict()
        expected = images.next().data[0]
    with ImageRecordIter(path_imgrec=packed, seed=4, **settings) as images:
        images.load_state_dict(state)
        np.testing.assert_array_equal(images.next().data[0], expected)
    assert augment_key(4) != augment_key(5)


# ---- what is refused ----


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"resample": "opencv"}, "resample"),
        ({"resample": "pillow", "interpolation": "cubic"}, "interpolation"),
        ({"resample": "pillow", "inter_method": 2}, "contradicts resample"),
        ({"interpolation": "bicubic"}, 'without resample="pillow"'),
        ({"reducing_gap": 2.0}, 'without resample="pillow"'),
        ({"resample": "pillow", "reducing_gap": 0.5}, "reducing_gap"),
        ({"resample": "pillow", "interpolation": "nearest", "reducing_gap": 2}, "no effect"),
        ({"resample": "pillow", "scaled_decode": False, "reducing_gap": 2}, "no effect"),
        ({"pad_if_needed": True, "rand_crop": True}, "no effect without resample"),
        ({"resample": "pillow", "pad_if_needed": True}, "rand_crop=True"),
        ({"resample": "pillow", "max_rotate_angle": 10}, "MXNet's warp"),
        ({"resize": (10,)}, r"\(height, width\)"),
        ({"resize": (10, 0)}, r"\(height, width\)"),
    ],
)
def test_contradictions_are_refused(keywords, text):
    with pytest.raises(ValueError, match=text):
        Recipe(data_shape=(3, 8, 8), **keywords)


def test_a_scale_that_follows_from_the_crop_is_refused_where_images_are_kept(packed):
    with pytest.raises(ValueError, match="reducing_gap=2: a cache"):
        batches(packed, reducing_gap=2, cache="ram", **AREA)
    with pytest.raises(ValueError, match="reducing_gap=2: an image of several views"):
        batches(packed, reducing_gap=2, views=[{}, {"rand_mirror": True}])
    with pytest.raises(TypeError, match="'resample'"):
        ImageIter(batch_size=1, data_shape=(3, 8, 8), path_imgrec=packed, resample="pillow")
    with pytest.raises(ValueError, match="resample='pillow' is for ImageRecordIter"):
        Augmenter(data_shape=(3, 8, 8), resample="pillow")
    with pytest.raises(ValueError, match="short side"):
        Augmenter(data_shape=(3, 8, 8), resize=(9, 9))


# ---- one of two filters, squares, and the centre of image processors ----


def test_a_filter_that_is_drawn_is_bilinear_or_bicubic_half_of_the_time(pictures):
    settings = {"data_shape": (3, 30, 40), "resize": (30, 40), "resample": "pillow"}
    both = [rendered(pictures[0], interpolation=name, **settings) for name in PILLOW]
    both = [both[FILTERS.index(name)] for name in ("bilinear", "bicubic")]
    counts = [0, 0]
    for epoch in range(40):
        result = rendered(pictures[0], epoch, interpolation="random", **settings)
        (found,) = (n for n, image in enumerate(both) if np.array_equal(image, result))
        counts[found] += 1
    assert min(counts) > 5  # of 40; beyond 4 standard deviations otherwise
    recipe = Recipe(interpolation="random", **settings)
    drawn = [drawn_steps(recipe, 1, 0, record, 90, 80)[0][0]["method"] for record in range(2000)]
    assert set(drawn) == {18, 20} and abs(drawn.count(18) - 1000) < 112


@pytest.mark.parametrize("keywords", [{"resize": 70}, AREA])
def test_caches_draw_the_same_filters(packed, tmp_path, keywords):
    expected = batches(packed, interpolation="random", **keywords)
    for cache in ("ram", tmp_path / "images.cache"):
        result = batches(packed, cache=cache, interpolation="random", **keywords)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("side", [37, 38, 98, 131, 300])
def test_a_square_at_the_centre_that_is_resized(pictures, side):
    for picture in pictures:
        result = rendered(
            picture, data_shape=(3, 50, 50), min_crop_size=side, max_crop_size=side,
            resample="pillow", fill_value=0,
        )  # fmt: skip
        square = Image.fromarray(centre(picture, side, side, 0))
        expected = square.resize((50, 50), PILLOW["bilinear"])
        np.testing.assert_array_equal(result, np.asarray(expected))


@pytest.mark.parametrize("crop", [(36, 37), (93, 94), (100, 41), (150, 301)])
def test_the_centre_of_image_processors(pictures, crop):
    for picture in pictures:
        (height, width), pixels = crop, np.asarray(picture)
        result = rendered(
            picture, data_shape=(3, *crop), crop_position="center_floor", resample="pillow",
            fill_value=0,
        )  # fmt: skip
        # As `transformers.image_transforms.center_crop`: a negative start is a border.
        top, left = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
        border = max(height, width)
        whole = np.pad(pixels, ((border, border), (border, border), (0, 0)))
        top, left = top + border, left + border
        np.testing.assert_array_equal(result, whole[top : top + height, left : left + width])
