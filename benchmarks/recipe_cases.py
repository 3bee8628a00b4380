"""Cases of today's recipes: costs of policies, erasing, changes of faces and several views.

Each is compared with the same batches without it, in the same run; torchvision is a contender of
`compare.py`.
"""

from __future__ import annotations

from functools import partial

from harness import Rate, absolute, case, compare
from image_cases import AREA, IMAGENET, provider_of, steady_rate

MIRRORED_CROPS = {
    "random_resized_crop": True,
    "log_aspect_ratio": True,
    "rand_mirror": True,
    **AREA,
}


@case
def todays_recipe(material):
    """RandAugment of two operations and erasing on random resized crops, against crops alone."""
    common = {"data_shape": (3, 224, 224), "batch_size": 128, **MIRRORED_CROPS, **IMAGENET}
    recipes = {
        "RandAugment(2, 9) and erasing 224": {"auto_augment": "randaugment"},
        "rand-m9-mstd0.5-inc1 and erasing with noise 224": {
            "auto_augment": "rand-m9-mstd0.5-inc1",
            "erasing_value": "pixel",
        },
    }
    for name, recipe in recipes.items():
        with (
            provider_of(
                material, material.photo_records, random_erasing=0.25, **recipe, **common
            ) as today,
            provider_of(material, material.photo_records, **common) as plain,
        ):
            yield compare(
                name,
                "images/s",
                partial(steady_rate, today),
                partial(steady_rate, plain),
                bar=0.75,
                rounds=material.rounds,
                detail="reference: random resized crop",
            )


@case
def pillow_filters(material):
    """Pillow's bilinear filter against resampling by default, both of images decoded in full."""
    common = {"data_shape": (3, 224, 224), "batch_size": 128, **IMAGENET}
    recipes = {
        "random resized crop": {**MIRRORED_CROPS},
        "short side 256, centre": {"resize": 256},
    }
    for name, recipe in recipes.items():
        with (
            provider_of(
                material, material.photo_records, resample="pillow", **recipe, **common
            ) as filtered,
            provider_of(
                material, material.photo_records, scaled_decode=False, **recipe, **common
            ) as plain,
        ):
            yield compare(
                f"Pillow's filters, {name} 224",
                "images/s",
                partial(steady_rate, filtered),
                partial(steady_rate, plain),
                bar=0.75,
                rounds=material.rounds,
                detail="reference: resampling by default without scaled decode",
            )


@case
def face_recipes(material):
    """Faces with the recipes of arcface, one without and one with changes of the pixels."""
    for name in ("insightface/arcface", "insightface/arcface-aug", "adaface"):
        with provider_of(
            material, material.face_records, threads=1, recipe=name, batch_size=256
        ) as provider:
            rates = [steady_rate(provider).processor for _ in range(1 + material.rounds)]
        yield absolute(
            f"faces 112, {name}",
            "images/CPU s",
            rates[1:],
            bar=10_000,
            detail="of one core",
        )


@case
def views_of_one_decode(material):
    """Both large views of DINO in one epoch against an epoch for each."""
    common = {
        "data_shape": (3, 224, 224),
        "batch_size": 64,
        **MIRRORED_CROPS,
        **IMAGENET,
        "min_random_area": 0.4,
        "inter_method": 2,
        "color_jitter": (0.4, 0.4, 0.2, 0.1),
        "color_jitter_prob": 0.8,
        "random_grayscale": 0.2,
    }
    views = {"gaussian_blur": 1.0}, {"gaussian_blur": 0.1, "solarize_p": 0.2}
    with (
        provider_of(material, material.photo_records, views=views, **common) as together,
        provider_of(material, material.photo_records, **common, **views[0]) as first,
        provider_of(material, material.photo_records, **common, **views[1]) as second,
    ):
        yield compare(
            "two views of DINO",
            "records/s",
            partial(steady_rate, together),
            partial(one_after_the_other, first, second),
            bar=1.4,
            rounds=material.rounds,
            detail="reference: an epoch for each view",
        )


def one_after_the_other(*providers):
    """Rate of records that have been through all of these."""
    rates = [steady_rate(provider) for provider in providers]
    elapsed = 1 / sum(1 / rate.elapsed for rate in rates)
    return Rate(elapsed, 1 / sum(1 / rate.processor for rate in rates))
