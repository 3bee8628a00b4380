"""Files of another kind are named at every door, and damaged record files keep their errors."""

import gzip
import io
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest

from iterators import ImageRecordIter
from recordio import CorruptRecordError, RecordReader, RecordWriter, build_index, repair, verify
from recordio.bytes.crc32c import crc32c
from recordio.encodings import guessed_encoding, missing_name, path_of_name, wrong_encoding
from recordio.errors import FileKindError
from recordio.file_kinds import kind_and_remedy
from recordio.operations.statistics import stats
from recordio.tools.im2rec_options import PackOptions
from recordio.tools.pack_source import pack_source


def _npz():
    file = io.BytesIO()
    np.savez(file, a=np.arange(3))
    return file.getvalue()


def _zip(name="a.txt"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "x")
    return file.getvalue()


def _tar():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return file.getvalue()


def _tfrecord():
    length = struct.pack("<Q", 4)
    check = crc32c(length)
    masked = ((check >> 15 | check << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return length + struct.pack("<I", masked) + b"abcd0000"


OTHERS = {
    "a.idx": (b"0\t0\n", "an index"),
    "a.lst": (b"0\t1\ta.png\n", "a list of images"),
    "a.npz": (_npz(), "NumPy arrays"),
    "a.npy": (b"\x93NUMPY\1\0" + bytes(90), "a NumPy array"),
    "a.h5": (b"\x89HDF\r\n\x1a\n" + bytes(90), "an HDF5 file"),
    "a.rec.gz": (gzip.compress(b"abc"), "gzip data"),
    "a.jpg": (b"\xff\xd8\xff\xe0" + bytes(90), "a JPEG image"),
    "b.rec": (b"\x89PNG\r\n\x1a\n" + bytes(90), "a PNG image"),
    "c.rec": (_zip(), "a zip archive"),
    "d.rec": (_tar(), "a tar archive"),
    "e.rec": (b"PAR1" + bytes(90), "a Parquet file"),
    "f.rec": (_tfrecord(), "a TFRecord file"),
    "g.rec": (b"<!DOCTYPE html><html>", "an HTML page"),
    "h.rec": (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
    "i.rec": ("\ufeff1,2".encode("utf-16-le"), "UTF-16 text"),
    "j.rec": (b"1,2\n3,4\n", "a text file"),
    "lfw.bin": (pickle.dumps(([b"a"], [True])), "a pickle"),
    "a.csv": (b"1,2\n", "a table"),
    "a.manifest": (b"[]", "a manifest"),
}
DOORS = {
    "RecordReader": lambda path: len(RecordReader(path)),
    "build_index": lambda path: build_index(path, f"{path}.new"),
    "verify": verify,
    "repair": lambda path: repair(path, f"{path}.new"),
    "stats": stats,
    "ImageRecordIter": lambda path: ImageRecordIter(
        path_imgrec=path, data_shape=(3, 8, 8), batch_size=1, verbose=False
    ),
    "ImageRecordIter, skipping": lambda path: ImageRecordIter(
        path_imgrec=path, data_shape=(3, 8, 8), batch_size=1, verbose=False, on_error="skip"
    ),
    "recordio pack": lambda path: pack_source(path, f"{path}.new", PackOptions()),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", OTHERS)
def test_every_door_names_the_kind(tmp_path, name, door):
    data, kind = OTHERS[name]
    if (name, door) == ("a.manifest", "recordio pack"):
        pytest.skip("it packs manifests")
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(FileKindError, match=f"no record file: it looks like {kind}") as caught:
        DOORS[door](str(path))
    assert "repair" not in str(caught.value)


def test_damaged_record_files_keep_their_errors(tmp_path):
    path = tmp_path / "a.rec"
    with RecordWriter(path) as writer:
        writer.write(b"content of a record")
    whole = path.read_bytes()
    for data in (bytes(8) + whole, b"\n#\xd7\xcf" + whole[4:], b"junk\0\1\2\3" + whole):
        path.write_bytes(data)
        with pytest.raises(CorruptRecordError, match="repair"):
            len(RecordReader(path))


def test_kinds_of_tables_by_office():
    assert kind_and_remedy("a.csv", _zip("[Content_Types].xml"))[0] == "an Excel workbook"
    assert kind_and_remedy("a.rec", b"\0\1\2\3") is None


def test_encodings_are_told_apart(tmp_path):
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        assert wrong_encoding("0\t1\ta.png\n".encode(encoding))[0][:4] == "UTF-"
    assert wrong_encoding("猫,1\n".encode()) is None
    assert guessed_encoding("猫".encode("gbk")) == "GBK" or guessed_encoding(b"\xe9") == "Latin-1"
    (tmp_path / "cafe\u0301.jpg").write_bytes(b"")
    assert "decomposed" in missing_name(str(tmp_path / "caf\u00e9.jpg"))
    assert "not UTF-8" in missing_name("caf\udce9.jpg")
    assert missing_name("a.jpg") == ""
    assert path_of_name("caf\u00e9.jpg") == "caf\u00e9.jpg"
