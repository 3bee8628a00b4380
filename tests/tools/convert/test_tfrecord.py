"""TFRecord files to packs and back."""

import gzip

import pytest

import recordio.convert
from recordio import RecordReader
from recordio.bytes.files import StoredFile
from recordio.containers.tf_example import decode_example
from recordio.containers.tfrecord import masked_crc32c
from recordio.tools.convert.containers import read_frames
from recordio.tools.convert.tf_example import encode_example

#: A file with one example, written with the protobuf and crc32c packages.
KNOWN_FILE = bytes.fromhex(
    "36000000000000004f578cef0a340a0c0a016112070a050a01780a000a150a016312101a0e0a0cffffffffffffffff"
    "ff01ac020a0d0a0162120812060a040000c03ff363a3d3"
)


def framed(*data):
    return b"".join(
        (head := len(item).to_bytes(8, "little"))
        + masked_crc32c(head).to_bytes(4, "little")
        + item
        + masked_crc32c(item).to_bytes(4, "little")
        for item in data
    )


@pytest.fixture
def examples(tmp_path, images):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(
        framed(
            encode_example({"image/encoded": [images.jpeg(20)], "image/class/label": [7]}),
            encode_example({"label": [0.5, 2.0], "image": [images.png(21)], "other": [b"x"]}),
        )
    )
    return path


def test_the_checksum_is_masked_crc32c():
    crc = 0xE3069283  # of b"123456789", the check value of CRC-32C
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert masked_crc32c(b"123456789") == masked


def test_a_file_of_other_software_is_read(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(KNOWN_FILE)
    ((offset, data),) = read_frames(StoredFile(str(path)))
    assert offset == 0
    assert decode_example(data) == {"a": [b"x", b""], "b": [1.5], "c": [-1, 300]}
    assert framed(data) == KNOWN_FILE


def test_an_example_becomes_an_image_record(examples, tmp_path, command, contents, images):
    assert command("from-tfrecord", examples, tmp_path / "t") == 0
    (one, first), (two, second) = contents(tmp_path / "t")
    assert (one.label, two.label.tolist()) == (7, [0.5, 2])
    assert (first, second) == (images.jpeg(20), images.png(21))


def test_features_that_records_do_not_hold_are_counted(examples, tmp_path, command, capsys):
    words = ["from-tfrecord", examples, tmp_path / "t", "--force"]
    assert command(*words) == 0
    assert "note: not stored: 1 other\n" in capsys.readouterr().err
    assert command(*words, "--no-labels") == 0
    said = "note: not stored: 1 image/class/label, 1 label, 1 other\n"
    assert said in capsys.readouterr().err
    assert command(*words, "--raw") == 0
    assert "not stored" not in capsys.readouterr().err


def test_lists_of_a_sequence_example_are_counted(tmp_path, command, images, capsys):
    context = encode_example({"image": [images.jpeg()], "label": [1]})
    # What follows a name differs, and is not looked at.
    lists = b"\x12" + encode_example({"boxes": [b"x"], "label": [b"y"]})[1:]
    (tmp_path / "a").write_bytes(framed(context + lists))
    assert command("from-tfrecord", tmp_path / "a", tmp_path / "t") == 0
    assert "note: not stored: 1 boxes\n" in capsys.readouterr().err


def test_there_and_back_gives_the_same_records(examples, tmp_path, command, images):
    assert command("from-tfrecord", examples, tmp_path / "t") == 0
    back = tmp_path / "b.tfrecord"
    assert command("export", tmp_path / "t", back, "--to", "tfrecord") == 0
    one, two = (decode_example(data) for _, data in read_frames(StoredFile(str(back))))
    assert one == {"image/encoded": [images.jpeg(20)], "image/class/label": [7]}
    assert two == {"image/encoded": [images.png(21)], "image/class/label": [0.5, 2.0]}
    assert command("from-tfrecord", back, tmp_path / "u") == 0
    assert (tmp_path / "u.rec").read_bytes() == (tmp_path / "t.rec").read_bytes()


def test_raw_records_are_the_same_bytes(examples, tmp_path, command):
    assert command("from-tfrecord", examples, tmp_path / "t", "--raw") == 0
    with RecordReader(tmp_path / "t.rec") as reader:
        assert decode_example(bytes(reader[1]))["other"] == [b"x"]
    words = ["export", tmp_path / "t", tmp_path / "b", "--to", "tfrecord", "--raw"]
    assert command(*words) == 0
    assert (tmp_path / "b").read_bytes() == examples.read_bytes()


def test_features_are_chosen_by_name(tmp_path, command, contents, images, capsys):
    path = tmp_path / "a"
    path.write_bytes(framed(encode_example({"photograph": [images.jpeg()], "style": [4]})))
    words = ["from-tfrecord", path, tmp_path / "t"]
    assert command(*words) == 1
    assert "chooses one of photograph, style" in capsys.readouterr().err
    assert command(*words, "--content", "photograph", "--label", "style") == 0
    assert contents(tmp_path / "t")[0][0].label == 4
    words = ["--to", "tfrecord", "--content", "photograph", "--label", "style"]
    assert command("export", tmp_path / "t", tmp_path / "b", *words) == 0
    assert (tmp_path / "b").read_bytes() == path.read_bytes()


def test_examples_without_image_or_label_are_reported(tmp_path, command, contents, images):
    path = tmp_path / "a"
    jpeg = images.jpeg()
    path.write_bytes(
        framed(
            encode_example({"image": [jpeg], "label": [1]}),
            encode_example({"image": [jpeg]}),
            encode_example({"image": [jpeg, jpeg], "label": [1]}),
            encode_example({"image": [1.5], "label": [1]}),
            encode_example({"image": [jpeg[:-9]], "label": [1]}),
            encode_example({"image": [jpeg], "label": [b"cat"]}),
            b"no example",
            b"",
        )
    )
    assert command("from-tfrecord", path, tmp_path / "t") == 1
    assert [header.id for header, _ in contents(tmp_path / "t")] == [0]
    report = (tmp_path / "t.skipped.txt").read_text().splitlines()
    assert len(report) == 7
    assert report[0].startswith(f"{path}, record 1, offset ")
    assert command("from-tfrecord", path, tmp_path / "u", "--no-labels") == 1
    assert [header.id for header, _ in contents(tmp_path / "u")] == [0, 1, 5]


def test_gzip_is_read(examples, tmp_path, command, contents):
    packed = tmp_path / "a.gz"
    packed.write_bytes(gzip.compress(examples.read_bytes()))
    assert command("from-tfrecord", packed, tmp_path / "t") == 0
    assert len(contents(tmp_path / "t")) == 2
    packed.write_bytes(packed.read_bytes()[:-5])
    assert command("from-tfrecord", packed, tmp_path / "u") == 1
    assert not (tmp_path / "u.rec").exists()


def test_every_truncation_and_every_changed_byte_is_an_error(tmp_path):
    whole = framed(b"first", b"", b"third")
    path = tmp_path / "a"
    ends = {0, 21, 37, len(whole)}
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        if size in ends:
            assert len(list(read_frames(StoredFile(str(path))))) == sorted(ends).index(size)
            continue
        with pytest.raises(EOFError, match="offset"):
            list(read_frames(StoredFile(str(path))))
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="checksum") as raised:
            list(read_frames(StoredFile(str(path))))
        assert raised.value.offset == max(end for end in ends if end <= place)


def test_large_contents_are_refused_until_asked_for(examples, tmp_path, command, images):
    words = ["from-tfrecord", examples, tmp_path / "t", "--force", "--max-content-bytes"]
    sizes = sorted(map(len, (images.jpeg(20), images.png(21))))
    assert command(*words, sizes[0]) == 1
    assert "--max-content-bytes to allow it" in (tmp_path / "t.skipped.txt").read_text()
    assert command(*words, sizes[1]) == 0


def test_raw_takes_no_option_that_looks_into_examples(examples, tmp_path, command, capsys):
    for words in (["--label", "label"], ["--fields", "all"], ["--no-labels"], ["--check=decode"]):
        with pytest.raises(SystemExit):
            command("from-tfrecord", examples, tmp_path / "t", "--raw", *words)
        assert f"argument {words[0].partition('=')[0]}: it has no effect" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no_labels=True has no effect"):
        recordio.convert.from_tfrecord(examples, tmp_path / "t", raw=True, no_labels=True)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_record_whose_data_changed_is_left_out(examples, tmp_path, command, images, compress):
    whole = bytearray(examples.read_bytes())
    whole[whole.index(images.jpeg(20)) + 300] ^= 1
    examples.write_bytes(compress(whole))
    for words in (["from-tfrecord", examples, tmp_path / "t"], ["pack", examples, tmp_path / "u"]):
        assert command(*words, "--force", "--check=none") == 1
        said = words[-1].with_suffix(".skipped.txt").read_text()
        assert said.startswith(f"{examples}, record 0, offset ") and said.count("\n") == 1
        assert "checksum of its data is wrong" in said
    assert command("from-tfrecord", examples, tmp_path / "v", "--strict") == 1
    assert command("from-tfrecord", examples, tmp_path / "v", "--raw") == 1
    assert not list(tmp_path.glob("v*"))


def test_raw_pixels_are_named_as_such(tmp_path, command, capsys):
    path = tmp_path / "a.tfrecord"
    sides = {"height": [20], "image/width": [30], "depth": [3]}
    path.write_bytes(framed(encode_example({"image": [bytes(1800)], "label": [1], **sides})))
    assert command("from-tfrecord", path, tmp_path / "t") == 1
    assert "1,800 bytes are as many as 20 x 30 x 3 values take" in capsys.readouterr().err
    path.write_bytes(framed(encode_example({"image": [bytes(3072)], "label": [1]})))
    assert command("pack", path, tmp_path / "p") == 1
    assert "32 x 32 x 3 values take" in capsys.readouterr().err
