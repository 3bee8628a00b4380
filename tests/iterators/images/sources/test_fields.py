"""Fields of records for the image stage: numbered as the records are, wherever they lie."""

import io
import json
import tarfile
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mds_sets import shard as mds_shard
from mds_sets import write_set
from range_server import RangeServer
from tfrecords import write_tfrecord

from iterators import ImageRecordIter, Pack
from iterators.fields import Boxes, Keypoints
from iterators.images.sources.mixed_packs import Packs
from iterators.images.sources.record_source import RecordSource
from iterators.providers.image_sources import ImageArraySource
from iterators.testing import encode, noise, write_faces, write_pack
from recordio import FieldError, IRHeader, RecordWriter, pack, shard, unpack
from recordio.bytes.files import StoredFile
from recordio.bytes.remote.settings import RemoteSettings
from recordio.containers import index
from recordio.containers.samples import ContainedSamples

try:
    import lmdb
except ImportError:
    lmdb = None


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


def write_folder(path, files):
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def write_zip(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for number, (name, content) in enumerate(files.items()):
            how = zipfile.ZIP_DEFLATED if number % 2 else zipfile.ZIP_STORED
            archive.writestr(name, content, how)
    return path


#: By number, in the order of files that puts fields before and behind their images.
STEMS = ["cat/a", "cat/b.2", "dog/c"]


def write_mds(path, kinds, rows):
    """A set of one shard, whose rows are bytes by column."""
    columns = {name: (kind, None) for name, kind in kinds.items()}
    return write_set(path, mds_shard([[row[name] for name in kinds] for row in rows], columns))


def stem_files():
    files = {f"{stem}.depth.png": b"depth %d" % i for i, stem in enumerate(STEMS)}
    files |= {f"{stem}.jpg": encode(noise(), ".jpg") for stem in STEMS}
    files |= {f"{stem}.txt": b"text %d" % i for i, stem in reversed(list(enumerate(STEMS)))}
    return files | {f"{stem}.mask": b"mask %d" % i for i, stem in enumerate(STEMS)}


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_files_of_one_stem_are_fields(tmp_path, kind):
    if kind == "zip":
        path = write_zip(tmp_path / "a.zip", stem_files())
    else:
        path = write_folder(tmp_path / "a", stem_files())
    for _ in range(2):  # found, and read from the index
        source = RecordSource.open(path)
        assert len(source) == 3 and source.files[0].field_names == ["depth", "mask", "txt"]
        names = source.files[0].samples.all_names()
        assert sorted(names) == [f"{stem}.jpg" for stem in STEMS]
        order = [STEMS.index(name[: -len(".jpg")]) for name in names]
        for field, text in (("depth", b"depth"), ("mask", b"mask"), ("txt", b"text")):
            found = contents(source.field(field), 3)
            assert found == [text + b" %d" % i for i in order]
            pack = source.files[0].field(field)
            assert [bytes(unpack(pack.record(i))[1]) for i in range(3)] == found
    with pytest.raises(
        FieldError, match="no sample has a field shape; its fields: depth, mask, txt"
    ):
        RecordSource.open(path).field("shape")


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_an_image_without_the_field_is_named(tmp_path, kind):
    files = stem_files()
    del files["cat/b.2.depth.png"]
    write = write_zip if kind == "zip" else write_folder
    path = write(tmp_path / f"a.{kind}", files)
    with pytest.raises(FieldError, match=r"its field depth: there is no \w+ cat/b\.2\.depth"):
        RecordSource.open(path).field("depth")
    source = RecordSource.open(path, on_error="skip")
    field = source.field("depth")
    (gone,) = [i for i, n in enumerate(source.files[0].samples.all_names()) if "b.2" in n]
    for number in range(3):
        if number != gone:
            assert field.read(number).startswith(b"depth")
            continue
        with pytest.raises(FieldError, match="its field depth"):
            field.read(number)


def test_images_with_dots_in_their_names_stay_images(tmp_path):
    """Only what has the stem of another image is a field, and numbers are no names of fields."""
    names = ["1.left.png", "1.right.png", "v1.2.jpg", "v1.jpg", "x.mask.png"]
    path = write_folder(tmp_path / "a" / "c", dict.fromkeys(names, IMAGE)).parent
    source = RecordSource.open(path)
    assert source.files[0].samples.all_names() == [f"c/{name}" for name in names]
    assert source.files[0].field_names == []


@pytest.mark.parametrize("first", ["depth.png", "jpg"])
def test_the_image_of_a_tar_is_the_one_with_a_single_ending(tmp_path, first):
    image = encode(noise(), ".jpg")
    files = {"depth.png": b"depth", "jpg": image}
    files = {first: files[first], **files}
    for labels in ({"cls": b"3"}, {}, {"json": b'{"label": 3}'}):
        path = write_tar(tmp_path / f"{len(labels)}{first}.tar", {**files, **labels})
        source = RecordSource.open(path)
        assert contents(source.bytes_source(), 1) == [image]
        assert "depth" in source.files[0].field_names
        assert read(path, "depth") == [b"depth"]


def test_an_index_from_before_that_rule_is_made_again(tmp_path):
    path = write_tar(tmp_path / "a.tar", {"depth.png": IMAGE, "jpg": encode(noise(), ".jpg")})
    file = StoredFile(str(path))
    old = ContainedSamples.of([512], [len(IMAGE)], [[7]], ["000000.depth.png"])
    index.write_beside_or_cached(
        [f"{path}.index"], index._pieces(old, ["a tar file", *file.version()])
    )
    assert RecordSource.open(path).files[0].samples.labels.tolist() == [0]


ROWS = [[[1, 0.25, 0.5, 0.75, 1]], [], [[0, 0, 0, 1, 1], [2, 0.5, 0, 1, 0.5]]]
POINTS = [[[0.5, 0.25, 2, 0, 0, 0]], [[0, 0, 1, 1, 1, 2], [0.5, 0.5, 2, 0, 0, 0]], []]


def containers(folder):
    """The same boxes and points, in every container that can hold them."""
    fields = [
        {"boxes": json.dumps(rows).encode(), "points": json.dumps(points).encode()}
        for rows, points in zip(ROWS, POINTS, strict=True)
    ]
    images = [encode(noise(24, 32, i), ".png") for i in range(3)]
    samples = [
        {"png": image, "cls": b"0", **{f"{name}.json": v for name, v in own.items()}}
        for image, own in zip(images, fields, strict=True)
    ]
    yield write_tar(folder / "a.tar", *samples)
    files = {
        f"c/{i}.{ending}": v for i, one in enumerate(samples) for ending, v in one.items()
        if ending != "cls"
    }  # fmt: skip
    yield write_zip(folder / "a.zip", files)
    yield write_folder(folder / "a", files)
    examples = [
        {"image": [image], "label": [0], **{name: [v] for name, v in own.items()}}
        for image, own in zip(images, fields, strict=True)
    ]
    yield write_tfrecord(folder / "a.tfrecord", *examples)
    rows = [{"image": i, **own} for i, own in zip(images, fields, strict=True)]
    yield write_mds(folder / "mds", {"image": "png", "boxes": "json", "points": "json"}, rows)
    if lmdb is None:
        return
    path = folder / "lmdb"
    with lmdb.open(str(path)) as database, database.begin(write=True) as transaction:
        for i, (image, own) in enumerate(zip(images, fields, strict=True), 1):
            for name, content in {"image": image, **own}.items():
                transaction.put(b"%s-%09d" % (name.encode(), i), content)
    yield path


def test_boxes_and_points_are_rows_of_json_everywhere(tmp_path):
    """What a converted pack delivers, and what every container does."""
    images = [encode(noise(24, 32, i), ".png") for i in range(3)]
    write_pack(tmp_path / "p.rec", images, keys=range(3))
    for name, rows in (("boxes", ROWS), ("points", POINTS)):
        with RecordWriter(tmp_path / f"p.{name}.rec", tmp_path / f"p.{name}.idx") as writer:
            for key, own in enumerate(rows):
                labels = [2, len(own[0]) if own else 5, *(v for row in own for v in row)]
                writer.write(pack(IRHeader(0, labels, key, 0), b""), key)
    settings = {
        "data_shape": (3, 16, 16), "rand_crop": True, "rand_mirror": True,
        "seed": 3, "shuffle": True, "fields": {"boxes": Boxes(), "points": Keypoints()},
    }  # fmt: skip

    def delivered(path):
        with ImageRecordIter(path_imgrec=str(path), batch_size=3, **settings) as provider:
            for _ in range(3):
                for batch in provider:
                    yield [batch[name] for name in ("data", "boxes", "points")]

    def resumed(path):
        """The same, each batch by a provider of its own that goes on where the last one was."""
        state = None
        for _ in range(5):  # on into the second epoch
            with ImageRecordIter(path_imgrec=str(path), **settings, batch_size=1) as provider:
                if state is not None:
                    provider.load_state_dict(state)
                batch = provider.next()
                state = provider.state_dict()
            yield [batch[name] for name in ("data", "boxes", "points")]

    expected = list(delivered(tmp_path / "p.rec"))
    resumed_pack = list(resumed(tmp_path / "p.rec"))
    with ImageRecordIter(path_imgrec=str(tmp_path / "p.rec"), **settings, batch_size=1) as whole:
        for found, wanted in zip(resumed_pack, [b for _ in range(2) for b in whole], strict=False):
            for one, name in zip(found, ("data", "boxes", "points"), strict=True):
                np.testing.assert_array_equal(one, wanted[name])
    count = 0
    for path in containers(tmp_path):
        count += 1
        for found, wanted in zip(delivered(path), expected, strict=True):
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=str(path))
        for found, wanted in zip(resumed(path), resumed_pack, strict=True):
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=str(path))
        pack_of = RecordSource.open(path).files[0]
        assert pack_of.field_names == ["boxes", "points"], path
        assert bytes(unpack(pack_of.field("boxes").record(1))[1]) == b"[]", path
    assert count == 6 - (lmdb is None)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (b"[[1, 0, 0, 1, 1], [1, 0, 0]]", "different numbers of values"),
        (b"[[1, 0, 0, 1, 1e300]]", "too large"),
        (b"[[1, 0, 0, 1, 1%s]]" % (b"0" * 400), "no exact 32-bit float"),
    ],
)
def test_rows_that_labels_cannot_be_are_an_error(tmp_path, rows, reason):
    sound = {"png": IMAGE, "cls": b"1", "boxes.json": b"[]"}
    path = write_tar(tmp_path / "a.tar", sound, {**sound, "boxes.json": rows})
    with pytest.raises(FieldError, match=f"record 1: its field boxes: .*{reason}"):
        RecordSource.open(path).field("boxes")


def test_what_a_container_has_no_field_of_is_refused(tmp_path):
    path = write_mds(
        tmp_path / "mds", {"image": "png", "x": "int"}, [{"image": IMAGE, "x": bytes(8)}]
    )
    with pytest.raises(FieldError, match=r"no column x of jpeg, .*its columns are image \(png\)"):
        RecordSource.open(path).field("x")
    path = write_tfrecord(tmp_path / "a.tfrecord", {"image": [IMAGE], "x": [1.5, 2.5]})
    with pytest.raises(FieldError, match="no sample has a field x; its fields: none"):
        RecordSource.open(path).field("x")
    if lmdb is None:
        return
    with lmdb.open(str(tmp_path / "l")) as database, database.begin(write=True) as transaction:
        transaction.put(b"cat/1.png", IMAGE)
    with pytest.raises(FieldError, match="its keys are not such as image-000000001"):
        RecordSource.open(tmp_path / "l").field("mask")


def test_features_with_slashes_are_fields_with_underscores(tmp_path):
    rows = [{"image/encoded": [IMAGE], "image/mask": [b"m%d" % i]} for i in range(2)]
    path = write_tfrecord(tmp_path / "a.tfrecord", *rows)
    assert RecordSource.open(path).files[0].field_names == ["image_mask"]
    assert read(path, "image_mask") == [b"m0", b"m1"]


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
