"""Which library reaches a URL, and that requests of other clouds than S3 come out right.

There is no fake of these clouds: the range server answers what is read, without signatures.
"""

import json

import pytest

import recordio
from iterators.testing import write_records
from recordio.bytes.remote.by_obstore import obstore_at
from recordio.bytes.remote.library import redacted
from recordio.bytes.remote.objects import LIBRARIES, RemoteObject, library_of, list_urls
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import RemoteFileError, RemoteMissingError

SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    ("url", "library"),
    [
        ("s3://bucket/a.rec", "obstore"),
        ("gs://bucket/a.rec", "obstore"),
        ("az://container/a.rec", "obstore"),
        ("abfss://container@account.dfs.core.windows.net/a.rec", "obstore"),
        ("https://host/a.rec", "obstore"),
        ("hf://datasets/me/set/a.rec", "fsspec"),
        ("memory://a.rec", "fsspec"),
    ],
)
def test_which_library_is_used(url, library, monkeypatch):
    pytest.importorskip("obstore")
    assert library_of(url, RemoteSettings()) is LIBRARIES[library]
    assert (
        library_of(url, RemoteSettings(remote_options={"library": "fsspec"})) is LIBRARIES["fsspec"]
    )
    monkeypatch.setattr("recordio.bytes.remote.by_obstore.is_installed", lambda: False)
    assert library_of(url, RemoteSettings()) is LIBRARIES["fsspec"]


@pytest.mark.parametrize(
    ("url", "options", "kind", "path"),
    [
        ("s3://bucket/sets/a b.rec", {"region": "us-east-1"}, "S3Store", "sets/a b.rec"),
        ("gs://bucket/sets/a.rec", {"skip_signature": True}, "GCSStore", "sets/a.rec"),
        (
            "az://container/sets/a.rec",
            {"account_name": "me", "skip_signature": True},
            "AzureStore",
            "sets/a.rec",
        ),
        (
            "abfss://container@account.dfs.core.windows.net/sets/a.rec",
            {"skip_signature": True},
            "AzureStore",
            "sets/a.rec",
        ),
        ("https://host/sets/a%20b.rec", {}, "HTTPStore", "sets/a b.rec"),
        ("https://host/sets/a.rec?sig=1", {}, "HTTPStore", ""),
    ],
)
def test_stores_and_paths(url, options, kind, path):
    pytest.importorskip("obstore")
    store, found = obstore_at(url, RemoteSettings(remote_options=options))
    assert type(store).__name__ == kind and found == path


def cloud(scheme, server):
    """A URL and the options for a cloud whose server is that of the test."""
    if scheme == "gs":
        key = {
            "gcs_base_url": server.url, "disable_oauth": True, "client_email": "me@x",
            "private_key": SECRET, "private_key_id": "1",
        }  # fmt: skip
        return "gs://bucket/sets/a.rec", {"service_account_key": json.dumps(key)}
    options = {"account_name": "me", "endpoint": server.url, "skip_signature": True}
    return "az://bucket/sets/a.rec", options


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_records_of_other_clouds(server, tmp_path, scheme):
    pytest.importorskip("obstore")
    path = write_records(tmp_path / "a.rec", [bytes([i]) * 20_000 for i in range(50)])
    url, options = cloud(scheme, server)
    keywords = {
        "remote_cache": tmp_path / "mirrors", "remote_timeout": 20, "remote_options": options,
    }  # fmt: skip
    with pytest.raises(RemoteMissingError):
        recordio.RecordReader(url, **keywords)
    for name in ("a.rec", "a.idx"):
        server.objects[f"bucket/sets/{name}"] = path.with_name(name).read_bytes()
    with recordio.RecordReader(url, **keywords) as found, recordio.RecordReader(path) as wanted:
        assert len(found) == 50 and list(found) == list(wanted)
        assert server.ranges("bucket/sets/a.rec")


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_failures_of_other_clouds_show_no_credentials(server, tmp_path, scheme):
    pytest.importorskip("obstore")
    server.objects["bucket/sets/a.rec"] = bytes(1000)
    url, options = cloud(scheme, server)
    found = RemoteObject(url, RemoteSettings(remote_options=options))
    server.faults.append("403")
    with pytest.raises(Exception) as caught:  # noqa: B017 - whatever the library raises
        found.read(0, 10)
    assert SECRET not in redacted(caught.value, options)
    assert bytes(found.read(0, 10)) == bytes(10)


@pytest.fixture
def hub():
    """A file system of fsspec in memory for ``hf://``, as huggingface_hub brings one."""
    fsspec = pytest.importorskip("fsspec")
    from fsspec.implementations.memory import MemoryFileSystem
    from fsspec.registry import _registry

    class Hub(MemoryFileSystem):
        protocol = "hf"
        given = []

        def __init__(self, *arguments, **keywords):
            Hub.given.append(keywords)
            super().__init__(*arguments)

        @classmethod
        def _strip_protocol(cls, path):
            return MemoryFileSystem._strip_protocol(path.replace("hf://", "memory://"))

    before = dict(_registry)
    fsspec.register_implementation("hf", Hub, clobber=True)
    yield Hub
    Hub.store.clear()
    _registry.clear()
    _registry.update(before)


def test_what_fsspec_reaches(hub, tmp_path):
    path = write_records(tmp_path / "a.rec", [bytes([i]) * 20_000 for i in range(50)])
    for name in ("a.rec", "a.idx"):
        hub().pipe(f"hf://datasets/me/set/{name}", path.with_name(name).read_bytes())
    options = {"token": SECRET}
    keywords = {"remote_cache": tmp_path / "mirrors", "remote_options": options}
    with (
        recordio.RecordReader("hf://datasets/me/set/a.rec", **keywords) as found,
        recordio.RecordReader(path) as wanted,
    ):
        assert len(found) == 50 and list(found) == list(wanted)
        assert SECRET not in repr(found)
    assert {"token": SECRET} in hub.given
    settings = RemoteSettings(**keywords)
    assert list_urls("hf://datasets/me/set/*", ".rec", settings) == ["hf://datasets/me/set/a.rec"]


def test_what_no_library_reaches(tmp_path):
    for url in ("nope://bucket/a.rec", "nope://me:word@bucket/a.rec"):
        with pytest.raises(RemoteFileError, match="no library for it is installed") as caught:
            recordio.RecordReader(url, remote_cache=tmp_path, remote_timeout=0.2)
        assert "word" not in str(caught.value)
