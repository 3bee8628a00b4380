"""Servers, and settings with a folder of mirrors of their own."""

import pytest
from range_server import RangeServer

from recordio.bytes.remote.settings import RemoteSettings


@pytest.fixture(params=["obstore", "fsspec"])
def library(request):
    """Both libraries; each needs what it needs for http."""
    pytest.importorskip("obstore" if request.param == "obstore" else "aiohttp")
    return request.param


@pytest.fixture
def server():
    server = RangeServer()
    yield server
    server.stop()


@pytest.fixture
def settings(tmp_path, library):
    """Makes settings whose mirrors are those of the test."""

    def make(**changed):
        given = {"remote_cache": tmp_path / "mirrors", "remote_timeout": 20, **changed}
        given["remote_options"] = {"library": library, **changed.get("remote_options", {})}
        return RemoteSettings(**given)

    return make
