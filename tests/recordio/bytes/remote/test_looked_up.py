"""Objects looked up: what is said while that fails, and what counts as absent."""

import logging

import pytest

from recordio.bytes.remote import objects
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import RemoteFileError, RemoteMissingError

SETTINGS = RemoteSettings(remote_timeout=5, remote_options={"secret_access_key": "hunter2-hunter2"})


@pytest.fixture
def answers(monkeypatch):
    """What the next attempts to open an object give; errors are raised."""
    coming = []

    def opened(url, settings):
        answer = coming.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(objects, "RemoteObject", opened)
    return coming


def test_who_waits_for_a_server_is_told_once_why(answers, caplog):
    answers += [OSError("no route for hunter2-hunter2"), OSError("no route"), "found"]
    with caplog.at_level(logging.WARNING, "recordio"):
        assert objects.looked_up("s3://bucket/a.rec?sig=1", SETTINGS) == "found"
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == (
        "s3://bucket/a.rec: cannot be opened yet, and is asked for again for 5 s (remote_timeout): "
        "OSError: no route for ***"
    )


def test_what_is_hopeless_is_an_error_at_once(answers, caplog):
    answers += [ValueError("unknown option")]
    with pytest.raises(RemoteFileError, match="after 1 attempts"):
        objects.looked_up("s3://bucket/a.rec", SETTINGS)
    assert not caplog.records


def test_companions_that_are_denied_are_not_there(answers):
    answers += [PermissionError("403"), FileNotFoundError("404"), PermissionError("403"), "found"]
    assert not objects.is_there("s3://bucket/a.idx", SETTINGS)
    assert not objects.is_there("s3://bucket/a.idx", SETTINGS)
    assert objects.looked_up("s3://bucket/a.idx", SETTINGS) == "found"
    answers += [FileNotFoundError("404")]
    with pytest.raises(RemoteMissingError):
        objects.looked_up("s3://bucket/a.idx", SETTINGS)
