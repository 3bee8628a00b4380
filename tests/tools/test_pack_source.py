"""`recordio pack`: the samples of a container become what im2rec makes of the same images."""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import signal
import tarfile
from pathlib import Path

import numpy as np
import pytest
from fake_containers import write_container

from recordio import RecordIOError, RecordReader, check_shards, unpack
from recordio.formats.image_header import read_header
from recordio.packs.open_pack import open_pack
from recordio.tools import pack_shards
from recordio.tools.im2rec import main as im2rec
from recordio.tools.im2rec_options import PackOptions
from recordio.tools.pack import PackingError
from recordio.tools.pack_source import pack_source
from recordio.tools.samples import Selection, cut_samples

pytestmark = pytest.mark.usefixtures("fake_containers")


def contents(folder, name):
    """The files of a pack by what follows its name, but for the names of classes."""
    return {
        path.name.removeprefix(name): path.read_bytes()
        for path in sorted(Path(folder).iterdir())
        if path.name.startswith(name) and path.is_file() and "classes" not in path.name
    }


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--shuffle",
        "--resize 16",
        "--resize 16 --center-crop --quality 80 --inter-method 3",
        "--encoding png",
        "--encoding raw --color 0",
        pytest.param("--optimize", marks=pytest.mark.libjpeg),
        "--checksums --num-thread 3",
        "--train-ratio 0.7 --test-ratio 0.1 --stratify",
        "--chunks 3",
        "--check decode",
    ],
)
def test_the_files_are_those_of_im2rec(photo_folder, output, command, words):
    changes = any(word in words for word in ("resize", "encoding"))
    same = [word for word in words.split() if word != "--shuffle"]
    same += ["--no-shuffle"] * ("--shuffle" not in words) + ["--pass-through"] * (not changes)
    assert im2rec([str(output / "a"), str(photo_folder), *same]) == 0
    assert command("pack", photo_folder, output / "b", *words.split()) == 0
    assert contents(output, "a") == contents(output, "b") and contents(output, "a")
    names = {(output / f"{name}.classes.txt").read_bytes() for name in "ab" if "-" not in words}
    assert len(names) <= 1


def test_the_files_are_those_of_the_converter(photo_folder, output, command):
    assert command("from-imagefolder", photo_folder, output / "a") == 0
    assert command("pack", photo_folder, output / "b") == 0
    assert contents(output, "a") == contents(output, "b")
    assert (output / "a.classes.txt").read_bytes() == (output / "b.classes.txt").read_bytes()


@pytest.fixture
def source(tmp_path, images):
    """Two files with nine samples: several labels, an array, no name, and two that are bad."""
    array = io.BytesIO()
    np.save(array, np.arange(6))
    samples = [([float(n)], f"a/{n}.jpg", images.jpeg(20 + n, 30)) for n in range(6)]
    samples += [([1.0, 2.5], "", images.png(30, 20)), ([3.0], "x.npy", array.getvalue())]
    samples.insert(2, ([1.0], "long.jpg", "its .jpg file is too long"))
    samples.insert(7, ([1.0], "cut.jpg", images.jpeg(40, 40)[:200]))
    for number, part in enumerate([samples[:4], samples[4:]]):
        write_container(tmp_path / f"set-{number}.spans", part)
    return str(tmp_path / "set-{0,1}.spans")


def test_bad_samples_leave_gaps_and_are_named(source, output):
    report = pack_source(source, str(output / "p"), PackOptions())
    assert report.records == 8 and [item.reason for item in report.skipped][0].endswith("too long")
    assert "set-0.spans, long.jpg" in report.skipped[0].path
    assert "set-1.spans, cut.jpg" in report.skipped[1].path
    with RecordReader(output / "p.rec", output / "p.idx") as reader:
        assert reader.keys.tolist() == [0, 1, 3, 4, 5, 6, 8, 9]
        headers = [unpack(record)[0] for record in reader]
    assert [header.id for header in headers] == [0, 1, 3, 4, 5, 6, 8, 9]
    assert headers[6].label.tolist() == [1.0, 2.5]
    lines = (output / "p.lst").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["0", "1", "3", "4", "5", "6", "9"]
    assert (output / "p.skipped.txt").read_text().count("\n") == 2
    assert not (output / "p.classes.txt").exists()


def test_strict_runs_write_nothing(source, output):
    with pytest.raises(PackingError, match="too long"):
        pack_source(source, str(output / "p"), PackOptions(strict=True))
    assert not list(output.iterdir())


def test_arrays_are_not_resized(source, output):
    report = pack_source(source, str(output / "p"), PackOptions(resize=8))
    assert report.skipped[-1].reason == "it is a .npy array: only images can be changed"


def test_lists_and_classes_of_an_older_pack_are_removed(tmp_path, images, output):
    path = write_container(tmp_path / "a.spans", [([0.0], "", images.png())])
    for suffix in ("lst", "classes.txt"):
        (output / f"p.{suffix}").write_text("0\told\n")
    pack_source(str(path), str(output / "p"), PackOptions())
    assert sorted(p.name for p in output.iterdir()) == ["p.idx", "p.rec"]


def test_shards_are_those_of_one_run_whoever_makes_them(source, output):
    one = pack_source(source, str(output / "a"), PackOptions(shards=3))
    assert one.records == 8 and one.skipped_in_shards == 2 and not one.continued
    for part in (2, 1):
        last = pack_source(source, str(output / "b"), PackOptions(shards=3, part=(part, 2)))
    assert last.paths == [str(output / "b.shards.json")] and last.records == 8
    found = contents(output, "a")
    assert found.pop(".shards.json") and len(found) == 3 * 2 + 2 + 1
    again = contents(output, "b")
    assert again.pop(".shards.json") and found == again
    assert check_shards(output / "b.shards.json").records == 8


def test_a_killed_run_goes_on_with_the_shards_that_are_missing(source, output, monkeypatch):
    child = os.fork()
    if child == 0:
        made = []
        whole = pack_shards.described_shard
        monkeypatch.setattr(
            pack_shards,
            "described_shard",
            lambda *words: (
                (made.append(1) or len(made) == 3 and os.kill(os.getpid(), signal.SIGKILL))
                or whole(*words)
            ),
        )
        try:
            pack_source(source, str(output / "a"), PackOptions(shards=4, num_thread=1))
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    before = (output / "a-000000.rec").stat().st_mtime_ns
    report = pack_source(source, str(output / "a"), PackOptions(shards=4))
    assert report.continued == 2 and (output / "a-000000.rec").stat().st_mtime_ns == before
    pack_source(source, str(output / "b"), PackOptions(shards=4))
    assert contents(output, "a-") == contents(output, "b-")


def test_shards_of_a_changed_source_are_made_again(source, output):
    pack_source(source, str(output / "a"), PackOptions(shards=2))
    os.utime(source.replace("{0,1}", "1"), ns=(1, 1))
    assert pack_source(source, str(output / "a"), PackOptions(shards=2)).continued == 0
    assert pack_source(source, str(output / "a"), PackOptions(shards=2, resize=8)).continued == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shards": 2, "chunks": 2}, "chunks=2 is for several packs"),
        ({"stratify": True}, "stratify=True needs `train_ratio` below 1"),
        ({"quality": 5, "encoding": "raw"}, "quality=5 must be left out"),
        ({"resize": -1}, "resize"),
    ],
)
def test_options_that_cannot_be_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        PackOptions(**options)


def test_more_shards_than_samples_are_refused(source, output):
    with pytest.raises(RecordIOError, match="11 shards cannot be made of 10 samples"):
        pack_source(source, str(output / "a"), PackOptions(shards=11))
    with pytest.raises(RecordIOError, match="not at a URL"):
        pack_source(source, "s3://bucket/a", PackOptions(shards=2))


def test_messages_and_exit_codes_of_the_command(source, output, command, capsys):
    assert command("pack", source, output / "p") == 1
    said = capsys.readouterr().err
    assert "set-0.spans, long.jpg: its .jpg file is too long" in said and "8 records" in said
    assert command("pack", source, output / "p") == 1
    assert "exists already; --force replaces it" in capsys.readouterr().err
    assert command("pack", source, output / "p", "--force", "--skip-errors") == 0
    assert command("pack", output / "p", output / "q") == 1
    assert "it is a record file already" in capsys.readouterr().err
    assert command("pack", source, output / "s", "--shards", "2") == 1
    assert command("pack", source, output / "s", "--shards", "2") == 1
    assert "2 shards were whole already" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command("pack", source, output / "q", "--shards", "2", "--chunks", "2")
    assert "argument --chunks: it is for several packs" in capsys.readouterr().err


def test_files_may_be_a_list_and_shards_travel_to_other_processes(source, output):
    names = [source.replace("{0,1}", number) for number in "01"]
    assert pack_source(names, str(output / "a"), PackOptions()).records == 8
    pack_source(source, str(output / "b"), PackOptions())
    assert contents(output, "a") == contents(output, "b")
    spans = cut_samples(Selection.of(names, PackOptions(shuffle=True)), 3, 100)
    again = pickle.loads(pickle.dumps(spans[1]))
    assert again == spans[1] and again.read() == spans[1].read() and again.images == 3
    assert [entry.id for span in spans for entry in span.listed().entries] != list(range(10))


# -- parts of samples ------------------------------------------------------------


@pytest.fixture
def samples(tmp_path, images):
    """A tar of four samples with a mask, a text and another image; the last one has no mask."""
    path = tmp_path / "set.tar"
    with tarfile.open(path, "w") as tar:
        for number in range(4):
            files = {"jpg": images.jpeg(20, 40), "left.png": images.png(20, 40), "cls": b"1"}
            files |= {"json": b'{"fine": %d}' % number, "txt": b"text %d" % number}
            if number < 3:
                files["mask.png"] = images.png(20, 40, 1)
            for ending, content in files.items():
                info = tarfile.TarInfo(f"{number}.{ending}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


def test_fields_of_samples_are_written_beside_the_images(samples, output, command, images, capsys):
    assert command("pack", samples, output / "a", "--fields", "mask,txt") == 0
    said = capsys.readouterr().err
    assert "a.mask.rec: 3 records; 1 images have none" in said
    assert "1 images have no mask; the first, " in said and "set.tar" in said
    with open_pack(output / "a") as pack:
        assert {name: meta.kind for name, meta in pack.fields_meta.items()} == {
            "mask": "mask", "txt": "text",
        }  # fmt: skip
        mask, text = pack.field("mask"), pack.field("txt")
        assert bytes(unpack(mask.record(2))[1]) == images.png(20, 40, 1)
        assert [bytes(unpack(text.record(row))[1]) for row in (0, 3)] == [b"text 0", b"text 3"]
    assert command("pack", samples, output / "b", "--fields", "all") == 0
    with open_pack(output / "b") as pack:
        assert pack.field_names == ["json", "left", "mask", "txt"]
    assert command("pack", samples, output / "c", "--fields", "depth") == 1
    assert "no sample has a field depth; its fields: json, left, mask, txt" in (
        capsys.readouterr().err
    )
    assert not list(output.glob("c*"))


def test_masks_are_resized_with_their_images(samples, output, command):
    for more in ([], ["--shards", "2"]):
        words = ["--fields", "mask,txt", "--resize", "10", "--center-crop", *more]
        assert command("pack", samples, output / f"a{len(more)}", *words) == 0
    for pack in (open_pack(output / "a0"), open_pack(output / "a2-000000")):
        for row in range(2):
            sizes = [
                read_header(unpack(one.record(row))[1]).size for one in (pack, pack.field("mask"))
            ]
            assert sizes == [(10, 10), (10, 10)]
            assert bytes(unpack(pack.field("txt").record(row))[1]) == b"text %d" % row
    manifest = json.loads((output / "a2.shards.json").read_text())
    assert [len(shard["fields"]) for shard in manifest["shards"]] == [2, 2]
    assert check_shards(str(output / "a2.shards.json")).records == 4


def test_parts_of_samples_are_chosen(samples, output, command, images, capsys):
    words = ["pack", samples, output / "a", "--force"]
    assert command(*words, "--image-field", "left.png", "--label-field", "json:fine") == 0
    with RecordReader(output / "a.rec") as reader:
        found = [unpack(record) for record in reader]
    assert [header.label for header, _ in found] == [0, 1, 2, 3]
    assert bytes(found[0][1]) == images.png(20, 40)
    assert command(*words, "--no-labels") == 0
    with RecordReader(output / "a.rec") as reader:
        assert {unpack(record)[0].label for record in reader} == {0}
    assert command(*words, "--label-field", "json:none") == 1
    assert "json:none" in capsys.readouterr().err
    assert command(*words, "--exts", ".jpg") == 1
    assert "a tar file has none to choose" in capsys.readouterr().err


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_containers_are_unpacked_beside_the_output(
    samples, output, command, compress, capsys
):
    assert command("pack", samples, output / "a", "--fields", "mask") == 0
    packed = output / "set.tar.gz"
    packed.write_bytes(compress(samples.read_bytes()))
    assert command("pack", packed, output / "b", "--fields", "mask") == 0
    assert contents(output, "a.") == contents(output, "b.")
    assert sorted(path.name for path in output.iterdir() if path.name[0] not in "ab") == [
        packed.name
    ]
    packed.write_bytes(packed.read_bytes()[:-200])
    capsys.readouterr()
    assert command("pack", packed, output / "c") == 1
    assert f"{packed}: its compressed data are damaged or truncated" in capsys.readouterr().err
    assert not list(output.glob("c*"))


def test_an_order_has_a_seed(samples, output):
    orders = []
    for number, seed in enumerate([1, 1, 2]):
        pack_source(samples, str(output / f"{number}"), PackOptions(shuffle=True, seed=seed))
        orders.append((output / f"{number}.idx").read_bytes())
    assert orders[0] == orders[1] != orders[2]
    with pytest.raises(ValueError, match="seed=3 needs `shuffle`"):
        PackOptions(seed=3)
