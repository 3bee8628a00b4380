"""The page of errors and the classes and messages of the code."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "errors.md").read_text()
SOURCES = [
    path
    for package in ("recordio", "iterators", "tools")
    for pattern in ("*.py", "*.pyx")
    for path in sorted((ROOT / package).rglob(pattern))
]
#: Bad requests of `recordio view`, which its pages show; no caller of Python meets them.
OF_THE_VIEWER = {"CallError"}


def test_every_error_has_its_line():
    classes = {
        name
        for path in SOURCES
        for name in re.findall(r"^class ([A-Z]\w*(?:Error|Warning))\(", path.read_text(), re.M)
    }
    named = set(re.findall(r"`(\w+(?:Error|Warning))`", PAGE))
    builtins = {"ValueError", "TypeError", "RuntimeError"}
    assert named - builtins == classes - OF_THE_VIEWER


def test_messages_are_those_of_the_code():
    code = re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text() for path in SOURCES))
    table = PAGE[PAGE.index("| Message |") :]
    for message in re.findall(r"^\| `([^`]+)` \|", table, re.M):
        for part in message.replace("'iterators'", "...").split("..."):
            assert part.strip(" =:?") in code, message
