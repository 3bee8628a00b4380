"""Pages about a container: its samples as records."""

import re

import pytest
from fake_containers import write_container

pytest.importorskip("starlette", reason="the extra view is not installed")

from starlette.testclient import TestClient

from recordio.tools.view.pack import open_packs
from recordio.tools.view.server import application
from recordio.tools.view.site import Site


@pytest.fixture
def pages(tmp_path, images, fake_containers):
    """A client of pages about two files with five samples."""
    rows = [([float(n % 2)], f"{n}.png", images.png(20 + n, 30)) for n in range(4)]
    rows.insert(2, ([1.0], "bad.png", "it is too long"))
    for number, part in enumerate([rows[:2], rows[2:]]):
        write_container(tmp_path / f"set-{number}.spans", part, {0: "cat", 1: "dog"})
    site = Site(open_packs([str(tmp_path / "set-*.spans")]), threads=1)
    with TestClient(application(site, "t", 80), base_url="http://127.0.0.1:80") as browser:
        assert browser.get("/?token=t").status_code == 200
        yield browser
    site.close()


def test_the_grid_and_a_record(pages):
    grid = pages.get("/pack/set/")
    assert "5 records" in grid.text and "2 classes" in grid.text
    assert re.findall(r"/record/(\d+)\"", grid.text)[:5] == ["0", "1", "2", "3", "4"]
    record = pages.get("/pack/set/record/3")
    assert record.status_code == 200 and "2.png" in record.text and "cat" in record.text
    assert "it is too long" in pages.get("/pack/set/record/2").text


def test_records_are_found_by_key_and_condition(pages):
    found = pages.get("/pack/set/", params={"where": "label == 1 and height > 21"})
    assert found.status_code == 200
    assert "record/4" in found.text and "record/1" not in found.text


def test_other_pages_and_pictures(pages):
    for page in ("numbers", "training", "damage", "search"):
        assert pages.get(f"/pack/set/{page}").status_code == 200
