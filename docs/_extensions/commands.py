"""The directive ``commands``: what the argparse parsers of the console commands say, as sections.

Its argument names a function that returns a parser, ``module:function``.  Commands with
sub-commands have a section for each of them.
"""

import argparse
from importlib import import_module

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

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
        subcommands = []
        for group in parser._action_groups:
            shown = []
            for action in group._group_actions:
                if isinstance(action, argparse._SubParsersAction):
                    subcommands += action.choices.values()
                elif action.help != argparse.SUPPRESS:
                    shown.append(action)
            if shown:
                section += nodes.rubric(text=TITLES.get(group.title, group.title).capitalize())
                section += paragraphs(group.description)
                section += entries(parser, shown)
        if parser.epilog:
            section += literal(parser.epilog.strip())
        return [section, *(node for inner in subcommands for node in self.sections(inner))]


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
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
