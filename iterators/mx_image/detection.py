"""The detection augmenters of MXNet's `mx.image`: an image and its objects go in and come out.

Objects are the rows of a float array (objects, 5 or more): id, xmin, ymin, xmax, ymax in fractions
of the image, and any further values.  Arguments are never changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from recordio.keywords.checks import integer

from ..core.example_random import example_random
from ..images.augment.ranges import chance
from .augmenters import Described, ImageAugmenter
from .crops import fixed_crop
from .functions import copyMakeBorder, image_of, mirrored

#: Objects and crops with fewer pixels do not count.
LEAST_PIXELS = 2
#: A border that adds fewer rows or columns is not worth it.
LEAST_BORDER = 2

Found = tuple[np.ndarray, np.ndarray]


class DetAugmenter(Described):
    """Base class: a step that is called with an image and its objects and returns both.

    Parameters
    ----------
    **parameters
        Values for `dumps`: numbers, strings, and sequences of these.

    Examples
    --------
    >>> class WithoutSmall(DetAugmenter):
    ...     def __init__(self, width):
    ...         super().__init__(width=width)
    ...         self.width = width
    ...     def __call__(self, src, label):
    ...         return src, label[label[:, 3] - label[:, 1] >= self.width]
    >>> objects = np.array([[0, 0.1, 0.1, 0.9, 0.9], [1, 0.5, 0.5, 0.52, 0.6]])
    >>> WithoutSmall(0.05)(np.zeros((8, 8, 3), np.uint8), objects)[1].tolist()
    [[0.0, 0.1, 0.1, 0.9, 0.9]]
    """

    def __call__(self, src: Any, label: np.ndarray) -> Found:
        """Return the image and the objects on it after the step."""
        raise NotImplementedError(f"{type(self).__name__} does not define __call__(src, label)")


class DetBorrowAug(DetAugmenter):
    """Apply a step for images that leaves objects where they are.

    Parameters
    ----------
    augmenter : ImageAugmenter

    Examples
    --------
    >>> from iterators.mx_image import CastAug
    >>> image, objects = DetBorrowAug(CastAug())(np.zeros((2, 2, 3), np.uint8), np.zeros((1, 5)))
    >>> image.dtype, objects.shape
    (dtype('float32'), (1, 5))
    """

    def __init__(self, augmenter: ImageAugmenter) -> None:
        if not isinstance(augmenter, ImageAugmenter):
            raise TypeError(f"augmenter={augmenter!r}: expected an Augmenter of images")
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> list[Any]:
        """Return the name and parameters of all steps."""
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: Any, label: np.ndarray) -> Found:
        return self.augmenter(src), label

    def __repr__(self) -> str:
        return f"DetBorrowAug({self.augmenter!r})"


class DetRandomSelectAug(DetAugmenter):
    """Apply one of several steps, or none.

    Parameters
    ----------
    aug_list : DetAugmenter or list of DetAugmenter
        The list is left unchanged; MXNet shuffles it.
    skip_prob : float
        Probability that no step is applied.

    Examples
    --------
    >>> one = DetRandomSelectAug([DetHorizontalFlipAug(1), DetRandomCropAug()], skip_prob=0.2)
    >>> len(one.aug_list)
    2
    """

    def __init__(self, aug_list: Any, skip_prob: float = 0) -> None:
        super().__init__(skip_prob=skip_prob)
        steps: list[DetAugmenter] = (
            list(aug_list) if isinstance(aug_list, (list, tuple)) else [aug_list]
        )
        for step in steps:
            if not isinstance(step, DetAugmenter):
                raise TypeError(f"aug_list has {step!r}: expected DetAugmenter")
        self.aug_list: list[DetAugmenter] = steps
        self.skip_prob: float = chance("skip_prob", skip_prob) if steps else 1

    def dumps(self) -> list[Any]:
        """Return the name and parameters of all steps."""
        return [type(self).__name__.lower(), [step.dumps() for step in self.aug_list]]

    def __call__(self, src: Any, label: np.ndarray) -> Found:
        draw = example_random()
        if draw.random() < self.skip_prob:
            return src, label
        order = list(self.aug_list)
        draw.shuffle(order)
        return order[0](src, label)

    def __repr__(self) -> str:
        return f"DetRandomSelectAug({self.aug_list!r}, skip_prob={self.skip_prob!r})"


class DetHorizontalFlipAug(DetAugmenter):
    """Mirror an image and its objects horizontally with probability `p`.

    Parameters
    ----------
    p : float
        0 to 1.

    Examples
    --------
    >>> objects = np.array([[0, 0.1, 0.2, 0.5, 0.9]])
    >>> DetHorizontalFlipAug(1)(np.zeros((2, 2, 3), np.uint8), objects)[1].tolist()
    [[0.0, 0.5, 0.2, 0.9, 0.9]]
    """

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p: float = chance("p", p)

    def __call__(self, src: Any, label: np.ndarray) -> Found:
        image = image_of(src)
        if example_random().random() >= self.p:
            return image, label
        turned = _copied(label)
        turned[:, 1], turned[:, 3] = 1 - label[:, 3], 1 - label[:, 1]
        return mirrored(image), turned


class DetRandomCropAug(DetAugmenter):
    """Crop a random rectangle that contains enough of every object that it meets.

    Parameters
    ----------
    min_object_covered : float
        A rectangle counts only if it shows more than this share of every object that it meets, and
        meets one.
    aspect_ratio_range : float or (float, float)
        Width / height of the rectangle.
    area_range : float or (float, float)
        Its share of the area of the image; the rectangle always lies inside the image.
    min_eject_coverage : float
        Objects of which it shows no more than this share are dropped.
    max_attempts : int
        Number of rectangles tried before the image is left unchanged.

    Raises
    ------
    ValueError
        If a range is empty or not positive; MXNet warns and never crops.

    Examples
    --------
    >>> crop = DetRandomCropAug(min_object_covered=0.9, area_range=(0.5, 0.9))
    >>> image, objects = crop(np.zeros((32, 32, 3), np.uint8), np.array([[7, 0.4, 0.4, 0.6, 0.6]]))
    >>> image.shape[0] <= 32, float(objects[0, 0])
    (True, 7.0)
    """

    def __init__(
        self,
        min_object_covered: float = 0.1,
        aspect_ratio_range: float | Sequence[float] = (0.75, 1.33),
        area_range: float | Sequence[float] = (0.05, 1.0),
        min_eject_coverage: float = 0.3,
        max_attempts: int = 50,
    ) -> None:
        aspect_ratio_range, area_range = _pair(aspect_ratio_range), _pair(area_range)
        super().__init__(
            min_object_covered=min_object_covered,
            aspect_ratio_range=aspect_ratio_range,
            area_range=area_range,
            min_eject_coverage=min_eject_coverage,
            max_attempts=max_attempts,
        )
        _check_range("aspect_ratio_range", aspect_ratio_range, 0)
        if not 0 <= area_range[0] <= area_range[1] or area_range[1] <= 0:
            raise ValueError(f"area_range={area_range}: expected two shares, ascending, above 0")
        self.min_object_covered: float = chance("min_object_covered", min_object_covered)
        self.min_eject_coverage: float = chance("min_eject_coverage", min_eject_coverage)
        self.max_attempts: int = integer("max_attempts", max_attempts, low=0)
        self.aspect_ratio_range: tuple[float, float] = aspect_ratio_range
        self.area_range: tuple[float, float] = area_range

    def __call__(self, src: Any, label: np.ndarray) -> Found:
        image = image_of(src)
        height, width = image.shape[:2]
        for _ in range(self.max_attempts):
            size = self._size(height, width)
            if size is None:
                continue
            h, w = size
            y0, x0 = _random_offset(height - h), _random_offset(width - w)
            # In fractions of the image.
            crop = np.array([x0, y0, x0 + w, y0 + h]) / [width, height, width, height]
            if w * h < LEAST_PIXELS or not self._shows_enough(label, crop, height * width):
                continue
            kept = self._kept(label, crop)
            if len(kept):
                return fixed_crop(image, x0, y0, w, h), kept
        return image, label

    def _size(self, height: int, width: int) -> tuple[int, int] | None:
        """Return the height and width of a rectangle; None if no whole numbers fit the ranges."""
        draw = example_random()
        ratio = draw.uniform(*self.aspect_ratio_range)
        least, most = (share * height * width for share in self.area_range)
        h, highest = round(math.sqrt(least / ratio)), round(math.sqrt(most / ratio))
        if round(highest * ratio) > width:
            highest = int((width + 0.4999999) / ratio)
        highest = min(highest, height)
        h = min(h, highest)
        if h < highest:
            h = draw.randint(h, highest)
        # Rounding may have led out of the range by a row.
        if h * round(h * ratio) < least:
            h += 1
        if h * round(h * ratio) > most:
            h -= 1
        w = round(h * ratio)
        fits = least <= w * h <= most and 0 < w <= width and 0 < h <= height
        return (h, w) if fits else None

    def _shows_enough(self, label: np.ndarray, crop: np.ndarray, pixels: int) -> bool:
        boxes = label[:, 1:5]
        boxes = boxes[_areas(boxes) * pixels > LEAST_PIXELS]
        shares = _areas(_clipped(boxes, crop)) / _areas(boxes)
        shares = shares[shares > 0]
        return bool(len(shares)) and bool(shares.min() > self.min_object_covered)

    def _kept(self, label: np.ndarray, crop: np.ndarray) -> np.ndarray:
        """Return the objects of which enough is in the crop, in fractions of it."""
        corner, size = crop[[0, 1, 0, 1]], crop[[2, 3, 2, 3]] - crop[[0, 1, 0, 1]]
        objects = _copied(label)
        objects[:, 1:5] = np.clip((label[:, 1:5] - corner) / size, 0, 1)
        inside = (objects[:, 3] > objects[:, 1]) & (objects[:, 4] > objects[:, 2])
        whole = np.where(inside, _areas(label[:, 1:5]), 1)
        shares = _areas(objects[:, 1:5]) * (size[0] * size[1]) / whole
        return objects[inside & (shares > self.min_eject_coverage)]


class DetRandomPadAug(DetAugmenter):
    """Put an image at a random position in a larger one of a single colour.

    Parameters
    ----------
    aspect_ratio_range : float or (float, float)
        Width / height of the result.
    area_range : float or (float, float)
        Its area as a multiple of that of the image; the upper end must be above 1.
    max_attempts : int
        Number of sizes tried before the image is left unchanged.
    pad_val : float or sequence of float
        The colour, in grey levels.

    Raises
    ------
    ValueError
        If a range is empty or not positive, or `area_range` never above 1; MXNet warns and never
        pads.

    Examples
    --------
    >>> image, objects = DetRandomPadAug(1, 4)(
    ...     np.zeros((32, 32, 3), np.uint8), np.array([[7, 0, 0, 1, 1]])
    ... )
    >>> image.shape, float(objects[0, 3] - objects[0, 1])
    ((64, 64, 3), 0.5)
    """

    def __init__(
        self,
        aspect_ratio_range: float | Sequence[float] = (0.75, 1.33),
        area_range: float | Sequence[float] = (1.0, 3.0),
        max_attempts: int = 50,
        pad_val: float | Sequence[float] = (128, 128, 128),
    ) -> None:
        aspect_ratio_range, area_range = _pair(aspect_ratio_range), _pair(area_range)
        super().__init__(
            aspect_ratio_range=aspect_ratio_range,
            area_range=area_range,
            max_attempts=max_attempts,
            pad_val=pad_val,
        )
        _check_range("aspect_ratio_range", aspect_ratio_range, 0)
        _check_range("area_range", area_range, 0)
        if area_range[1] <= 1:
            raise ValueError(f"area_range={area_range}: expected a larger one above 1")
        self.aspect_ratio_range: tuple[float, float] = aspect_ratio_range
        self.area_range: tuple[float, float] = area_range
        self.max_attempts: int = integer("max_attempts", max_attempts, low=0)
        self.pad_val: float | Sequence[float] = pad_val

    def __call__(self, src: Any, label: np.ndarray) -> Found:
        image = image_of(src)
        height, width, channels = image.shape
        for _ in range(self.max_attempts):
            h, w = self._size(height, width)
            if h - height < LEAST_BORDER or w - width < LEAST_BORDER:
                continue
            y0, x0 = _random_offset(h - height), _random_offset(w - width)
            colour = self.pad_val
            if not isinstance(colour, Sequence):
                colour = [colour] * channels
            rows, columns = (y0, h - y0 - height), (x0, w - x0 - width)
            moved = _copied(label)
            moved[:, [1, 3]] = (label[:, [1, 3]] * width + x0) / w
            moved[:, [2, 4]] = (label[:, [2, 4]] * height + y0) / h
            return copyMakeBorder(image, *rows, *columns, values=colour), moved
        return image, label

    def _size(self, height: int, width: int) -> tuple[int, int]:
        draw = example_random()
        ratio = draw.uniform(*self.aspect_ratio_range)
        least, most = (share * height * width for share in self.area_range)
        h, highest = round(math.sqrt(least / ratio)), round(math.sqrt(most / ratio))
        if round(h * ratio) < width:
            h = int((width + 0.499999) / ratio)
        h = min(max(h, height), highest)
        if h < highest:
            h = draw.randint(h, highest)
        return h, round(h * ratio)


def CreateMultiRandCropAugmenter(
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 1.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: Any = 50,
    skip_prob: float = 0,
) -> DetRandomSelectAug:
    """Make one step that chooses one of several random crops, or none.

    Parameters
    ----------
    min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts
        As for `DetRandomCropAug`, or a list with a value for each of the crops.
    skip_prob : float
        Probability that no step is applied.

    Raises
    ------
    ValueError
        If lists of more than one value differ in length.

    Examples
    --------
    >>> len(CreateMultiRandCropAugmenter([0.1, 0.5, 0.9], area_range=(0.3, 1)).aug_list)
    3
    """
    items = [min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts]
    lists = [item if isinstance(item, list) else [item] for item in items]
    count = max(len(values) for values in lists)
    if any(len(values) not in (1, count) for values in lists):
        raise ValueError(
            f"lists of {', '.join(str(len(v)) for v in lists)} values: expected one length, or "
            "single values"
        )
    rows = zip(*(values * (count // len(values)) for values in lists), strict=True)
    return DetRandomSelectAug([DetRandomCropAug(*row) for row in rows], skip_prob)


def _copied(label: np.ndarray) -> np.ndarray:
    """Return objects that can be moved: whole numbers become floats."""
    return np.array(label, np.result_type(label, np.float32))


def _pair(value: Any) -> tuple[float, float]:
    low, high = value if isinstance(value, Sequence) else (value, value)
    return low, high


def _check_range(name: str, values: tuple[float, float], above: float) -> None:
    if not above < values[0] <= values[1]:
        raise ValueError(f"{name}={values}: expected two numbers, ascending, above {above}")


def _random_offset(room: int) -> int:
    return example_random().randint(0, max(0, room))


def _areas(boxes: np.ndarray) -> np.ndarray:
    """Return the areas of boxes (n, 4); 0 for those that are turned inside out."""
    return np.maximum(0, boxes[:, 2] - boxes[:, 0]) * np.maximum(0, boxes[:, 3] - boxes[:, 1])


def _clipped(boxes: np.ndarray, crop: np.ndarray) -> np.ndarray:
    """Return the parts of boxes that are inside a crop."""
    return np.concatenate(
        [np.maximum(boxes[:, :2], crop[:2]), np.minimum(boxes[:, 2:], crop[2:])], axis=1
    )
