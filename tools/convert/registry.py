"""All formats; a new one is a module like its neighbours and a line here."""

from __future__ import annotations

from .coco import FROM_COCO
from .containers import FROM_FOLDER, FROM_TFRECORD, FROM_WEBDATASET
from .csv import FROM_CSV, TO_CSV
from .faces import FROM_FACES
from .folders import TO_FOLDERS
from .format import Export, Import
from .labels import TO_LABELS
from .libsvm import FROM_LIBSVM, TO_LIBSVM
from .manifest import FROM_MANIFEST
from .mnist import FROM_MNIST, TO_MNIST
from .numpy_files import FROM_NUMPY, TO_NPY
from .tfrecord import TO_TFRECORD
from .verification import FROM_BIN
from .voc import FROM_VOC
from .webdataset import TO_WEBDATASET
from .yolo import FROM_YOLO

#: ``recordio from-NAME``.
IMPORTS: dict[str, Import] = {
    source.name: source
    for source in (
        FROM_CSV,
        FROM_MNIST,
        FROM_LIBSVM,
        FROM_NUMPY,
        FROM_FOLDER,
        FROM_BIN,
        FROM_COCO,
        FROM_FACES,
        FROM_VOC,
        FROM_YOLO,
        FROM_MANIFEST,
        FROM_WEBDATASET,
        FROM_TFRECORD,
    )
}
#: ``recordio export --to NAME``; the first is the default.
EXPORTS: dict[str, Export] = {
    target.name: target
    for target in (
        TO_FOLDERS,
        TO_LABELS,
        TO_CSV,
        TO_NPY,
        TO_MNIST,
        TO_LIBSVM,
        TO_WEBDATASET,
        TO_TFRECORD,
    )
}
