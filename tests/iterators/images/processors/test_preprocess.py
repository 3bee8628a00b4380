"""Tensors of vision-language models without transformers: sizes, memory, errors and threads.

The numbers were made by the processors of transformers 5.24 with their Pillow backend; the tests in
`frameworks` compare with the classes themselves.
"""

import hashlib
import io
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from PIL import Image

from iterators import NamedRecipe, PipelineError, count_patches, preprocess
from iterators.images.augment.pipelines.processor_families import FAMILIES, rule_of
from recordio.errors import ImageDecodeError, ImageFileError, ImageSizeError

QWEN = {"image_processor_type": "Qwen2VLImageProcessorFast", "min_pixels": 3136}
SIGLIP = {"image_processor_type": "Siglip2ImageProcessor"}
INTERN = {
    "image_processor_type": "GotOcr2ImageProcessor",
    "crop_to_patches": True,
    "size": {"height": 448, "width": 448},
}
SIZES = [(1, 1), (7, 5), (30, 40), (300, 300), (480, 640), (1700, 1240), (90, 3000), (4000, 3000)]
#: Patches or tiles of `SIZES`; 0 where the processor makes an error of a size.
COUNTS = {
    "Qwen2VL": [16, 24, 24, 484, 1564, 4920, 1284, 4920],
    "Glm4v": [36, 48, 48, 484, 1564, 10736, 1284, 30000],
    "Glm46V": [36, 48, 48, 484, 1564, 10736, 1284, 30000],
    "PaddleOCRVL": [784, 816, 768, 784, 1564, 10736, 1284, 11844],
    "Siglip2": [49, 247, 252, 256, 252, 252, 255, 252],
    "Gemma4": [2304, 2394, 2394, 2304, 2394, 2394, 1728, 2394],
    "GotOcr2": [1, 1, 1, 1, 1, 1, 1, 1],
    "Gemma3": [1, 1, 1, 1, 1, 1, 1, 1],
    "Idefics3": [17, 13, 13, 17, 13, 13, 5, 13],
    "SmolVLM": [17, 13, 13, 17, 13, 13, 5, 13],
    "Pixtral": [1, 1, 6, 361, 1200, 3008, 128, 3072],
    "LlavaNext": [7, 7, 7, 7, 10, 10, 11, 10],
    "LlavaOnevision": [2, 2, 2, 2, 5, 21, 7, 31],
    "Mllama": [1, 1, 1, 4, 4, 4, 4, 4],
}
#: SHA-256 of the bytes of ``pixel_values``, in part.
DIGESTS = {
    "Qwen2VL": "9d48f6908fb5d0f5",
    "Glm4v": "d8ea755e85ab2d04",
    "Glm46V": "d8ea755e85ab2d04",
    "PaddleOCRVL": "25c2f8c88e9bacea",
    "Siglip2": "5b881b275e369757",
    "Gemma4": "50941d1ab38696a1",
    "GotOcr2": "c598f490b7885733",
    "Gemma3": "c7222568bce8df82",
    "Idefics3": "73edad49a906a84a",
    "SmolVLM": "73edad49a906a84a",
    "Pixtral": "b639bb994641ee2b",
    "LlavaNext": "efad238c455c7f22",
    "LlavaOnevision": "1a15dcd98c133082",
    "Mllama": "38844b30b932b357",
}


def name(family):
    """The configuration of a class with its own settings."""
    return {"image_processor_type": f"{family}ImageProcessor"}


def pixels(height, width, channels=3):
    """An image whose values follow from their positions."""
    y, x, c = np.ogrid[:height, :width, :channels]
    return ((x * 3 + y * 5 + c * 70 + x * y // 7) % 256).astype(np.uint8)


def png(array):
    """An image file."""
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("family", FAMILIES)
def test_counts_are_those_of_transformers(family):
    rule = rule_of(name(family))
    for size, count in zip(SIZES, COUNTS[family], strict=True):
        if count:
            assert rule.count(*size) == count
            assert rule.shape(*size)[-len(rule.item([rule.plan(*size)])) :]
        else:
            with pytest.raises(ImageSizeError):
                rule.count(*size)


@pytest.mark.parametrize("family", FAMILIES)
def test_pixels_are_those_of_transformers(family):
    images = [pixels(120, 90), pixels(64, 200), png(pixels(33, 31))]
    found = preprocess(images, name(family))["pixel_values"]
    assert hashlib.sha256(found.tobytes()).hexdigest()[:16] == DIGESTS[family]


def test_counts_of_many_sizes():
    counts = count_patches(np.array([(600, 800), (56, 84), (600, 800)]), QWEN)
    assert counts.dtype == np.int64
    assert counts.tolist() == [2436, 24, 2436]
    with pytest.raises(ImageSizeError, match="record 1: absolute aspect ratio") as raised:
        count_patches([(60, 60), (1, 900), (1, 900)], QWEN)
    assert raised.value.record == 1
    for wrong in ([1, 2], [(1.5, 2)], [(1, 2, 3)]):
        with pytest.raises(ValueError, match="rows of whole numbers"):
            count_patches(wrong, QWEN)
    assert count_patches(np.zeros((0, 2), int), QWEN).shape == (0,)


def test_a_rule_is_an_object_with_a_value():
    recipe = NamedRecipe.from_processor(QWEN)
    assert NamedRecipe.from_json(recipe.to_json()).rule == recipe.rule
    assert recipe.rule != rule_of(SIGLIP)
    assert recipe.rule.shape(600, 800) == (2436, 1176)
    assert "Qwen2VLImageProcessorFast" in str(recipe)


@pytest.mark.parametrize("form", ["bytes", "path", "array", "pillow", "memoryview"])
def test_every_kind_of_image_is_taken(form, tmp_path):
    array = pixels(120, 90)
    path = tmp_path / "a.png"
    path.write_bytes(png(array))
    given = {
        "bytes": png(array),
        "path": path,
        "array": array,
        "pillow": Image.fromarray(array),
        "memoryview": memoryview(png(array)),
    }[form]
    found = preprocess([given, given], QWEN, threads=2)
    expected = preprocess([array, array], QWEN, threads=1)
    assert np.array_equal(found["pixel_values"], expected["pixel_values"])


def test_files_are_upright_and_without_alpha_and_images_of_pillow_are_not():
    array, exif = pixels(60, 90), Image.Exif()
    exif[0x112] = 6
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG", exif=exif)
    assert preprocess([file.getvalue()], QWEN)["image_grid_thw"].tolist() == [[1, 6, 4]]
    assert preprocess([Image.open(file)], QWEN)["image_grid_thw"].tolist() == [[1, 4, 6]]
    clear = np.concatenate([array, np.zeros((60, 90, 1), np.uint8)], 2)
    white = preprocess([np.full((60, 90, 3), 255, np.uint8)], QWEN)["pixel_values"]
    for image in (clear, Image.fromarray(clear)):
        assert np.array_equal(preprocess([image], QWEN)["pixel_values"], white)
    opaque = preprocess([array], QWEN)["pixel_values"]
    assert np.array_equal(preprocess([png(clear)], QWEN)["pixel_values"], opaque)
    with pytest.raises(ImageDecodeError, match="record 0: the image has 4 channels, and the pro"):
        preprocess([clear], SIGLIP)


@pytest.mark.parametrize("config", [QWEN, SIGLIP, INTERN, name("Pixtral"), name("LlavaNext")])
def test_types_are_rounded_from_float32(config):
    images = [pixels(120, 90), pixels(64, 200)]
    exact = preprocess(images, config)["pixel_values"]
    half = preprocess(images, config, dtype="float16")["pixel_values"]
    assert half.dtype == np.float16
    assert np.array_equal(half, exact.astype(np.float16))
    plain = preprocess(images, config, dtype="uint8")["pixel_values"]
    assert plain.dtype == np.uint8
    off = preprocess(images, {**config, "do_rescale": False, "do_normalize": False})
    assert np.array_equal(plain, off["pixel_values"])
    with pytest.raises(ValueError, match="dtype='int8'"):
        preprocess(images, config, dtype="int8")


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    exact = preprocess([pixels(120, 90)], QWEN)["pixel_values"]
    found = preprocess([pixels(120, 90)], QWEN, dtype="bfloat16")["pixel_values"]
    assert np.array_equal(found, exact.astype(ml_dtypes.bfloat16))
    torch = pytest.importorskip("torch")
    room = torch.empty(found.shape, dtype=torch.bfloat16)
    more = {"dtype": "bfloat16", "device": "cpu", "out": {"pixel_values": room}}
    tensor = preprocess([pixels(120, 90)], QWEN, **more)["pixel_values"]
    assert tensor.data_ptr() == room.data_ptr()
    assert torch.equal(tensor, torch.from_numpy(exact).bfloat16())


def test_device():
    torch = pytest.importorskip("torch")
    found = preprocess([pixels(120, 90)], QWEN, device="cpu")
    assert isinstance(found["image_grid_thw"], torch.Tensor)
    assert found["pixel_values"].dtype == torch.float32
    expected = preprocess([pixels(120, 90)], QWEN)["pixel_values"]
    assert np.array_equal(found["pixel_values"].numpy(), expected)
    room = torch.empty(found["pixel_values"].shape)
    assert preprocess([pixels(120, 90)], QWEN, out={"pixel_values": room})["pixel_values"] is room


@pytest.mark.parametrize("config", [QWEN, SIGLIP, name("Idefics3"), name("Mllama")])
def test_results_go_into_memory_of_the_caller(config):
    images = [pixels(120, 90), pixels(64, 200)]
    expected = preprocess(images, config)
    room = {name: np.full_like(value, 7) for name, value in expected.items()
            if isinstance(value, np.ndarray)}  # fmt: skip
    found = preprocess(images, config, out=room)
    for one, array in room.items():
        assert found[one] is array
        assert np.array_equal(array, expected[one])
    shape = expected["pixel_values"].shape
    first = int(rule_of(config).nested)
    longer = np.full((*shape[:first], shape[first] + 3, *shape[first + 1 :]), 7, np.float32)
    found = preprocess(images, config, out={"pixel_values": longer})["pixel_values"]
    assert found.base is longer and np.array_equal(found, expected["pixel_values"])


def test_memory_that_does_not_fit_is_refused():
    images = [pixels(120, 90)]
    shape = preprocess(images, QWEN)["pixel_values"].shape
    for wrong in (np.empty(shape), np.empty((shape[0] - 1, shape[1]), np.float32),
                  np.empty((1, *shape), np.float32)):  # fmt: skip
        with pytest.raises(ValueError, match=r"out\['pixel_values'\] has the shape"):
            preprocess(images, QWEN, out={"pixel_values": wrong})
    with pytest.raises(ValueError, match="must be contiguous"):
        wide = np.empty((shape[0], shape[1] * 2), np.float32)[:, ::2]
        preprocess(images, QWEN, out={"pixel_values": wide})
    with pytest.raises(ValueError, match=r"out\['pixels'\]: the processor gives no array"):
        preprocess(images, QWEN, out={"pixels": np.empty(shape, np.float32)})


FAMILY_NAMES = ["Qwen2VL", "Siglip2", "Pixtral", "LlavaNext", "Idefics3", "Mllama", "Gemma4"]


@pytest.mark.parametrize("family", FAMILY_NAMES)
@pytest.mark.parametrize("reuse", [False, True])
def test_bad_images_are_left_out(family, reuse, tmp_path):
    good = [png(pixels(40, 90)), png(pixels(64, 30)), png(pixels(50, 50))]
    torn = png(pixels(300, 200))
    torn = torn[: len(torn) // 2]  # the header is whole, and the largest of all
    images = [good[0], b"no image", good[1], torn, tmp_path / "missing.png", good[2]]
    expected = preprocess(good, name(family))
    more = {}
    if reuse:
        rows = preprocess([*good, *good, *good], name(family))["pixel_values"]
        more["out"] = {"pixel_values": np.concatenate([rows, rows])} if family == "Qwen2VL" else {}
    found = preprocess(images, name(family), on_error="skip", threads=3, **more)
    skipped = found.pop("skipped")
    assert [number for number, _ in skipped] == [1, 3, 4]
    assert "not an image of a known format" in skipped[0][1]
    assert "missing.png" in skipped[2][1]
    assert found.keys() == expected.keys()
    for one, value in expected.items():
        assert np.array_equal(found[one], value), one
    for last, kind in ((2, ImageDecodeError), (4, ImageDecodeError), (6, ImageDecodeError)):
        with pytest.raises(kind) as raised:
            preprocess(images[:last], name(family), threads=2)
        assert raised.value.record == 1
    with pytest.raises(ImageFileError, match=r"missing.png, record 1"):
        preprocess([good[0], tmp_path / "missing.png"], name(family))


@pytest.mark.parametrize("family", FAMILIES)
def test_lists_of_images_are_samples(family):
    a, b, c = pixels(60, 90), png(pixels(64, 30)), pixels(50, 50)
    given = [[a, b], [c], [], [a] * 9]
    config = name(family)
    if family in ("Idefics3", "SmolVLM"):  # which cut many large tiles
        config |= {"size": {"longest_edge": 256}, "max_image_size": {"longest_edge": 64}}
    found = preprocess(given, config, threads=3)
    counts = found.pop("image_counts")
    assert counts.dtype == np.int64 and counts.tolist() == [2, 1, 0, 9]
    if rule_of(config).nested:
        assert all(len(value) == 4 for value in found.values())
        for number in (0, 1, 3):  # a sample has the tiles that it has alone, and zeros behind them
            alone = preprocess([given[number]], config)["pixel_values"][0]
            row = found["pixel_values"][number]
            assert np.array_equal(row[: len(alone)], alone)
            assert not row[len(alone) :].any()
        assert not found["pixel_values"][2].any()
    elif family != "LlavaOnevision":
        flat = preprocess([image for sample in given for image in sample], config)
        assert found.keys() == flat.keys()
        assert all(np.array_equal(value, flat[key]) for key, value in found.items())
    else:
        assert found["batch_num_images"].tolist() == [2, 1, 9]  # only image of its sample: in tiles
    for samples in ([[], []], [[]]):
        none = preprocess(samples, config)
        assert none["image_counts"].tolist() == [0] * len(samples)
        assert none["pixel_values"].size == 0
        assert none["pixel_values"].ndim == found["pixel_values"].ndim


def test_the_only_image_of_a_sample_has_another_background():
    image = np.zeros((20, 40, 3), np.uint8)
    config = {**name("LlavaOnevision"), "do_rescale": False, "do_normalize": False}
    found = preprocess([[image, image]], config, dtype="uint8")["pixel_values"]
    assert found.shape == (2, 1, 3, 384, 384)
    assert found[0, 0, :, 0, 0].tolist() == [122, 116, 104]  # the mean, rounded down
    assert not found[0, 0, :, 192, 192].any()


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_bad_images_of_samples_are_named(family, tmp_path):
    good = [png(pixels(40, 90)), png(pixels(64, 30)), png(pixels(50, 50))]
    torn = png(pixels(300, 200))
    torn = torn[: len(torn) // 2]
    given = [[good[0], torn, good[1]], [b"no image"], [], [torn, good[2]]]
    found = preprocess(given, name(family), on_error="skip", threads=2)
    assert [place for place, _ in found.pop("skipped")] == [(0, 1), (1, 0), (3, 0)]
    expected = preprocess([good[:2], [], [], good[2:]], name(family))
    assert found.keys() == expected.keys()
    assert found["image_counts"].tolist() == [2, 0, 0, 1]
    for key, value in expected.items():
        assert found[key] == value if isinstance(value, list) else np.array_equal(found[key], value)
    with pytest.raises(ImageDecodeError, match="record 1: image 0: not an image") as raised:
        preprocess([[good[0]], [b"no image"]], name(family), threads=1)
    assert raised.value.record == 1
    with pytest.raises(ImageFileError, match="record 0: image 1: the file cannot be read"):
        preprocess([[good[0], tmp_path / "missing.png"]], name(family), threads=1)


def test_samples_of_lists_and_images_are_not_mixed():
    with pytest.raises(TypeError, match=r"images\[1\] is none and images\[0\] is a list"):
        preprocess([[pixels(9, 9)], pixels(9, 9)], QWEN)
    with pytest.raises(TypeError, match=r"images\[1\] is a list and images\[0\] is none"):
        preprocess([pixels(9, 9), [pixels(9, 9)]], QWEN)
    with pytest.raises(TypeError, match=r"images\[1\]\[0\] is a int"):
        preprocess([[pixels(9, 9)], [3]], QWEN)
    with pytest.raises(TypeError, match=r"images\[0\]\[0\] is a list"):
        preprocess([[[pixels(9, 9)]]], QWEN)


@pytest.mark.parametrize("config", [QWEN, SIGLIP, name("Idefics3"), name("Mllama")])
def test_results_of_lists_go_into_memory_of_the_caller(config):
    given = [[pixels(60, 90), pixels(64, 30)], [pixels(50, 50)]]
    expected = preprocess(given, config)
    pixel_values = expected["pixel_values"]
    longer = np.full((len(pixel_values) + 2, *pixel_values.shape[1:]), 7, np.float32)
    counts = np.zeros(2, np.int64)
    found = preprocess(given, config, out={"pixel_values": longer, "image_counts": counts})
    assert found["pixel_values"].base is longer and found["image_counts"] is counts
    assert np.array_equal(found["pixel_values"], pixel_values)
    assert counts.tolist() == [2, 1]


def test_nothing_good_is_an_error_and_so_is_nothing():
    with pytest.raises(ImageDecodeError, match="record 0"):
        preprocess([b"x", b"y"], QWEN, on_error="skip")
    with pytest.raises(ValueError, match="images is empty"):
        preprocess([], QWEN)
    with pytest.raises(TypeError, match=r"images\[1\] is a int"):
        preprocess([pixels(9, 9), 3], QWEN, on_error="skip")
    with pytest.raises(TypeError, match=r"images\[0\] is an array float64"):
        preprocess([np.zeros((9, 9, 3))], QWEN)
    with pytest.raises(ValueError, match="on_error='ignore'"):
        preprocess([pixels(9, 9)], QWEN, on_error="ignore")
    with pytest.raises(ImageDecodeError, match="more than the limit"):
        preprocess([png(pixels(30, 30))], QWEN, max_pixels=100)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({**QWEN, "do_something": True}, "do_something=True is not known here"),
        ({**SIGLIP, "do_resize": False}, "do_resize=False makes arrays of sizes of their own"),
        ({**name("Pixtral"), "do_pad": False}, "do_pad=False makes arrays of sizes of their own"),
        ({**QWEN, "size": {"height": 9, "width": 9}}, "expected shortest_edge and longest_edge"),
        ({**QWEN, "image_mean": [0.5, 0.5]}, "expected a number for each of 3 channels"),
        ({**name("Gemma3"), "do_pan_and_scan": True}, "do_pan_and_scan needs"),
        ({**name("Gemma4"), "max_soft_tokens": 71}, "expected 70, 140, 280, 560 or 1120"),
        ({**QWEN, "resample": 9}, "resample=9"),
        (name("ViT"), "is none of a vision-language model that is known here"),
        (name("Sam"), "is none of a vision-language model that is known here"),
    ],
)
def test_what_is_not_known_is_refused_by_name(config, reason):
    with pytest.raises(PipelineError, match=reason):
        preprocess([pixels(60, 60)], config)


def test_images_that_were_resized_already():
    config = {**QWEN, "do_resize": False}
    assert preprocess([pixels(56, 84)], config)["image_grid_thw"].tolist() == [[1, 4, 6]]
    with pytest.raises(ImageSizeError, match="no multiples of 28"):
        preprocess([pixels(57, 84)], config)


def test_many_threads_call_at_once():
    images = [png(pixels(100 + 7 * n, 90)) for n in range(6)]
    recipe, found = NamedRecipe.from_processor(QWEN), [None] * 8
    expected = preprocess(images, recipe, threads=1)["pixel_values"]

    def call(number):
        found[number] = preprocess(images, recipe, threads=1 + number % 3)["pixel_values"]

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(one, expected) for one in found)


def test_memory_is_used_again_when_nobody_holds_it():
    recipe, images = NamedRecipe.from_processor(QWEN), [pixels(120, 90)]
    held = preprocess(images, recipe)["pixel_values"]
    kept = held.copy()
    other = preprocess([pixels(90, 120)], recipe)["pixel_values"]
    assert not np.shares_memory(held, other)
    assert np.array_equal(held, kept)
    place = other.ctypes.data
    del other
    assert preprocess(images, recipe)["pixel_values"].ctypes.data == place
    again = pickle.loads(pickle.dumps(recipe))
    assert again == recipe and again.rule == recipe.rule


MEASURE = """
import resource, sys
import numpy as np
from iterators import preprocess
page = b"P6\\n1240 1700\\n255\\n" + bytes(1240 * 1700 * 3)
config = {"image_processor_type": "Siglip2ImageProcessor"}
preprocess([page] * 2, config, threads=2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = preprocess([page] * 60, config, threads=2)["pixel_values"]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, found.nbytes // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux counts it")
def test_memory_is_that_of_the_result():
    run = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    more, result = map(int, run.stdout.split())
    assert more < result + 20_000  # kilobytes; sixty pages would be 370 000
