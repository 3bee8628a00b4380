"""The command line of im2rec: options, their defaults, and older spellings of them.

Nothing is read or written here; `parse_arguments` turns words into settings or ends with a message.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence

from recordio.bytes.files import StoredFile
from recordio.bytes.remote.settings import is_url
from recordio.formats.image_size import DEFAULT_MAX_PIXELS

from .completion import add_completion
from .console import Parser, add_version
from .image_list import split_entries
from .outputs import local_path, output_place
from .scan import DEFAULT_EXTENSIONS, READABLE_EXTENSIONS

__all__ = [
    "IMAGE_OPTIONS",
    "LIST_OPTIONS",
    "PACK_OPTIONS",
    "build_parser",
    "given_options",
    "modern_spelling",
    "parse_arguments",
]

#: Options without a value.  Older versions of MXNet's tool took one: ``--list True``, ``--list=1``.
FLAGS = (
    "--list",
    "--recursive",
    "--shuffle",
    "--stratify",
    "--pass-through",
    "--center-crop",
    "--pack-label",
    "--optimize",
    "--checksums",
    "--skip-errors",
    "--strict",
)
#: Options that matter only where a list is made, and only where images are changed or packed.
LIST_OPTIONS = ("recursive", "exts", "shuffle", "train_ratio", "test_ratio", "stratify", "chunks")
IMAGE_OPTIONS = ("resize", "center_crop", "quality", "encoding", "color", "inter_method")
PACK_OPTIONS = (
    *IMAGE_OPTIONS,
    "pass_through",
    "pack_label",
    "num_thread",
    "check",
    "optimize",
    "max_pixels",
    "checksums",
    "shards",
    "part",
    "ray",
)

#: Encodings of `encode`, whose import takes a while.
ENCODINGS = (".jpg", ".png", "raw")

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

DESCRIPTION = """\
Pack a folder of images into a record file (PREFIX.rec) with its index (PREFIX.idx).

The images are named by a list, PREFIX.lst: an id, labels and a path in each line.  Without a list
one is made first: every folder below ROOT that holds images becomes a class, and
PREFIX.classes.txt tells which label is which folder.
"""

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
        type=output_place,
        help="start of the output names, also an s3://, gs:// or az:// URL.  Every .lst file whose "
        "path starts with it is packed; if it is a folder (a URL with a slash at its end), every "
        ".lst file in it",
    )
    parser.add_argument("root", metavar="ROOT", type=local_path, help="the folder with the images")

    lists = parser.add_argument_group("making lists")
    lists.add_argument(
        "--list", action="store_true", help="only write the list and the class names, pack nothing"
    )
    lists.add_argument(
        "--recursive",
        action="store_true",
        default=None,
        help="walk sub-folders and label images by folder.  With --list the default is the files "
        "directly in ROOT, all with label 0; without --list, to walk when there are sub-folders "
        "with images",
    )
    lists.add_argument(
        "--exts",
        action="append",
        metavar=".EXT ...",
        help="suffixes to accept, in any case, such as .webp .gif .bmp .tiff; what else there is "
        "is counted in a note (default: .jpeg .jpg .png)",
    )
    lists.add_argument(
        "--no-shuffle",
        dest="shuffle",
        action="store_false",
        help="keep the order of the scan (default: shuffle, the same way every time)",
    )
    lists.add_argument(
        "--train-ratio",
        type=float,
        default=1.0,
        metavar="R",
        help="part of the images for PREFIX_train.lst; what neither this nor --test-ratio takes "
        "goes to PREFIX_val.lst (default: 1, a single PREFIX.lst)",
    )
    lists.add_argument(
        "--test-ratio",
        type=float,
        default=0.0,
        metavar="R",
        help="part of the images for PREFIX_test.lst; needs --train-ratio below 1 (default: 0)",
    )
    lists.add_argument(
        "--stratify",
        action="store_true",
        help="split every class in the same proportions (default: the list as a whole)",
    )
    lists.add_argument(
        "--chunks",
        type=int,
        default=1,
        metavar="N",
        help="cut the list into N files PREFIX_0.lst, PREFIX_1.lst, ... (default: 1)",
    )

    images = parser.add_argument_group("changing images")
    images.add_argument(
        "--pass-through",
        action="store_true",
        help="store the files as they are; the other options of this group then do nothing",
    )
    images.add_argument(
        "--resize",
        type=int,
        default=0,
        metavar="PIXELS",
        help="scale the short side to this size, up or down (default: 0, keep the size)",
    )
    images.add_argument(
        "--center-crop", action="store_true", help="cut out the square in the centre before scaling"
    )
    images.add_argument(
        "--quality",
        type=int,
        metavar="Q",
        help="JPEG quality 0-100, or PNG compression 0-9 (higher is 9), none for raw; default: 95, "
        "and images that need no change are stored untouched.  If given, every image is encoded "
        "again",
    )
    images.add_argument(
        "--encoding",
        type=_encoding,
        choices=ENCODINGS,
        default=".jpg",
        help="format of the stored images.  raw: pixels that need no decoding, larger and much "
        "faster to read; meant for use with --resize (default: .jpg)",
    )
    images.add_argument(
        "--color",
        type=int,
        choices=[-1, 0, 1],
        default=1,
        help="1: colour, EXIF orientation applied, alpha dropped; 0: grey; -1: as stored, 16 bits "
        "and alpha kept with --encoding .png (default: 1)",
    )
    images.add_argument(
        "--inter-method",
        type=int,
        choices=[0, 1, 2, 3, 4, 9],
        default=1,
        help="resampling: 0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos, 9 cubic to enlarge and "
        "area to shrink (default: 1)",
    )

    packing = parser.add_argument_group("packing")
    packing.add_argument(
        "--pack-label",
        action="store_true",
        help="store all labels of lines with several (default: the first label)",
    )
    packing.add_argument(
        "--optimize",
        action="store_true",
        help="rewrite JPEG images without loss, whatever they come from, so that parts of them are "
        "decoded faster: not progressive, with restart markers; the pixels stay the same",
    )
    packing.add_argument(
        "--checksums",
        action="store_true",
        help="write PREFIX.crc as well, a checksum of every record, which recordio check and the "
        "iterators (verify=True) compare",
    )
    packing.add_argument(
        "--num-thread",
        type=int,
        metavar="N",
        help="number of encoding threads (default: all cores; with --ray 1 for each shard)",
    )

    sharding = parser.add_argument_group(
        "shards",
        "Several record files with a manifest, PREFIX.shards.json, which path_imgrec= of the\n"
        "iterators takes.  They depend on the list and the options alone, not on who makes them.\n"
        "Shards that are whole are not made again.",
    )
    sharding.add_argument(
        "--shards",
        type=int,
        metavar="N",
        help="cut the list into N shards, PREFIX-000000.rec and so on (default with --part and "
        "--ray: one for every 10000 images)",
    )
    sharding.add_argument(
        "--part",
        type=_part,
        metavar="K/N",
        help="make only those of worker K of N, from 1 to N; the list must exist.  The last worker "
        "to finish writes the manifest",
    )
    sharding.add_argument(
        "--ray",
        metavar="[ADDRESS]",
        help="make the shards as tasks of a Ray cluster whose nodes find the files under the same "
        "paths: that at ADDRESS, such as 10.0.0.1:6379, or without one that of RAY_ADDRESS or of "
        "this machine, started if there is none.  Needs ray",
    )

    errors = parser.add_argument_group(
        "bad images",
        "Images that are missing, damaged or truncated are left out and named in\n"
        "PREFIX.skipped.txt; the rest is packed, and the exit code is 1.",
    )
    choice = errors.add_mutually_exclusive_group()
    choice.add_argument("--skip-errors", action="store_true", help="exit with 0 all the same")
    choice.add_argument(
        "--strict", action="store_true", help="stop at the first one, write nothing"
    )
    errors.add_argument(
        "--check",
        choices=["header", "decode", "none"],
        default="header",
        help="how to examine files that are stored untouched.  header: JPEG and PNG must be "
        "complete, other formats are decoded; decode: decode all; none: store any file "
        "(default: header)",
    )
    errors.add_argument(
        "--max-pixels",
        type=int,
        default=DEFAULT_MAX_PIXELS,
        metavar="N",
        help="leave out images with more pixels that would have to be decoded (default: 2**26)",
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
            wanted = agreed == (name == positive)
            result.append(positive if wanted else positive.replace("--", "--no-", 1))
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
    if f".{word.lower().lstrip('*.')}" in READABLE_EXTENSIONS:  # the dot may be left out
        return True
    return word.startswith(".") and word.strip(".") != "" and not any(c in word for c in "/\\")


def _encoding(word: str) -> str:
    """Return one spelling: ``JPEG`` and ``jpg`` are ``.jpg``, ``.raw`` is ``raw``."""
    name = word.lower().lstrip(".").replace("jpeg", "jpg")
    return name if name in ENCODINGS else f".{name}"


def _part(word: str) -> tuple[int, int]:
    """Read ``3/16`` as two numbers."""
    part, slash, parts = word.partition("/")
    if slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts):
        return int(part), int(parts)
    raise argparse.ArgumentTypeError(f"expected K/N with K from 1 to N, such as 3/16, not {word!r}")


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
    try:
        split_entries(
            settings.prefix, (), settings.chunks, settings.train_ratio, settings.test_ratio
        )
    except ValueError as error:
        parser.error(str(error))
    if settings.num_thread is not None and settings.num_thread < 1:
        parser.error(f"argument --num-thread: must be at least 1, not {settings.num_thread}")
    if settings.part is not None and settings.ray is not None:
        parser.error("argument --part: with --ray one process makes all shards; drop one of both")
    shards = [name for name in ("shards", "part", "ray") if getattr(settings, name) is not None]
    if shards and is_url(settings.prefix):
        parser.error(
            f"argument --{shards[0]}: shards are made in a folder that all workers share, not at a "
            "URL: give its path, and upload the files when the manifest is there"
        )
    if settings.shards is not None and settings.shards < 1:
        parser.error(f"argument --shards: must be at least 1, not {settings.shards}")
    if settings.max_pixels < 1:
        parser.error(f"argument --max-pixels: must be at least 1, not {settings.max_pixels}")
    if settings.resize < 0:
        parser.error(f"argument --resize: must be 0 or a number of pixels, not {settings.resize}")
    if settings.quality is not None and not 0 <= settings.quality <= 100:
        parser.error(f"argument --quality: must lie between 0 and 100, not {settings.quality}")
    if settings.quality is not None and settings.encoding == "raw":
        parser.error("argument --quality: raw images have none; drop it or --encoding raw")
    if settings.optimize and settings.encoding != ".jpg" and not settings.pass_through:
        parser.error(f"argument --optimize: it is for JPEG, not for --encoding {settings.encoding}")
    return settings


def given_options(settings: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Return those of some options, as they are spelled, that differ from their defaults."""
    defaults = vars(parse_arguments(["PREFIX", "ROOT"]))
    spelled = {"shuffle": "--no-shuffle"}
    return [
        spelled.get(name, f"--{name.replace('_', '-')}")
        for name in names
        if getattr(settings, name) != defaults[name]
    ]
