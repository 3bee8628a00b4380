"""Downloads: once, whole, resumed and checked, from a server in a thread and from files."""

import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest

from iterators import cached_download, get_dataset_root, set_dataset_root
from iterators.datasets import ChecksumError

CONTENT = bytes(range(256)) * 4000  # more than one block of the downloader
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves one content, and misbehaves as a test tells it."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.tag = '"one"'
        self.modified = None
        self.ranges = True
        self.length = True
        self.cuts = []  # how many bytes the next answers send before the connection ends
        self.status = None
        self.requests = []
        self.hellos = threading.Semaphore(0)
        self.half_way = threading.Event()
        self.release = threading.Event()
        self.wait_for_hellos = 0
        self.stop_half_way = False

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/folder/data.bin"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        server = self.server
        if self.path == "/hello":
            server.hellos.release()
            self.send_response(204)
            self.end_headers()
            return
        server.requests.append((self.headers.get("Range"), self.headers.get("If-Range")))
        for _ in range(server.wait_for_hellos):
            server.hellos.acquire(timeout=60)
        if server.status:
            self.send_error(server.status)
            return
        content, start = server.content, 0
        wanted = self.headers.get("Range")
        known = self.headers.get("If-Range") in (server.tag, server.modified)
        if wanted and server.ranges and known:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if server.length:
            self.send_header("Content-Length", str(len(content) - start))
        if server.tag:
            self.send_header("ETag", server.tag)
        if server.modified:
            self.send_header("Last-Modified", server.modified)
        self.end_headers()
        body = content[start:]
        if server.cuts:
            body = body[: server.cuts.pop(0)]
        if server.stop_half_way:
            server.stop_half_way = False
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            server.half_way.set()
            server.release.wait(60)
            return
        self.wfile.write(body)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.release.set()
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def root(tmp_path):
    before = get_dataset_root()
    set_dataset_root(tmp_path / "root")
    yield tmp_path / "root"
    set_dataset_root(before)


def kept(root):
    """Everything in the cache but locks."""
    folder = root / "_dl_cache"
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_a_file_is_fetched_once(server, root):
    path = cached_download(server.url)
    name = hashlib.md5(server.url.encode()).hexdigest()
    assert path == str(root / "_dl_cache" / name)
    assert Path(path).read_bytes() == CONTENT
    assert cached_download(server.url) == path
    assert server.requests == [(None, None)]
    assert kept(root) == [name]


@pytest.mark.parametrize("content", [b"", b"x"])
def test_small_files(server, content):
    server.content = content
    assert Path(cached_download(server.url)).read_bytes() == content


def test_without_a_length_the_end_of_the_connection_is_the_end(server):
    server.length = False
    assert Path(cached_download(server.url)).read_bytes() == CONTENT


@pytest.mark.parametrize("kind", ["md5", "sha1", "sha256", "sha384", "sha512"])
def test_checksums_of_all_kinds(server, kind):
    digest = hashlib.new(kind, CONTENT).hexdigest()
    for checksum in (digest, f"{kind}:{digest.upper()}", f" {digest}\n"):
        assert Path(cached_download(server.url, checksum=checksum)).read_bytes() == CONTENT
    assert len(server.requests) == 1


def test_a_wrong_checksum_is_an_error_and_nothing_is_kept(server, root):
    with pytest.raises(ChecksumError, match=SHA256) as caught:
        cached_download(server.url, checksum="0" * 64)
    assert server.url in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert kept(root) == []


def test_a_cached_file_with_another_checksum_is_fetched_again(server, root):
    server.content = b"old"
    path = cached_download(server.url)
    server.content = CONTENT
    assert cached_download(server.url) == path
    assert Path(path).read_bytes() == b"old"
    with pytest.raises(ChecksumError):
        cached_download(server.url, checksum="0" * 64)
    assert Path(path).read_bytes() == b"old"
    cached_download(server.url, checksum=SHA256)
    assert Path(path).read_bytes() == CONTENT
    assert len(kept(root)) == 1


@pytest.mark.parametrize("text", ["", "123", "g" * 32, "md5:" + "0" * 64, "crc32:" + "0" * 8])
def test_what_is_no_checksum_is_a_value_error(server, text):
    with pytest.raises(ValueError, match="checksum="):
        cached_download(server.url, checksum=text)
    assert server.requests == []


def test_a_broken_connection_is_made_anew_where_it_ended(server):
    server.cuts = [300_000, 1, 500_000]
    assert Path(cached_download(server.url, checksum=SHA256)).read_bytes() == CONTENT
    assert server.requests == [
        (None, None),
        ("bytes=300000-", '"one"'),
        ("bytes=300001-", '"one"'),
        ("bytes=800001-", '"one"'),
    ]


def test_a_connection_that_brings_nothing_new_is_an_error_and_the_next_call_goes_on(server, root):
    server.cuts = [300_000, 0]
    with pytest.raises(ConnectionError, match="call again"):
        cached_download(server.url)
    assert len(server.requests) == 2
    assert not any(len(name) == 32 for name in kept(root))
    assert Path(cached_download(server.url)).read_bytes() == CONTENT
    assert server.requests[2:] == [("bytes=300000-", '"one"')]
    assert len(kept(root)) == 1


def test_the_date_of_a_file_names_its_version_too(server):
    server.tag, server.modified = 'W/"weak"', "Mon, 01 Jan 2024 00:00:00 GMT"
    server.cuts = [300_000]
    assert Path(cached_download(server.url)).read_bytes() == CONTENT
    assert server.requests[1] == ("bytes=300000-", server.modified)


def test_a_file_that_changed_meanwhile_is_fetched_from_its_beginning(server):
    server.cuts = [300_000, 0]
    with pytest.raises(ConnectionError):
        cached_download(server.url)
    server.content, server.tag = CONTENT[::-1], '"two"'
    assert Path(cached_download(server.url)).read_bytes() == CONTENT[::-1]


def test_a_file_that_shrank_meanwhile_is_fetched_from_its_beginning(server):
    server.cuts = [300_000, 0]
    with pytest.raises(ConnectionError):
        cached_download(server.url)
    server.content = b"short"
    assert Path(cached_download(server.url)).read_bytes() == b"short"
    assert server.requests[-2:] == [("bytes=300000-", '"one"'), (None, None)]


def test_a_server_without_versions_or_ranges_is_asked_from_the_beginning(server):
    server.tag = None
    server.cuts = [300_000]
    with pytest.raises(ConnectionError):
        cached_download(server.url)
    assert Path(cached_download(server.url)).read_bytes() == CONTENT
    assert server.requests == [(None, None)] * 2
    server.tag, server.ranges, server.content, server.cuts = '"new"', False, CONTENT * 2, [300_000]
    assert Path(cached_download(server.url + "2")).read_bytes() == CONTENT * 2


def test_errors_of_the_server_are_os_errors(server, root):
    server.status = 404
    with pytest.raises(urllib.error.HTTPError) as caught:
        cached_download(server.url)
    caught.value.close()
    assert isinstance(caught.value, OSError)
    assert kept(root) == []
    with socket.socket() as closed:  # a port of our own, where nobody listens
        closed.bind(("127.0.0.1", 0))
        port = str(closed.getsockname()[1])
        with pytest.raises(OSError):
            cached_download(server.url.replace(str(server.server_port), port))


CHILD = """
import sys, urllib.request, iterators
root, url = sys.argv[1:3]
iterators.set_dataset_root(root)
urllib.request.urlopen(url.replace("/folder/data.bin", "/hello")).close()
print(iterators.cached_download(url))
"""


def child(root, server, program=CHILD):
    return subprocess.Popen(
        [sys.executable, "-c", program, str(root), server.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_that_race_fetch_a_file_once(server, root):
    server.wait_for_hellos = 2  # the first request is answered when both are there
    children = [child(root, server) for _ in range(2)]
    outputs = [process.communicate(timeout=60) for process in children]
    assert [process.returncode for process in children] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    assert len(server.requests) == 1
    assert Path(outputs[0][0].strip()).read_bytes() == CONTENT


def test_threads_that_race_fetch_a_file_once(server):
    barrier = threading.Barrier(4)
    found = []

    def work():
        barrier.wait(30)
        found.append(cached_download(server.url))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4
    assert len(set(found)) == 1
    assert len(server.requests) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_a_killed_download_is_taken_up_by_the_next_process(server):
    server.content = CONTENT * 4
    server.stop_half_way = True
    process = child(get_dataset_root(), server)
    try:
        assert server.half_way.wait(60)
        partial = Path(get_dataset_root(), "_dl_cache")
        while not any(path.stat().st_size for path in partial.glob("*.partial")):
            assert process.poll() is None
    finally:
        process.kill()
        process.communicate(timeout=60)
    server.release.set()
    assert Path(cached_download(server.url)).read_bytes() == CONTENT * 4
    assert server.requests[1][0] is not None


FULL_DISK = """
import errno, os, resource, signal, sys, iterators
root, url = sys.argv[1:3]
iterators.set_dataset_root(root)
# A limit on the size of files fails as a full disk does, at any write, for any user.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
try:
    iterators.cached_download(url)
except OSError as error:
    print(error.errno == errno.EFBIG)
"""


@pytest.mark.skipif(os.name == "nt", reason="no limits on files on this system")
def test_a_full_disk_is_an_os_error_and_keeps_nothing(server, root):
    output, errors = child(root, server, FULL_DISK).communicate(timeout=60)
    assert output == "True\n", errors
    assert kept(root) == []
    assert Path(cached_download(server.url)).read_bytes() == CONTENT


def test_local_files(tmp_path, root):
    source = tmp_path / "with space & ä.bin"
    source.write_bytes(CONTENT)
    path = cached_download(source.as_uri(), checksum=SHA256)
    assert Path(path).read_bytes() == CONTENT
    source.unlink()
    assert cached_download(source.as_uri()) == path
    with pytest.raises(FileNotFoundError):
        cached_download((tmp_path / "missing").as_uri())


def test_other_schemes_go_through_fsspec(root):
    memory = fsspec.filesystem("memory")
    memory.pipe("/views/data.bin", CONTENT)
    try:
        path = cached_download("memory://views/data.bin", checksum=SHA256)
        assert Path(path).read_bytes() == CONTENT
        with pytest.raises(FileNotFoundError):
            cached_download("memory://views/missing")
    finally:
        memory.rm("/views", recursive=True)
    with pytest.raises(ValueError, match="nothing"):
        cached_download("nothing-knows-this://a/b")


def test_downloads_through_fsspec_are_resumed_too(root, monkeypatch):
    memory = fsspec.filesystem("memory")
    memory.pipe("/views/data.bin", CONTENT)
    opened = []

    class Breaking:
        def __init__(self, file, limit):
            self.file, self.left = file, limit
            opened.append(self)
            self.start = 0

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            self.file.close()

        def seek(self, place):
            self.start = place
            self.file.seek(place)

        def read(self, size):
            if self.left is not None and self.left <= 0:
                raise ConnectionResetError("gone")
            block = self.file.read(size if self.left is None else min(size, self.left))
            self.left = None if self.left is None else self.left - len(block)
            return block

    real, limits = type(memory).open, [400_000, None]
    monkeypatch.setattr(
        type(memory),
        "open",
        lambda self, *arguments, **named: Breaking(real(self, *arguments, **named), limits.pop(0)),
    )
    try:
        with pytest.raises(ConnectionResetError):
            cached_download("memory://views/data.bin")
        assert Path(cached_download("memory://views/data.bin")).read_bytes() == CONTENT
        assert [file.start for file in opened] == [0, 400_000]
    finally:
        memory.rm("/views", recursive=True)


def test_fsspec_missing_is_an_import_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match="pip install"):
        cached_download("s3://bucket/key")


@pytest.mark.parametrize("url", ["data.bin", "/data.bin", "C:/data.bin", ""])
def test_a_path_is_no_url(url):
    with pytest.raises(ValueError, match="not a URL"):
        cached_download(url)


def test_a_cache_that_cannot_be_made_is_an_os_error(server, root):
    root.write_text("in the way")
    with pytest.raises(OSError):
        cached_download(server.url)


def test_a_bar_is_shown_when_asked_for(server, capsys):
    cached_download(server.url, progress=True)
    assert "data.bin: 100%" in capsys.readouterr().err
    cached_download(server.url + "?other", progress=False)
    cached_download(server.url + "?third")
    assert capsys.readouterr().err == ""
