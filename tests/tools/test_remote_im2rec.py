"""`im2rec s3://...`: the files of a local prefix, and nothing of what is interrupted."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from range_server import RangeServer

import recordio
from recordio.tools.im2rec import main

SECRET = "hunter2-hunter2"


@pytest.fixture(params=["obstore", "fsspec"])
def server(request, tmp_path, monkeypatch):
    """A server that the environment names."""
    pytest.importorskip("obstore" if request.param == "obstore" else "s3fs")
    server = RangeServer()
    server.library = request.param
    for name, value in {
        "AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1", "RECORDIO_REMOTE_CACHE": str(tmp_path / "mirrors"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    if request.param == "fsspec":
        monkeypatch.setattr("recordio.bytes.remote.by_obstore.is_installed", lambda: False)
        pytest.importorskip("s3fs").S3FileSystem.clear_instance_cache()  # of other servers
    yield server
    server.stop()


@pytest.fixture
def photos(tmp_path, images):
    for name in ("ant/1.jpg", "ant/2.jpg", "bee/3.jpg"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(images.jpeg())
    return tmp_path / "photos"


def local_files(tmp_path, photos, *options):
    (tmp_path / "out").mkdir()
    main([*options, str(tmp_path / "out/p"), str(photos)])
    return {f"bucket/sets/{path.name}": path.read_bytes() for path in (tmp_path / "out").iterdir()}


def test_files_are_those_of_a_local_prefix(server, photos, tmp_path, capsys):
    wanted = local_files(tmp_path, photos)
    assert main(["s3://bucket/sets/p", str(photos)]) == 0
    assert server.objects == wanted and len(wanted) == 4
    assert "wrote s3://bucket/sets/p.lst: 3 images" in capsys.readouterr().err


def test_folders_and_parts(server, photos, tmp_path):
    assert main(["--train-ratio", "0.7", "s3://bucket/sets/", str(photos)]) == 0
    assert sorted(server.objects) == [
        f"bucket/sets/photos{end}"
        for end in (
            ".classes.txt", "_train.idx", "_train.lst", "_train.rec", "_val.idx", "_val.lst",
            "_val.rec",
        )
    ]  # fmt: skip


def test_lists_that_are_there_are_packed(server, photos, tmp_path, capsys):
    assert main(["--list", "--recursive", "s3://bucket/sets/p", str(photos)]) == 0
    assert sorted(server.objects) == ["bucket/sets/p.classes.txt", "bucket/sets/p.lst"]
    lines = server.objects["bucket/sets/p.lst"].splitlines(keepends=True)
    server.objects["bucket/sets/p.lst"] = b"\xef\xbb\xbf" + lines[0]
    assert main(["s3://bucket/sets/p", str(photos)]) == 0
    assert len(server.objects["bucket/sets/p.idx"].splitlines()) == 1
    assert "packed 1 images" in capsys.readouterr().err


def test_what_is_skipped_is_reported_beside_the_pack(server, photos, tmp_path, capsys):
    (photos / "bee/4.jpg").write_bytes(b"no image")
    wanted = local_files(tmp_path, photos)
    assert main(["s3://bucket/sets/p", str(photos)]) == 1
    assert server.objects == wanted and b"bee/4.jpg\t" in wanted["bucket/sets/p.skipped.txt"]
    (photos / "bee/4.jpg").write_bytes((photos / "bee/3.jpg").read_bytes())
    assert main(["s3://bucket/sets/p", str(photos)]) == 0
    assert "bucket/sets/p.skipped.txt" not in server.objects
    assert "see s3://bucket/sets/p.skipped.txt" in capsys.readouterr().err


def test_nothing_is_published_after_an_error(server, photos, capsys):
    (photos / "bee/4.jpg").write_bytes(b"no image")
    assert main(["--strict", "s3://bucket/sets/p", str(photos)]) == 1
    assert not server.objects
    server.fails = lambda kind, path, part: 403 if kind == "put" else None
    assert main(["s3://bucket/sets/p", str(photos)]) == 1
    error = capsys.readouterr().err
    assert "s3://bucket/sets/p.rec: it cannot be written" in error and SECRET not in error
    assert not server.objects


def test_places_that_are_only_read(photos, capsys):
    with pytest.raises(SystemExit):
        main(["https://host/p", str(photos)])
    assert "only read" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["s3://bucket/p", "s3://bucket/photos"])


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to other processes")
def test_ctrl_c_ends_at_once(server, photos):
    arrived = threading.Event()

    def fails(kind, path, part):
        arrived.set()
        return "hang"

    server.fails = fails
    command = (
        "import sys; from recordio.bytes.remote import by_obstore;"
        "from recordio.tools.im2rec import main;"
        f"by_obstore.is_installed = lambda: {server.library == 'obstore'};"
        "sys.exit(main(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", command, "s3://bucket/sets/p", str(photos)],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(recordio.__file__).parents[1])},
    )  # fmt: skip
    try:
        assert arrived.wait(60)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)  # the server answers after 60 seconds
    finally:
        process.kill()
    assert process.returncode == 130 and b"interrupted" in error
    assert not server.objects
