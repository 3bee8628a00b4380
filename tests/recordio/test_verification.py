"""Verification sets: pickles of every protocol as data, and nothing in them is ever run."""

import datetime
import os
import pickle
import pickletools
import struct
import tracemalloc

import numpy as np
import pytest

from recordio import VerificationFileError
from recordio.pickled import FEWEST_OPCODES, STEPS, is_pickle
from recordio.verification import VerificationSet, is_verification_set

IMAGES = [bytes([255, 216, n]) + n.to_bytes(2, "little") * 200 for n in range(6)]
SAME = [True, False, True]


def written(path, content):
    path = path / "lfw.bin"
    path.write_bytes(content)
    return path


def python_2(images=IMAGES, same=b"\x88\x89\x88", text=b"T"):
    """What cPickle of Python 2 writes with protocol 2; texts are bytes."""
    form = {b"T": "<i", b"U": "<B"}[text]
    body = b"".join(
        text + struct.pack(form, len(image)) + image + b"r" + struct.pack("<I", number)
        for number, image in enumerate(images)
    )
    return b"\x80\x02]q\x00(" + body + b"e]q\x01(" + same + b"e\x86q\x02."


def python_2_of_protocol_0():
    """The same with protocol 0: texts as their source shows them."""
    images = "".join(f"S{repr(image)[1:]}\np{i + 9}\na" for i, image in enumerate(IMAGES))
    flags = "".join(f"I0{int(same)}\na" for same in SAME)
    return f"((lp1\n{images}(lp2\n{flags}tp3\n.".encode("latin-1")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "change",
    [
        lambda images, same: (images, same),
        lambda images, same: (images, tuple(same)),
        lambda images, same: (images, [int(one) for one in same]),
        lambda images, same: (images, np.array(same)),
        lambda images, same: (images, list(np.array(same))),
        lambda images, same: (images, np.array(same, np.int64)),
        lambda images, same: ([np.frombuffer(one, np.uint8) for one in images], same),
        lambda images, same: ([np.array(list(one), np.uint8)[:, None] for one in images], same),
    ],
    ids=["lists", "tuples", "0 and 1", "array", "scalars", "int64", "arrays", "columns"],
)
def test_sets_of_every_protocol(tmp_path, protocol, change):
    content = pickle.dumps(change(IMAGES, SAME), protocol)
    path = written(tmp_path, content)
    pairs = VerificationSet(path)
    assert is_verification_set(path)
    assert list(pairs.images) == IMAGES
    assert pairs.images[1:3] == IMAGES[1:3]
    assert pairs.images[-1] == IMAGES[-1]
    assert pairs.same.tolist() == SAME
    assert (pairs.same.dtype, len(pairs)) == (np.dtype(bool), 3)


@pytest.mark.parametrize("content", [python_2(), python_2_of_protocol_0()], ids=["2", "0"])
def test_what_python_2_wrote(tmp_path, content):
    assert pickle.loads(content, encoding="bytes") == (IMAGES, SAME)
    pairs = VerificationSet(written(tmp_path, content))
    assert list(pairs.images) == IMAGES
    assert pairs.same.tolist() == SAME


def test_texts_that_can_be_changed(tmp_path):
    path = written(tmp_path, pickle.dumps(([bytearray(one) for one in IMAGES], SAME), 5))
    assert list(VerificationSet(path).images) == IMAGES


def test_an_image_that_comes_twice_is_stored_once(tmp_path):
    pairs = VerificationSet(written(tmp_path, pickle.dumps(([IMAGES[0]] * 4, [True, True]))))
    assert list(pairs.images) == [IMAGES[0]] * 4


RAN = []


class Calls:
    def __init__(self, *reduced):
        self.reduced = reduced

    def __reduce__(self):
        return self.reduced


class WithNew:
    def __new__(cls, *given):
        RAN.append(cls)
        return super().__new__(cls)

    def __getnewargs__(self):
        return (1,)


class WithKeywords(WithNew):
    def __getnewargs_ex__(self):
        return (1,), {"a": 1}


def hostile():
    """A pickle for each opcode that could run something, or names anything outside."""
    for protocol in range(6):
        yield f"REDUCE {protocol}", pickle.dumps(Calls(os.system, ("true",)), protocol)
        yield f"GLOBAL {protocol}", pickle.dumps(os.system, protocol)
        yield f"date {protocol}", pickle.dumps(datetime.date(2020, 1, 1), protocol)
    for protocol in (2, 3, 4, 5):
        yield f"NEWOBJ {protocol}", pickle.dumps(object.__new__(WithNew), protocol)
    yield "NEWOBJ_EX", pickle.dumps(object.__new__(WithKeywords), 4)
    yield "INST", b"(S'true'\nios\nsystem\n."
    yield "OBJ", b"(cos\nsystem\nS'true'\no."
    yield "PERSID", b"Pother\n."
    yield "BINPERSID", b"\x80\x02U\x05otherQ."
    yield "EXT1", b"\x80\x02\x82\x01."
    yield "EXT2", b"\x80\x02\x83\x01\x00."
    yield "EXT4", b"\x80\x02\x84\x01\x00\x00\x00."
    yield "BUILD", b"\x80\x02]}b."
    yield "REDUCE of a list", b"\x80\x02])R."
    yield "REDUCE of a name's name", b"\x80\x02c_codecs\nencode\n]R."
    yield "STACK_GLOBAL", b"\x80\x04\x8c\x02os\x8c\x06system\x93."
    yield "STACK_GLOBAL of parts", b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.ctypes\x93."
    yield "STACK_GLOBAL of objects", b"\x80\x04]]\x93."
    yield "NEXT_BUFFER", b"\x80\x05\x97."
    yield "sets", pickle.dumps({1, 2}, 4)
    yield "floats", pickle.dumps(1.5)
    yield "LONG4", b"\x80\x02\x8b\xff\xff\xff\x7f" + b"\xff" * 100 + b"."
    yield "DUP", b"\x80\x02]2."
    yield "POP", b"\x80\x02]]0."
    yield "unknown", b"\x80\x02\xff."


@pytest.mark.parametrize(("name", "content"), [*hostile()], ids=lambda value: str(value)[:20])
@pytest.mark.parametrize("inside", [False, True])
def test_nothing_is_run(tmp_path, name, content, inside, monkeypatch, capfd):
    ran = []
    monkeypatch.setattr(os, "system", lambda *given: ran.append(given))
    if inside:  # in the place of an image, behind what is good
        content = python_2(IMAGES[:5])[:-9] + content[2 if content[:1] == b"\x80" else 0 :]
    with pytest.raises(VerificationFileError) as caught:
        VerificationSet(written(tmp_path, content))
    if is_pickle(content[:4]):
        assert caught.value.offset is not None
        assert "opcode " in caught.value.reason
    else:
        assert "no verification set" in caught.value.reason
    assert caught.value.path == str(tmp_path / "lfw.bin")
    assert ran == RAN == []
    assert capfd.readouterr().err == ""


def test_the_message_names_opcode_and_offset(tmp_path):
    content = b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R."
    with pytest.raises(VerificationFileError, match=r"offset 14: opcode STACK_GLOBAL names os.sys"):
        VerificationSet(written(tmp_path, content))


def test_opcodes_that_are_understood_make_no_objects():
    known = {pickletools.code2op[chr(code[0])].name for code in STEPS} | {"STOP"}
    dangerous = "INST OBJ NEWOBJ NEWOBJ_EX EXT1 EXT2 EXT4 PERSID BINPERSID LONG4 NEXT_BUFFER"
    assert known.isdisjoint(dangerous.split())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x80\x04\x95" + b"\xff" * 7 + b"\x7f]].", "ends within"),  # a huge frame
        (b"\x80\x02]r\xff\xff\xff\x7f]\x86.", "no pairs"),  # a place far up in the memo
        (b"\x80\x05\x96" + b"\xff" * 7 + b"\x7f]\x86.", "ends within"),
        (b"\x80\x04\x8e" + b"\xff" * 8 + b".", "ends within"),
        (b"\x80\x04\x8d" + b"\xff" * 8 + b".", "ends within"),
        (b"\x80\x02T\xff\xff\xff\xff.", "bytes"),  # less than nothing
        (b"\x80\x02\x8a\xff" + b"\x01" * 300, "number of 255 bytes"),
        (b"((l" + b"I" + b"9" * 5000 + b"\na.", "5000 characters"),
        (b"\x80\x02" + b"]" * (2 * FEWEST_OPCODES) + b".", "too many"),
        (b"\x80\x04" + b"]\x94" * FEWEST_OPCODES + b".", "too many"),
        (b"\x80\x02" + b"(" * (2 * FEWEST_OPCODES) + b".", "too many"),
        (b"\x80\x02" + b")" + b"\x85" * (2 * FEWEST_OPCODES) + b".", "too many"),
        (b"\x80\x02]q\x00h\x00a]\x86.", "image"),  # a list that holds itself
        (b"\x80\x02h\x00.", "opcode BINGET"),
        (b"\x80\x02e.", "opcode APPENDS"),
        (b"\x80\x02.", "0 objects"),
        (b"\x80\x02]].", "2 objects"),
        (b"\x80\x02].behind", "6 bytes are behind"),
        (b"\x80\x06].", "no verification set"),
        (b"\x80\x05\x80\x09].", "protocol 9"),
        (b"PK\3\4", "no verification set"),
        (b"", "no verification set"),
    ],
)
def test_claims_take_no_memory(tmp_path, content, reason):
    path = written(tmp_path, content)
    tracemalloc.start()
    try:
        with pytest.raises(VerificationFileError, match=reason):
            VerificationSet(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()


def test_an_encoded_text_that_is_used_often_is_kept_once(tmp_path):
    # One text of a megabyte, and a call that would make bytes of it thousands of times.
    text = b"\x80\x04]\x8c\x07_codecs\x8c\x06encode\x93\x94\x8c\x06latin1\x94X\x00\x00\x10\x00"
    content = text + b"a" * (1 << 20) + b"\x94a0"
    content = content[:-2] + b"N" + b"h\x00h\x02h\x01\x86R" * 9000
    tracemalloc.start()
    try:
        with pytest.raises(VerificationFileError):
            VerificationSet(written(tmp_path, content))
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "content", [python_2(), pickle.dumps((IMAGES, SAME)), python_2_of_protocol_0()]
)
def test_truncated_everywhere(tmp_path, content):
    for end in [*range(40), *range(40, len(content), 37), len(content) - 1]:
        with pytest.raises(VerificationFileError):
            VerificationSet(written(tmp_path, content[:end]))


def test_changed_bytes_are_errors_or_other_data(tmp_path):
    rng = np.random.default_rng(0)
    for content in (python_2(), pickle.dumps((IMAGES, np.array(SAME))), python_2_of_protocol_0()):
        for _ in range(300):
            changed = bytearray(content)
            for place in rng.integers(0, len(content), 3):
                changed[place] = rng.integers(0, 256)
            try:
                pairs = VerificationSet(written(tmp_path, bytes(changed)))
            except VerificationFileError:
                continue
            assert len(list(pairs.images)) == 2 * len(pairs)


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ((IMAGES, SAME[:2]), "6 images and says of 2 pairs"),
        ((IMAGES[:5], SAME), "5 images and says of 3 pairs"),
        (([], []), "no pairs"),
        ((IMAGES, SAME, 1), "no two lists"),
        ([1], "no two lists"),
        ((b"image", SAME), "where a list"),
        ((IMAGES, b"\1\0\1"), "no list of truths"),
        ((IMAGES, [True, 2, False]), "pair 1"),
        ((IMAGES, [True, None, False]), "pair 1"),
        ((IMAGES, [True, "yes", False]), "pair 1"),
        ((IMAGES, np.array([[True, False, True]])), "no"),
        ((IMAGES, np.array([0, 1, 7])), "truths"),
        (([*IMAGES[:5], None], SAME), "record 5"),
        (([*IMAGES[:5], 7], SAME), "record 5"),
        (([*IMAGES[:5], np.zeros((4, 4, 3), np.uint8)], SAME), "record 5.*shape"),
        (([*IMAGES[:5], np.zeros(9, np.float32)], SAME), "record 5.*float32"),
        (([*IMAGES[:5], "€"], SAME), "record 5"),
    ],
)
def test_lists_that_are_no_pairs(tmp_path, stored, reason):
    for protocol in (2, 5):
        path = written(tmp_path, pickle.dumps(stored, protocol))
        with pytest.raises(VerificationFileError, match=reason):
            VerificationSet(path)


def test_a_file_that_is_missing(tmp_path):
    with pytest.raises(OSError, match="lfw"):
        VerificationSet(tmp_path / "lfw.bin")
