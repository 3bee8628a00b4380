"""Objects on servers: versions, ranges, lists, and messages without credentials."""

import numpy as np
import pytest

from recordio.bytes.remote.library import redacted, redacted_url
from recordio.bytes.remote.objects import RemoteObject, list_urls
from recordio.errors import RemoteChangedError, RemoteFileError

DATA = bytes(range(256)) * 40


def test_size_version_and_ranges(server, settings):
    server.objects["folder/a b.rec"] = DATA
    found = RemoteObject(f"{server.url}/folder/a%20b.rec", settings())
    assert found.version.size == len(DATA) and found.version.tag
    assert bytes(found.read(3, 300)) == DATA[3:300]


def test_a_changed_object_is_no_mixture(server, settings):
    server.objects["a.rec"] = DATA
    found = RemoteObject(f"{server.url}/a.rec", settings())
    server.objects["a.rec"] = DATA[::-1]
    with pytest.raises(RemoteChangedError, match="replaced"):
        found.read(0, 10)


def test_short_answers_are_errors(server, settings):
    server.objects["a.rec"] = DATA
    found = RemoteObject(f"{server.url}/a.rec", settings())
    server.faults.extend(["short"] * 20)  # aiohttp tries again by itself
    with pytest.raises(Exception):  # noqa: B017 - whatever the library raises
        found.read(0, 1000)


@pytest.mark.parametrize("fault", ["elsewhere", "unsaid", "whole"])
def test_other_bytes_than_those_asked_for_are_errors(server, settings, fault):
    server.objects["a.rec"] = DATA
    found = RemoteObject(f"{server.url}/a.rec", settings())
    server.faults.append(fault)
    with pytest.raises(Exception, match=r"(?i)range|server sent"):
        found.read(1000, 2000)
    assert bytes(found.read(1000, 2000)) == DATA[1000:2000]


def test_what_a_server_sent_instead_is_named(server, settings, library):
    if library == "obstore":
        pytest.skip("obstore has words of its own")
    server.objects["a.rec"] = DATA
    found = RemoteObject(f"{server.url}/a.rec", settings())
    for fault, said in [
        ("elsewhere", "the server sent bytes 0-999 instead of bytes 1000-1999"),
        ("whole", "sent the whole object where it was asked for a range"),
        ("unsaid", r"without saying which \(no Content-Range\) instead of bytes 1000-1999"),
    ]:
        server.faults.append(fault)
        with pytest.raises(RemoteFileError, match=said) as caught:
            found.read(1000, 2000)
        assert caught.value.path == found.url and caught.value.offset == 1000


def test_a_server_without_ranges_is_an_error_at_once(server, settings):
    server.objects["a.rec"] = DATA
    found = RemoteObject(f"{server.url}/a.rec", settings())
    server.faults.extend(["whole"] * 9)
    with pytest.raises(RemoteFileError, match="reading records needs ranges: download the file"):
        found.fetch(1000, 2000)
    assert len(server.requests) == 1


def test_a_whole_object_from_a_server_with_ranges_is_asked_for_again(server, settings):
    server.objects["a.rec"] = DATA
    found = RemoteObject(f"{server.url}/a.rec", settings())
    server.faults.extend(["ok", "whole"])
    for _ in range(2):
        assert bytes(found.fetch(1000, 2000)) == DATA[1000:2000]
    assert len(server.requests) == 3


def test_all_of_an_object_without_a_range_is_what_was_asked_for(server, settings, library):
    if library == "obstore":
        pytest.skip("obstore refuses servers that know no ranges")
    server.objects["a.rec"] = DATA
    server.faults.append("whole")
    found = RemoteObject(f"{server.url}/a.rec", settings())
    assert bytes(found.read(0, len(DATA))) == DATA


@pytest.mark.parametrize("fault", ["elsewhere", "unsaid", "other", "longer"])
def test_answers_of_s3_are_looked_at_as_well(server, settings, library, fault):
    if library == "fsspec":
        pytest.importorskip("s3fs")
    access = {
        "endpoint_url": server.url, "access_key_id": "me", "secret_access_key": "hunter22",
        "region": "us-east-1",
    }  # fmt: skip
    server.objects["bucket/a.rec"], server.others["bucket/a.rec"] = DATA, DATA[::-1]
    found = RemoteObject("s3://bucket/a.rec", settings(remote_options=access))
    assert bytes(found.read(1000, 2000)) == DATA[1000:2000]
    server.faults.append(fault)
    kind = RemoteChangedError if fault in ("other", "longer") else Exception
    with pytest.raises(kind, match=r"(?i)range|server sent|replaced"):
        found.read(1000, 2000)


@pytest.mark.parametrize("fault", ["other", "longer"])
def test_the_version_of_an_answer_counts(server, settings, fault):
    """And not that of another server behind the same name, which is looked up afterwards."""
    server.objects["a.rec"], server.others["a.rec"] = DATA, DATA[::-1]
    found = RemoteObject(f"{server.url}/a.rec", settings())
    server.faults.append(fault)
    with pytest.raises(RemoteChangedError, match="replaced"):
        found.read(0, 10)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("GET https://u:pw@h/a?X-Amz-Signature=12ab failed", "GET https://h/a failed"),
        ("denied: secret_access_key=abcd", "denied: secret_access_key=***"),
        ("the key hunter22 is wrong", "the key *** is wrong"),
        ("no route to http://127.0.0.1:9000", "no route to http://127.0.0.1:9000"),
    ],
)
def test_messages_hold_no_credentials(text, left):
    options = {"secret_access_key": "hunter22", "endpoint_url": "http://127.0.0.1:9000"}
    assert redacted(OSError(text), options) == f"OSError: {left}"


def test_messages_hold_no_credentials_from_elsewhere(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2/hunter2")
    options = {"client_kwargs": {"aws_session_token": "insider", "endpoint_url": "http://host"}}
    error = OSError("hunter2/hunter2 at http://host as insider is no key")
    assert redacted(error, options) == "OSError: *** at http://host as *** is no key"


def test_urls_are_shown_without_credentials():
    assert redacted_url("s3://bucket/a.rec") == "s3://bucket/a.rec"
    assert redacted_url("https://me:word@host/a.rec?sig=1#x") == "https://host/a.rec"


def test_folders_and_patterns_are_listed(settings, library):
    fsspec = pytest.importorskip("fsspec")
    if library == "obstore":
        pytest.skip("obstore lists buckets, see test_s3.py")
    files = fsspec.filesystem("memory")
    for name in ("b-2.rec", "b-1.rec", "b-1.idx", "deeper/b-3.rec"):
        files.pipe(f"/packs/{name}", b"")
    listed = list_urls("memory://packs/b-*", ".rec", settings())
    assert listed == ["memory://packs/b-1.rec", "memory://packs/b-2.rec"]
    assert list_urls("memory://packs/", ".idx", settings()) == ["memory://packs/b-1.idx"]
    assert list_urls("memory://packs/b-2.rec", ".rec", settings()) == ["memory://packs/b-2.rec"]


def test_folders_that_cannot_be_listed(server, settings):
    with pytest.raises(RemoteFileError, match="cannot be listed|no library"):
        list_urls(f"{server.url.replace('http', 'nope')}/a/", ".rec", settings())
    with pytest.raises(RemoteFileError, match="cannot be listed"):
        list_urls(f"{server.url}/nowhere/", ".rec", settings())


def test_random_ranges(server, settings):
    rng = np.random.default_rng(0)
    server.objects["a.rec"] = DATA
    found = RemoteObject(f"{server.url}/a.rec", settings())
    for begin, end in np.sort(rng.integers(0, len(DATA), (20, 2)), axis=1).tolist():
        assert bytes(found.read(begin, end + 1)) == DATA[begin : end + 1]
