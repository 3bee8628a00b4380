"""Parameters on the pages, from the tables that check them.

The directive ``keywords`` makes a table of all parameters of a provider, and ``rules`` one of the
combinations that are refused or warned of; their arguments name families of options,
``module:Class``.  ``:only:`` chooses parameters by name, and ``:without:`` leaves out those that
other families describe in the same way.  The values that a parameter accepts are those that its
check names when it is given something wrong.  The role ``default`` is the default of a parameter of
a class or function of `iterators`, as code: ``{default}`ImageRecordIter.resize```; or a constant,
``{default}`module:NAME```.
"""

import inspect
import pkgutil
import re
from dataclasses import MISSING

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective, SphinxRole

import iterators
from recordio.keywords.options import _described

#: Values that are wrong for nearly every parameter: of no type, and out of every range.
WRONG = (object(), -(2**70), 2**70, "\0")
POWERS = {2**n: f"2^{n}" for n in range(20, 71)} | {2**n - 1: f"2^{n} - 1" for n in range(20, 71)}


class Table(SphinxDirective):
    """A table of the families that the arguments name."""

    required_arguments = 1
    final_argument_whitespace = True
    widths = ()

    def run(self):
        """Make the table."""
        families = [pkgutil.resolve_name(name) for name in self.arguments[0].split()]
        lines = [
            ".. list-table::",
            "   :header-rows: 1",
            "   :class: keywords",
            f"   :widths: {' '.join(map(str, self.widths))}",
            "",
        ]
        for cells in self.rows(families):
            bullets = ("   * - ", *["     - "] * (len(cells) - 1))
            lines += [bullet + cell for bullet, cell in zip(bullets, cells, strict=True)]
        node = nodes.container()
        source = self.get_source_info()[0]
        self.state.nested_parse(StringList(lines, source), self.content_offset, node)
        return node.children


class Keywords(Table):
    """A table of parameters: name and default, accepted values, meaning."""

    widths = (32, 20, 48)
    option_spec = {"only": str.split, "without": str.split}

    def rows(self, families):
        """Return head and rows; a parameter that does not exist is an error of the page."""
        others = [pkgutil.resolve_name(name) for name in self.options.get("without", ())]
        try:
            items = chosen(families, self.options.get("only"), others)
        except LookupError as error:
            raise self.error(f"no parameter {error}") from None
        return [("Parameter and default", "Accepts", "Meaning"), *rows(items)]


class Rules(Table):
    """A table of combinations: parameters, the text of the message, error or warning."""

    widths = (38, 48, 14)

    def rows(self, families):
        """Return head and rows, without a rule that two families share."""
        found = dict.fromkeys(rule for family in families for rule in family.rules)
        return [("Parameter", "Message", "Result"), *(ruled(rule) for rule in found)]


class Default(SphinxRole):
    """The default of one parameter or option, as code."""

    def run(self):
        """Look it up; a name that does not exist is an error of the page."""
        try:
            text = default(self.text)
        except LookupError as error:
            message = self.inliner.reporter.error(str(error), line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        return [nodes.literal(text=text)], []


def default(text):
    """Return the default of ``Class.parameter`` as one writes it, or a constant."""
    if ":" in text:
        return shown(pkgutil.resolve_name(text))
    owner, _, name = text.partition(".")
    parameters = inspect.signature(getattr(iterators, owner)).parameters
    if name not in parameters:
        raise LookupError(f"no parameter {text!r}")
    return shown(parameters[name].default)


def ruled(rule):
    """Return a row for one rule."""
    names = ", ".join(f"``{name}``" for name in rule.names.split())
    return names, rule.text, "error" if rule.refused else "warning"


def chosen(families, only, others):
    """Return the parameters: some in the given order, without those of other families."""
    items = {item.name: item for item in _described(families, ())}
    if only is not None:
        items = {name: items[name] for name in only}
    known = [(item.name, item.default, item.metadata) for item in _described(others, ())]
    return [
        item for item in items.values() if (item.name, item.default, item.metadata) not in known
    ]


def rows(items):
    """Return the rows of the table; parameters that share a description share a row."""
    result = []
    for item in items:
        required = item.default is MISSING
        text, name = (
            item.metadata["text"],
            item.name if required else f"{item.name}={shown(item.default)}",
        )
        name = f"``{name}``" + (" (required)" if required else "")
        if text is ...:
            names, accepts, old = result[-1]
            result[-1] = f"{names}, {name}", accepts, old
        else:
            result.append((name, accepted(item), text))
    return result


def shown(value):
    """Write a default as one does in code."""
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
    """Register directives and role."""
    app.add_directive("keywords", Keywords)
    app.add_directive("rules", Rules)
    app.add_role("default", Default())
    return {"parallel_read_safe": True}
