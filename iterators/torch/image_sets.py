"""Data sets of images as `ImageLoader` takes them: opened as providers where they are known.

Classes and functions of torchvision are recognised by name and module, so that it need not be
installed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import length_hint
from typing import Any

import numpy as np
import torch.utils.data

from recordio.bytes.files import StoredFile
from recordio.bytes.remote.objects import redacted_url
from recordio.containers.arrow import columns_and_rows
from recordio.containers.table import is_contained
from recordio.errors import RecordIOError
from recordio.list_files import EXACT_IN_FLOAT32
from recordio.packs.open_pack import OpenPack

from ..core.dtypes import dtype_name
from ..datasets.records import ImageRecordDataset
from ..images.augment.named_recipes import NamedRecipe
from ..images.augment.pipelines.parts import PipelineError, flat
from ..images.augment.pipelines.torchvision import CONTAINERS
from ..images.sources.mixed_packs import Pack, as_packs
from ..providers.array_rows import as_array
from ..providers.image_provider import RecordImageProvider
from ..providers.image_record import ImageRecordIter, ImageSourceIter
from ..providers.image_sources import (
    ImageArraySource,
    ImageFileSource,
    SampleFileSource,
    listed_images,
)
from .loader_epochs import table

#: Classes of torchvision whose samples are understood, by what they have.
FOLDERS = ("DatasetFolder",)
ARRAYS = ("CIFAR10", "MNIST")
#: Methods that say how many samples a data set has, and which.
METHODS = ("__getitem__", "__getitems__", "get_example", "__len__")
#: Functions of torchvision that open an image file as RGB.
LOADERS = ("default_loader", "pil_loader", "accimage_loader")

#: Keywords that say of what shape the images of a batch are.
SHAPES = ("data_shape", "buckets", "patches")

Open = Callable[[Mapping[str, Any]], RecordImageProvider]


@dataclass(frozen=True)
class ImageSet:
    """A data set that was recognised, or why it was not."""

    #: What messages call it.
    name: str
    #: Makes the provider of all its images from keywords; None where only the data set itself can.
    open: Open | None = None
    #: Why only the data set itself can.
    reason: str = ""
    #: Keywords that follow from the images.
    keywords: Mapping[str, Any] = field(default_factory=dict)
    #: What is done to an image: the data set's own.
    transform: Any = None
    #: Channels, height and width of all images, as the transform gets them, where they are known.
    shape: tuple[int, int | None, int | None] = (3, None, None)
    #: Its samples among all images; None for all.
    indices: np.ndarray | None = None
    class_to_idx: Mapping[str, int] | None = None
    classes: Sequence[str] | None = None


def recipe_of(transform: Any, shape: tuple[int, int | None, int | None]) -> tuple[NamedRecipe, str]:
    """Return a recipe as it is, or transforms as one for such images, and why it ends in Python.

    The reason is "" if nothing does.  Transforms of which not even the beginning can be translated
    are a TypeError or a ValueError.
    """
    if isinstance(transform, (NamedRecipe, dict, str)):
        return NamedRecipe.of(transform), ""
    processor = getattr(transform, "image_processor", transform)
    if hasattr(processor, "to_dict") and "ImageProcessor" in type(processor).__name__:
        return NamedRecipe.from_processor(processor), ""
    of_timm = any(part.library == "timm" for part in flat(transform, CONTAINERS))
    translate = NamedRecipe.from_timm if of_timm else NamedRecipe.from_torchvision
    try:
        return translate(transform, images=shape), ""
    except PipelineError as error:
        recipe = translate(transform, "tail", images=shape)
        what, _, _ = error.reason.partition(":")
        return recipe, f"{error.transform} {what}"


def translated(
    images: ImageSet, transform: Any, keywords: dict[str, Any]
) -> tuple[NamedRecipe | None, ImageSet, str]:
    """Return the recipe of the images, the data set, and why the recipe ends in Python.

    Where there can be no recipe, the data set is one that makes its own images.
    """
    pipeline = transform
    if pipeline is None:
        pipeline = keywords.pop("recipe", None)
    elif "recipe" in keywords:
        raise ValueError("transform and recipe mean the same: give one of them")
    if pipeline is not None:
        if images.open is None:
            recipe = _of_processor(pipeline)
            if recipe is not None:
                return recipe, images, ""
            raise ValueError(
                f"transform: the samples of {images.name} are made by its own __getitem__, because "
                f"{images.reason}: give it the transform"
            )
        recipe, reason = recipe_of(pipeline, images.shape)
        if not _is_shaped(images, recipe, keywords):
            raise ValueError(f"transform {UNSHAPED}")
        return recipe, replace(images, transform=None), reason
    if images.open is None:
        return None, images, ""
    if images.transform is None:
        given = {*keywords, *images.keywords}
        if images.shape[1] is None and given.isdisjoint((*SHAPES, "recipe")):
            raise TypeError(
                "ImageLoader() needs data_shape=(channels, height, width) or a transform for "
                f"{images.name}, whose images become tensors, also for collate_fn; with "
                "data_shape=None they keep their sizes"
            )
        return None, images, ""
    try:
        recipe, reason = recipe_of(images.transform, images.shape)
    except (TypeError, ValueError) as error:
        return None, in_python(images, f"its transform has no counterpart: {error}"), ""
    if not _is_shaped(images, recipe, keywords):
        return None, in_python(images, f"its transform {UNSHAPED}"), ""
    return recipe, images, reason


def _of_processor(transform: Any) -> NamedRecipe | None:
    """Return the recipe of a vision-language model's processor, which takes samples of any kind."""
    processor = getattr(transform, "image_processor", transform)
    if isinstance(processor, (NamedRecipe, dict, str)) or hasattr(processor, "to_dict"):
        recipe, _ = recipe_of(transform, (3, None, None))
        return recipe if recipe.rule is not None else None
    return None


#: What is wrong with a transform after which nobody knows how large images are.
UNSHAPED = (
    "leaves images sizes of their own: add Resize to (height, width) or CenterCrop, or give "
    "data_shape=(channels, height, width)"
)


def _is_shaped(images: ImageSet, recipe: NamedRecipe, keywords: Mapping[str, Any]) -> bool:
    """Return whether the data, or somebody, say of what shape images are."""
    return (
        images.shape[1] is not None
        or recipe.rule is not None
        or any(name in settings for settings in (recipe.keywords, keywords) for name in SHAPES)
    )


def in_python(images: ImageSet, reason: str) -> ImageSet:
    """Return a data set that makes its own images."""
    return ImageSet(
        images.name, reason=reason, class_to_idx=images.class_to_idx, classes=images.classes
    )


def image_set(dataset: Any, keywords: Mapping[str, Any]) -> ImageSet:
    """Recognise a data set, whose provider is asked for such `keywords`."""
    if isinstance(dataset, torch.utils.data.Subset):
        return _subset(dataset, keywords)
    if isinstance(dataset, OpenPack):
        index = "" if dataset.index is None else dataset.index.name
        return _packs(Pack(dataset.file.name, path_imgidx=index))
    if isinstance(dataset, (str, os.PathLike, Pack)) or as_packs(dataset):
        return _packs(dataset)
    if isinstance(dataset, (list, tuple)):
        return _packs(dataset) if _are_packs(dataset) else _files(dataset, keywords)
    if all(hasattr(dataset, name) for name in ("cache_files", "features", "_indices")):
        return _of_hub(dataset)
    if isinstance(dataset, torch.utils.data.IterableDataset) or not (
        hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
    ):
        raise TypeError(
            f"dataset={_shown(dataset)}: expected images at indices - a data set of torchvision, a "
            "list of files, a pack or a URL; give other iterables to torch's DataLoader"
        )
    return _of_class(dataset, keywords)


def _shown(dataset: Any) -> str:
    return f"<{type(dataset).__name__}>"


# -- packs and files --------------------------------------------------------------------------


def _are_packs(items: Sequence[Any]) -> bool:
    """Return whether a list names record files or containers; the first one tells of the latter."""
    if not items or not all(isinstance(item, (str, os.PathLike)) for item in items):
        return False
    names = [os.fspath(item) for item in items]
    return all(name.endswith(".rec") for name in names) or is_contained(names[0])


def _packs(packs: Any) -> ImageSet:
    name = redacted_url(os.fspath(packs)) if isinstance(packs, (str, os.PathLike)) else repr(packs)
    for pack in as_packs(packs) or ():
        for rule in ("share", "repeat", "weights"):
            if getattr(pack, rule) is not None:
                raise ValueError(
                    f"{rule} of {pack!r} makes an order of its own: drop it, or use "
                    "RecordBatches(ImageRecordIter, ...)"
                )
    return ImageSet(name, lambda keywords: ImageRecordIter(path_imgrec=packs, **keywords))


def _of_hub(dataset: Any) -> ImageSet:
    """Recognise a data set of the hub's library by its Arrow files, which are read in place.

    Rows that were selected or shuffled are those of the table that it keeps of them.
    """
    # A table may be several, side by side or one below the other, and each a part of its file.
    parts = [part for row in getattr(dataset.data, "blocks", [[dataset.data]]) for part in row]
    files = [getattr(part, "path", None) for part in parts]
    advice = "give save_to_disk() a folder, and the loader that folder"
    if not any(files):
        raise ValueError(f"dataset={_shown(dataset)}: it lies in memory only: {advice}")
    names = list(dataset.column_names)
    for part, file in zip(parts, files, strict=True):
        if file is None or columns_and_rows(StoredFile(file)) != (names, part.num_rows):
            raise ValueError(
                f"dataset={_shown(dataset)}: its rows or columns are not those of its files, since "
                f"some were taken away, renamed or joined: {advice}"
            )
    images = _packs(files[0] if len(files) == 1 else files)
    if dataset._indices is None:
        return images
    rows = table("the selected rows", dataset._indices.column(0).to_numpy())
    return replace(images, indices=rows)


def _files(items: Sequence[Any], given: Mapping[str, Any]) -> ImageSet:
    if not items:
        raise ValueError("dataset is an empty list: it names no image")
    keywords: dict[str, Any] = {}
    width = given.get("label_width") or 1
    if all(isinstance(item, (str, os.PathLike)) for item in items):
        keywords["label_name"] = None
        pairs = [(0, item) for item in items]
    else:
        pairs = [_pair(item) for item in items]
        if any(isinstance(files, (list, tuple)) for _, files in pairs):
            return ImageSet("a list of files", _opening_lists("a list of files", pairs, width))
    return ImageSet("a list of files", _opening("a list of files", pairs, width), keywords=keywords)


def _pair(item: Any) -> tuple[Any, Any]:
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        raise TypeError(
            f"dataset has {item!r}: expected (file, label) or (files, label) everywhere, or files"
        )
    file, label = item
    return label, file


def _opening(name: str, pairs: Sequence[tuple[Any, Any]], width: int, root: str = "") -> Open:
    """Return what makes a provider of (label, file) pairs."""
    source = ImageFileSource(name, listed_images(pairs, width), root)
    return lambda keywords: ImageSourceIter(source, **keywords)


def _opening_lists(name: str, pairs: Sequence[tuple[Any, Any]], width: int) -> Open:
    """Return what makes a provider of (label, files) pairs, each of any number of files."""
    lists = [files if isinstance(files, (list, tuple)) else [files] for _, files in pairs]
    for number, files in enumerate(lists):
        for file in files:
            if not isinstance(file, (str, os.PathLike)):
                raise TypeError(f"dataset has {file!r:.60} in its item {number}: expected a file")
    _, _, labels = listed_images([(label, "") for label, _ in pairs], width)
    source = SampleFileSource(name, [list(map(os.fspath, files)) for files in lists], labels)
    return lambda keywords: ImageSourceIter(source, **keywords)


# -- objects ----------------------------------------------------------------------------------


def _of_torchvision(one: Any, names: Sequence[str]) -> bool:
    """Return whether a class or function is one of torchvision's with such a name."""
    if getattr(one, "__name__", "") not in names or hasattr(one, "__wrapped__"):
        return False  # `functools.wraps` gives a function of a user both names
    return str(one.__module__).partition(".")[0] == "torchvision"


def _check_methods(dataset: Any, known: type) -> None:
    """Leave an object to Python if its class changes which samples the known class has."""
    for name in METHODS:
        if getattr(type(dataset), name, None) is not getattr(known, name, None):
            raise _NotKnownError(f"{type(dataset).__name__} has a {name} of its own")


def _subset(dataset: torch.utils.data.Subset, keywords: Mapping[str, Any]) -> ImageSet:
    """Recognise what a subset is of."""
    try:
        _check_methods(dataset, torch.utils.data.Subset)
    except _NotKnownError as error:
        return _python(dataset, str(error))
    whole = image_set(dataset.dataset, keywords)
    indices = table("the subset", dataset.indices)
    if whole.open is None:  # it takes the samples itself, and knows best how
        return replace(whole, name=f"a subset of {whole.name}")
    if whole.indices is not None:
        indices = whole.indices[indices]
    return replace(whole, indices=indices)


def _of_class(dataset: Any, keywords: Mapping[str, Any]) -> ImageSet:
    """Recognise an object by the class that says which samples it has."""
    try:
        for kind in type(dataset).__mro__:
            if kind is ImageRecordDataset:
                _check_methods(dataset, kind)
                return _records(dataset)
            if _of_torchvision(kind, (*FOLDERS, *ARRAYS)):
                _check_methods(dataset, kind)
                made = _folder if kind.__name__ in FOLDERS else _arrays
                return _described(dataset, made(dataset, keywords))
    except _NotKnownError as error:
        return _python(dataset, str(error))
    return _python(dataset, f"{type(dataset).__name__} has a __getitem__ that is not known")


class _NotKnownError(Exception):
    """Raised with the reason why a data set is left to Python."""


def _python(dataset: Any, reason: str) -> ImageSet:
    """Return a data set whose samples only itself can make."""
    return _named(dataset, ImageSet(type(dataset).__name__, reason=reason))


def _named(dataset: Any, images: ImageSet) -> ImageSet:
    """Add the names of the classes."""
    class_to_idx = getattr(dataset, "class_to_idx", None)
    return replace(images, class_to_idx=class_to_idx, classes=getattr(dataset, "classes", None))


def _described(dataset: Any, images: ImageSet) -> ImageSet:
    """Add transform and classes; a target_transform is Python's to call."""
    if getattr(dataset, "target_transform", None) is not None:
        raise _NotKnownError("target_transform is a function of Python: apply it to the labels")
    return _named(dataset, replace(images, transform=getattr(dataset, "transform", None)))


def _labels(labels: Any, keywords: Mapping[str, Any], width: int = 1) -> np.ndarray:
    """Return the labels of a data set; those that a provider gives in another form are Python's."""
    kinds = "biuf" if "label_dtype" in keywords else "iu"
    with contextlib.suppress(TypeError, ValueError):  # no numbers, or not as many everywhere
        array = as_array("labels", labels)
        fits = array.dtype.kind in kinds and array.shape[1:] == (() if width == 1 else (width,))
        if fits and (array.dtype.kind == "f" or abs(array).max(initial=0) <= EXACT_IN_FLOAT32):
            return array
    what = "a whole number" if width == 1 else f"{width} whole numbers"
    raise _NotKnownError(f"its labels are not {what} up to {EXACT_IN_FLOAT32} for each image")


def _folder(dataset: Any, keywords: Mapping[str, Any]) -> ImageSet:
    """Recognise torchvision's DatasetFolder, ImageFolder and ImageNet."""
    loader = getattr(dataset, "loader", None)
    if not _of_torchvision(loader, LOADERS):
        raise _NotKnownError(f"loader={loader!r} is a function of Python: use the default one")
    samples = getattr(dataset, "samples", None) or getattr(dataset, "imgs", None)
    if not samples:
        raise _NotKnownError("it has neither samples nor imgs")
    width = keywords.get("label_width") or 1
    _labels([label for _, label in samples], keywords, width)
    # Relative to the root, so that a state can be loaded where the folder lies elsewhere.
    root = os.path.join(os.fspath(getattr(dataset, "root", "") or ""), "")
    below = root and all(path.startswith(root) for path, _ in samples)
    pairs = [(label, path[len(root) :] if below else path) for path, label in samples]
    name = f"{type(dataset).__name__}({root!r})"
    return ImageSet(name, _opening(name, pairs, width, root if below else ""))


def _records(dataset: ImageRecordDataset) -> ImageSet:
    """Recognise an `ImageRecordDataset`, whose images `ImageRecordIter` makes as well."""
    arguments = dict(dataset.arguments)
    if not {"data_shape", "recipe"} & arguments.keys():
        raise _NotKnownError("its images keep their sizes: give it a data_shape")
    for name in ("transform", "fields"):
        if arguments.pop(name, None):
            raise _NotKnownError(f"{name} of examples are Python's to make")
    width = 1
    with contextlib.suppress(RecordIOError):  # the loop tells of it
        label = dataset[0][-1]
        if np.ndim(label) and "multi_hot" not in arguments:
            width = len(label)
            if width == 1:
                raise _NotKnownError("its labels are vectors of one number")
    keywords: dict[str, Any] = {"label_width": width, "label_dtype": "float32", "seed": 0}
    path, index = arguments.pop("path"), arguments.pop("index", "")
    for theirs, mine in (("threads", "preprocess_threads"), ("layout", "layout")):
        value = arguments.pop(theirs, None)
        if value is not None:
            keywords[mine] = value if theirs == "threads" else f"N{value}"
    arguments.pop("channels", None)  # those of data_shape
    keywords |= {name: value for name, value in arguments.items() if value is not None}
    if "dtype" in keywords:
        keywords["dtype"] = dtype_name(keywords["dtype"])
    keywords["label_dtype"] = np.dtype(keywords["label_dtype"]).name

    def opened(keywords: Mapping[str, Any]) -> RecordImageProvider:
        return ImageRecordIter(
            path_imgrec=path, **({"path_imgidx": index} if index else {}), **keywords
        )

    return ImageSet(
        f"{type(dataset).__name__}({redacted_url(str(path))!r})", opened, keywords=keywords
    )


def _arrays(dataset: Any, keywords: Mapping[str, Any]) -> ImageSet:
    """Recognise torchvision's CIFAR and MNIST: uint8 (n, height, width) or (..., 3)."""
    data, targets = getattr(dataset, "data", None), getattr(dataset, "targets", None)
    if data is None or targets is None:
        raise _NotKnownError("it has no data and targets")
    images = as_array("data", data)
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or images.shape[3:] not in ((), (3,)):
        raise _NotKnownError(f"data are {images.dtype} of {images.shape}, not images of uint8")
    name = type(dataset).__name__
    source = ImageArraySource(name, images, _labels(targets, keywords))
    shape = 3 if images.ndim == 4 else 1, *images.shape[1:3]

    def opened(keywords: Mapping[str, Any]) -> RecordImageProvider:
        named = keywords.get("recipe")
        said = [settings for settings in (keywords, named.keywords if named else {}) if settings]
        arguments = dict(keywords)
        if "data_shape" in arguments and arguments["data_shape"] is None:
            arguments["data_shape"] = shape[0], None, None
        elif not any("data_shape" in one for one in said):
            own_shapes = any(one.get(name) is not None for one in said for name in SHAPES)
            arguments["data_shape"] = (shape[0], None, None) if own_shapes else shape
        return ImageSourceIter(source, **arguments)

    return ImageSet(name, opened, shape=shape)


# -- changes ----------------------------------------------------------------------------------

#: Attributes that say of which samples a data set is, and what is done to them.
CONTENT = ("samples", "imgs", "targets", "indices")
FUNCTIONS = ("transform", "target_transform", "loader", "data", "dataset")


def snapshot(dataset: Any) -> list[Any]:
    """Return what the images of a data set follow from, as it is now."""
    state: list[Any] = []
    while True:
        functions = [getattr(dataset, name, None) for name in FUNCTIONS]
        # A pipeline may be changed in place, which those of torchvision show.
        state += [functions, repr(functions[0]), length_hint(dataset, -1)]
        lists = [dataset, *(getattr(dataset, name, None) for name in CONTENT)]
        state += [_copied(one) for one in lists]
        if not isinstance(dataset, torch.utils.data.Subset):
            return state
        dataset = dataset.dataset


def _copied(content: Any) -> Any:
    """Return a list or an array as it is now, and nothing of anything else."""
    if isinstance(content, (list, tuple)):
        return list(content)
    if isinstance(content, torch.Tensor):
        content = content.detach().cpu().numpy()
    return content.copy() if isinstance(content, np.ndarray) else None


def is_unchanged(dataset: Any, seen: list[Any]) -> bool:
    """Return whether a data set is as it was when a snapshot was taken."""
    now = snapshot(dataset)
    return len(now) == len(seen) and all(map(_is_same, now, seen))


def _is_same(one: Any, other: Any) -> bool:
    """Return whether an attribute is as it was; what cannot be compared is if it is the same."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    try:
        return bool(one == other)
    except (ValueError, RuntimeError):  # of arrays in a list
        return False
