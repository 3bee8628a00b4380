"""`ImageClassSet`: a folder of images, one subfolder for every class, read when they are needed.

It keeps paths and classes, never pixels.  Many images are better packed into a record file, which
`iterators.ImageRecordIter` reads; this is for folders as they are.
"""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from recordio.bytes.regular_files import open_regular
from recordio.containers.folder import find_images
from recordio.errors import ImageDecodeError, ImageFileError
from recordio.formats.image_header import complete_limits, open_within_limits
from recordio.formats.table import IMAGE_SUFFIXES
from recordio.keywords.checks import integer, integers
from recordio.notes import Notes

from . import batch_rows as rows
from .array_views import ImageView
from .sets import Batch, MadeSet

EXTENSIONS = tuple(sorted(IMAGE_SUFFIXES))
MODES = {1: "L", 3: "RGB", 4: "RGBA"}

SampleFunction = Callable[[np.ndarray, np.random.Generator], np.ndarray]


class ImageClassSet(MadeSet):
    """Images in a folder with one subfolder for every class.

    Parameters
    ----------
    data_path : str, os.PathLike or sequence of them
        Folders whose subfolders are classes; subfolders of the same name are one class.
    load_size : tuple of int
        (channels, height, width): every image is scaled, in its proportions, so that it just covers
        height and width.  Channels are 1 (grey), 3 (RGB) or 4 (RGBA).
    sample_size : tuple of int, optional
        (channels, height, width) of what is cut out of it; by default `load_size`.
    which_set : str
        "train", "valid" or "test".
    sample_func : {"centre", "random"} or callable, optional
        Cut out the centre; or a random position, mirrored half of the time; or call
        ``sample_func(image, generator)`` with a uint8 array (height, width, channels).  By default
        "random" for a train set and "centre" for others.
    n_thread : int
        Threads that read images; 0 to read them in the calling thread, without requests in advance.
    random_seed : int
        Determines random choices, together with the number of the request.
    extensions : sequence of str
        Endings of image files, in any case; other files are ignored.  By default those of all
        formats that are decoded here.
    **limits : int or None
        Images that exceed `max_pixels`, `max_scans` or `max_scan_pixels`, which mean what they mean
        for `recordio.unpack_img`, are refused before they are decoded; None for no limit.

    Attributes
    ----------
    classes : list of str
        Names of the subfolders, sorted.
    paths : list of str
        The images, sorted by class and name.
    labels : numpy.ndarray of int64
        The class of each.

    Raises
    ------
    ValueError
        If there are no images, and for sizes that do not fit each other.
    ImageDecodeError
        When a batch is made, for a file that cannot be read, with its path.

    Notes
    -----
    Inputs are an `ImageView` with the base ``bhwc``, uint8; targets a `ClassView` with the base
    ``b``.  ``*_async_put`` request batches that threads make in advance, `async_get` returns them
    in the order of the requests.

    Examples
    --------
    >>> import os, tempfile
    >>> from PIL import Image
    >>> folder = tempfile.TemporaryDirectory()
    >>> for i, name in enumerate(("cat", "cat", "dog")):
    ...     os.makedirs(os.path.join(folder.name, name), exist_ok=True)
    ...     Image.new("RGB", (20, 10), (i, i, i)).save(
    ...         os.path.join(folder.name, name, f"{i}.png"))
    >>> images = ImageClassSet(folder.name, load_size=(3, 8, 8), which_set="valid", n_thread=2)
    >>> batch = images.batch(3)
    >>> batch.inputs.forward_get("bchw").shape, batch.targets.forward_get("b").tolist()
    ((3, 3, 8, 8), [0, 0, 1])
    >>> images.sub_async_put(0, 2); images.sample_async_put(4)
    >>> len(images.async_get()), len(images.async_get())
    (2, 4)
    >>> images.close(); folder.cleanup()
    """

    def __init__(
        self,
        data_path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        load_size: tuple[int, int, int],
        sample_size: tuple[int, int, int] | None = None,
        which_set: str = "train",
        sample_func: str | SampleFunction | None = None,
        n_thread: int = 0,
        random_seed: int = 777,
        extensions: Sequence[str] = EXTENSIONS,
        **limits: int | None,
    ) -> None:
        self.load_size: tuple[int, ...] = integers("load_size", load_size, length=3, low=1)
        self.sample_size: tuple[int, ...] = integers(
            "sample_size", sample_size or load_size, length=3, low=1
        )
        channels, *sides = self.load_size
        if channels not in MODES:
            raise ValueError(f"load_size={load_size}: expected 1, 3 or 4 channels")
        fits = all(small <= large for small, large in zip(self.sample_size[1:], sides, strict=True))
        if self.sample_size[0] != channels or not fits:
            raise ValueError(f"sample_size={sample_size} does not fit into load_size={load_size}")
        default = "random" if which_set == "train" else "centre"
        self._cut = _sample_function(sample_func or default, self.sample_size[1:])
        folders = [data_path] if isinstance(data_path, (str, os.PathLike)) else list(data_path)
        notes = Notes()
        images = sorted(_images(folders, tuple(ending.lower() for ending in extensions), notes))
        notes.say(", ".join(map(str, folders)), stacklevel=2)
        if not images:
            raise ValueError(f"no images in subfolders of {', '.join(map(str, folders))}")
        classes = sorted({name for name, _ in images})
        self.paths: list[str] = [path for _, path in images]
        self.labels: np.ndarray = np.array([classes.index(name) for name, _ in images], np.int64)
        self.random_seed: int = integer("random_seed", random_seed)
        self.n_thread: int = integer("n_thread", n_thread, low=0)
        self._limits = complete_limits(limits)
        self._requests = 0
        self._waiting: deque[tuple[np.ndarray, list[Future[np.ndarray]]]] = deque()
        self._threads: ThreadPoolExecutor | None = None
        if self.n_thread:
            self._threads = ThreadPoolExecutor(self.n_thread, "image-class-set")
            self._process = os.getpid()
            self._finalizer = weakref.finalize(self, _stop, self._threads, self._process)
        super().__init__(which_set, len(images), classes)

    @property
    def io_shapes(self) -> tuple[str, str]:
        """Orders of axes of inputs and targets."""
        return "bhwc", "b"

    def sampling_weights(self) -> np.ndarray:
        """Return weights that draw all classes equally often, and so the images of a class."""
        return 1 / np.bincount(self.labels)[self.labels]

    # -- images ---------------------------------------------------------------------------------

    def _make(self, batch: Batch, numbers: np.ndarray) -> None:
        self._assemble(batch, numbers, self._read(numbers))

    def _read(self, numbers: np.ndarray) -> Iterable[np.ndarray]:
        """Yield the images of these rows, one after another."""
        tasks = self._tasks(numbers)
        if self._threads is None:
            return (_image(*task) for task in tasks)
        futures = self._submit(tasks)
        return (future.result() for future in futures)

    def _tasks(self, numbers: np.ndarray) -> list[tuple[Any, ...]]:
        """Yield the arguments of `_image`, with a seed for every image of every request."""
        self._requests += 1
        seed = self.random_seed & (1 << 64) - 1, self._requests
        return [
            (
                self.paths[number],
                self._limits,
                self.load_size,
                self.sample_size,
                self._cut,
                (*seed, position),
            )
            for position, number in enumerate(numbers)
        ]

    def _submit(self, tasks: list[tuple[Any, ...]]) -> list[Future[np.ndarray]]:
        if self._threads is None:
            raise TypeError("requests in advance need threads: make the set with n_thread=")
        if os.getpid() != self._process:
            raise RuntimeError(
                "an ImageClassSet with threads works only in the process that made it: make one "
                "after the fork"
            )
        return [self._threads.submit(_image, *task) for task in tasks]

    def _assemble(self, batch: Batch, numbers: np.ndarray, images: Iterable[np.ndarray]) -> None:
        channels, height, width = self.sample_size
        pixels = np.empty((len(numbers), height, width, channels), np.uint8)
        for position, image in enumerate(images):
            pixels[position] = image
        if type(batch.inputs) is not ImageView:
            batch.inputs = ImageView()
        batch.inputs.forward_put("bhwc", pixels)  # type: ignore[union-attr]
        batch.targets = self._put_classes(batch.targets, "b", self.labels[numbers])

    # -- requests in advance --------------------------------------------------------------------

    def sub_async_put(self, start: int, stop: int) -> None:
        """Request rows ``[start, stop)``."""
        self.index_async_put(np.arange(*rows.row_range(start, stop, self.n_sample)))

    def index_async_put(self, ids: Any) -> None:
        """Request these rows."""
        numbers = rows.row_numbers(ids, self.n_sample)
        self._waiting.append((numbers, self._submit(self._tasks(numbers))))

    def sample_async_put(self, n: int, rng: Any = None) -> None:
        """Request `n` random rows; see `sample`."""
        self.index_async_put(self._random_rows(n, rng))

    def async_get(self, out: Batch | None = None) -> Batch:
        """Return the batch of the oldest request that is still open.

        Raises
        ------
        RuntimeError
            If there is none.
        """
        if not self._waiting:
            raise RuntimeError("nothing was requested: call one of the *_async_put first")
        numbers, futures = self._waiting.popleft()
        batch = Batch(self.which_set) if out is None else out
        self._assemble(batch, numbers, (future.result() for future in futures))
        batch.which_set = self.which_set
        return batch.setup(indices=numbers, n_sample=len(numbers), epoch_size=self.n_sample)

    def synchronize(self) -> None:
        """Forget all requests, and wait for the images that are being read."""
        while self._waiting:
            for future in self._waiting.popleft()[1]:
                if not future.cancel():
                    future.exception()

    def close(self) -> None:
        """Stop the threads.  Idempotent."""
        if self._threads is not None:
            self._waiting.clear()
            self._finalizer()


def _stop(threads: ThreadPoolExecutor, process: int) -> None:
    if os.getpid() == process:
        threads.shutdown(wait=False, cancel_futures=True)


def _images(
    folders: Iterable[Any], endings: tuple[str, ...], notes: Notes
) -> Iterable[tuple[str, str]]:
    """Yield class and path of every image.

    The first folder is the class of all that is below it, as in dp; im2rec takes each as one.
    """
    for folder in folders:
        if not os.path.isdir(folder):
            raise ValueError(f"{os.fspath(folder)} is not a folder")
        root = os.fspath(folder)

        def pass_over(path: str, reason: str, error: OSError | None, root: str = root) -> None:
            if error is not None:
                raise ImageFileError(reason, path=os.path.join(root, path))
            notes.add(f"files or links were left out: {reason}", path)

        scan = find_images(root, pass_over, endings)
        if IMAGE_SUFFIXES.issuperset(endings) and len(endings) == len(IMAGE_SUFFIXES):
            scan.note_others()
        notes.update(scan.notes)
        for name in scan.images:
            if "/" in name:
                yield name.partition("/")[0], os.path.join(root, name)


def _image(
    path: str,
    limits: dict[str, int],
    load_size: tuple[int, ...],
    sample_size: tuple[int, ...],
    cut: SampleFunction,
    seed: tuple[int, ...],
) -> np.ndarray:
    """Return one image, scaled and cut out: uint8, (height, width, channels)."""
    from PIL import Image, ImageOps

    channels, height, width = load_size
    try:
        with (
            open_regular(path) as stored,
            open_within_limits(stored.read(), limits) as file,
        ):
            longest = max(height, width)
            file.draft(MODES[channels], (longest, longest))  # a JPEG file is decoded smaller
            image = ImageOps.exif_transpose(file).convert(MODES[channels])
    except ImageDecodeError as error:
        raise ImageDecodeError(error.reason, path=path) from error
    except Exception as error:  # the plugins of Pillow raise what they like on damaged files
        raise ImageDecodeError(f"the image cannot be read ({error})", path=path) from error
    factor = max(width / image.width, height / image.height)
    size = max(width, round(image.width * factor)), max(height, round(image.height * factor))
    if size != image.size:
        image = image.resize(size, Image.Resampling.BILINEAR)
    pixels = np.asarray(image)
    result = np.asarray(
        cut(pixels if pixels.ndim == 3 else pixels[:, :, None], np.random.default_rng(seed))
    )
    shape = (*sample_size[1:], channels)
    if result.shape != shape or result.dtype != np.uint8:
        raise ValueError(
            f"sample_func made {result.dtype} of shape {result.shape}: expected uint8 of {shape}"
        )
    return result


def _sample_function(choice: Any, sides: Sequence[int]) -> SampleFunction:
    height, width = sides

    def centre(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
        return image[top : top + height, left : left + width]

    def random(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        top = rng.integers(image.shape[0] - height + 1)
        left = rng.integers(image.shape[1] - width + 1)
        piece = image[top : top + height, left : left + width]
        return piece[:, ::-1] if rng.integers(2) else piece

    if callable(choice):
        return choice
    functions = {"centre": centre, "random": random}
    if choice not in functions:
        raise ValueError(f"sample_func={choice!r}: expected 'centre', 'random' or a function")
    return functions[choice]
