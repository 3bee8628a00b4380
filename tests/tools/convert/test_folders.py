"""Packs to folders of images and back."""

import os
import shutil
import tarfile

import pytest

from iterators.testing import write_pack, write_rows
from recordio.tools.convert.folders import safe_parts


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "labels.csv"
    }


def test_there_and_back_gives_the_same_tree(photo_folder, tmp_path, command):
    for words in ([], ["--shuffle"]):
        assert command("from-imagefolder", photo_folder, tmp_path / "p", "--force", *words) == 0
        assert command("export", tmp_path / "p", tmp_path / "again") == 0
        assert tree(tmp_path / "again") == tree(photo_folder)
        shutil.rmtree(tmp_path / "again")


def test_the_files_are_those_of_im2rec(photo_folder, tmp_path, command):
    from recordio.tools.im2rec import main

    assert main(["--no-shuffle", "--pass-through", str(tmp_path / "a"), str(photo_folder)]) == 0
    assert command("from-imagefolder", photo_folder, tmp_path / "b") == 0
    for suffix in ("rec", "idx", "lst", "classes.txt"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_parts_made_by_im2rec_find_their_class_names(photo_folder, tmp_path, command):
    from recordio.tools.im2rec import main

    words = ["--train-ratio=0.5", "--pass-through", str(tmp_path / "a"), str(photo_folder)]
    assert main(words) == 0
    merged = {}
    for part in ("train", "val"):
        assert command("export", tmp_path / f"a_{part}.rec", tmp_path / part) == 0
        merged |= tree(tmp_path / part)
    assert merged == tree(photo_folder)


def test_labels_are_in_a_table(photo_folder, tmp_path, command):
    assert command("from-imagefolder", photo_folder, tmp_path / "p") == 0
    assert command("export", tmp_path / "p", tmp_path / "again") == 0
    lines = (tmp_path / "again" / "labels.csv").read_text().splitlines()
    assert lines[:2] == ["path,id,labels", "cat/00.jpg,0,0"]
    assert lines[-1] == "dog/07.png,19,1"
    assert command("export", tmp_path / "p", tmp_path / "l.csv", "--to", "labels") == 0
    assert (tmp_path / "l.csv").read_text().splitlines()[-1] == "19,19,1"


def test_without_names_files_are_named_after_keys_and_labels(tmp_path, command, images):
    jpeg, png = images.jpeg(), images.png()
    rows = [(7, 2.0, jpeg), (8, 0.5, png), (8, [2, 9], png)]
    write_rows(tmp_path / "p.rec", rows, keys=[11, 12, 11])
    assert command("export", tmp_path / "p", tmp_path / "x") == 0
    assert tree(tmp_path / "x") == {"2/11.jpg": jpeg, "0.5/12.png": png, "2/11.png": png}
    assert "2/11.png,8,2,9" in (tmp_path / "x" / "labels.csv").read_text()


def test_two_files_of_one_name_are_both_kept(tmp_path, command, images):
    rows = [(7, 2.0, images.png(height)) for height in (3, 4)]
    write_rows(tmp_path / "p.rec", rows, keys=[11, 11])
    assert command("export", tmp_path / "p", tmp_path / "x") == 0
    assert tree(tmp_path / "x") == {"2/11.png": images.png(3), "2/11-1.png": images.png(4)}


@pytest.mark.parametrize(
    "name", ["../out", "/etc", "a/../../b", "", " ", "a//b", "a\0b", "..", "a/.", "a/", "./a"]
)
def test_no_name_leads_out_of_the_folder(photo_folder, tmp_path, command, name):
    assert safe_parts(name) == [] and safe_parts("animals/cat") == ["animals", "cat"]
    assert command("from-imagefolder", photo_folder, tmp_path / "p") == 0
    with open(tmp_path / "p.classes.txt", "w", newline="") as file:
        file.write(f"0\t{name}\n")
    assert command("export", tmp_path / "p", tmp_path / "x") == 1
    assert not list(tmp_path.glob("x*"))


def test_list_names_do_not_lead_out_of_the_folder(tmp_path, command, images):
    write_pack(tmp_path / "p.rec", [images.png()], [2.0], index=False)
    (tmp_path / "p.lst").write_text("0\t2\t../../evil.png\n")
    assert command("export", tmp_path / "p", tmp_path / "x") == 0
    assert tree(tmp_path / "x") == {"2/evil.png": images.png()}
    assert command("export", tmp_path / "p", tmp_path / "x.tar", "--to", "webdataset") == 0
    with tarfile.open(tmp_path / "x.tar") as archive:
        assert archive.getnames() == ["0.png", "0.cls"]


def test_large_labels_get_folders_of_their_own(tmp_path, command, images):
    labels = [1234567, 1234568, 0.5, -1]
    write_pack(tmp_path / "p.rec", [images.png()] * 4, labels, index=False)
    assert command("export", tmp_path / "p", tmp_path / "x") == 0
    assert sorted(tree(tmp_path / "x")) == [
        "-1/3.png",
        "0.5/2.png",
        "1234567/0.png",
        "1234568/1.png",
    ]


def test_images_with_objects_have_no_folder_of_their_own(tmp_path, command, images, capsys):
    labels = [[2, 5, 0, 0.1, 0.1, 0.5, 0.5], [2, 5, 1, 0.1, 0.1, 0.5, 0.5]]
    write_pack(tmp_path / "p.rec", [images.png()] * 2, labels, index=False)
    (tmp_path / "p.classes.txt").write_text("0\tcat\n1\tdog\n2\temu\n")
    assert command("export", tmp_path / "p", tmp_path / "x") == 0
    assert "note: labels are of objects or rows for several classes" in capsys.readouterr().err
    assert sorted(tree(tmp_path / "x")) == ["0.png", "1.png"]


def test_damaged_images_are_reported_unless_nothing_is_checked(photo_folder, tmp_path, command):
    whole = (photo_folder / "cat" / "03.jpg").read_bytes()
    (photo_folder / "cat" / "03.jpg").write_bytes(whole[:-30])
    (photo_folder / "dog" / "03.png").write_bytes(b"no image")
    words = ["from-imagefolder", photo_folder, tmp_path / "p"]
    assert command(*words) == 1
    report = (tmp_path / "p.skipped.txt").read_text().splitlines()
    assert [line.partition("\t")[0] for line in report] == ["cat/03.jpg", "dog/03.png"]
    assert command(*words, "--force", "--skip-errors") == 0
    assert command(*words, "--force", "--check=none") == 0
    assert not (tmp_path / "p.skipped.txt").exists()


def test_an_existing_folder_is_left_alone(photo_folder, tmp_path, command, output, capsys):
    assert command("from-imagefolder", photo_folder, tmp_path / "p") == 0
    assert command("export", tmp_path / "p", output) == 0
    before = tree(output)
    for words in ([], ["--force"]):
        assert command("export", tmp_path / "p", output, *words) == 1
        assert "no empty folder" in capsys.readouterr().err
    assert tree(output) == before
    assert not list(tmp_path.glob("*.partial"))


def test_suffixes_are_chosen(photo_folder, tmp_path, command, contents):
    words = ["from-imagefolder", photo_folder, tmp_path / "p", "--exts", "PNG,.webp"]
    assert command(*words) == 0
    assert len(contents(tmp_path / "p")) == 8


def test_a_folder_without_images_is_an_error(tmp_path, command, output, capsys):
    assert command("from-imagefolder", output, tmp_path / "p") == 1
    assert "the folder holds no .rec file and no images" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["output"]


def test_names_that_are_too_long_become_keys_and_labels(tmp_path, command, images):
    long, twice = "n" * 300, "t" * 251
    contents = [images.jpeg(key + 20) for key in range(4)]
    write_pack(tmp_path / "p.rec", contents, [0, 1, 0, 1])
    (tmp_path / "p.lst").write_text(
        f"0\t0\t{long}.jpg\n1\t1\t{twice}.jpg\n2\t0\tc.jpg\n3\t1\t{twice}.jpg\n"
    )
    (tmp_path / "p.classes.txt").write_text(f"0\t{long}\n1\tcat\n")
    assert command("export", tmp_path / "p", tmp_path / "out") == 0
    names = sorted(path.relative_to(tmp_path / "out").as_posix() for path in tree_files(tmp_path))
    assert names == ["0/0.jpg", "0/c.jpg", "cat/3.jpg", f"cat/{twice}.jpg", "labels.csv"]
    assert "0/0.jpg" in (tmp_path / "out" / "labels.csv").read_text()


def tree_files(folder):
    return [path for path in (folder / "out").rglob("*") if path.is_file()]


def test_files_with_other_suffixes_are_told_of(photo_folder, output, command, capsys):
    (photo_folder / "cat" / "x.heic").touch()
    assert command("from-imagefolder", photo_folder, output / "t") == 0
    assert "note: 1 files that end in .heic were left out" in capsys.readouterr().err
    assert command("from-imagefolder", photo_folder, output / "u", "--exts", "jpg,tif") == 0
    told = capsys.readouterr().err
    assert "note: 8 files that end in .png were left out, as others were chosen" in told
    assert "note: 1 files that end in .heic were left out" in told
