"""Folders of people and lists of faces as packs that InsightFace's scripts read."""

import numbers
import zlib

import cv2
import numpy as np
import pytest

import recordio
from iterators import ImageRecordIter
from recordio.convert import from_faces
from recordio.errors import RecordIOError
from recordio.packs.check import check_pack
from recordio.packs.open_pack import open_pack
from recordio.tools.cli import main
from recordio.tools.convert.faces import PLACES, aligned


def write_image(path, number, size=(112, 112)):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(number).integers(0, 256, (*size, 3), np.uint8)
    content = recordio.encode_image(pixels, "png")
    path.write_bytes(content)
    return content


@pytest.fixture
def people(tmp_path):
    """A folder of three people; the contents of their images in order."""
    contents = [
        write_image(tmp_path / "people" / name, number)
        for number, name in enumerate(
            ["Ann/1.png", "Ann/2.png", "Ann/more/3.png", "Bob/1.png", "Cid/1.png", "Cid/2.png"]
        )
    ]
    return tmp_path / "people", contents


class FaceFiles:
    """What InsightFace's ``MXFaceDataset`` does with its files."""

    def __init__(self, folder):
        self.imgrec = recordio.MXIndexedRecordIO(f"{folder}/train.idx", f"{folder}/train.rec", "r")
        header, _ = recordio.unpack(self.imgrec.read_idx(0))
        assert header.flag > 0
        self.header0 = (int(header.label[0]), int(header.label[1]))
        self.imgidx = np.array(range(1, int(header.label[0])))

    def item(self, index):
        header, image = recordio.unpack(self.imgrec.read_idx(self.imgidx[index]))
        label = header.label
        if not isinstance(label, numbers.Number):
            label = label[0]
        return bytes(image), int(label)

    def ranges(self):
        return [
            recordio.unpack(self.imgrec.read_idx(key))[0].label.tolist()
            for key in range(*self.header0)
        ]


def test_a_folder_of_people(people, tmp_path, capsys):
    folder, contents = people
    (tmp_path / "faces").mkdir()
    assert main(["from-faces", str(folder), str(tmp_path / "faces" / "train")]) == 0
    names = sorted(path.name for path in (tmp_path / "faces").iterdir())
    assert names == ["property", "train.classes.txt", "train.idx", "train.lst", "train.rec"]
    files = FaceFiles(tmp_path / "faces")
    assert files.header0 == (7, 10)
    found = [files.item(i) for i in range(len(files.imgidx))]
    assert [label for _, label in found] == [0, 0, 0, 1, 2, 2]
    assert [zlib.crc32(content) for content, _ in found] == [zlib.crc32(one) for one in contents]
    assert files.ranges() == [[1, 4], [4, 5], [5, 7]]
    assert (tmp_path / "faces" / "property").read_text() == "3,112,112\n"
    lines = (tmp_path / "faces" / "train.lst").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == list("123456")
    assert lines[3].endswith("Bob/1.png")
    assert (tmp_path / "faces" / "train.classes.txt").read_text() == "0\tAnn\n1\tBob\n2\tCid\n"
    with open_pack(tmp_path / "faces" / "train") as pack:
        assert check_pack(pack).ok
        assert len(pack.faces) == 3
    provider = ImageRecordIter(
        path_imgrec=tmp_path / "faces" / "train.rec", data_shape=(3, 112, 112), batch_size=6
    )
    assert (provider.num_samples, provider.num_classes) == (6, 3)
    before = (tmp_path / "faces" / "train.idx").read_bytes()
    recordio.build_index(tmp_path / "faces" / "train.rec", keys="id")
    assert (tmp_path / "faces" / "train.idx").read_bytes() == before
    capsys.readouterr()
    assert main(["from-faces", str(folder), str(tmp_path / "faces" / "train")]) != 0
    assert "exists already" in capsys.readouterr().err


def test_hidden_folders_and_those_of_systems_are_no_people(people, tmp_path):
    folder, _ = people
    for name in (".git", "__MACOSX", "@eaDir", ".ipynb_checkpoints", "$RECYCLE.BIN", "Ann/.thumbs"):
        write_image(folder / name / "1.png", 1)
    write_image(folder / "Ann" / "._1.png", 1)
    write_image(folder / "loose.png", 1)
    report = from_faces(folder, tmp_path / "train")
    assert report.records == 6
    assert any(note.startswith("note: 7 hidden or system") for note in report.notes)
    assert [item.path for item in report.skipped] == ["loose.png"]
    assert (tmp_path / "train.classes.txt").read_text() == "0\tAnn\n1\tBob\n2\tCid\n"
    with pytest.raises(RecordIOError, match="person"):
        from_faces(folder, tmp_path / "other", strict=True)
    assert not (tmp_path / "other.rec").exists()


def test_damaged_images_are_left_out_and_keys_go_on(people, tmp_path):
    folder, contents = people
    (folder / "Bob" / "1.png").write_bytes(b"no image")
    (tmp_path / "property").write_text("of an older pack")
    assert from_faces(folder, tmp_path / "train").records == 5
    files = FaceFiles(tmp_path)
    assert files.ranges() == [[1, 4], [4, 4], [4, 6]]
    assert [files.item(i) for i in range(3, 5)] == [(contents[4], 2), (contents[5], 2)]
    assert "Bob/1.png" in (tmp_path / "train.skipped.txt").read_text()
    assert (tmp_path / "property").read_text() == "3,112,112\n"


def test_images_of_several_sizes_have_no_property(people, tmp_path, capsys):
    folder, _ = people
    write_image(folder / "Bob" / "2.png", 9, (40, 30))
    (tmp_path / "property").write_text("of an older pack")
    assert main(["from-faces", str(folder), str(tmp_path / "train"), "--force"]) == 0
    assert "property is not written" in capsys.readouterr().err
    assert not (tmp_path / "property").exists()


def test_shuffled_images_keep_the_keys_of_their_person(people, tmp_path):
    folder, contents = people
    from_faces(folder, tmp_path / "train", shuffle=True, seed=3)
    files = FaceFiles(tmp_path)
    found = [files.item(i) for i in range(6)]
    assert [label for _, label in found] == [0, 0, 0, 1, 2, 2]
    assert sorted(content for content, _ in found) == sorted(contents)
    names = [line.split("\t")[2] for line in (tmp_path / "train.lst").read_text().splitlines()]
    assert [(folder / name).read_bytes() for name in names] == [content for content, _ in found]


def face(angle, scale, shift):
    """A picture with five dots, turned and moved, and where they are."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = PLACES @ turn.T * scale + shift
    image = np.full((300, 320, 3), 40, np.uint8)
    for number, (x, y) in enumerate(points):
        cv2.circle(image, (round(x), round(y)), round(4 * scale), (255, 60 * number, 0), -1)
    return image, points


def test_alignment_is_that_of_opencv():
    image, points = face(0.4, 1.7, (80, 20))
    matrix, _ = cv2.estimateAffinePartial2D(points, PLACES, method=cv2.LMEDS)
    wanted = cv2.warpAffine(image, matrix, (112, 112))
    found = aligned(image, points)
    assert np.abs(found.astype(int) - wanted).mean() < 1
    for number, (x, y) in enumerate(PLACES.round().astype(int)):
        assert np.abs(found[y, x].astype(int) - [255, 60 * number, 0]).max() < 30


def test_what_lies_beside_the_image_is_black():
    image = np.full((60, 60, 3), 255, np.uint8)
    found = aligned(image, PLACES + [-40, -40])
    assert found[60, 60].tolist() == [255] * 3 and found[110, 110].tolist() == [0] * 3
    assert found[10, 10].tolist() == [0] * 3


def test_a_list_of_faces(tmp_path):
    content = write_image(tmp_path / "in" / "a.png", 1)
    image, points = face(-0.2, 1.2, (60, 30))
    (tmp_path / "in" / "b.png").write_bytes(recordio.encode_image(image, "png"))
    marks = "\t".join(f"{value:.3f}" for value in points.T.ravel())
    (tmp_path / "faces.lst").write_text(
        f"1\ta.png\t1.0\n0\tb.png\t0\t1\t2\t30\t40\t{marks}\n1\ta.png\t0\t1\t2\t3\t4\n"
        "0\tb.png\t0\n0\tb.png\t0\t1\t2\t30\t40\n1\tnone.png\t0\n2\ta.png\t0\n1\ta.png\n"
        "1\ta.png\tx\n1\ta.png\t-1\n1\ta.png\t1.5\n"
        f"0\tb.png\t0\t1\t2\t3\t4{marks.count('x') * 'x'}" + "\t5" * 10 + "\n"
    )
    report = from_faces(tmp_path / "faces.lst", tmp_path / "train", root=tmp_path / "in")
    assert report.records == 3
    files = FaceFiles(tmp_path)
    assert [files.item(i)[1] for i in range(3)] == [0, 0, 1]
    assert files.item(1)[0] == files.item(2)[0] == content
    pixels = recordio.decode_image(files.item(0)[0])
    assert pixels.shape == (112, 112, 3)
    assert np.abs(pixels.astype(int) - aligned(image, points)).mean() < 4
    reasons = {item.path.rpartition(" ")[2]: item.reason for item in report.skipped}
    assert sorted(map(int, reasons)) == [4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert "no landmarks" in reasons["4"] and "no landmarks" in reasons["5"]
    assert "none.png" in reasons["6"]
    assert "numbers no person" in reasons["10"]
    assert "'1.5' is no whole number" in reasons["11"]
    assert "one point" in reasons["12"]
    assert (tmp_path / "property").read_text() == "2,112,112\n"
