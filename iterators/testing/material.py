"""Small packs, folders of pictures and lists to test with, the same in every run.

Pixels are RGB, as in the batches of providers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import recordio
from recordio.extras import need
from recordio.formats.encode import encode_as_opencv
from recordio.frames.writer import RecordWriter

#: Labels as the functions take them: of every record, or a function of its number.
Labels = Iterable[Any] | Callable[[int], Any] | None


def noise(height: int = 24, width: int = 28, seed: Any = 0, channels: int = 3) -> np.ndarray:
    """Make an image in which every value is random.

    Parameters
    ----------
    height, width : int
    seed : int or sequence of int
    channels : int

    Returns
    -------
    numpy.ndarray of uint8, (height, width, channels)

    Examples
    --------
    >>> noise(1, 2).tolist()
    [[[95, 130, 194], [217, 207, 235]]]
    """
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), np.uint8)


def picture(
    height: int = 40, width: int = 50, seed: int = 0, channels: int = 3, noise: int = 20
) -> np.ndarray:
    """Make an image of coloured blobs with noise: detail in every channel, at every scale.

    Parameters
    ----------
    height, width : int
    seed : int
    channels : int
    noise : int
        Largest difference from the smooth image; 0 for one that compresses well.

    Returns
    -------
    numpy.ndarray of uint8, (height, width, channels)

    Examples
    --------
    >>> picture(2, 3).shape
    (2, 3, 3)
    """
    cv2 = need("cv2", "pictures to test with")
    random = np.random.default_rng(seed)
    blobs = random.integers(0, 256, (max(2, height // 5), max(2, width // 5), channels), np.uint8)
    smooth = cv2.resize(blobs, (width, height), interpolation=cv2.INTER_CUBIC).astype(int)
    smooth = np.atleast_3d(smooth)  # OpenCV drops the axis of a single channel
    rough = smooth + random.integers(-noise, noise + 1, smooth.shape)
    return np.clip(rough, 0, 255).astype(np.uint8)


def encode(image: np.ndarray, kind: str = ".png", *options: int) -> bytes:
    r"""Encode an image as OpenCV does.

    Parameters
    ----------
    image : numpy.ndarray, (height, width) or (height, width, 1, 3 or 4)
        Grey, RGB or RGBA.
    kind : str
        Suffix of the format.
    *options : int
        OpenCV's names and values of parameters, in turn; they need OpenCV.

    Returns
    -------
    bytes

    Examples
    --------
    >>> encode(noise())[:4]
    b'\x89PNG'
    """
    if image.ndim == 3 and image.shape[2] == 3:
        image = image[..., ::-1]
    elif image.ndim == 3 and image.shape[2] == 4:
        image = image[..., [2, 1, 0, 3]]
    if not options:
        return encode_as_opencv(image, kind)
    cv2 = need("cv2", "options of OpenCV's encoders")
    return cv2.imencode(kind, image, options)[1].tobytes()


def encode_jpeg(
    image: np.ndarray,
    sampling: str = "420",
    quality: int = 90,
    restart: int = 0,
    optimize: bool = False,
    progressive: bool = False,
) -> bytes:
    r"""Encode an image as JPEG.

    Parameters
    ----------
    image : numpy.ndarray, (height, width) or (height, width, 1 or 3)
        Grey or RGB.
    sampling : {"420", "422", "440", "411", "444"}
        How the colours are sampled.
    quality : int
    restart : int
        MCUs between restart markers; 0 for no markers.
    optimize : bool
        Use Huffman tables made for this image.
    progressive : bool

    Returns
    -------
    bytes

    Examples
    --------
    >>> encode_jpeg(picture(), progressive=True)[:2]
    b'\xff\xd8'
    """
    cv2 = need("cv2", "pictures to test with")
    return encode(
        image, ".jpg",
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR, getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{sampling}"),
        cv2.IMWRITE_JPEG_QUALITY, quality,
        cv2.IMWRITE_JPEG_RST_INTERVAL, restart,
        cv2.IMWRITE_JPEG_OPTIMIZE, int(optimize),
        cv2.IMWRITE_JPEG_PROGRESSIVE, int(progressive),
    )  # fmt: skip


def box_label(*objects: Sequence[float], extra: Sequence[float] = ()) -> list[float]:
    """Make the label of a detection record.

    Parameters
    ----------
    *objects : sequence of float
        ``class, left, top, right, bottom`` of each, in fractions of the image; all as long as the
        first.
    extra : sequence of float
        Values of the header after its two widths.

    Returns
    -------
    list of float

    Examples
    --------
    >>> box_label((0, 0.1, 0.1, 0.5, 0.5))
    [2, 5, 0, 0.1, 0.1, 0.5, 0.5]
    """
    width = len(objects[0]) if objects else 5
    return [2 + len(extra), width, *extra, *(value for row in objects for value in row)]


def write_records(
    path: str | os.PathLike[str],
    records: Iterable[bytes],
    *,
    keys: Iterable[int] | None = None,
    index: bool = True,
    checksums: bool = False,
) -> Path:
    """Write a record file, with its index beside it.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, ``PREFIX.rec``.
    records : iterable of bytes
    keys : iterable of int, optional
        Of every record; 0, 1, 2, ... by default.
    index, checksums : bool
        Whether ``PREFIX.idx`` and ``PREFIX.crc`` are written.

    Returns
    -------
    pathlib.Path
        Of the record file.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_records(f"{folder}/a.rec", [b"one", b"two"])
    ...     sorted(os.listdir(folder))
    ['a.idx', 'a.rec']
    """
    path = Path(path)
    with RecordWriter(
        path, path.with_suffix(".idx") if index else None, checksums=checksums
    ) as writer:
        for record, key in _rows(records, keys=keys):
            writer.write(record, key if index else None)
    return path


def write_pack(
    path: str | os.PathLike[str],
    contents: int | Iterable[bytes | np.ndarray] = 10,
    labels: Labels = None,
    *,
    ids: Iterable[int] | None = None,
    keys: Iterable[int] | None = None,
    kind: str = ".png",
    size: tuple[int, int] = (24, 28),
    index: bool = True,
    checksums: bool = False,
) -> Path:
    """Write a pack of images: records with a label, an id and an encoded image.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, ``PREFIX.rec``.
    contents : int or iterable of (bytes or numpy.ndarray)
        Number of images, which are `noise` with their number as the seed; or the images, encoded or
        as RGB pixels.
    labels : iterable or callable, optional
        A number or several for each record, or a function from its number to them; the number of
        the record by default.
    ids, keys : iterable of int, optional
        For each record; its number by default.
    kind : str
        Suffix of the format of images that are given as pixels or not at all.
    size : tuple of int
        Height and width of the images of noise.
    index, checksums : bool
        Whether ``PREFIX.idx`` and ``PREFIX.crc`` are written.

    Returns
    -------
    pathlib.Path
        Of the record file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_pack(f"{folder}/a.rec", 3, lambda number: number % 2)
    ...     with recordio.RecordReader(path) as reader:
    ...         [recordio.unpack(record)[0].label for record in reader]
    [0.0, 1.0, 0.0]
    """
    columns = _rows(_images(contents, size), labels=labels, ids=ids)
    rows = ((number, label, image) for image, label, number in columns)
    return write_rows(path, rows, keys=keys, kind=kind, index=index, checksums=checksums)


def write_rows(
    path: str | os.PathLike[str],
    rows: Iterable[tuple[int, Any, bytes | np.ndarray]],
    *,
    keys: Iterable[int] | None = None,
    kind: str = ".png",
    index: bool = True,
    checksums: bool = False,
) -> Path:
    """Write a pack of images that are given as rows, in the order of the fields of a list.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, ``PREFIX.rec``.
    rows : iterable of tuple
        Id, label, and content of each record: bytes, or an image as RGB pixels.
    keys, kind, index, checksums
        As for `write_pack`.

    Returns
    -------
    pathlib.Path
        Of the record file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_rows(f"{folder}/a.rec", [(7, 1.0, b"text"), (9, [2, 3], noise())])
    ...     with recordio.RecordReader(path) as reader:
    ...         [recordio.unpack(record)[0].id for record in reader]
    [7, 9]
    """
    records = (
        recordio.pack(recordio.IRHeader(0, label, number, 0), _encoded(content, kind))
        for number, label, content in rows
    )
    return write_records(path, records, keys=keys, index=index, checksums=checksums)


def write_faces(
    path: str | os.PathLike[str],
    counts: Sequence[int] = (3, 1, 4),
    contents: Iterable[bytes | np.ndarray] | None = None,
    *,
    kind: str = ".png",
    size: tuple[int, int] = (24, 28),
    index: bool = True,
) -> Path:
    """Write a face-recognition pack: a record for the whole, the images, and one for each identity.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, ``PREFIX.rec``.
    counts : sequence of int
        Images of each identity.  Images have the keys from 1 on, and the keys as ids.
    contents : iterable of (bytes or numpy.ndarray), optional
        As for `write_pack`; noise by default.
    kind, size, index
        As for `write_pack`.

    Returns
    -------
    pathlib.Path
        Of the record file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with recordio.RecordReader(write_faces(f"{folder}/a.rec", [2, 1])) as reader:
    ...         [recordio.unpack(record)[0].label for record in reader]
    [array([4., 6.], dtype=float32), 0.0, 0.0, 1.0, array([1., 3.], dtype=float32), \
array([3., 4.], dtype=float32)]
    """
    images = sum(counts)
    people = [person for person, number in enumerate(counts) for _ in range(number)]
    ends = [1 + sum(counts[: position + 1]) for position in range(len(counts))]
    labels = [
        [images + 1, images + 1 + len(counts)],
        *people,
        *([end - number, end] for end, number in zip(ends, counts, strict=True)),
    ]
    pixels = _images(images if contents is None else contents, size)
    encoded = [_encoded(image, kind) for image, _ in _rows(pixels, people=people)]
    return write_pack(path, [b"", *encoded, *[b""] * len(counts)], labels, index=index)


def write_images(
    folder: str | os.PathLike[str],
    contents: int | Iterable[bytes | np.ndarray] = 10,
    names: Iterable[str] | None = None,
    *,
    kind: str = ".png",
    size: tuple[int, int] = (24, 28),
) -> list[Path]:
    """Write image files, and the folders that they need.

    Parameters
    ----------
    folder : str or os.PathLike
    contents, kind, size
        As for `write_pack`.
    names : iterable of str, optional
        Such as ``"cat/0.png"``; the number of the image with `kind` by default.

    Returns
    -------
    list of pathlib.Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_images(folder, 2)]
    ['0.png', '1.png']
    """
    paths = []
    for image, name in _rows(_images(contents, size), names=names):
        path = Path(folder) / (f"{name}{kind}" if names is None else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_encoded(image, path.suffix or kind))
        paths.append(path)
    return paths


def write_list(
    path: str | os.PathLike[str],
    names: Iterable[str],
    labels: Labels = None,
    *,
    ids: Iterable[int] | None = None,
) -> Path:
    r"""Write a ``.lst`` file.

    Parameters
    ----------
    path : str or os.PathLike
    names : iterable of str
        Of the image files.
    labels, ids
        As for `write_pack`.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_list(f"{folder}/a.lst", ["a.png", "b.png"], [[1, 2.5], 0]).read_text()
    '0\t1\t2.5\ta.png\n1\t0\tb.png\n'
    """
    path = Path(path)
    lines = [
        "\t".join(map(str, [number, *np.atleast_1d(np.array(label, object)), name])) + "\n"
        for name, label, number in _rows(names, labels=labels, ids=ids)
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def _images(contents: Any, size: tuple[int, int]) -> Iterable[Any]:
    if isinstance(contents, int):
        return (noise(*size, seed=number) for number in range(contents))
    return contents


def _encoded(image: Any, kind: str) -> bytes:
    return encode(image, kind) if isinstance(image, np.ndarray) else image


def _rows(first: Iterable[Any], **columns: Any) -> Iterator[tuple[Any, ...]]:
    """Put columns side by side: numbers from 0 for None, and of a function its values at them."""
    rows = list(first)
    whole: list[Any] = [rows]
    for name, column in columns.items():
        if column is None:
            column = range(len(rows))
        elif callable(column):
            column = map(column, range(len(rows)))
        whole.append(list(column))
        if len(whole[-1]) != len(rows):
            raise ValueError(f"{len(whole[-1])} {name} for {len(rows)} records or files")
    return zip(*whole, strict=True)
