"""Grid, record, pictures, bytes, identities and the search, as a client gets them."""

import html
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from iterators.images.augment.pipelines.processor_families import rule_of
from recordio import IRHeader, RecordReader, RecordWriter, pack, unpack
from recordio.tools.view.pack import open_packs

HARMFUL = "<script>alert('class')</script>"  # a name of a class of the plain pack


def positions(answer):
    """The records that a grid links to, in its order."""
    return [int(n) for n in re.findall(r'class="tile" href="/pack/\w+/record/(\d+)"', answer.text)]


def link(answer, text):
    """Where the link with some text leads."""
    found = re.search(rf'<a href="([^"]+)"[^>]*>{text}</a>', answer.text)
    return html.unescape(found[1]) if found else None


def test_several_packs_are_listed_and_a_single_one_is_opened(client, site):
    answer = client.get("/")
    assert all(f'href="/pack/{name}/"' in answer.text for name in site.packs)
    for name in [name for name in site.packs if name != "plain"]:
        site.packs.pop(name).close()
    assert client.get("/").url.path == "/pack/plain/"


def test_pages_by_position(client):
    answer = client.get("/pack/plain/?n=12")
    assert answer.status_code == 200 and positions(answer) == list(range(12))
    answer = client.get(link(answer, "Next"))
    assert positions(answer) == list(range(12, 24))
    assert positions(client.get(link(answer, "Previous"))) == list(range(12))
    assert positions(client.get(link(answer, "Last"))) == list(range(18, 30))
    assert link(client.get("/pack/plain/?n=12&at=18"), "Next") is None
    assert positions(client.get("/pack/plain/?n=12&at=999")) == list(range(18, 30))


def test_the_first_page_needs_no_counting(plain, faces):
    """What was not counted is asked for again by the page itself."""
    pytest.importorskip("starlette", reason="the extra view is not installed")
    from starlette.testclient import TestClient

    from recordio.tools.view.pack import open_packs
    from recordio.tools.view.server import application
    from recordio.tools.view.site import Site

    site = Site(open_packs([plain, faces]))
    with TestClient(application(site, "token", 80), base_url="http://localhost") as browser:
        browser.get("/?token=token")
        answer = browser.get("/pack/plain/")
        assert answer.status_code == 200 and positions(answer) == list(range(30))
        assert "counting: 0%" in answer.text and site.packs["plain"].locations.count is None
        assert browser.get("/pack/plain/image/7/224").headers["content-type"] == "image/png"
        assert browser.get("/pack/plain/record/29").status_code == 200
        answer = browser.get("/pack/plain/?at=9999")
        assert answer.status_code == 503 and 'http-equiv="refresh"' in answer.text
        site.packs["plain"].locations.survey(lambda: False)
        assert positions(browser.get("/pack/plain/?at=9999")) == list(range(30))
    site.close()


def test_an_empty_pack_has_an_empty_page(tmp_path):
    pytest.importorskip("starlette", reason="the extra view is not installed")
    from starlette.testclient import TestClient

    from recordio.tools.view.pack import open_packs
    from recordio.tools.view.server import application
    from recordio.tools.view.site import Site
    from recordio.tools.view.statistics import Statistics

    (tmp_path / "empty.rec").write_bytes(b"")
    site = Site(open_packs([str(tmp_path / "empty")]))
    site.start()
    with TestClient(application(site, "token", 80), base_url="http://localhost") as browser:
        browser.get("/?token=token")
        for page in ("", "?by=key", "?where=label+==+1", "numbers", "training", "damage"):
            assert browser.get(f"/pack/empty/{page}").status_code == 200, page
        assert "Nothing to show" in browser.get("/pack/empty/").text
        site.kept(Statistics, site.packs["empty"]).join()
    site.close()


def test_pages_by_key(client):
    answer = client.get("/pack/plain/?by=key&at=1005&n=3")
    assert positions(answer) == [5, 6, 7]
    assert positions(client.get(link(answer, "Next"))) == [8, 9, 10]
    assert client.get("/pack/plain/key?key=1007").url.path == "/pack/plain/record/7"
    assert client.get("/pack/plain/key?key=7").status_code == 404


def test_filters_have_permanent_addresses(client):
    answer = client.get("/pack/plain/", params={"where": "label == 1 and width >= 60", "n": 4})
    first = positions(answer)
    assert first == [1, 7, 13, 19]
    answer = client.get(link(answer, "Next"))
    later = positions(answer)
    assert later[0] > 19 and not set(first) & set(later)
    assert positions(client.get(link(answer, "Previous"))) == first


def test_the_fields_of_the_filter_become_one_condition(client):
    fields = {"set": 1, "where": "id < 1020 or id > 1025", "label": "2", "format": "png"}
    answer = client.get("/pack/plain/", params={**fields, "min_width": 50, "max_height": 40})
    assert answer.url.params["where"] == (
        "(id < 1020 or id > 1025) and label == 2 and width >= 50 and height <= 40 and "
        "format == 'png'"
    )
    assert positions(answer) == [14, 26]


def test_classes_are_asked_for_by_name(client):
    answer = client.get("/pack/plain/", params={"where": "class == 'dog' and id < 1010"})
    assert positions(answer) == [1, 4, 7]
    answer = client.get("/pack/plain/", params={"set": 1, "label": HARMFUL, "min_width": 42})
    assert answer.url.params["where"] == f"class == {HARMFUL!r} and width >= 42"
    assert answer.status_code == 200 and 2 in positions(answer)
    answer = client.get("/pack/plain/", params={"where": "class == 'dogs'"})
    assert answer.status_code == 422 and "did you mean 'dog'" in html.unescape(answer.text)
    answer = client.get("/pack/mixed/", params={"where": "class == 'dog'"})
    assert answer.status_code == 422 and "no names of classes" in html.unescape(answer.text)


@pytest.mark.parametrize("where", ["__import__('os')", "class == 'dogs'", "1 / objects > 1"])
def test_a_condition_without_meaning_is_explained(client, where):
    answer = client.get("/pack/plain/", params={"where": where})
    assert answer.status_code == 422
    assert "<h1>The condition has a mistake</h1>" in answer.text
    reason = {"_": "only len(labels) and abs(a number) can be called", "1": "divided by this"}
    assert reason.get(where[0], "no class is called") in html.unescape(answer.text)


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/pack/plain/key?key=7", "Not found"),
        ("/pack/faces/?identity=4", "Not found"),
        ("/pack/plain/?at=x", "The address has a mistake"),
        ("/pack/none/", "The address has a mistake"),
        ("/pack/plain/training/sample?suffle=True", "The address has a mistake"),
        ("/pack/damaged/raw/4", "This cannot be shown"),
        ("/nothing", "There is no such page"),
    ],
)
def test_every_problem_has_its_heading(client, path, title):
    assert f"<h1>{title}</h1>" in client.get(path).text


def test_records_that_fail_can_be_asked_for(client):
    answer = client.get("/pack/mixed/", params={"where": "not decodable and format == 'jpeg'"})
    assert positions(answer) == [5]
    answer = client.get("/pack/damaged/", params={"where": "format == 'damaged'"})
    assert positions(answer) == [4]


def test_identities(client):
    assert "By identity" in client.get("/pack/faces/").text
    assert "By identity" not in client.get("/pack/plain/").text
    answer = client.get("/pack/faces/identities")
    assert "4 identities" in answer.text and "/pack/faces/image/4/224" in answer.text
    assert positions(client.get("/pack/faces/?identity=2")) == [7, 8, 9]
    assert client.get("/pack/faces/?identity=4").status_code == 404
    assert client.get("/pack/plain/identities").status_code == 404


def test_identities_whose_keys_were_rounded(opened, tmp_path):
    first = 42_474_557
    spans = [[first - 9, first - 7], [first - 7, first - 2], [first - 2, first]]
    with RecordWriter(tmp_path / "a.rec", tmp_path / "a.idx") as writer:
        writer.write(pack(IRHeader(2, [first, first + 3], 0, 0), b""), 0)
        for number, span in enumerate(spans):
            for key in range(*span):
                writer.write(pack(IRHeader(0, number, key, 0), b"image"), key)
        for key, span in enumerate(spans, first):
            writer.write(pack(IRHeader(2, span, key, 0), b""), key)
    shown = opened(str(tmp_path / "a"))
    assert shown.lists_identities and len(shown.identities) == 3
    assert [shown.identity(number) for number in range(3)] == [range(*span) for span in spans]


def test_search_finds_classes_and_files(client):
    answer = client.get("/pack/plain/search?q=DOG")
    assert "where=label+%3D%3D+1" in answer.text
    answer = client.get("/pack/plain/search?q=img_017")
    (found,) = re.findall(r'href="(/pack/plain/key\?key=\d+)"', answer.text)
    assert client.get(found).url.path == "/pack/plain/record/17"
    assert "Nothing was found" in client.get("/pack/plain/search?q=zebra").text


def test_names_from_a_pack_are_never_html(client):
    for address in ("/pack/plain/", "/pack/plain/record/2", "/pack/plain/search?q=script"):
        text = client.get(address).text
        assert "<script>alert" not in text and HARMFUL in html.unescape(text)
    for position in (1, 2):
        text = client.get(f"/pack/mixed/record/{position}").text
        assert "<b>" not in re.sub(r"<b>(mixed|[\w ]+)</b>", "", text)
        assert "&lt;" in text
    echoed = client.get("/pack/plain/search?q=<img src=x>").text
    assert "<img src=x>" not in echoed


def test_a_record_shows_what_is_known_of_it(client):
    text = client.get("/pack/mixed/record/0").text
    assert "24 × 36 pixels" in text and "6; shown upright" in text
    assert "baseline, 1 scan" in text and "90" in text
    text = client.get("/pack/mixed/record/9").text
    assert re.search(r"Parts</th><td>3</td>", text)
    text = client.get("/pack/mixed/record/5").text
    assert "cannot be decoded" in text and "truncated" in text
    text = client.get("/pack/damaged/record/4").text
    assert "The record is damaged" in text
    text = client.get("/pack/mixed/record/7").text
    assert text.count('<span class="swatch m') == 2 and "0.750" in text
    _, image = picture(client, "/pack/mixed/image/7/224")
    _, bare = picture(client, "/pack/mixed/image/7/224?hide=.labels")
    assert image.tobytes() != bare.convert(image.mode).tobytes()
    assert "array of float32, shape (2, 3)" in client.get("/pack/mixed/record/3").text
    assert "00000010  10 11" in client.get("/pack/mixed/record/4").text


def picture(client, address):
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    return answer, Image.open(io.BytesIO(answer.content))


def test_pictures_are_upright_and_no_larger_than_asked_for(client):
    _, image = picture(client, "/pack/mixed/image/0/224")
    assert image.size == (24, 36)
    answer, image = picture(client, "/pack/plain/image/1/224")
    assert max(image.size) <= 224
    again = client.get("/pack/plain/image/1/224", headers={"if-none-match": answer.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize("position", [1, 3, 5, 6])
def test_what_cannot_be_decoded_is_a_picture_that_says_so(client, position):
    answer = client.get(f"/pack/mixed/image/{position}/224")
    assert answer.headers["content-type"] == "image/svg+xml" and "cannot be decoded" in answer.text


def test_bytes_are_those_of_the_record(client, plain, mixed):
    with RecordReader(f"{plain}.rec", f"{plain}.idx") as reader:
        whole = bytes(reader[3])
    answer = client.get("/pack/plain/raw/3")
    assert answer.content == unpack(whole)[1]
    assert answer.headers["content-disposition"] == 'attachment; filename="plain-3.jpg"'
    assert answer.headers["content-type"] == "application/octet-stream"
    assert client.get("/pack/plain/raw/3?whole=1").content == whole
    assert client.get("/pack/damaged/raw/4").status_code == 422


def test_odd_numbers_in_an_address_are_explained(client):
    for query in ("at=x", "at=-1", "n=100000", "at=1e3", "identity=x", f"at={'9' * 30}"):
        answer = client.get(f"/pack/faces/?{query}")
        assert answer.status_code == 404 and "expected a whole number" in answer.text, query


def test_every_picture_has_an_alternative_text(client):
    for address in ("/pack/plain/", "/pack/mixed/record/0", "/pack/faces/identities", "/side"):
        for tag in re.findall(r"<img [^>]*>", client.get(address).text):
            assert 'alt="' in tag
            assert 'alt=""' not in tag or "icon.svg" in tag


def test_nothing_is_fetched_from_elsewhere_and_nothing_is_inline(client):
    for address in ("/", "/pack/plain/", "/pack/plain/numbers", "/pack/plain/training", "/side"):
        text = client.get(address).text
        assert not re.findall(r'(?:src|href)="(?:https?:)?//', text)
        assert "style=" not in text and "<script>" not in text and " onclick" not in text


def test_the_pictures_of_a_face_pack_are_those_of_the_images(client):
    _, image = picture(client, "/pack/faces/image/5/224")
    assert np.asarray(image.convert("RGB"))[0, 0].tolist() == [100, 100, 100]


def test_the_folder_itself_is_no_name_of_a_class(tmp_path, plain, opened):
    for suffix in ("rec", "idx"):
        (tmp_path / f"flat.{suffix}").write_bytes(Path(f"{plain}.{suffix}").read_bytes())
    (tmp_path / "flat.classes.txt").write_text("0\t.\n")
    assert opened(str(tmp_path / "flat")).classes == {}


def test_the_page_of_a_record_shows_its_fields(tmp_path):
    from starlette.testclient import TestClient

    from iterators.testing import encode, noise, write_rows
    from recordio.tools.view.pack import open_packs
    from recordio.tools.view.server import application
    from recordio.tools.view.site import Site

    images = [(i, 0, encode(noise(24, 28, i))) for i in range(3)]
    write_rows(tmp_path / "set.rec", images, keys=[7, 8, 9])
    write_rows(tmp_path / "set.mask.rec", images, keys=[9, 8, 7])
    texts = [(0, 0, b"<b>a cat</b>"), (1, 0, b'{"ok": 1}')]
    write_rows(tmp_path / "set.text.rec", texts, keys=[7, 8])
    write_rows(tmp_path / "set.boxes.rec", [(0, [2, 5, 1, 0, 0, 1, 1], b"")] * 3, keys=[7, 8, 9])
    site = Site(open_packs([str(tmp_path / "set")]))
    with TestClient(application(site, "token", 80), base_url="http://localhost") as browser:
        browser.get("/?token=token")
        pages = [browser.get(f"/pack/set/record/{i}").text for i in range(3)]
    site.close()
    assert all("png, 28 x 24" in page and "1 object" in page for page in pages)
    assert "&lt;b&gt;a cat&lt;/b&gt;" in pages[0] and "<b>a cat</b>" not in pages[0]
    assert "Field text" in pages[1] and "&#34;ok&#34;: 1" in pages[1]
    assert "its field text is missing" in pages[2]


SPLITTING = {
    "GotOcr2": ({"size": {"height": 32, "width": 32}, "crop_to_patches": True}, "tiles of 32 x 32"),
    "Qwen2VL": ({}, "24 patches, 4 rows of 6; 6 where the model merges 2 x 2"),
    "Siglip2": ({}, "in room for 256"),
    "LlavaNext": ({"image_grid_pinpoints": [[224, 448]]}, "3 tiles of 224 x 224 pixels"),
}


@pytest.mark.parametrize("name", SPLITTING)
def test_a_record_shows_what_a_processor_makes_of_it(client, site, name):
    settings, words = SPLITTING[name]
    assert "ImageProcessor" not in client.get("/pack/plain/record/1").text
    site.rule = rule_of({"image_processor_type": f"{name}ImageProcessor", **settings})
    text = client.get("/pack/plain/record/1").text  # 60 x 41 pixels
    assert f"<h2>{name}ImageProcessor</h2>" in text and words in text
    plan = site.rule.plan(41, 60)
    count = 0 if site.rule.patches else len(plan.cuts)
    assert re.findall(r'font-size="[\d.]+">(\d+)</text>', text) == [str(i) for i in range(count)]
    assert text.count('<image href="/pack/plain/image/1/1280"') == len(
        {c.source for c in plan.cuts}
    )
    for height, width in {plan.tile} if count == 0 else set():
        assert f"{width} × {height} pixels" in text


def test_a_size_that_a_processor_refuses_is_said(client, site, tmp_path, images):
    strip = tmp_path / "strip"
    with RecordWriter(f"{strip}.rec") as writer:
        writer.write(pack(IRHeader(0, 0, 0, 0), images.png(2, 500)))
    site.packs.update(open_packs([str(strip)]))
    site.packs["strip"].locations.survey(lambda: False)
    site.rule = rule_of({"image_processor_type": "Qwen2VLImageProcessor"})
    text = client.get("/pack/strip/record/0").text
    assert "refused: absolute aspect ratio must be smaller than 200" in text


def test_records_that_are_no_images_have_no_tiles(client, site):
    site.rule = rule_of({"image_processor_type": "Qwen2VLImageProcessor"})
    for position in (1, 5, 6):  # JSON, a damaged image, nothing
        answer = client.get(f"/pack/mixed/record/{position}")
        assert answer.status_code == 200 and "ImageProcessor" not in answer.text
