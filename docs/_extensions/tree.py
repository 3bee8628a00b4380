"""The directive ``tree``: every source file, each with the first line of its documentation."""

import ast
import re
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
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
    """One file of each stem."""
    chosen = {}
    for path in folder.iterdir():
        if path.suffix in SUFFIXES and path.stem not in ("__init__", "__main__"):
            chosen.setdefault(path.stem, []).append(path)
    return [min(paths, key=lambda path: SUFFIXES.index(path.suffix)) for paths in chosen.values()]


def tree_of(folder, depth=0):
    """One line for the folder, and one for each file in it and below."""
    package = folder / "__init__.py"
    text = f"{'  ' * depth}{folder.name + '/':<{30 - 2 * depth}}{first_line(package)}\n"
    for path in sorted(files_of(folder)):
        text += f"{'  ' * depth}  {path.name:<{28 - 2 * depth}}{first_line(path)}\n"
    for inner in sorted(folder.iterdir()):
        if (inner / "__init__.py").is_file() and not inner.is_symlink():
            text += tree_of(inner, depth + 1)
    return text


def tree():
    """Return the lines of all packages."""
    return "".join(tree_of(ROOT / package) for package in PACKAGES)


class Tree(SphinxDirective):
    """The tree as a block of text."""

    def run(self):
        """Read the files; one without a first line is an error of the page."""
        self.env.note_reread()
        text = tree()
        if bare := re.findall(r"(?m)^\s*(\S+)$", text):
            raise self.error(f"files without a first line: {', '.join(bare)}")
        return [nodes.literal_block(text, text, language="none")]


def setup(app):
    """Register the directive."""
    app.add_directive("tree", Tree)
    return {"parallel_read_safe": True}
