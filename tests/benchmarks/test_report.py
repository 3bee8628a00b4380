"""Figures on the pages are those of the last comparison."""

import json
import re
from pathlib import Path

import pytest
import report

ROOT = Path(__file__).parents[2]
DOCUMENT = json.loads((ROOT / "docs" / "measurements" / "benchmarks.json").read_text())


@pytest.mark.parametrize(
    ("page", "jobs"),
    [
        ("README.md", report.README_JOBS),
        ("paper/paper.md", report.README_JOBS),
        ("docs/measurements/benchmarks.md", tuple(report.SUMMARY_JOBS)),
    ],
)
def test_the_summary_on_a_page_is_that_of_the_last_comparison(page, jobs):
    text = (ROOT / page).read_text()
    table = re.search(r"<!-- ratios: begin -->\n(.*?)<!-- ratios: end -->", text, re.S)[1]
    assert table.strip() == report.summary_table(DOCUMENT, jobs).strip()
    assert re.search(r"\| [1-9]\.[0-9] \|", table)


def test_every_ratio_that_a_page_names_was_measured():
    known, named = report.ratios(DOCUMENT), []
    for page in (ROOT / "docs").rglob("*.md"):
        if "_build" not in page.parts:
            named += re.findall(r"\{ratio\}`(.+?)`", page.read_text())
    assert named
    assert [name for name in named if tuple(name.split()) not in known] == []


def test_a_ratio_is_the_median_of_the_rounds_in_processor_time():
    turn = {"steps": 1, "items": 10, "elapsed": 1.0}
    rounds = {
        "recordio": [{**turn, "processor": 1.0}, {**turn, "processor": 2.0}],
        "mxnet": [{**turn, "processor": 4.0}, {**turn, "processor": 4.0}],
    }
    result = {"job": "faces", "rounds": rounds, "absent": {}}
    assert report.ratios({"jobs": [result]}) == {("faces", "mxnet"): 3.0}
