"""What a browser must not get, and what must not run in it."""

import concurrent.futures
import http.client

import pytest

from recordio import RecordReader

pytestmark = pytest.mark.browser

ELSEWHERE = "evil.example"  # the browser of the fixtures resolves it to this machine


def test_nothing_is_shown_without_the_token(open_tab, viewer):
    page = open_tab(log_in=False).page
    assert "needs the address" in page.inner_text("body") and "photos" not in page.content()
    answer = page.goto(f"{viewer.base}/?token={viewer.token[:-1]}x")
    assert answer.status == 403
    assert page.goto(f"{viewer.base}/pack/photos/?token={viewer.token}").status == 403


def test_scripts_cannot_read_the_token(open_tab):
    page = open_tab().page
    assert page.evaluate("document.cookie") == ""


def test_another_name_of_this_machine_is_refused(browser, viewer):
    """DNS rebinding: a name of somebody else that suddenly means this machine."""
    context = browser.new_context()
    page = context.new_page()
    for path in ("/", f"/?token={viewer.token}", "/pack/photos/"):
        answer = page.goto(f"http://{ELSEWHERE}:{viewer.port}{path}")
        assert answer.status == 400 and "photos" not in page.content()
    context.close()


def test_pages_of_others_get_nothing(browser, viewer):
    """A page elsewhere, in the browser of somebody who has the cookie."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(viewer.address)
    other = "http://evil.example:1/"
    page.route(other, lambda route: route.fulfill(body="<h1>other</h1>", content_type="text/html"))
    page.goto(other)
    asked = "url => fetch(url, {credentials: 'include'}).then(a => a.text(), e => 'refused')"
    assert page.evaluate(asked, f"{viewer.base}/pack/photos/") == "refused"
    drawn = """url => new Promise(done => { const i = new Image(); i.onload = () => done(true);
        i.onerror = () => done(false); i.src = url; })"""
    assert not page.evaluate(drawn, f"{viewer.base}/pack/photos/image/0/224")
    page.set_content(
        f'<form method="post" action="{viewer.base}/pack/photos/damage/check"><button>x</button>'
    )
    with page.expect_navigation() as moved:
        page.click("button")
    assert moved.value.status == 403
    page.goto(other)
    page.set_content(f'<iframe src="{viewer.base}/pack/photos/"></iframe>')
    page.wait_for_timeout(0)
    assert all("photos" not in frame.content() for frame in page.frames[1:] if frame.url == other)
    context.close()


@pytest.mark.parametrize(
    "path",
    ["/", "/?where=label+%3D%3D+0", "/record/0", "/record/1", "/record/2", "/record/3", "/numbers",
     "/search?q=onerror", "/?where=%3Cscript%3Ealert(3)%3C%2Fscript%3E",
     "/training?call=%3Cscript%3Ealert(4)%3C%2Fscript%3E"],
)  # fmt: skip
def test_names_with_html_are_shown_and_never_run(open_tab, path):
    page = open_tab(f"/pack/harmful{path}").page  # its fixture fails on any dialog
    page.wait_for_load_state("networkidle")
    assert page.locator("img[src=x]").count() == 0
    assert page.locator("main script").count() == 0
    if path in ("/", "/record/0", "/search?q=onerror", "/record/1"):
        assert "<script>alert(2)</script>" in page.inner_text("main")


def test_raw_bytes_are_saved_and_never_opened(open_tab, viewer, packs):
    page = open_tab("/pack/harmful/record/3").page
    with page.expect_download() as saved:
        page.click('a.button:text-is("Content")')
    with RecordReader(packs[1]) as reader:
        assert saved.value.path().read_bytes() == bytes(reader[3])[24:]


@pytest.mark.parametrize(
    "path",
    ["/static/../../../../etc/passwd", "/static/%2e%2e/%2e%2e/pyproject.toml", "/etc/passwd",
     "/pack/..%2f..%2f/", "/pack/%2fetc%2fpasswd/", "/pack/photos/raw/..%2f..%2fphotos.idx",
     "/pack/photos/image/0/999999", "//evil.example/"],
)  # fmt: skip
def test_no_path_leads_out(viewer, open_tab, path):
    """Sent as it is: a browser would tidy it."""
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=60)
    cookie = f"recordio_view_{viewer.port}={viewer.token}"
    connection.request("GET", path, headers={"Cookie": cookie})
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 404 and b"root:" not in body and b"[project]" not in body
    assert answer.getheader("location") is None
    connection.close()


def test_fifty_tabs_at_once_while_the_page_is_closed(browser, own_viewer):
    context = browser.new_context()
    page = context.new_page()
    page.goto(own_viewer.address)
    page.goto(f"{own_viewer.base}/pack/photos/")
    page.evaluate(
        """() => {
          window.answers = [];
          const ask = async (n) => {
            for (let turn = 0; ; turn++) {
              try {
                const answer = await fetch(`/pack/photos/image/${(n + turn) % 150}/224`,
                                           {cache: "no-store"});
                await answer.blob();
                window.answers.push(answer.status);
              } catch (error) { return; }
            }
          };
          window.clients = Promise.all([...Array(50).keys()].map(ask));
        }"""
    )
    page.evaluate(
        """() => new Promise((done) => {
          const look = () => window.answers.length < 100 ? setTimeout(look, 20) : done();
          look();
        })"""
    )
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(own_viewer.stop)
        page.evaluate("window.clients.then(() => null)")
        code, errors = stopped.result()
    assert code == 0 and "Traceback" not in errors
    assert set(page.evaluate("window.answers")) == {200}
    context.close()
