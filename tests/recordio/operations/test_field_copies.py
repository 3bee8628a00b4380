"""Fields of packs: whatever is made of packs has the fields of its records, under their keys."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import recordio
from iterators.testing import encode, write_faces, write_pack, write_records
from recordio import FieldError, IRHeader, LabelError, RecordWriter, boxes_of, pack, unpack
from recordio.packs.check import check_pack
from recordio.packs.fields_meta import FieldMeta, format_fields
from recordio.packs.manifest import ShardManifest
from recordio.packs.open_pack import open_pack


def write_set(path, keys, labels=None, name="text", order=None):
    """A pack whose field says which image a record belongs to."""
    contents = [b"image of %d" % key for key in keys]
    write_pack(path, contents, labels or [key % 3 for key in keys], keys=keys, ids=keys)
    field = path.with_suffix(f".{name}.rec")
    with RecordWriter(field, field.with_suffix(".idx")) as writer:
        for key in order or keys[::-1]:
            content = b"" if name == "boxes" else b"image of %d" % key
            label = [2, 5, key, 0, 0, 1, 1] if name == "boxes" else 0
            writer.write(pack(IRHeader(0, label, key, 0), content), key)
    return path


def check_set(path, name="text"):
    """Compare every record with that of its field; returns what the images say."""
    with open_pack(path) as main:
        field = main.field(name)
        assert not len(field.missing) and not len(field.foreign)
        found = []
        for row in range(len(main)):
            (header, image), (about, text) = unpack(main.record(row)), unpack(field.record(row))
            assert about.id == header.id
            if name == "boxes":
                assert boxes_of(about.label)[0, 0] == int(bytes(image).split()[-1])
            else:
                assert bytes(image) == bytes(text)
            found.append(int(bytes(image).split()[-1]))
        return found


keys = st.lists(st.integers(0, 99), min_size=3, max_size=9, unique=True)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=12,
    phases=[Phase.explicit, Phase.generate],
)
@given(keys, keys, st.sampled_from(["text", "boxes"]), st.integers(0, 5))
def test_every_operation_keeps_the_set_together(tmp_path, first, second, name, seed):
    for file in tmp_path.iterdir():
        file.unlink()
    a = write_set(tmp_path / "a.rec", first, name=name)
    b = write_set(tmp_path / "b.rec", second, name=name)
    out = tmp_path / "out.rec"
    recordio.join([a, b], out)
    # Ids are shifted where two packs have one in common; contents stay.
    assert check_set(out, name) == [*first, *second]
    recordio.shuffle(a, out, seed=seed)
    assert sorted(check_set(out, name)) == sorted(first)
    recordio.sort(a, out, by="label")
    assert check_set(out, name) == sorted(first, key=lambda key: key % 3)
    recordio.filter(a, out, where=f"key >= {min(first)}")
    assert check_set(out, name) == first
    recordio.sample(a, out, n=2)
    assert len(check_set(out, name)) == 2
    recordio.relabel(a, out, {key: key for key in range(100)})
    assert check_set(out, name) == first
    report = recordio.split(a, {tmp_path / "out": 0.5, tmp_path / "out2": 0.5}, seed=seed)
    assert [output.fields for output in report.outputs] == [(name,)] * 2
    both = check_set(out, name) + check_set(tmp_path / "out2.rec", name)
    assert sorted(both) == sorted(first)
    recordio.shard(a, tmp_path / "part", 2)
    parts = [check_set(tmp_path / f"part-{i:06d}.rec", name) for i in range(2)]
    assert parts[0] + parts[1] == first


def test_dedup_keeps_the_set_together(tmp_path):
    path = write_set(tmp_path / "a.rec", [4, 2, 7])
    recordio.dedup(path, tmp_path / "b.rec")
    assert check_set(tmp_path / "b.rec") == [4, 2, 7]


def test_faces_keep_their_fields(tmp_path):
    path = write_faces(tmp_path / "a.rec", [2, 1], [b"image of 1", b"image of 2", b"image of 3"])
    contents = [b"image of %d" % key for key in (1, 2, 3)]
    write_pack(tmp_path / "a.text.rec", contents, [0] * 3, ids=(1, 2, 3), keys=(1, 2, 3))
    recordio.shuffle(path, tmp_path / "b.rec", seed=3)
    with open_pack(tmp_path / "b.rec") as main:
        field = main.field("text")
        assert len(main) == 3 and not len(field.missing)
        for row in range(3):
            assert bytes(unpack(main.record(row))[1]) == bytes(unpack(field.record(row))[1])


def test_fields_that_are_not_the_same_everywhere_are_refused(tmp_path):
    a = write_set(tmp_path / "a.rec", [1, 2, 3])
    b = write_pack(tmp_path / "b.rec", 3)
    with pytest.raises(FieldError, match=r"b\.rec: of it and .*a\.rec only one has the field text"):
        recordio.join([a, b], tmp_path / "out.rec")
    assert recordio.join([a, b], tmp_path / "out.rec", fields=[]).records == 6
    with pytest.raises(FieldError, match=r"b\.rec: it has no field text"):
        recordio.join([a, b], tmp_path / "out.rec", fields="text")


def test_records_without_a_field_are_named_or_left_out(tmp_path):
    path = write_set(tmp_path / "a.rec", [5, 6, 7], order=[7, 5])
    with pytest.raises(FieldError, match=r"record 1: its field text is missing: .* the key 6;"):
        recordio.shuffle(path, tmp_path / "out.rec")
    assert not list(tmp_path.glob("out*"))
    recordio.filter(path, tmp_path / "out.rec", where="key != 6")
    assert check_set(tmp_path / "out.rec") == [5, 7]
    recordio.sort(path, tmp_path / "out.rec", skip_errors=True)
    assert open_pack(tmp_path / "out.rec").field("text").missing.tolist() == [0]


def test_fields_of_an_older_pack_are_not_taken_for_new_ones(tmp_path):
    a = write_set(tmp_path / "a.rec", [5, 6, 7])
    write_set(tmp_path / "b.rec", [1, 2], name="old")
    with pytest.raises(FieldError, match=r"b\.old\.rec: it lies there"):
        recordio.shuffle(a, tmp_path / "b.rec")
    assert check_set(tmp_path / "b.rec", "old") == [1, 2]


def test_the_set_is_replaced_as_a_whole(tmp_path):
    a = write_set(tmp_path / "a.rec", [5, 6, 7])
    b = write_set(tmp_path / "b.rec", [1, 2])
    write_records(tmp_path / "b.text.rec", [b"old", b"older"], keys=[1, 2], checksums=True)
    assert (tmp_path / "b.text.crc").exists()
    recordio.shuffle(a, b)
    assert sorted(check_set(b)) == [5, 6, 7]
    assert not (tmp_path / "b.text.crc").exists()
    assert not list(tmp_path.glob("*.partial")) + list(tmp_path.glob("*.replaced"))


def test_a_killed_run_leaves_the_old_set_and_goes_on(tmp_path):
    a = write_set(tmp_path / "a.rec", list(range(50)))
    b = write_set(tmp_path / "b.rec", [1, 2])
    program = (
        "import os, signal, recordio\n"
        "from recordio.operations.field_copies import FieldCopies\n"
        "def write(*words): os.kill(os.getpid(), signal.SIGKILL)\n"
        "FieldCopies.write = write\n"
        f"recordio.shuffle({str(a)!r}, {str(b)!r})\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL
    assert check_set(b) == [1, 2]
    report = recordio.shuffle(a, b)
    assert report.continued == 50 and sorted(check_set(b)) == list(range(50))
    assert not list(tmp_path.glob("*.partial"))


def test_a_tar_becomes_a_pack_with_its_fields(tmp_path):
    import io
    import tarfile

    from iterators.testing import noise

    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for number in range(4):
            image = encode(noise(8, 8, number))
            for ending, content in (("png", image), ("cls", b"1"), ("text.txt", b"%d" % number)):
                info = tarfile.TarInfo(f"{number}.{ending}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    recordio.filter(tmp_path / "a.tar", tmp_path / "b.rec", where="key != 1")
    with open_pack(tmp_path / "b.rec") as main:
        found = [bytes(unpack(main.field("text").record(row))[1]) for row in range(3)]
    assert found == [b"0", b"2", b"3"] and main.field_names == ["text"]
    assert np.array_equal(main.field("text").keys, [0, 1, 2])


# -- what the fields are --------------------------------------------------------------------------

BOXES = FieldMeta(kind="boxes", format="xyxy", classes={0: "cat", 1: "dog"})


def describe(path, **fields):
    path.with_suffix(".fields.json").write_bytes(format_fields(fields))
    return path


def write_boxes(path, keys=(0, 1, 2), width=5):
    """A pack whose field has two boxes of each image, of classes 0 and 1."""
    path = write_set(path, list(keys))
    field = path.with_suffix(".boxes.rec")
    path.with_suffix(".text.rec").unlink()
    path.with_suffix(".text.idx").unlink()
    with RecordWriter(field, field.with_suffix(".idx")) as writer:
        for key in keys:
            objects = [[c, 0, 0, 1, 1, 9][:width] for c in (0, 1)]
            writer.write(pack(IRHeader(0, [2, width, *sum(objects, [])], key, 0), b""), key)
    return path


def classes_of(path):
    with open_pack(path) as main:
        field = main.field("boxes")
        labels = [unpack(field.record(row))[0].label for row in range(len(main))]
        return [boxes_of(label)[:, 0].tolist() for label in labels]


def test_descriptions_go_with_the_packs(tmp_path):
    text = FieldMeta(kind="text")
    a = describe(write_set(tmp_path / "a.rec", [1, 2, 3]), text=text)
    b = write_set(tmp_path / "b.rec", [4, 5])
    out = tmp_path / "out.rec"
    calls = [
        lambda: recordio.join([b, a], out),
        lambda: recordio.shuffle(a, out),
        lambda: recordio.filter(a, out, where="key > 1"),
        lambda: recordio.dedup(a, out),
        lambda: recordio.relabel(a, out, "dense"),
        lambda: recordio.split(a, {out: 0.5, tmp_path / "other": 0.5}),
    ]
    for call in calls:
        call()
        assert open_pack(out).fields_meta == {"text": text}
        assert check_pack(open_pack(out)).ok
        for file in tmp_path.glob("o*"):
            file.unlink()
    recordio.shuffle(a, out)
    with pytest.raises(FieldError, match=r"out\.text\.rec: it lies there, a field of"):
        recordio.shuffle(a, out, fields=[])
    for end in ("rec", "idx"):
        out.with_suffix(f".text.{end}").unlink()
    recordio.shuffle(a, out, fields=[])
    assert not out.with_suffix(".fields.json").exists()


def test_what_the_description_does_not_name_is_left_alone(tmp_path):
    a = describe(write_set(tmp_path / "a.rec", [1, 2, 3]), text=FieldMeta(kind="text"))
    b = write_set(tmp_path / "b.rec", [1], name="v2")
    with pytest.raises(FieldError, match=r"b\.v2\.rec: it lies there"):  # it is a field of b
        recordio.shuffle(a, b)
    describe(b, text=FieldMeta(kind="text"))
    recordio.shuffle(a, b)
    assert open_pack(b).field_names == ["text"] and (tmp_path / "b.v2.rec").exists()
    b.with_suffix(".fields.json").write_bytes(b"damaged")
    with pytest.raises(FieldError, match=r"b\.v2\.rec: it lies there"):
        recordio.shuffle(a, b)
    (tmp_path / "b.v2.rec").unlink()
    recordio.shuffle(a, b)
    assert open_pack(b).fields_meta == {"text": FieldMeta(kind="text")}


def test_descriptions_that_disagree_are_refused(tmp_path):
    a = describe(write_set(tmp_path / "a.rec", [1, 2]), text=FieldMeta(kind="text"))
    b = describe(write_set(tmp_path / "b.rec", [3]), text=FieldMeta(kind="json"))
    with pytest.raises(FieldError, match=r"b\.rec: its field text has kind 'json', and that of"):
        recordio.join([a, b], tmp_path / "out.rec")
    assert not list(tmp_path.glob("out*"))
    assert recordio.join([a, b], tmp_path / "out.rec", fields=[]).records == 3
    (tmp_path / "b.fields.json").write_bytes(b"{")
    with pytest.raises(FieldError, match=r"b\.fields\.json: it is no JSON"):
        recordio.join([a, b], tmp_path / "out.rec")


def test_classes_of_boxes_change_with_the_labels(tmp_path):
    a = describe(write_boxes(tmp_path / "a.rec"), boxes=BOXES)
    out = tmp_path / "out.rec"
    recordio.relabel(a, out, {0: 5, 1: 3, 2: 4})
    assert classes_of(out) == [[5, 3]] * 3
    assert open_pack(out).fields_meta["boxes"].classes == {5: "cat", 3: "dog"}
    b = describe(write_boxes(tmp_path / "b.rec"), boxes=BOXES)
    recordio.join([a, b], out, labels="append")
    assert classes_of(out) == [[0, 1]] * 3 + [[3, 4]] * 3
    known = open_pack(out).fields_meta["boxes"].classes
    assert known == {0: "cat", 1: "dog", 3: "cat", 4: "dog"}
    recordio.relabel(a, out, None)
    assert classes_of(out) == [[-1, -1]] * 3 and not open_pack(out).fields_meta["boxes"].classes
    with pytest.raises(
        LabelError, match="field boxes has boxes of class 1, which is not in labels"
    ):
        recordio.relabel(write_boxes(tmp_path / "c.rec", [0, 3]), out, {0: 5})
    recordio.relabel(write_boxes(tmp_path / "d.rec"), out, {0: 1, 1: 0, 2: 2})  # not described
    assert classes_of(out) == [[1, 0]] * 3


def test_labels_that_say_nothing_of_boxes_are_refused(tmp_path):
    a = describe(write_boxes(tmp_path / "a.rec"), boxes=BOXES)
    out, listed = tmp_path / "out.rec", tmp_path / "new.lst"
    listed.write_text("".join(f"{key}\t7\tname\n" for key in range(3)))
    with pytest.raises(
        FieldError, match="field boxes has boxes, whose classes a list does not change"
    ):
        recordio.relabel(a, out, listed)
    recordio.relabel(a, out, listed, fields=[])
    b = write_boxes(tmp_path / "b.rec", width=6)
    with pytest.raises(FieldError, match=r"may be boxes, .* say so in .*b\.fields\.json"):
        recordio.relabel(b, out, {0: 1, 1: 0, 2: 2})
    describe(b, boxes=FieldMeta(kind="keypoints"))
    recordio.relabel(b, out, {0: 1, 1: 0, 2: 2})
    assert classes_of(out) == [[0, 1]] * 3
    describe(b, boxes=FieldMeta(kind="boxes"))
    recordio.relabel(b, out, {0: 1, 1: 0, 2: 2})
    assert classes_of(out) == [[1, 0]] * 3


def test_fields_are_compared(tmp_path):
    a = describe(write_set(tmp_path / "a.rec", [1, 2, 3]), text=FieldMeta(kind="text"))
    b = describe(write_set(tmp_path / "b.rec", [1, 2, 3]), text=FieldMeta(kind="text"))
    found = recordio.diff(a, b)
    assert found.equal and found.fields["text"].equal and found.fields["text"].same == 3
    contents = [b"text of 1", b"text of 2"]
    write_pack(tmp_path / "b.text.rec", contents, [0, 0], ids=(1, 2), keys=(1, 2))
    found = recordio.diff(a, b)
    assert not found.equal and found.same == 3 and found.fields["text"].content == 2
    assert "field text, the same in both: 0\n  other content: 2" in str(found)
    words = found.as_dict()["fields"]["text"]
    assert words["equal"] is False and words["only_a"] == 1
    describe(b, text=FieldMeta(kind="json"))
    assert recordio.diff(a, b).described == ("text",)
    c = write_set(tmp_path / "c.rec", [1, 2, 3], name="more")
    found = recordio.diff(a, c)
    assert found.fields_a == ("text",) and found.fields_b == ("more",) and not found.equal
    assert f"fields only in {c}: more" in str(found)


def test_a_manifest_lists_the_fields_of_shards(tmp_path):
    a = describe(write_set(tmp_path / "a.rec", [1, 2, 3]), text=FieldMeta(kind="text"))
    recordio.shard(a, tmp_path / "part", 2)
    manifest = recordio.check_shards(tmp_path / "part.shards.json")
    assert [[one.file for one in shard.fields] for shard in manifest.shards] == [
        ["part-000000.text.rec"], ["part-000001.text.rec"],
    ]  # fmt: skip
    assert open_pack(tmp_path / "part-000001.rec").fields_meta == {"text": FieldMeta(kind="text")}
    recordio.join([tmp_path / "part.shards.json"], tmp_path / "b.rec")
    assert check_set(tmp_path / "b.rec") == [1, 2, 3]
    field = tmp_path / "part-000001.text.rec"
    content = field.read_bytes()
    field.write_bytes(content[:-8] + bytes(8))
    with pytest.raises(recordio.ManifestError, match=r"000001\.text\.rec: it is not the file"):
        recordio.check_shards(tmp_path / "part.shards.json")
    assert recordio.check_shards(tmp_path / "part.shards.json", contents=False)
    field.write_bytes(content[:-4])
    with pytest.raises(recordio.ManifestError, match=r"000001\.text\.rec: it has .* bytes, and"):
        recordio.check_shards(tmp_path / "part.shards.json", contents=False)
    words = (tmp_path / "part.shards.json").read_text()
    for old, new in (
        ('"part-000000.text.rec"', '"../a.text.rec"'),
        ('"name": "text"', '"name": "1"'),
        ('"name": "text"', '"title": "text"'),
    ):
        (tmp_path / "part.shards.json").write_text(words.replace(old, new))
        with pytest.raises(recordio.ManifestError):
            ShardManifest.read(tmp_path / "part.shards.json")


def test_a_manifest_without_fields_is_what_it_was(tmp_path):
    a = write_pack(tmp_path / "a.rec", 3)
    recordio.shard(a, tmp_path / "part", 2)
    assert "fields" not in (tmp_path / "part.shards.json").read_text()
