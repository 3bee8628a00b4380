"""What a release consists of: one version, and every file of the repository in the sdist."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def version():
    text = ROOT.joinpath("pyproject.toml").read_text()
    return re.search(r'^version = "(.+)"$', text, re.M).group(1)


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("CITATION.cff", r"^version: (.+)$"),
        ("packaging/conda/recipe.yaml", r"^  version: (\d.*)$"),
    ],
)
def test_copies_of_the_version_agree(file, pattern):
    assert re.findall(pattern, ROOT.joinpath(file).read_text(), re.M) == [version()]


def test_the_sdist_takes_every_file_of_the_repository():
    try:
        listed = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a checkout: an unpacked sdist, for example")
    lines = [line.split() for line in ROOT.joinpath("MANIFEST.in").read_text().splitlines()]
    taken = {name for line in lines if line[0] in ("graft", "include") for name in line[1:]}
    assert {file.partition("/")[0] for file in listed.stdout.splitlines()} == taken


def test_the_changelog_begins_with_what_is_not_released_and_groups_what_changed():
    text = ROOT.joinpath("CHANGELOG.md").read_text()
    headings = re.findall(r"^## (.+)$", text, re.M)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", text) for text in headings[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.M)) <= kinds


def test_the_description_on_an_index_has_no_link_into_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)
    program = ast.parse(ROOT.joinpath("setup.py").read_text())
    program.body = [
        part for part in program.body if getattr(part, "name", "") == "long_description"
    ]
    space = {"re": re, "Path": Path}
    exec(compile(program, "setup.py", "exec"), space)
    text = space["long_description"]()
    assert "make demo" in text and "## Licence" in text
    assert re.findall(r"\]\((?!https:|#)[^)]*\)|<img", text) == []
