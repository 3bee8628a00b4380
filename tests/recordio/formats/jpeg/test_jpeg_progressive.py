"""The entropy decoder of our own for progressive images against that of the library.

Pixels, errors and warnings must be the same.  Files come from Pillow, OpenCV and
`progressive_writer`, which writes the scans of any script.
"""

import io
import os
from functools import partial

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from progressive_writer import Scan, empty_frame, usual_scans, write_file

from faces.codecs import decode_jpeg, last_jpeg
from iterators.testing import encode_jpeg, picture
from recordio.errors import ImageDecodeError
from recordio.formats.jpeg import jpeg

pytestmark = pytest.mark.libjpeg

LIBRARY, OWN, GIVEN_BACK = 0, 1, 2
SAMPLINGS = {
    "grey": [(1, 1)],
    "grey 2x2": [(2, 2)],
    "444": [(1, 1)] * 3,
    "420": [(2, 2), (1, 1), (1, 1)],
    "422": [(2, 1), (1, 1), (1, 1)],
    "440": [(1, 2), (1, 1), (1, 1)],
    "411": [(4, 1), (1, 1), (1, 1)],
    "mixed": [(2, 2), (2, 1), (1, 2)],
    "chroma": [(1, 1), (2, 2), (1, 1)],
}


@pytest.fixture(autouse=True)
def own_entropy_decoder(monkeypatch):
    """Ours, whatever the environment says, and afterwards what was in use before."""
    monkeypatch.setenv("ITERATORS_JPEG", "")


encode = partial(encode_jpeg, progressive=True)


def random_frame(width, height, sampling, seed, density=0.15, largest=40):
    """Coefficients by chance, smaller and fewer at higher positions."""
    random = np.random.default_rng(seed)
    frame = empty_frame(width, height, sampling)
    falling = np.exp(-np.arange(64) / 20)
    for blocks in frame.blocks:
        sizes = np.maximum(1, largest * falling).astype(int)
        blocks[:] = random.integers(-sizes, sizes + 1, blocks.shape)
        blocks *= random.random(blocks.shape) < density * falling * 3
        blocks *= (random.random(blocks.shape[:2]) < 0.8)[..., None]
        blocks[..., 0] = random.integers(-300, 300, blocks.shape[:2])
    return frame


def decode(data, own, **options):
    """Pixels or error text, number of warnings; and which decoder it was."""
    os.environ["ITERATORS_JPEG"] = "" if own else "plain"
    try:
        pixels = decode_jpeg(data, **options).tobytes()
    except ImageDecodeError as error:
        pixels = str(error)
    decoder, warnings = last_jpeg()
    return (pixels, warnings), decoder


@pytest.fixture
def portable():
    """Only the instructions that every processor has."""
    jpeg._choose_kernels("portable")
    yield
    jpeg._choose_kernels("")


def check_equal(data, **options):
    """Decode with both; what ours became.

    Damage where nobody looks may go unseen: below a region, in colours of a grey image, in what is
    smaller than a pixel.
    """
    theirs, decoder = decode(data, False, **options)
    assert decoder == LIBRARY
    ours, decoder = decode(data, True, **options)
    if options.get("region") or options.get("channels") == 1 or options.get("denominator", 1) > 1:
        assert ours[0] == theirs[0]
        assert ours[1] <= theirs[1]
    else:
        assert ours == theirs
    return decoder


def scan_of(data, number=0):
    """Offset of the entropy-coded data of a scan."""
    start = -1
    for _ in range(number + 1):
        start = data.index(b"\xff\xda", start + 1)
    return start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")


# ---- sound images ----


@given(
    st.tuples(st.integers(1, 90), st.integers(1, 90)),
    st.sampled_from(["411", "420", "422", "440", "444"]),
    st.integers(1, 100),
    st.integers(0, 9),
    st.booleans(),
    st.integers(0, 255),
    st.data(),
)
@settings(max_examples=150)
def test_images_and_their_regions_equal_the_library(
    size, sampling, quality, restart, grey, noise, draw
):
    image = picture(*size, noise, noise=noise)
    data = encode(image[:, :, 0] if grey else image, sampling, quality, restart)
    denominator = draw.draw(st.sampled_from([1, 1, 1, 2, 4, 8]))
    channels = draw.draw(st.sampled_from([3, 3, 1]))
    assert check_equal(data, channels=channels, denominator=denominator) == OWN
    height, width = (-(-side // denominator) for side in size)
    x, y = draw.draw(st.integers(0, width - 1)), draw.draw(st.integers(0, height - 1))
    region = x, y, draw.draw(st.integers(1, width - x)), draw.draw(st.integers(1, height - y))
    assert check_equal(data, channels=channels, denominator=denominator, region=region) == OWN


@st.composite
def scripts(draw, components):
    """Scans that bring every coefficient bit by bit, in an order that is allowed."""
    queues = []
    restarts = st.sampled_from([0, 0, 0, 1, 2, 5])
    every = tuple(range(components))
    groups = draw(st.sampled_from([[every], [(c,) for c in every]]))
    first = []
    for group in groups:
        low = draw(st.integers(0, 3))
        first.append(Scan(group, low=low, restart=draw(restarts)))
        queues.append([Scan(group, 0, 0, i + 1, i, draw(restarts)) for i in range(low)][::-1])
    for component in every:
        cuts = sorted(draw(st.sets(st.integers(2, 63), max_size=3)))
        for start, end in zip([1, *cuts], [*cuts, 64], strict=True):
            low = draw(st.integers(0, 4))
            queues.append(
                [Scan((component,), start, end - 1, 0, low, draw(restarts))]
                + [
                    Scan((component,), start, end - 1, i + 1, i, draw(restarts))
                    for i in range(low - 1, -1, -1)
                ]
            )
    while any(queues):
        queue = draw(st.sampled_from([queue for queue in queues if queue]))
        first.append(queue.pop(0))
    return first


SHAPES = st.tuples(st.integers(1, 60), st.integers(1, 60))


@given(
    st.sampled_from(sorted(SAMPLINGS)),
    SHAPES,
    st.integers(0, 99),
    st.sampled_from([0.02, 0.15, 1.0]),
    st.sampled_from([1, 40, 1000]),
    st.sampled_from([0, 3, 11]),
    st.sampled_from([1, 7, 0x7FFF]),
    st.data(),
)
@settings(max_examples=100)
def test_any_script_equals_the_library(name, size, seed, density, largest, skew, most_ends, draw):
    frame = random_frame(*size, SAMPLINGS[name], seed, density, largest)
    script = draw.draw(scripts(len(SAMPLINGS[name])))
    data = write_file(frame, script, skew, most_ends)
    assert check_equal(data) == OWN
    assert check_equal(data, denominator=draw.draw(st.sampled_from([2, 4, 8]))) == OWN
    # Scans are missing: the library smooths what is there.
    data = write_file(frame, script[: draw.draw(st.integers(1, len(script)))], skew, most_ends)
    assert check_equal(data) == OWN
    assert check_equal(data, region=(size[0] // 2, size[1] // 2, 1, 1)) == OWN


def test_coefficients_of_every_size():
    for sampling in ("444", "420"):
        for seed in range(4):
            frame = random_frame(90, 70, SAMPLINGS[sampling], seed, 1.0, 1023)
            for skew in (0, 5, 12):
                assert check_equal(write_file(frame, usual_scans(3), skew)) == OWN


def test_dense_blocks_have_more_correction_bits_than_a_buffer_holds():
    frame = empty_frame(200, 16, [(1, 1)])
    random = np.random.default_rng(1)
    frame.blocks[0][:] = random.integers(2, 200, frame.blocks[0].shape)
    frame.blocks[0][:, ::2] *= -1
    scans = [Scan((0,)), Scan((0,), 1, 63, 0, 1), Scan((0,), 1, 63, 1, 0)]
    for most_ends in (1, 0x7FFF):
        assert check_equal(write_file(frame, scans, most_ends=most_ends)) == OWN


@pytest.mark.usefixtures("portable")
def test_every_processor_decodes_the_same():
    """All other tests use what this processor has."""
    for number, name in enumerate(sorted(SAMPLINGS)):
        for density, largest in ((0.15, 40), (1.0, 1000)):
            frame = random_frame(70, 50, SAMPLINGS[name], number, density, largest)
            data = write_file(frame, usual_scans(len(frame.sampling)), skew=number)
            assert check_equal(data) == OWN
            assert check_equal(data[:-9]) == GIVEN_BACK
    assert check_equal(encode(picture(100, 150))) == OWN
    assert check_equal(cv2.imencode(".jpg", picture(100, 150))[1].tobytes()) == OWN


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("options", [{}, {"restart_marker_rows": 1}, {"quality": 100}])
def test_files_of_pillow(mode, options):
    file = io.BytesIO()
    image = Image.fromarray(picture(70, 110)).convert(mode)
    image.save(file, "JPEG", progressive=True, **options)
    for denominator in (1, 2, 4, 8):
        for channels in (1, 3):
            assert check_equal(file.getvalue(), denominator=denominator, channels=channels) == OWN


def test_what_is_left_to_the_library():
    frame = random_frame(30, 40, SAMPLINGS["444"], 0)
    dc, ac = Scan((0, 1, 2)), Scan((0,), 1, 63, 0, 1)
    for scans, expected in [
        ([Scan((0, 1, 2), high=1)], LIBRARY),  # refined before it was there
        ([ac, dc], OWN),  # which the library warns of
        ([dc, ac, ac], GIVEN_BACK),  # twice
        ([dc, ac, Scan((0,), 1, 63, 2, 1)], GIVEN_BACK),  # another bit than the next
        ([dc, ac, Scan((0,), 1, 63, 1, 0), Scan((0,), 1, 63, 1, 0)], GIVEN_BACK),
        ([dc, Scan((0,), 1, 20), Scan((0,), 10, 30)], GIVEN_BACK),  # in part twice
    ]:
        assert check_equal(write_file(frame, scans)) == expected, scans


@pytest.mark.parametrize(
    "band", [(30, 20, 0, 1), (0, 5, 0, 1), (1, 64, 0, 1), (1, 63, 3, 1), (1, 63, 0, 14)]
)
def test_bands_that_are_errors(band):
    frame = random_frame(30, 40, SAMPLINGS["444"], 0)
    data = bytearray(write_file(frame, [Scan((0, 1, 2)), Scan((0,), 1, 63)]))
    first, last, high, low = band
    at = scan_of(data, 1)
    data[at - 3 : at] = bytes([first, last, high << 4 | low])
    check_equal(bytes(data))
    assert "damaged" in decode(bytes(data), True)[0][0]


# ---- damaged images ----


def small(sampling="420", restart=0, size=(40, 33)):
    frame = random_frame(*size, SAMPLINGS[sampling], 3)
    scans = [scan._replace(restart=restart) for scan in usual_scans(len(frame.sampling))]
    return write_file(frame, scans)


@pytest.mark.parametrize("restart", [0, 2])
@pytest.mark.parametrize("sampling", ["420", "grey"])
def test_truncated_at_every_byte(sampling, restart):
    data = small(sampling, restart)
    decoders = []
    for size in range(len(data)):
        decoders.append(check_equal(data[:size]))
        check_equal(data[:size], region=(20, 18, 9, 9))
        check_equal(data[:size], denominator=8, channels=1)
    assert decoders.count(GIVEN_BACK) > len(data) / 3


@pytest.mark.parametrize("restart", [0, 1])
def test_every_bit_flipped(restart):
    data = small("420", restart, (17, 10))
    decoders = set()
    for bit in range(8 * scan_of(data), 8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 128 >> bit % 8
        decoders.add(check_equal(bytes(changed)))
    assert decoders == {OWN, GIVEN_BACK}


DAMAGED = [
    encode(picture(41, 57, 1), "420", 90),
    encode(picture(41, 57, 2), "444", 60, 3),
    encode(picture(20, 30, 3)[:, :, 0], "444", 95),
    small("mixed", 1),
    small("422"),
]


@given(
    st.sampled_from(range(len(DAMAGED))),
    st.lists(
        st.tuples(st.integers(0, 1 << 20), st.binary(max_size=3), st.integers(0, 3)), max_size=4
    ),
    st.sampled_from([None, (0, 0, 30, 20), (25, 15, 5, 5), (0, 19, 30, 1)]),
    st.sampled_from([1, 3]),
)
@settings(max_examples=300)
def test_changed_bytes_have_the_outcome_of_the_library(number, changes, region, channels):
    """Bytes replaced, inserted and removed, in the scans and between them."""
    data = DAMAGED[number]
    start = scan_of(data)
    for at, bytes_in, out in changes:
        at = start + at % (len(data) - start)
        data = data[:at] + bytes_in + data[at + out :]
    check_equal(data, region=region, channels=channels)


@given(
    st.sampled_from(range(len(DAMAGED))),
    st.integers(0, 20),
    st.lists(st.tuples(st.integers(0, 70), st.integers(0, 255)), min_size=1, max_size=3),
    st.sampled_from([1, 2, 8]),
)
@settings(max_examples=300)
def test_changed_headers_have_the_outcome_of_the_library(number, scan, changes, denominator):
    """Those between scans: codes that do not exist, other bands, other restart intervals."""
    data = bytearray(DAMAGED[number])
    scan %= data.count(b"\xff\xda")
    start = scan_of(data, scan)
    for before, value in changes:
        data[max(2, start - 1 - before)] = value
    check_equal(bytes(data), max_pixels=1 << 20, denominator=denominator)


@pytest.mark.parametrize(
    "marker", [b"\xff\xd0", b"\xff\xd3", b"\xff\xd9", b"\xff\xff\x00", b"\xff\xff\xd0", b"\xff\x01"]
)
def test_marker_anywhere(marker):
    for restart in (0, 2):
        data = small("420", restart, (17, 10))
        for at in range(scan_of(data), len(data)):
            check_equal(data[:at] + marker + data[at:])


def damaged_in(data, number):
    """The same file with zeros in the second half of a scan, but for its markers."""
    start = scan_of(data, number)
    end = data.index(b"\xff\xdd", start)
    middle = (start + end) // 2
    zeros = bytes(
        byte if byte == 255 or data[at - 1] == 255 else 0
        for at, byte in enumerate(data[middle:end], middle)
    )
    return data[:middle] + zeros + data[end:]


@pytest.mark.parametrize("restart", [0, 7])
@pytest.mark.parametrize(
    ("options", "damaged"),
    [
        ({"channels": 1}, (2, 3, 7, 8)),  # colours
        ({"denominator": 8}, (1, 2, 3, 4, 5, 7, 8)),  # all AC coefficients
        ({"denominator": 8, "channels": 1}, (1, 2, 3, 4, 5, 7, 8)),
        ({"region": (0, 0, 90, 9)}, (0, 1, 2, 3, 5, 7)),  # lower rows
    ],
)
def test_what_cannot_change_a_pixel_is_not_read(options, damaged, restart):
    frame = random_frame(90, 80, SAMPLINGS["444"], 5)
    data = write_file(frame, [scan._replace(restart=restart) for scan in usual_scans(3)])
    for number in damaged:
        changed = damaged_in(data, number)
        assert check_equal(changed) == GIVEN_BACK
        assert check_equal(changed, **options) == OWN
        assert decode(changed, True, **options)[0] == decode(data, True, **options)[0]
        # Without an end the library would miss what it has read before.
        assert check_equal(changed[:-2], **options) == GIVEN_BACK
        assert decode(changed[:-2], True, **options)[0] == decode(changed[:-2], False, **options)[0]


@pytest.mark.parametrize("restart", [0, 3])
def test_everything_is_read_of_an_image_whose_coefficients_are_missing(restart):
    """The library then makes up for them from rows around a region."""
    frame = random_frame(90, 80, SAMPLINGS["420"], 5)
    scans = [scan._replace(restart=restart) for scan in usual_scans(3)]
    for count in range(1, 10):
        data = write_file(frame, scans[:count])
        for region in ((0, 0, 90, 9), (30, 40, 5, 5)):
            assert check_equal(data, region=region) == OWN
        for denominator in (2, 4, 8):
            assert check_equal(data, denominator=denominator) == OWN


def test_scans_in_another_order_and_twice():
    """Segments between markers moved: every scan has the tables that it should not have."""
    data = small("444", 0, (17, 10))
    ends = [at for at in range(len(data) - 1) if data[at : at + 2] == b"\xff\xdd"] + [len(data) - 2]
    parts = [data[a:b] for a, b in zip(ends, ends[1:], strict=False)]
    for i in range(len(parts)):
        for j in range(len(parts)):
            moved = list(parts)
            moved[i], moved[j] = moved[j], moved[i]
            check_equal(data[: ends[0]] + b"".join(moved) + b"\xff\xd9")
        check_equal(data[: ends[0]] + b"".join(parts[:i] + parts[i:] * 2) + b"\xff\xd9")


@pytest.fixture(scope="module")
def of_zeros():
    """A file of 75,000 blocks, in two scans."""
    return write_file(empty_frame(2000, 2400, [(1, 1)]), [Scan((0,)), Scan((0,), 1, 63)])


@pytest.mark.parametrize(("bits", "expected"), [(7, OWN), (15, GIVEN_BACK)])
def test_a_sum_of_differences_beyond_32_bits_is_the_librarys_to_judge(of_zeros, bits, expected):
    data = of_zeros
    start, end = scan_of(data), data.index(b"\xff\xdd", scan_of(data))
    table = data.index(b"\xff\xc4")
    body = b"\0" + bytes([1, 0, 0, 0] + [0] * 12) + bytes([bits])
    largest = ((1 << bits) - 1).to_bytes((bits + 1) // 8, "big")  # the code 0 and so many ones
    scan = (largest * 75_000).replace(b"\xff", b"\xff\0")
    changed = data[:table] + b"\xff\xc4" + (len(body) + 2).to_bytes(2, "big") + body
    changed += data[data.index(b"\xff\xda") : start] + scan + data[end:]
    assert check_equal(changed) == expected


def test_sound_image_after_a_damaged_one():
    sound = encode(picture(50, 50))
    damaged = sound[: scan_of(sound, 5) + 20]
    sequential = cv2.imencode(".jpg", picture(50, 50))[1].tobytes()
    for _ in range(3):
        assert check_equal(damaged) == GIVEN_BACK
        assert check_equal(sound) == OWN
        assert check_equal(sequential) == OWN
