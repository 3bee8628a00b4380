"""Sizes of images beside a pack: upright, read once, bound to the pack, never believed if wrong."""

import io
import os
import shutil
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_tars import tar
from PIL import Image
from range_server import RangeServer

from iterators.testing import encode, encode_jpeg, noise, picture, write_pack
from recordio import IRHeader, RecordReader, RecordWriter, filter, ordered, pack, stats
from recordio.bytes.crc32c import crc32c
from recordio.bytes.remote.settings import RemoteSettings
from recordio.formats.image_header import read_header
from recordio.formats.jpeg_markers import jpeg_sizes
from recordio.packs import sizes as module
from recordio.packs.open_pack import open_listed, open_pack
from recordio.packs.scanned_container import scan_pack

SHAPES = [(20, 30), (41, 7), (8, 8), (64, 100), (33, 90)]


@pytest.fixture(autouse=True)
def no_older_sizes(tmp_path, monkeypatch):
    monkeypatch.setenv("RECORDIO_INDEX_CACHE", str(tmp_path / "indexes"))


@pytest.fixture
def measured(monkeypatch):
    """Count how often sizes were read from records."""
    count = []
    before = module.measured_sizes

    def counted(*arguments):
        count.append(1)
        return before(*arguments)

    monkeypatch.setattr(module, "measured_sizes", counted)
    return count


def turned(kind, orientation, junk=0):
    """An image of 30 x 20 stored pixels with an orientation, and so much more of EXIF data."""
    exif, file = Image.Exif(), io.BytesIO()
    exif[0x0112] = orientation
    exif[0x9286] = bytes(junk)
    Image.fromarray(picture(20, 30)).save(file, kind, exif=exif)
    return file.getvalue()


def write(path, contents, index=True):
    return write_pack(path, contents, lambda i: [1.0, 2.0, 3.0] if i % 2 else 4.0, index=index)


def jpegs(shapes=SHAPES):
    return [encode_jpeg(noise(*shape)) for shape in shapes]


def wanted(shapes=SHAPES):
    return [[width, height] for height, width in shapes]


def test_all_orientations_and_formats(tmp_path):
    contents, expected = [], []
    for kind in ("JPEG", "PNG", "WEBP"):
        for orientation in range(1, 9):
            contents.append(turned(kind, orientation))
            expected.append([20, 30] if orientation > 4 else [30, 20])
    contents += [turned("JPEG", 6, 20000), encode(noise(5, 9), ".ppm"), encode(noise(5, 9), ".bmp")]
    expected += [[20, 30], [9, 5], [9, 5]]
    pack_ = open_pack(write(tmp_path / "a.rec", contents))
    assert pack_.image_sizes.tolist() == expected
    assert pack_.image_sizes.dtype == np.uint32


def test_what_is_no_image_has_no_size(tmp_path):
    contents = [
        b"",
        b"text",
        jpegs()[0],
        encode_jpeg(noise(9, 9))[:100],
        b"\xff\xd8\xff",
        bytes(5000),
    ]
    found = open_pack(write(tmp_path / "a.rec", contents)).image_sizes
    assert found.tolist() == [[0, 0], [0, 0], [30, 20], [0, 0], [0, 0], [0, 0]]


def test_records_in_several_parts_and_without_header(tmp_path):
    content = encode_jpeg(noise(200, 300))
    at = 4 * (len(content) // 8)
    split = content[:at] + b"\x0a\x23\xd7\xce" * 2 + content[at:]
    with RecordWriter(tmp_path / "a.rec") as writer:
        writer.write(pack(IRHeader(0, 1, 0, 0), split))
        writer.write(content)
    assert open_pack(tmp_path / "a.rec").image_sizes.tolist() == [[300, 200]] * 2


def test_they_are_read_once_and_kept_beside_the_pack(tmp_path, measured):
    path = write(tmp_path / "a.rec", jpegs())
    for _ in range(3):
        assert open_pack(path).image_sizes.tolist() == wanted()
    assert len(measured) == 1
    data = (tmp_path / "a.sizes").read_bytes()
    magic, count, size, _ = struct.unpack_from("<16sQQI", data)
    assert (magic, count, size) == (b"recordio sizes 1", 5, path.stat().st_size)
    assert np.frombuffer(data[36:-4], "<u4").reshape(-1, 2).tolist() == wanted()
    assert struct.unpack("<I", data[-4:]) == (crc32c(data[:-4]),)


@pytest.mark.parametrize("index", [True, False])
def test_another_pack_of_the_same_size_is_read_again(tmp_path, measured, index):
    shapes = [(20, 30), (30, 20)] * 3
    path = write(tmp_path / "a.rec", [encode(noise(*s), ".ppm") for s in shapes], index)
    assert open_pack(path).image_sizes.tolist() == wanted(shapes)
    before = path.stat().st_size
    write(path, [encode(noise(*s), ".ppm") for s in shapes[::-1]], index)
    assert path.stat().st_size == before
    assert open_pack(path).image_sizes.tolist() == wanted(shapes[::-1])
    assert len(measured) == 2


def test_a_change_in_the_middle_shows_in_the_time(tmp_path, measured):
    contents = [encode(noise(60, 40, seed), ".ppm") for seed in range(9)]
    path = write(tmp_path / "a.rec", contents)
    assert open_pack(path).image_sizes[4].tolist() == [40, 60]
    data = path.read_bytes()
    at = data.index(contents[4][:200])
    path.write_bytes(data[:at] + data[at:].replace(b"40 60", b"60 40", 1))
    os.utime(tmp_path / "a.sizes", ns=(0, path.stat().st_mtime_ns - 10**9))
    assert open_pack(path).image_sizes[4].tolist() == [60, 40] and len(measured) == 2


@settings(max_examples=60)
@given(at=st.integers(0, 10**6), change=st.sampled_from(["flip", "cut", "more"]))
def test_damaged_files_are_made_again(tmp_path_factory, at, change):
    folder = tmp_path_factory.mktemp("sizes")
    path = write(folder / "a.rec", jpegs())
    assert open_pack(path).image_sizes.tolist() == wanted()
    kept = folder / "a.sizes"
    data = bytearray(kept.read_bytes())
    whole = bytes(data)
    if change == "flip":
        data[at % len(data)] ^= 1 << at % 8
    elif change == "cut":
        del data[at % len(data) :]
    else:
        data += bytes(1 + at % 50)
    kept.write_bytes(data)
    assert open_pack(path).image_sizes.tolist() == wanted()
    assert kept.read_bytes() == whole


def test_where_nobody_may_write_they_lie_in_the_cache_folder(tmp_path, measured):
    path = write(tmp_path / "a.rec", jpegs())
    (tmp_path / "a.sizes").mkdir()  # so that no file can appear there
    for _ in range(2):
        assert open_pack(path).image_sizes.tolist() == wanted()
    assert len(measured) == 1
    assert [p.suffix for p in (tmp_path / "indexes").iterdir()] == [".sizes"]


def test_without_any_place_they_are_read_each_time(tmp_path, measured, monkeypatch):
    path = write(tmp_path / "a.rec", jpegs())
    (tmp_path / "a.sizes").mkdir()
    (tmp_path / "indexes").write_bytes(b"in the way")
    for _ in range(2):
        assert open_pack(path).image_sizes.tolist() == wanted()
    assert len(measured) == 2


def test_more_records_than_a_thread_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 7)
    shapes = [(3 + i % 11, 5 + i % 17) for i in range(200)]
    path = write(tmp_path / "a.rec", jpegs(shapes))
    for threads in (1, 2, 5):
        monkeypatch.setattr(ordered, "default_threads", lambda count=threads: count)
        shutil.rmtree(tmp_path / "indexes", ignore_errors=True)
        (tmp_path / "a.sizes").unlink(missing_ok=True)
        assert open_pack(path).image_sizes.tolist() == wanted(shapes)


def test_without_pread(tmp_path, monkeypatch):
    monkeypatch.delattr(module.os, "pread")
    assert open_pack(write(tmp_path / "a.rec", jpegs())).image_sizes.tolist() == wanted()


def test_damage_in_the_file(tmp_path):
    path = write(tmp_path / "a.rec", jpegs(), index=False)
    offsets = RecordReader(path).offsets
    data = bytearray(path.read_bytes())
    data[offsets[2] : offsets[2] + 4] = b"gone"
    path.write_bytes(data)
    with open_pack(path, skip_errors=True) as opened:
        found = opened.image_sizes
        rows = np.searchsorted(opened.offsets, np.delete(offsets, 2))
        assert found[rows].tolist() == [size for i, size in enumerate(wanted()) if i != 2]
        assert np.delete(found, rows, 0).tolist() == [[0, 0]]
    with scan_pack(path, skip_errors=True) as scanned:
        assert scanned.image_sizes.tolist() == [s for i, s in enumerate(wanted()) if i != 2]


def test_faces(tmp_path):
    from iterators.testing import write_faces

    path = write_faces(tmp_path / "a", [2, 3])
    opened = open_pack(path)
    assert len(opened.image_sizes) == len(opened) == 5
    assert opened.image_sizes.min() > 0
    whole = open_pack(path, everything=True)
    assert (whole.image_sizes.min(1) > 0).sum() == 5 < len(whole.image_sizes)


def test_parts_of_a_scanned_pack(tmp_path):
    with scan_pack(write(tmp_path / "a.rec", jpegs())) as scanned:
        assert scanned.part(np.array([3, 1])).image_sizes.tolist() == [[100, 64], [7, 41]]


# ---- containers


def named(contents):
    return {f"{number:03}.jpg": content for number, content in enumerate(contents)}


@pytest.mark.parametrize("kind", ["tar", "zip", "deflated", "folder"])
def test_containers(tmp_path, measured, kind):
    contents = [*jpegs(), turned("JPEG", 6, 20000)]
    expected = [*wanted(), [20, 30]]
    path = tmp_path / ("set" if kind == "folder" else "set.tar" if kind == "tar" else "set.zip")
    if kind == "tar":
        path.write_bytes(tar(*named(contents).items()))
    elif kind == "folder":
        (path / "cat").mkdir(parents=True)
        for name, data in named(contents).items():
            (path / "cat" / name).write_bytes(data)
    else:
        way = zipfile.ZIP_DEFLATED if kind == "deflated" else zipfile.ZIP_STORED
        with zipfile.ZipFile(path, "w", way) as archive:
            for name, data in named(contents).items():
                archive.writestr(f"cat/{name}", data)
    for _ in range(2):
        assert open_pack(path).image_sizes.tolist() == expected
        assert scan_pack(path).image_sizes.tolist() == expected
    assert len(measured) == 1 and (tmp_path / f"{path.name}.sizes").is_file()
    if kind == "folder":
        (path / "cat" / "002.jpg").write_bytes(encode_jpeg(noise(50, 60)))
        assert open_pack(path).image_sizes[2].tolist() == [60, 50]


def test_several_files_of_a_container(tmp_path):
    for number in range(3):
        data = [(f"{number}{name}", content) for name, content in named(jpegs()).items()]
        (tmp_path / f"set-{number}.tar").write_bytes(tar(*data))
    assert open_pack(f"{tmp_path}/set-{{0..2}}.tar").image_sizes.tolist() == wanted() * 3


# ---- servers


@pytest.fixture
def server():
    server = RangeServer()
    yield server
    server.stop()


@pytest.mark.parametrize("kind", ["rec", "tar"])
def test_heads_alone_are_fetched_of_large_records(tmp_path, server, kind, measured):
    pytest.importorskip("obstore")
    contents = [encode_jpeg(noise(300, 400 + i, i)) for i in range(12)]
    expected = [[400 + i, 300] for i in range(12)]
    if kind == "rec":
        write(tmp_path / "a.rec", contents)
        server.objects = {f"a.{s}": (tmp_path / f"a.{s}").read_bytes() for s in ("rec", "idx")}
    else:
        server.objects["a.tar"] = tar(*named(contents).items())
    remote = RemoteSettings(remote_cache=tmp_path / "mirrors", remote_timeout=20)

    def read():
        (opened,) = open_listed(f"{server.url}/a.{kind}", settings=remote)
        assert len(opened) == 12
        before = len(server.requests)
        assert opened.image_sizes.tolist() == expected
        return sum(end - begin for name, begin, end in server.requests[before:] if kind in name)

    size = len(server.objects[f"a.{kind}"])
    assert size > 12 * (1 << 16)
    assert read() <= 12 * module.HEAD_BYTES + 2 * module.ENDS + (4 << 18)
    assert read() == 0 and len(measured) == 1


def test_sizes_that_lie_beside_a_pack_on_a_server(tmp_path, server, measured):
    pytest.importorskip("obstore")
    path = write(tmp_path / "a.rec", jpegs())
    assert open_pack(path).image_sizes.tolist() == wanted()
    names = ("rec", "idx", "sizes")
    server.objects = {f"a.{s}": (tmp_path / f"a.{s}").read_bytes() for s in names}
    remote = RemoteSettings(remote_cache=tmp_path / "mirrors", remote_timeout=20)
    (opened,) = open_listed(f"{server.url}/a.rec", settings=remote)
    assert opened.image_sizes.tolist() == wanted() and len(measured) == 1


# ---- what uses them


def test_filter(tmp_path, measured):
    contents = [*jpegs(), b"text", turned("JPEG", 6)]
    path = write(tmp_path / "a.rec", contents)
    wanted = {"width > 25": 3, "height == 30 and width == 20": 1, "not width > 25": 4}
    for number, (where, records) in enumerate(wanted.items()):
        assert filter(path, tmp_path / f"b{number}", where).records == records
    assert len(measured) == 1
    assert filter(path, tmp_path / "e", "id == 6 and width == 20").records == 1


def test_few_records_are_looked_at_alone(tmp_path, measured):
    path = write(tmp_path / "a.rec", jpegs(SHAPES * 4))
    assert filter(path, tmp_path / "b", "id == 3 and width == 100").records == 1
    assert not measured


def test_stats(tmp_path):
    found = stats(write(tmp_path / "a.rec", [*jpegs(), b"text"]))
    assert found.image_sizes == {
        "width": {"min": 7, "median": 30, "max": 100},
        "height": {"min": 8, "median": 33, "max": 64},
    }
    assert "images      width 7 to 100, median 30; height 8 to 64, median 33" in str(found)
    assert stats(write(tmp_path / "b.rec", [b"text"])).image_sizes == {}
    assert not (tmp_path / "b.sizes").exists()


# ---- the first bytes of JPEG images


def read_heads(data, size):
    heads = np.zeros((1, size), np.uint8)
    part = np.frombuffer(data[:size], np.uint8)
    heads[0, : len(part)] = part
    found = np.zeros((1, 2), np.uint32)
    known = jpeg_sizes(heads, np.zeros(1, np.int64), np.array([len(data)]), found)
    return found[0].tolist() if known[0] else None


@pytest.mark.parametrize(
    "data", [turned("JPEG", 8, 700), encode_jpeg(noise(33, 21)), b"\xff\xd8\xff"]
)
def test_a_size_from_few_bytes_is_that_of_all(data):
    whole = read_heads(data, len(data))
    assert whole == (list(read_header(data).size) if len(data) > 3 else None)
    found = [read_heads(data, size) for size in range(len(data))]
    assert all(one in (None, whole) for one in found)
    assert len(data) == 3 or sum(one is not None for one in found) > 100


@given(st.binary(max_size=200), st.integers(0, 220), st.integers(-5, 260))
def test_any_bytes(data, size, end):
    data = b"\xff\xd8\xff" + data
    heads = np.zeros((1, size), np.uint8)
    heads[0, : len(data[:size])] = np.frombuffer(data[:size], np.uint8)
    found = np.zeros((1, 2), np.uint32)
    jpeg_sizes(heads, np.zeros(1, np.int64), np.array([end]), found)
    jpeg_sizes(heads, np.array([size + 3]), np.array([end]), found)
    jpeg_sizes(heads, np.array([-1]), np.array([end]), found)


def test_arrays_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match="two numbers"):
        one = np.zeros(1, np.int64)
        jpeg_sizes(np.zeros((2, 9), np.uint8), one, one, np.zeros((2, 2), np.uint32))
