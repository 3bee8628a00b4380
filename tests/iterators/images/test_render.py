"""From a record to the numbers of a sample: colours and normalisation after the geometry."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordio
from faces import colour
from faces.draws import drawn_jitter as drawn
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from recordio.errors import ImageDecodeError, LabelError, RecordHeaderError
from recordio.formats import pnm

F = np.float32
IMAGE = np.random.default_rng(3).integers(0, 256, (14, 18, 3), np.uint8)


def record_of(image=IMAGE, flag=0, label=0.0, number=0):
    data = cv2.imencode(".png", image[..., ::-1])[1].tobytes()
    return recordio.pack(recordio.IRHeader(flag, label, number, 0), data)


RECORD = record_of()


def sample(recipe, epoch=0, number=0, record=RECORD, **plan):
    return Renderer(RenderPlan(recipe, **plan)).sample(record, epoch, number)


@settings(max_examples=100, deadline=None)
@given(
    st.floats(0, 2), st.floats(0, 100), st.floats(0.001, 3), st.floats(0.1, 99),
    st.floats(-50, 200),
    st.integers(0, 1000), st.booleans(),
)  # fmt: skip
def test_contrast_and_illumination_are_exact_in_float32(
    contrast, illumination, scale, std, mean, number, mirror
):
    """(x - mean) * (c * scale / std) + i * scale / std, every step rounded to float32."""
    recipe = Recipe(
        data_shape=(3, 14, 18), max_random_contrast=contrast, max_random_illumination=illumination,
        scale=scale, std_r=std, std_g=std, std_b=1, mean_r=mean, mean_b=-mean, mirror=mirror,
    )  # fmt: skip
    got = sample(recipe, number=number)[0][0]
    found = drawn(recipe, 0, 0, number) if contrast or illumination else {}
    c, i = F(found.get("exposure", 1)), F(found.get("illumination", 0))
    assert abs(c - 1) <= F(contrast) + F(2**-23)  # of the rounded sum
    assert abs(i) <= F(illumination)
    for channel, (m, s) in enumerate(((mean, std), (0, std), (-mean, 1))):
        plain = F(scale) / F(s)
        wanted = (IMAGE[..., channel].astype(F) - F(m)) * F(c * plain) + F(i * plain)
        assert np.array_equal(got[channel], wanted[:, ::-1] if mirror else wanted)


@pytest.mark.parametrize("mirror", [False, True])
def test_a_mean_image_replaces_the_means_and_stays_upright_under_a_mirror(mirror):
    mean = np.random.default_rng(0).uniform(0, 255, (3, 14, 18)).astype(F)
    recipe = Recipe(data_shape=(3, 14, 18), mirror=mirror, mean_r=77, mean_g=1, scale=0.5, std_g=3)
    got = sample(recipe, mean_image=mean)[0][0]
    factor = np.array([F(0.5), F(0.5) / F(3), F(0.5)], F)[:, None, None]
    wanted = (IMAGE.transpose(2, 0, 1).astype(F) - mean) * factor
    assert np.array_equal(got, wanted[..., ::-1] if mirror else wanted)


def test_int8_subtracts_the_rounded_mean_and_saturates():
    recipe = Recipe(data_shape=(3, 14, 18), mean_r=100.4, mean_g=-3.6, mean_b=0)
    got = sample(recipe, dtype="int8")[0][0]
    whole = IMAGE.transpose(2, 0, 1).astype(int) - np.array([100, -4, 0])[:, None, None]
    assert np.array_equal(got, whole.clip(-128, 127))


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([0, 0.3, 0.9]), st.sampled_from([0, 0.3, 0.9]), st.sampled_from([0, 0.3, 0.9]),
    st.sampled_from([0, 90]), st.sampled_from([0, 80]), st.sampled_from([0, 0.2]),
    st.integers(0, 1 << 40), st.integers(0, 1 << 31), st.sampled_from([14, 30]),
)  # fmt: skip
def test_colours_change_in_the_drawn_order_after_the_geometry(
    brightness, contrast, saturation, hue, lightness, noise, number, epoch, height
):
    chosen = {"data_shape": (3, height, 18)}
    recipe = Recipe(
        **chosen, brightness=brightness, contrast=contrast, saturation=saturation, random_h=hue,
        random_l=lightness, pca_noise=noise,
    )  # fmt: skip
    found = drawn(recipe, 0, epoch, number)
    image = sample(Recipe(**chosen), dtype="uint8", layout="NHWC")[0][0]
    steps = colour.brightness, colour.contrast, colour.saturation
    for step in found.get("order", []):
        image = steps[step](image, found["factor"][step])
    if "hue" in found:
        image = colour.shift_hls(image, found["hue"], found["lightness"], found["saturation"])
    if "noise" in found:
        image = colour.lighting(image, found["noise"])
    got = sample(recipe, epoch, number, dtype="uint8", layout="NHWC")[0][0]
    assert np.array_equal(got, image)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "CHWN", "HNWC"])
def test_colours_and_crops_do_not_depend_on_the_layout(layout):
    recipe = Recipe(
        data_shape=(3, 9, 8), rand_crop=True, brightness=0.5, rand_mirror=True, mean_r=3
    )
    plain = sample(recipe, 4, 5)[0]
    other = sample(recipe, 4, 5, layout=layout)[0]
    assert np.array_equal(other.transpose([layout.index(axis) for axis in "NCHW"]), plain)


@pytest.mark.parametrize(
    ("record", "error", "text"),
    [
        (b"", RecordHeaderError, "24 bytes"),
        (b"\0" * 23, RecordHeaderError, "24 bytes"),
        (b"\0" * 24, ImageDecodeError, "no image data"),
        (b"\xff" * 24, RecordHeaderError, "announces 4294967295 labels"),
        (record_of(flag=2, label=[1, 2]), LabelError, "2 labels, label_width is 1"),
        (RECORD[:60], ImageDecodeError, ""),
    ],
)
def test_what_is_wrong_with_a_record_is_said(record, error, text):
    with pytest.raises(error) as caught:
        sample(Recipe(data_shape=(3, 8, 8)), record=record)
    assert text in str(caught.value)


def test_label_width_0_reads_no_labels():
    _, label, number = sample(
        Recipe(data_shape=(3, 8, 8)),
        record=record_of(flag=3, label=[1, 2, 3], number=9),
        label_width=0,
    )
    assert (label.shape, number) == ((1, 0), 9)


def test_truncation_at_every_byte_is_an_error_or_the_image():
    data = cv2.imencode(".jpg", IMAGE)[1].tobytes()
    record = recordio.pack(recordio.IRHeader(0, 0, 0, 0), data)
    renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 14, 18)), dtype="uint8"))
    whole = renderer.sample(record)[0]
    for length in range(len(record)):
        try:
            got = renderer.sample(record[:length])[0]
        except (ImageDecodeError, RecordHeaderError):
            continue
        assert length >= len(record) - 2  # only the end marker may be missing
        assert np.array_equal(got, whole)
    assert np.array_equal(renderer.sample(record)[0], whole)


def test_shifts_of_more_than_the_range_end_at_its_limits():
    """MXNet accepts them: what leaves 0 to 180, or 0 to 255, is clamped there."""
    recipe = Recipe(data_shape=(3, 14, 18), random_h=1000, random_s=600, random_l=40)
    beyond = 0
    for number in range(20):
        found = drawn(recipe, 0, 0, number)
        beyond += abs(found["hue"]) > 180
        ended = [np.clip(found[n], -255, 255) for n in ("lightness", "saturation")]
        wanted = colour.shift_hls(IMAGE, np.clip(found["hue"], -180, 180), *ended)
        got = sample(recipe, 0, number, dtype="uint8", layout="NHWC")[0][0]
        assert np.array_equal(got, wanted)
    assert beyond > 5


@pytest.mark.parametrize("stored", [1, 3])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"random_resized_crop": True, "min_random_area": 0.2, "rand_mirror": True},
        {"resize": 9, "max_rotate_angle": 20, "pad": 2},
    ],
    ids=["centre", "crop", "warp"],
)
def test_pixels_become_what_a_record_of_them_does(stored, channels, more):
    pixels = np.ascontiguousarray(IMAGE[:, :, :stored])
    record = recordio.pack(recordio.IRHeader(0, 0, 0, 0), pnm.encode(pixels))
    recipe = Recipe(data_shape=(channels, 8, 8), mean_r=3, **more)
    views = [RenderPlan(recipe, key=5, label_width=0)]
    for plan in (RenderPlan(recipe, key=2), RenderPlan(recipe, key=2, views=views)):
        renderer = Renderer(plan)
        for number in range(5):
            wanted = renderer.sample(record, 1, number, 2)[0]
            found = renderer.pixels(pixels, 1, number, 2)
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(Renderer(plan).pixels(pixels, 1, number, 2), wanted)


@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 0, 1), (4, 4, 2), (4, 4, 4)])
def test_what_are_no_pixels_is_refused(shape):
    with pytest.raises(ValueError, match="1 or 3 channels"):
        Renderer(RenderPlan(Recipe(data_shape=(3, 4, 4)))).pixels(np.zeros(shape, np.uint8))


def test_pixels_have_no_alpha():
    with pytest.raises(ImageDecodeError, match="has 3 channels, not the 4"):
        Renderer(RenderPlan(Recipe(data_shape=(4, 4, 4)))).pixels(IMAGE)


def test_too_many_pixels_are_refused():
    renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 4, 4)), max_pixels=100))
    with pytest.raises(ImageDecodeError, match="18 x 14 pixels are more than the limit of 100"):
        renderer.pixels(IMAGE)
