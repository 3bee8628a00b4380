"""Nothing is answered without the token, and browsers are told what pages may do."""

import asyncio

import pytest

from recordio.tools.view.damage import Check

#: As the fixtures have them.
TOKEN, PORT = "the-token", 8642
BASE = f"http://127.0.0.1:{PORT}"


@pytest.fixture
def stranger(site):
    from starlette.testclient import TestClient

    from recordio.tools.view.server import application

    with TestClient(application(site, TOKEN, PORT), base_url=BASE, follow_redirects=False) as one:
        yield one


ADDRESSES = ["/", "/pack/plain/", "/pack/plain/image/0/224", "/static/view.css", "/nowhere"]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "tökén"])
def test_nothing_is_answered_without_the_token(stranger, address, token):
    if token is not None:
        stranger.cookies.set(f"recordio_view_{PORT}", token.encode("ascii", "ignore").decode())
        address += f"?token={token}"
    answer = stranger.get(address)
    assert answer.status_code == 403
    assert "plain" not in answer.text and "set-cookie" not in answer.headers


def test_the_token_becomes_a_cookie_that_only_this_site_gets(stranger):
    answer = stranger.get(f"/?token={TOKEN}")
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert f"recordio_view_{PORT}={TOKEN}" in cookie
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert stranger.get("/").status_code == 200


def test_the_token_leads_to_the_first_page_only(stranger):
    assert stranger.get(f"/nowhere?token={TOKEN}").status_code == 403
    assert stranger.get(f"/pack/plain/?token={TOKEN}").status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8642", "127.0.0.1.evil.example"])
def test_other_hosts_are_refused(client, host):
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 400 and "plain" not in answer.text


def test_localhost_is_this_machine(client):
    assert client.get("/", headers={"host": f"localhost:{PORT}"}).status_code == 200


@pytest.mark.parametrize("address", ["/", "/pack/plain/record/0", "/nowhere", "/static/view.js"])
def test_every_answer_says_what_a_page_may_do(client, address):
    headers = client.get(address).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


def test_a_form_of_another_page_starts_nothing(client, site):
    address = "/pack/plain/damage/check"
    for origin in (None, "null", "http://evil.example", f"http://evil.example:{PORT}"):
        headers = {} if origin is None else {"origin": origin}
        assert client.post(address, headers=headers).status_code == 403
    assert client.get(address).status_code in (404, 405)
    check = site.kept(Check, site.packs["plain"])
    assert check.report is None and not check.running
    assert client.put(address).status_code == 405


@pytest.mark.parametrize(
    "address",
    [
        "/static/../site.py",
        "/static/..%2fsite.py",
        "/static/%2e%2e/site.py",
        "/static//etc/passwd",
        "/pack/..%2f..%2fetc%2fpasswd/",
        "/pack/%2fetc%2fpasswd/record/0",
        "/pack/plain.rec/",
        "/pack/plain/record/-1",
        "/pack/plain/record/99",
        "/pack/plain/record/99999999999999999999999999",
        "/pack/plain/image/0/223",
        "/pack/plain/key?key=/etc/passwd",
        "/pack/plain/%00",
    ],
)
def test_no_path_comes_from_outside(client, address):
    answer = client.get(address)
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_a_web_socket_is_closed(client):
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/"):
        pass


def test_an_accident_is_an_answer_with_all_headers(client, site, monkeypatch, capsys):
    monkeypatch.setattr(site, "pictures", None)
    answer = client.get("/pack/plain/image/1/224")
    assert answer.status_code == 500 and "AttributeError" in answer.text
    assert "content-security-policy" in answer.headers
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["/pack/plain", "/pack/plain/", "/nowhere"])
def test_bytes_that_no_address_has_are_refused(site, path):
    """A browser never sends them, and no client library either."""
    from recordio.tools.view.server import application

    sent = []

    async def send(message):
        sent.append(message)

    cookie = f"recordio_view_{PORT}={TOKEN}".encode()
    scope = {
        "type": "http", "method": "GET", "scheme": "http", "path": path, "root_path": "",
        "query_string": b"\xa3", "headers": [(b"host", b"127.0.0.1"), (b"cookie", cookie)],
    }  # fmt: skip
    asyncio.run(application(site, TOKEN, PORT)(scope, None, send))
    assert sent[0]["status"] == 400
