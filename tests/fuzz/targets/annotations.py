"""Annotations: COCO's JSON, the XML of VOC, the lines of YOLO and manifests of SageMaker."""

from __future__ import annotations

import argparse
import base64
import os

import numpy as np

from recordio.tools.convert.coco import FROM_COCO
from recordio.tools.convert.format import Import, Item, LeftOut
from recordio.tools.convert.importing import ImportReport
from recordio.tools.convert.manifest import FROM_MANIFEST
from recordio.tools.convert.voc import FROM_VOC
from recordio.tools.convert.yolo import FROM_YOLO
from recordio.tools.image_list import Skipped

from .archives import count_left_out
from .mutate import change_json_text
from .target import Target, drawing, scratch

#: A grey PNG image of 8 x 4 pixels, which all annotations are about.
IMAGE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAECAAAAACWpiEsAAAAC0lEQVR42mNgIAwAACQAASXCqOMAAAAASUVORK5CYII="
)


def check(kind: Import, suffix: str, data: bytes) -> None:
    """The image becomes a label that a reader takes, or is said to be left out."""
    folder = scratch(kind.name)
    os.makedirs(folder, exist_ok=True)
    scratch(f"{kind.name}/a.png", IMAGE)
    path = scratch(f"{kind.name}/a{suffix}", data)
    draw = drawing(data)
    options = draw.choice([[], ["--background"], ["--check", "none"]])
    options = [*options, "--bad-boxes", draw.choice(["refuse", "clip", "drop"])]
    parser = argparse.ArgumentParser()
    kind.add_options(parser)
    sources = {name: folder for name, _, _ in kind.sources}
    if kind is FROM_COCO:
        sources["annotations"] = path
    if kind is FROM_MANIFEST:
        sources["manifest"] = path
        options = [*options, "--images", folder]  # nothing is fetched
    source = kind.open(argparse.Namespace(**sources, **vars(parser.parse_args(options))))
    report = ImportReport("")
    for item in source.items:
        assert isinstance(item, (Item, Skipped, LeftOut))
        count_left_out(report, item)
        if isinstance(item, Item):
            if kind is FROM_MANIFEST:
                assert np.isfinite(np.array(item.labels, np.float64)).all()
                continue
            label = np.array(item.labels, np.float32)
            assert label[0] == 2 and label[1] == 5
            objects = label[2:].reshape(-1, 5)
            assert len(objects) and ((objects[:, 1:] >= 0) & (objects[:, 1:] <= 1)).all()
            assert objects[0, 0] == -1 or (objects[:, 3:] > objects[:, 1:3]).all()
    source.notes()


COCO = Target("coco", lambda data: check(FROM_COCO, ".json", data), change_json_text)
VOC = Target(
    "voc",
    lambda data: check(FROM_VOC, ".xml", data),
    words=(b"<object>", b"</object>", b"<!DOCTYPE a>", b"&amp;", b"<bndbox/>", b"nan", b"1e999"),
)
YOLO = Target(
    "yolo", lambda data: check(FROM_YOLO, ".txt", data), words=(b"nan", b"-", b"1e999", b"\n")
)
MANIFEST = Target(
    "manifest",
    lambda data: check(FROM_MANIFEST, ".manifest", data),
    change_json_text,
    words=(b'"class-map"', b'"annotations"', b"[", b"\n", b"1e999"),
)
