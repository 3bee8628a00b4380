"""Numbers, damage and packs side by side."""

import collections
import html
import re

import pytest

import recordio
from iterators.testing import write_pack
from recordio.operations.expression import Condition
from recordio.operations.statistics import stats
from recordio.packs.check import check_pack
from recordio.packs.open_pack import open_pack
from recordio.tools.info import collect_info
from recordio.tools.view.damage import Check
from recordio.tools.view.selection import search
from recordio.tools.view.site import bytes_text
from recordio.tools.view.statistics import Statistics


def counted(pack):
    statistics = Statistics(pack)
    statistics.start()
    statistics.join()
    assert statistics.finished and not statistics.failed
    return statistics


@pytest.mark.parametrize("name", ["plain", "mixed", "damaged", "faces"])
def test_everything_is_counted_once(opened, request, name):
    pack = opened(request.getfixturevalue(name))
    statistics = counted(pack)
    total = pack.locations.count
    assert statistics.done == total == sum(statistics.counts.kinds.values())
    records = pack.records(pack.locations.read(0, total))
    assert statistics.counts.kinds == collections.Counter(record.kind for record in records)


def overwrite_the_middle(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 900] = b"\xff" * 900
    path.write_bytes(data)


def cut_the_tail(path):
    path.write_bytes(path.read_bytes()[:-40])


def cut_the_index(path):
    index = path.with_suffix(".idx")
    index.write_text("".join(index.read_text().splitlines(keepends=True)[:13]))


@pytest.mark.parametrize("harm", [overwrite_the_middle, cut_the_tail, cut_the_index])
def test_a_damaged_pack_is_counted_alike_everywhere(opened, tmp_path, command, capsys, harm):
    path = write_pack(tmp_path / "a.rec", 20)
    harm(path)
    report = check_pack(open_pack(str(path), skip_errors=True))
    assert 0 < report.records <= 20 and report.problems
    info = collect_info(str(path), progress=False)
    assert (info.records, info.problems) == (report.records, list(map(str, report.problems)))
    assert sum(info.kinds.values()) == info.records
    pack = opened(path)
    counts = counted(pack)
    assert (counts.report.records, counts.report.problems) == (report.records, report.problems)
    whole = counts.done - counts.damaged
    assert stats(path, skip_errors=True).records == whole <= report.records
    assert (whole == report.records) == (harm is not cut_the_index)
    check = Check(pack)
    check.start()
    check.join()
    assert str(check.report) == str(report)
    assert command("check", path) == 1
    printed = capsys.readouterr().out
    assert f": {report.records} records" in printed
    remedy = "recordio.repair()", "`recordio check --repair PREFIX`"  # of a terminal the second
    assert all(str(problem).replace(*remedy) in printed for problem in report.problems)


def test_every_bar_is_a_filter_that_finds_as_many(opened, plain):
    pack = opened(plain)
    distributions = counted(pack).distributions()
    assert [one.title for one in distributions] == [
        "Width in pixels", "Height in pixels", "Width to height", "Bytes of the content",
    ]  # fmt: skip
    for one in distributions:
        assert sum(bar.records for bar in one.bars) == 30
        for bar in one.bars:
            found = search(pack, Condition(bar.where), 0, 100, seconds=60)
            assert len(found.records) == bar.records, (one.title, bar)


def test_classes_are_counted_and_named(opened, plain, mixed):
    statistics = counted(opened(plain))
    assert statistics.classes(0, 2, "label") == [(0.0, "cat", 10), (1.0, "dog", 10)]
    assert counted(opened(mixed)).counts.labels[7.0] == 1  # of an object


def test_classes_beyond_the_most_are_left_out_but_the_others_are_still_counted(
    opened, plain, monkeypatch
):
    monkeypatch.setattr("recordio.tools.view.statistics.MOST_CLASSES", 2)
    statistics = counted(opened(plain))
    assert statistics.counts.more_labels
    assert statistics.classes(0, 9, "label") == [(0.0, "cat", 10), (1.0, "dog", 10)]


def test_blocks_are_counted_in_a_spread_order(opened, plain, monkeypatch):
    for blocks in (1, 2, 5, 8, 30):
        monkeypatch.setattr("recordio.tools.view.statistics.BLOCK", 30 // blocks or 1)
        assert counted(opened(plain)).done == 30


def test_the_page_of_numbers_fills_while_it_is_open(client, site):
    client.get("/pack/plain/numbers")
    site.kept(Statistics, site.packs["plain"]).join()
    text = client.get("/pack/plain/numbers").text
    assert "30 of 30 records" in text and "data-live" not in text
    assert "where=label+%3D%3D+1" in text and "alert('class')" in html.unescape(text)
    assert re.search(r"<span>tallest bar: \d+ records</span>", text) and "most:" not in text


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 999_600, 10**6, 10**13])
def test_bytes_for_people(count):
    number, unit = bytes_text(count).split()
    factor = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
    assert float(number) * factor == pytest.approx(count, rel=5e-3)


def test_bytes_have_three_digits():
    assert list(map(bytes_text, (999, 20480, 3.2e10))) == ["999 bytes", "20.5 kB", "32 GB"]


def test_damage_is_found_and_leads_to_the_record(client, site, damaged):
    headers = {"origin": "http://127.0.0.1:8642"}
    answer = client.post("/pack/damaged/damage/check?decode=1", headers=headers)
    assert answer.status_code == 200
    check = site.kept(Check, site.packs["damaged"])
    check.join()
    report = recordio.verify(f"{damaged}.rec", f"{damaged}.idx")
    assert str(check.report.problems[0]) == str(report.problems[0])
    text = client.get("/pack/damaged/damage").text
    assert 'href="/pack/damaged/record/4"' in text and "/repair" not in text
    assert f"{len(check.report.problems)} problems" in text


def test_a_whole_pack_is_called_whole(client, site):
    client.post("/pack/faces/damage/check", headers={"origin": "http://localhost:8642"})
    site.kept(Check, site.packs["faces"]).join()
    assert "No damage: 17 whole records" in client.get("/pack/faces/damage").text


def test_a_check_ends_when_the_page_is_closed(opened, plain):
    from recordio.tools.view.damage import Check

    pack = opened(plain)
    pack.close()
    check = Check(pack)
    check.start(decode=True)
    check.join()
    assert check.report is None and check.failed == "the page was closed"


def test_packs_side_by_side(client):
    answer = client.get("/side?pack=plain&pack=damaged&by=key&at=1003&n=3")
    rows = re.findall(r'<th scope="row">([\d,]+)</th>', answer.text)
    assert rows == ["1,003", "1,004", "1,005"]
    links = re.findall(r'class="tile" href="/pack/(\w+)/record/(\d+)"', answer.text)
    assert links == [(name, str(n)) for n in (3, 4, 5) for name in ("plain", "damaged")]
    assert answer.text.count(">damaged</span>") == 1
    answer = client.get("/side?pack=plain&pack=faces&at=16&n=2")
    assert answer.text.count("no such record") == 1
    assert client.get("/side?pack=nothing").status_code == 404


@pytest.mark.parametrize("name", ["plain", "mixed", "damaged", "faces"])
def test_kept_sizes_give_the_same_numbers(opened, copied, request, name):
    prefix = copied(request.getfixturevalue(name))
    measured = counted(opened(prefix))
    open_pack(prefix, skip_errors=True, everything=True).image_sizes  # noqa: B018
    pack = opened(prefix)
    assert pack.sizes.has_sizes()
    kept = counted(pack)
    assert kept.distributions() == measured.distributions()
    assert (kept.images, kept.damaged) == (measured.images, measured.damaged)
