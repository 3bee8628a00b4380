"""Conversions as functions: a function for each row of the registry, which `recordio.convert` has.

The options of a format are said once, in its family; commands and functions take them from there.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, make_dataclass
from functools import partial
from typing import Any, ClassVar, get_type_hints

from recordio.keywords.checks import boolean, choice, integer
from recordio.keywords.options import (
    Options,
    Rule,
    accepts,
    by_name,
    divided,
    option,
)
from recordio.packs.names import pack_prefix

from ..im2rec_options import PackOptions, SampleOptions, Together
from ..outputs import replacing
from ..pack_source import SourceReport, pack_source
from ..record_pack import RecordPack
from .exporting import ExportReport, ExportSettings, export_records
from .format import Import, options_of_format
from .importing import ImportReport, convert
from .registry import EXPORTS, IMPORTS
from .shards import ShardOptions

#: Where users import the functions from.
MODULE = "recordio.convert"
Name = str | os.PathLike[str]

PREAMBLE = """>>> import pathlib, tempfile
>>> import recordio.convert
>>> folder = pathlib.Path(tempfile.mkdtemp())
"""


def _name(name: str, value: Any) -> str:
    """Check a path or URL."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise TypeError(f"{name}={value!r}: expected a path or a URL")
    return os.fsdecode(value)


def _names(name: str, value: Any) -> list[str]:
    """Check one path or URL, or several."""
    several = value if isinstance(value, (list, tuple)) else [value]
    if not several:
        raise ValueError(f"{name}={value!r}: expected at least one file")
    return [_name(name, item) for item in several]


@dataclass(frozen=True, kw_only=True)
class RunSettings(Together):
    """Options of all functions that take long."""

    progress: bool = option(
        False, "bool", "Show a progress bar on standard error (default: False).", boolean
    )
    cancelled: Callable[[], bool] = option(
        lambda: False,
        "callable, optional",
        """Called from time to time; if it returns true, `KeyboardInterrupt` is raised and nothing
        is written.""",
    )


@dataclass(frozen=True, kw_only=True)
class ConvertSettings(RunSettings):
    """Options of all conversions to record files."""

    shuffle: bool = option(False, "bool", "Put the records in random order.", boolean)
    seed: int = option(
        0, "int", "Seed of the order of `shuffle`: the same seed gives the same order.", integer
    )
    strict: bool = option(False, "bool", "Stop at the first bad item, and write nothing.", boolean)

    rules: ClassVar[tuple[Rule, ...]] = SampleOptions.rules


PREFIX_TEXT = (
    "Start of the names of the files: ``PREFIX.rec``, ``.idx``, ``.lst`` and ``.classes.txt``, "
    "which are replaced."
)


def _joined(owner: str, positional: dict[str, tuple[Any, Any]], *families: type[Options]) -> Any:
    """Make a family of arguments by position, with types, and of the options of others."""
    items = [(name, kind, item) for name, (kind, item) in positional.items()]
    for family in families:
        hints = get_type_hints(family)
        items += [
            (item.name, hints[item.name], option(item.default, **item.metadata))
            for item in options_of_format(family)
        ]
    return make_dataclass(
        f"{owner}_arguments",
        items,
        bases=(Options,),
        namespace={"positional": " ".join(positional)},
        frozen=True,
        kw_only=True,
    )


def _described(
    function: Callable[..., Any], owner: str, family: Any, returned: Any, rest: str = ""
) -> Any:
    """Give a function its name, signature and documentation."""
    function.__name__ = function.__qualname__ = owner
    function.__module__ = MODULE
    wrapper: Any = accepts(family, rest=rest)(function)
    wrapper.__signature__ = wrapper.__signature__.replace(return_annotation=returned)
    wrapper.options = family
    return wrapper


def _sentence(text: str) -> str:
    return " ".join(text.split())


def _converter(row: Import) -> Callable[..., ImportReport]:
    """Make the function of a format."""
    owner = f"from_{row.name}"
    positional: dict[str, tuple[Any, Any]] = {}
    for name, text, several in row.sources:
        kind = "path or sequence of path" if several else "path"
        item = option(kind=kind, text=_first(text), check=_names if several else _name)
        positional[name] = (Name | Sequence[Name] if several else Name, item)
    positional["prefix"] = (Name, option(kind="path", text=PREFIX_TEXT, check=_name))
    family = _joined(owner, positional, row.options, ConvertSettings)

    def converter(*values: Any, **keywords: Any) -> ImportReport:
        arguments = family.of(owner, keywords, values)
        for part in (row.options, ConvertSettings):  # whatever does not go together is refused
            part(**arguments.values(*(item.name for item in fields(part))))
        return convert(
            row,
            arguments,
            pack_prefix(arguments.prefix),
            check=replacing,
            progress=arguments.progress,
            cancelled=arguments.cancelled,
        )

    converter.__doc__ = f"""Make a record file from {row.summary.rstrip(" .")}.

{_sentence(row.description)}

Parameters
----------
{{parameters}}

Returns
-------
ImportReport
    Counts of records and of things that were not stored, and the skipped items with the reasons.

Raises
------
RecordIOError
    If a source is damaged, or no item could be converted, or, with `strict`, one could not.
ValueError, TypeError
    If an option is out of range or unknown.
OSError
    If a file cannot be read or written.

Examples
--------
{PREAMBLE}{row.example}
"""
    return _described(converter, owner, family, ImportReport)


def _first(text: str) -> str:
    """Make a sentence of a help text."""
    return f"{text[0].upper()}{text[1:]}."


_EXPORT = _joined(
    "export",
    {
        "pack": (Name, option(kind="path", text="The pack, or a container.", check=_name)),
        "target": (
            Name,
            option(
                kind="path",
                text="""The file, the start of the names of files, or the new folder to write;
                existing files are replaced.""",
                check=_name,
            ),
        ),
        "to": (
            str,
            option(
                next(iter(EXPORTS)),
                "str",
                "The format: "
                + "; ".join(f"{name}: {row.summary}" for name, row in EXPORTS.items())
                + ".",
                partial(choice, allowed=tuple(EXPORTS)),
            ),
        ),
    },
    ExportSettings,
    RunSettings,
)


def export(*values: Any, **keywords: Any) -> ExportReport:
    r"""Write the records of a pack to files of another format.

    Parameters
    ----------
    {parameters}
    **options
        Options of the format, as in ``recordio export --to FORMAT --help``, with underscores;
        formats of files also have ``shard_records`` and ``shard_bytes``.

    Returns
    -------
    ExportReport
        The files, and the number of records in them.

    Raises
    ------
    RecordIOError
        If the pack is missing, damaged or empty, or the format cannot store a record.
    ValueError, TypeError
        If an option is out of range, or the format does not have it.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import recordio.convert
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("1,0.5,2\n0,1,3\n")
    >>> _ = recordio.convert.from_csv(folder / "a.csv", folder / "a", label_columns=[0])
    >>> recordio.convert.export(folder / "a", folder / "b.csv", to="csv", delimiter=";").records
    2
    """
    named = by_name("export", keywords, _EXPORT, values)
    to = _EXPORT.of("export", {"pack": "-", "target": "-", "to": named.get("to", "folders")}).to
    row = EXPORTS[to]
    families = [row.options, *([ShardOptions] if row.outputs("target") else [])]
    mine, *rest = divided("export", named, _EXPORT, *families)
    arguments, settings = _EXPORT(**mine), argparse.Namespace(force=True)
    for family, words in zip(families, rest, strict=True):
        chosen = family(**words)
        vars(settings).update(chosen.values(*(item.name for item in fields(family))))
    opened = RecordPack(arguments.pack, arguments.progress, arguments.cancelled)
    opened.skip_errors = arguments.skip_errors
    return export_records(opened, arguments.target, row, settings)


_PACK = _joined(
    "pack",
    {
        "source": (
            Name | Sequence[Name],
            option(
                kind="path or sequence of path",
                text="""A folder of classes, or another container that training reads in place;
                braces, patterns and lists stand for several files.""",
                check=_names,
            ),
        ),
        "prefix": (Name, option(kind="path or URL", text=PREFIX_TEXT, check=_name)),
    },
    PackOptions,
    RunSettings,
)


def pack(*values: Any, **keywords: Any) -> SourceReport:
    """Pack the samples of a container into a record file, or several.

    Contents are stored as they are, unless an option changes images.  Keys and ids are the numbers
    of the samples in the source, even if some could not be packed.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    SourceReport
        The files, the number of records in them, and the skipped samples.

    Raises
    ------
    RecordIOError
        If no sample can be packed, or, with `strict`, one cannot.
    ValueError, TypeError
        If an option is out of range or unknown, or options contradict each other.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    A killed run publishes nothing without `shards`.  With `shards`, the same call makes only the
    shards that are not complete.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import cv2, numpy as np
    >>> import recordio.convert
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "photos" / "cat").mkdir(parents=True)
    >>> cv2.imwrite(str(folder / "photos" / "cat" / "1.png"), np.zeros((40, 60, 3), np.uint8))
    True
    >>> recordio.convert.pack(folder / "photos", folder / "a", resize=20, encoding=".jpg").records
    1
    """
    arguments = _PACK.of("pack", keywords, values)
    prefix = pack_prefix(arguments.prefix)
    options = PackOptions(**arguments.values(*(item.name for item in fields(PackOptions))))
    source = arguments.source[0] if len(arguments.source) == 1 else arguments.source
    return pack_source(
        source,
        prefix,
        options,
        check=replacing,
        progress=arguments.progress,
        cancelled=arguments.cancelled,
    )


export = _described(export, "export", _EXPORT, ExportReport, rest="options")
pack = _described(pack, "pack", _PACK, SourceReport)


def functions() -> dict[str, Callable[..., Any]]:
    """Return the functions of the registry by their names."""
    return {f"from_{name}": _converter(row) for name, row in IMPORTS.items()}
