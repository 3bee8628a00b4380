"""`recordio.convert`: the functions do what the commands do, and their stub says what they take."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import cv2
import numpy as np
import pytest

import recordio.convert
from recordio import RecordIOError
from recordio.tools.convert.registry import EXPORTS, IMPORTS
from recordio.tools.im2rec_options import PackOptions

STUB = Path(__file__).parents[3] / "recordio" / "convert.pyi"
HEAD = '''"""Conversions of data sets as functions, with the signatures that the registry gives."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from .tools.convert.exporting import ExportReport
from .tools.convert.importing import ImportReport
from .tools.pack_source import SourceReport

__all__ = [
'''


def signatures():
    """The functions as a stub has them."""
    yield "".join(f'    "{name}",\n' for name in sorted(recordio.convert.__all__)) + "]\n\n"
    yield "__test__: dict[str, str]\n\n"
    for name in sorted(n for n in recordio.convert.__all__ if n[0].islower()):
        signature = inspect.signature(getattr(recordio.convert, name))
        lines, star = [], False
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                lines.append(f"    **{parameter.name}: Any,\n")
                continue
            if parameter.kind is parameter.KEYWORD_ONLY and not star:
                lines.append("    *,\n")
                star = True
            kind = parameter.annotation
            kind = kind.__name__ if isinstance(kind, type) else str(kind)
            kind = re.sub(r"collections\.abc\.|typing\.", "", kind)
            default = parameter.default
            value = "..." if callable(default) else repr(default).replace("'", '"')
            given = "" if default is parameter.empty else f" = {value}"
            lines.append(f"    {parameter.name}: {kind}{given},\n")
        yield f"def {name}(\n{''.join(lines)}) -> {signature.return_annotation.__name__}: ...\n"


def test_the_stub_has_the_signatures_of_the_functions():
    """`STUB.write_text(HEAD + "".join(signatures()))` writes it again."""
    assert STUB.read_text() == HEAD + "".join(signatures())


def test_every_format_has_a_function_with_the_options_of_the_command():
    for name, row in IMPORTS.items():
        function = getattr(recordio.convert, f"from_{name}")
        parameters = inspect.signature(function).parameters
        assert {item.name for item in fields(row.options)} <= parameters.keys()
        assert [source for source, _, _ in row.sources] == list(parameters)[: len(row.sources)]
        assert f"recordio.convert.from_{name}(" in function.__doc__ and row.example
    taken = inspect.signature(recordio.convert.pack).parameters
    assert {item.name for item in fields(PackOptions)} <= taken.keys()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda c: c.from_csv("a", "b", label_column=[0]), "did you mean 'label_columns'"),
        (lambda c: c.from_csv("a", "b", dtype="float"), "dtype='float': expected one of"),
        (lambda c: c.from_csv("a", "b", delimiter="ab"), "delimiter='ab'.*is no delimiter"),
        (lambda c: c.from_csv("a", "b", shape=[0, 3]), "shape=.*is no list of lengths"),
        (lambda c: c.from_csv("a"), r"from_csv\(\) needs prefix"),
        (lambda c: c.from_csv("a", "b", "c"), "takes 2 arguments by position, not 3"),
        (lambda c: c.from_webdataset(3, "b"), "source=3: expected a path"),
        (lambda c: c.from_webdataset([], "b"), "at least one"),
        (lambda c: c.from_coco("a", "b", "c", crowd="all"), "crowd='all': expected one of"),
        (lambda c: c.export("a", "b", to="tar"), "to='tar': expected one of 'folders'"),
        (lambda c: c.export("a", "b", to="csv", no_label=True), "did you mean 'no_labels'"),
        (lambda c: c.export("a", "b", shard_records=3), "no parameter 'shard_records'"),
        (
            lambda c: c.export("a", "b", to="csv", shard_records=3, shard_bytes=9),
            "give one of both",
        ),
        (lambda c: c.pack("a", "b", reside=3), "did you mean 'resize'"),
        (lambda c: c.pack("a", "b", shards=3, chunks=2), "is for several packs"),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(call, said):
    with pytest.raises((TypeError, ValueError), match=said):
        call(recordio.convert)


def written(folder, name):
    return {p.suffix: p.read_bytes() for p in folder.iterdir() if p.stem == name}


def test_functions_write_what_commands_write(tmp_path, photo_folder, command):
    table = tmp_path / "t.csv"
    table.write_text("1;0.5;2\n0;1;3\n")
    words = ["--label-columns", "0", "--delimiter", ";", "--dtype", "float64"]
    assert command("from-csv", table, tmp_path / "a", *words) == 0
    recordio.convert.from_csv(
        table, tmp_path / "b", label_columns=0, delimiter=";", dtype="float64"
    )
    assert written(tmp_path, "a") == written(tmp_path, "b")
    assert command("from-imagefolder", photo_folder, tmp_path / "c", "--shuffle", "--seed", 3) == 0
    report = recordio.convert.from_imagefolder(
        photo_folder, tmp_path / "d.rec", shuffle=True, seed=3, exts=[".jpg", "png", ".jpeg"]
    )
    assert report.path == str(tmp_path / "d.rec") and report.records == 20
    assert written(tmp_path, "c") == written(tmp_path, "d")


def test_exports_come_back(tmp_path, photo_folder):
    convert = recordio.convert
    convert.from_imagefolder(photo_folder, tmp_path / "a")
    report = convert.export(tmp_path / "a", tmp_path / "a.tar", to="webdataset", shard_records=8)
    assert len(report.paths) == 3 and report.records == 20
    found = convert.from_webdataset([tmp_path / "a-*.tar"], tmp_path / "b", label="cls")
    assert found.records == 20 and not found.skipped
    folder = convert.export(photo_folder, tmp_path / "again")
    assert folder.records == 20 and (tmp_path / "again" / "labels.csv").exists()
    assert all(
        f"{name}: {row.summary}" in " ".join(convert.export.__doc__.split())
        for name, row in EXPORTS.items()
    )


def test_pack_makes_what_the_converter_makes(tmp_path, photo_folder):
    recordio.convert.from_imagefolder(photo_folder, tmp_path / "a")
    report = recordio.convert.pack(photo_folder, tmp_path / "b", num_thread=2)
    assert report.records == 20 and written(tmp_path, "a") == written(tmp_path, "b")
    sharded = recordio.convert.pack(photo_folder, tmp_path / "c", shards=2)
    assert sharded.paths == [str(tmp_path / "c.shards.json")]


def test_work_can_be_cancelled_and_errors_have_types(tmp_path, photo_folder):
    for convert in (recordio.convert.from_imagefolder, recordio.convert.pack):
        with pytest.raises(KeyboardInterrupt):
            convert(photo_folder, tmp_path / "a", cancelled=lambda: True)
        with pytest.raises(RecordIOError, match="folder for the output does not exist"):
            convert(photo_folder, tmp_path / "none" / "a")
    assert not list(tmp_path.glob("a*"))


def test_boxes_of_crowds_are_kept_when_that_is_asked_for(tmp_path):
    import json

    cv2.imwrite(str(tmp_path / "1.png"), np.zeros((4, 6, 3), np.uint8))
    box = {"id": 1, "image_id": 1, "category_id": 7, "bbox": [1, 1, 3, 2], "iscrowd": 1}
    image = {"id": 1, "file_name": "1.png", "width": 6, "height": 4}
    found = {"images": [image], "annotations": [box], "categories": [{"id": 7, "name": "cat"}]}
    (tmp_path / "a.json").write_text(json.dumps(found))
    take = recordio.convert.from_coco
    with pytest.raises(RecordIOError, match="nothing to convert"):
        take(tmp_path / "a.json", tmp_path, tmp_path / "a")
    assert take(tmp_path / "a.json", tmp_path, tmp_path / "a", crowd="keep").records == 1
