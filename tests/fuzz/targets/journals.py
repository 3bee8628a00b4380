"""Journals of killed runs: text that a run which makes the same goes on from."""

from __future__ import annotations

import os
import random

import numpy as np

from recordio import IRHeader, RecordWriter, pack
from recordio.operations.output import Plan, write_packs
from recordio.packs.scanned_pack import ScannedPack

from .mutate import change_line, near
from .target import Target, clear_folder, scratch

RECORDS = 20
#: Stand for what the journal of this run would say.
SAME, DEVICE, INODE = WORDS = b"SAME", b"DEVICE", b"INODE"


class Run:
    """A run that copies a pack backwards, and what is right."""

    def __init__(self) -> None:
        folder = scratch("journals")
        clear_folder(folder)
        self.folder, self.target = folder, f"{folder}/b.rec"
        with RecordWriter(f"{folder}/a.rec", f"{folder}/a.idx") as writer:
            for number in range(RECORDS):
                writer.write(pack(IRHeader(0, number, number, 0), b"x" * number))
        self.source = ScannedPack(f"{folder}/a.rec")

    def make(self) -> bytes:
        """Make the output; its bytes."""
        order = np.arange(RECORDS)[::-1]
        write_packs([self.source], [Plan(self.target, np.zeros(RECORDS, np.int32), order)])
        with open(self.target, "rb") as file:
            return file.read()

    def fingerprint(self) -> bytes:
        """The first line of its journal."""
        found = []

        def look(done: int, total: int) -> None:
            with open(f"{self.target}.journal.00000000.partial", "rb") as file:
                found.append(file.readline().strip())

        order = np.arange(RECORDS)[::-1]
        plan = Plan(self.target, np.zeros(RECORDS, np.int32), order)
        write_packs([self.source], [plan], progress=look)
        return found[0]


def check(data: bytes) -> None:
    """Whatever a journal says of the first bytes of the output, the output is the same."""
    count, _, text = data.partition(b"\n")
    run = Run()
    with run.source:
        fingerprint, expected = run.fingerprint(), run.make()
        os.unlink(run.target)
        partial = f"{run.target}.00000000.partial"
        written = int(count[:9]) if count[:9].isdigit() else len(expected)
        with open(partial, "wb") as file:
            file.write(expected[:written])
        status = os.stat(partial)
        for name, value in (
            (SAME, fingerprint),
            (DEVICE, b"%d" % status.st_dev),
            (INODE, b"%d" % status.st_ino),
        ):
            text = text.replace(name, value)
        with open(f"{run.target}.journal.00000000.partial", "wb") as file:
            file.write(text)
        assert run.make() == expected
    assert sorted(os.listdir(run.folder)) == ["a.idx", "a.rec", "b.idx", "b.rec"]


def change(data: bytes, draw: random.Random) -> bytes:
    """Another number, or lines gone, twice or exchanged."""
    if draw.random() < 0.5:
        return change_line(data, draw, WORDS, b" ")
    words = data.split(b" ")
    at = draw.randrange(len(words))
    if words[at].isdigit() and len(words[at]) < 20:
        words[at] = b"%d" % near(int(words[at]), draw)
    else:
        words.insert(at, draw.choice([b"0", b"1", b"-4", b"1e3", b"9" * 5000, *WORDS]))
    return b" ".join(words)


JOURNALS = Target("journals", check, change, words=WORDS)
