"""Recipes by name: the keywords with which a well-known script trains, as one object.

A `NamedRecipe` can be printed, compared and saved as JSON.  It draws nothing; `recipe` and
`policy_options` describe the keywords.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recordio.keywords.checks import did_you_mean
from recordio.keywords.options import Options, option, optional

__all__ = ["MOST_VIEWS", "NAMED_RECIPES", "NamedRecipe", "NamedRecipeOptions", "expanded"]

#: Of an image; the image stage has a fixed table.
MOST_VIEWS = 16


@dataclass(frozen=True)
class NamedRecipe:
    """Keywords that belong together.

    Parameters
    ----------
    name : str
    reproduces : str
        Which script it is taken from, and what differs.
    keywords : dict
        Of `iterators.ImageRecordIter`.
    mixing : dict
        Of `iterators.MixBatches`; empty if the script mixes nothing.

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

    def to_json(self) -> str:
        """Return everything as JSON, with keys in order.

        Raises
        ------
        TypeError
            For keywords that JSON has no values for.
        """
        return json.dumps(vars(self), sort_keys=True, default=_refused)

    @classmethod
    def from_json(cls, text: str) -> NamedRecipe:
        """Return the recipe that `to_json` wrote.

        Raises
        ------
        ValueError
            If the text is none.
        """
        try:
            found = json.loads(text)
            return cls(**{key: _tuples(value) for key, value in found.items()})
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"recipe={text!r:.80} is no recipe in JSON: {error}") from None

    def __str__(self) -> str:
        lines = [f"{self.name or 'recipe'}: {self.reproduces}".rstrip(": ")]
        for what, values in (("ImageRecordIter", self.keywords), ("MixBatches", self.mixing)):
            if values:
                lines += [f"{what}:", *(f"    {name}={value!r}" for name, value in values.items())]
        return "\n".join(lines)


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
        """Keywords that belong together, by the name of a known recipe such as "timm/deit-s", as an
        object, its JSON, or a dictionary.  Keywords that are given beside it win.""",
        optional(lambda name, value: NamedRecipe.of(value)),
    )
    views: Any = option(
        None,
        "sequence of dict",
        """Several arrays of every batch, each with these keywords of augmentation beside the common
        ones: 2 to 16 views of an image that is decoded once.""",
        optional(_views),
    )


def expanded(keywords: dict[str, Any]) -> dict[str, Any]:
    """Return keywords of a provider; those of its `recipe` where they are not given themselves."""
    if keywords.get("recipe") is None:
        return keywords
    recipe = NamedRecipe.of(keywords["recipe"])
    return {**recipe.keywords, **keywords, "recipe": recipe}


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
