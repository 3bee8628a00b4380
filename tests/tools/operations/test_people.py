"""What commands say of people, of parts and of remedies."""

import json
import os

import pytest

import recordio
from iterators.testing import write_faces
from recordio.tools.cli import main
from recordio.tools.console import with_commands


@pytest.fixture
def faces(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_faces("faces.rec", [3, 4, 5, 4])


def said(capsys, *words, code=0):
    assert main([*words]) == code
    found = capsys.readouterr()
    return found.out + found.err


def test_parts_by_identity(faces, capsys):
    for by in ("class", "identity"):
        text = said(
            capsys, "split", "faces", "one=0.5", "two=0.5", "--by", by, "--seed", "1", "--force"
        )
        assert text.count("of 2 people (4 are listed)") == 2
        assert "note" not in text
    before = recordio.RecordReader("one.rec").read_many([0])[0]
    assert bytes(before)
    text = said(capsys, "split", "faces", "one=0.5", "two=0.5", "--force")
    assert "people have images in more than one" in text and "--by identity" in text


def test_other_packs_have_no_identities(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with recordio.RecordWriter("a.rec") as writer:
        for label in range(4):
            writer.write(recordio.pack((0, float(label), label, 0), b"x"))
    text = said(capsys, "split", "a", "one=0.5", "two=0.5", "--by", "identity", code=1)
    assert "by='class' divides by labels" in text
    assert not os.path.exists("one.rec")


def test_info_counts_labels_of_images(faces, capsys):
    text = said(capsys, "info", "faces")
    assert "labels      16 x 1 each\n" in text
    assert "the first from 0 to 3, 4 distinct" in text
    assert "identities  4, listed by 5 records: a face pack" in text
    os.unlink("faces.idx")
    found = json.loads(said(capsys, "info", "faces.rec", "--json"))
    assert (found["labels"]["distinct"], found["listing"], found["identities"]) == (4, 5, 4)


def test_a_manifest_by_its_short_name(faces, capsys):
    said(capsys, "shard", "faces", "shards", "2")
    assert "2 files" in said(capsys, "check-shards", "shards")


def test_dedup_takes_a_prefix_as_other_commands_do(faces, capsys):
    assert "wrote unique.rec" in said(capsys, "dedup", "faces", "unique")
    assert "wrote again.rec" in said(capsys, "dedup", "faces", "--remove", "again")
    assert "exists already" in said(capsys, "dedup", "faces", "unique", code=1)
    said(capsys, "dedup", "faces", "unique", "--force")


def test_remedies_are_commands(faces, capsys):
    with open("faces.rec", "r+b") as file:
        file.truncate(os.path.getsize("faces.rec") - 10)
    for words in (["info", "faces"], ["filter", "faces", "b", "--where", "label == 1"]):
        text = said(capsys, *words, code=1)
        assert "recordio." not in text.replace("recordio.rec", "")


def test_functions_in_messages_become_commands():
    text = with_commands("recordio.repair() or recordio.build_index()")
    assert text == "`recordio check --repair PREFIX` or `recordio index`"
