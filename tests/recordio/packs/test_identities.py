"""Face-recognition packs whose keys 32-bit floats do not tell apart."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import (
    IRHeader,
    RecordHeaderError,
    RecordReader,
    RecordWriter,
    build_index,
    pack,
    split,
    stats,
    unpack,
)
from recordio.packs.identities import joined_identities, keys_of
from recordio.packs.open_pack import OpenPack
from recordio.packs.scanned_pack import ScannedPack
from recordio.tools.info import collect_info

#: Where the images of packs end: around powers of two, and in the packs that people have.
ENDS = [
    *(1 << 24, (1 << 24) + 1, (1 << 24) + 6, (1 << 25) - 3, (1 << 25) + 2, (1 << 25) + 11),
    *(17_091_657, 17_091_658, 42_474_557, 42_474_558, (1 << 26) + 7, (1 << 31) + 5),
]


def ranges(first, counts):
    """The keys of the images of every identity, the last of which ends before `first`."""
    ends = first - sum(counts) + np.cumsum(counts)
    return np.stack([ends - counts, ends], -1).tolist()


def found_in(path):
    """The ranges of all identities, and the same asked for one by one."""
    with OpenPack(path, path.with_suffix(".idx")) as opened:
        faces = opened.faces
        single = [faces.ranges(i, i + 1)[0].tolist() for i in range(len(faces))]
        assert faces.ranges().dtype == np.int64
        return faces.ranges().tolist(), single


@given(st.integers(1, 1 << 40))
def test_a_float_stands_for_the_keys_that_become_it(key):
    low, high = (int(keys[0]) for keys in keys_of([key]))
    stored = np.float32(key)
    assert low <= key <= high
    assert np.float32(low) == np.float32(high) == stored
    assert np.float32(low - 1) < stored < np.float32(high + 1)


@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("counts", [[5, 5], [1], [3, 1, 1, 4], [1] * 9, [2, 0, 7, 0, 0, 1], [6, 0]])
def test_rounded_ranges_are_those_that_were_meant(packs, first, counts):
    want = ranges(first, counts)
    assert found_in(packs.large_faces("a", first, counts)) == (want, want)


@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize(
    "number", [lambda i: i + 1, lambda i: (7 * i + 3) % 1009, lambda i: [i, 1]]
)
def test_labels_need_not_number_the_identities(packs, first, number):
    counts = [3, 1, 4, 1, 2]
    path = packs.large_faces("a", first, counts, number=number)
    assert found_in(path) == (ranges(first, counts),) * 2


@pytest.mark.parametrize("first", ENDS)
def test_images_at_the_edges_are_enough(packs, first):
    counts = [20, 30, 10]
    want = ranges(first, counts)
    edges = {key for begin, end in want for key in (begin, end - 1)}
    assert found_in(packs.large_faces("a", first, counts, keys=edges)) == (want, want)


@pytest.mark.parametrize("first", ENDS)
def test_everything_that_counts_identities_says_the_same(packs, first):
    path = packs.large_faces("a", first, [4, 2, 3])
    with ScannedPack(path) as source:
        assert source.identities == 3 and len(source) == 9
        assert source.keys.tolist() == list(range(first - 9, first))
    assert collect_info(str(path)).identities == stats(path).identities == 3
    report = split(path, {packs.path("b"): 0.7, packs.path("c"): 0.3}, by="class")
    assert sum(output.records for output in report.outputs) == 9
    assert {output.identities for output in report.outputs} == {3}


def test_few_records_are_read(packs, monkeypatch):
    path = packs.large_faces("a", (1 << 24) + 4000, [1000] * 5)
    with OpenPack(path, path.with_suffix(".idx")) as opened:
        faces = opened.faces
        read, asked = faces.read, []
        faces.read = lambda keys: asked.extend(keys) or read(keys)
        assert len(faces) == 5 and not asked
        assert faces.ranges().tolist() == ranges((1 << 24) + 4000, [1000] * 5)
        assert len(asked) <= 4 * 5


# -- record 0 behind all others --------------------------------------------------------------------


def builder_pack(packs, name, counts, index=False):
    """A pack as InsightFace's `RecBuilder` writes it: images, identities, and then record 0."""
    path, first = packs.path(name), 1 + sum(counts)
    labels = np.repeat(np.arange(len(counts)), counts).tolist()
    with RecordWriter(path, path.with_suffix(".idx") if index else None) as writer:

        def write(key, label, content=b""):
            writer.write(pack(IRHeader(0, label, key, 0), content), *[key] * index)

        for key, label in enumerate(labels, 1):
            write(key, label, b"face" + packs.content(name, key))
        for key, pair in enumerate(ranges(first, counts), first):
            write(key, pair)
        write(0, [first, first + len(counts)])
    return path


@pytest.mark.parametrize("counts", [[2, 0, 3], [1], [4, 4, 1, 1]])
def test_record_0_may_be_the_last_one_without_an_index(packs, counts):
    count = sum(counts)
    want = {key: record for key, record in enumerate(np.repeat(np.arange(len(counts)), counts), 1)}
    for index in (False, True):
        path = builder_pack(packs, f"a{index}", counts, index)
        with OpenPack(path, path.with_suffix(".idx") if index else None) as opened:
            assert opened.keys.tolist() == list(want)
            assert opened.faces.ranges().tolist() == ranges(count + 1, counts)
            assert opened.numbers.tolist() == list(range(count))
            missing = [len(opened.all_keys), len(opened.all_keys) + 1]
            assert opened.read_keys(missing) == [None, None]
            assert opened.image_spans().tolist() == [
                [a - 1, b - 1] for a, b in opened.faces.ranges()
            ]
        with ScannedPack(path) as source:
            assert source.identities == len(counts) and source.keys.tolist() == list(want)
            assert source.labels.values.tolist() == list(want.values())
        with ScannedPack(path, everything=True) as source:
            assert source.keys.tolist() == [*range(1, count + len(counts) + 1), 0]
    assert stats(packs.path("aFalse")).identities == len(counts)


def test_an_index_by_id_says_the_same(packs):
    path = builder_pack(packs, "a", [3, 2])
    build_index(path, keys="id")
    with OpenPack(path, path.with_suffix(".idx")) as opened:
        assert opened.keys.tolist() == [1, 2, 3, 4, 5]


@given(st.data())
def test_a_last_record_that_means_something_else(data):
    """Only a pair that ends at the number of records, in a record with id 0, moves keys."""
    count = data.draw(st.integers(1, 6))
    flag = data.draw(st.sampled_from([0, 1, 2, 3]))
    label = data.draw(st.lists(st.integers(-1, 8), min_size=flag, max_size=flag)) or 2.0
    number, content = data.draw(st.integers(0, 2)), data.draw(st.sampled_from([b"", b"face"]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.rec")
        with RecordWriter(path) as writer:
            for key in range(count - 1):
                writer.write(pack(IRHeader(0, 1.0, key, 0), b"face"))
            writer.write(pack(IRHeader(0, label, number, 0), content))
        moved = flag == 2 and not content and number == 0 and 1 < label[0] < label[1] == count
        for opened in (OpenPack(path), ScannedPack(path, everything=True)):
            with opened:
                assert opened.all_keys.tolist() == [(key + moved) % count for key in range(count)]


def test_a_short_last_record_and_an_empty_file(packs):
    path = packs.path("a")
    with RecordWriter(path) as writer:
        writer.write(b"")
    assert OpenPack(path).all_keys.tolist() == [0]
    path.write_bytes(b"")
    assert OpenPack(path).all_keys.tolist() == []


# -- record 0 between images and identities --------------------------------------------------------


def list_pack(packs, name, counts, index=False, aligned=True):
    """A pack as InsightFace's `face2rec2.py` writes it: images, record 0, and then identities."""
    path, first = packs.path(name), 1 + sum(counts)
    with RecordWriter(path, path.with_suffix(".idx") if index else None) as writer:

        def write(key, label, content=b""):
            writer.write(pack(IRHeader(0, label, key, 0), content), *[key] * index)

        for key, label in enumerate(np.repeat(np.arange(len(counts)), counts).tolist(), 1):
            write(key, [label, 1] if aligned else label, b"face" + packs.content(name, key))
        write(0, [first, first + len(counts)])
        for key, pair in enumerate(ranges(first, counts), first):
            write(key, pair)
    return path


@pytest.mark.parametrize("counts", [[2, 1, 3], [1], [4, 4, 1, 1], [1, 1, 1, 1]])
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("aligned", [False, True])
def test_record_0_may_lie_behind_the_images_without_an_index(packs, counts, index, aligned):
    path, count = list_pack(packs, "a", counts, index, aligned), sum(counts)
    with OpenPack(path, path.with_suffix(".idx") if index else None) as opened:
        assert opened.keys.tolist() == list(range(1, count + 1))
        assert opened.faces.ranges().tolist() == ranges(count + 1, counts)
        assert opened.numbers.tolist() == list(range(count))
        assert opened.read_keys([len(opened.all_keys)]) == [None]
        ids = [unpack(record)[0].id for record in opened.read_keys(range(len(opened.all_keys)))]
        assert ids == list(range(len(opened.all_keys)))
        assert opened.image_spans().tolist() == [
            [a - 1, b - 1] for a, b in ranges(count + 1, counts)
        ]
    with ScannedPack(path) as source:
        assert source.identities == len(counts)
        assert source.keys.tolist() == list(range(1, count + 1))
    assert stats(path).identities == len(counts)


@pytest.mark.parametrize("wrong", ["id", "end", "content"])
def test_a_record_behind_the_images_that_means_something_else(packs, wrong):
    path = packs.path("a")
    records = [
        (1, 0.0, b"face"),
        (2, 1.0, b"face"),
        (0, [3, 5], b""),
        (3, [1, 2], b""),
        (4, [2, 3], b""),
    ]
    records[2] = {"id": (7, [3, 5], b""), "end": (0, [3, 4], b""), "content": (0, [3, 5], b"face")}[
        wrong
    ]
    with RecordWriter(path) as writer:
        for key, label, content in records:
            writer.write(pack(IRHeader(0, label, key, 0), content))
    for opened in (OpenPack(path), ScannedPack(path, everything=True)):
        with opened:
            assert opened.all_keys.tolist() == [0, 1, 2, 3, 4]


# -- what cannot be told ---------------------------------------------------------------------------


def test_labels_that_do_not_tell(packs):
    first = 42_474_557
    path = packs.large_faces("a", first, [10, 9], number=lambda identity: 7)
    with OpenPack(path, path.with_suffix(".idx")) as opened:
        faces = opened.faces
        assert len(faces) == 2
        with pytest.raises(RecordHeaderError, match=rf"a\.rec: .*key {first + 1} .* begin at key "):
            faces.ranges()


def test_missing_images_that_would_tell(packs):
    first = 42_474_557
    path = packs.large_faces("a", first, [10, 9], keys=range(first - 3, first))
    with OpenPack(path, path.with_suffix(".idx")) as opened:
        faces = opened.faces
        with pytest.raises(RecordHeaderError, match=rf"key {first} lists begin at key "):
            faces.ranges()


def test_a_damaged_image_does_not_tell(packs):
    first = (1 << 25) + 10
    path = packs.large_faces("a", first, [10, 9])
    want = ranges(first, [10, 9])
    with RecordReader(path, path.with_suffix(".idx")) as reader:
        offset = int(reader.offsets[reader.position_of(want[1][0])])
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(b"oops")
    with OpenPack(path, path.with_suffix(".idx")) as opened:
        faces = opened.faces
        with pytest.raises(RecordHeaderError, match=rf"key {first + 1} lists begin"):
            faces.ranges()


def test_identities_that_leave_images_between_them(packs):
    first = 42_474_557
    path = packs.path("a")
    with RecordWriter(path, path.with_suffix(".idx")) as writer:
        writer.write(pack(IRHeader(2, [first, first + 2], 0, 0), b""), 0)
        for key in range(first - 90, first):
            writer.write(pack(IRHeader(0, int(key >= first - 40), key, 0), b"face"), key)
        for i, pair in enumerate([(first - 90, first - 60), (first - 40, first)]):
            writer.write(pack(IRHeader(2, pair, first + i, 0), b""), first + i)
    with OpenPack(path, path.with_suffix(".idx")) as opened:
        faces = opened.faces
        with pytest.raises(RecordHeaderError, match=rf"key {first} lists end at about"):
            faces.ranges()


def test_where_identity_records_begin_must_show(packs):
    first = 17_091_657
    path = packs.large_faces("a", first, [3, 3])
    index = path.with_suffix(".idx")
    lines = index.read_text().splitlines()
    lines = [line for line in lines if not line.startswith(f"{first - 1}\t")]
    index.write_text("\n".join(lines) + "\n")
    with pytest.raises(RecordHeaderError, match=r"a\.rec: .*begin at key 17091655 to 17091657"):
        OpenPack(path, index).faces.ranges()


def test_records_behind_the_identities(packs):
    first = 17_091_657
    path = packs.large_faces("a", first, [3, 3])
    for more in (first + 2, first + 40):  # the float of the end stands for the first of them, too
        with RecordWriter(path, path.with_suffix(".idx"), append=True) as writer:
            writer.write(pack(IRHeader(0, 5, more, 0), b"more"), more)
        with ScannedPack(path) as source:
            assert source.identities == 2 and len(source) == 6


def test_two_labels_alone_are_no_face_pack(packs):
    rows = [pack(IRHeader(2, pair, 0, 0), b"") for pair in ([17_091_656, 17_091_658], [2, 3e38])]
    rows.append(pack(IRHeader(0, 1, 0, 0), b"image"))
    for row in rows[:2]:
        path = packs.path("a")
        with RecordWriter(path, path.with_suffix(".idx")) as writer:
            writer.write(row, 0)
            writer.write(rows[2], 20_000_000)
        with ScannedPack(path) as source:
            assert source.identities is None and len(source) == 2


# -- damaged files, and several --------------------------------------------------------------------


def test_a_damaged_large_pack_keeps_its_identities(packs):
    first = 17_091_657
    path = packs.large_faces("a", first, [3, 4])
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])  # without the last identity
    with ScannedPack(path, skip_errors=True) as source:
        assert source.identities == 2 and len(source) == 7
    path.with_suffix(".idx").unlink()
    path.write_bytes(whole[:-8])
    with pytest.raises(RecordHeaderError, match="only an index says"):
        ScannedPack(path, skip_errors=True)


def test_a_damaged_small_pack_needs_no_index(packs):
    path = packs.faces("a", [2, 1], index=False)
    path.write_bytes(path.read_bytes()[:-8])
    with ScannedPack(path, skip_errors=True) as source:
        assert source.identities == 2 and len(source) == 3


def test_several_files_of_one_pack():
    parts = [np.array([[1, 3], [3, 4]]), np.array([[1, 1], [1, 6]])]
    assert joined_identities(parts).tolist() == [[1, 3], [3, 9]]
    assert joined_identities(parts[:1]) is parts[0]
