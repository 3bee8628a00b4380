"""`filter`: by contents, labels, keys, lists and what can be decoded."""

import io

import numpy as np
import pytest
from PIL import Image

from recordio import (
    EmptyRecordFileError,
    ExpressionError,
    IRHeader,
    KeyNotFoundError,
    filter,
    pack,
)
from recordio.formats.image_header import DEFAULT_LIMITS
from recordio.formats.jpeg import encoder


def kept(packs, *words, **options):
    report = filter(packs.path("a"), packs.path("b"), *words, **options)
    found = packs.ids(packs.path("b"))
    assert report.records == len(found)
    return found


def image(kind, width, height):
    target = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 255, (height, width, 3), np.uint8)
    Image.fromarray(noise).save(target, kind)
    return target.getvalue()


@pytest.fixture
def pictures(packs):
    jpeg = image("jpeg", 60, 40)
    contents = [jpeg, image("png", 30, 50), jpeg[:-300], b"text", b"", jpeg[:30]]
    rows = [
        pack(IRHeader(0, number % 2, number, 0), content) for number, content in enumerate(contents)
    ]
    return packs.raw("a", rows)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("width >= 50", [0, 2]),
        ("height == 50 and width == 30", [1]),
        ("width != width", [3, 4, 5]),
        ("format == 'jpeg'", [0, 2, 5]),
        ("format in ('empty', 'other')", [3, 4]),
        ("decodable", [0, 1]),
        ("format == 'jpeg' and not decodable", [2, 5]),
        ("bytes < 10", [3, 4]),
        ("label == 1 and width > 0", [1]),
        ("id % 2 == 0 and key < 4", [0, 2]),
    ],
)
def test_contents(packs, pictures, where, expected):
    assert kept(packs, where) == expected
    assert kept(packs, where, drop=True) == [row for row in range(6) if row not in expected]


def test_decodable_is_what_training_decodes(packs):
    jpeg, png = image("jpeg", 60, 40), image("png", 30, 50)
    wide = io.BytesIO()
    Image.fromarray(np.ones((9, 9), np.float32)).save(wide, "tiff")
    contents = [jpeg, jpeg[:-2], png, png[:-12], image("dib", 20, 10), wide.getvalue()]
    contents += [jpeg[: len(jpeg) // 2], png[:50]]
    packs.raw("a", [pack(IRHeader(0, 0, number, 0), c) for number, c in enumerate(contents)])
    ends_early = [1] if encoder.available() else []  # Pillow wants the marker of the end
    assert kept(packs, "decodable") == [0, *ends_early, 2, 3, 4, 5]


def test_decodable_heeds_the_limit_on_scans(packs, monkeypatch):
    target = io.BytesIO()
    Image.open(io.BytesIO(image("jpeg", 60, 40))).save(target, "jpeg", progressive=True)
    packs.raw("a", [pack(IRHeader(0, 0, 0, 0), target.getvalue())])
    assert kept(packs, "decodable") == [0]
    monkeypatch.setitem(DEFAULT_LIMITS, "max_scans", 1)
    with pytest.raises(EmptyRecordFileError):
        kept(packs, "decodable")


def test_labels(packs):
    packs.plain("a", [1, [2, 9, 5], [9, 1], 3])
    assert kept(packs, "label == 2") == [1]
    assert kept(packs, "9 in labels") == [1, 2]
    assert kept(packs, "len(labels) == 1") == [0, 3]
    assert kept(packs, "objects == 0") == [0, 1, 2, 3]
    packs.detection("a", [[3, 5], [], [5], [7, 7, 3]])
    assert kept(packs, "3 in labels") == [0, 3]
    assert kept(packs, "objects > 1 and len(labels) == objects") == [0, 3]
    assert kept(packs, "label == label") == [0, 2, 3]


def test_keys_and_lists(packs, tmp_path):
    packs.plain("a", range(5), first_id=100)
    (tmp_path / "some.txt").write_text("1\n4\n")
    assert kept(packs, keys=[3, 0, 3]) == [100, 103]
    assert kept(packs, keys=tmp_path / "some.txt", drop=True) == [100, 102, 103]
    assert kept(packs, "label > 2", keys=tmp_path / "some.txt") == [104]
    with pytest.raises(KeyNotFoundError, match="key 9"):
        kept(packs, keys=[9])


def test_a_large_id_and_records_without_header(packs, tmp_path):
    rows = [b"text", *(pack(IRHeader(0, 1, number, 0), b"") for number in (2**60, 2**60 + 1, 0))]
    packs.raw("a", rows)
    (tmp_path / "some.lst").write_text(f"{2**60 + 1}\t0\tx\n0\t0\tx\n")
    assert kept(packs, keys=tmp_path / "some.lst") == [2**60 + 1, 0]
    with pytest.raises(KeyNotFoundError, match="64 bits"):
        kept(packs, keys=[2**70])


def test_progress(packs, pictures):
    seen = []
    kept(packs, "decodable", progress=lambda *counts: seen.append(counts))
    assert seen == [(6, 6), (2, 2)]


def test_identities(packs):
    packs.faces("a", [2, 3, 1])
    assert kept(packs, "label != 1") == [1, 2, 3]  # ids are keys
    assert packs.identities(packs.path("b")) == [[0, 0], [], [2]]
    assert kept(packs, "label == 0", drop=True) == [1, 2, 3, 4]


def test_classes_by_name(packs):
    packs.plain("a", range(5))
    with pytest.raises(ExpressionError, match="has no names of classes"):
        kept(packs, "class == 'dog'")
    names = packs.folder / "a.classes.txt"
    names.write_text("0\tcat\n1\tdog\n2\ta b/c\n")
    expected = kept(packs, "label == 1")
    assert expected and kept(packs, "class == 'dog'") == expected
    assert kept(packs, "'a b/c' == class or 'cat' in labels") == kept(packs, "label in (0, 2)")
    with pytest.raises(ExpressionError, match="did you mean 'dog'"):
        kept(packs, "class == 'dogs'")


def test_refused(packs):
    packs.plain("a", range(5))
    with pytest.raises(ValueError, match="condition"):
        kept(packs)
    with pytest.raises(EmptyRecordFileError, match=r"a\.rec"):
        kept(packs, "label > 10")
    with pytest.raises(ExpressionError, match="column 1"):
        filter(packs.folder / "none", packs.path("b"), "size > 3")
    with pytest.raises(KeyboardInterrupt):
        kept(packs, "decodable", cancelled=lambda: True)
    assert packs.names() == ["a.idx", "a.rec"]


def test_damage_is_counted(packs):
    path = packs.plain("a", range(5))
    data = bytearray(path.read_bytes())
    data[0] = 0
    path.write_bytes(data)
    report = filter(path, packs.path("b"), "label < 3", skip_errors=True)
    assert (report.records, report.skipped, report.left_out) == (2, 1, 2)


def test_labels_of_headers_with_a_second_id(packs):
    rows = [pack(IRHeader(0, number % 3, number, 77), b"unknown content") for number in range(9)]
    filter(packs.raw("a", rows), packs.path("b"), "label == 1 and id > 1")
    assert packs.ids(packs.path("b")) == [4, 7]
