"""Records become tar files of WebDataset; `containers` has the way back."""

from __future__ import annotations

import argparse
import io
import json
import tarfile
from collections.abc import Sequence
from typing import Any

from recordio.bytes.storage import AtomicOutput
from recordio.containers.tar_members import split_name
from recordio.formats.table import suffixes_of

from ..payloads import number_text
from ..record_pack import RecordPack, name_of
from .csv import one_file
from .folders import safe_parts
from .format import Export, ExportedFields


def write_webdataset(pack: RecordPack, paths: Sequence[str], settings: argparse.Namespace) -> int:
    """Write the content of each record and its labels: ``KEY.cls``, or ``KEY.json`` for several.

    The field ``mask`` is ``KEY.mask.png``.
    """
    names = pack.pack.entries
    count = 0
    keys: set[str] = set()
    with (
        AtomicOutput(paths[0]) as output,
        tarfile.open(fileobj=output.files[0], mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for record, beside in pack.made(lambda record: list(pack.fields_of(record))):
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
            for field in beside:
                add_file(archive, f"{key}.{field.name}{field.suffix}", field.stored)
            count += 1
    return count


def add_file(archive: tarfile.TarFile, name: str, content: Any) -> None:
    """Add a file without owner and time, so that the same records give the same archive."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))
    archive.members = []  # type: ignore[attr-defined]


TO_WEBDATASET = Export(
    "webdataset",
    "KEY.jpg, KEY.cls and fields for each record; TARGET is a tar file",
    one_file,
    write_webdataset,
    ExportedFields,
    ".tar",
)
