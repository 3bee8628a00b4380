"""`im2rec` as MXNet's tool is called: lists, packs, splits and signals."""

import os
import re
import signal
import subprocess
import sys

import cv2
import numpy as np
import pytest
from PIL import Image

from iterators import ImageRecordIter
from recordio import ImageDecodeError, RecordReader, convert, unpack, unpack_img
from recordio.formats.jpeg import jpeg
from recordio.tools.encode import EncodeOptions, encode_image
from recordio.tools.im2rec import find_lists, main
from recordio.tools.image_list import read_list

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and limits")


def run(*words):
    return main([str(word) for word in words])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def record_count(path):
    with RecordReader(path) as reader:
        return len(reader)


def test_one_call_lists_by_folder_and_packs(photo_folder, output, capsys):
    assert run(output / "p", photo_folder) == 0
    assert names(output) == ["p.classes.txt", "p.idx", "p.lst", "p.rec"]
    assert (output / "p.classes.txt").read_text() == "0\tcat\n1\tdog\n"
    with RecordReader(output / "p.rec", output / "p.idx") as reader:
        assert sorted(unpack(record)[0].label for record in reader) == [0.0] * 12 + [1.0] * 8
        assert list(reader.keys) != sorted(reader.keys)
    messages = capsys.readouterr().err
    assert "every folder is a class" in messages
    assert re.search(r"packed 20 images, .*images/s", messages)


def test_the_list_of_the_one_call_is_the_list_of_the_list_mode(photo_folder, output):
    assert run(output / "a", photo_folder) == 0
    assert run("--list", "--recursive", output / "b", photo_folder) == 0
    assert (output / "a.lst").read_bytes() == (output / "b.lst").read_bytes()
    assert (output / "a.classes.txt").read_bytes() == (output / "b.classes.txt").read_bytes()


def test_one_call_on_a_flat_folder_labels_everything_0(photo_folder, output, capsys):
    assert run(output / "p", photo_folder / "cat") == 0
    assert (output / "p.classes.txt").read_text() == "0\t.\n"
    assert "every folder is a class" not in capsys.readouterr().err


def test_one_call_that_must_not_recurse(photo_folder, output, images):
    (photo_folder / "top.jpg").write_bytes(images.jpeg())
    assert run("--recursive", "False", output / "p", photo_folder) == 0
    assert record_count(output / "p.rec") == 1


def test_one_call_makes_and_packs_splits(photo_folder, output):
    assert run("--train-ratio", 0.5, "--test-ratio", 0.25, output / "p", photo_folder) == 0
    counts = {part: record_count(output / f"p_{part}.rec") for part in ("train", "test", "val")}
    assert counts == {"train": 10, "test": 5, "val": 5}
    assert "p.classes.txt" in names(output)


def test_an_existing_list_is_used_as_it_is(photo_folder, output, capsys):
    (output / "p.lst").write_text("4\t2.5\tcat/00.jpg\n")
    assert run("--recursive", output / "p", photo_folder) == 0
    assert names(output) == ["p.idx", "p.lst", "p.rec"]
    assert (output / "p.idx").read_text() == "4\t0\n"
    said = capsys.readouterr().err
    assert f"packing the images of {output / 'p.lst'}; --list makes a list again\n" in said
    assert "no effect of --recursive" in said


@pytest.mark.skipif(os.sep == "\\", reason="a backslash separates there")
def test_a_list_made_on_windows_names_the_same_files(photo_folder, output):
    (output / "p.lst").write_text("4\t2.5\tcat\\00.jpg\n")
    assert run(output / "p", photo_folder) == 0
    assert record_count(output / "p.rec") == 1
    (photo_folder / "cat\\00.jpg").write_bytes(b"no image")
    assert run(output / "p", photo_folder) == 1


def test_list_mode_packs_nothing(photo_folder, output, capsys):
    assert run("--list", "--recursive", "--resize", 10, output / "p", photo_folder) == 0
    assert names(output) == ["p.classes.txt", "p.lst"]
    captured = capsys.readouterr()
    assert captured.out == "cat 0\ndog 1\n"
    assert "no effect of --resize" in captured.err


def test_every_list_that_starts_with_the_prefix_is_packed(photo_folder, output):
    for name in ("d.lst", "d_val.lst", "data_old.lst", "e.lst", "d.txt"):
        (output / name).write_text("0\t0\tcat/00.jpg\n")
    assert run(output / "d", photo_folder) == 0
    assert [name for name in names(output) if name.endswith(".rec")] == [
        "d.rec",
        "d_val.rec",
        "data_old.rec",
    ]


def test_a_folder_as_prefix_stands_for_all_its_lists(photo_folder, output):
    for name in ("a.lst", "b.lst"):
        (output / name).write_text("0\t0\tcat/00.jpg\n")
    assert run(output, photo_folder) == 0
    assert names(output) == ["a.idx", "a.lst", "a.rec", "b.idx", "b.lst", "b.rec"]


def test_a_folder_without_lists_gets_one_named_after_the_root(photo_folder, output, capsys):
    assert run(f"{output}/", photo_folder) == 0
    assert names(output) == ["photos.classes.txt", "photos.idx", "photos.lst", "photos.rec"]
    assert "is a folder" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "written"),
    [
        ([], ["photos.rec"]),
        (["--train-ratio", "0.5"], ["photos_train.rec", "photos_val.rec"]),
        (["--shards", "2"], ["photos.shards.json"]),
    ],
)
def test_a_folder_where_a_name_may_be_meant_is_told_of(
    photo_folder, output, options, written, capsys
):
    assert run(*options, output, photo_folder) == 0
    paths = ", ".join(str(output / name) for name in written)
    said = f"note: PREFIX is a folder, and this writes {paths}; PREFIX {output}.rec writes beside"
    assert said in capsys.readouterr().err
    assert all((output / name).exists() for name in written)


@pytest.mark.parametrize("suffix", [".rec", ".idx", ".lst"])
def test_a_suffix_is_dropped_from_the_prefix(photo_folder, tmp_path, suffix, capsys):
    # PREFIX names no folder then, not even ROOT, which is called the same.
    assert run(tmp_path / f"photos{suffix}", photo_folder) == 0
    assert [name for name in names(tmp_path) if name.startswith("photos")] == [
        "photos",
        "photos.classes.txt",
        "photos.idx",
        "photos.lst",
        "photos.rec",
    ]
    assert f"photos is taken for {tmp_path}/photos{suffix}\n" in capsys.readouterr().err
    assert run("--list", "--recursive", tmp_path / f"photos{suffix}", photo_folder) == 0
    assert not list(tmp_path.glob(f"photos{suffix}?*"))
    assert run("--shards", "2", tmp_path / f"other{suffix}", photo_folder) == 0
    assert (tmp_path / "other.shards.json").exists()


def test_lists_whose_names_begin_with_a_suffix_are_packed_as_by_mxnet(photo_folder, output, capsys):
    (output / "a.lst").write_text("0\t0\tcat/00.jpg\n")
    (output / "a_val.lst").write_text("0\t0\tcat/00.jpg\n")
    (output / "b.rec.lst").write_text("0\t0\tcat/00.jpg\n")
    assert run(output / "a.lst", photo_folder) == run(output / "b.rec", photo_folder) == 0
    assert sorted(output.glob("*.rec")) == [output / "a.rec", output / "b.rec.rec"]
    assert "without suffix" not in capsys.readouterr().err


def test_a_folder_may_have_the_name_of_a_file(photo_folder, output):
    (output / "a.rec").mkdir()
    assert run(output / "a.rec", photo_folder) == 0
    assert (output / "a.rec" / "photos.rec").exists()


def test_a_folder_finds_the_lists_that_list_mode_wrote_beside_it(photo_folder, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "settings.lst").write_text("no list of ours")
    assert run("--list", "--recursive", tmp_path / "set", photo_folder) == 0
    assert find_lists(str(tmp_path / "set")) == [str(tmp_path / "set.lst")]


def test_skipped_images_are_reported_with_exit_code_1(photo_folder, output, capsys):
    (photo_folder / "cat" / "05.jpg").write_bytes(b"")
    assert run(output / "p", photo_folder) == 1
    assert record_count(output / "p.rec") == 19
    assert (output / "p.skipped.txt").read_text() == "cat/05.jpg\tthe file is empty\n"
    said = capsys.readouterr().err
    assert "cat/05.jpg: the file is empty" in said
    assert "packed 19 of 20 images, " in said
    assert f"{output}/p.lst: 20 images, of which 1 could not be packed: cat/05.jpg\n" in said
    assert run(output / "p", photo_folder) == 1
    assert "packed 19 of 20 images, " in capsys.readouterr().err


def test_what_is_not_in_a_list_does_not_count_in_it(photo_folder, output, capsys):
    (photo_folder / "cat" / "tab\there.jpg").write_bytes(b"")
    assert run(output / "p", photo_folder) == 1
    said = capsys.readouterr().err
    assert "packed 20 images, " in said and f"{output}/p.lst: 20 images\n" in said
    for number in range(5):
        (photo_folder / "cat" / f"0{number}.jpg").write_bytes(b"")
    assert run("--no-shuffle", output / "q", photo_folder) == 1
    said = capsys.readouterr().err
    named = "cat/00.jpg, cat/01.jpg, cat/02.jpg, ..."
    assert f"q.lst: 20 images, of which 5 could not be packed: {named}\n" in said


def test_skip_errors_reports_with_exit_code_0(photo_folder, output):
    (photo_folder / "cat" / "05.jpg").write_bytes(b"")
    assert run("--skip-errors", output / "p", photo_folder) == 0
    assert record_count(output / "p.rec") == 19
    assert "p.skipped.txt" in names(output)


def test_strict_stops_and_writes_nothing_at_all(photo_folder, output, capsys):
    (photo_folder / "cat" / "05.jpg").write_bytes(b"")
    assert run("--strict", "--chunks", 3, output / "p", photo_folder) == 1
    assert names(output) == []
    assert "05.jpg: the file is empty" in capsys.readouterr().err


def test_strict_with_good_images_packs_all_lists(photo_folder, output):
    assert run("--strict", "--chunks", 3, output / "p", photo_folder) == 0
    assert [record_count(output / f"p_{k}.rec") for k in range(3)] == [7, 7, 6]


def test_a_wrong_root_keeps_the_old_records_even_with_skip_errors(photo_folder, output, capsys):
    assert run(output / "p", photo_folder) == 0
    before = (output / "p.rec").read_bytes()
    assert run("--skip-errors", output / "p", photo_folder / "dog") == 1
    assert (output / "p.rec").read_bytes() == before
    assert "Is " in capsys.readouterr().err


def test_a_bad_list_line_is_reported(photo_folder, output):
    (output / "p.lst").write_text("0\t0\tcat/00.jpg\n1 cat/01.jpg\n")
    assert run(output / "p", photo_folder) == 1
    report = (output / "p.skipped.txt").read_text()
    assert report.startswith(f"{output / 'p.lst'}, line 2\t")


@pytest.mark.parametrize("mode", [[], ["--list"], ["--list", "--recursive"]])
def test_a_folder_without_images_is_an_error(tmp_path, output, capsys, mode):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").touch()
    assert run(*mode, output / "p", tmp_path / "notes") == 1
    assert names(output) == []
    assert "no images found" in capsys.readouterr().err


def test_images_in_sub_folders_alone_give_a_hint_in_list_mode(photo_folder, output, capsys):
    assert run("--list", output / "p", photo_folder) == 1
    assert "add --recursive" in capsys.readouterr().err


def test_an_empty_list_is_an_error(photo_folder, output, capsys):
    (output / "p.lst").touch()
    assert run(output / "p", photo_folder) == 1
    assert names(output) == ["p.lst"]
    assert "the list is empty" in capsys.readouterr().err


@pytest.mark.parametrize("mode", [[], ["--list"]])
def test_missing_folders_are_named(photo_folder, output, capsys, mode):
    assert run(*mode, output / "new" / "p", photo_folder / "nowhere") == 1
    assert "ROOT, the folder with the images, does not exist" in capsys.readouterr().err
    (output / "file").touch()
    assert run(*mode, output / "new" / "p", output / "file") == 1
    assert "ROOT, the folder with the images, is not a folder" in capsys.readouterr().err
    assert run(*mode, photo_folder, output / "set") == 1
    assert "does not exist; PREFIX, which stands before it, is one\n" in capsys.readouterr().err
    assert names(output) == ["file"]


@pytest.mark.parametrize("mode", [[], ["--list", "--recursive"]])
def test_the_folder_of_the_output_is_made(photo_folder, output, mode):
    assert run(*mode, output / "new" / "deep" / "p", photo_folder) == 0
    assert "p.lst" in names(output / "new" / "deep")


def test_urls_are_refused_with_what_can_be_done(photo_folder, output, capsys):
    for words, what in (
        (["https://host/set", photo_folder], "give an s3://, gs:// or az:// URL"),
        ([output / "p", "s3://bucket/photos"], "download what is read (aws s3 cp, fsspec)"),
    ):
        with pytest.raises(SystemExit) as ended:
            run(*words)
        assert ended.value.code == 2
        assert what in capsys.readouterr().err
    assert names(output) == []


FORMATS = {"a.webp": "WEBP", "b.gif": "GIF", "c.bmp": "BMP", "d.tiff": "TIFF", "e.tif": "TIFF"}


@pytest.fixture
def other_formats(tmp_path, images):
    """A folder of images in five other formats, some of them with a second picture."""
    root = tmp_path / "others"
    root.mkdir()
    first = Image.fromarray(images.gradient(24, 36)).quantize(64).convert("RGB")
    second = Image.new("RGB", (36, 24), "red")
    for name, kind in FORMATS.items():
        several = {} if kind == "BMP" else {"save_all": True, "append_images": [second]}
        lossless = {"lossless": True} if kind == "WEBP" else {}
        first.save(root / name, kind, **several, **lossless)
    (root / "f.jpg").write_bytes(images.jpeg())
    for name in ("g.heic", "h.txt", ".hidden"):
        (root / name).write_bytes(b"not looked at")
    return root, np.asarray(first)


def test_what_was_left_out_is_said(other_formats, output, capsys):
    root, _ = other_formats
    for mode in ([], ["--list"]):
        assert run(*mode, output / "p", root) == 0
        said = capsys.readouterr().err
        if not mode:
            assert (
                "left out 1 .bmp, 1 .gif, 1 .heic, 1 .tif, 1 .tiff, 1 .webp, 1 other file: give "
                "--exts .jpeg .jpg .png .bmp .gif .tif .tiff .webp; .heic must be converted first"
            ) in said
        assert "left out" in said
    assert run("--list", "--exts", ".png", "--", output / "q", root) == 1
    assert "no images found" in (said := capsys.readouterr().err) and "1 .webp" in said


@pytest.mark.parametrize("mode", ["--encoding=.png", "--pass-through"])
def test_other_formats_are_packed_when_they_are_asked_for(other_formats, output, mode, capsys):
    root, first = other_formats
    suffixes = sorted({os.path.splitext(name)[1] for name in FORMATS})
    assert run(mode, "--no-shuffle", "--exts", *suffixes, "--", output / "p", root) == 0
    assert "left out 1 .heic, 1 .jpg" in capsys.readouterr().err
    provider = ImageRecordIter(
        path_imgrec=str(output / "p.rec"), data_shape=(3, 24, 36), batch_size=5, dtype="uint8"
    )
    (batch,) = provider
    assert sorted(batch.index) == [0, 1, 2, 3, 4]
    for pixels in batch.data[0]:
        np.testing.assert_array_equal(pixels.transpose(1, 2, 0), first)


def test_the_first_frame_of_a_gif(other_formats):
    root, first = other_formats
    data = (root / "b.gif").read_bytes()
    for color, mode in ((1, cv2.COLOR_RGB2BGR), (0, cv2.COLOR_RGB2GRAY)):
        png = encode_image(data, EncodeOptions(encoding=".png", color=color))
        decoded = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
        np.testing.assert_array_equal(decoded, cv2.cvtColor(first, mode))
    with pytest.raises(ImageDecodeError):
        encode_image(data[:40], EncodeOptions(encoding=".png"))


def test_labels_that_are_dropped_are_told_of(photo_folder, output, capsys):
    (output / "p.lst").write_text("0\t1\t2\t3\tcat/00.jpg\n1\t4\tcat/01.jpg\n")
    assert run(output / "p", photo_folder) == 0
    said = capsys.readouterr().err
    assert "only the first label is stored: 1 of 2 lines" in said
    assert "up to 3; --pack-label stores all" in said
    assert run("--pack-label", output / "p", photo_folder) == 0
    assert "first label" not in capsys.readouterr().err


def test_classes_are_split_in_the_same_proportions(photo_folder, output, capsys):
    options = ["--list", "--recursive", "--train-ratio", "0.5", "--test-ratio", "0.25"]
    assert run(*options, "--stratify", output / "p", photo_folder) == 0
    assert "too few" not in capsys.readouterr().err
    for part, counts in (("train", [6, 4]), ("test", [3, 2]), ("val", [3, 2])):
        labels = [entry.labels[0] for entry in read_list(output / f"p_{part}.lst").entries]
        assert [labels.count(label) for label in (0, 1)] == counts
    for path in (photo_folder / "dog").iterdir():
        if path.name != "00.png":
            path.unlink()
    assert run(*options, "--stratify", output / "q", photo_folder) == 0
    assert "note: 1 of 2 classes have too few images to be in" in capsys.readouterr().err
    assert run("--list", "--stratify", output / "r", photo_folder / "cat") == 0
    assert "no effect of --stratify" in capsys.readouterr().err


def test_damage_inside_of_a_jpeg_is_found_by_decoding(photo_folder, output, images):
    if not jpeg.available():
        pytest.skip("without libjpeg-turbo its warnings are not known")
    data = bytearray(images.jpeg(200, 300, quality=95))
    start = data.index(b"\xff\xda") + 600
    data[start : start + 400] = bytes(range(1, 201)) * 2
    (photo_folder / "cat" / "00.jpg").write_bytes(data)
    for options in ([], ["--pass-through"], ["--resize", "20"]):
        assert run(*options, output / "p", photo_folder) == 0
        assert run(*options, "--check", "decode", output / "p", photo_folder) == 1
        assert "libjpeg reports" in (output / "p.skipped.txt").read_text()


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as ended:
        run("--version")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("im2rec (recordio-iterators ")


def test_names_with_spaces_unicode_and_other_bytes(tmp_path, output, images):
    root = tmp_path / "Fotos – été"
    root.mkdir()
    (root / "ein bild 猫.jpg").write_bytes(images.jpeg())
    if sys.platform == "linux":
        with open(os.fsencode(root) + b"/\xff\xfe.jpg", "wb") as file:
            file.write(b"no image")
        assert run("--skip-errors", output / "päck ung", root) == 0
        assert (output / "päck ung.skipped.txt").read_bytes().startswith(b"\xff\xfe.jpg\t")
    else:
        assert run(output / "päck ung", root) == 0
    assert record_count(output / "päck ung.rec") == 1


def test_pixels_after_a_resize(photo_folder, output, images):
    assert run("--resize", 16, "--quality", 80, output / "p", photo_folder) == 0
    with RecordReader(output / "p.rec") as reader:
        for record in reader:
            header, content = unpack(record)
            assert min(images.decode(np.frombuffer(content, np.uint8)).shape[:2]) == 16


@pytest.mark.parametrize(("color", "suffix"), [(1, ".ppm"), (0, ".pgm")])
def test_raw_packs_are_known_to_the_other_commands(
    photo_folder, output, images, command, capsys, color, suffix
):
    words = ["--resize", 16, "--color", color, photo_folder]
    assert run("--encoding", "raw", output / "raw", *words) == 0
    assert run("--encoding", ".png", output / "png", *words) == 0
    with RecordReader(output / "raw.rec") as raw, RecordReader(output / "png.rec") as png:
        for ours, other in zip(raw, png, strict=True):
            assert unpack(ours)[0] == unpack(other)[0]
            np.testing.assert_array_equal(unpack_img(ours)[1], unpack_img(other)[1])
        key = unpack(raw[0])[0].id
        content = bytes(unpack(raw[0])[1])
    capsys.readouterr()
    assert command("check", output / "raw.rec") == 0
    assert command("info", output / "raw") == 0
    assert f"20 x {suffix[1:]}" in capsys.readouterr().out
    assert command("cat", output / "raw", key, "-o", output) == 0
    assert (output / f"{key}{suffix}").read_bytes() == content
    assert command("export", output / "raw", output / "again") == 0
    files = [path for path in (output / "again").rglob("*") if path.suffix == suffix]
    assert len(files) == 20


def test_images_that_cannot_be_raw_are_skipped_with_a_reason(photo_folder, output, images):
    (photo_folder / "dog" / "alpha.png").write_bytes(images.png(24, 36, 4))
    assert run("--encoding", "raw", "--color", -1, output / "p", photo_folder) == 1
    assert record_count(output / "p.rec") == 20
    skipped = (output / "p.skipped.txt").read_text()
    assert re.fullmatch(r"dog/alpha.png\t.*1 or 3 channels, not 4.*\n", skipped)


def test_options_that_pass_through_ignores_are_named(photo_folder, output, capsys):
    assert run("--pass-through", "--resize", 9, output / "p", photo_folder) == 0
    assert "no effect of --resize" in capsys.readouterr().err


COMMAND = [sys.executable, "-m", "recordio.tools.im2rec"]


def test_it_runs_as_a_module_and_is_quiet_without_a_terminal(photo_folder, output):
    done = subprocess.run(
        [*COMMAND, output / "p", photo_folder], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stdout == ""
    assert "%|" not in done.stderr
    assert all(line.startswith("im2rec: ") for line in done.stderr.splitlines())


def test_a_failing_import_of_opencv_does_not_stop_list_making(photo_folder, output):
    code = (
        "import sys; sys.modules['cv2'] = None; from recordio.tools.im2rec import main; "
        "sys.exit(main())"
    )
    words = ["--list", "--recursive", str(output / "p"), str(photo_folder)]
    subprocess.run([sys.executable, "-c", code, *words], check=True, timeout=60)
    assert "p.lst" in names(output)


@pytest.fixture
def long_list(photo_folder, output):
    """A list that takes a minute to pack."""
    with open(output / "p.lst", "w") as file:
        file.writelines(f"{number}\t0\tcat/00.jpg\n" for number in range(20_000))
    return output / "p", photo_folder


@posix_only
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_packing_leaves_nothing(long_list, output, number):
    def default_signals():
        signal.signal(signal.SIGINT, signal.default_int_handler)

    process = subprocess.Popen(
        [*COMMAND, "--resize", "90", "--encoding", ".png", "--num-thread", "2", *long_list],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_signals,
    )
    while not list(output.glob("p.rec.*")):  # until it packs
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
    process.send_signal(number)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "interrupted" in messages
    assert "Traceback" not in messages
    assert names(output) == ["p.lst"]


@posix_only
def test_a_full_disk_leaves_nothing_and_is_explained(photo_folder, output):
    (output / "p.rec").write_bytes(b"old")

    import resource

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = subprocess.run(
        [*COMMAND, "--pass-through", output / "p", photo_folder],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=small_files,
    )
    assert done.returncode == 1
    assert f"im2rec: error: {output / 'p.rec'}: " in done.stderr
    assert "Traceback" not in done.stderr
    assert names(output) == ["p.rec"]
    assert (output / "p.rec").read_bytes() == b"old"


def test_images_that_lose_bits_are_counted(tmp_path, output, images, capsys):
    (tmp_path / "photos").mkdir()
    for number in range(4):
        data = images.png(24, 36, 1, np.uint16 if number < 3 else np.uint8)
        (tmp_path / "photos" / f"{number}.png").write_bytes(data)
    note = "note: 3 images have more than 8 bits, and the upper 8 were stored; --color -1 with"
    for words in ([], ["--encoding", ".png"], ["--resize", "12"], ["--shards", "2"]):
        assert run(*words, output / "p", tmp_path / "photos") == 0
        assert note in capsys.readouterr().err
    for words in (["--color", "-1", "--encoding", ".png"], ["--pass-through"]):
        assert run(*words, output / "q", tmp_path / "photos") == 0
        assert "8 bits" not in capsys.readouterr().err


def test_what_lost_bits_is_in_the_report(tmp_path, images):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "0.png").write_bytes(images.png(24, 36, 1, np.uint16))
    for more in ({}, {"shards": 1}):
        report = convert.pack(tmp_path / "photos", tmp_path / "p", encoding=".png", **more)
        assert len(report.notes) == 1 and report.notes[0].startswith("note: 1 images have more")
    assert not convert.pack(tmp_path / "photos", tmp_path / "q").notes
