"""`im2rec --optimize` and `recordio optimize`: what is rewritten, kept and counted."""

import os
import signal
import subprocess
import sys

import cv2
import numpy as np
import pytest

from iterators import ImageRecordIter
from recordio import IRHeader, RecordReader, RecordWriter, pack, unpack
from recordio.errors import RecordIOError
from recordio.formats.jpeg import MISSING, jpeg
from recordio.frames.encoder import MAGIC
from recordio.frames.index_file import read_index
from recordio.tools import optimize as optimize_module
from recordio.tools.encode import EncodeOptions
from recordio.tools.im2rec import main as im2rec_main
from recordio.tools.optimize import Tally, optimize_image, optimize_records

pytestmark = pytest.mark.libjpeg
posix_only = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")
COMMAND = [sys.executable, "-m", "recordio.tools.cli"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def photo(seed, size=(200, 240), **options):
    random = np.random.default_rng(seed)
    image = cv2.resize(random.integers(0, 256, (20, 24, 3), np.uint8), size[::-1])
    flags = [value for name, number in options.items() for value in (getattr(cv2, name), number)]
    return cv2.imencode(".jpg", image, flags)[1].tobytes()


def progressive(seed, size=(200, 240)):
    return photo(seed, size, IMWRITE_JPEG_PROGRESSIVE=1)


def write_pack(prefix, records):
    """Records are bytes, or pairs of key and bytes."""
    with RecordWriter(f"{prefix}.rec", f"{prefix}.idx") as writer:
        for record in records:
            key, record = record if isinstance(record, tuple) else (None, record)
            writer.write(record, key)
    return prefix


def read_pack(prefix):
    with RecordReader(f"{prefix}.rec", f"{prefix}.idx") as reader:
        keys = reader.keys.tolist()
        return dict(zip(keys, map(bytes, reader), strict=True))


@pytest.fixture
def mixed(tmp_path):
    """A pack with everything: photographs, other images, damage, no images, several parts."""
    good = progressive(0)
    with_magic = good[:2] + b"\xff\xfe\x00\x0e" + MAGIC * 3 + good[2:]
    records = [
        pack(IRHeader(0, 3.0, 70, 0), good),
        (900, pack(IRHeader(0, [1.0, 2.5, -1.0], 71, 5), progressive(1))),
        pack(IRHeader(0, 4.0, 72, 0), photo(2, (40, 40))),
        pack(IRHeader(0, 4.0, 73, 0), good[:-40]),
        pack(IRHeader(0, 4.0, 74, 0), cv2.imencode(".png", np.zeros((9, 9), "u1"))[1].tobytes()),
        (-5, b"some text"),
        b"",
        pack(IRHeader(0, 5.0, 75, 0), with_magic),
        good,  # without an image header
    ]
    return write_pack(tmp_path / "mixed", records)


def same_pixels(one, two):
    return np.array_equal(
        cv2.imdecode(np.frombuffer(one, "u1"), -1), cv2.imdecode(np.frombuffer(two, "u1"), -1)
    )


def test_headers_labels_keys_and_order_stay(mixed, tmp_path, command, capsys):
    assert command("optimize", mixed, tmp_path / "out") == 0
    before, after = read_pack(mixed), read_pack(tmp_path / "out")
    assert list(before) == list(after)
    changed = []
    for number, key in enumerate(before):
        if before[key] == after[key]:
            continue
        changed.append(number)
        if number == 8:
            assert same_pixels(before[key], after[key])
            continue
        (old_header, old), (header, new) = unpack(before[key]), unpack(after[key])
        assert (header.id, header.id2, header.flag) == old_header[2:] + (old_header.flag,)
        assert np.array_equal(header.label, old_header.label)
        assert same_pixels(old, new)
        assert jpeg.header(old).progressive
        assert not jpeg.header(new).progressive
    assert changed == [0, 1, 7, 8]
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"recordio: wrote {tmp_path / 'out.rec'}: 9 records, ")
    assert lines[1].startswith("recordio: rewrote 4 JPEG images without loss: 0.")
    assert lines[2] == (
        "recordio: left 5 as they were: 3 not a JPEG image, 1 nothing to gain, 1 truncated"
    )
    assert command("check", tmp_path / "out") == 0


def test_the_output_does_not_depend_on_the_number_of_threads(tmp_path, command):
    records = [pack(IRHeader(0, i, i, 0), progressive(i)) for i in range(40)]
    prefix = write_pack(tmp_path / "in", records)
    for threads in (1, 2, 7):
        assert command("optimize", prefix, tmp_path / f"out{threads}", "--threads", threads) == 0
    for suffix in ("rec", "idx"):
        assert len({(tmp_path / f"out{n}.{suffix}").read_bytes() for n in (1, 2, 7)}) == 1


def test_a_second_time_changes_nothing(mixed, tmp_path, command):
    assert command("optimize", mixed, tmp_path / "a") == 0
    assert command("optimize", tmp_path / "a.rec", tmp_path / "b.rec") == 0
    for suffix in ("rec", "idx"):
        first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab")
        assert first == second


def test_a_pack_without_index_gets_positions_as_keys(mixed, tmp_path, command):
    (tmp_path / "mixed.idx").unlink()
    assert command("optimize", mixed, tmp_path / "out") == 0
    assert read_index(tmp_path / "out.idx")[0].tolist() == list(range(9))


def test_the_lines_of_the_index_are_kept_whatever_they_list(mixed, tmp_path, command):
    """Another order, records that are not listed, records that are listed twice."""
    keys, offsets = read_index(tmp_path / "mixed.idx")
    chosen = [8, 1, 1, 5, 0]
    text = "".join(f"{n}\t{offsets[i]}\n" for n, i in enumerate(chosen))
    (tmp_path / "mixed.idx").write_text(text)
    assert command("optimize", mixed, tmp_path / "out") == 0
    with RecordReader(tmp_path / "out.rec") as reader:
        assert len(reader) == 9
        new = reader.offsets
    lines, places = read_index(tmp_path / "out.idx")
    assert lines.tolist() == list(range(5))
    assert places.tolist() == new[chosen].tolist()


def test_an_index_of_another_file_is_refused(mixed, tmp_path, command, capsys):
    before = names(tmp_path)
    (tmp_path / "mixed.idx").write_text("0\t0\n1\t8\n")
    assert command("optimize", mixed, tmp_path / "out") == 1
    assert "mixed.idx, line 2: no record begins at offset 8" in capsys.readouterr().err
    assert names(tmp_path) == before


def test_a_damaged_pack_is_refused(mixed, tmp_path, command, capsys):
    before = names(tmp_path)
    data = (tmp_path / "mixed.rec").read_bytes()
    (tmp_path / "mixed.rec").write_bytes(data[:-8])
    assert command("optimize", mixed, tmp_path / "out") == 1
    assert "mixed.rec, offset" in capsys.readouterr().err
    assert names(tmp_path) == before


def test_a_face_pack_stays_one(tmp_path, command):
    """Its first record and the identities hold labels alone."""
    images = [pack(IRHeader(0, i // 2, i, 0), progressive(i)) for i in range(1, 5)]
    first = pack(IRHeader(0, np.array([5, 7], "f4"), 0, 0), b"")
    identities = [
        pack(IRHeader(0, np.array(span, "f4"), key, 0), b"")
        for key, span in ((5, [1, 3]), (6, [3, 5]))
    ]
    records = [(0, first), *zip(range(1, 5), images), *zip((5, 6), identities)]
    prefix = write_pack(tmp_path / "faces", records)
    assert command("optimize", prefix, tmp_path / "out") == 0
    before, after = read_pack(prefix), read_pack(tmp_path / "out")
    assert [key for key in before if before[key] != after[key]] == [1, 2, 3, 4]
    with ImageRecordIter(
        path_imgrec=tmp_path / "out.rec", path_imgidx=tmp_path / "out.idx",
        data_shape=(3, 200, 200), batch_size=2,
    ) as batches:  # fmt: skip
        assert batches.num_samples == 4
        assert batches.identities.tolist() == [[1, 3], [3, 5]]


def test_rounded_keys_of_a_face_pack_stay(tmp_path, command):
    first = 42_474_557
    records = [(0, pack(IRHeader(0, [first, first + 3], 0, 0), b""))]
    records += [
        (key, pack(IRHeader(0, number // 2, key, 0), progressive(key)))
        for number, key in enumerate(range(first - 6, first))
    ]
    spans = [[begin, begin + 2] for begin in range(first - 6, first, 2)]
    records += [(first + i, pack(IRHeader(0, s, first + i, 0), b"")) for i, s in enumerate(spans)]
    prefix = write_pack(tmp_path / "faces", records)
    assert command("optimize", prefix, tmp_path / "out") == 0
    for name in ("faces", "out"):
        with ImageRecordIter(
            path_imgrec=tmp_path / f"{name}.rec", path_imgidx=tmp_path / f"{name}.idx",
            data_shape=(3, 200, 200), batch_size=2,
        ) as batches:  # fmt: skip
            assert (batches.num_samples, batches.num_classes) == (6, 3)
            assert batches.identities.tolist() == spans
            assert np.concatenate([batch.label[0] for batch in batches]).tolist() == [
                0,
                0,
                1,
                1,
                2,
                2,
            ]


def test_batches_stay_the_same(tmp_path, command):
    records = [pack(IRHeader(0, i, i, 0), photo(i, (190 + i, 260))) for i in range(12)]
    prefix = write_pack(tmp_path / "in", records)
    assert command("optimize", prefix, tmp_path / "out") == 0
    settings = {"data_shape": (3, 64, 64), "batch_size": 4, "random_resized_crop": True}
    settings |= {"min_random_area": 0.1, "rand_mirror": True, "seed": 5, "shuffle": True}
    found = []
    for name in ("in", "out"):
        paths = {f"path_img{kind}": tmp_path / f"{name}.{kind}" for kind in ("rec", "idx")}
        with ImageRecordIter(**paths, **settings) as batches:
            found.append([(b.data[0].copy(), b.label[0].copy()) for b in batches])
    assert len(found[0]) == 3
    for (data, label), (new_data, new_label) in zip(*found, strict=True):
        assert np.array_equal(data, new_data)
        assert np.array_equal(label, new_label)


@pytest.mark.parametrize(("restart", "interval"), [("0", None), ("5", 5), ("auto", 1)])
def test_the_restart_interval_can_be_chosen(tmp_path, command, restart, interval):
    prefix = write_pack(tmp_path / "in", [progressive(0)])
    assert command("optimize", prefix, tmp_path / "out", "--restart", restart) == 0
    (data,) = read_pack(tmp_path / "out").values()
    at = data.find(b"\xff\xdd\x00\x04")
    assert (at >= 0) == (interval is not None)
    if interval is not None:
        found = int.from_bytes(data[at + 4 : at + 6], "big")
        assert found == interval if restart != "auto" else 2 <= found <= 15


@pytest.mark.parametrize(
    "words",
    [
        ["optimize"],
        ["optimize", "a"],
        ["optimize", "a", "b", "c"],
        ["optimize", "a", "b", "--restart", "often"],
        ["optimize", "a", "b", "--restart", "-1"],
        ["optimize", "a", "b", "--restart", "65536"],
        ["optimize", "a", "b", "--threads", "0"],
        ["optimize", "a", "b", "--threads", "many"],
    ],
)
def test_wrong_words_give_exit_code_2(command, words):
    with pytest.raises(SystemExit) as ended:
        command(*words)
    assert ended.value.code == 2


def test_the_input_is_never_the_output(mixed, tmp_path, command, capsys):
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for target in (mixed, tmp_path / "mixed.rec", tmp_path / "." / "mixed"):
        for force in ([], ["--force"]):
            assert command("optimize", mixed, target, *force) == 1
    assert "would be overwritten" in capsys.readouterr().err
    (tmp_path / "link.rec").symlink_to("mixed.rec")
    os.link(tmp_path / "mixed.rec", tmp_path / "hard.rec")
    for name in ("link", "hard"):
        assert command("optimize", mixed, tmp_path / name, "--force") == 1
        assert "would be overwritten" in capsys.readouterr().err
    assert all(path.read_bytes() == data for path, data in before.items())


def test_existing_files_are_replaced_with_force_alone(mixed, tmp_path, command, capsys):
    for name in ("out.rec", "out.idx"):
        (tmp_path / name).write_text("precious")
        assert command("optimize", mixed, tmp_path / "out") == 1
        assert f"{name}: exists already; --force" in capsys.readouterr().err
        assert (tmp_path / name).read_text() == "precious"
        if name == "out.rec":
            (tmp_path / name).unlink()
    assert command("optimize", mixed, tmp_path / "out", "--force") == 0
    assert command("check", tmp_path / "out") == 0
    assert command("optimize", tmp_path / "none", tmp_path / "x") == 1
    assert command("optimize", mixed, tmp_path / "no" / "x") == 1


def test_an_empty_pack_stays_empty(tmp_path, command):
    prefix = write_pack(tmp_path / "in", [])
    assert command("optimize", prefix, tmp_path / "out") == 0
    assert (tmp_path / "out.rec").read_bytes() == b""
    assert (tmp_path / "out.idx").read_bytes() == b""


def test_an_interruption_leaves_nothing(mixed, tmp_path):
    before = names(tmp_path)
    calls = iter([False, True])
    with pytest.raises(KeyboardInterrupt):
        optimize_records(f"{mixed}.rec", str(tmp_path / "out"), cancelled=lambda: next(calls, True))
    assert names(tmp_path) == before


@pytest.mark.parametrize("arguments", [{"threads": 0}, {"restart": -1}, {"restart": "often"}])
def test_wrong_arguments_are_refused_before_any_work(mixed, tmp_path, arguments):
    before = names(tmp_path)
    with pytest.raises(ValueError):
        optimize_records(f"{mixed}.rec", str(tmp_path / "out"), **arguments)
    assert names(tmp_path) == before


@pytest.fixture
def large(tmp_path):
    """A pack that takes long to optimize."""
    record = pack(IRHeader(0, 0.0, 0, 0), progressive(0, (1000, 1000)))
    return write_pack(tmp_path / "large", [record] * 2000)


@posix_only
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_optimizing_leaves_nothing(large, output, number):
    def default_signals():
        signal.signal(signal.SIGINT, signal.default_int_handler)

    process = subprocess.Popen(
        [*COMMAND, "optimize", str(large), str(output / "t")],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_signals,
    )
    while not list(output.glob("*.rec.*")):  # until it writes
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
    process.send_signal(number)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "interrupted" in messages
    assert "Traceback" not in messages
    assert names(output) == []


@posix_only
def test_a_full_disk_leaves_what_was_there(mixed, output):
    import resource

    (output / "t.rec").write_bytes(b"old")

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = subprocess.run(
        [*COMMAND, "optimize", str(mixed), str(output / "t"), "--force"],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=small_files,
    )
    assert done.returncode == 1
    assert f"recordio: error: {output / 't.rec'}: " in done.stderr
    assert "Traceback" not in done.stderr
    assert names(output) == ["t.rec"]
    assert (output / "t.rec").read_bytes() == b"old"


def test_a_record_that_would_get_too_large_is_an_error(tmp_path, monkeypatch):
    prefix = write_pack(tmp_path / "in", [progressive(0)])
    monkeypatch.setattr(optimize_module, "MAX_RECORD_LENGTH", 100)
    with pytest.raises(RecordIOError, match="too much for one record"):
        optimize_records(f"{prefix}.rec", str(tmp_path / "out"))


# ---- im2rec ----


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "photos"
    root.mkdir()
    for number in range(4):
        (root / f"{number}.jpg").write_bytes(progressive(number))
    pixels = cv2.imdecode(np.frombuffer(photo(4), "u1"), cv2.IMREAD_COLOR)
    (root / "4.png").write_bytes(cv2.imencode(".png", pixels)[1].tobytes())
    (root / "5.jpg").write_bytes(photo(5, (50, 60)))
    return root


def contents_of(prefix):
    return {key: unpack(record) for key, record in read_pack(prefix).items()}


@pytest.mark.parametrize("options", [["--pass-through"], [], ["--resize", "180", "--quality=80"]])
def test_packing_with_optimization(folder, output, capsys, options):
    words = [*options, "--no-shuffle"]
    assert im2rec_main([*words, str(output / "plain"), str(folder)]) == 0
    capsys.readouterr()
    assert im2rec_main([*words, "--optimize", str(output / "fast"), str(folder)]) == 0
    printed = capsys.readouterr().err
    before, after = contents_of(output / "plain"), contents_of(output / "fast")
    assert list(before) == list(after)
    for key in before:
        assert before[key][0] == after[key][0]
        assert same_pixels(before[key][1], after[key][1])
    rewritten = {key for key in before if before[key][1] != after[key][1]}
    assert f"rewrote {len(rewritten)} JPEG images" in printed
    if "--pass-through" in options:
        assert rewritten == {0, 1, 2, 3}
        assert "left 2 as they were: 1 not a JPEG image, 1 nothing to gain" in printed
    else:
        assert rewritten >= {0, 1, 2, 3, 4}
    for key in rewritten:
        assert b"\xff\xdd\x00\x04" in after[key][1]
    assert im2rec_main([*words, str(output / "plain"), str(folder)]) == 0
    assert "rewrote" not in capsys.readouterr().err


def test_packing_does_not_depend_on_the_number_of_threads(folder, output):
    for threads in "13":
        words = ["--optimize", "--num-thread", threads, str(output / threads), str(folder)]
        assert im2rec_main(words) == 0
    assert (output / "1.rec").read_bytes() == (output / "3.rec").read_bytes()


def test_optimization_is_for_jpeg(folder, output, capsys):
    with pytest.raises(SystemExit) as ended:
        im2rec_main(["--optimize", "--encoding", ".png", str(output / "p"), str(folder)])
    assert ended.value.code == 2
    assert "--optimize: it is for JPEG" in capsys.readouterr().err
    with pytest.raises(ValueError, match="optimize"):
        EncodeOptions(optimize=True, encoding=".png")
    assert EncodeOptions(optimize=True, encoding=".png", pass_through=True).optimize


def test_damaged_images_are_stored_as_they_are(folder, output, capsys):
    data = bytearray(progressive(9))
    data[len(data) // 2] ^= 0xFF
    (folder / "9.jpg").write_bytes(data)
    words = ["--pass-through", "--optimize", "--no-shuffle"]
    assert im2rec_main([*words, str(output / "p"), str(folder)]) == 0
    assert contents_of(output / "p")[6][1] == data
    assert "1 damaged" in capsys.readouterr().err


def test_an_older_spelling_works(folder, output):
    assert im2rec_main(["--optimize=1", str(output / "p"), str(folder)]) == 0
    assert im2rec_main(["--optimize", "false", str(output / "q"), str(folder)]) == 0
    assert (output / "p.rec").read_bytes() != (output / "q.rec").read_bytes()


# ---- counting ----


def test_reasons_are_counted_by_frequency():
    tally = Tally()
    for data in (b"", b"no", photo(0, (30, 30))):
        assert optimize_image(data, tally) is data
    assert tally.lines()[1] == "left 3 as they were: 2 not a JPEG image, 1 nothing to gain"
    assert tally.lines()[0].endswith("0.0 MB after (+0.0 %)")
    assert tally.rewritten == 0


def test_without_the_library_both_commands_say_what_to_install(
    mixed, folder, tmp_path, monkeypatch, command, capsys
):
    def unavailable(*arguments):
        raise RecordIOError(MISSING)

    monkeypatch.setattr(optimize_module, "rewrite", unavailable)
    before = names(tmp_path)
    assert command("optimize", mixed, tmp_path / "out") == 1
    assert im2rec_main(["--optimize", str(tmp_path / "p"), str(folder)]) == 1
    errors = capsys.readouterr().err
    assert errors.count("error: recordio was built without libjpeg-turbo: install") == 2
    assert names(tmp_path) == before


def test_bytes_are_compared_for_people():
    tally = Tally()
    tally.count(2_000_000, 1_900_000, "")
    tally.count(500, None, "damaged")
    assert "; ".join(tally.lines()) == (
        "rewrote 1 JPEG images without loss: 2.0 MB before, 1.9 MB after (-5.0 %); left 1 as they"
        " were: 1 damaged"
    )
