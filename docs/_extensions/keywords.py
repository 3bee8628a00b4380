"""The directive ``keywords``: all parameters of a provider, from the tables that check them.

Its arguments name families of options, ``module:Class``.  What a parameter accepts is not written
down anywhere else: it is what the check of that parameter says when it is given something wrong.
"""

import re
from dataclasses import MISSING
from importlib import import_module

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from recordio.keywords.options import _described

#: Values that are wrong for nearly every parameter: of no type, and out of every range.
WRONG = (object(), -(2**70), 2**70, "\0")
POWERS = {2**n: f"2^{n}" for n in range(20, 71)} | {2**n - 1: f"2^{n} - 1" for n in range(20, 71)}


class Keywords(SphinxDirective):
    """A table of parameters: name and default, what is accepted, meaning."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        """Make the table."""
        families = []
        for name in self.arguments[0].split():
            module, _, kind = name.partition(":")
            families.append(getattr(import_module(module), kind))
        lines = [
            ".. list-table::",
            "   :header-rows: 1",
            "   :class: keywords",
            "   :widths: 32 20 48",
            "",
        ]
        for cells in [("Parameter and default", "Accepts", "Meaning"), *rows(families)]:
            bullets = ("   * - ", "     - ", "     - ")
            lines += [bullet + cell for bullet, cell in zip(bullets, cells, strict=True)]
        node = nodes.container()
        source = self.get_source_info()[0]
        self.state.nested_parse(StringList(lines, source), self.content_offset, node)
        return node.children


def rows(families):
    """Return the rows of the table; parameters that share a description share a row."""
    result = []
    for item in _described(families, ()):
        required = item.default is MISSING
        text, name = item.metadata["text"], item.name if required else f"{item.name}={shown(item)}"
        name = f"``{name}``" + (" (required)" if required else "")
        if text is ...:
            names, accepts, old = result[-1]
            result[-1] = f"{names}, {name}", accepts, old
        else:
            result.append((name, accepted(item), text))
    return result


def shown(item):
    """A default as one writes it."""
    value = item.default
    return POWERS.get(value, repr(value)) if isinstance(value, int) else repr(value)


def accepted(item):
    """Return the values that the check of a parameter expects, or its documented type."""
    check, told = item.metadata["check"], []
    for value in WRONG if check else ():
        try:
            check(item.name, value)
        except (TypeError, ValueError, OverflowError) as error:
            expected = str(error).partition(": expected ")[2]
            if expected and expected not in told:
                told.append(expected)
    told = [text for text in told if not any(text != other and text in other for other in told)]
    text = "; ".join(told) or item.metadata["kind"]
    return re.sub(r"\d{7,}", lambda found: POWERS.get(int(found[0]), found[0]), text)


def setup(app):
    """Register the directive."""
    app.add_directive("keywords", Keywords)
    return {"parallel_read_safe": True}
