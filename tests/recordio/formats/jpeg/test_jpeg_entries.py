"""Entry points of sequential JPEG images: noted, used, never to be seen in pixels or errors."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faces.codecs import decode_jpeg, last_jpeg
from iterators.testing import encode_jpeg, picture
from recordio.errors import ImageDecodeError
from recordio.formats.jpeg.entry_store import EntryStore

pytestmark = pytest.mark.libjpeg

OWN, GIVEN_BACK = 1, 2
SAMPLINGS = ["411", "420", "422", "440", "444"]


@pytest.fixture(autouse=True)
def own_entropy_decoder(monkeypatch):
    """Ours, whatever the environment says."""
    monkeypatch.setenv("ITERATORS_JPEG", "")


def store_of(count=1):
    """One that has more points than images may have as a rule, so that small ones have some."""
    return EntryStore(count, share=1)


def decode(data, store=None, **options):
    """Pixels or None, the error, and who decoded."""
    pixels, message = None, ""
    try:
        pixels = decode_jpeg(data, entries=store, **options)
    except ImageDecodeError as error:
        message = str(error)
    return pixels, message, last_jpeg()[0]


def check_equal(data, store, **options):
    """The same with entry points and without, and with the library alone; who decoded."""
    plain, message, _ = decode(data, **options)
    found, found_message, decoder = decode(data, store, **options)
    assert found_message == message
    assert np.array_equal(found, plain) if plain is not None else found is None
    os.environ["ITERATORS_JPEG"] = "plain"
    try:
        library, library_message, _ = decode(data, store, **options)
    finally:
        os.environ["ITERATORS_JPEG"] = ""
    assert library_message == message
    assert np.array_equal(library, plain) if plain is not None else library is None
    return decoder


@st.composite
def regions(draw, width, height):
    x, y = draw(st.integers(0, width - 1)), draw(st.integers(0, height - 1))
    return x, y, draw(st.integers(1, width - x)), draw(st.integers(1, height - y))


@settings(max_examples=40)
@given(st.data(), st.sampled_from(SAMPLINGS), st.sampled_from([1, 3]), st.sampled_from([1, 2, 8]))
def test_regions_are_the_same_in_any_order(data, sampling, channels, denominator):
    height, width = data.draw(st.integers(20, 200)), data.draw(st.integers(20, 200))
    quality = data.draw(st.sampled_from([30, 80, 97]))
    image = encode_jpeg(picture(height, width, quality), sampling=sampling, quality=quality)
    store = store_of()
    width, height = -(-width // denominator), -(-height // denominator)
    for _ in range(4):
        region = data.draw(regions(width, height))
        options = {"region": region, "channels": channels, "denominator": denominator}
        assert check_equal(image, store, **options) == OWN
    check_equal(image, store, channels=channels, denominator=denominator)
    points = store.packed(0)
    if points is not None:  # with all of them
        region = data.draw(regions(width, height))
        options = {"region": region, "channels": channels, "denominator": denominator}
        assert check_equal(image, store, **options) == OWN
        assert store.packed(0) == points


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_points_are_noted_once_and_used(sampling):
    image = encode_jpeg(picture(160, 240), sampling=sampling, quality=90)
    store = store_of(3)
    decode_jpeg(image, entries=store, record=1)
    points = store.packed(1)
    assert store.images == 1 and store.nbytes == len(points) > 40
    assert store.packed(0) is None
    whole = decode_jpeg(image)
    region = (120, 90, 50, 40)
    wanted = whole[90:130, 120:170]
    # A bit of what lies above the region, which is passed over, may now be wrong: nobody reads it.
    start = image.index(b"\xff\xda") + 60
    damaged = bytearray(image)
    changed = [at for at in range(start, start + 40) if damaged[at] not in (0, 255)][:8]
    for at in changed:
        damaged[at] ^= 0x2A if damaged[at] ^ 0x2A not in (0, 255) else 1
    assert not np.array_equal(decode_jpeg(bytes(damaged))[90:130, 120:170], wanted)
    assert np.array_equal(decode_jpeg(image, 3, region, entries=store, record=1), wanted)
    used = decode_jpeg(bytes(damaged), 3, region, entries=store, record=1)
    assert np.array_equal(used, wanted)  # which shows that points were used


def test_points_of_another_image_are_none():
    first = encode_jpeg(picture(160, 240, 1), quality=90)
    second = encode_jpeg(picture(160, 240, 2), quality=90)
    store = store_of()
    for image in (first, second, first):
        for region in [(100, 100, 60, 50), (10, 120, 200, 30)]:
            assert check_equal(image, store, region=region) == OWN


def test_parts_of_an_image_add_to_what_is_known():
    image = encode_jpeg(picture(320, 240), quality=90)
    store, sizes = store_of(), []
    for bottom in (80, 160, 320, 320):
        check_equal(image, store, region=(0, bottom - 20, 240, 20))
        sizes.append(len(store.packed(0) or b""))
    assert 0 < sizes[0] < sizes[1] < sizes[2] == sizes[3]


def test_the_share_of_bytes():
    for noise in (2, 20, 80):
        for sampling in ("420", "444"):
            image = encode_jpeg(picture(600, 800, noise=noise), quality=95, sampling=sampling)
            store = EntryStore(1)
            for region in [(500, 300, 90, 80), (400, 100, 300, 490), (700, 500, 100, 100)] * 2:
                assert check_equal(image, store, region=region) == OWN
            assert 0.001 < store.nbytes / len(image) <= 0.004
    small = encode_jpeg(picture(64, 64), quality=50)
    store = EntryStore(1)
    decode_jpeg(small, entries=store)
    assert store.images == 0


@pytest.mark.parametrize(
    "image",
    [
        encode_jpeg(picture(160, 240), quality=90, progressive=True),
        encode_jpeg(picture(160, 240), quality=90, restart=3),
    ],
    ids=["progressive", "restarts"],
)
def test_images_without_points(image):
    store = store_of()
    for region in [(100, 100, 60, 50), (10, 120, 200, 30)]:
        check_equal(image, store, region=region)
    assert store.images == 0


@settings(max_examples=60)
@given(st.data())
def test_damage_has_the_outcome_that_it_has_without_points(data):
    image = bytearray(encode_jpeg(picture(120, 160), quality=85, sampling="420"))
    start = image.index(b"\xff\xda") + 14
    for _ in range(data.draw(st.integers(1, 3))):
        image[data.draw(st.integers(start, len(image) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del image[data.draw(st.integers(start, len(image))) :]
    store = store_of()
    for _ in range(3):
        check_equal(bytes(image), store, region=data.draw(regions(160, 120)))


def test_truncation_everywhere():
    image = encode_jpeg(picture(64, 80), quality=80)
    start = image.index(b"\xff\xda")
    for size in range(start, len(image), 37):
        store = store_of()
        for region in [(0, 40, 80, 8), (40, 20, 16, 30), (0, 0, 80, 64)]:
            check_equal(image[:size], store, region=region)
            check_equal(image[:size] + b"\xff\xd9", store, region=region)


@settings(max_examples=200)
@given(st.data())
def test_any_bytes_of_points_are_refused_or_do_no_harm(data):
    image = encode_jpeg(picture(160, 240), quality=90)
    store = store_of()
    whole = decode_jpeg(image, entries=store)
    points = bytearray(store.packed(0))
    assert store.put(0, bytes(points)) and store.packed(0) == bytes(points)
    mark = bytes(points[:4])
    for _ in range(data.draw(st.integers(1, 4))):
        points[data.draw(st.integers(4, len(points) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        points = points[: data.draw(st.integers(0, len(points)))]
    assert len(points) < 4 or bytes(points[:4]) == mark
    if store.put(0, bytes(points)):
        # A file of points has a checksum: here only what must never happen is looked for.
        region = data.draw(regions(240, 160))
        assert decode_jpeg(image, 3, region, entries=store).shape == (region[3], region[2], 3)
    assert np.array_equal(decode_jpeg(image), whole)


def test_a_store_refuses_what_it_cannot_hold():
    store = EntryStore(2)
    for record in (-1, 2):
        with pytest.raises(IndexError):
            store.packed(record)
        with pytest.raises(IndexError):
            store.put(record, b"1234567890")
    assert not store.put(0, b"") and not store.put(0, b"123")
    with pytest.raises(ValueError):
        EntryStore(-1)
    with pytest.raises(ValueError):
        EntryStore(1, share=0)
    image = encode_jpeg(picture(160, 240), quality=90)
    for record in (-1, 2, 1 << 40):  # of which nothing is kept
        decode_jpeg(image, entries=store, record=record)
    assert store.images == 0


def test_threads_share_a_store():
    images = [encode_jpeg(picture(160, 240, seed), quality=90) for seed in range(4)]
    wanted = [decode_jpeg(image) for image in images]
    store, wrong = store_of(len(images)), []

    def work(number):
        draw = np.random.default_rng(number)
        for _ in range(60):
            which = int(draw.integers(len(images)))
            x, y = int(draw.integers(200)), int(draw.integers(140))
            part = decode_jpeg(images[which], 3, (x, y, 40, 20), entries=store, record=which)
            if not np.array_equal(part, wanted[which][y : y + 20, x : x + 40]):
                wrong.append(which)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert not wrong and store.images == len(images)
