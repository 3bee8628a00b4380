"""The operations of recipes against Pillow, and the forms of each against one another."""

import numpy as np
import pytest
from by_pillow import FACTORS, GEOMETRIC, of_pillow
from hypothesis import given, settings
from hypothesis import strategies as st

from recordio.kernels.operations import METHODS, NAMES, operate
from recordio.kernels.resample import variants


def draw_image(seed, height, width, channels):
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (height, width, channels), dtype=np.uint8)
    kind = seed % 4
    if kind == 1:  # few levels, so that channels are equal, black and white
        image = image // 64 * 85
    elif kind == 2:  # little contrast
        image = image // 8 + 90
    elif kind == 3:  # one value
        image[:] = image[:1, :1]
    return image.astype(np.uint8)


sizes = st.integers(1, 70)
images = st.builds(draw_image, st.integers(0, 10**6), sizes, sizes, st.sampled_from([1, 3, 4]))
factors = st.floats(0, 3, width=32) | st.sampled_from([0.0, 0.1, 1.0, 1.9])
VALUES = {
    **{name: factors for name in FACTORS},
    "posterize": st.integers(0, 8),
    "solarize": st.integers(0, 256) | st.floats(0, 256, width=32),
    "solarize_add": st.integers(0, 110),
    "blur": st.floats(0, 12, width=32),
    "hue": st.integers(-128, 127),
}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in GEOMETRIC])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_operations_on_values_are_pillows(name, data):
    image, value = data.draw(images), data.draw(VALUES.get(name, st.just(0)))
    np.testing.assert_array_equal(operate(image, name, value), of_pillow(image, name, value))


MOVES = {
    "shear_x": st.floats(-1, 1, width=32),
    "shear_y": st.floats(-1, 1, width=32),
    "translate_x": st.floats(-90, 90, width=32) | st.integers(-90, 90),
    "translate_y": st.floats(-90, 90, width=32) | st.integers(-90, 90),
    "rotate": st.floats(-180, 180, width=32) | st.integers(-135, 135),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", GEOMETRIC)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_moves_are_pillows(name, method, data):
    image, value = data.draw(images), data.draw(MOVES[name])
    fill = data.draw(st.sampled_from([0, 128, 255]))
    found = operate(image, name, value, method=method, fill=fill)
    wanted = of_pillow(image, name, value, method, fill)
    if method == "nearest":
        np.testing.assert_array_equal(found, wanted)
    else:
        assert np.abs(found.astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("name", ["translate_x", "translate_y"])
@pytest.mark.parametrize("value", [0.5, 0.4999999, 0.5000001, 1.4999999, 2.9999999])
def test_moves_to_the_brink_of_the_next_pixel_are_pillows(name, value):
    image = draw_image(0, 5, 6, 3)
    for signed in (value, -value):
        np.testing.assert_array_equal(
            operate(image, name, signed, method="nearest", fill=7),
            of_pillow(image, name, signed, "nearest", 7),
        )


def test_all_hues_are_pillows():
    """Every colour of 5 bits a channel, turned by a third."""
    levels = np.arange(0, 256, 5, np.uint8)
    colours = np.stack(np.meshgrid(levels, levels, levels), -1).reshape(52, -1, 3)
    for shift in (0, 1, 85, -25, 127):
        np.testing.assert_array_equal(
            operate(colours, "hue", shift), of_pillow(colours, "hue", shift)
        )


@pytest.mark.parametrize("variant", variants())
@pytest.mark.parametrize("name", NAMES)
def test_every_instruction_set_gives_the_same_bytes(name, variant):
    value = {"posterize": 3, "blur": 1.7, "hue": 40, "solarize": 99, "solarize_add": 50}
    for channels in (1, 3, 4):
        for width in (1, 2, 5, 63, 64, 65, 200, 531):
            image = draw_image(4 * width, 9, width, channels)
            number = value.get(name, 0.4)
            plain = operate(image, name, number, method="bicubic", variant="plain")
            found = operate(image, name, number, method="bicubic", variant=variant)
            np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("shift", [0, 100])
def test_all_colours_have_pillows_hue(shift):
    """Each of 2^24, so that no rounding of the arithmetic can differ unseen."""
    numbers = np.arange(1 << 24, dtype=np.uint32)
    colours = np.stack(
        [numbers >> 16, numbers >> 8 & 255, numbers & 255], -1, dtype=np.uint8, casting="unsafe"
    )
    colours = colours.reshape(4096, 4096, 3)
    np.testing.assert_array_equal(operate(colours, "hue", shift), of_pillow(colours, "hue", shift))


def test_a_large_blur_equals_pillows():
    image = draw_image(8, 40, 90, 3)
    for deviation in (20, 75.5):
        np.testing.assert_array_equal(
            operate(image, "blur", deviation), of_pillow(image, "blur", deviation)
        )


@pytest.mark.parametrize("variant", variants())
def test_blurs_of_all_small_boxes_equal_pillows(variant):
    """Radii 0 to 9, sums as large as they get, and images smaller than a vector or a box."""
    for step, side in enumerate((1, 2, 5, 21, 22, 64, 65) * 6):
        noise = draw_image(step, side, 66 - side, (1, 3, 4)[step % 3])
        for image in (noise, noise | 254, (noise > 127) * np.uint8(255)):
            for deviation in (0.05 + step / 40, 0.1 + step / 4):
                found = operate(image, "blur", deviation, variant=variant)
                np.testing.assert_array_equal(found, of_pillow(image, "blur", deviation))


def test_alpha_moves_with_the_colours():
    image = draw_image(0, 9, 9, 4)
    shifted = operate(image, "translate_x", 4, fill=(1, 2, 3, 0))
    np.testing.assert_array_equal(shifted[:, :5], image[:, 4:])
    assert (shifted[:, 5:] == (1, 2, 3, 0)).all()


def test_an_empty_image_stays_empty():
    assert operate(np.zeros((0, 5, 3), np.uint8), "blur", 2).shape == (0, 5, 3)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((np.zeros((4, 4, 2), np.uint8), "invert"), "1, 3 or 4"),
        ((np.zeros((4, 4), np.float32), "invert"), "uint8"),
        ((np.zeros((4, 4), np.uint8), "inverse"), "name must be one of"),
        ((np.zeros((4, 4), np.uint8), "posterize", 9), "within 0 to 8"),
        ((np.zeros((4, 4), np.uint8), "rotate", float("nan")), "nan"),
        ((np.zeros((4, 4), np.uint8), "blur", -1), "within 0 to 1000"),
        ((np.zeros((1, 40000), np.uint8), "rotate", 1), "32767"),
    ],
)
def test_what_cannot_be_is_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        operate(*arguments)


def test_small_images_by_hand():
    assert operate(np.array([[10, 200]], np.uint8), "solarize", 128).tolist() == [[10, 55]]
    moved = operate(np.array([[1, 2, 3]], np.uint8), "translate_x", 1, fill=9)
    assert moved.tolist() == [[2, 3, 9]]
