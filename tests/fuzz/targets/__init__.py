"""All targets by name; another parser is one more line here, and a folder of its own in corpus/."""

import sys
from pathlib import Path

# Where helpers of tests are found, and the modules of `faces`, before the targets ask for them;
# and the packages, which the folders of their tests would hide.
sys.path += map(str, (Path(__file__).parents[3], Path(__file__).parents[2]))

from .annotations import COCO, MANIFEST, VOC, YOLO
from .archives import CIFAR, TFRECORD, WEBDATASET
from .caches import CACHE
from .checksums import CHECKSUMS
from .containers import CONTAINER_INDEX, DALI_INDEX, TAR_FILES
from .decoding import DECODE_IMAGE
from .detection import DETECTION
from .expressions import EXPRESSIONS
from .fields import FIELDS
from .images import (
    CHANNEL_SUMS,
    IMAGE,
    IMAGE_HEADER,
    JPEG,
    JPEG_RESIZE,
    JPEG_REWRITE,
    PICTURE_HASH,
    PNM,
    READ_IMAGE,
    RENDER,
)
from .inflate import INFLATE
from .journals import JOURNALS
from .mirrors import MIRRORS
from .pages import PAGES_OF_PACKS
from .png import PNG
from .protobuf import PROTOBUF
from .recipes import RECIPES
from .records import FRAMES, HEADERS, INDEX, LISTS, NPY
from .shards import SHARDS
from .states import STATES
from .target import CORPUS, Target
from .text import CSV, IDX_ARRAY, LIBSVM, MEAN_IMAGE
from .webp import WEBP

__all__ = ["CORPUS", "TARGETS", "Target"]

TARGETS = {
    target.name: target
    for target in (
        FRAMES,
        INDEX,
        HEADERS,
        NPY,
        LISTS,
        JPEG,
        JPEG_REWRITE,
        JPEG_RESIZE,
        PNG,
        INFLATE,
        WEBP,
        PNM,
        IMAGE,
        DECODE_IMAGE,
        IMAGE_HEADER,
        CHANNEL_SUMS,
        PICTURE_HASH,
        READ_IMAGE,
        RENDER,
        RECIPES,
        DETECTION,
        FIELDS,
        CSV,
        LIBSVM,
        PROTOBUF,
        IDX_ARRAY,
        MEAN_IMAGE,
        CACHE,
        TFRECORD,
        WEBDATASET,
        CIFAR,
        COCO,
        VOC,
        YOLO,
        MANIFEST,
        STATES,
        SHARDS,
        EXPRESSIONS,
        CHECKSUMS,
        JOURNALS,
        PAGES_OF_PACKS,
        MIRRORS,
        TAR_FILES,
        DALI_INDEX,
        CONTAINER_INDEX,
    )
}
