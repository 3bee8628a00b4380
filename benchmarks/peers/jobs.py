"""Jobs of the contenders, described in one place.

Read by the program that compares and by all contenders, whatever their interpreter, so it imports
nothing but the standard library and stays readable for Python 3.8.  It measures nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["JOBS", "Job", "Recipe"]

IMAGENET_MEAN, IMAGENET_STD = (123.68, 116.779, 103.939), (58.393, 57.12, 57.375)


@dataclass(frozen=True)
class Recipe:
    """From a JPEG to a float32 image: in this order, and then mirrored at random.

    Attributes
    ----------
    size : int
        Height and width of the result in pixels.
    short_side : int or None
        The image is resized until its short side has so many pixels.
    crop : str
        "random_resized": a random part of the image (`area`, `aspect`), resized to `size`;
        "random": `size` x `size` pixels at a random place; "center": those in the middle, and the
        images are not mirrored; "none": images have that size.
    pillow : bool
        Resample as Pillow does, with the filter that grows with the reduction: antialiased.
    mean, std : tuple of float
        For red, green and blue: subtracted, and divided by.
    randaugment : tuple of int or None
        Operations and strength of torchvision's RandAugment, after the crop.
    erasing : float
        Probability that torchvision's RandomErasing erases a rectangle.
    extra : dict
        Further parameters of `ImageRecordIter`; only its two implementations do such a job.
    """

    size: int
    crop: str
    pillow: bool = False
    short_side: int | None = None
    area: tuple[float, float] = (0.08, 1.0)
    aspect: tuple[float, float] = (3 / 4, 4 / 3)
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    randaugment: tuple[int, int] | None = None
    erasing: float = 0.0
    extra: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One row of bars in the chart.

    Attributes
    ----------
    name, title : str
        On the command line, and for people.
    kind : str
        "images" (an epoch after the other, in batches), "decode" (files to arrays, by one thread),
        "processor" (files to the tensors of a vision-language model, by one thread) or "table" (a
        file, whole).
    pack : str
        What is read: the name of a method of `packs.Packs`.
    unit : str
        Of the rates.
    batch : int
        Images in a batch.
    recipe : Recipe or None
        What becomes of an image.
    processor : dict or None
        Settings of an image processor, and its class as "image_processor_type".
    columns : int
        Of the table.
    prepared : str or None
        The pack that this project reads instead, made of the same images: what it gains over the
        pack that the others read is a part of the job, "untouched" is measured as well.
    limits : bool
        Whether to measure the decoder alone as well; once for the same images is enough.
    contenders : tuple of str
        Who is compared; all that do jobs of this kind if nobody is named.
    bars : dict
        Ratio to be reached against a contender.
    """

    name: str
    title: str
    kind: str
    pack: str
    unit: str = "images/s"
    batch: int = 0
    recipe: Recipe | None = None
    processor: dict | None = None
    columns: int = 0
    prepared: str | None = None
    limits: bool = False
    contenders: tuple[str, ...] = ()
    bars: dict = field(default_factory=dict)

    def record_iter_parameters(self) -> dict:
        """Parameters of `ImageRecordIter` for the recipe, MXNet's and ours alike."""
        recipe = self.recipe
        parameters = {
            "data_shape": (3, recipe.size, recipe.size),
            "batch_size": self.batch,
            "shuffle": True,
            "rand_mirror": recipe.crop != "center",
            **{f"mean_{c}": value for c, value in zip("rgb", recipe.mean)},  # noqa: B905 (3.9)
            **{f"std_{c}": value for c, value in zip("rgb", recipe.std)},  # noqa: B905
            **recipe.extra,
        }
        if recipe.short_side:
            parameters["resize"] = recipe.short_side
        if recipe.crop == "random":
            parameters["rand_crop"] = True
        elif recipe.crop == "random_resized":
            parameters.update(
                random_resized_crop=True,
                min_random_area=recipe.area[0],
                max_random_area=recipe.area[1],
                min_aspect_ratio=recipe.aspect[0],
                max_aspect_ratio=recipe.aspect[1],
            )
        if recipe.pillow:
            parameters.update(resample="pillow", interpolation="bilinear")
            if recipe.crop == "random_resized":
                parameters["log_aspect_ratio"] = True
        if recipe.randaugment:
            num_ops, magnitude = recipe.randaugment
            parameters.update(auto_augment="randaugment", num_ops=num_ops, magnitude=magnitude)
        if recipe.erasing:
            parameters["random_erasing"] = recipe.erasing
        return parameters


RANDOM_RESIZED = Recipe(224, "random_resized")
RESIZE_CROP = Recipe(224, "random", short_side=256)
FACES = Recipe(112, "none", mean=(127.5,) * 3, std=(127.5,) * 3)
TODAY = Recipe(224, "random_resized", randaugment=(2, 9), erasing=0.25)
INTERNVL_TILES = {"size": {"height": 448, "width": 448}, "crop_to_patches": True}
#: Image processors of transformers: name, title, class without "ImageProcessor", settings.
PROCESSORS = (
    ("qwen2_vl", "Qwen2-VL", "Qwen2VL", {}),
    ("siglip2", "SigLIP 2 NaFlex", "Siglip2", {}),
    ("internvl3", "InternVL 3", "GotOcr2", INTERNVL_TILES),
    ("idefics3", "Idefics 3", "Idefics3", {}),
)
TRAINING = Recipe(224, "random_resized", pillow=True)
VALIDATION = Recipe(224, "center", pillow=True, short_side=256)
HEAVY = Recipe(
    224,
    "random",
    short_side=256,
    extra={
        "random_h": 36,
        "random_s": 50,
        "random_l": 50,
        "max_rotate_angle": 10,
        "max_shear_ratio": 0.1,
    },
)

PILLOW_CONTENDERS = ("torchvision_pillow", "torchvision_tensors", "dali")
PILLOW_BARS = {"torchvision_pillow": 3.0, "torchvision_tensors": 2.5, "dali": 2.0}

JOBS = {
    job.name: job
    for job in (
        Job(
            "random_resized_crop",
            "Photographs, random resized crop 224",
            "images",
            "photos",
            batch=128,
            recipe=RANDOM_RESIZED,
            limits=True,
            bars={"mxnet": 3.5, "dali": 1.5},
        ),
        Job(
            "resize_crop",
            "Photographs, short side 256, random crop 224",
            "images",
            "photos",
            batch=128,
            recipe=RESIZE_CROP,
            bars={"dali": 2.0},
        ),
        Job(
            "faces",
            "Faces 112 x 112",
            "images",
            "faces",
            batch=256,
            recipe=FACES,
            limits=True,
            bars={"mxnet": 3.5, "dali": 1.6},
        ),
        Job(
            "heavy",
            "Photographs, short side 256, rotated, sheared, random crop 224, colours changed",
            "images",
            "photos",
            batch=128,
            recipe=HEAVY,
            bars={"mxnet": 5.0},
        ),
        Job(
            "recipe",
            "Photographs, random resized crop 224, RandAugment of two operations, erasing",
            "images",
            "photos",
            batch=128,
            recipe=TODAY,
            contenders=("torchvision_pillow", "torchvision_tensors"),
            bars={"torchvision_pillow": 4.0, "torchvision_tensors": 4.0},
        ),
        Job(
            "training",
            "Photographs as torchvision trains: random resized crop 224, antialiased",
            "images",
            "photos",
            batch=128,
            recipe=TRAINING,
            contenders=PILLOW_CONTENDERS,
            bars=PILLOW_BARS,
        ),
        Job(
            "validation",
            "Photographs as torchvision validates: short side 256, centre 224, antialiased",
            "images",
            "photos",
            batch=128,
            recipe=VALIDATION,
            contenders=PILLOW_CONTENDERS,
            bars=PILLOW_BARS,
        ),
        Job(
            "optimized",
            "Photographs rewritten by `im2rec --optimize`, random resized crop 224",
            "images",
            "photos",
            batch=128,
            recipe=RANDOM_RESIZED,
            prepared="optimized_photos",
            bars={"dali": 2.0, "untouched": 1.25},
        ),
        Job(
            "raw",
            "Photographs as raw pixels, short side 256, random crop 224",
            "images",
            "photos",
            batch=128,
            recipe=RESIZE_CROP,
            prepared="raw_photos",
            bars={"untouched": 5.0},
        ),
        Job(
            "tars",
            "Photographs in the tar files of WebDataset, random resized crop 224",
            "images",
            "photos",
            batch=128,
            recipe=RANDOM_RESIZED,
            prepared="photo_tars",
            contenders=("webdataset",),
            bars={"webdataset": 3.0, "untouched": 0.95},
        ),
        Job(
            "png",
            "Photographs as PNG, short side 256, random resized crop 224",
            "images",
            "png_photos",
            batch=128,
            recipe=RANDOM_RESIZED,
            bars={"mxnet": 3.2, "dali": 1.8},
        ),
        Job(
            "progressive",
            "Progressive photographs, random resized crop 224",
            "images",
            "progressive_photos",
            batch=128,
            recipe=RANDOM_RESIZED,
            bars={"mxnet": 3.5, "dali": 1.8},
        ),
        Job(
            "webp",
            "Photographs as WebP, short side 256, random resized crop 224",
            "images",
            "webp_photos",
            batch=128,
            recipe=RANDOM_RESIZED,
        ),
        Job(
            "decode",
            "Photographs, JPEG, whole images to RGB arrays by one thread",
            "decode",
            "photos",
            bars={"simplejpeg": 1.6},
        ),
        Job(
            "decode_progressive",
            "Progressive photographs, whole images to RGB arrays by one thread",
            "decode",
            "progressive_photos",
            bars={"simplejpeg": 2.0},
        ),
        Job(
            "decode_faces",
            "Faces 112 x 112, JPEG, to RGB arrays by one thread",
            "decode",
            "faces",
            bars={"simplejpeg": 1.5},
        ),
        Job(
            "decode_png",
            "Photographs as PNG, short side 256, whole images to RGB arrays by one thread",
            "decode",
            "png_photos",
            contenders=("torchcodec", "torchvision", "kornia", "imagecodecs", "opencv", "pillow"),
            bars={"kornia": 2.8, "imagecodecs": 2.8, "opencv": 2.8, "pillow": 2.8},
        ),
        *(
            Job(
                f"{name}_{pack}",
                f"{what} to the tensors of {title}, by one thread",
                "processor",
                pack,
                batch=8,
                processor={"image_processor_type": f"{kind}ImageProcessor", **settings},
                bars={"transformers_pillow": 8.0, "transformers_torchvision": 3.0},
            )
            for name, title, kind, settings in PROCESSORS
            for pack, what in (("photos", "Photographs"), ("pages", "Pages of 1240 x 1700 pixels"))
        ),
        Job(
            "csv_floats",
            "CSV file of 100,000 x 50 floats to one float32 array",
            "table",
            "float_csv",
            unit="MB/s",
            columns=50,
            bars={"mxnet": 2.0, "pyarrow": 3.5},
        ),
        Job(
            "csv_integers",
            "CSV file of 60,000 x 784 integers below 256 to one float32 array",
            "table",
            "integer_csv",
            unit="MB/s",
            columns=784,
            bars={"mxnet": 2.0, "pyarrow": 8.0},
        ),
    )
}
