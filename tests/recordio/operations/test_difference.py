"""`diff`: records that differ, moved, or are in one pack only."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordio
from iterators.testing import write_rows
from recordio import IRHeader, RecordWriter, pack
from recordio.operations.difference import KINDS


def write(path, rows):
    """Rows of key, label, id and content."""
    keys = [key for key, *_ in rows]
    return write_rows(path, [(id, label, data) for _, label, id, data in rows], keys=keys)


@pytest.fixture
def two(tmp_path):
    return lambda a, b: recordio.diff(
        write(tmp_path / "a.rec", a), str(write(tmp_path / "b.rec", b))[:-4]
    )


def counts(found):
    return {kind: getattr(found, kind) for kind in KINDS if getattr(found, kind)}


SAME = [(key, key % 3, key, b"content %d" % key) for key in range(8)]


def test_equal_packs_in_any_order(two):
    found = two(SAME, SAME)
    assert found.equal and found.same == 8 and found.same_order and not found.examples
    found = two(SAME, SAME[::-1])
    assert found.equal and not found.same_order
    assert "in another order" in str(found)


@pytest.mark.parametrize(
    ("row", "kind", "said"),
    [
        ((3, 9, 3, b"content 3"), "labels", "key 3: 0 -> 9"),
        ((3, [1, 2], 3, b"content 3"), "labels", "key 3: 0 -> [1, 2]"),
        ((3, 0, 2**63, b"content 3"), "ids", f"key 3: 3 -> {2**63}"),
        ((3, 0, 3, b"another"), "content", "key 3"),
        ((3, 5, 7, b""), "content", "key 3"),
        ((30, 0, 3, b"content 3"), "moved", "key 3 -> 30"),
        ((30, 5, 9, b"content 3"), "moved", "key 3 -> 30"),
    ],
)
def test_one_record_differs(two, row, kind, said):
    found = two(SAME, [row if old[0] == 3 else old for old in SAME])
    assert counts(found) == {kind: 1} and found.same == 7 and not found.equal
    assert [str(example) for example in found.examples] == [said]


def test_records_of_one_pack_only(two):
    found = two(SAME[:6], SAME[2:])
    assert counts(found) == {"only_a": 2, "only_b": 2}
    assert [(row.key_a, row.key_b) for row in found.examples] == [
        (0, None),
        (1, None),
        (None, 6),
        (None, 7),
    ]
    assert "b.rec: 2" in str(found).splitlines()[-3]


def test_a_label_vector_and_the_high_half_of_an_id_count(two, tmp_path):
    rows = [(0, [1, 2], 0, b"x")]
    assert two(rows, rows).equal
    assert counts(two(rows, [(0, [1, 3], 0, b"x")])) == {"labels": 1}
    a, b = tmp_path / "c.rec", tmp_path / "d.rec"
    for path, high in ((a, 0), (b, 5)):
        with RecordWriter(path) as writer:
            writer.write(pack(IRHeader(0, 1, 2, high), b"\xff\xd8\xff"))
    found = recordio.diff(a, b)
    assert counts(found) == {"ids": 1} and found.examples[0].b == 2 | 5 << 64


def test_a_moved_content_takes_the_one_with_its_labels(two):
    a = [(0, 1, 0, b"same"), (1, 2, 0, b"same"), (2, 0, 0, b"stays")]
    b = [(2, 0, 0, b"stays"), (8, 2, 0, b"same"), (9, 1, 0, b"same")]
    found = two(a, b)
    assert counts(found) == {"moved": 2}
    assert [(row.key_a, row.key_b) for row in found.examples] == [(0, 9), (1, 8)]


def test_nothing_is_lost_by_a_split_and_a_join(two, tmp_path):
    write(tmp_path / "whole.rec", SAME)
    halves = {tmp_path / "x.rec": 0.5, tmp_path / "y.rec": 0.5}
    recordio.split(tmp_path / "whole", halves, seed=1)
    recordio.join(list(halves), tmp_path / "joined.rec")
    found = recordio.diff(tmp_path / "whole", tmp_path / "joined")
    assert found.moved and found.complete and not found.equal and "nothing lost" in str(found)

    found = two(SAME, SAME)
    assert found.equal and found.complete and "nothing lost" not in str(found)
    found = two(SAME, SAME[1:])
    assert found.only_a == 1 and not found.complete and "nothing lost" not in str(found)


def test_contents_under_another_key_with_other_labels_are_counted(two):
    found = two([(0, 1, 0, b"a"), (1, 2, 1, b"b")], [(5, 1, 0, b"a"), (6, 3, 1, b"b")])
    assert (found.moved, found.moved_labels, found.complete) == (2, 1, False)
    assert "under another key: 2, 1 of them with other labels" in str(found)


def test_renumbered_packs_with_identities(packs):
    a, b = packs.faces("a", [2, 0, 3]), packs.faces("b", [2, 1, 3])
    assert recordio.diff(a, a).equal
    found = recordio.diff(a, b)
    assert not found.equal and found.records_a == 9 and found.records_b == 10
    assert found.labels >= 1  # record 0 lists other keys


def test_records_without_header_and_packs_without_index(packs):
    a = packs.raw("a", [b"one", b"", b"three" * 20], index=False)
    b = packs.raw("b", [b"one", b"", b"three" * 20])
    assert recordio.diff(a, b).equal
    c = packs.raw("c", [b"one", b"two"], index=False)
    assert counts(recordio.diff(a, c)) == {"content": 1, "only_a": 1}
    assert counts(recordio.diff(a, packs.raw("d", []))) == {"only_a": 3}


def test_no_more_examples_than_asked_for(packs):
    a, b = packs.plain("a", [1] * 9), packs.plain("b", [2] * 9)
    found = recordio.diff(a, b, examples=2)
    labels = [row for row in found.examples if row.kind == "labels"]
    assert found.labels > 2 and len(labels) == 2 and f"and {found.labels - 2} more" in str(found)
    assert recordio.diff(a, b, examples=0).examples == ()
    with pytest.raises(ValueError, match="examples=-1"):
        recordio.diff(a, b, examples=-1)


def test_as_json(two):
    found = two(SAME, SAME[1:])
    said = json.loads(json.dumps(found.as_dict()))
    found = two([(0, [np.nan, 1], 0, b"x")], [(0, -np.inf, 0, b"x")]).as_dict()
    found = json.loads(json.dumps(found, allow_nan=False))["examples"][0]
    assert found["a"] == ["nan", 1] and found["b"] == "-inf"
    assert said["equal"] is False and said["only_a"] == 1 and said["examples"][0]["key_a"] == 0


def test_damage_is_named(packs):
    a = packs.plain("a", range(9))
    b = packs.plain("b", range(9))
    data = bytearray(b.read_bytes())
    data[-40] ^= 255
    b.write_bytes(data[:-8])
    with pytest.raises(recordio.RecordIOError, match=r"b\.rec, offset \d+"):
        recordio.diff(a, b)
    with pytest.raises(recordio.RecordIOError, match=r"missing\.rec: there is no such file"):
        recordio.diff(a, packs.path("missing"))


def test_progress_counts_both(packs):
    seen = []
    recordio.diff(
        packs.plain("a", range(30)),
        packs.plain("b", range(20)),
        progress=lambda *words: seen.append(words),
    )
    assert seen[-1] == (50, 50)


rows = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.sampled_from([b"", b"x", b"y"])
    ),
    max_size=7,
)


@given(a=rows, b=rows)
def test_every_record_is_counted_once(a, b, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    found = recordio.diff(write(folder / "a.rec", a), write(folder / "b.rec", b), examples=9)
    both = found.same + found.labels + found.ids + found.content + found.moved
    assert both + found.only_a == len(a) and both + found.only_b == len(b)
    assert len(found.examples) == sum(counts(found).values())

    def by_key(rows):
        result = {}
        for key, *rest in rows:
            result.setdefault(key, []).append(rest)
        return result

    assert found.equal == (by_key(a) == by_key(b))
    back = recordio.diff(folder / "b.rec", folder / "a.rec")
    assert (back.same, back.labels, back.ids) == (found.same, found.labels, found.ids)
    assert back.only_a == found.only_b and back.moved == found.moved


def test_many_records_in_several_threads(packs):
    labels = np.arange(3000) % 7
    a, b = packs.plain("a", labels), packs.plain("a2", labels)
    expected = recordio.diff(a, b, threads=1)
    assert recordio.diff(a, b, threads=5).as_dict() == expected.as_dict()
