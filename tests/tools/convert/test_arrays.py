"""NumPy files to packs and back."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from iterators.testing import write_pack
from recordio import IRHeader, RecordWriter, pack
from recordio.formats import by_opencv
from recordio.tools.images import decode_content


@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    data=hnp.arrays(
        hnp.scalar_dtypes() | st.just(np.dtype([("a", ">f4"), ("b", "S3"), ("c", "i2", (2,))])),
        hnp.array_shapes(min_dims=1, max_dims=4, max_side=4),
    ),
)
def test_there_and_back_gives_the_same_array(tmp_path, command, data):
    np.save(tmp_path / "a.npy", data)
    assert command("from-numpy", tmp_path / "a.npy", tmp_path / "t", "--force") == 0
    assert command("export", tmp_path / "t", tmp_path / "b", "--to", "npy", "--force") == 0
    again = np.load(tmp_path / "b.npy", allow_pickle=False)
    assert again.dtype == data.dtype
    assert again.shape == data.shape
    assert again.tobytes() == data.tobytes()


@pytest.mark.parametrize("labels", [np.arange(4), np.linspace(0, 1, 8, dtype="f4").reshape(4, 2)])
def test_labels_come_back(tmp_path, command, labels):
    np.save(tmp_path / "a.npy", np.zeros((4, 2), order="F"))
    np.save(tmp_path / "l.npy", labels)
    words = ["from-numpy", tmp_path / "a.npy", tmp_path / "t", "--labels", tmp_path / "l.npy"]
    assert command(*words) == 0
    assert command("export", tmp_path / "t", tmp_path / "b.npy", "--to", "npy") == 0
    np.testing.assert_array_equal(np.load(tmp_path / "b.labels.npy"), labels)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_whole_labels_that_would_be_rounded_are_left_out(tmp_path, command, capsys, dtype):
    np.save(tmp_path / "a.npy", np.zeros((2, 2)))
    np.save(tmp_path / "l.npy", np.array([16777217, 16777218], dtype))
    words = ["from-numpy", tmp_path / "a.npy", tmp_path / "t", "--labels", tmp_path / "l.npy"]
    assert command(*words) == 1
    assert "has no exact 32-bit float" in capsys.readouterr().err


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [None, 1, 3, 4])
def test_images_in_png_are_lossless(tmp_path, command, contents, dtype, channels):
    if channels == 4 and dtype == np.uint16 and not by_opencv.available():
        pytest.skip("four channels of 16 bits are refused without OpenCV")
    shape = (3, 5, 6) if channels is None else (3, 5, 6, channels)
    data = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, shape, dtype)
    np.save(tmp_path / "a.npy", data)
    words = ["from-numpy", tmp_path / "a.npy", tmp_path / "t", "--encoding", ".png"]
    assert command(*words) == 0
    assert contents(tmp_path / "t")[0][1].startswith(b"\x89PNG")
    assert command("export", tmp_path / "t", tmp_path / "b", "--to", "npy") == 0
    np.testing.assert_array_equal(
        np.load(tmp_path / "b.npy"), data.squeeze(-1) if channels == 1 else data
    )


def test_colours_are_rgb_in_arrays_and_in_files(tmp_path, command, contents):
    data = np.zeros((1, 8, 8, 3), np.uint8)
    data[..., 0] = 255  # red
    np.save(tmp_path / "a.npy", data)
    assert command("from-numpy", tmp_path / "a.npy", tmp_path / "t", "--encoding", ".jpg") == 0
    ((_, content),) = contents(tmp_path / "t")
    blue, green, red = decode_content(content)[0, 0].tolist()
    assert (red, green, blue) == pytest.approx((255, 0, 0), abs=3)


def test_rows_that_are_no_images_are_refused(tmp_path, command, capsys):
    np.save(tmp_path / "a.npy", np.zeros((2, 5, 6)))
    assert command("from-numpy", tmp_path / "a.npy", tmp_path / "t", "--encoding", ".png") == 1
    assert "float64 (5, 6) is no image" in capsys.readouterr().err
    assert not (tmp_path / "t.rec").exists()


def test_arrays_of_an_archive_are_chosen_by_name(tmp_path, command, contents, capsys):
    np.savez(tmp_path / "a.npz", x=np.eye(3), y=[5, 6, 7], z=[0])
    words = ["from-numpy", tmp_path / "a.npz", tmp_path / "t"]
    assert command(*words) == 1
    assert "choose one of x, y, z" in capsys.readouterr().err
    assert command(*words, "--data-name", "w") == 1
    assert command(*words, "--data-name", "x", "--label-name", "y") == 0
    assert [header.label for header, _ in contents(tmp_path / "t")] == [5, 6, 7]
    assert "note: not stored: 1 array z\n" in capsys.readouterr().err
    assert command(*words, "--data-name", "y", "--force") == 0
    assert "note: not stored: 1 array x, 1 array z\n" in capsys.readouterr().err


def test_pickled_objects_are_not_read(tmp_path, command, capsys):
    np.save(tmp_path / "a.npy", np.array([{}, None]), allow_pickle=True)
    np.savez(tmp_path / "b.npz", x=np.array([{}, None]))
    (tmp_path / "c.npy").write_bytes(b"cos\nsystem\n(S'echo'\ntR.")
    for name in ("a.npy", "b.npz", "c.npy"):
        assert command("from-numpy", tmp_path / name, tmp_path / "t") == 1
        assert name in capsys.readouterr().err
    assert not (tmp_path / "t.rec").exists()


def test_every_truncation_is_an_error(tmp_path, command, capsys):
    np.savez(tmp_path / "a.npz", x=np.arange(6))
    np.save(tmp_path / "a.npy", np.arange(6))
    for name in ("a.npy", "a.npz"):
        data = (tmp_path / name).read_bytes()
        for size in range(0, len(data), 7):
            (tmp_path / f"cut{name}").write_bytes(data[:size])
            assert command("from-numpy", tmp_path / f"cut{name}", tmp_path / "t") == 1
    assert "Traceback" not in capsys.readouterr().err


def test_labels_that_do_not_fit_are_refused(tmp_path, command):
    np.save(tmp_path / "a.npy", np.eye(3))
    for labels in (np.zeros(2), np.zeros((3, 1, 1)), np.array(["a", "b", "c"])):
        np.save(tmp_path / "l.npy", labels)
        words = ["from-numpy", tmp_path / "a.npy", tmp_path / "t", "--labels", tmp_path / "l.npy"]
        assert command(*words) == 1
    assert not (tmp_path / "t.rec").exists()


def test_arrays_of_different_shapes_are_no_array(tmp_path, command, capsys, photo_folder):
    assert command("from-imagefolder", photo_folder, tmp_path / "t") == 0
    assert command("export", tmp_path / "t", tmp_path / "b", "--to", "npy") == 1
    assert "those before are of" in capsys.readouterr().err
    assert not list(tmp_path.glob("b*"))


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_remote_files_are_read(tmp_path, command, contents, name):
    import fsspec

    data = np.eye(3)
    with fsspec.open(f"memory://recordio/{name}", "wb") as file:
        np.save(file, data) if name.endswith("npy") else np.savez(file, x=data)
    assert command("from-numpy", f"memory://recordio/{name}", tmp_path / "t") == 0
    assert len(contents(tmp_path / "t")) == 3


def test_what_zip_hides_is_refused_until_asked_for(tmp_path, command, capsys):
    np.savez_compressed(tmp_path / "a.npz", data=np.zeros((5, 1 << 26), np.uint8))
    words = ["from-numpy", tmp_path / "a.npz", tmp_path / "t"]
    assert command(*words) == 1
    assert "raise max_array_bytes" in capsys.readouterr().err
    np.savez_compressed(tmp_path / "a.npz", data=np.zeros((4, 1000), np.uint8))
    assert command(*words, "--max-array-bytes", 4000) == 1
    assert command(*words, "--max-array-bytes", 4200) == 0


def test_a_packed_header_that_lies_takes_no_memory(tmp_path, command, capsys):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 50,)}
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("data.npy", header.getvalue() + bytes(80))
    assert command("from-numpy", tmp_path / "a.npz", tmp_path / "t") == 1
    assert "and there are 80" in capsys.readouterr().err


def test_exports_do_not_decode_what_is_too_large(tmp_path, command, images, capsys):
    write_pack(tmp_path / "p.rec", [images.png(24, 36)], index=False)
    words = ["export", tmp_path / "p", tmp_path / "x", "--to", "npy", "--max-pixels"]
    assert command(*words, 24 * 36 - 1) == 1
    assert "raise --max-pixels" in capsys.readouterr().err
    assert command(*words, 24 * 36) == 0


@pytest.mark.parametrize("encoding", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_arrays_of_images_are_upright(tmp_path, command, images, encoding):
    pixels = images.gradient(24, 36)
    with RecordWriter(tmp_path / "t.rec", tmp_path / "t.idx") as writer:
        for orientation in range(1, 9):
            content = images.turned(pixels, encoding, orientation)
            writer.write(pack(IRHeader(0, 1.0, orientation, 0), content), orientation)
    assert command("export", tmp_path / "t", tmp_path / "b", "--to", "npy") == 0
    found = np.load(tmp_path / "b.npy")
    assert found.shape == (8, 24, 36, 3) and abs(found.astype(int) - pixels).max() < 12
