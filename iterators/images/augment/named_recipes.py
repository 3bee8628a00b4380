"""Recipes by name: the keywords with which a well-known script trains, as one object.

A `NamedRecipe` can be printed, compared and saved as JSON.  It draws nothing; `recipe` and
`policy_options` describe the keywords.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recordio.keywords.checks import did_you_mean
from recordio.keywords.options import Options, option, optional

from ...core.dtypes import dtype_name
from .pipelines import albumentations, processors, timm, torchvision
from .pipelines.parts import Given, Translated
from .pipelines.processor_families import rule_of
from .pipelines.processor_rules import ProcessorRule

#: Of an image; the image stage has a fixed table.
MOST_VIEWS = 16


@dataclass(frozen=True)
class NamedRecipe:
    """Keywords that belong together.

    Parameters
    ----------
    name : str
    reproduces : str
        The script that the keywords come from, and the differences.
    keywords : dict
        Keywords of `iterators.ImageRecordIter`.
    mixing : dict
        Keywords of `iterators.MixBatches`; empty if the script mixes nothing.
    tail : tuple of callable
        Functions that are called with each image of a batch, in Python, one after the other;
        `from_torchvision` makes it.  A recipe with such functions cannot be saved as JSON.
    tail_of : str
        Argument of the first of them: a "tensor" of torch, an "image" of Pillow, or the "array"
        that albumentations takes and returns as ``image``.
    processor : dict
        Settings of the processor of a vision-language model, whose images have sizes of their own:
        for `iterators.preprocess`; empty for all other recipes.

    Examples
    --------
    >>> recipe = NamedRecipe.named("timm/deit-s")
    >>> recipe.keywords["auto_augment"], recipe.mixing["mixup"]
    ('rand-m9-mstd0.5-inc1', 0.8)
    >>> NamedRecipe.from_json(recipe.to_json()) == recipe
    True
    """

    name: str
    reproduces: str = ""
    keywords: dict[str, Any] = field(default_factory=dict)
    mixing: dict[str, Any] = field(default_factory=dict)
    tail: tuple[Any, ...] = ()
    tail_of: str = "tensor"
    processor: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def named(cls, name: str) -> NamedRecipe:
        """Return the recipe of that name.

        Raises
        ------
        ValueError
            If there is none; the closest one is suggested.
        """
        for recipe in NAMED_RECIPES:
            if recipe.name == name:
                return recipe
        names = [recipe.name for recipe in NAMED_RECIPES]
        hint = did_you_mean(str(name), names) or f"expected one of {', '.join(names)}"
        raise ValueError(f"recipe={name!r}: {hint}")

    @classmethod
    def of(cls, value: Any) -> NamedRecipe:
        """Return a recipe, from its name, its JSON, or a dictionary of keywords.

        Raises
        ------
        TypeError, ValueError
            If it is none of these.
        """
        if isinstance(value, NamedRecipe):
            return value
        if isinstance(value, dict):
            return cls("", keywords=value)
        if not isinstance(value, str):
            raise TypeError(
                f"recipe={value!r}: expected a name, a NamedRecipe, its JSON, or keywords"
            )
        return cls.from_json(value) if value.lstrip().startswith("{") else cls.named(value)

    @classmethod
    def from_torchvision(
        cls,
        transform: Any,
        python: str | None = None,
        images: tuple[int, int | None, int | None] | None = None,
    ) -> NamedRecipe:
        """Translate a pipeline of torchvision into keywords.

        Parameters
        ----------
        transform : callable
            A transform of `torchvision.transforms` or `transforms.v2`, a Compose, or a list of
            transforms.  Only class names and attributes are read; nothing is called.
        python : {"tail"}, optional
            With "tail", the first transform that has no counterpart, and all after it, are called
            in Python with each image of a batch, by the thread that takes the batch: at the speed
            of one process of a DataLoader, and with random numbers of their own.
        images : tuple, optional
            ``(channels, height, width)`` of the images that the pipeline is given: 1 channel for
            grey ones, and None for a height and a width that differ.  By default, they are RGB
            images of any size, as `ImageFolder` opens them.

        Returns
        -------
        NamedRecipe
            With `data_shape` and normalisation, as far as the pipeline has them; MixUp and CutMix
            are in `mixing`.

        Raises
        ------
        PipelineError
            For a transform that has no counterpart where it stands; it names the transform, its
            position and what to do.

        Examples
        --------
        >>> from torchvision.transforms import v2  # doctest: +SKIP
        >>> pipeline = v2.Compose([v2.RandomResizedCrop(224), v2.ToTensor()])  # doctest: +SKIP
        >>> recipe = NamedRecipe.from_torchvision(pipeline)  # doctest: +SKIP
        >>> ImageRecordIter(path_imgrec="a.rec", batch_size=256, recipe=recipe)  # doctest: +SKIP
        """
        translated = torchvision.translated(transform, _is_tail(python), _given(images))
        return cls._translated("torchvision", translated)

    @classmethod
    def from_timm(
        cls,
        transform: Any,
        python: str | None = None,
        images: tuple[int, int | None, int | None] | None = None,
    ) -> NamedRecipe:
        """Translate a transform of `timm.data.create_transform` into keywords.

        Parameters
        ----------
        transform : callable or dict
            The transform; the result of `timm.data.resolve_data_config`, for the transform of
            evaluation; or a `timm.data.Mixup`.
        python : {"tail"}, optional
        images : tuple, optional
            As for `from_torchvision`.

        Returns
        -------
        NamedRecipe

        Raises
        ------
        PipelineError
            For a transform that has no counterpart.

        Examples
        --------
        >>> config = {
        ...     "input_size": (3, 224, 224), "crop_pct": 0.9, "interpolation": "bicubic",
        ...     "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5),
        ... }
        >>> recipe = NamedRecipe.from_timm(config)
        >>> recipe.keywords["resize"], recipe.keywords["data_shape"], recipe.keywords["mean_r"]
        (248, (3, 224, 224), 127.5)
        """
        translated = timm.translated(transform, _is_tail(python), _given(images))
        return cls._translated("timm", translated)

    @classmethod
    def from_processor(cls, processor: Any, reducing_gap: float | None = None) -> NamedRecipe:
        """Translate an image processor of Hugging Face's transformers into keywords.

        Parameters
        ----------
        processor : str, os.PathLike, dict or object
            The path of a ``preprocessor_config.json`` or of its folder, the content of the file, or
            a processor, which has `to_dict`.
        reducing_gap : float, optional
            Decode a JPEG at 1/2, 1/4 or 1/8 as long as it has at least this many times its final
            size, as Pillow's `draft` does for `thumbnail`: quicker, with other pixels.  At least 1.

        Returns
        -------
        NamedRecipe
            Of a vision-language model with `processor` instead of `keywords`, for
            `iterators.preprocess`.

        Raises
        ------
        PipelineError
            For a setting that has no counterpart, and for a class that processes images in a way
            of its own.
        TypeError
            If it is none of these.
        OSError
            If the file cannot be read.

        Examples
        --------
        >>> recipe = NamedRecipe.from_processor({
        ...     "do_resize": True, "size": {"height": 224, "width": 224}, "resample": 2,
        ...     "do_rescale": True, "rescale_factor": 1 / 255,
        ... })
        >>> print(recipe)
        transformers
        ImageRecordIter:
            data_shape=(3, 224, 224)
            orient=False
            resample='pillow'
            resize=(224, 224)
            interpolation='bilinear'
            scale=0.00392156862745098
        """
        rule = rule_of(processor)
        if rule is not None:
            config = {"image_processor_type": rule.name, **rule.config}
            if reducing_gap is not None:
                config["reducing_gap"] = reducing_gap
                rule_of(config)  # or an error
            return cls("transformers", processor=config)
        translated = processors.translated(processor)
        if reducing_gap is not None:
            translated.keywords["reducing_gap"] = reducing_gap
        return cls._translated("transformers", translated)

    @classmethod
    def from_albumentations(cls, transform: Any, python: str | None = None) -> NamedRecipe:
        """Translate a pipeline of albumentations into keywords.

        Parameters
        ----------
        transform : callable
            A transform, a Compose, or a list of transforms.
        python : {"tail"}, optional
            As for `from_torchvision`.

        Returns
        -------
        NamedRecipe
            With OpenCV's interpolation, which is that of albumentations.

        Raises
        ------
        PipelineError
            For a transform that has no counterpart.

        Examples
        --------
        >>> import albumentations as A  # doctest: +SKIP
        >>> NamedRecipe.from_albumentations(A.Compose([A.Resize(224, 224)]))  # doctest: +SKIP
        """
        translated = albumentations.translated(transform, _is_tail(python))
        return cls._translated("albumentations", translated)

    @classmethod
    def _translated(cls, library: str, translated: Translated) -> NamedRecipe:
        """Make the recipe of a pipeline; pixels go into its tail without normalisation."""
        keywords = translated.keywords
        if translated.tail and translated.tail_of != "tensor":
            keywords = {**keywords, "dtype": "uint8", "layout": "NHWC"}
        notes = "  ".join(translated.notes)
        return cls(library, notes, keywords, translated.mixing, translated.tail, translated.tail_of)

    @functools.cached_property
    def rule(self) -> ProcessorRule | None:
        """The rule by which the processor cuts images; None without a processor."""
        return rule_of(self.processor) if self.processor else None

    def to_json(self) -> str:
        """Return everything as JSON, with keys in order.

        Raises
        ------
        TypeError
            For keywords that JSON has no values for, and for functions in Python.
        """
        if self.tail:
            raise TypeError(
                f"recipe calls {', '.join(self.tail_names)}, and JSON has no functions: save the "
                "recipe of the pipeline without them"
            )
        return self.described()

    @property
    def tail_names(self) -> tuple[str, ...]:
        """Names of the functions in Python."""
        return tuple(getattr(call, "__qualname__", type(call).__name__) for call in self.tail)

    def described(self) -> str:
        """Return what `to_json` returns, with the names of functions; it cannot be read again."""
        parts: dict[str, Any] = {name: getattr(self, name) for name in _IN_JSON}
        if self.tail:
            parts["tail"] = self.tail_names
        return json.dumps(parts, sort_keys=True, default=_refused)

    @classmethod
    def from_json(cls, text: str) -> NamedRecipe:
        """Return the recipe that `to_json` wrote.

        Raises
        ------
        ValueError
            If the text is not a recipe.
        """
        try:
            parts = {key: _tuples(value) for key, value in json.loads(text).items()}
            for key, value in parts.items():
                if not isinstance(value, _IN_JSON.get(key, ())):
                    raise TypeError(f"{key}={value!r:.60} is not a part of one")
            return cls(**parts)
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ValueError(f"recipe={text!r:.80} is not a recipe in JSON: {error}") from None

    def __str__(self) -> str:
        lines = [f"{self.name or 'recipe'}: {self.reproduces}".rstrip(": ")]
        for what, values in (
            ("ImageRecordIter", self.keywords),
            ("MixBatches", self.mixing),
            ("preprocess", self.processor),
        ):
            if values:
                lines += [f"{what}:", *(f"    {name}={value!r}" for name, value in values.items())]
        if self.tail:
            lines += ["in Python:", *(f"    {name}" for name in self.tail_names)]
        return "\n".join(lines)


#: What JSON has of a recipe, which no function can be in.
_IN_JSON = {
    "name": str, "reproduces": str, "keywords": dict, "mixing": dict, "processor": dict,
}  # fmt: skip


def _given(images: tuple[int, int | None, int | None] | None) -> Given:
    """Return what is known of the images that a pipeline is given."""
    if images is None:
        return Given()
    channels, height, width = images
    if channels not in (1, 3):
        raise ValueError(f"images={images!r}: expected 1 or 3 channels, a height and a width")
    return Given(channels, None if height is None or width is None else (height, width))


def _is_tail(python: str | None) -> bool:
    if python not in (None, "tail"):
        raise ValueError(f'python={python!r}: expected None or "tail"')
    return python is not None


def _refused(value: Any) -> Any:
    raise TypeError(
        f"recipe has {value!r:.60}, a {type(value).__name__}, which a saved state cannot hold: "
        "give numbers, strings, lists and dictionaries"
    )


def _tuples(value: Any) -> Any:
    """Return lists of JSON as the tuples that they were."""
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _views(name: str, value: Any) -> tuple[dict[str, Any], ...]:
    """Return the keywords for each view of an image."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        raise TypeError(f"{name}={value!r:.80}: expected a sequence of dictionaries of keywords")
    views = tuple(value)
    if not all(isinstance(view, Mapping) for view in views):
        raise TypeError(f"{name}={value!r:.80}: expected dictionaries of keywords")
    if not 2 <= len(views) <= MOST_VIEWS:
        raise ValueError(f"{name} has {len(views)} entries: expected 2 to {MOST_VIEWS} views")
    return tuple(dict(view) for view in views)


@dataclass(frozen=True, kw_only=True)
class NamedRecipeOptions(Options):
    """Whole recipes, and several of them for one image."""

    recipe: Any = option(
        None,
        "str or NamedRecipe or dict",
        """Keywords that belong together, by the name of a known recipe such as "timm/deit-s", as
        an object, its JSON, or a dictionary. Keywords that are also given take precedence.""",
        optional(lambda name, value: NamedRecipe.of(value)),
    )
    views: Any = option(
        None,
        "sequence of dict",
        """Several arrays of every batch, each with these keywords of augmentation in addition to
        the common ones: 2 to 16 views of an image that is decoded once.""",
        optional(_views),
    )


#: Keywords that uint8 pixels have no room for.
_NORMALISATION = frozenset(
    (*(f"{kind}_{channel}" for kind in ("mean", "std") for channel in "rgba"), "scale")
)


def expanded(
    keywords: dict[str, Any], dtype: Any = None, processors: bool = False
) -> dict[str, Any]:
    """Return keywords of a provider; those of its `recipe` where they are not given themselves.

    Without normalisation where uint8 pixels are asked for, by keyword or as the `dtype` of all.
    Recipes of `processors` of vision-language models are refused where nobody follows them.
    """
    if keywords.get("recipe") is None:
        return keywords
    recipe = NamedRecipe.of(keywords["recipe"])
    if not processors:
        refuse_processor(recipe)
    beneath = recipe.keywords
    asked = keywords.get("dtype", dtype)
    if _is_uint8(asked) and keywords.get("normalise_on", "host") == "host":
        beneath = _without_normalisation(beneath)
        views = beneath.get("views")
        if views:
            beneath["views"] = tuple(map(_without_normalisation, views))
    return {**beneath, **keywords, "recipe": recipe}


def refuse_processor(recipe: NamedRecipe) -> None:
    """Refuse a recipe of images that have sizes of their own."""
    if recipe.processor:
        raise ValueError(
            f"recipe={recipe.processor['image_processor_type']}: its images have sizes of their "
            "own, which are for ImageRecordIter, ImageLoader and iterators.preprocess"
        )


def _is_uint8(dtype: Any) -> bool:
    with contextlib.suppress(TypeError):
        return dtype is not None and dtype_name(dtype) == "uint8"
    return False


def _without_normalisation(keywords: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if name not in _NORMALISATION}


_IMAGENET = {
    "mean_r": 123.675, "mean_g": 116.28, "mean_b": 103.53,
    "std_r": 58.395, "std_g": 57.12, "std_b": 57.375,
}  # fmt: skip
_HALVES = {
    "mean_r": 127.5, "mean_g": 127.5, "mean_b": 127.5, "std_r": 127.5, "std_g": 127.5,
    "std_b": 127.5,
}  # fmt: skip
_CROPPED = {
    "random_resized_crop": True,
    "min_random_area": 0.08,
    "min_aspect_ratio": 3 / 4,
    "max_aspect_ratio": 4 / 3,
    "log_aspect_ratio": True,
    "rand_mirror": True,
}
_ANTIALIAS = "Pillow smooths while it reduces; here a JPEG is reduced while it is decoded."

#: All of them.
NAMED_RECIPES = (
    NamedRecipe(
        "torchvision/resnet50-v1",
        "torchvision's references/classification/train.py with its defaults: the first weights of "
        f"ResNet-50.  {_ANTIALIAS}",
        {"data_shape": (3, 224, 224), **_CROPPED, **_IMAGENET},
    ),
    NamedRecipe(
        "torchvision/resnet50-v2",
        "torchvision's references/classification/train.py as for IMAGENET1K_V2 of ResNet-50: "
        "--auto-augment ta_wide --random-erase 0.1 --train-crop-size 176 --mixup-alpha 0.2 "
        f"--cutmix-alpha 1.0 --label-smoothing 0.1.  {_ANTIALIAS}  Repeated augmentation is a "
        "matter of the order.",
        {
            "data_shape": (3, 176, 176),
            **_CROPPED,
            **_IMAGENET,
            "auto_augment": "trivialaugment",
            "augment_interpolation": "bilinear",
            "random_erasing": 0.1,
        },
        {"mixup": 0.2, "cutmix": 1.0, "label_smoothing": 0.1, "classes": 1000},
    ),
    NamedRecipe(
        "timm/deit-s",
        f"DeiT's main.py with its defaults, which are timm's create_transform.  {_ANTIALIAS}  "
        "Repeated augmentation is a matter of the order.",
        {
            "data_shape": (3, 224, 224),
            **_CROPPED,
            **_IMAGENET,
            "inter_method": 2,
            "auto_augment": "rand-m9-mstd0.5-inc1",
            "augment_interpolation": "bicubic",
            "augment_fill": (124, 116, 104),
            "random_erasing": 0.25,
            "erasing_value": "pixel",
            "erasing_area": (0.02, 1 / 3),
            "erasing_ratio": (0.3, 1 / 0.3),
        },
        {"mixup": 0.8, "cutmix": 1.0, "switch": 0.5, "label_smoothing": 0.1, "classes": 1000},
    ),
    NamedRecipe(
        "timm/deit3-s",
        "DeiT III's main.py --ThreeAugment --color-jitter 0.3 --reprob 0 --smoothing 0, without "
        f"--src.  {_ANTIALIAS}",
        {
            "data_shape": (3, 224, 224),
            **_CROPPED,
            **_IMAGENET,
            "inter_method": 2,
            "three_augment": True,
            "color_jitter": 0.3,
        },
        {"mixup": 0.8, "cutmix": 1.0, "switch": 0.5, "classes": 1000},
    ),
    NamedRecipe(
        "dino",
        "DINO's main_dino.py with its defaults: two global views of 224 pixels, eight local ones "
        f"of 96, with crops of 0.4 to 1 and of 0.05 to 0.4 of the area.  {_ANTIALIAS}",
        {
            "data_shape": (3, 224, 224),
            **_CROPPED,
            **_IMAGENET,
            "min_random_area": 0.4,
            "inter_method": 2,
            "color_jitter": (0.4, 0.4, 0.2, 0.1),
            "color_jitter_prob": 0.8,
            "random_grayscale": 0.2,
            "gaussian_blur": 0.5,
            "views": (
                {"gaussian_blur": 1.0},
                {"gaussian_blur": 0.1, "solarize_p": 0.2},
                *({"data_shape": (3, 96, 96), "min_random_area": 0.05, "max_random_area": 0.4},)
                * 8,
            ),
        },
    ),
    NamedRecipe(
        "insightface/arcface",
        "insightface's recognition/arcface_torch, dataset.py: mirror and normalisation of aligned "
        "faces.",
        {"data_shape": (3, 112, 112), "rand_mirror": True, **_HALVES},
    ),
    NamedRecipe(
        "insightface/arcface-aug",
        "insightface's recognition/arcface_torch, dataset.py with dali_aug=True.  Faces that are "
        "made small are so with one of five interpolations each way, and hues turn as in "
        "torchvision; DALI has its own linear ones.",
        {
            "data_shape": (3, 112, 112),
            "rand_mirror": True,
            **_HALVES,
            "low_resolution": 0.1,
            "low_resolution_side": (0.5, 0.8),
            "gaussian_blur": 0.2,
            "blur_sigma": (0.8, 1.1),
            "color_jitter": ((1, 1), (1, 1), (1, 1.2), (0, 20 / 360)),
            "color_jitter_prob": 0.2,
            "random_grayscale": 0.1,
        },
    ),
    NamedRecipe(
        "adaface",
        "AdaFace's dataset/augmenter.py with 0.2 for each: crop_augmentation_prob, "
        "low_res_augmentation_prob, photometric_augmentation_prob.",
        {
            "data_shape": (3, 112, 112),
            "rand_mirror": True,
            **_HALVES,
            "crop_on_fill": 0.2,
            "low_resolution": 0.2,
            "color_jitter": 0.5,
            "color_jitter_prob": 0.2,
        },
    ),
)
