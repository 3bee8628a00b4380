"""Tar files of WebDataset: the files of one base name become a record, and back.

``tarfile`` does the work, as a stream, so that archives may be larger than the memory and come from
URLs.  Nothing is ever unpacked to the disk, and of a sample only what is wanted is read.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import json
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from recordio import RecordIOError
from recordio.bytes.storage import AtomicOutput
from recordio.containers.objects import has_rows, labels_of_rows
from recordio.containers.tar_members import split_name
from recordio.containers.webdataset import FieldChoice, PartChoice, add_part, ending_fields
from recordio.formats.table import suffixes_of
from recordio.keywords.checks import boolean
from recordio.keywords.options import option
from recordio.operations.options import field_list

from ..field_kinds import FoundKinds
from ..image_list import Skipped
from ..payloads import check_content, number_text
from ..record_pack import RecordPack, name_of
from .csv import one_file
from .folders import CheckOptions, safe_parts
from .format import (
    WITH_IMAGE,
    ContentLimit,
    Export,
    ExportedFields,
    Import,
    ImportSource,
    Item,
    Items,
    LeftOut,
    MetadataLimit,
    unreadable,
)
from .shards import matching_files
from .unpacking import UNPACKING_ERRORS, BoundedReader, open_unpacked

if TYPE_CHECKING:
    from typing import Self

__all__ = ["FROM_WEBDATASET", "TO_WEBDATASET"]

END_MARKER = 1024
#: No longer names: those of this system end here, too.
LONGEST_NAME, LONGEST_ENDING = 4096, 255

#: Chooses the files to read: given the ending of one and those before it in the sample, the most
#: bytes of it and the option with that limit; None if it is not wanted.
Wanted = Callable[[str, Sequence[str]], "tuple[int, str] | None"]


class StrictInfo(tarfile.TarInfo):
    """Member of an archive whose end must be marked: ``tarfile`` takes damage for the end."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        """Read the next header."""
        offset = tarfile_.offset
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.EmptyHeaderError:  # type: ignore[attr-defined]
            raise tarfile.ReadError(
                f"the archive ends at offset {offset} without its end marker: it is truncated, or "
                f"was never finished; if all is there, append {END_MARKER} zero bytes"
            ) from None
        except (tarfile.HeaderError, ValueError, OverflowError) as error:  # pax headers: numbers
            raise tarfile.ReadError(f"damaged at offset {offset}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class WebDatasetOptions(CheckOptions, ContentLimit, MetadataLimit):
    """Options of from-webdataset."""

    content: str | None = option(
        None,
        "str, optional",
        """The file of a sample to store, such as jpg or left.png (default: the first image or .npy
        file).""",
    )
    label: str | None = option(
        None,
        "str, optional",
        """The file with the label, one or more numbers in text, such as cls, or json:label for a
        field of JSON (default: cls, or label or labels in json).""",
    )
    fields: tuple[str, ...] = option(
        (),
        "sequence of str",
        """Files of a sample to write beside its content, as PREFIX.NAME.rec: the name is the first
        part of the ending, mask for KEY.mask.png and txt for KEY.txt. all: every file that is
        neither content nor label; the archives are searched for these first (default: none).""",
        field_list,
    )
    no_labels: bool = option(False, "bool", "Do not look for labels; every label is 0.", boolean)


def open_webdataset(settings: argparse.Namespace) -> ImportSource:
    """Open the archives."""
    paths, limit = matching_files(settings.source), settings.max_metadata_bytes
    names = settings.fields
    if "all" in names:
        names = every_field(paths, settings)
    choices = {name: FieldChoice(name) for name in names}
    kinds = FoundKinds(names)

    def items() -> Items:
        for path in paths:
            passed_over: collections.Counter[str] = collections.Counter()
            for key, files in samples(path, wanted_files(settings, choices), limit, passed_over):
                try:
                    item = as_item(key, files, settings, choices)
                except RecordIOError as error:
                    yield Skipped(f"{path}, {key}", error.reason)
                    continue
                for name, value in item.fields.items():
                    kinds.look(name, *value)
                yield item
            yield LeftOut(passed_over)

    return ImportSource(items(), fields=tuple(names), describe=kinds.described)


def every_field(paths: Sequence[str], settings: argparse.Namespace) -> list[str]:
    """Look through archives for the names of all fields."""
    choice, found = choice_of(settings), set()
    for path in paths:
        for _, files in samples(
            path, lambda ending, before: None, settings.max_metadata_bytes, collections.Counter()
        ):
            rest = set(files) - {choice.chosen(files)}
            found |= {f".{one}" for one in rest if choice.purpose(one, list(files)) != "label"}
    return ending_fields(found)


def choice_of(settings: argparse.Namespace) -> PartChoice:
    """Return which files of a sample are used."""
    return PartChoice(settings.content or "", settings.label or "", not settings.no_labels)


def wanted_files(settings: argparse.Namespace, fields: Mapping[str, FieldChoice]) -> Wanted:
    """Return the function that chooses the files of a sample for its record and its fields."""
    choice = choice_of(settings)
    limits = {
        "content": (settings.max_content_bytes, "--max-content-bytes"),
        "label": (settings.max_metadata_bytes, "--max-metadata-bytes"),
    }

    def wanted(ending: str, before: Sequence[str]) -> tuple[int, str] | None:
        purpose = choice.purpose(ending, before)
        if not purpose and any(field.purpose(ending, before) for field in fields.values()):
            purpose = "content"
        return limits.get(purpose)

    return wanted


def samples(
    path: str, wanted: Wanted, max_metadata_bytes: int, passed_over: collections.Counter[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield key and files of each sample; a file too large or there twice is an error instead.

    Files of a sample follow one another; those that are not wanted are None.  Folders, links and
    names without an ending are passed over, as by WebDataset itself, and all but folders counted.
    """
    current, files = "", {}  # type: str, dict[str, Any]

    def limit_of(key: str, ending: str) -> tuple[int, str] | None:
        return wanted(ending, list(files) if key == current else [])

    for key, ending, content in members(path, limit_of, max_metadata_bytes, passed_over):
        if key != current and files:
            yield current, files
            files = {}
        current = key
        add_part(files, ending, content, passed_over)
    if files:
        yield current, files


def members(
    path: str,
    limit_of: Callable[[str, str], tuple[int, str] | None],
    max_metadata_bytes: int,
    passed_over: collections.Counter[str],
) -> Iterator[tuple[str, str, Any]]:
    """Yield key, ending and content of each file in an archive; None where no limit wants it."""

    def refuse() -> RecordIOError:
        return RecordIOError(
            f"the headers behind this file have more than {max_metadata_bytes} bytes; raise "
            "--max-metadata-bytes to allow them",
            path=path,
            offset=offset,
        )

    offset = 0
    spare = max_metadata_bytes + tarfile.RECORDSIZE
    try:
        with (
            open_unpacked(path) as file,
            contextlib.closing(BoundedReader(file, spare, refuse)) as bounded,
            tarfile.open(fileobj=bounded, mode="r|", tarinfo=StrictInfo) as archive,  # type: ignore[call-overload]
        ):
            for info in archive:
                offset = info.offset
                bounded.allowed = archive.offset + spare
                archive.members = []  # or memory would grow
                if sum(map(len, archive.pax_headers.values())) > max_metadata_bytes:
                    raise refuse()
                split = split_name(info.name)
                if split is None or not info.isreg():
                    if not info.isdir():
                        kind = "files without an ending" if info.isreg() else "links or devices"
                        passed_over[kind] += 1
                    continue
                key, ending = split[0], split[1].lower()
                if len(info.name) > LONGEST_NAME or len(ending) > LONGEST_ENDING:
                    raise RecordIOError(
                        f"a file name of {len(info.name)} characters", path=path, offset=offset
                    )
                limit, content = limit_of(key, ending), None  # type: Any, Any
                if limit is not None and info.size > limit[0]:
                    content = RecordIOError(
                        f"its .{ending} file has {info.size} bytes; raise {limit[1]} to allow it"
                    )
                elif limit is not None:
                    content = cast(io.BufferedReader, archive.extractfile(info)).read()
                yield key, ending, content
    except RecursionError:
        raise RecordIOError(
            "too many headers follow one another", path=path, offset=offset
        ) from None
    except (tarfile.TarError, zlib.error, *UNPACKING_ERRORS) as error:
        raise RecordIOError(
            f"the archive is damaged or truncated: {error}", path=path, offset=offset
        ) from None
    except OSError as error:
        if error.errno is None:  # damaged compression
            raise unreadable(path, error) from None
        raise


def as_item(
    key: str,
    files: dict[str, Any],
    settings: argparse.Namespace,
    choices: Mapping[str, FieldChoice],
) -> Item:
    """Make an item of one sample."""
    sample = choice_of(settings).sample(key, files)
    if settings.check == "header":
        check_content(sample.content)
    fields: dict[str, tuple[Sequence[float], bytes]] = {}
    left_out = collections.Counter(sample.left_out)
    for name, choice in choices.items():
        ending = choice.chosen(files)
        content = files.get(ending)
        if isinstance(content, RecordIOError):
            raise content
        if content is not None:
            labels = labels_of_rows(content) if has_rows(ending) else None
            fields[name] = labels or (0.0,), content
            del left_out[f".{ending}"]
    return Item(sample.labels, sample.content, sample.name, left_out, fields)


def write_webdataset(pack: RecordPack, paths: Sequence[str], settings: argparse.Namespace) -> int:
    """Write the content of each record and its labels: ``KEY.cls``, or ``KEY.json`` for several.

    The field ``mask`` is ``KEY.mask.png``.
    """
    names = pack.names()
    count = 0
    keys: set[str] = set()
    with (
        AtomicOutput(paths[0]) as output,
        tarfile.open(fileobj=output.files[0], mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for record in pack:
            suffixes = suffixes_of(record.kind)
            name = name_of(record, names, suffixes)
            if not safe_parts(name):  # unpacking would write elsewhere
                name = f"{record.key}{suffixes[0]}"
            key, ending = split_name(name) or (str(record.key), name.rpartition(".")[2])
            while key in keys:  # neighbours of one key would become one sample
                key = f"{key}-{record.position}"
            keys.add(key)
            add_file(archive, f"{key}.{ending}", record.content)
            labels = record.labels
            if len(labels) == 1 and labels[0].is_integer():
                add_file(archive, f"{key}.cls", number_text(labels[0]).encode())
            else:
                add_file(archive, f"{key}.json", json.dumps({"labels": labels}).encode())
            for one in pack.fields_of(record):
                add_file(archive, f"{key}.{one.name}{one.suffix}", one.stored)
            count += 1
    return count


def add_file(archive: tarfile.TarFile, name: str, content: Any) -> None:
    """Add a file without owner and time, so that the same records give the same archive."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))
    archive.members = []  # type: ignore[attr-defined]


FROM_WEBDATASET = Import(
    "webdataset",
    "tar files of WebDataset",
    [
        (
            "source",
            "the archives, plain or compressed, or fsspec URLs; {000..009} and * stand for many",
            True,
        )
    ],
    open_webdataset,
    WebDatasetOptions,
    """Files KEY.jpg, KEY.cls, ... that follow one another become a record: the image untouched,
    the label in the image header. PREFIX.lst lists the keys.""",
    example=WITH_IMAGE
    + """>>> import tarfile
>>> _ = (folder / "1.cls").write_text("3")
>>> with tarfile.open(folder / "a.tar", "w") as archive:
...     archive.add(folder / "photos" / "cat" / "1.png", "1.png")
...     archive.add(folder / "1.cls", "1.cls")
>>> recordio.convert.from_webdataset(folder / "a.tar", folder / "a", label="cls").records
1""",
)
TO_WEBDATASET = Export(
    "webdataset",
    "KEY.jpg, KEY.cls and fields for each record; TARGET is a tar file",
    one_file,
    write_webdataset,
    ExportedFields,
    ".tar",
)
