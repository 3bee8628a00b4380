"""Resize, warp, pad and crop of whole images, against a slow composition of the single steps."""

import math

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recordio
from faces import resample, warp
from faces.codecs import decode_jpeg
from iterators.images.augment.geometry import drawn_steps
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from recordio.errors import ImageDecodeError

F = np.float32


def method_of(recipe, width, height, new_width, new_height):
    if recipe.inter_method != 9:
        return recipe.inter_method
    if new_width > width and new_height > height:
        return 2
    return 3 if new_width < width and new_height < height else 1


def resized(image, size, method):
    return image.copy() if image.shape[1::-1] == size else resample.resize(image, size, method)


def reference(image, recipe):
    """What MXNet's default augmenter does, step by step on whole images; nothing random."""
    _, target_height, target_width = recipe.data_shape
    height, width = image.shape[:2]
    if recipe.resize != -1:
        if height > width:
            size = recipe.resize, recipe.resize * height // width
        else:
            size = recipe.resize * width // height, recipe.resize
        image = resized(image, size, method_of(recipe, width, height, *size))
    height, width = image.shape[:2]
    if recipe.warps:
        angle = recipe.rotate_list[0] if recipe.rotate_list else max(recipe.rotate, 0)
        scale, ratio = F(recipe.min_random_scale), F(recipe.aspect_range[0])
        if recipe.random_resized_crop:
            scale = ratio = F(1)
        canvas = [
            max(F(recipe.min_img_size), min(F(recipe.max_img_size), F(scale * F(side))))
            for side in (width, height)
        ]
        matrix = warp.forward_matrix(
            angle, 0, scale, ratio, size=(width, height), canvas=tuple(map(float, canvas))
        )
        size = int(canvas[0]), int(canvas[1])
        fill = recipe.fill_value
        image = warp.warp(image, matrix, size, method_of(recipe, width, height, *size), fill)
    if recipe.pad:
        border = (recipe.pad, recipe.pad)
        image = np.pad(image, (border, border, (0, 0)), constant_values=recipe.fill_value)
    height, width = image.shape[:2]
    if recipe.max_crop_size != -1:
        side = recipe.max_crop_size
        top, left = (height - side) // 2, (width - side) // 2
        image = image[top : top + side, left : left + side]
        method = method_of(recipe, side, side, target_width, target_height)
        return resized(np.ascontiguousarray(image), (target_width, target_height), method)
    method = method_of(recipe, width, height, target_width, target_height)
    if height < target_height:
        new_width = math.floor(F(F(target_height) / F(height)) * F(width))
        image = resized(image, (new_width, target_height), method)
    height, width = image.shape[:2]
    if width < target_width:
        new_height = math.floor(F(F(target_width) / F(width)) * F(height))
        image = resized(image, (target_width, new_height), method)
    height, width = image.shape[:2]
    left, top = (width - target_width) // 2, (height - target_height) // 2
    if recipe.crop_x_start != -1 and width != target_width:
        left = recipe.crop_x_start
    if recipe.crop_y_start != -1 and height != target_height:
        top = recipe.crop_y_start
    return image[top : top + target_height, left : left + target_width]


def record_of(image, suffix, *options):
    done, data = cv2.imencode(suffix, image[..., ::-1], list(options))
    assert done
    return recordio.pack(recordio.IRHeader(0, 0, 0, 0), data.tobytes())


def rendered(recipe, record, **plan):
    plan = RenderPlan(recipe, layout="NHWC", dtype="uint8", **plan)
    return Renderer(plan).sample(record)[0][0]


def picture(width, height, channels=3, seed=0):
    """Smooth with edges, so that a shift by a pixel shows everywhere."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (height // 4 + 2, width // 4 + 2, channels), np.uint8)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR).reshape(
        height, width, channels
    )


@st.composite
def recipes(draw):
    """Any recipe without randomness."""
    side = st.integers(4, 70)
    chosen = {"data_shape": (3, draw(side), draw(side))}
    if draw(st.booleans()):
        chosen["resize"] = draw(st.integers(5, 90))
    method = draw(st.sampled_from([0, 1, 2, 3, 4, 9]))
    warped = method != 0 and draw(st.booleans())
    if warped:
        for name, values in (
            ("rotate", st.integers(1, 360)),
            ("rotate_list", st.integers(-360, 360).map(lambda x: (x,))),
            ("scale", st.floats(0.4, 2)),
            ("max_img_size", st.integers(10, 80)),
            ("min_img_size", st.integers(1, 10)),
        ):
            if draw(st.booleans()):
                value = draw(values)
                if name == "scale":
                    chosen |= {"min_random_scale": value, "max_random_scale": value}
                else:
                    chosen[name] = value
        if draw(st.booleans()):
            ratio = draw(st.floats(0.5, 2))
            chosen |= {"min_aspect_ratio": ratio, "max_aspect_ratio": ratio}
    if draw(st.booleans()):
        chosen["pad"] = draw(st.integers(1, 12))
    if draw(st.integers(0, 3)) == 0:
        side = draw(st.integers(1, 40))
        chosen |= {"max_crop_size": side, "min_crop_size": side}
    elif draw(st.integers(0, 3)) == 0:
        chosen |= {
            "crop_x_start": draw(st.integers(-1, 6)),
            "crop_y_start": draw(st.integers(-1, 6)),
        }
    return Recipe(**chosen, inter_method=method, fill_value=draw(st.sampled_from([0, 127, 255])))


sizes = st.tuples(st.integers(5, 90), st.integers(5, 90))


def compare(recipe, record, image):
    try:
        got = rendered(recipe, record)
    except ImageDecodeError as error:
        _, height, width = recipe.data_shape
        wanted = reference(image, recipe)
        impossible = wanted.shape[:2] != (height, width) or "max_crop_size" in error.reason
        assert impossible, error
        return
    assert np.array_equal(got, reference(image, recipe))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(recipes(), sizes, st.integers(0, 9))
def test_png_through_any_chain_of_steps_is_the_composition(recipe, size, seed):
    image = picture(*size, seed=seed)
    compare(recipe, record_of(image, ".png"), image)


@pytest.mark.libjpeg
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(recipes(), sizes, st.integers(0, 9), st.sampled_from(["420", "444", "progressive"]))
def test_jpeg_decoded_in_part_is_jpeg_decoded_in_whole(recipe, size, seed, kind):
    """Whenever the decoder does not scale, which the first resize alone can make it do."""
    options = [cv2.IMWRITE_JPEG_QUALITY, 90]
    if kind == "444":
        options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
    if kind == "progressive":
        options += [cv2.IMWRITE_JPEG_PROGRESSIVE, 1]
    record = record_of(picture(*size, seed=seed), ".jpg", *options)
    image = decode_jpeg(recordio.unpack(record)[1])
    try:
        (first, *_), _ = drawn_steps(recipe, 0, 0, 0, *size)
    except ValueError:
        return
    source = first["width"], first["height"]
    target = first["target_width"], first["target_height"]
    if first["kind"] == 0 and resample.denominator(first["method"], source, target) > 1:
        return  # see below
    compare(recipe, record, image)


@pytest.mark.libjpeg
def test_lossless_content_gives_the_same_pixels_from_jpeg_and_png():
    """Flat blocks of 16 pixels at full quality come out of JPEG as they went in."""
    grey = np.random.default_rng(0).integers(0, 256, (6, 5), np.uint8).repeat(16, 0).repeat(16, 1)
    image = np.dstack([grey] * 3)
    jpg = record_of(image, ".jpg", cv2.IMWRITE_JPEG_QUALITY, 100)
    assert np.array_equal(decode_jpeg(recordio.unpack(jpg)[1]), image)
    png = record_of(image, ".png")
    for chosen in (
        {},
        {"resize": 60},
        {"resize": 200, "inter_method": 2},
        {"rotate": 30},
        {"pad": 40},
        {"resize": 70, "rotate": 45, "pad": 5, "max_crop_size": 30, "min_crop_size": 30},
        {"random_resized_crop": True, "min_random_area": 0.5, "max_random_area": 0.9},
    ):
        recipe = Recipe(data_shape=(3, 40, 50), **chosen)
        assert np.array_equal(rendered(recipe, jpg), rendered(recipe, png))


@pytest.mark.libjpeg
@pytest.mark.parametrize("method", [1, 2, 3, 4])
def test_scaled_decoding_comes_close_to_the_whole(method, photos):
    image = photos["astronaut"]
    record = record_of(image, ".jpg", cv2.IMWRITE_JPEG_QUALITY, 95)
    recipe = Recipe(data_shape=(3, 60, 60), resize=64, inter_method=method)
    whole = decode_jpeg(recordio.unpack(record)[1])
    smooth = Recipe(data_shape=(3, 60, 60), resize=64, inter_method=3)
    # The scaled image is an average like that of the area method, whatever comes after it.
    difference = rendered(recipe, record).astype(int) - reference(whole, smooth)
    assert abs(difference).mean() < 6


@pytest.mark.parametrize("method", [0, 1, 2, 3, 4, 9])
@pytest.mark.parametrize("size", [(31, 77), (77, 31), (40, 40), (33, 32), (1, 3), (640, 7)])
@pytest.mark.parametrize("resize", [1, 17, 32, 33, 100])
def test_the_short_side_is_resized_and_the_long_one_cut_to_whole_pixels(method, size, resize):
    recipe = Recipe(data_shape=(3, 1, 1), resize=resize, inter_method=method)
    (step, *_), _ = drawn_steps(recipe, 0, 0, 0, *size)
    short, long = min(size), max(size)
    expected = [resize, resize * long // short]
    if size[0] > size[1]:
        expected.reverse()
    assert [step["target_width"], step["target_height"]] == expected
    assert step["method"] == method_of(recipe, *size, *expected)


@pytest.mark.parametrize(
    ("size", "target", "expected"),
    [
        ((50, 30), (60, 40), [(66, 40)]),  # one side grows, the other follows
        ((30, 50), (60, 40), [(60, 100)]),
        ((10, 20), (100, 50), [(25, 50), (100, 200)]),  # both, one after the other
        ((41, 23), (101, 100), [(178, 100)]),
        ((3, 49), (147, 98), [(6, 98), (147, 2401)]),
        ((60, 60), (60, 60), [(60, 60)]),
        ((70, 61), (60, 60), [(70, 61)]),  # large images are never shrunk
    ],
)
def test_small_images_grow_with_float32_floors(size, target, expected):
    recipe = Recipe(data_shape=(3, target[1], target[0]))
    steps, _ = drawn_steps(recipe, 0, 0, 0, *size)
    assert [(s["target_width"], s["target_height"]) for s in steps] == expected
    last = steps[-1]
    assert (last["out_width"], last["out_height"]) == target
    assert last["left"] == (last["target_width"] - target[0]) // 2
    assert last["top"] == (last["target_height"] - target[1]) // 2


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 5000))
def test_growing_in_float32(width, height, target_width, target_height):
    recipe = Recipe(data_shape=(3, target_height, target_width))
    try:
        steps, _ = drawn_steps(recipe, 0, 0, 0, width, height)
    except ValueError:  # an image without pixels, or with a side of 2**26, on the way
        assert max(target_width * height, target_height * width) >= 1 << 10
        return
    found = [(s["target_width"], s["target_height"]) for s in steps]
    if height >= target_height and width >= target_width:
        assert found == [(width, height)]
        return
    wanted = []
    if height < target_height:
        width = math.floor(F(F(target_height) / F(height)) * F(width))
        height = target_height
        wanted.append((width, height))
    if width < target_width:
        height = math.floor(F(F(target_width) / F(width)) * F(height))
        wanted.append((target_width, height))
    assert found == wanted


def test_the_method_is_resolved_once_against_the_first_size():
    # 10 x 20 -> 25 x 50 -> 100 x 200: both sides grow towards 100 x 50, hence cubic twice.
    steps, _ = drawn_steps(Recipe(data_shape=(3, 50, 100), inter_method=9), 0, 0, 0, 10, 20)
    assert [s["method"] for s in steps] == [2, 2]
    # 10 x 80 -> 100 x 800: one side only is too small, hence bilinear.
    steps, _ = drawn_steps(Recipe(data_shape=(3, 50, 100), inter_method=9), 0, 0, 0, 10, 80)
    assert [s["method"] for s in steps] == [1]


@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("fill", [0, 90])
def test_grey_and_alpha_go_through_the_same_steps(channels, fill):
    image = picture(50, 40, channels)
    coded = image[..., 0] if channels == 1 else image[..., [2, 1, 0, 3]]
    data = cv2.imencode(".png", coded)[1].tobytes()
    record = recordio.pack(recordio.IRHeader(0, 0, 0, 0), data)
    recipe = Recipe(data_shape=(channels, 44, 48), rotate=20, pad=6, resize=42, fill_value=fill)
    steps, _ = drawn_steps(recipe, 0, 0, 0, 50, 40)
    assert [s["kind"] for s in steps] == [0, 1, 2]
    got = rendered(recipe, record)
    fills = [fill] * channels if channels == 1 else [fill] * 3 + [0]
    small = resample.resize(image, (52, 42))
    matrix = warp.forward_matrix(20, 0, 1, 1, size=(52, 42), canvas=(52, 42))
    turned = warp.warp(small, matrix, (52, 42), 1, fills).reshape(42, 52, channels)
    wanted = np.empty((54, 64, channels), np.uint8)
    wanted[:] = fills
    wanted[6:-6, 6:-6] = turned
    assert np.array_equal(got, wanted[5:49, 8:56])


def test_steps_tell_what_was_drawn_and_nothing_else():
    drawn_steps(
        Recipe(data_shape=(3, 20, 20), rotate=30, pad=3), 0, 0, 0, 90, 60
    )  # leaves its traces
    (step,), _ = drawn_steps(Recipe(data_shape=(3, 20, 20), resize=30), 0, 0, 0, 90, 60)
    assert step["inverse"] == [0] * 8 and step["border_x"] == step["border_y"] == 0


def test_extreme_images_are_errors_or_pixels():
    thin = record_of(np.zeros((1, 20000, 3), np.uint8), ".png")
    assert rendered(Recipe(data_shape=(3, 9, 9), resize=9), thin).shape == (9, 9, 3)
    tall = np.zeros((40000, 1, 3), np.uint8)
    recipe = Recipe(data_shape=(3, 3000, 3000), resize=2500)
    with pytest.raises(ImageDecodeError, match="too unequal|too large"):
        rendered(recipe, record_of(tall, ".png"))
    with pytest.raises(ImageDecodeError, match="max_crop_size"):
        rendered(Recipe(data_shape=(3, 9, 9), max_crop_size=50, min_crop_size=2), thin)
    with pytest.raises(ImageDecodeError, match="too unequal|no pixel"):
        rendered(Recipe(data_shape=(3, 9, 9), min_random_scale=0.01, max_random_scale=0.01), thin)
    # A crop that lies wholly in the border of a padded JPEG.
    white = record_of(np.zeros((20, 20, 3), np.uint8), ".jpg")
    recipe = Recipe(data_shape=(3, 9, 9), pad=30, crop_x_start=0, crop_y_start=0, fill_value=77)
    assert (rendered(recipe, white) == 77).all()


def test_angles_of_more_than_a_turn_are_those_that_they_come_to():
    image = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    record = recordio.pack_img(recordio.IRHeader(0, 0, 0, 0), image, img_fmt=".png")

    def turned(**keywords):
        recipe = Recipe(data_shape=(3, 20, 20), **keywords)
        return Renderer(RenderPlan(recipe, dtype="uint8")).sample(record)[0].astype(int)

    for more in (450, 3690):
        assert abs(turned(rotate=90) - turned(rotate=more)).max() <= 1
    assert abs(turned(rotate_list=(-30,)) - turned(rotate_list=(-390,))).max() <= 1


def test_random_angles_may_go_round_more_than_once():
    recipe = Recipe(data_shape=(3, 20, 20), max_rotate_angle=720)
    turns = [drawn_steps(recipe, 0, 0, i, 40, 40)[0][0]["inverse"][:2] for i in range(200)]
    angles = np.degrees([math.atan2(b, a) for a, b in turns])
    assert np.histogram(angles, 8, (-180, 180))[0].min() > 5


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"max_aspect_ratio": 1.5}, "max_aspect_ratio must be below 1"),
        ({"min_aspect_ratio": 0, "max_aspect_ratio": 1}, "expected 0 < min <= max"),
        ({"max_rotate_angle": 1_000_001}, "from 0 to 1000000"),
        ({"random_h": 1001}, "from 0 to 1000"),
    ],
)
def test_ranges_that_the_page_states(keywords, message):
    with pytest.raises(ValueError, match=message):
        Recipe(data_shape=(3, 8, 8), **keywords)
