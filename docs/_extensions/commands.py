"""Pages about the console commands, from their argparse parsers.

The directive ``commands`` makes sections of everything that a parser says; its argument names a
function that returns one, ``module:function``, and sub-commands have a section each.  ``options``
makes a list of one group of options, ``im2rec: changing images``.
"""

import argparse
from importlib import import_module

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from recordio.tools import arguments, subcommands

PARSERS = {"im2rec": arguments.build_parser, "recordio": subcommands.build_parser}
TITLES = {"positional arguments": "arguments"}


class Commands(SphinxDirective):
    """Sections for one command and its sub-commands."""

    required_arguments = 1

    def run(self):
        """Make the nodes."""
        module, _, function = self.arguments[0].partition(":")
        parser = getattr(import_module(module), function)()
        return self.sections(parser)

    def sections(self, parser):
        """One for the parser, and one for each sub-command."""
        section = nodes.section(ids=[nodes.make_id(parser.prog)], names=[parser.prog])
        section += nodes.title(text=parser.prog)
        self.state.document.note_explicit_target(section)
        section += paragraphs(parser.description)
        section += literal(usage(parser))
        inner_parsers = []
        for group in parser._action_groups:
            shown = []
            for action in shown_actions(group):
                if isinstance(action, argparse._SubParsersAction):
                    inner_parsers += action.choices.values()
                else:
                    shown.append(action)
            if shown:
                section += nodes.rubric(text=TITLES.get(group.title, group.title).capitalize())
                section += paragraphs(group.description)
                section += entries(parser, shown)
        if parser.epilog:
            section += literal(parser.epilog.strip())
        return [section, *(node for inner in inner_parsers for node in self.sections(inner))]


class Options(SphinxDirective):
    """A list of the options in one group of a command."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        """Make the list; a group that does not exist is an error of the page."""
        command, _, title = self.arguments[0].partition(": ")
        parser = parser_of(command)
        for group in parser._action_groups:
            if group.title == title:
                shown = shown_actions(group)
                return [entries(parser, [a for a in shown if a.dest != "help"])]
        raise self.error(f"{command} has no group {title!r}")


def parser_of(command):
    """Return the parser of a command such as ``recordio from-coco``."""
    first, *words = command.split()
    parser = PARSERS[first]()
    for word in words:
        (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
        parser = commands.choices[word]
    return parser


def shown_actions(group):
    """Return the options of a group that ``--help`` shows."""
    return [action for action in group._group_actions if action.help != argparse.SUPPRESS]


def usage(parser):
    """The line that says how a command is called, without its first word."""
    formatter = parser.formatter_class(parser.prog, width=76)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, "")
    return formatter.format_help().rstrip()


def paragraphs(text):
    """Paragraphs of plain text that are set apart by blank lines."""
    parts = (text or "").strip().split("\n\n")
    return [nodes.paragraph(text=" ".join(part.split())) for part in parts if part]


def literal(text):
    """Text as it stands."""
    return nodes.literal_block(text, text, language="text")


def entries(parser, actions):
    """Make a list of actions: their names and their help."""
    formatter = argparse.HelpFormatter(parser.prog)
    result = nodes.definition_list()
    for action in actions:
        called = formatter._format_action_invocation(action)
        item = nodes.definition_list_item()
        item += nodes.term("", "", nodes.literal(text=called))
        text = formatter._expand_help(action) if action.help else ""
        item += nodes.definition("", nodes.paragraph(text=" ".join(text.split())))
        result += item
    return result


def setup(app):
    """Register the directives."""
    app.add_directive("commands", Commands)
    app.add_directive("options", Options)
    return {"parallel_read_safe": True}
