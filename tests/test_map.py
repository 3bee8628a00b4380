"""`docs/internals/files.md` lists every source file; names in the walks of `architecture.md` exist.

``python tests/test_map.py`` writes the list.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
INTERNALS = ROOT / "docs" / "internals"
PAGE = INTERNALS / "files.md"
BEGIN, END = "<!-- the tree -->\n```\n", "```\n<!-- end of the tree -->\n"
PACKAGES = ("recordio", "iterators", "tools")
#: Of files with one stem the first is shown; the others are its declarations.
SUFFIXES = (".py", ".pyx", ".c", ".h", ".pxd")


def first_line(path):
    """Of a docstring; of C the first sentence of the first comment."""
    text = path.read_text()
    if path.suffix == ".py":
        return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    if path.suffix in (".pyx", ".pxd"):
        found = re.search(r'"""(.*?)(?:"""|\n)', text)
        return found[1] if found else ""
    comment = " ".join(re.search(r"/\*(.*?)\*/", text, re.S)[1].replace("\n *", "\n").split())
    return re.split(r"(?<=\.) ", comment)[0]


def files_of(folder):
    chosen = {}
    for path in folder.iterdir():
        if path.suffix in SUFFIXES and path.stem not in ("__init__", "__main__"):
            chosen.setdefault(path.stem, []).append(path)
    return [min(paths, key=lambda path: SUFFIXES.index(path.suffix)) for paths in chosen.values()]


def tree_of(folder, depth=0):
    package = folder / "__init__.py"
    text = f"{'  ' * depth}{folder.name + '/':<{30 - 2 * depth}}{first_line(package)}\n"
    for path in sorted(files_of(folder)):
        text += f"{'  ' * depth}  {path.name:<{28 - 2 * depth}}{first_line(path)}\n"
    for inner in sorted(folder.iterdir()):
        if (inner / "__init__.py").is_file():
            text += tree_of(inner, depth + 1)
    return text


def tree():
    return "".join(tree_of(ROOT / package) for package in PACKAGES)


def parts():
    before, rest = PAGE.read_text().split(BEGIN)
    shown, after = rest.split(END)
    return before, shown, after


def test_the_tree_shows_every_file_with_its_first_line():
    assert parts()[1] == tree()
    assert not re.search(r"^\s*\S+$", tree(), re.M), "a file without a first line"


def test_the_walks_name_what_exists():
    """``file.py: name`` in backticks; a name may be of Python, Cython or C."""
    walks = (INTERNALS / "architecture.md").read_text()
    steps = re.findall(r"`([\w/]+\.(?:pyx|pxd|py|c|h)): (\w+)`", walks)
    assert len(steps) > 20
    for file, name in steps:
        text = (ROOT / file).read_text()
        definition = (
            rf"(?m)(?:^ *(?:async )?(?:def|class|cdef|cpdef)\b.*\b{name}\b|^\S.*\b{name}\()"
        )
        assert re.search(definition, text), f"{file} has no {name}"


if __name__ == "__main__":
    before, _, after = parts()
    PAGE.write_text(before + BEGIN + tree() + END + after)
