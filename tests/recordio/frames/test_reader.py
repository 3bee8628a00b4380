"""Records come out of a reader whole, in order and at random, from threads, forks and pickles."""

import gc
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recordio import (
    CorruptRecordError,
    FileKindError,
    IndexFileError,
    KeyNotFoundError,
    RecordIOError,
    RecordReader,
    TruncatedRecordError,
)
from recordio.frames.encoder import MAGIC, encode

PAYLOADS = [b"zero", b"", MAGIC, b"three" + MAGIC, b"fourfour" + MAGIC + MAGIC + b"4", b"five"]
KEYS = [10, -3, 7, 7, 2**62, 0]


@pytest.fixture
def plain(write_records):
    return RecordReader(write_records(PAYLOADS))


@pytest.fixture
def indexed(write_records):
    return RecordReader(*write_records(PAYLOADS, KEYS))


@pytest.fixture(params=["plain", "indexed"])
def reader(request):
    return request.getfixturevalue(request.param)


def test_golden_file(golden, golden_payloads):
    assert [bytes(r) for r in RecordReader(golden / "frames.rec")] == golden_payloads
    reader = RecordReader(golden / "frames.rec", golden / "frames.idx")
    assert [bytes(r) for r in reader] == golden_payloads
    assert [bytes(reader.by_key(key)) for key in reader.keys] == golden_payloads


def test_it_is_a_sequence(reader):
    assert len(reader) == 6
    assert [bytes(record) for record in reader] == PAYLOADS
    for position in range(-6, 6):
        assert bytes(reader[position]) == PAYLOADS[position]
    assert bytes(reader[np.int32(3)]) == PAYLOADS[3]
    assert bytes(reader[np.array(-1)]) == PAYLOADS[-1]


@pytest.mark.parametrize("step", [None, 1, 2, -1, -3])
def test_slices(reader, step):
    bounds = [None, *range(-8, 9)]
    for start in bounds:
        for stop in bounds:
            item = slice(start, stop, step)
            assert [bytes(record) for record in reader[item]] == PAYLOADS[item]


@pytest.mark.parametrize(
    "positions",
    [
        [3, 1],
        [],
        (5,),
        [0, -1, 0],
        np.array([4, 2]),
        np.array([1], np.uint8),
        range(4, 0, -2),
    ],
    ids=str,
)
def test_many_positions(reader, positions):
    expected = [PAYLOADS[position] for position in positions]
    assert [bytes(record) for record in reader[positions]] == expected
    assert [bytes(record) for record in reader.read_many(positions)] == expected


def test_many_more_positions_than_are_located_at_a_time(write_records):
    payloads = [str(number).encode() for number in range(1500)]
    reader = RecordReader(write_records(payloads))
    positions = np.random.default_rng(0).integers(-1500, 1500, 2000)
    expected = [payloads[position] for position in positions]
    assert [bytes(record) for record in reader.read_many(positions)] == expected
    assert gc.isenabled()


def test_the_collector_stays_off_when_it_was_off(reader):
    gc.disable()
    try:
        reader.read_many([0, 1])
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("position", [6, -7, 2**31, 2**63 - 1, -(2**63), 2**63, 2**200])
def test_positions_out_of_range(reader, position):
    with pytest.raises(IndexError):
        reader[position]
    with pytest.raises((IndexError, TypeError)):
        reader.read_many([0, position])


def test_the_wrong_position_is_named(reader):
    with pytest.raises(IndexError, match="position -7 in .*some.rec, which has 6 records"):
        reader.read_many([0, 1, -7, 99])


@pytest.mark.parametrize("item", ["a", 1.0, None, [1.5], [True, False], ["a"], [[0, 1]], [[]]])
def test_positions_must_be_integers(reader, item):
    with pytest.raises(TypeError):
        reader[item]


def test_keys_and_offsets(plain, indexed):
    assert indexed.keys.tolist() == KEYS
    assert plain.keys.tolist() == list(range(6))
    assert plain.offsets.tolist() == indexed.offsets.tolist()
    for array in (plain.keys, plain.offsets, indexed.keys, indexed.offsets):
        assert array.dtype == np.int64
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert [plain.offset_of(position) for position in range(6)] == plain.offsets.tolist()
    for position in (-1, 6):
        with pytest.raises(IndexError):
            plain.offset_of(position)


def test_by_key(plain, indexed):
    assert bytes(indexed.by_key(10)) == PAYLOADS[0]
    assert bytes(indexed.by_key(-3)) == PAYLOADS[1]
    assert bytes(indexed.by_key(7)) == PAYLOADS[3]  # the last of two
    assert bytes(indexed.by_key(np.uint64(2**62))) == PAYLOADS[4]
    assert indexed.position_of(0) == 5
    assert bytes(plain.by_key(4)) == PAYLOADS[4]


@pytest.mark.parametrize("key", [1, -4, 11, 2**63, -(2**70)])
def test_unknown_keys(plain, indexed, key):
    with pytest.raises(KeyNotFoundError, match=f"{key}") as caught:
        indexed.by_key(key)
    assert isinstance(caught.value, KeyError)
    assert caught.value.path == indexed.index_path
    if key != 1:
        with pytest.raises(KeyNotFoundError):
            plain.by_key(key)


@pytest.mark.parametrize("key", ["7", 7.0, None])
def test_keys_must_be_integers(reader, key):
    with pytest.raises(TypeError):
        reader.by_key(key)


def test_records_are_read_only_views_of_the_file(plain):
    single, joined = plain[0], plain[3]
    for record, payload in ((single, PAYLOADS[0]), (joined, PAYLOADS[3])):
        assert type(record) is memoryview
        assert record.readonly
        assert (record.format, record.itemsize, record.ndim) == ("B", 1, 1)
        assert (record.shape, record.strides) == ((len(payload),), (1,))
        assert record.nbytes == len(record) == len(payload)
        assert record.c_contiguous
        assert record == payload
        assert record.tobytes() == payload
        assert bytes(record[1:3]) == payload[1:3]
        assert bytes(record[::-1]) == payload[::-1]
        assert record[-1] == payload[-1]
        assert hash(record) == hash(payload)
        assert np.frombuffer(record, np.uint8).tobytes() == payload
        assert record.cast("H").nbytes == len(payload) if len(payload) % 2 == 0 else True
        with pytest.raises(IndexError):
            record[len(payload)]
        with pytest.raises(TypeError):
            record[0] = 0
    assert plain[0].obj is plain[5].obj  # the map, shared
    assert plain[1].nbytes == 0
    single.release()
    assert plain[0] == PAYLOADS[0]


def test_records_outlive_the_reader(write_records):
    reader = RecordReader(write_records(PAYLOADS))
    records = list(reader)
    reader.close()
    del reader
    gc.collect()
    assert [bytes(record) for record in records] == PAYLOADS


def test_a_closed_reader_says_so(reader):
    iterator = iter(reader)
    next(iterator)
    with reader:
        assert not reader.closed
    reader.close()
    assert reader.closed
    for use in (
        lambda: len(reader),
        lambda: reader[0],
        lambda: reader[0:2],
        lambda: reader.read_many([0]),
        lambda: reader.by_key(0),
        lambda: reader.read_at(0),
        lambda: reader.keys,
        lambda: reader.offsets,
        lambda: reader.check_tail(),
        lambda: iter(reader),
        lambda: next(iterator),
        lambda: pickle.dumps(reader),
        lambda: reader.__enter__(),
    ):
        with pytest.raises(ValueError, match=r"the reader of .*some.rec is closed"):
            use()


def test_a_reader_that_was_never_initialised_is_closed():
    reader = RecordReader.__new__(RecordReader)
    with pytest.raises(ValueError, match="closed"):
        reader[0]
    assert "closed" in repr(reader)


def test_initialising_twice_is_refused(reader):
    with pytest.raises(RuntimeError, match="once"):
        reader.__init__(reader.path)
    reader.close()
    with pytest.raises(RuntimeError, match="once"):
        reader.__init__(reader.path)


def test_an_empty_file_is_an_empty_sequence(write_records):
    path, index = write_records([], [])
    for reader in (RecordReader(path), RecordReader(path, index)):
        assert len(reader) == 0
        assert list(reader) == reader[:] == reader.read_many([]) == []
        assert reader.keys.tolist() == reader.offsets.tolist() == []
        assert reader.read_at(0) == (None, 0)
        with pytest.raises(IndexError):
            reader[0]
        with pytest.raises(KeyNotFoundError):
            reader.by_key(0)


def test_missing_files(tmp_path, write_records):
    with pytest.raises(FileNotFoundError):
        RecordReader(tmp_path / "none.rec")
    with pytest.raises(FileNotFoundError):
        RecordReader(write_records([b"a"]), tmp_path / "none.idx")
    with pytest.raises(IsADirectoryError):
        RecordReader(tmp_path)


def test_the_index_decides_order_and_selection(write_records, tmp_path):
    path = write_records([b"0000", b"1111", b"2222"])
    index = tmp_path / "part.idx"
    index.write_text("5\t24\n9\t0\n")
    reader = RecordReader(path, index, selection=True)
    assert len(reader) == 2
    assert [bytes(record) for record in reader] == [b"2222", b"0000"]
    assert bytes(reader.by_key(9)) == b"0000"


SIX = [b"0000", b"1111", MAGIC + b"22", b"3", b"4444", MAGIC * 2]


@pytest.mark.parametrize("count", range(6))
def test_an_index_that_ends_early_is_refused(write_records, count):
    path, index = write_records(SIX, range(6))
    lines = index.read_text().splitlines(True)
    index.write_text("".join(lines[count - 1 :: -1]) if count else "")  # in whichever order
    with pytest.raises(IndexFileError) as caught:
        RecordReader(path, index)
    assert caught.value.path == str(index)
    assert f"`recordio index {path} --force`" in str(caught.value)
    assert ("lists no record" if not count else "the last record that it lists ends at") in str(
        caught.value
    )
    reader = RecordReader(path, index, selection=True)
    assert [bytes(record) for record in reader] == (SIX[count - 1 :: -1] if count else [])
    assert len(pickle.loads(pickle.dumps(reader))) == count


def test_an_index_that_lists_a_record_twice_is_refused(write_records):
    path, index = write_records(SIX, range(6))
    lines = index.read_text().splitlines()
    index.write_text("\n".join(lines[:4] + [f"{key}\t{lines[key][2:]}" for key in (1, 2)]))
    with pytest.raises(IndexFileError, match="again, and lists 1 more such lines") as caught:
        RecordReader(path, index)
    assert caught.value.line == 5
    assert len(RecordReader(path, index, selection=True)) == 6


def test_an_index_of_another_file_is_told_from_damage(write_records):
    other = write_records([bytes(number) for number in range(9)], range(9), "other.rec")[1]
    path, _ = write_records([bytes(100)] * 6, range(6))
    with pytest.raises(IndexFileError, match=r"nor at others .* of another file"):
        RecordReader(path, other)
    for damaged in (0, 1, 4, 5):  # the record is damaged, not the index
        path, index = write_records(SIX, range(6))
        offset = int(index.read_text().splitlines()[damaged][2:])
        data = bytearray(path.read_bytes())
        data[offset : offset + 4] = b"junk"
        path.write_bytes(data)
        reader = RecordReader(path, index)
        with pytest.raises(CorruptRecordError):
            reader[damaged]


@pytest.mark.parametrize("more", [bytes(8), b"junk", encode(b"more")[:-4]])
def test_what_follows_the_last_listed_record_is_noticed(write_records, more):
    path, index = write_records(SIX, range(6))
    with open(path, "ab") as file:
        file.write(more)
    with pytest.raises(IndexFileError, match="ends at"):
        RecordReader(path, index)


@pytest.mark.parametrize("offset", [12, 16, 2**60])
def test_an_index_that_leads_outside_is_refused_at_once(write_records, tmp_path, offset):
    index = tmp_path / "wrong.idx"
    index.write_text(f"0\t0\n1\t{offset}\n")
    with pytest.raises(IndexFileError, match="lies outside") as caught:
        RecordReader(write_records([b"0000"]), index)
    assert (caught.value.path, caught.value.line) == (str(index), 2)


def test_an_index_that_leads_between_heads_is_noticed(write_records, tmp_path):
    index = tmp_path / "wrong.idx"
    index.write_text("0\t0\n1\t4\n")
    reader = RecordReader(write_records([b"0000"]), index)
    assert bytes(reader[0]) == b"0000"
    for read in (lambda: reader[1], lambda: reader.read_many([0, -1]), lambda: list(reader)):
        with pytest.raises(CorruptRecordError, match="index") as caught:
            read()
        assert (caught.value.offset, caught.value.record) == (4, 1)


def test_records_before_damage_are_delivered_and_the_error_repeats(tmp_path):
    path = tmp_path / "damaged.rec"
    path.write_bytes(encode(b"one") + encode(b"two") + encode(b"truncated")[:-4])
    reader = RecordReader(path)
    iterator = iter(reader)
    assert bytes(next(iterator)) == b"one"
    assert bytes(next(iterator)) == b"two"
    for _ in range(3):
        with pytest.raises(TruncatedRecordError) as caught:
            next(iterator)
        assert (caught.value.path, caught.value.offset, caught.value.record) == (str(path), 24, 2)
    for use in (lambda: len(reader), lambda: reader[0], lambda: reader.offsets):
        with pytest.raises(TruncatedRecordError):
            use()


@pytest.mark.parametrize("cut", range(1, 100))
def test_truncation_at_every_byte(tmp_path, cut):
    frames = [encode(payload) for payload in PAYLOADS]
    data = b"".join(frames)
    boundaries = {sum(map(len, frames[:count])): count for count in range(len(frames) + 1)}
    if cut >= len(data):
        pytest.skip("the file is shorter")
    path = tmp_path / "cut.rec"
    path.write_bytes(data[:cut])
    iterator = iter(RecordReader(path))
    whole = max(count for offset, count in boundaries.items() if offset <= cut)
    assert [bytes(next(iterator)) for _ in range(whole)] == PAYLOADS[:whole]
    with pytest.raises(StopIteration if cut in boundaries else TruncatedRecordError):
        next(iterator)


@given(st.binary(max_size=60), st.integers(0, 30))
@example(junk=b"\xffO\xffQ", place=0)  # the first bytes of a JPEG 2000 image
def test_arbitrary_bytes_give_records_or_a_typed_error(tmp_path_factory, junk, place):
    data = bytearray(b"".join(map(encode, PAYLOADS)))
    data[4 * place : 4 * place] = junk
    path = tmp_path_factory.mktemp("junk") / "junk.rec"
    path.write_bytes(data)
    try:
        with RecordReader(path) as reader:
            for record in reader:
                bytes(record)
    except FileKindError:
        assert place == 0 and junk
    except RecordIOError as error:
        assert error.path == str(path)
        assert 0 <= error.offset <= len(data)


def test_read_at_follows_the_file(plain):
    offset, payloads = 0, []
    while True:
        payload, offset = plain.read_at(offset)
        if payload is None:
            break
        payloads.append(bytes(payload))
    assert payloads == PAYLOADS
    for wrong in (-4, 2, 10**6):
        with pytest.raises(CorruptRecordError):
            plain.read_at(wrong)
    with pytest.raises(CorruptRecordError) as caught:
        plain.read_at(4, 17)
    assert caught.value.record == 17


def test_check_tail(plain, tmp_path):
    assert plain.check_tail() == os.path.getsize(plain.path)
    assert plain.check_tail(12, 1) == os.path.getsize(plain.path)
    path = tmp_path / "tail.rec"
    path.write_bytes(encode(b"a") + bytes(4))
    with pytest.raises(CorruptRecordError) as caught:
        RecordReader(path).check_tail(0, 5)
    assert (caught.value.offset, caught.value.record) == (12, 6)


def test_iterations_are_independent(reader):
    first, second = iter(reader), iter(reader)
    assert bytes(next(first)) == bytes(next(second)) == PAYLOADS[0]
    assert len(list(first)) == 5
    assert len(list(second)) == 5
    assert next(first, None) is None
    assert iter(first) is first


def test_many_records_iterate_in_order(write_records):
    payloads = [str(number).encode() * (number % 5) for number in range(1000)]
    path, index = write_records(payloads, range(1000))
    assert [bytes(record) for record in RecordReader(path)] == payloads
    assert [bytes(record) for record in RecordReader(path, index)] == payloads


def test_pickling_keeps_paths_only(reader):
    list(reader)
    copy = pickle.loads(pickle.dumps(reader))
    assert (copy.path, copy.index_path) == (reader.path, reader.index_path)
    assert [bytes(record) for record in copy] == PAYLOADS
    assert not reader.closed


def test_repr_names_the_files(plain, indexed):
    assert repr(plain) == f"RecordReader({plain.path!r})"
    assert repr(indexed) == f"RecordReader({indexed.path!r}, index={indexed.index_path!r})"


def run_threads(count, work):
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(work, range(count)))


def test_threads_share_a_reader(write_records):
    payloads = [
        bytes([number % 251]) * (number % 97) + MAGIC * (number % 3) for number in range(2000)
    ]
    path, index = write_records(payloads, np.random.default_rng(1).permutation(2000))
    for reader in (RecordReader(path), RecordReader(path, index)):
        keys = [] if reader.index_path is None else (index.read_text().split()[::2])

        def work(number, reader=reader, keys=keys):
            order = np.random.default_rng(number).permutation(2000)
            for position, record in zip(order, reader.read_many(order), strict=True):
                assert record == payloads[position]
            for position in order[:300]:
                assert reader[position] == payloads[position]
                key = int(keys[position]) if keys else position
                assert reader.by_key(key) == payloads[position]
            assert all(a == b for a, b in zip(reader, payloads, strict=True))

        run_threads(8, work)


def test_threads_that_share_an_iterator_get_each_record_once_or_are_told(write_records):
    payloads = [b"%d" % number for number in range(20_000)]
    path, index = write_records(payloads, range(len(payloads)))
    for reader in (RecordReader(path), RecordReader(path, index)):
        records, found, started = iter(reader), [], threading.Barrier(8)

        def work(number, records=records, found=found, started=started):
            started.wait()
            while True:
                try:
                    found.append(bytes(next(records)))
                except StopIteration:
                    break
                except ValueError as error:
                    assert "give each its own" in str(error)

        run_threads(8, work)
        assert sorted(found, key=int) == payloads


def test_closing_while_threads_read_ends_them_cleanly(write_records):
    reader = RecordReader(write_records([b"x" * 100] * 1000))
    len(reader)
    started = threading.Barrier(5)

    def work(number):
        started.wait()
        if number == 4:
            reader.close()
            return
        try:
            while True:
                assert reader.read_many(range(1000))[-1] == b"x" * 100
                assert sum(len(record) for record in reader) == 100_000
        except ValueError as error:
            assert "closed" in str(error)

    run_threads(5, work)


def read_in_child(reader, connection):
    connection.send([bytes(record) for record in reader] + [bytes(reader[2]), len(reader)])
    connection.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_read_with_the_parents_reader(reader, method):
    context = get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=read_in_child, args=(reader, sender))
    child.start()
    sender.close()
    assert receiver.recv() == [*PAYLOADS, PAYLOADS[2], 6]
    child.join()
    assert child.exitcode == 0
    assert [bytes(record) for record in reader] == PAYLOADS


def test_offsets_beyond_four_gigabytes(tmp_path):
    # A hole of zeros stands between two records; only the index knows the second one.
    path, index = tmp_path / "sparse.rec", tmp_path / "sparse.idx"
    far = 5 * 2**30
    with open(path, "wb") as file:
        file.write(encode(b"near"))
        file.seek(far)
        file.write(encode(b"far" + MAGIC) + encode(b"cd" + bytes(2) + MAGIC))
    index.write_text(f"1\t0\n2\t{far}\n3\t{far + 16}\n")
    with RecordReader(path, index) as reader:
        assert [bytes(record) for record in reader][:2] == [b"near", b"far" + MAGIC]
        assert bytes(reader.by_key(3)) == b"cd" + bytes(2) + MAGIC
        assert reader.offsets.tolist() == [0, far, far + 16]
        assert reader.check_tail(far) == os.path.getsize(path)
    with pytest.raises(CorruptRecordError, match="zero bytes") as caught:
        len(RecordReader(path))
    assert (caught.value.offset, caught.value.record) == (12, 1)
