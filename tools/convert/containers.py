"""Containers with converters of their own: `recordio pack` of a kind of file, by another name.

The readers are those of training, in `recordio.containers`; only ``raw=True`` of TFRECORD, records
as they are, is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from recordio.bytes.files import StoredFile
from recordio.bytes.mapping import part_of
from recordio.containers.container import Container
from recordio.containers.folder import FOLDER
from recordio.containers.tar import TAR
from recordio.containers.tfrecord import TFRECORD, masked_crc32c
from recordio.errors import CorruptRecordError, TruncatedRecordError
from recordio.keywords.checks import boolean
from recordio.keywords.options import Rule, option

from ..im2rec_options import PackOptions, family_of
from ..samples import files_of
from ..unpacking import unpacked_beside
from .format import WITH_IMAGE, Import, ImportSource, Item
from .importing import ImportReport, import_records

#: Options of all three, and of those whose samples have parts: names here, and in `PackOptions`.
COMMON = {name: name for name in ("check", "max_pixels", "num_thread", "checksums")}
PARTS = {
    "content": "image_field",
    "label": "label_field",
    "fields": "fields",
    "no_labels": "no_labels",
    "max_content_bytes": "max_content_bytes",
}
#: Bytes of a length, of that with its checksum, and of the checksum of the data.
LENGTH, HEAD, TAIL = 8, 12, 4


def pack_files(
    kind: Container,
    names: Mapping[str, str],
    settings: Any,
    prefix: str,
    *,
    check: Callable[[Sequence[str]], object],
    progress: bool | None,
    cancelled: Callable[[], bool],
) -> ImportReport:
    """Pack files of a kind, whatever they are called."""
    from ..pack_source import pack_source  # slow to load

    source = settings.source if isinstance(settings.source, (list, tuple)) else [settings.source]
    if getattr(settings, "raw", False):
        return _pack_raw(files_of(source, kind), settings, prefix, progress, cancelled)
    options = PackOptions(
        **{old: getattr(settings, new) for new, old in names.items()},
        **({"shuffle": True, "seed": settings.seed or 0} if settings.shuffle else {}),
        strict=settings.strict,
    )
    return pack_source(
        source, prefix, options, kind, check=check, progress=progress, cancelled=cancelled
    )


def _pack_raw(
    files: Sequence[StoredFile],
    settings: Any,
    prefix: str,
    progress: bool | None,
    cancelled: Callable[[], bool],
) -> ImportReport:
    """Store the records of TFRecord files as they are."""
    with unpacked_beside(files, prefix, progress, cancelled) as (plain_files, names):
        items = (
            Item(None, data)
            for file in plain_files
            for _, data in read_frames(file, names.get(file.name, file.name))
        )
        return import_records(
            ImportSource(items),
            prefix,
            shuffle=(settings.seed or 0) if settings.shuffle else None,
            strict=settings.strict,
            progress=progress,
            cancelled=cancelled,
        )


def read_frames(file: StoredFile, path: str = "") -> Iterator[tuple[int, bytes]]:
    """Yield offset and data of each record of a TFRecord file; both checksums are compared.

    Reading ends with an error at a wrong one: the rest cannot be trusted.
    """
    view, at, number = file.map(), 0, 0
    while at < len(view):
        location: dict[str, Any] = {"path": path or file.name, "offset": at, "record": number}
        head = bytes(part_of(view, at, at + HEAD)) if at + HEAD <= len(view) else b""
        if not head:
            raise TruncatedRecordError("the file ends inside the head of a record", **location)
        if masked_crc32c(head[:LENGTH]) != int.from_bytes(head[LENGTH:], "little"):
            raise CorruptRecordError(
                "the checksum of the length is wrong: the file is damaged here, or no TFRecord "
                "file",
                **location,
            )
        end = at + HEAD + int.from_bytes(head[:LENGTH], "little")
        if end + TAIL > len(view):
            raise TruncatedRecordError("the file ends inside a record", **location)
        data = bytes(part_of(view, at + HEAD, end))
        if masked_crc32c(data) != int.from_bytes(part_of(view, end, end + TAIL), "little"):
            raise CorruptRecordError("the checksum of the data is wrong", **location)
        yield at, data
        at, number = end + TAIL, number + 1


def _row(
    kind: Container, name: str, summary: str, source: str, names: Mapping[str, str], **more: Any
) -> Import:
    """Make the row of a kind of container; a folder is one source, and others may be several."""
    own = {key: more.pop(key) for key in ("extra", "rules", "exts") if key in more}
    options = family_of(
        f"{name.capitalize()}Options",
        f"Options of from-{name}.",
        names,
        **own,
    )
    return Import(
        name,
        summary,
        [("source", source, not kind.is_folder)],
        pack=partial(pack_files, kind, MappingProxyType(dict(names))),
        options=options,
        **more,
    )


FROM_FOLDER = _row(
    FOLDER,
    "imagefolder",
    "a folder of images for each class",
    "the folder; every folder in it that contains images is a class",
    {"exts": "exts", "fields": "fields", **COMMON},
    exts=(),
    description="""Each image file becomes an image record, untouched. PREFIX.classes.txt lists the
    label of each folder, and PREFIX.lst the file of each record. im2rec resizes and splits.""",
    example=WITH_IMAGE
    + """>>> recordio.convert.from_imagefolder(folder / "photos", folder / "a").records
1""",
)
FROM_WEBDATASET = _row(
    TAR,
    "webdataset",
    "tar files of WebDataset",
    "the archives, plain or compressed, or URLs; {000..009} and * stand for many",
    {**PARTS, **COMMON},
    description="""Files KEY.jpg, KEY.cls, ... that follow one another become a record: the image
    untouched, the label in the image header. PREFIX.lst lists the keys.""",
    example=WITH_IMAGE
    + """>>> import tarfile
>>> _ = (folder / "1.cls").write_text("3")
>>> with tarfile.open(folder / "a.tar", "w") as archive:
...     archive.add(folder / "photos" / "cat" / "1.png", "1.png")
...     archive.add(folder / "1.cls", "1.cls")
>>> recordio.convert.from_webdataset(folder / "a.tar", folder / "a", label="cls").records
1""",
)
FROM_TFRECORD = _row(
    TFRECORD,
    "tfrecord",
    "TFRecord files of tf.train.Example",
    "the files, plain or gzip, or URLs; {000..009} and * stand for many",
    {**PARTS, **COMMON},
    extra={
        "raw": option(
            False,
            "bool",
            "Store the data of each TFRecord unchanged and unread, without an image header.",
            boolean,
        )
    },
    rules=(
        Rule(
            f"{' '.join(PARTS)} {' '.join(COMMON)}",
            lambda v: v.raw,
            "has no effect: with `raw` records are stored as they are",
            refused=True,
        ),
    ),
    description="""Each example becomes an image record: the encoded image untouched, the label in
    the header. All checksums are compared.""",
    example=WITH_IMAGE
    + """>>> _ = recordio.convert.from_imagefolder(folder / "photos", folder / "a")
>>> _ = recordio.convert.export(folder / "a", folder / "a.tfrecord", to="tfrecord")
>>> recordio.convert.from_tfrecord(folder / "a.tfrecord", folder / "b").records
1""",
)
