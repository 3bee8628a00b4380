"""The walks through the code on the page `architecture.md` name what exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_walks_name_what_exists():
    """``file.py: name`` in backticks; a name may be of Python, Cython or C."""
    walks = (ROOT / "docs" / "internals" / "architecture.md").read_text()
    steps = re.findall(r"`([\w/]+\.(?:pyx|pxd|py|c|h)): (\w+)`", walks)
    assert len(steps) > 20
    for file, name in steps:
        text = (ROOT / file).read_text()
        definition = (
            rf"(?m)(?:^ *(?:async )?(?:def|class|cdef|cpdef)\b.*\b{name}\b|^\S.*\b{name}\()"
        )
        assert re.search(definition, text), f"{file} has no {name}"
