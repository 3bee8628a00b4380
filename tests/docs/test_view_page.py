"""The code of docs/how-to/view.md runs, and what the page says is there."""

import re
from pathlib import Path

from recordio.tools.subcommands import build_parser

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "view.md").read_text()


def test_code_runs():
    for program in re.findall(r"^```python\n(.*?)^```", PAGE, re.S | re.M):
        names: dict = {}
        exec(program, names)
        assert names["sheet"].width > 4 * 64 and names["batch"].count_samples() == 4


def test_the_pictures_are_there_and_small():
    pictures = re.findall(r"!\[.+\]\((.+)\)", PAGE)
    assert len(pictures) == 2
    for name in pictures:
        assert (ROOT / "docs" / "how-to" / name).stat().st_size < 100_000


def test_every_option_is_on_the_page():
    view = build_parser().parse_args(["view", "a"])
    for name in vars(view).keys() - {"command", "packs"}:
        assert f"`--{name.replace('_', '-')}" in PAGE


def test_keywords_that_differ_from_the_call_are_on_the_page():
    from recordio.tools.view.calls import FILES, REFUSED

    for name in (*FILES, "path_imglist", "mean_img", "cache", "data_specs"):
        assert f"`{name}`" in PAGE
        assert name in FILES or name in REFUSED
