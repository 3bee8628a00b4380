"""Fields of records for the image stage: numbered as the records are, wherever they lie."""

import io
import tarfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from range_server import RangeServer

from iterators import Pack
from iterators.images.sources.mixed_packs import Packs
from iterators.images.sources.record_source import RecordSource
from iterators.providers.image_sources import ImageArraySource
from iterators.testing import encode, noise, write_faces, write_pack
from recordio import FieldError, IRHeader, RecordWriter, pack, shard
from recordio.bytes.remote.settings import RemoteSettings


def write_field(path, keys, content=lambda key: b"%d" % key, index=True):
    """A pack whose contents say which key they have, in the order given."""
    with RecordWriter(path, index=path.with_suffix(".idx") if index else None) as writer:
        for key in keys:
            writer.write(pack(IRHeader(0, 0, key, 0), content(key)), key=key if index else None)
    return path


def contents(source, count):
    assert source.count == count
    return [source.image(number)[1] for number in range(count)]


def read(path, name, **ways):
    source = RecordSource.open(path, **ways)
    return contents(source.field(name), len(source))


keys = st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys, keys, st.randoms())
def test_a_field_is_aligned_by_key(tmp_path, own, others, random):
    """Whatever the order in both files is, and whatever else the field has."""
    write_pack(tmp_path / "a.rec", [b"image"] * len(own), keys=own)
    of_field = [*own, *(key for key in others if key not in own)]
    random.shuffle(of_field)
    write_field(tmp_path / "a.mask.rec", of_field)
    assert read(tmp_path / "a.rec", "mask") == [b"%d" % key for key in own]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys, st.data())
def test_a_missing_record_is_named_at_once_or_skipped(tmp_path, own, data):
    gone = data.draw(st.sampled_from(own))
    path = write_pack(tmp_path / "a.rec", [b"image"] * len(own), keys=own)
    write_field(tmp_path / "a.mask.rec", [key for key in own if key != gone])
    row = own.index(gone)
    reason = (
        rf"a\.rec, .*record {row}: its field mask is missing: .*a\.mask\.rec has .*key {gone}\b"
    )
    with pytest.raises(FieldError, match=reason):
        RecordSource.open(path).field("mask")
    source = RecordSource.open(path, on_error="skip").field("mask")
    for number, key in enumerate(own):
        if key == gone:
            with pytest.raises(FieldError, match=reason):
                source.read(number)
        else:
            assert source.image(number)[1] == b"%d" % key
    source.announce(np.arange(len(own)))  # what is absent too


def test_a_pack_without_the_field_names_those_that_it_has(tmp_path):
    path = write_pack(tmp_path / "a.rec", 3)
    source = RecordSource.open(path)
    with pytest.raises(FieldError, match=r"no field mask: there is no .*a\.mask\.rec.*: none"):
        source.field("mask")
    write_field(tmp_path / "a.depth.rec", range(3))
    with pytest.raises(FieldError, match=r"its fields: depth"):
        RecordSource.open(path).field("mask")
    for name in ("", "a.b", "../b", "1", "ä"):
        with pytest.raises(ValueError, match="names no field"):
            source.field(name)


def test_without_indexes_keys_are_numbers(tmp_path):
    path = write_pack(tmp_path / "a.rec", 3, index=False)
    write_field(tmp_path / "a.mask.rec", range(3), index=False)
    assert read(path, "mask") == [b"0", b"1", b"2"]


def test_packs_have_fields_of_their_own(tmp_path):
    write_pack(tmp_path / "a.rec", 2, keys=[5, 3])
    write_pack(tmp_path / "b.rec", 3, keys=[1, 2, 3])
    write_field(tmp_path / "a.mask.rec", [3, 5], lambda key: b"a%d" % key)
    write_field(tmp_path / "b.mask.rec", [3, 2, 1], lambda key: b"b%d" % key)
    packs = Packs([Pack(tmp_path / "a.rec"), Pack(tmp_path / "b.rec")])
    assert contents(packs.field("mask"), 5) == [b"a5", b"a3", b"b1", b"b2", b"b3"]


def test_fields_in_a_folder_are_no_packs_of_their_own(tmp_path):
    write_pack(tmp_path / "a.rec", 2)
    write_pack(tmp_path / "b.rec", 1)
    write_field(tmp_path / "a.mask.rec", range(2))
    write_field(tmp_path / "b.mask.rec", range(1))
    for path in (tmp_path, f"{tmp_path}/*.rec"):
        assert read(path, "mask") == [b"0", b"1", b"0"]
    named = [str(tmp_path / "a.rec"), str(tmp_path / "a.mask.rec")]
    assert len(RecordSource.open(named)) == 4


def test_identities_have_no_fields(tmp_path):
    path = write_faces(tmp_path / "a.rec", [2, 1])
    write_field(tmp_path / "a.mask.rec", [1, 2, 3])
    assert read(path, "mask") == [b"1", b"2", b"3"]


def test_shards_of_a_manifest_have_their_fields_beside_them(tmp_path):
    write_pack(tmp_path / "a.rec", 5)
    shard(tmp_path / "a", tmp_path, 2)
    write_field(tmp_path / "a-000000.mask.rec", range(3))
    write_field(tmp_path / "a-000001.mask.rec", [1, 0])
    assert read(tmp_path / "a.shards.json", "mask") == [b"0", b"1", b"2", b"0", b"1"]


def test_images_that_are_no_pack_have_no_fields():
    source = ImageArraySource("images", np.zeros((2, 4, 4), np.uint8), np.zeros(2))
    with pytest.raises(FieldError, match="no field mask"):
        source.field("mask")


# -- containers -----------------------------------------------------------------------------------


def write_tar(path, *samples):
    """A tar file of samples: files of each by their endings."""
    with tarfile.open(path, "w") as tar:
        for number, files in enumerate(samples):
            for ending, content in files.items():
                info = tarfile.TarInfo(f"{number:06d}.{ending}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


IMAGE = encode(noise(), ".png")


def sample(number, **more):
    named = {name.replace("_", "."): content for name, content in more.items()}
    return {"png": IMAGE, "cls": b"1", "caption.txt": b"text %d" % number, **named}


def test_a_tar_has_files_of_one_stem(tmp_path):
    path = write_tar(
        tmp_path / "a.tar", *(sample(i, mask_png=b"mask %d" % i, json=b"{}") for i in range(3))
    )
    for _ in range(2):  # found, and read from the index
        assert read(path, "mask") == [b"mask 0", b"mask 1", b"mask 2"]
        assert read(path, "caption") == [b"text 0", b"text 1", b"text 2"]
        assert read(path, "json") == [b"{}"] * 3
    assert (tmp_path / "a.tar.mask.index").exists()
    assert RecordSource.open(path).files[0].field_names == ["caption", "json", "mask"]


def test_several_tars_are_numbered_through(tmp_path):
    for name in "ab":
        write_tar(tmp_path / f"{name}.tar", *(sample(i, mask_png=name.encode()) for i in range(2)))
    source = RecordSource.open(f"{tmp_path}/{{a,b}}.tar")
    assert contents(source.field("mask"), 4) == [b"a", b"a", b"b", b"b"]
    assert [source.field("mask").image(i)[0].id for i in range(4)] == [0, 1, 2, 3]


def test_a_sample_of_a_tar_without_the_field_is_named(tmp_path):
    path = write_tar(tmp_path / "a.tar", sample(0, mask_png=b"mask"), sample(1))
    with pytest.raises(FieldError, match=r"a\.tar.*record 1: its field mask: .*no \.mask file"):
        RecordSource.open(path).field("mask")
    source = RecordSource.open(path, on_error="skip").field("mask")
    assert source.read(0) == b"mask"
    with pytest.raises(FieldError, match="no .mask file"):
        source.read(1)


def test_a_field_of_parquet_is_a_column(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    masks = [{"bytes": b"m%d" % i, "path": ""} for i in range(3)]
    table = pa.table(
        {"image": [IMAGE] * 3, "label": [1, 2, 3], "mask": masks, "caption": ["a", "ä", "c"]}
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    path = tmp_path / "a.parquet"
    assert read(path, "mask") == [b"m0", b"m1", b"m2"]
    assert read(path, "caption") == [b"a", "ä".encode(), b"c"]
    assert RecordSource.open(path).files[0].field_names == ["mask", "caption"][::-1]
    with pytest.raises(FieldError, match="no column label of bytes or text"):
        RecordSource.open(path).field("label")


def test_a_folder_has_no_fields(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.png").write_bytes(IMAGE)
    with pytest.raises(FieldError, match="no field mask; its fields: none"):
        RecordSource.open(tmp_path).field("mask")


# -- servers --------------------------------------------------------------------------------------


@pytest.fixture
def server():
    server = RangeServer()
    yield server
    server.stop()


def test_fields_on_a_server_are_pinned_with_the_records(tmp_path, server):
    pytest.importorskip("obstore")
    big = 1 << 17
    write_pack(tmp_path / "a.rec", [bytes(big)] * 4, keys=[4, 3, 2, 1])
    write_field(tmp_path / "a.mask.rec", [1, 2, 3, 4], lambda key: bytes([key]) * big)
    tar = write_tar(tmp_path / "b.tar", sample(0, mask_png=b"mask"))
    for file in (*tmp_path.glob("a.*"), tar):
        server.objects[file.name] = file.read_bytes()
    remote = RemoteSettings.of("", {"remote_cache": str(tmp_path / "mirrors")})
    source = RecordSource.open(f"{server.url}/a.rec", remote=remote)
    field = source.field("mask")
    assert source.is_remote and source.fetched.size > 8 * big
    with source.pin(np.array([0, 2])):
        assert [field.image(i)[1][:1] for i in (0, 2)] == [b"\4", b"\2"]
    assert [field.image(i)[1][:1] for i in range(4)] == [b"\4", b"\3", b"\2", b"\1"]
    with pytest.raises(FieldError, match="no field depth"):
        source.field("depth")
    assert contents(RecordSource.open(f"{server.url}/b.tar", remote=remote).field("mask"), 1) == [
        b"mask"
    ]
