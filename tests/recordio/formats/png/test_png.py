"""recordio.formats.png: the pixels of OpenCV and Pillow; chunks that change nothing; damage."""

import struct
import sys
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_png import DEPTHS, SIGNATURE, chunk, picture, pictures

from faces.codecs import decode_png
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from recordio import IRHeader, decode_image, pack
from recordio.errors import ImageDecodeError
from recordio.formats import general
from recordio.formats.image_header import read_header

FLAGS = {1: cv2.IMREAD_GRAYSCALE, 3: cv2.IMREAD_COLOR, 4: cv2.IMREAD_UNCHANGED}
KINDS = [(colour, depth) for colour, depths in DEPTHS.items() for depth in depths]
FILTERS = [[0], [1], [2], [3], [4], [3, 4, 4, 3, 1, 4, 2, 0]]
PHOTO = np.random.default_rng(3).integers(0, 256, (40, 56, 3), np.uint8)
ORDINARY = picture(2, 8, seed=1, filters=[4, 3]).file()


def by_opencv(data, channels):
    """Its pixels in our order; None if it refuses the image, or finds no four channels."""
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), FLAGS[channels])
    if pixels is None or (channels == 4 and (pixels.ndim != 3 or pixels.shape[2] != 4)):
        return None
    if pixels.dtype == np.uint16:
        pixels = (pixels >> 8).astype(np.uint8)
    pixels = pixels.reshape(*pixels.shape[:2], channels)
    return pixels[..., [2, 1, 0, 3][:channels]] if channels > 1 else pixels


def by_us(data, channels):
    """Our pixels; None if the image is refused, by whichever decoder."""
    try:
        return decode_image(data, channels=channels)
    except ImageDecodeError:
        return None


def check_same(data, channels):
    """The pixels of OpenCV where both read the file; whether our own decoder read it.

    OpenCV refuses files without their last chunk, and alpha of grey; Pillow, which reads what is
    odd, has transparent colours of 8 bits alone.
    """
    theirs, ours = by_opencv(data, channels), by_us(data, channels)
    try:
        own = decode_png(data, channels) is not None
    except ImageDecodeError:
        own = False
    if ours is not None and theirs is not None and (own or channels != 4):
        most = 1 if channels == 1 and not own else 0  # grey of the colours that Pillow gives
        assert np.abs(ours.astype(int) - theirs).max() <= most
    return own


@pytest.mark.parametrize("interlaced", [False, True], ids=["rows", "passes"])
@pytest.mark.parametrize("transparent", [False, True], ids=["opaque", "transparent"])
@pytest.mark.parametrize(("colour", "depth"), KINDS)
def test_pixels_are_those_of_opencv(colour, depth, transparent, interlaced):
    for number, (filters, size) in enumerate(
        (filters, size) for filters in FILTERS for size in [(1, 1), (13, 17), (40, 3), (2, 30)]
    ):
        made = picture(
            colour, depth, size, seed=number, filters=filters, interlaced=interlaced,
            transparent=transparent, piece=[1 << 30, 50][number % 2],
        )  # fmt: skip
        for channels in (1, 3, 4):
            ours = check_same(made.file(), channels)
            assert ours == (channels != 4 or colour in (4, 6) or transparent)


@given(pictures(), st.sampled_from([1, 3, 4]), st.data())
def test_a_region_is_part_of_the_whole_with_and_without_vectors(made, channels, data):
    content = made.file()
    whole = decode_png(content, channels)
    assert check_same(content, channels) == (whole is not None)
    if whole is None:
        return
    assert np.array_equal(decode_png(content, channels, vectors=False), whole)
    height, width = whole.shape[:2]
    x, y = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    region = x, y, data.draw(st.integers(1, width - x)), data.draw(st.integers(1, height - y))
    wanted = whole[y : y + region[3], x : x + region[2]]
    for vectors in (True, False):
        part = decode_png(content, channels, region, vectors=vectors)
        assert np.array_equal(part, wanted), region


@pytest.mark.parametrize("interlaced", [False, True], ids=["rows", "passes"])
@pytest.mark.parametrize("colour", DEPTHS)
def test_sixteen_bits_are_those_that_are_stored(colour, interlaced):
    channels = 3 if colour & 2 else 1
    shallow = picture(colour, 8, filters=[4, 3]).file()
    pixels = decode_png(shallow, channels, deep=True)
    assert pixels.dtype == np.uint8
    assert np.array_equal(pixels, decode_png(shallow, channels))
    if colour == 3:
        return
    for seed, filters in enumerate(FILTERS):
        made = picture(
            colour, 16, (9, 23), seed=seed, interlaced=interlaced, filters=filters,
            transparent=seed % 2 == 1,
        )  # fmt: skip
        pixels = decode_png(made.file(), channels, deep=True)
        assert pixels.dtype == np.uint16
        assert np.array_equal(pixels, made.samples[..., :channels])
        part = decode_png(made.file(), channels, (3, 5, 4, 17), deep=True)
        assert np.array_equal(part, pixels[5:22, 3:7])
        for others in (1, 3, 4):
            shallow = decode_png(made.file(), others)
            deep = decode_png(made.file(), others, deep=True)
            assert (deep is None) == (shallow is None)
            assert deep is None or np.array_equal(deep >> 8, shallow)


@pytest.mark.parametrize("region", [(0, 0, 0, 1), (0, 0, 14, 1), (-1, 0, 1, 1), (0, 17, 1, 1)])
def test_regions_outside_the_image_are_refused(region):
    with pytest.raises(ValueError, match="outside"):
        decode_png(ORDINARY, region=region)


@pytest.mark.parametrize("level", [0, 1, 6, 9])
@pytest.mark.parametrize("strategy", ["DEFAULT", "FILTERED", "HUFFMAN_ONLY", "RLE", "FIXED"])
def test_files_of_opencv(level, strategy):
    flags = [cv2.IMWRITE_PNG_COMPRESSION, level]
    flags += [cv2.IMWRITE_PNG_STRATEGY, getattr(cv2, f"IMWRITE_PNG_STRATEGY_{strategy}")]
    smooth = cv2.GaussianBlur(PHOTO, (9, 9), 4)
    for pixels in (PHOTO, smooth, smooth[..., 0], np.dstack([smooth, PHOTO[..., :1]])):
        for image in (pixels, pixels.astype(np.uint16) * 251):
            content = cv2.imencode(".png", image, flags)[1].tobytes()
            assert check_same(content, 1)
            assert check_same(content, 3)


def with_chunks(*more, after=False, **options):
    items = [(kind, bytes(content)) for kind, content in more]
    place = {"after" if after else "before": tuple(items)}
    return picture(options.pop("colour", 2), 8, seed=1, **place, **options).file()


def exif(entries, order="<", start=8):
    """EXIF data of one directory; an entry is tag, type, count and value."""
    word = b"II*\0" if order == "<" else b"MM\0*"
    body = b"".join(struct.pack(f"{order}HHIHH", *entry, 0) for entry in entries)
    return word + struct.pack(f"{order}I", start) + struct.pack(f"{order}H", len(entries)) + body


UPRIGHT, TURNED = (0x112, 3, 1, 1), (0x112, 3, 1, 6)
HARMLESS = {
    "text": (b"tEXt", b"Title\0A title"),
    "time": (b"tIME", bytes(7)),
    "size": (b"pHYs", bytes(9)),
    "background": (b"bKGD", bytes(6)),
    "unknown": (b"abCd", b"what"),
    "suggested palette": (b"PLTE", bytes(30)),
    "upright": (b"eXIf", exif([UPRIGHT])),
    "upright, big-endian": (b"eXIf", exif([(0x11A, 3, 1, 9), UPRIGHT], ">")),
    "no orientation": (b"eXIf", exif([(0x11A, 3, 1, 6)])),
}
#: Chunks that other decoders may heed, complain of or refuse, and which change no pixel here.
PASSED_OVER = {
    "animated": (b"acTL", struct.pack(">II", 2, 0)),
    "animated, too short": (b"acTL", b""),
    "frame": (b"fcTL", b""),
    "turned": (b"eXIf", exif([TURNED])),
    "turned, big-endian": (b"eXIf", exif([TURNED], ">")),
    "damaged exif": (b"eXIf", exif([TURNED])[:20]),
    "exif beyond its end": (b"eXIf", exif([(0x10F, 2, 99, 500), UPRIGHT])),
    "exif as text": (b"tEXt", b"Raw profile type exif\0\n"),
    "background of a wrong size": (b"bKGD", bytes(5)),
    "palette of a wrong size": (b"PLTE", bytes(31)),
    "empty palette": (b"PLTE", b""),
    "transparent colour of a wrong size": (b"tRNS", bytes(5)),
}
#: Chunks of which nobody knows what the pixels have of them.
ODD = {
    "unknown but critical": (b"ABCD", b"what"),
    "no name": (b"a1bc", b""),
    "reserved name": (b"abcd", b""),
    "two headers": (b"IHDR", struct.pack(">IIBBBBB", 9, 9, 8, 2, 0, 0, 0)),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_chunks_change_nothing(name):
    for after in [False] if HARMLESS[name][0] in (b"PLTE", b"bKGD") else [False, True]:
        content = with_chunks(HARMLESS[name], after=after)
        assert check_same(content, 3), after


@pytest.mark.parametrize("name", PASSED_OVER)
@pytest.mark.parametrize("after", [False, True])
def test_what_pixels_do_not_need_is_passed_over(name, after):
    content = with_chunks(PASSED_OVER[name], after=after)
    assert np.array_equal(decode_png(content, upright=False), decode_png(ORDINARY))
    header = read_header(content)
    turned = name.startswith("turned")
    assert header.orientation == (6 if turned else 1)
    pixels = decode_image(content)
    assert header.size == (pixels.shape[1], pixels.shape[0])
    assert np.array_equal(np.rot90(pixels) if turned else pixels, decode_png(ORDINARY))
    damaged = bytearray(content)
    at = content.rindex(PASSED_OVER[name][0])
    damaged[at + 4 + len(PASSED_OVER[name][1])] ^= 1  # its checksum: then nothing of it counts
    assert np.array_equal(decode_image(bytes(damaged)), decode_png(ORDINARY))


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("after", [False, True])
def test_odd_files_are_left_to_pillow(name, after):
    content = with_chunks(ODD[name], after=after)
    assert decode_png(content) is None
    pixels = by_us(content, 3)
    assert pixels is None or np.array_equal(pixels, decode_png(ORDINARY))


def test_palettes_and_transparency_where_they_do_not_belong():
    grey, palette = picture(0, 8, seed=1), picture(3, 8, seed=1, transparent=True)

    def file_of(chunks):
        return SIGNATURE + b"".join(chunk(*item) for item in chunks)

    for chunks in (
        [item for item in palette.chunks() if item[0] != b"PLTE"],
        sorted(palette.chunks(), key=lambda item: item[0] == b"PLTE"),
        [*palette.chunks()[:-2], (b"IEND", b"")],
        [*palette.chunks()[:2], *palette.chunks()[1:]],
    ):
        for channels in (1, 3, 4):
            assert not check_same(file_of(chunks), channels), chunks
    early = sorted(palette.chunks(), key=lambda item: item[0] != b"tRNS" and item[0] != b"IHDR")
    assert np.array_equal(decode_png(file_of(early)), decode_png(palette.file()))
    assert decode_png(file_of(early), 4) is None  # transparency of no palette is none
    with_palette = [*grey.chunks()[:1], (b"PLTE", bytes(6)), *grey.chunks()[1:]]
    assert np.array_equal(decode_png(file_of(with_palette)), decode_png(grey.file()))


def test_pixels_beyond_the_palette_are_black():
    made = picture(3, 8, seed=4)
    made.palette = made.palette[:6]
    assert made.samples.max() > 1
    for channels in (1, 3):
        assert check_same(made.file(), channels)


@pytest.mark.parametrize(
    "chunk_of_space",
    [(b"gAMA", struct.pack(">I", 45455)), (b"sRGB", b"\0"), (b"gAMA", struct.pack(">I", 100000))],
)
def test_chunks_about_colours_change_neither_colours_nor_grey(chunk_of_space):
    content = with_chunks(chunk_of_space)
    for channels in (1, 3):
        assert np.array_equal(decode_png(content, channels), decode_png(ORDINARY, channels))
    assert check_same(with_chunks(chunk_of_space, colour=0), 1)


def test_files_for_iphones_are_named():
    content = SIGNATURE + chunk(b"CgBI", bytes(4)) + ORDINARY[8:]
    for call in (decode_image, read_header):
        with pytest.raises(ImageDecodeError, match="CgBI.*pngcrush"):
            call(content)


def with_data(data, **options):
    """The ordinary picture with other compressed data."""
    made = picture(2, 8, seed=1, **options)
    parts = [item for item in made.chunks() if item[0] != b"IDAT"]
    parts.insert(-1, (b"IDAT", data))
    return SIGNATURE + b"".join(chunk(*item) for item in parts)


def test_data_that_are_not_one_sound_stream_are_left_to_pillow():
    raw = picture(2, 8, seed=1).data()
    packed = zlib.compress(raw)
    small = zlib.compressobj(9, zlib.DEFLATED, 9)
    small_window = small.compress(bytes(9000)) + small.flush()
    for data in (
        packed + b"more",
        packed[:-4] + bytes(4),  # wrong checksum
        packed[:-4],
        packed[:-5],
        packed[: len(packed) // 2],
        b"",
        b"x",
        zlib.compress(raw + b"more"),
        zlib.compress(raw[:-1]),
        zlib.compress(b"\5" + raw[1:]),  # no such filter
        zlib.compress(raw)[2:-4],
        bytes([0x18, 0x19]) + packed[2:],
    ):
        assert not check_same(with_data(data), 3), data
    assert not check_same(with_data(small_window, size=(99, 30)), 3)


def test_data_in_thousands_of_chunks_and_empty_ones():
    parts = picture(2, 8, seed=1, piece=1).chunks()
    empty = [(b"IDAT", b"")] * 5000
    for chunks in ([*parts[:1], *empty, *parts[1:-1], *empty, parts[-1]], parts):
        content = SIGNATURE + b"".join(chunk(*item) for item in chunks)
        for channels in (1, 3):
            assert check_same(content, channels)


def test_what_follows_the_last_chunk_is_ignored():
    for rest in (b"\0", b"more" * 9, ORDINARY):
        assert check_same(ORDINARY + rest, 3)


def test_data_that_inflate_to_more_than_the_image_take_no_memory(monkeypatch):
    raw, rest = picture(2, 8, seed=1).data(), bytes(30_000_000)
    bomb = with_data(zlib.compress(raw + rest, 9))
    assert len(bomb) < 40_000
    with monkeypatch.context() as patch:
        patch.setattr(cv2, "imdecode", lambda *_: None)
        assert decode_png(bomb) is None


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the memory as Linux shows it")
def test_a_wide_image_leaves_no_memory_behind():
    """16 rows of 700,000 grey pixels become RGB in 36 MB."""
    random = np.random.default_rng(1)
    rows = zlib.compress(b"".join(b"\0" + random.bytes(100) * 875 for _ in range(16)))
    header = struct.pack(">IIBBBBB", 700_000, 16, 1, 0, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", rows), (b"IEND", b"")
    wide = SIGNATURE + b"".join(chunk(*part) for part in parts)
    renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 16, 700_000))))
    before = resident()
    assert decode_png(wide) is not None
    assert renderer.sample(record_of(wide))[0].shape == (1, 3, 16, 700_000)
    assert resident() - before < 20_000_000


def test_truncated_files_are_refused_unless_all_pixels_are_there():
    content = with_chunks(HARMLESS["text"], after=True)
    pixels, end = decode_png(content), content.index(b"IDAT") + 4
    end += int.from_bytes(content[end - 8 : end - 4], "big")
    for size in range(8, len(content)):
        if size >= end:
            assert np.array_equal(decode_png(content[:size]), pixels)
            continue
        found = by_us(content[:size], 3)  # Pillow reads what has its last pixel
        assert found is None or (size > end - 9 and np.array_equal(found, pixels))
    with pytest.raises(ImageDecodeError, match="truncated"):
        decode_image(content[:50])


def test_wrong_checksums_are_named_where_they_count():
    entries = picture(3, 8, seed=1).file()
    for whole, kind in (ORDINARY, b"IDAT"), (ORDINARY, b"IHDR"), (entries, b"PLTE"):
        content = bytearray(whole)
        at = content.rindex(kind)
        content[at + 4 + int.from_bytes(content[at - 4 : at], "big")] ^= 1
        assert by_opencv(bytes(content), 3) is None
        place = f"chunk {kind.decode()} at byte {at - 4} is wrong"
        with pytest.raises(ImageDecodeError, match=place):
            decode_image(bytes(content))
    texts, palette = with_chunks(HARMLESS["text"]), with_chunks(HARMLESS["suggested palette"])
    for content, kind in (texts, b"tEXt"), (palette, b"PLTE"), (texts, b"IEND"):
        at = content.index(kind)
        damaged = bytearray(content)
        damaged[at + 4 + int.from_bytes(content[at - 4 : at], "big")] ^= 1
        assert np.array_equal(decode_png(bytes(damaged)), decode_png(ORDINARY))


@given(st.integers(0, 1 << 30), pictures(), st.sampled_from([1, 3, 4]))
@settings(max_examples=150)
def test_changed_bytes_have_the_outcome_that_opencv_gives(seed, made, channels):
    random = np.random.default_rng(seed)
    chunks = [list(item) for item in made.chunks()]
    content = bytearray(SIGNATURE + b"".join(chunk(*item) for item in chunks))
    for _ in range(random.integers(1, 4)):
        if random.random() < 0.5:  # with right checksums
            item = chunks[random.integers(len(chunks))]
            if item[1]:
                body = bytearray(item[1])
                body[random.integers(len(body))] = random.integers(256)
                item[1] = bytes(body)
                content = bytearray(SIGNATURE + b"".join(chunk(*item) for item in chunks))
        else:
            content[random.integers(8, len(content))] = random.integers(256)
    header = struct.unpack_from(">II", content, 16)
    if header[0] * header[1] < 1 << 18:
        check_same(bytes(content), channels)


def test_few_bytes_do_not_take_much_memory():
    data = bytearray(ORDINARY)
    struct.pack_into(">II", data, 16, 8000, 8000)
    struct.pack_into(">I", data, 29, zlib.crc32(data[12:29]))
    assert by_opencv(bytes(data), 3) is None
    with pytest.raises(ImageDecodeError, match="too few for 8000 x 8000 pixels"):
        decode_png(bytes(data))
    with pytest.raises(ImageDecodeError, match="more than the limit of 63999999"):
        decode_png(bytes(data), max_pixels=8000 * 8000 - 1)


def resident():
    """Bytes of memory in use."""
    import resource

    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def record_of(content):
    return pack(IRHeader(0, 1.0, 7, 0), content)


def test_records_are_decoded_without_python(monkeypatch):
    wanted = by_opencv(ORDINARY, 3)
    with monkeypatch.context() as patch:
        patch.setattr(general, "decode_other", None)
        renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 10, 9))))
        sample = renderer.sample(record_of(ORDINARY))[0]
        turned = renderer.sample(record_of(with_chunks(PASSED_OVER["turned"])))[0]
        with pytest.raises(ImageDecodeError, match="NoneType"):  # others need it
            renderer.sample(record_of(cv2.imencode(".bmp", PHOTO)[1].tobytes()))
    top, left = (17 - 10) // 2, (13 - 9) // 2
    assert np.array_equal(sample[0].transpose(1, 2, 0), wanted[top : top + 10, left : left + 9])
    assert turned.shape == (1, 3, 10, 9)


@pytest.mark.parametrize("content", [b"", b"\x89PNG", b"no image"])
def test_what_is_no_png_is_none_of_its_business(content):
    assert decode_png(content) is None
