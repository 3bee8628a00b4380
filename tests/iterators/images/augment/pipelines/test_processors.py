"""Configurations of image processors as keywords."""

import json

import pytest

from iterators import NamedRecipe, PipelineError

from .library_classes import fake

VIT = {
    "do_resize": True, "size": {"height": 224, "width": 200}, "resample": 2, "do_rescale": True,
    "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3, "image_processor_type": "ViTImageProcessor",
}  # fmt: skip
VALUES = {f"{kind}_{c}": 127.5 for kind in ("mean", "std") for c in "rgb"}
CLIP = {
    **VIT, "size": {"shortest_edge": 224}, "crop_size": {"height": 224, "width": 224},
    "do_center_crop": True, "resample": 3, "image_processor_type": "CLIPImageProcessor",
    "do_convert_rgb": True,
}  # fmt: skip
FLOOR = {"crop_position": "center_floor"}
CONVNEXT = {**VIT, "size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 3}
CONVNEXT["image_processor_type"] = "ConvNextImageProcessor"


def keywords(config):
    found = NamedRecipe.from_processor(config).keywords
    assert found.pop("resample") == "pillow" and found.pop("orient") is False
    return found


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (VIT, {"data_shape": (3, 224, 200), "resize": (224, 200)}),
        (VIT | {"size": 64}, {"data_shape": (3, 64, 64), "resize": (64, 64)}),
        (VIT | {"size": [64, 32]}, {"data_shape": (3, 64, 32), "resize": (64, 32)}),
        (VIT | {"size": {"height": 9, "width": 9, "shortest_edge": None}},
         {"data_shape": (3, 9, 9), "resize": (9, 9)}),
        (CLIP, {**FLOOR, "data_shape": (3, 224, 224), "resize": 224, "interpolation": "bicubic"}),
        (CLIP | {"size": 240, "crop_size": 200},
         {**FLOOR, "data_shape": (3, 200, 200), "resize": 240, "interpolation": "bicubic"}),
        (CLIP | {"use_square_size": True},
         {"data_shape": (3, 224, 224), "resize": (224, 224), "interpolation": "bicubic"}),
        (VIT | {"size": 240, "default_to_square": False, "do_center_crop": True, "crop_size": 200},
         {**FLOOR, "data_shape": (3, 200, 200), "resize": 240}),
        (VIT | {"ensure_multiple_of": 1, "size_divisor": None, "keep_aspect_ratio": False},
         {"data_shape": (3, 224, 200), "resize": (224, 200)}),
        (VIT | {"size": 256, "do_center_crop": True, "crop_size": 224},
         {**FLOOR, "data_shape": (3, 224, 224), "resize": (256, 256)}),
        (CONVNEXT,
         {**FLOOR, "data_shape": (3, 224, 224), "resize": 256, "interpolation": "bicubic"}),
        (CONVNEXT | {"size": {"shortest_edge": 384}},
         {"data_shape": (3, 384, 384), "resize": (384, 384), "interpolation": "bicubic"}),
        (CLIP | {"image_processor_type": "LevitImageProcessor"},
         {**FLOOR, "data_shape": (3, 224, 224), "resize": 256, "interpolation": "bicubic"}),
    ],
)  # fmt: skip
def test_geometry(config, expected):
    assert keywords(config) == {"interpolation": "bilinear", **VALUES, **expected}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, VALUES),
        ({"do_normalize": False}, {"scale": 1 / 255}),
        ({"do_rescale": False, "do_normalize": False}, {"dtype": "uint8"}),
        ({"do_rescale": False, "image_mean": 100, "image_std": 50},
         {f"mean_{c}": 100 for c in "rgb"} | {f"std_{c}": 50 for c in "rgb"}),
        ({"rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, "image_std": [1.0] * 3}, VALUES),
    ],
)  # fmt: skip
def test_values(change, expected):
    geometry = {"data_shape": (3, 224, 200), "resize": (224, 200), "interpolation": "bilinear"}
    assert keywords(VIT | change) == {**geometry, **expected}


def test_a_path_a_folder_and_an_object(tmp_path):
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps(CLIP))
    expected = NamedRecipe.from_processor(CLIP)
    assert NamedRecipe.from_processor(path) == expected
    assert NamedRecipe.from_processor(str(tmp_path)) == expected
    without = {key: value for key, value in CLIP.items() if key != "image_processor_type"}
    processor = fake("transformers", "CLIPImageProcessor", to_dict=lambda self: without)
    assert NamedRecipe.from_processor(processor) == expected
    both = fake("transformers", "CLIPProcessor", image_processor=processor)
    assert NamedRecipe.from_processor(both) == expected
    assert NamedRecipe.from_processor({"image_processor": CLIP}) == expected
    assert "center_floor" in str(expected)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"do_pad": True}, "ViTImageProcessor: do_pad=True has no counterpart here: set it to"),
        ({"keep_aspect_ratio": True}, "keep_aspect_ratio=True keeps the aspect ratio in a way"),
        ({"do_flip_channel_order": True}, "exchanges the channels"),
        ({"size": {"longest_edge": 9}}, "size={'longest_edge': 9}: only height and width, or"),
        ({"size": {"shortest_edge": 9}, "max_size": 9, "use_square_size": True}, "squares of 224"),
        ({"size": 9, "max_size": 9, "default_to_square": False}, "max_size=9 limits the long side"),
        ({"patch_size": 14}, "patch_size=14 is not known here: drop it if it changes no pixel"),
        ({"do_center_crop": True, "crop_size": 300}, "pads them by rules that differ"),
        ({"ensure_multiple_of": 14}, "rounds sizes to multiples"),
        ({"crop_pct": 0.9}, "belongs to a rule that is not known"),
        ({"image_processor_type": "PerceiverImageProcessor"}, "crops before it resizes"),
        ({"resample": 9}, "has the interpolation 9"),
    ],
)
def test_what_has_no_counterpart(change, text):
    with pytest.raises(PipelineError, match=text):
        NamedRecipe.from_processor(VIT | change)


def test_what_is_no_processor(tmp_path):
    with pytest.raises(TypeError, match="expected the path of a preprocessor_config.json"):
        NamedRecipe.from_processor(3)
    with pytest.raises(FileNotFoundError):
        NamedRecipe.from_processor(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("kind", "size", "expected"),
    [
        ("CLIP", 96, 96),
        ("ChineseCLIP", 96, 96),
        ("Bit", 96, 96),
        ("Llava", 96, 96),
        ("MobileNetV2", 96, 96),
        ("Siglip", 96, 96),
        ("ViT", 96, (96, 96)),
        ("DeiT", 256, (256, 256)),
        ("Blip", 96, (96, 96)),
        ("Segformer", 96, (96, 96)),
        ("CLIP", None, 224),
        ("DeiT", None, (256, 256)),
        ("MobileNetV1", None, 256),
    ],
)
def test_sizes_of_one_number_and_none_by_class(kind, size, expected):
    for ending in ("ImageProcessor", "ImageProcessorFast", "FeatureExtractor"):
        config = {"image_processor_type": kind + ending, "size": size, "crop_size": 64}
        found = NamedRecipe.from_processor(config).keywords
        assert found["resize"] == expected
        assert found["mean_r"] > 100


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"size": 224}, "may be the short side or a square"),
        ({"do_resize": None}, "says size, but no do_resize"),
        ({"resample": None}, "says do_resize, but no resample"),
        ({"crop_size": 200}, "says crop_size, but no do_center_crop"),
        ({"image_mean": None}, "says do_normalize, but no image_mean"),
    ],
)
def test_what_is_left_to_a_class_that_is_not_known(change, text):
    for name in ("NewImageProcessor", None):
        with pytest.raises(PipelineError, match=text):
            NamedRecipe.from_processor(VIT | {"image_processor_type": name} | change)


def own(name, module, *bases, **members):
    def process(self):
        """Stand for a method."""

    methods = dict.fromkeys(members.pop("methods", ()), process)
    return type(name, bases, {"__module__": module, **methods, **members})


BACKEND = own(
    "TorchvisionBackend", "transformers.image_processing_backends",
    methods=("_preprocess", "resize", "to_dict", "__call__"),
)  # fmt: skip


def of_library(name, *bases, **members):
    return own(name, f"transformers.models.{name}", *(bases or (BACKEND,)), **members)


LEVIT = of_library("LevitImageProcessor", methods=("resize",))
SETTINGS = {"to_dict": lambda self: CLIP | {"image_processor_type": type(self).__name__}}


@pytest.mark.parametrize(
    "kind",
    [
        own("MyLevit", "mine", LEVIT, methods=("_preprocess",)),
        own("MyLevit", "transformers_modules.mine", LEVIT, methods=("__call__",)),
        own("LevitImageProcessor", "mine", LEVIT, methods=("resize",)),
        own("MyLevit", "mine", own("Between", "mine", LEVIT, methods=("resize",))),
        of_library("UVDocImageProcessor", methods=("_preprocess",)),
        of_library("NewImageProcessor", LEVIT, methods=("_preprocess",)),
        of_library("NewImageProcessor", of_library("Qwen2VLImageProcessor"), methods=("resize",)),
        own("Mine", "mine", BACKEND, methods=("_preprocess",)),
    ],
)
def test_a_class_that_processes_in_its_own_way(kind):
    processor = type(kind.__name__, (kind,), {"__module__": kind.__module__, **SETTINGS})()
    with pytest.raises(PipelineError, match="of its own, which may make other pixels"):
        NamedRecipe.from_processor(processor)
    assert NamedRecipe.from_processor(CLIP | {"image_processor_type": "Mine"}).keywords


@pytest.mark.parametrize(
    ("kind", "resize"),
    [
        (LEVIT, 256),
        (own("MyLevit", "mine", LEVIT, methods=("__init__", "post_process", "more")), 256),
        (of_library("NewImageProcessor", methods=("post_process_depth",)), 224),
        (of_library("VideoMAEImageProcessor", methods=("_preprocess",)), 224),
        (own("Wrapper", "mine"), 224),
    ],
)
def test_a_class_that_is_derived_works_as_the_one_that_is_known(kind, resize):
    kind.to_dict = SETTINGS["to_dict"]
    assert keywords(kind())["resize"] == resize
