"""``PREFIX.fields.json``: every byte of it is checked, and it alone says what the fields are."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iterators.testing import write_pack
from recordio import FieldError
from recordio.bytes.files import StoredFile
from recordio.packs.check import check_pack
from recordio.packs.fields_meta import (
    KINDS,
    FieldMeta,
    agreed,
    format_fields,
    mirrored_points,
    read_fields,
)
from recordio.packs.open_pack import open_listed, open_pack
from recordio.packs.pack_writer import PackWriter

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True)
words = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), max_size=12)
numbers = st.integers(0, 300)


@st.composite
def metas(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    points = tuple(draw(st.lists(words, max_size=5)))
    several = range(max(len(points), 2))
    pairs = st.permutations(several).map(lambda order: tuple(order[:2]))
    swap = tuple(draw(st.lists(pairs, max_size=1))) if len(points) > 1 else ()
    values = {
        "dtype": draw(st.sampled_from([None, "uint8", "uint16"])),
        "ignore": draw(st.none() | numbers.filter(lambda value: value not in sum(swap, ()))),
        "classes": draw(st.dictionaries(st.integers(-2, 70000), words, max_size=4)),
        "points": points,
        "skeleton": tuple(draw(st.lists(pairs, max_size=3))) if len(points) > 1 else (),
        "swap": swap,
        "format": draw(st.sampled_from([None, "xyxy"])),
    }
    return FieldMeta(kind=kind, **{name: values[name] for name in KINDS[kind].facts})


def write(folder, content):
    (folder / "a.fields.json").write_bytes(
        content if isinstance(content, bytes) else json.dumps(content).encode()
    )
    return StoredFile(str(folder / "a.rec"))


def whole(**fields):
    return {"format": "recordio fields", "version": 1, "fields": fields}


slow = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


@slow
@given(st.dictionaries(names, metas(), max_size=4))
def test_what_is_written_is_read(tmp_path, described):
    found = read_fields(write(tmp_path, format_fields(described)))
    assert found == described and list(found) == sorted(described)


@slow
@given(st.dictionaries(names, metas(), min_size=1, max_size=2), st.data())
def test_damage_is_an_error_or_a_whole_description(tmp_path, described, data):
    content = bytearray(format_fields(described))
    way = data.draw(st.sampled_from(["cut", "flip", "insert", "nothing"]))
    at = data.draw(st.integers(0, len(content) - 1))
    if way == "cut":
        del content[at:]
    elif way == "flip":
        content[at] ^= data.draw(st.integers(1, 255))
    elif way == "insert":
        content[at:at] = data.draw(st.binary(min_size=1, max_size=9))
    else:
        content = bytearray(data.draw(st.binary(max_size=99)))
    file = write(tmp_path, bytes(content))
    try:
        found = read_fields(file)
    except FieldError as error:
        assert error.path == str(tmp_path / "a.fields.json")
    else:
        assert read_fields(write(tmp_path, format_fields(found))) == found


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is no JSON"),
        (b"[" * 100_000, "it is no JSON"),
        (b"\xff\xfe{", "it is no JSON"),
        (b'{"format": "recordio fields", "format": 1}', "a name is there twice"),
        ({}, "it does not say what fields there are"),
        ([], "it does not say what fields there are"),
        ({**whole(), "version": 2}, "it has version 2, .* install a later one"),
        ({**whole(), "fields": []}, "it has no object called fields"),
        (whole(**{"1": {"kind": "text"}}), "field 1: '1' names no field"),
        (whole(a=[]), "field a: it is no object with a kind"),
        (whole(a={"kind": 3}), "field a: it is no object with a kind"),
        (whole(a={"kind": "mesh"}), "field a: kind 'mesh': expected mask, image"),
        (whole(a={"kind": "text", "ignore": 1}), "'ignore' is nothing that it has"),
        (whole(a={"kind": "mask", "ignore": ""}), "ignore '' is no whole number"),
        (whole(a={"kind": "mask", "ignore": True}), "ignore True is no whole number"),
        (whole(a={"kind": "mask", "ignore": 1 << 24}), "is no whole number below"),
        (whole(a={"kind": "mask", "dtype": "int8"}), "dtype 'int8': expected uint8 or uint16"),
        (whole(a={"kind": "mask", "classes": ["a"]}), "is no mapping of numbers to names"),
        (whole(a={"kind": "mask", "classes": {"1.5": "a"}}), "the class '1.5' is no whole"),
        (whole(a={"kind": "mask", "classes": {"01": "a"}}), "the class '01' is no whole"),
        (whole(a={"kind": "mask", "classes": {"1": "a\nb"}}), "is no text of one line"),
        (whole(a={"kind": "mask", "classes": {"1": "\ud800"}}), "is no text of one line"),
        (whole(a={"kind": "boxes", "format": "xywh"}), "format 'xywh': expected xyxy"),
        (whole(a={"kind": "keypoints", "points": "nose"}), "points 'nose' is no list of names"),
        (whole(a={"kind": "keypoints", "swap": [[0]]}), "is no list of pairs of points"),
        (whole(a={"kind": "keypoints", "swap": [[1, 1]]}), "is no pair of points"),
        (whole(a={"kind": "keypoints", "swap": [[0, 1], [1, 2]]}), "a point in two pairs"),
        (
            whole(a={"kind": "keypoints", "points": ["x", "y"], "skeleton": [[0, 2]]}),
            "skeleton has the point 2, and there are 2",
        ),
    ],
)
def test_every_fault_is_named(tmp_path, content, reason):
    with pytest.raises(FieldError, match=reason):
        read_fields(write(tmp_path, content))


def test_a_huge_file_is_not_read(tmp_path):
    with open(tmp_path / "a.fields.json", "wb") as file:
        file.truncate((1 << 24) + 1)
    with pytest.raises(FieldError, match="more than 16777216 bytes"):
        read_fields(StoredFile(str(tmp_path / "a.rec")))


def test_names_of_points_tell_left_from_right():
    assert mirrored_points(["left_eye", "nose", "right_eye", "left_ear"]) == ((0, 2),)
    assert mirrored_points(["left", "right", "left"]) == ((2, 1),)


# -- packs ----------------------------------------------------------------------------------------


def write_set(folder, described, also=("v2",)):
    path = write_pack(folder / "a.rec", 3)
    for name in [*(described or ()), *also]:
        write_pack(folder / f"a.{name}.rec", [b"text %d" % key for key in range(3)], [0] * 3)
    if described is not None:
        (folder / "a.fields.json").write_bytes(format_fields(described))
    return path


def test_the_file_alone_says_which_packs_are_fields(tmp_path):
    path = write_set(tmp_path, {"text": FieldMeta(kind="text")})
    with open_pack(path) as opened:
        assert opened.field_names == ["text"] and list(opened.fields) == ["text"]
        assert opened.fields_meta == {"text": FieldMeta(kind="text")}
        with pytest.raises(FieldError, match=r"no field v2: .*a\.fields\.json does not name it"):
            opened.field("v2")
    assert check_pack(open_pack(path)).ok
    files = [pack.path for pack in open_listed(str(tmp_path))]
    assert files == [str(tmp_path / "a.rec"), str(tmp_path / "a.v2.rec")]
    (tmp_path / "a.fields.json").unlink()
    with open_pack(path) as opened:
        assert opened.field_names == ["text", "v2"] and opened.fields_meta == {}
    assert [pack.path for pack in open_listed(str(tmp_path))] == files[:1]


def problems(path):
    return [str(problem) for problem in check_pack(open_pack(path, skip_errors=True)).problems]


def test_a_check_compares_the_packs_with_the_file(tmp_path):
    text, mask = FieldMeta(kind="text"), FieldMeta(kind="mask")
    path = write_set(tmp_path, {"text": mask})
    assert problems(path) == ["field text: 3 with other content, of kind mask: keys 0, 1, 2"]
    (tmp_path / "a.fields.json").write_bytes(format_fields({"text": text, "depth": mask}))
    (found,) = problems(path)
    assert "field depth" in found and "there is no" in found
    for kind, reason in (
        ("json", "other content"),
        ("boxes", "no label of objects"),
        ("keypoints", "no label of objects"),
        ("image", "other content"),
    ):
        (tmp_path / "a.fields.json").write_bytes(format_fields({"text": FieldMeta(kind=kind)}))
        assert problems(path) == [f"field text: 3 with {reason}, of kind {kind}: keys 0, 1, 2"]
    (tmp_path / "a.fields.json").write_bytes(b"{")
    (found,) = problems(path)
    assert "it is no JSON" in found and "a.fields.json" in found


@pytest.mark.parametrize(
    ("labels", "points", "reason"),
    [
        ([2, 6, *[0.5, 0.5, 2] * 2], 2, ""),
        ([2, 6], 2, ""),
        ([2, 3, 0.5, 0.5, 2], 1, ""),
        ([2, 6, *[0.5, 0.5, 2] * 2], 3, "other than 3 points"),
        ([2, 6, 0.5], 2, "no label of objects"),
        ([2, float("nan")], 2, "no label of objects"),
        ([1e9, 6], 2, "no label of objects"),
    ],
)
def test_a_check_counts_points(tmp_path, labels, points, reason):
    path = write_pack(tmp_path / "a.rec", 1)
    write_pack(tmp_path / "a.p.rec", [b""], [labels])
    meta = FieldMeta(kind="keypoints", points=[f"p{i}" for i in range(points)])
    (tmp_path / "a.fields.json").write_bytes(format_fields({"p": meta}))
    assert problems(path) == (
        [f"field p: 1 with {reason}, of kind keypoints: keys 0"] if reason else []
    )


def test_a_writer_publishes_the_file_with_the_set(tmp_path):
    path, beside = tmp_path / "a.rec", tmp_path / "a.fields.json"
    described = {"text": FieldMeta(kind="text")}
    with PackWriter(path, tmp_path / "a.idx", ["text"], True, lambda: described) as writer:
        writer.write(b"image", 0)
        writer.fields["text"].write(b"text", 0)
        assert not beside.exists()
    assert open_pack(path).fields_meta == described
    assert (tmp_path / "a.text.crc").exists()
    with PackWriter(path, tmp_path / "a.idx") as writer:
        writer.write(b"image", 0)
    assert not beside.exists()


# -- several packs --------------------------------------------------------------------------------


def test_descriptions_that_disagree_are_refused():
    one = FieldMeta(kind="mask", ignore=255, classes={1: "cat"})
    for other, reason in (
        (FieldMeta(kind="image"), "kind 'image', and that of a.rec 'mask'"),
        (FieldMeta(kind="mask", ignore=0), "ignore 0, and that of a.rec 255"),
        (FieldMeta(kind="mask", ignore=255, classes={1: "dog"}), "classes {1: 'dog'}"),
    ):
        with pytest.raises(FieldError, match=reason):
            agreed(["m"], [("a.rec", {"m": one}), ("b.rec", {"m": other})])
    assert agreed(["m"], [("a.rec", {}), ("b.rec", {"m": one})]) == {"m": one}
    assert agreed([], [("a.rec", {"m": one})]) == {}
