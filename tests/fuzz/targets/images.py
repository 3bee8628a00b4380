"""JPEG, PNM and all other images; what becomes of a record on its way into a batch."""

from __future__ import annotations

import functools
import os
import random
import re
import warnings

import numpy as np

from faces.codecs import decode_jpeg, last_jpeg
from iterators.datasets.image_files import read_image
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from recordio import RecordIOError, decode_image
from recordio.errors import ImageDecodeError
from recordio.formats import pnm
from recordio.formats.decode import check_whole
from recordio.formats.image_header import complete_limits, read_header
from recordio.formats.jpeg import jpeg
from recordio.formats.jpeg.entry_store import EntryStore
from recordio.formats.jpeg.resize import decode_resized
from recordio.formats.table import format_of
from recordio.formats.transcode.transcode import coefficients, rewrite
from recordio.operations.pictures import channel_sums, picture_hash

from .mutate import EDGES, change_bytes, change_number, move_item
from .png import change_png, mend_png
from .target import FEW_PIXELS, Target, drawing, most_pixels

SOI, EOI = b"\xff\xd8", b"\xff\xd9"
SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
WITHOUT_LENGTH = frozenset([0x01, *range(0xD0, 0xDA)])


# ---- the structure of JPEG files


def jpeg_pieces(data: bytes) -> list[bytes]:
    """A file in segments and, behind each start of a scan, what lies between its markers."""
    pieces, at = [data[:2]], 2
    while at < len(data):
        end = len(data)
        if data[at] == 0xFF and at + 1 < end and data[at + 1] not in WITHOUT_LENGTH:
            end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        else:
            marker = re.compile(b"\xff[^\x00\xff]", re.S).search(data, at + 2)
            end = marker.start() if marker else end
        pieces.append(data[at : max(end, at + 1)])
        at = max(end, at + 1)
    return pieces


def change_jpeg(data: bytes, draw: random.Random) -> bytes:
    """A segment, a scan or a restart interval changed, cut, gone, twice or elsewhere."""
    pieces = jpeg_pieces(data)
    number = draw.randrange(len(pieces))
    piece = pieces[number]
    kind = draw.randrange(8)
    if kind == 0:
        return b"".join(move_item(pieces, draw))
    if kind == 1:
        other = draw.randrange(len(pieces))
        pieces[number], pieces[other] = pieces[other], piece
    elif kind == 2:  # cut, but what follows stays
        pieces[number] = piece[: draw.randrange(len(piece) + 1)]
    elif kind == 3:
        marker = bytes([0xFF, draw.choice([0xD0 + draw.randrange(10), 0xDA, 0xC4, 0x01, 0xFF, 0])])
        at = draw.randrange(len(piece) + 1)
        pieces[number] = piece[:at] + marker + piece[at:]
    elif kind == 4:
        sizes = [i for i, p in enumerate(pieces) if len(p) > 9 and p[:1] == b"\xff" and p[1] in SOF]
        if sizes:
            number = draw.choice(sizes)
            at = draw.choice([4, 5, 5, 7, 7, 9, 11, 14, 17])
            pieces[number] = change_number(pieces[number], draw, at, 2 if at in (5, 7) else 1)
    elif kind == 5:  # many scans, or many restart intervals
        pieces[number : number + 1] = [piece] * draw.choice([2, 3, 10, 300])
    else:
        pieces[number] = change_bytes(piece, draw)
    return b"".join(pieces)


def change_image(data: bytes, draw: random.Random) -> bytes:
    """The same for JPEG files, and one that PNG files know for others."""
    return (change_jpeg if data.startswith(b"\xff\xd8") else change_png)(data, draw)


JPEG_WORDS = tuple(
    bytes([0xFF, marker]) for marker in (0xD8, 0xD9, 0xDA, 0xC0, 0xC2, 0xC4, 0xDB, 0xDD)
)
JPEG_WORDS += (b"\xff\x00", b"\xff\xd0", b"\xff\xd7", b"\xff" * 5, b"\xff\xdd\x00\x04\x00\x01")


# ---- JPEG: decoding


def decoded(data: bytes, own: bool, **options):
    """Pixels, or None; whether it was refused; warnings."""
    asked = os.environ.pop("ITERATORS_JPEG", "")
    os.environ["ITERATORS_JPEG"] = "" if own else "plain"
    pixels, message = None, ""
    try:
        pixels = decode_jpeg(data, **options)
    except ImageDecodeError as error:
        message = str(error)
    finally:
        os.environ["ITERATORS_JPEG"] = asked
    return pixels, message, last_jpeg()[1]


def both_decoders(data: bytes, **options):
    """The outcome of our entropy decoder, which must be that of the library's."""
    theirs, their_message, their_warnings = decoded(data, False, **options)
    ours, message, warnings = decoded(data, True, **options)
    assert message == their_message, (options, message, their_message)
    # Damage where nobody looks may go unseen.
    part = "region" in options or options.get("channels") == 1 or options.get("denominator", 1) > 1
    assert warnings <= their_warnings if part else warnings == their_warnings, options
    if ours is not None:
        assert np.array_equal(ours, theirs), options
    return ours, warnings


def check_jpeg(data: bytes) -> None:
    """Our entropy decoder equals the library's, and a region is part of the whole."""
    draw = drawing(data)
    jpeg_header = jpeg.header(data)
    options = {
        "channels": draw.choice([3, 3, 1]),
        "denominator": draw.choice([1, 1, 1, 2, 4, 8]),
        "max_pixels": most_pixels(data),
    }
    whole, warnings = both_decoders(data, **options)
    width = -(-jpeg_header.width // options["denominator"])
    height = -(-jpeg_header.height // options["denominator"])
    entries = EntryStore(1, share=1)
    for _ in range(2):
        x, y = draw.randrange(width), draw.randrange(height)
        region = x, y, draw.randint(1, width - x), draw.randint(1, height - y)
        part, _ = both_decoders(data, region=region, **options)
        for _ in range(2):  # entry points are noted, and then used
            again, _, _ = decoded(data, True, region=region, entries=entries, **options)
            assert np.array_equal(again, part) if part is not None else again is None, region
        if whole is not None and not warnings:
            assert part is not None, region
        if whole is not None and part is not None and not warnings:
            assert np.array_equal(part, whole[y : y + region[3], x : x + region[2]]), region


JPEG = Target("jpeg", check_jpeg, change_jpeg, words=JPEG_WORDS)


def check_jpeg_rewrite(data: bytes) -> None:
    """What is rewritten has the same coefficients and pixels, and is sound."""
    draw = drawing(data)
    limits = {"max_pixels": most_pixels(data)}
    restart = draw.choice(["auto", "auto", 0, 1, 7])
    tables = draw.choice(["auto", "optimal", "standard"])
    again, reason = rewrite(data, restart, tables, **limits)
    if again is None:
        assert reason
        return
    before, after = coefficients(data, **limits), coefficients(again, **limits)
    assert len(before.blocks) == len(after.blocks)
    assert all(map(np.array_equal, before.blocks, after.blocks))
    assert all(map(np.array_equal, before.quantisation, after.quantisation))
    header = jpeg.header(data)
    assert header._replace(progressive=False) == jpeg.header(again)
    if header.supported:
        pixels, message, warnings = decoded(data, False, **limits)
        ours, others = both_decoders(again, **limits)
        assert not warnings
        assert not others
        assert not message
        assert np.array_equal(pixels, ours)


JPEG_REWRITE = Target("jpeg_rewrite", check_jpeg_rewrite, change_jpeg, words=JPEG_WORDS)


def check_jpeg_resize(data: bytes) -> None:
    """OpenCV's pixels to the bit, or none."""
    import cv2

    draw = drawing(data)
    short_side, method, channels = draw.randint(1, 60), draw.choice([1, 3]), draw.choice([3, 1])
    square = draw.random() < 0.3
    header = jpeg.header(data)
    if header.width * header.height > most_pixels(data) or header.components == 4:
        return
    image = decode_resized(data, short_side, method, channels, square=square, largest_side=4000)
    if image is None:
        return
    flag = cv2.IMREAD_COLOR if channels == 3 else cv2.IMREAD_GRAYSCALE
    # OpenCV finds orientations in EXIF data whose byte order is neither of the two.
    flag |= cv2.IMREAD_IGNORE_ORIENTATION
    whole = cv2_pixels(data, flag)
    if header.progressive and not np.array_equal(decode_jpeg(data)[..., ::-1], cv2_colours(data)):
        return  # scans are missing, and libraries smooth what is left in ways of their own
    height, width = whole.shape[:2]
    if square:
        side = min(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        whole = whole[top : top + side, left : left + side]
    size = image.shape[1], image.shape[0]
    wanted = cv2.resize(whole, size, interpolation={1: cv2.INTER_LINEAR, 3: cv2.INTER_AREA}[method])
    assert np.array_equal(image, wanted)


def cv2_colours(data: bytes) -> np.ndarray:
    """The whole image by OpenCV, in colour."""
    import cv2

    return cv2_pixels(data, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)


def cv2_pixels(data: bytes, flag: int) -> np.ndarray:
    """The whole image by OpenCV, which refuses a JPEG image without a marker of its end."""
    import cv2

    end = EOI if data[:2] == SOI else b""
    return cv2.imdecode(np.frombuffer(data + end, np.uint8), flag)


JPEG_RESIZE = Target("jpeg_resize", check_jpeg_resize, change_jpeg, words=JPEG_WORDS)


# ---- PNM

PNM_HEADER = re.compile(
    rb"P([56])" + rb"[ \t-\r](?:[ \t-\r]|#[^\n\r]*)*(\d{1,10})(?=[ \t-\r])" * 3, re.S
)


def check_pnm(data: bytes) -> None:
    """The size and the pixels that the plainest code finds, and OpenCV."""
    import cv2

    limit = most_pixels(data)
    # Comments are left to the comparison with OpenCV.
    found = None if b"#" in data[:200] else PNM_HEADER.match(data)
    try:
        header = pnm.header(data, max_pixels=limit)
    except ImageDecodeError:
        if found:
            width, height = int(found[2]), int(found[3])
            pixels = width * height
            needed = pixels * (1 if found[1] == b"5" else 3)
            behind = len(data) - found.end() - 1
            assert max(width, height) >= 2**31 or pixels > limit or behind < needed
        return
    if found and b"#" not in data[:200]:
        good = int(found[4]) == 255 and int(found[2]) and int(found[3])
        assert (header is not None) == bool(good)
        if header:
            assert header[:2] == (int(found[2]), int(found[3]))
            assert header.start == found.end() + 1
    for channels in (1, 3):
        pixels = pnm.decode(data, channels, max_pixels=limit)
        if header is None:
            assert pixels is None
            continue
        assert pixels.shape == (header.height, header.width, channels)
        if channels == header.channels:
            assert pixels.tobytes() == data[header.start : header.start + pixels.nbytes]
        flag = cv2.IMREAD_COLOR if channels == 3 else cv2.IMREAD_GRAYSCALE
        theirs = cv2.imdecode(np.frombuffer(data, np.uint8), flag)
        assert np.array_equal(pixels[..., ::-1].squeeze(), theirs.squeeze())
    if header is not None:
        assert read_header(data).size == header[:2]


def change_pnm(data: bytes, draw: random.Random) -> bytes:
    """One of the words of the header."""
    words = re.split(rb"(\s)", data, maxsplit=4)
    words[draw.randrange(len(words))] = draw.choice(
        [b"P5", b"P6", b"P4", b"255", b"65535", b" ", b"\n", b"\t", b"#c\n", b" # \r", b"", b"+3"]
        + [str(number).encode() for number in EDGES]
    )
    return b"".join(words)


PNM = Target("pnm", check_pnm, change_pnm, words=(b"#", b"\n", b" ", b"P5", b"P6", b"255\n"))


# ---- all formats


def check_image(data: bytes) -> None:
    """Any image is decoded or refused, and its size is what its header says."""
    limit = most_pixels(data)
    channels = drawing(data).choice([3, 3, 1, 4])
    pixels = decode_image(data, channels=channels, max_pixels=limit)
    assert pixels.dtype == np.uint8
    assert pixels.shape[2] == channels
    header = read_header(data)
    is_turned = channels != 4 or format_of(data).is_always_turned
    size = header.size if is_turned else (header.width, header.height)
    assert pixels.shape[1::-1] == size
    check_whole(data, limit)


IMAGE = Target(
    "image",
    check_image,
    change_png,
    mend_png,
    words=(b"IHDR", b"tRNS", b"PLTE", b"acTL", b"GIF89a"),
)


# ---- doors to all formats that are not the iterators': what each costs is in tests/bombs


def check_image_header(data: bytes) -> None:
    """The size that the decoded image has, upright and as it is stored, and its kind of values."""
    header = read_header(data)
    assert header.width > 0 and header.height > 0 and header.orientation in range(1, 9)
    for orient in (True, False):
        try:
            pixels = decode_image(data, orient=orient, max_pixels=most_pixels(data))
        except ImageDecodeError:
            return
        is_turned = orient or format_of(data).is_always_turned
        assert pixels.shape[1::-1] == (header.size if is_turned else (header.width, header.height))
    assert header.numbers == "u"


IMAGE_HEADER = Target(
    "image_header", check_image_header, change_image, mend_png, words=(b"eXIf", b"EXIF", b"irot")
)


def check_channel_sums(data: bytes) -> None:
    """What NumPy finds in the pixels."""
    limits = {"max_pixels": most_pixels(data), "max_scans": 20}
    pixels, sums = channel_sums(data, **limits)
    assert 0 < pixels <= limits["max_pixels"]
    if pixels > FEW_PIXELS:
        return
    image = decode_image(data, orient=False, **limits).astype(np.float64)
    assert np.array_equal(sums, [(image**power).sum(axis=(0, 1)) for power in (1, 2)])


CHANNEL_SUMS = Target("channel_sums", check_channel_sums, change_image, mend_png, words=JPEG_WORDS)


def check_picture_hash(data: bytes) -> None:
    """A number of 64 bits, the same when it is asked for again."""
    limits = {"max_pixels": most_pixels(data), "max_scans": 20}
    found = picture_hash(data, **limits)
    assert 0 <= found < 1 << 64
    assert found == picture_hash(memoryview(data), **limits)


PICTURE_HASH = Target("picture_hash", check_picture_hash, change_image, mend_png, words=JPEG_WORDS)


def check_read_image(data: bytes) -> None:
    """An array of three axes, or the one error that is documented."""
    limits = complete_limits({"max_pixels": most_pixels(data), "max_scans": 20})
    with warnings.catch_warnings():  # Pillow speaks of what it leaves out
        warnings.simplefilter("ignore")
        pixels = read_image(data, np.float32, limits)
    assert pixels.ndim == 3
    assert pixels.shape[1] * pixels.shape[2] <= limits["max_pixels"]


READ_IMAGE = Target("read_image", check_read_image, change_image, mend_png, words=JPEG_WORDS)


# ---- records on their way into a batch


@functools.cache
def renderers() -> list:
    """Makers of samples for a few recipes: whole images, crops, resized ones, warped ones."""
    recipes = [
        {"data_shape": (3, 8, 8)},
        {"data_shape": (3, 12, 9), "rand_crop": True, "rand_mirror": True, "resize": 20},
        {"data_shape": (1, 8, 8), "random_resized_crop": True, "min_random_area": 0.1},
        {"data_shape": (3, 8, 8), "max_rotate_angle": 30, "max_shear_ratio": 0.3, "random_h": 30},
    ]
    return [Renderer(RenderPlan(Recipe(**recipe))) for recipe in recipes]


def check_render(data: bytes) -> None:
    """A record is a sample, the same when it is asked for again, or an error."""
    if 0 <= sum(codec_size(data)) < 4000:
        for renderer in renderers():
            try:
                first = renderer.sample(data, 1, 5)
            except RecordIOError:
                continue
            again = renderer.sample(data, 1, 5)
            assert first[0].tobytes() == again[0].tobytes()
            assert first[1].tobytes() == again[1].tobytes()


def codec_size(data: bytes) -> tuple[int, int]:
    """Width and height of the image in a record, 0 if they are not to be known."""
    start = 24 + 4 * int.from_bytes(data[:4], "little")
    try:
        return read_header(data[start:]).size
    except RecordIOError:
        return 0, 0


def change_render(data: bytes, draw: random.Random) -> bytes:
    """The header, or what becomes of its image."""
    if draw.random() < 0.2:
        return change_number(data, draw, draw.choice([0, 4, 8]))
    start = 24 + 4 * int.from_bytes(data[:4], "little")
    content = data[start:]
    return data[:start] + change_image(content, draw)


RENDER = Target("render", check_render, change_render, words=JPEG_WORDS)
