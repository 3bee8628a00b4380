"""The augmentation recipe: the possible changes of an image between its record and its batch.

A `Recipe` is the validated set of MXNet's image parameters, with a table of those that do nothing
beside others.  It draws nothing itself: the numbers for one image follow from (seed, epoch, record)
in `geometry`, so that they do not depend on threads or on what was drawn before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from recordio.keywords.checks import boolean, choice, colour, integer, integers, real
from recordio.keywords.options import (
    Options,
    Rule,
    accepts,
    described,
    option,
    optional,
    refuse_ineffective,
)

from .geometry_options import GeometryOptions
from .policy_options import PolicyOptions
from .rules import RULES

#: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 by direction, 10 random.
INTER_METHODS = (0, 1, 2, 3, 4, 9, 10)
AT_RANDOM = 10

#: Resampling besides MXNet's, and the names of its filters in the order of ``filters.h``, which
#: ends before the number of the one that is drawn for every image.
RESAMPLING = ("pillow",)
FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
FIRST_FILTER = 16

#: First resizes by the size of the batch, and their numbers in ``geometry.pxd``.
RESIZE_TO = {"cover": -2, "contain": -3}

#: 1 for grey, 3 for RGB, 4 for RGBA.
CHANNELS = (1, 3, 4)

#: Longest `rotate_list`; the drawing keeps its parameters in a fixed space.
MAX_ANGLES = 64

#: Keywords of a recipe that does no more than to bring images to their size.
PLAIN = (
    "data_shape", "orient", "background", "resize", "max_side", "inter_method", "resample",
    "interpolation", "reducing_gap",
)  # fmt: skip

#: Largest size or position in pixels; products of two fit 64 bits, and no image is that large.
MAX_PIXELS = (1 << 26) - 1

#: Largest angle in degrees, whole turns included, as MXNet's scripts have them.
MAX_DEGREES = 1_000_000

#: Largest shift of hue, saturation or lightness.  One of 255 or more already ends at a limit.
MAX_SHIFT = 1000


def off_or_positive(name: str, value: Any) -> int:
    """Return a number of pixels of at least 1, or -1."""
    number = integer(name, value, high=MAX_PIXELS)
    if number != -1 and number < 1:
        raise ValueError(
            f"{name}={value!r}: expected a number of pixels of at least 1, or -1 for off"
        )
    return number


def _resize(name: str, value: Any) -> int | tuple[int, int]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        return off_or_positive(name, value)
    try:
        height, width = integers(name, value, 2, 1, MAX_PIXELS)
    except ValueError:
        raise ValueError(
            f"{name}={value!r}: expected the short side in pixels, (height, width), or -1 for off"
        ) from None
    return height, width


def _resize_or_fit(name: str, value: Any) -> int | tuple[int, int] | str:
    return value if isinstance(value, str) and value in RESIZE_TO else _resize(name, value)


def _angles(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, str):
        value = [item for item in value.strip("()[] ").split(",") if item.strip()]
    elif isinstance(value, int):
        value = (value,)
    try:
        items = tuple(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: expected a sequence of whole degrees") from None
    angles = tuple(integer(name, item, -MAX_DEGREES, MAX_DEGREES) for item in items)
    if len(angles) > MAX_ANGLES:
        raise ValueError(f"{name} holds {len(angles)} angles: at most {MAX_ANGLES} are possible")
    return angles


def _not_negative(name: str, value: Any) -> float:
    return real(name, value, 0)


def _off_or_position(name: str, value: Any) -> int:
    return integer(name, value, -1, MAX_PIXELS)


def _area(name: str, value: Any) -> float:
    return real(name, value, 0, 1)


def _divisor(name: str, value: Any) -> float:
    number = real(name, value)
    if number <= 0:
        raise ValueError(
            f"{name}={value!r}: expected a number above 0, by which the pixel values are divided"
        )
    return number


def _factor(name: str, value: Any) -> float:
    number = real(name, value)
    if number == 0:
        raise ValueError(f"{name}={value!r}: every value of a batch would be 0")
    return number


def image_shape(name: str, value: Any) -> tuple[int, int, int]:
    """Return (channels, height, width); the error for an array's shape names the order."""
    expected = "(channels, height, width) with 1, 3 or 4 channels"
    try:
        shape = integers(name, value, 3, 1, MAX_PIXELS)
    except ValueError:
        raise ValueError(f"{name}={value!r}: expected {expected}") from None
    if shape[0] not in CHANNELS:
        last = shape[2], *shape[:2]
        hint = f"; did you mean {last}?" if last[0] in CHANNELS else ""
        raise ValueError(f"{name}={value!r}: expected {expected}{hint}")
    return shape[0], shape[1], shape[2]


@dataclass(frozen=True, kw_only=True, repr=False)
class BaseRecipe(Options):
    """Options of every recipe for images."""

    data_shape: tuple[int, int, int] = option(
        kind="tuple of int",
        text="""(channels, height, width) of the result; 1, 3 or 4 channels. `ImageRecordIter` and
        `ImageDetRecordIter` also take a list of such shapes, one of which is drawn for every batch
        by `seed`, the same for all parts; and None, or ``(channels, None, None)``, for images that
        keep their size, except for `resize`.""",
        check=image_shape,
    )
    orient: bool = option(
        True,
        "bool",
        """Turn images upright by their EXIF orientation. If False, they stay as they are stored,
        as in Pillow, torchvision's `ImageFolder` and timm; the boxes of detection labels refer to
        the image after this step.""",
        boolean,
    )
    background: tuple[int, int, int] | None = option(
        None,
        "int or (int, int, int), optional",
        """Colour, 0 to 255 for R, G and B or one number for all, that transparent images are laid
        over. Without it their alpha channel is left out, and the colours that lie under it are
        seen.""",
        optional(colour),
    )
    resize: int | tuple[int, int] = option(
        -1,
        "int or (int, int)",
        """Short side after a first resize, in pixels, or height and width; -1 leaves the size
        unchanged.""",
        _resize,
    )
    max_side: int = option(
        -1,
        "int",
        """Largest number of pixels of the long side after the first resize; -1 for off. An image
        with a longer one is made smaller with the same aspect ratio. If `resize` is not below
        `max_side`, every long side has exactly `max_side` pixels.""",
        off_or_positive,
    )
    inter_method: int = option(
        1,
        "int",
        """Interpolation: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos; 9 cubic if both sides
        grow, area if both shrink, otherwise bilinear; 10 one of 0 to 4 at random for
        every image.""",
        lambda name, value: choice(name, integer(name, value), INTER_METHODS),
    )
    resample: str | None = option(
        None,
        '{"pillow"}, optional',
        """Resize like Pillow, to the byte, instead of `inter_method`, and crop and pad like
        torchvision; a JPEG is decoded in full unless `reducing_gap` is given.""",
        optional(partial(choice, allowed=RESAMPLING)),
    )
    interpolation: str | None = option(
        None,
        '{"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos", "random"}, optional',
        """Pillow's filter, with `resample`; "bilinear" if not given.  "random" is "bilinear" or
        "bicubic", drawn for every image, as timm does.""",
        optional(partial(choice, allowed=(*FILTERS, "random"))),
    )
    reducing_gap: float | None = option(
        None,
        "float, optional",
        """With `resample`, decode a JPEG at 1/2, 1/4 or 1/8 as long as it has at least this many
        times its final size, as Pillow's `draft` does for `thumbnail`. At least 1; with 2 or 3 the
        difference is hard to see.""",
        optional(partial(real, low=1)),
    )
    scale: float = option(1.0, "float", "Multiplies the result; not 0.", _factor)
    scaled_decode: bool = option(
        True,
        "bool",
        """Decode a JPEG that will be resampled to half its size or less at 1/2, 1/4 or 1/8 first,
        which is faster and does not alias. If False, it is decoded in full, as in MXNet.""",
        boolean,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()
        refuse_ineffective(self)

    def __repr__(self) -> str:
        changed = (f"{name}={value!r}" for name, value in self.changed().items())
        return f"{type(self).__name__}({', '.join(changed)})"

    def _check(self) -> None:
        """Raise for values that do not fit one another."""

    @property
    def method(self) -> int:
        """The interpolation in the numbers of the kernels."""
        if self.resample is None:
            return self.inter_method
        return FIRST_FILTER + (*FILTERS, "random").index(self.interpolation or "bilinear")

    @property
    def draws_method(self) -> bool:
        """True if every image has another interpolation in every epoch."""
        return self.inter_method == AT_RANDOM or self.interpolation == "random"

    @property
    def first_resize(self) -> tuple[int, int]:
        """Short side of the first resize and 0, or its width and height; -1 and 0 for none.

        Below -1 the size of the result follows from that of the batch.
        """
        if isinstance(self.resize, str):
            return RESIZE_TO[self.resize], 0
        if isinstance(self.resize, tuple):
            return self.resize[1], self.resize[0]
        return self.resize, 0

    @property
    def channels(self) -> int:
        """1 for grey, 3 for RGB, 4 for RGBA."""
        return self.data_shape[0]


@accepts()
@dataclass(frozen=True, kw_only=True, repr=False)
class Recipe(GeometryOptions, PolicyOptions, BaseRecipe):
    """Geometry, colour and normalisation parameters, under MXNet's names and with its defaults.

    The steps follow each other in this order: resize, affine warp or `rotation`, `affine`,
    `perspective`, then pad, crop, brightness / contrast / saturation, hue / saturation /
    lightness, lighting noise, `crop_on_fill`, `low_resolution`, `auto_augment`, the keywords of
    `photometric_steps` in their order, `steps`, normalisation, mirror and flip, `random_erasing`.
    """

    resize: int | tuple[int, int] | str = described(  # type: ignore[assignment]
        BaseRecipe,
        "resize",
        """Short side after a first resize, in pixels, or height and width; "cover" makes the image
        just large enough to cover `data_shape`, so that a crop loses little, and "contain" as
        large as fits into it, with a border of `fill_value` around it; -1 leaves its size
        unchanged.""",
        'int, (int, int), "cover" or "contain"',
        _resize_or_fit,
    )
    rand_crop: bool = option(
        False, "bool", "Crop at a random position instead of the centre.", boolean
    )
    crop_x_start: int = option(
        -1,
        "int",
        "Position of the crop in pixels, instead of the centre or a random position; -1 for off.",
        _off_or_position,
    )
    crop_y_start: int = option(-1, "int", ..., _off_or_position)
    max_crop_size: int = option(
        -1,
        "int",
        """Crop a square whose side is drawn from this range, in pixels, and resize it to
        `data_shape`; -1 for off.""",
        off_or_positive,
    )
    min_crop_size: int = option(-1, "int", ..., off_or_positive)
    random_resized_crop: bool = option(
        False,
        "bool",
        """Crop a random area and aspect ratio, then resize to `data_shape`.""",
        boolean,
    )
    min_random_area: float = option(
        1.0, "float", "Range of the crop's share of the image's area, in (0, 1].", _area
    )
    max_random_area: float = option(1.0, "float", ..., _area)
    max_aspect_ratio: float = option(
        0.0,
        "float",
        """With `random_resized_crop` the range of width / height of the crop, otherwise the
        range of the vertical over the horizontal stretch of the warp. Without `min_aspect_ratio`
        it is ``[1 - max_aspect_ratio, 1 + max_aspect_ratio]`` and `max_aspect_ratio` below 1.""",
        _not_negative,
    )
    min_aspect_ratio: float | None = option(None, "float", ..., optional(_not_negative))
    log_aspect_ratio: bool = option(
        False,
        "bool",
        """With `random_resized_crop`, draw the aspect ratio as torchvision and timm do: uniform in
        its logarithm; where ten tries fail, crop as much at the centre as the range allows.  MXNet
        draws it uniformly, exchanges the sides half of the time, and crops `data_shape` then.""",
        boolean,
    )
    max_rotate_angle: int = option(
        0,
        "int",
        """Rotate by a random whole number of degrees in ``[-max_rotate_angle,
        max_rotate_angle]``.""",
        partial(integer, low=0, high=MAX_DEGREES),
    )
    rotate: int = option(
        -1,
        "int",
        "Rotate by this many degrees, counter-clockwise; -1 for off.",
        partial(integer, low=-1, high=MAX_DEGREES),
    )
    rotate_list: tuple[int, ...] = option(
        (),
        "sequence of int or str",
        """Rotate by one of these angles; a string holds them separated by commas.""",
        _angles,
    )
    max_shear_ratio: float = option(
        0.0,
        "float",
        """Shear along x by a random ratio in ``[-max_shear_ratio, max_shear_ratio]``.""",
        _not_negative,
    )
    min_random_scale: float = option(
        1.0, "float", "Range of the scale of the warp.", partial(real, low=1e-3, high=1e3)
    )
    max_random_scale: float = option(1.0, "float", ..., partial(real, low=1e-3, high=1e3))
    min_img_size: float = option(
        0.0,
        "float",
        "Limits of the sides of the warped canvas in pixels; they do not scale the content.",
        _not_negative,
    )
    max_img_size: float = option(1e10, "float", ..., partial(real, low=1))
    pad: int = option(
        0, "int", "Pixels added on all four sides.", partial(integer, low=0, high=1 << 16)
    )
    pad_if_needed: bool = option(
        False,
        "bool",
        """With `resample` and `rand_crop`, pad an image that is smaller than the crop, on both
        sides by what is missing, as torchvision does. Without it, such an image is an error; for a
        crop at the centre, images are always padded.""",
        boolean,
    )
    fill_value: int = option(
        255,
        "int",
        "Grey level, 0 to 255, of the area outside the image; alpha is 0 there.",
        partial(integer, low=0, high=255),
    )
    brightness: float = option(
        0.0,
        "float",
        """Brightness, contrast and saturation are changed by factors drawn from ``[1 - x, 1 +
        x]``, in random order; colour images only.""",
        _not_negative,
    )
    contrast: float = option(0.0, "float", ..., _not_negative)
    saturation: float = option(0.0, "float", ..., _not_negative)
    random_h: int = option(
        0,
        "int",
        """Largest change of hue (whose range is 0 to 180), saturation and lightness (0 to 255), up
        to 1000; values outside the range are set to its limit. RGB only.""",
        partial(integer, low=0, high=MAX_SHIFT),
    )
    random_s: int = option(0, "int", ..., partial(integer, low=0, high=MAX_SHIFT))
    random_l: int = option(0, "int", ..., partial(integer, low=0, high=MAX_SHIFT))
    pca_noise: float = option(
        0.0,
        "float",
        """Standard deviation of the noise along the principal colours of ImageNet; RGB only.""",
        _not_negative,
    )
    max_random_contrast: float = option(
        0.0,
        "float",
        """Normalised values are multiplied by ``1 + u``, and then ``v`` grey levels are added,
        with u and v drawn from plus or minus these numbers; floating-point batches only.""",
        _not_negative,
    )
    max_random_illumination: float = option(0.0, "float", ..., _not_negative)
    mirror: bool = option(False, "bool", "Always mirror horizontally.", boolean)
    rand_mirror: bool = option(
        False, "bool", "Mirror horizontally with probability `mirror_p`.", boolean
    )
    mean_r: float = option(
        0.0,
        "float",
        "Subtracted from the pixel values (0 to 255); for a single channel, `mean_r` is used.",
        real,
    )
    mean_g: float = option(0.0, "float", ..., real)
    mean_b: float = option(0.0, "float", ..., real)
    mean_a: float = option(0.0, "float", ..., real)
    std_r: float = option(
        1.0,
        "float",
        "Divides the values after subtraction of the mean; above 0.",
        _divisor,
    )
    std_g: float = option(1.0, "float", ..., _divisor)
    std_b: float = option(1.0, "float", ..., _divisor)
    std_a: float = option(1.0, "float", ..., _divisor)

    def _check(self) -> None:
        self.check_changes(self.data_shape)
        _ordered(
            "min_random_scale", self.min_random_scale, "max_random_scale", self.max_random_scale
        )
        _ordered("min_img_size", self.min_img_size, "max_img_size", self.max_img_size)
        self._check_crop()
        self._check_warp()

    def _check_crop(self) -> None:
        if self.min_crop_size != -1 or self.max_crop_size != -1:
            if self.min_crop_size == -1 or self.max_crop_size == -1:
                raise ValueError(
                    "min_crop_size and max_crop_size go together: give both or neither"
                )
            _ordered("min_crop_size", self.min_crop_size, "max_crop_size", self.max_crop_size)
        if not self.random_resized_crop:
            return
        _ordered("min_random_area", self.min_random_area, "max_random_area", self.max_random_area)
        if self.min_random_area == 0:
            raise ValueError("min_random_area=0.0: expected a number above 0, up to 1")

    def _check_warp(self) -> None:
        low, high = self.aspect_range
        if not 0 < low <= high:
            raise ValueError(
                f"the aspect ratios range from {low:g} to {high:g}: expected 0 < min <= max "
                "(without min_aspect_ratio the range is 1 - max_aspect_ratio to 1 + "
                "max_aspect_ratio, so that max_aspect_ratio must be below 1)"
            )
        if self.warps and self.resample is not None:
            raise ValueError(
                f"resample={self.resample!r}: rotation, shear, scale and stretch of MXNet's warp "
                "have no form in Pillow; drop them or resample"
            )
        if self.warps and self.inter_method == 0:
            raise ValueError(
                "inter_method=0: a warped image needs an interpolation of 1, 2, 3, 4 or 9"
            )

    rules: ClassVar[tuple[Rule, ...]] = (*RULES, *GeometryOptions.rules, *PolicyOptions.rules)
    #: True if an image that is too small is cropped before it grows, and if the aspect ratio
    #: of a random area is uniform in its logarithm: the rules of MXNet's Python iterators.
    crops_first: ClassVar[bool] = False
    log_ratio: ClassVar[bool] = False
    #: True if the means per channel are used instead of a mean image.
    mean_rgb_overrides_file: ClassVar[bool] = False

    def plain(self) -> Recipe:
        """Return the recipe with nothing random in it and without normalisation."""
        return Recipe(**self.values(*PLAIN))

    @property
    def warps(self) -> bool:
        """True if images go through the affine warp."""
        return bool(
            self.max_rotate_angle
            or self.max_shear_ratio
            or self.rotate > 0
            or self.rotate_list
            or self.min_random_scale != 1
            or self.max_random_scale != 1
            or (not self.random_resized_crop and self.aspect_range != (1, 1))
            or self.max_img_size != 1e10
            or self.min_img_size != 0
        )

    @property
    def aspect_range(self) -> tuple[float, float]:
        """Lowest and highest aspect ratio."""
        if self.min_aspect_ratio is None:
            return 1 - self.max_aspect_ratio, 1 + self.max_aspect_ratio
        return self.min_aspect_ratio, self.max_aspect_ratio

    @property
    def mean(self) -> tuple[float, float, float, float]:
        """Means in the order R, G, B, A."""
        return self.mean_r, self.mean_g, self.mean_b, self.mean_a

    @property
    def std(self) -> tuple[float, float, float, float]:
        """Standard deviations in the order R, G, B, A."""
        return self.std_r, self.std_g, self.std_b, self.std_a


def _ordered(low_name: str, low: float, high_name: str, high: float) -> None:
    if low > high:
        raise ValueError(f"{low_name}={low:g} is above {high_name}={high:g}")
