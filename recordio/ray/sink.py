"""Ray datasets as shards of record files, which appear whole, and a manifest that appears last."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from ray.data.block import Block, BlockAccessor
from ray.data.datasource import Datasink

from ..errors import EmptyRecordFileError, LabelError, ManifestError, RecordIOError
from ..frames.writer import RecordWriter
from ..header import IRHeader, pack
from ..operations.division import SUFFIX
from ..operations.rewriting import output_path
from ..packed_images import pack_img
from ..packs.manifest import Shard, described_shard, write_manifest
from ..packs.names import pack_prefix


class RecordDatasink(Datasink):
    """Write rows as records, for `ray.data.Dataset.write_datasink`.

    Parameters
    ----------
    path : str or os.PathLike
        How the files are named: ``data/train`` gives ``data/train-000000-000.rec`` and so on, after
        the task and its shards, each with an index, and ``data/train.shards.json``.  The folder
        must exist, and be the same for every node.
    shard_bytes : int
        A shard ends where it has so many bytes or more.
    encoding : {".jpg", ".png"}
        Format of images that come as arrays.
    quality : int
        Of JPEG images, 0 to 100.

    Raises
    ------
    ValueError
        If `shard_bytes` is not above 0, or another value is out of range.
    FileNotFoundError
        If the folder does not exist.

    Notes
    -----
    A row has ``bytes``, an encoded image or whatever a record shall hold, or ``image``, a uint8
    array ``(height, width)``, ``(height, width, 1)`` or ``(height, width, 3)``, RGB.  Optional are
    ``label``, a number or a list of them, by default 0; ``key``, by default the number in the
    shard; and ``id``, by default the key.  Other columns are an error: drop them.

    Each shard is renamed to its name when it is complete, so that a task that was killed leaves
    nothing and is repeated by Ray.  The manifest is written when all tasks are done, which makes
    the shards one pack; without it they are not.  Existing files of these names are refused.

    Examples
    --------
    >>> import tempfile
    >>> sink = RecordDatasink(f"{tempfile.mkdtemp()}/train", shard_bytes=1 << 28)
    >>> os.path.basename(sink.manifest)
    'train.shards.json'
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        shard_bytes: int = 1 << 30,
        encoding: str = ".jpg",
        quality: int = 95,
    ) -> None:
        if not isinstance(shard_bytes, int) or shard_bytes < 1:
            raise ValueError(f"shard_bytes={shard_bytes!r}: expected a number above 0")
        if encoding not in (".jpg", ".png"):
            raise ValueError(f'encoding={encoding!r}: expected ".jpg" or ".png"')
        if not isinstance(quality, int) or not 0 <= quality <= 100:
            raise ValueError(f"quality={quality!r}: expected 0 to 100")
        self.prefix: str = os.path.abspath(pack_prefix(output_path(path)))
        folder = os.path.dirname(self.prefix)
        if not os.path.isdir(folder):
            raise FileNotFoundError(2, "the folder for the shards does not exist", folder)
        self.manifest: str = f"{self.prefix}{SUFFIX}"
        self.shard_bytes = shard_bytes
        self._encoding = encoding
        # For PNG `pack_img` takes a level of compression; 3 is OpenCV's own choice.
        self._quality = quality if encoding == ".jpg" else 3

    @property
    def min_bytes_per_write(self) -> int:
        """Bytes of rows that Ray gathers for a task: those of a shard."""
        return self.shard_bytes

    def on_write_start(self, schema: Any = None) -> None:
        """Refuse to write where there is something already.

        Raises
        ------
        ManifestError
            If the manifest or shards are there.
        """
        digit = "[0-9]"
        pattern = f"{glob.escape(self.prefix)}-{digit * 6}-{digit * 3}.rec"
        existing_paths = [
            path for path in (self.manifest, *sorted(glob.glob(pattern))) if os.path.lexists(path)
        ]
        if existing_paths:
            raise ManifestError(
                "it is there already, perhaps of a write that failed: remove it with all files "
                f"that begin with {self.prefix}, or give another path",
                path=existing_paths[0],
            )

    def write(self, blocks: Iterable[Block], ctx: Any) -> list[dict[str, Any]]:
        """Write the rows of one task, and describe its shards for the manifest."""
        rows = _rows(blocks)
        shards: list[dict[str, Any]] = []
        row = next(rows, None)
        while row is not None:
            prefix = f"{self.prefix}-{ctx.task_idx:06d}-{len(shards):03d}"
            with RecordWriter(f"{prefix}.rec", f"{prefix}.idx") as writer:
                number = 0
                while row is not None and writer.tell() < self.shard_bytes:
                    self._write_row(writer, row, number)
                    number += 1
                    row = next(rows, None)
            shards.append(vars(described_shard(f"{prefix}.rec", f"{prefix}.idx")))
        return shards

    def _write_row(self, writer: RecordWriter, row: Mapping[str, Any], number: int) -> None:
        key = int(row.get("key", number))
        header = IRHeader(0, _label_of(row), int(row.get("id", key)), 0)
        if "bytes" in row:
            record = pack(header, row["bytes"])
        else:
            pixels = _pixels(row["image"])
            record = pack_img(header, pixels, self._quality, self._encoding)
        writer.write(record, key)

    def on_write_complete(self, write_result: Any) -> None:
        """Write the manifest.

        Raises
        ------
        EmptyRecordFileError
            If there was no row.
        """
        all_shards = [Shard(**words) for shards in write_result.write_returns for words in shards]
        if not all_shards:
            raise EmptyRecordFileError("the dataset has no rows", path=self.manifest)
        all_shards.sort(key=lambda shard: shard.file)
        write_manifest(self.manifest, all_shards)


#: Columns that a row may have.
COLUMNS = {"key", "id", "label", "bytes", "image"}


def _rows(blocks: Iterable[Block]) -> Iterator[Mapping[str, Any]]:
    for block in blocks:
        accessor = BlockAccessor.for_block(block)
        if not accessor.num_rows():
            continue
        columns = set(accessor.column_names())
        if len(columns & {"bytes", "image"}) != 1 or columns - COLUMNS:
            raise RecordIOError(
                f"the rows have the columns {sorted(columns)}: expected bytes or image, and besides"
                " these key, id and label alone"
            )
        yield from accessor.iter_rows(public_row_format=False)


def _label_of(row: Mapping[str, Any]) -> Any:
    """Return a label: a number, or several in an array."""
    label = row.get("label", 0.0)
    try:
        labels = np.asarray(label, np.float32)
    except (TypeError, ValueError):
        labels = np.empty(0, np.float32)
    if labels.ndim > 1 or not labels.size:
        raise LabelError(f"the label {label!r} is neither a number nor a list of them")
    return labels.item() if labels.size == 1 else labels


def _pixels(image: Any) -> np.ndarray:
    """Return an image with its channels in the order of OpenCV."""
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3):
        raise RecordIOError(
            f"an image is {pixels.dtype} of shape {pixels.shape}: expected uint8 and two or three "
            "axes"
        )
    if pixels.ndim == 2 or pixels.shape[2] == 1:
        return pixels
    if pixels.shape[2] != 3:
        raise RecordIOError(f"an image has {pixels.shape[2]} channels: expected 1 or 3")
    return np.ascontiguousarray(pixels[..., ::-1])
