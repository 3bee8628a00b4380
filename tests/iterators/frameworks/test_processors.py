"""Processors of vision-language models: the tensors are those of transformers, to the bit."""

import io

import numpy as np
import pytest
from PIL import Image

from iterators import count_patches, preprocess
from iterators.images.augment.pipelines.processor_families import FAMILIES, rule_of
from recordio.errors import ImageSizeError

transformers = pytest.importorskip("transformers")
from transformers import image_processing_backends as backends  # noqa: E402
from transformers.image_utils import load_image  # noqa: E402
from transformers.models.gemma4 import image_processing_pil_gemma4 as gemma4  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(600)]

PAN = {
    "do_pan_and_scan": True,
    "pan_and_scan_min_crop_size": 100,
    "pan_and_scan_max_num_crops": 4,
    "pan_and_scan_min_ratio_to_activate": 1.2,
}
#: Classes with the settings of checkpoints, and with those of the class.
CASES = {
    "qwen2": ("Qwen2VL", {}),
    "qwen3": ("Qwen2VL", {"patch_size": 16, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}),
    "glm4v": ("Glm4v", {}),
    "glm46v": ("Glm46V", {}),
    "paddle": ("PaddleOCRVL", {}),
    "siglip2": ("Siglip2", {}),
    "siglip2-more": ("Siglip2", {"max_num_patches": 1024}),
    "got": ("GotOcr2", {}),
    "internvl": ("GotOcr2", {"crop_to_patches": True, "size": {"height": 448, "width": 448}}),
    "llava-next": (
        "LlavaNext",
        {"size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336}},
    ),
    "llava-next-class": ("LlavaNext", {}),
    "onevision": ("LlavaOnevision", {}),
    "idefics3": ("Idefics3", {}),
    "smolvlm": (
        "SmolVLM",
        {"size": {"longest_edge": 2048}, "max_image_size": {"longest_edge": 512}},
    ),
    "idefics3-whole": ("Idefics3", {"do_image_splitting": False}),
    "gemma3": ("Gemma3", {"size": {"height": 896, "width": 896}}),
    "gemma3-pan": ("Gemma3", PAN),
    "gemma4": ("Gemma4", {}),
    "gemma4-few": ("Gemma4", {"max_soft_tokens": 70}),
    "pixtral": ("Pixtral", {}),
    "mllama": ("Mllama", {"size": {"height": 560, "width": 560}}),
    "mllama-tiles": ("Mllama", {"max_image_tiles": 6}),
}


def processor(case, backend="Pil"):
    """The object of a case."""
    name, settings = CASES[case]
    return getattr(transformers, f"{name}ImageProcessor{backend}")(**settings)


def configuration(case):
    """The settings of a case, as a file would have them."""
    return {**processor(case).to_dict(), **CASES[case][1]}


def sizes(count=1000):
    """Random (height, width), a third of them strips."""
    rng = np.random.default_rng(7)
    found = np.exp(rng.uniform(np.log(20), np.log(3000), (count, 2)))
    found[::3, 0] = rng.uniform(1, 60, len(found[::3]))
    found[1::6] = found[1::6, ::-1]
    return found.astype(int)


def encoded(image, form="PNG", **more):
    """The bytes of an image file."""
    file = io.BytesIO()
    image.save(file, form, **more)
    return file.getvalue()


def picture(height, width, seed=0):
    """An RGB image with gradients and noise."""
    rng = np.random.default_rng(seed)
    across, down = np.linspace(0, 200, width), np.linspace(0, 200, height)
    values = across[None, :, None] * 0.5 + down[:, None, None] * [0.1, 0.4, 0.7]
    noise = rng.integers(0, 60, (height, width, 3))
    return Image.fromarray((values + noise).clip(0, 255).astype(np.uint8))


def files():
    """Image files of many kinds."""
    rgb = picture(243, 321)
    alpha = rgb.convert("RGBA")
    alpha.putalpha(picture(243, 321, 1).convert("L"))
    turned = Image.Exif()
    turned[0x112] = 6
    return [
        encoded(rgb, "JPEG", quality=93),
        encoded(picture(601, 420), "JPEG", progressive=True),
        encoded(rgb, "JPEG", exif=turned),
        encoded(rgb.convert("L"), "JPEG"),
        encoded(rgb.convert("CMYK"), "JPEG"),
        encoded(alpha),
        encoded(rgb.convert("P")),
        encoded(rgb.convert("LA")),
        encoded(rgb, "WEBP", lossless=True),
        encoded(rgb, "GIF"),
        encoded(picture(5, 7)),
        encoded(picture(40, 1500)),
        encoded(picture(1900, 1300)),
    ]


def same(found, expected, within=0.0):
    """Compare two results, name by name."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if not isinstance(value, np.ndarray):
            assert found[name] == value, name
            continue
        assert (found[name].shape, found[name].dtype) == (value.shape, value.dtype), name
        if within and name == "pixel_values":
            assert np.abs(found[name] - value).max() <= within
        else:
            assert np.array_equal(found[name], value), name


def test_every_family_has_a_case():
    assert {name for name, _ in CASES.values()} == set(FAMILIES)


@pytest.mark.parametrize("case", CASES)
def test_settings_are_those_of_the_class(case):
    name, settings = CASES[case]
    plain = getattr(transformers, f"{name}ImageProcessorPil")()
    bare = {"image_processor_type": f"{name}ImageProcessor"}
    assert rule_of(bare).config == rule_of(plain).config
    assert rule_of({**bare, **settings}).count(70, 90) == rule_of(configuration(case)).count(70, 90)
    assert rule_of(processor(case, "")) == rule_of(processor(case))


@pytest.mark.parametrize("case", CASES)
def test_a_thousand_sizes_become_the_same_shapes(case, monkeypatch):
    def black(image, size, **_):
        return np.broadcast_to(np.uint8(0), (3, *size))

    monkeypatch.setattr(backends, "np_resize", black)
    monkeypatch.setattr(gemma4, "resize", black)
    theirs, rule = processor(case), rule_of(configuration(case))
    for height, width in sizes().tolist():
        image = np.broadcast_to(np.uint8(0), (height, width, 3))
        try:
            expected = theirs(
                [image],
                do_rescale=False,
                do_normalize=False,
                return_tensors="np",
                input_data_format="channels_last",
            )
        except ValueError:
            with pytest.raises(ImageSizeError):
                rule.plan(height, width)
            continue
        plan = rule.plan(height, width)
        assert rule.shape(height, width) == expected["pixel_values"].shape, (height, width)
        for name, value in rule.outputs([plan], [(height, width)]).items():
            assert np.array_equal(value, expected[name]), (height, width, name)


@pytest.mark.parametrize("case", CASES)
def test_pixels_are_those_of_pillow(case):
    theirs = processor(case)
    rgb = not theirs.to_dict().get("do_convert_rgb")
    given = files()
    loaded = [load_image(Image.open(io.BytesIO(data))) for data in given]
    expected = theirs(loaded, return_tensors="np", **CASES[case][1])
    same(preprocess(given, configuration(case), threads=3), dict(expected))
    opened = [Image.open(io.BytesIO(data)) for data in given[5:8]]
    if rgb:
        opened = [image.convert("RGB") for image in opened]
    expected = theirs(opened, return_tensors="np", **CASES[case][1])
    same(preprocess(opened, configuration(case)), dict(expected))
    if not rgb:
        arrays = [np.array(opened[0]), np.array(opened[0].convert("L"))[:, :, None]]
        expected = theirs(arrays, return_tensors="np", **CASES[case][1])
        same(preprocess(arrays, configuration(case)), dict(expected))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("lengths", [[2, 1, 0], [0, 2], [1, 1], [3]], ids=str)
def test_lists_of_images_are_samples(case, lengths):
    theirs, made = processor(case), [picture(60, 90), picture(300, 200, 1), picture(90, 400, 2)]
    given = [made[3 - length :] for length in lengths]
    more = CASES[case][1]
    if "Idefics3" in type(theirs).__name__:
        more = {**more, "return_row_col_info": True}
    expected = dict(theirs(given, return_tensors="np", **more))
    found = preprocess(given, {**configuration(case), **more})
    assert found.pop("image_counts").tolist() == lengths
    same(found, expected)


@pytest.mark.parametrize("case", ["qwen2", "siglip2", "internvl", "idefics3", "pixtral", "mllama"])
def test_torchvision_is_near(case):
    theirs, given = processor(case, ""), [picture(243, 321), picture(420, 600, 2)]
    tensors = theirs(given, return_tensors="pt", **CASES[case][1])
    expected = {
        key: value.numpy() if key != "num_tiles" else value for key, value in tensors.items()
    }
    level = 1 / 255 / min(theirs.image_std)
    same(preprocess(given, configuration(case)), expected, within=2.01 * level)


def test_what_is_refused_is_refused():
    given = [picture(3, 900)]
    with pytest.raises(ValueError, match="aspect ratio"):
        processor("qwen2")(given)
    with pytest.raises(ImageSizeError, match="record 0: absolute aspect ratio"):
        preprocess(given, processor("qwen2"))


def test_counts_are_those_of_vllm():
    theirs = processor("qwen2")
    rows = sizes(200)
    rows = rows[rows.max(1) <= 200 * rows.min(1)]
    expected = [theirs.get_number_of_image_patches(*row) for row in rows.tolist()]
    assert count_patches(rows, theirs).tolist() == expected
