"""The command line of im2rec: options, their defaults, and older spellings of them.

Nothing is read or written here; `parse_arguments` turns words into settings or ends with a message.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from recordio.bytes.files import StoredFile
from recordio.bytes.remote.settings import is_url
from recordio.formats.table import IMAGE_SUFFIXES

from .command import add_option, as_flags, flag_of, is_flag
from .completion import add_completion
from .console import Parser, add_version
from .im2rec_options import (
    DEFAULT_EXTENSIONS,
    ENCODINGS,
    IMAGE_OPTIONS,
    Im2recOptions,
    ListOptions,
)
from .outputs import local_path, output_target

OPTIONS = {item.name: item for item in fields(Im2recOptions)}
#: Options without a value.  Older versions of MXNet's tool took one: ``--list True``, ``--list=1``.
FLAGS = tuple(flag_of(name) for name, item in OPTIONS.items() if is_flag(item))
#: Options that matter only where a list is made.
LIST_OPTIONS = tuple(item.name for item in fields(ListOptions))
#: Groups of ``--help``: title, description and options.
GROUPS = (
    ("making lists", None, ("list", *LIST_OPTIONS)),
    ("changing images", None, ("pass_through", *IMAGE_OPTIONS)),
    ("packing", None, ("pack_label", "field", "optimize", "checksums", "num_thread")),
    (
        "shards",
        """Several record files with a manifest, PREFIX.shards.json, which path_imgrec= of the
        iterators accepts. They depend only on the list and the options, not on the worker that
        makes them; with --part the list must exist. Complete shards are not made again.""",
        ("shards", "part", "ray"),
    ),
    (
        "bad images",
        """Images that are missing, damaged or truncated are left out and named in
        PREFIX.skipped.txt; all others are packed, and the exit code is 1.""",
        ("skip_errors", "strict", "check", "max_pixels"),
    ),
)
#: Options of which one at most is given.
EITHER = ("skip_errors", "strict")
#: Options that matter only where something is packed.
PACK_OPTIONS = tuple(name for _, _, names in GROUPS[1:] for name in names if name not in EITHER)

BOOLEAN_WORDS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}

#: Words that may follow ``--ray`` and are no prefix.
ADDRESS = re.compile(r"auto|local|(ray://)?([\w.-]+|\[[\w:]+\]):\d+")

DESCRIPTION = """Pack a folder of images into a record file (PREFIX.rec) with its index
(PREFIX.idx). The images are named by a list, PREFIX.lst: an id, labels and a path in each line.
Without a list, one is made first: every folder below ROOT that contains images becomes a class,
and PREFIX.classes.txt lists the label of each folder."""

EPILOG = """\
examples:
  im2rec data/train photos
      list the images below photos/ and pack them into data/train.rec
  im2rec data/train photos --resize 256 --quality 95
      the same, each image with its short side scaled to 256 pixels
  im2rec data/train photos --pass-through
      the same, the files stored as they are
  im2rec --list --recursive --train-ratio 0.9 data/set photos
  im2rec --resize 256 data/set photos
      make the lists data/set_train.lst and data/set_val.lst, look at them, pack both

  im2rec --list --recursive data/set photos
  im2rec --shards 64 --part 3/16 data/set photos
      one of 16 workers, on any machine: makes every 16th of 64 shards

  im2rec --ray data/set photos
      the same by all processors of a Ray cluster

exit codes:
  0         everything was done
  1         images were skipped, or nothing could be written
  2         wrong arguments
  130, 143  interrupted by Ctrl-C or SIGTERM; nothing half-written is left
"""


def _encoding(word: str) -> str:
    """Return one spelling: ``JPEG`` and ``jpg`` are ``.jpg``, ``.raw`` is ``raw``."""
    name = word.lower().lstrip(".").replace("jpeg", "jpg")
    return name if name in ENCODINGS else f".{name}"


#: Words for ``add_argument`` that do not follow from an option.
DIFFERENT: dict[str, dict[str, Any]] = {
    "exts": {"action": "append", "default": None, "metavar": ".EXT ...", "type": str},
    "shuffle": {
        "help": """keep the order in which the images were found (default: shuffle, in the same way
        every time)"""
    },
    "train_ratio": {"metavar": "R"},
    "test_ratio": {"metavar": "R"},
    "resize": {"metavar": "PIXELS"},
    "quality": {"metavar": "Q"},
    "encoding": {"type": _encoding},
    "field": {"action": "append", "default": None, "metavar": "NAME=PATH", "type": str},
    "part": {"metavar": "K/N"},
    "ray": {"metavar": "[ADDRESS]"},
}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the current spelling."""
    parser = Parser(
        prog="im2rec",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser)
    add_completion(parser)
    parser.add_argument(
        "prefix",
        metavar="PREFIX",
        type=output_target,
        help="""start of the output names, or an s3://, gs:// or az:// URL. Every .lst file whose
        path starts with it is packed; if it is a folder (a URL that ends with a slash), every .lst
        file in it""",
    )
    parser.add_argument("root", metavar="ROOT", type=local_path, help="the folder with the images")

    for title, description, names in GROUPS:
        group = parser.add_argument_group(title, description)
        either = group.add_mutually_exclusive_group() if title == "bad images" else group
        for name in names:
            add_option(
                either if name in EITHER else group, OPTIONS[name], **DIFFERENT.get(name, {})
            )
    # The opposites that older spellings (`--shuffle True`, `--recursive=0`) are translated to.
    for flag in FLAGS:
        opposite = flag.replace("--", "--no-")
        name = flag.strip("-").replace("-", "_")
        spelled, action = (flag, "store_true") if name == "shuffle" else (opposite, "store_false")
        parser.add_argument(
            spelled, dest=name, action=action, default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )
    return parser


def modern_spelling(words: Sequence[str]) -> list[str]:
    """Translate older spellings, and give each value of ``--exts`` its own option.

    ``--exts`` takes the words that look like suffixes and no other, so the positional arguments may
    follow it, and ``--ray`` the word that looks like an address.  Underscores in option names
    become dashes.  Everything behind ``--`` is left alone.
    """
    result: list[str] = []
    queue = list(reversed(words))
    while queue:
        word = queue.pop()
        if word == "--":
            return [*result, word, *reversed(queue)]
        if not word.startswith("--"):
            result.append(word)
            continue
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        positive = name.replace("--no-", "--", 1)
        if positive in FLAGS:
            if not equals and queue and queue[-1].lower() in BOOLEAN_WORDS:
                value = queue.pop()
            if value and value.lower() not in BOOLEAN_WORDS:
                result.append(f"{name}={value}")  # the parser explains it
                continue
            agreed = BOOLEAN_WORDS[value.lower()] if value else True
            is_on = agreed == (name == positive)
            result.append(positive if is_on else positive.replace("--", "--no-", 1))
        elif name == "--ray" and not equals:
            result.append(f"--ray={queue.pop() if queue and ADDRESS.fullmatch(queue[-1]) else ''}")
        elif name == "--exts":
            values = [value] if equals else []
            while not equals and queue and (not values or _looks_like_suffix(queue[-1])):
                if queue[-1].startswith("-"):
                    break
                values.append(queue.pop())
            suffixes = [part for item in values for part in item.split(",") if part]
            result += [f"--exts={_with_dot(suffix)}" for suffix in suffixes] or [name]
        else:
            result.append(f"{name}{equals}{value}")
    return result


def _looks_like_suffix(word: str) -> bool:
    if f".{word.lower().lstrip('*.')}" in IMAGE_SUFFIXES:  # the dot may be left out
        return True
    return word.startswith(".") and word.strip(".") != "" and not any(c in word for c in "/\\")


def _with_dot(suffix: str) -> str:
    suffix = suffix.lower().removeprefix("*")
    return suffix if suffix.startswith(".") else f".{suffix}"


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line, the words behind the name of the command.

    `root` is absolute, and so is `prefix` if it is no URL; `slash` says whether `prefix` ended with
    one.  `exts` is a tuple of lower-case suffixes with their dot; `recursive` is None without the
    option.
    """
    parser = build_parser()
    settings = parser.parse_args(modern_spelling(words))
    settings.prefix = StoredFile.at(settings.prefix).name  # file:// is a path
    settings.slash = settings.prefix.endswith(("/", os.sep))
    if not is_url(settings.prefix):
        settings.prefix = os.path.abspath(settings.prefix)
    settings.root = os.path.abspath(settings.root)
    settings.exts = tuple(settings.exts or DEFAULT_EXTENSIONS)
    for rule in Im2recOptions.rules:
        for name in rule.names.split():
            if getattr(settings, name) != OPTIONS[name].default and rule.when(settings):
                parser.error(f"argument {flag_of(name)}: it {as_flags(rule.text)}")
    shards = [name for name in ("shards", "part", "ray") if getattr(settings, name) is not None]
    if shards and is_url(settings.prefix):
        parser.error(
            f"argument --{shards[0]}: shards are made in a folder that all workers share, not at a "
            "URL: give its path, and upload the files when the manifest is there"
        )
    return settings


def given_options(settings: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Return those of some options, as they are spelled, that differ from their defaults."""
    defaults = vars(parse_arguments(["PREFIX", "ROOT"]))
    spelled = {"shuffle": "--no-shuffle"}
    return [
        spelled.get(name, flag_of(name))
        for name in names
        if getattr(settings, name) != defaults[name]
    ]
