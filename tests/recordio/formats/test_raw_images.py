"""Raw images in records: the same samples as of PNG, from the memory where the record lies."""

import io
import subprocess
import sys

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import recordio
from iterators import ImageIter, ImageRecordIter
from iterators.datasets import ImageRecordDataset
from iterators.images.augment.augmenter import described_augmenter
from iterators.images.augment.det_recipe import DetRecipe
from iterators.images.augment.recipe import Recipe
from iterators.images.det_render import DetPlan
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from iterators.images.row_writer import LinearPlan
from iterators.testing import write_records
from recordio import decode_image
from recordio.errors import ImageDecodeError, RecordHeaderError
from recordio.formats import pnm

RANDOM = np.random.default_rng(21)
NOISE = RANDOM.integers(0, 256, (90, 90, 3), np.uint8)


def png_of(image):
    """Lossless, in OpenCV's order of channels."""
    return cv2.imencode(".png", image[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 0])[1].tobytes()


def pack(content, flag=0, label=1.0):
    return recordio.pack(recordio.IRHeader(flag, label, 7, 0), content)


def both(image, **header):
    """The record of an image as raw pixels and as PNG."""
    return pack(pnm.encode(np.ascontiguousarray(image)), **header), pack(png_of(image), **header)


@st.composite
def recipes(draw, channels):
    """Everything that decides which pixels are read, and some of what happens to them."""
    side = st.integers(4, 60)
    chosen = {"data_shape": (channels, draw(side), draw(side))}
    method = draw(st.sampled_from([0, 1, 2, 3, 4, 9, 10]))
    if draw(st.booleans()):
        chosen |= {"random_resized_crop": True, "min_random_area": draw(st.floats(0.01, 1))}
        chosen |= {"min_aspect_ratio": 0.5, "max_aspect_ratio": 2.0}
    else:
        if draw(st.booleans()):
            chosen["resize"] = draw(st.integers(5, 90))
        if method != 0 and draw(st.booleans()):
            chosen |= {"max_rotate_angle": 40, "max_shear_ratio": 0.3, "max_random_scale": 1.4}
        if draw(st.booleans()):
            chosen["pad"] = draw(st.integers(1, 12))
        chosen["rand_crop"] = draw(st.booleans())
        if draw(st.integers(0, 3)) == 0:
            largest = draw(st.integers(1, 40))
            chosen |= {"min_crop_size": draw(st.integers(1, largest)), "max_crop_size": largest}
    if channels == 3 and draw(st.booleans()):
        chosen |= {"brightness": 0.4, "saturation": 0.4, "random_h": 20, "pca_noise": 0.1}
    chosen["rand_mirror"] = draw(st.booleans())
    return Recipe(
        **chosen, inter_method=method, fill_value=draw(st.sampled_from([0, 127, 255])),
        mean_r=draw(st.sampled_from([0, 7.5])), std_g=2,
    )  # fmt: skip


def outcome(plan, record, number):
    """The sample of a record, or what is wrong with it."""
    try:
        return Renderer(plan).sample(record, 3, number)
    except ImageDecodeError as error:
        return str(error)


def assert_same(plan, first, second, number=0):
    first, second = (outcome(plan, record, number) for record in (first, second))
    if isinstance(second, str):
        assert first == second
        return
    for ours, other in zip(first, second, strict=True):
        assert np.array_equal(ours, other)


sizes = st.tuples(st.integers(5, 90), st.integers(5, 90))
layouts = st.sampled_from(["NCHW", "NHWC", "CHWN", "NCWH"])
dtypes = st.sampled_from(["float32", "uint8", "int8", "float16"])


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), sizes, layouts, dtypes, st.integers(0, 99), st.booleans())
def test_samples_are_those_of_the_same_image_as_png(data, size, layout, dtype, number, colour):
    """All but colour to grey, which PNG decoders round in another way."""
    channels = data.draw(st.sampled_from([1, 3])) if not colour else 3
    image = NOISE[: size[0], : size[1]]
    if not colour:
        image = image[..., :1]
    plan = RenderPlan(data.draw(recipes(channels)), layout=layout, dtype=dtype)
    assert_same(plan, *both(image), number)


@settings(max_examples=100)
@given(recipes(1), sizes, st.integers(0, 99))
def test_colour_becomes_grey_as_opencv_makes_it_of_the_same_file(recipe, size, number):
    data = pnm.encode(np.ascontiguousarray(NOISE[: size[0], : size[1]]))
    grey = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert_same(RenderPlan(recipe), pack(data), pack(png_of(grey[..., None])), number)


@pytest.mark.parametrize("image", [NOISE, NOISE[..., :1]], ids=["colour", "grey"])
def test_four_channels_are_refused_as_of_png(image):
    plan = RenderPlan(Recipe(data_shape=(4, 8, 8)))
    raw, png = (outcome(plan, record, 0) for record in both(image))
    assert "channels, not the 4" in raw
    assert raw == png


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(
    sizes, st.sampled_from(["force", "shrink", "fit"]), st.booleans(), st.booleans(),
    st.sampled_from([1, 3]), st.sampled_from([1, 3]), st.integers(0, 99), layouts,
)  # fmt: skip
def test_detection_samples_and_boxes_are_those_of_png(
    size, mode, crops, pads, stored, channels, number, layout
):
    if stored == 3:
        channels = 3
    recipe = DetRecipe(
        data_shape=(channels, 40, 30), resize_mode=mode, rand_mirror_prob=0.5,
        rand_crop_prob=float(crops), num_crop_sampler=int(crops), min_crop_scales=0.3,
        max_crop_scales=0.9, min_crop_overlaps=0.1, max_crop_trials=20,
        rand_pad_prob=float(pads), max_pad_scale=2.0, fill_value=9, mean_r=3,
    )  # fmt: skip
    label = [2, 5, 0, 0.1, 0.2, 0.6, 0.7, 3, 0.5, 0.4, 0.9, 0.8]
    image = NOISE[: size[0], : size[1], :stored]
    plan = DetPlan(recipe, label_width=20, layout=layout)
    assert_same(plan, *both(image, label=label), number)


@pytest.mark.parametrize("options", [{"rand_gray": 0.5, "brightness": 0.3}, {"rand_resize": True}])
def test_samples_of_an_augmenter_are_those_of_png(options):
    plan = LinearPlan(described_augmenter((3, 24, 20), rand_crop=True, rand_mirror=True, **options))
    for number in range(20):
        assert_same(plan, *both(NOISE), number)


def test_a_mean_image_is_subtracted():
    mean = RANDOM.uniform(0, 255, (3, 20, 20)).astype(np.float32)
    plan = RenderPlan(Recipe(data_shape=(3, 20, 20), rand_crop=True), mean_image=mean)
    for number in range(10):
        assert_same(plan, *both(NOISE), number)


@pytest.mark.parametrize("image", [NOISE[:6, :7], NOISE[:6, :7, :1]], ids=["colour", "grey"])
@pytest.mark.parametrize("channels", [1, 3])
def test_truncation_at_every_byte_is_an_error(image, channels):
    renderer = Renderer(RenderPlan(Recipe(data_shape=(channels, 5, 5)), dtype="uint8"))
    record = pack(pnm.encode(np.ascontiguousarray(image)))
    whole = renderer.sample(record)[0]
    for length in range(len(record)):
        with pytest.raises((ImageDecodeError, RecordHeaderError)) as caught:
            renderer.sample(record[:length])
        if length >= len(record) - image.nbytes:
            left = length - len(record) + image.nbytes
            assert f"are {image.nbytes} bytes, {left} are there" in str(caught.value)
    assert np.array_equal(renderer.sample(record + b"more")[0], whole)


@pytest.mark.parametrize("size", ["8193 8193", "9999999999 9999999999", "2147483648 1"])
def test_huge_sizes_are_refused(size):
    renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 5, 5))))
    with pytest.raises(ImageDecodeError, match="too large"):
        renderer.sample(pack(f"P6\n{size}\n255\n".encode() + bytes(64)))


@given(
    st.binary(max_size=60), st.sampled_from([b"P5\n", b"P6\n", b"P6\n2 3\n255\n", b"P5 3 1 255 "])
)
def test_random_bytes_are_a_sample_or_an_error(tail, start):
    renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 5, 5), resize=9), dtype="uint8"))
    try:
        data, _, _ = renderer.sample(pack(start + tail))
    except ImageDecodeError:
        return
    assert data.shape == (1, 3, 5, 5)


@pytest.mark.parametrize("maximum", ["254", "65535"])
def test_other_largest_values_are_what_the_general_decoder_makes_of_them(maximum):
    data = f"P5\n20 20\n{maximum}\n".encode() + NOISE.tobytes()[:800]
    decoded = decode_image(data, channels=1)
    with Image.open(io.BytesIO(data)) as image:
        theirs = np.array(image) >> 8 if maximum == "65535" else np.array(image)
    assert np.array_equal(decoded[..., 0], theirs)
    plan = RenderPlan(Recipe(data_shape=(1, 8, 8)), dtype="uint8")  # float32 keeps all bits
    assert_same(plan, pack(data), pack(png_of(decoded)))


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """Record files with the same 23 images, as raw pixels and as PNG."""
    folder = tmp_path_factory.mktemp("packs")
    records = []
    for number in range(23):
        image = NOISE[: 50 + number, number : 90 - number // 2, : 3 if number % 3 else 1]
        records.append(both(image, label=float(number)))
    raw, png = zip(*records, strict=True)
    return write_records(folder / "raw.rec", raw), write_records(folder / "png.rec", png)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_batches_do_not_depend_on_the_format_or_the_threads(packs, threads):
    epochs = []
    for path, workers in zip(packs, (threads, 1), strict=True):
        with ImageRecordIter(
            path_imgrec=path, data_shape=(3, 32, 30), batch_size=4, shuffle=True, seed=3,
            random_resized_crop=True, min_random_area=0.1, rand_mirror=True, random_h=30,
            preprocess_threads=workers, verbose=False,
        ) as provider:  # fmt: skip
            epochs.append([[b.data[0].copy(), b.label[0]] for _ in range(2) for b in provider])
    assert len(epochs[0]) == 12
    for ours, other in zip(*epochs, strict=True):
        for one, two in zip(ours, other, strict=True):
            assert np.array_equal(one, two)


def test_data_sets_and_image_files_are_read_like_those_of_png(packs, tmp_path):
    for channels in (3, 1):
        raw, png = (ImageRecordDataset(path, channels=channels) for path in packs)
        for number in range(0, 23, 3 if channels == 1 else 1):
            assert np.array_equal(raw[number][0], png[number][0])
    for name, content in zip(("a.ppm", "a.png"), (pnm.encode(NOISE), png_of(NOISE)), strict=True):
        (tmp_path / name).write_bytes(content)
    batches = [
        next(
            ImageIter(
                batch_size=1, data_shape=(3, 40, 40), imglist=[[5.0, name]], path_root=tmp_path,
                resize=45, rand_crop=True, verbose=False,
            )
        )
        for name in ("a.ppm", "a.png")
    ]  # fmt: skip
    assert np.array_equal(batches[0].data[0], batches[1].data[0])


def test_a_truncated_raw_image_is_named_with_its_place(packs, tmp_path):
    with recordio.RecordReader(packs[0]) as reader:
        records = [bytes(record) for record in reader]
    records[7] = records[7][:-1]
    path = write_records(tmp_path / "a.rec", records)
    options = {"path_imgrec": path, "data_shape": (3, 20, 20), "batch_size": 23, "verbose": False}
    with (
        ImageRecordIter(**options) as provider,
        pytest.raises(ImageDecodeError, match=r"a\.rec.*record 7.*PNM image is truncated"),
    ):
        next(provider)
    with ImageRecordIter(**options, on_error="skip") as provider:
        next(provider)
        assert len(provider.skipped) == 1


GUARDED = """
import ctypes, mmap, random
import numpy as np
import recordio
from recordio.formats import pnm
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer

page = mmap.PAGESIZE
area = mmap.mmap(-1, 16 * page)
start = ctypes.addressof(ctypes.c_char.from_buffer(area))
library = ctypes.CDLL(None, use_errno=True)
assert library.mprotect(ctypes.c_void_p(start + 8 * page), 8 * page, 0) == 0
noise = np.random.default_rng(0).integers(0, 256, (60, 60, 3), np.uint8)
shared = dict(rand_mirror=True, rand_crop=True)
# Every other parameter meets each of these at many sizes.
forms = [(layout, dtype) for layout in ("NCHW", "NHWC") for dtype in ("float32", "uint8")]
random.seed(0)
tried = 0
for width in range(1, 60, 2):
    for stored in (1, 3):
        image = np.ascontiguousarray(noise[: 60 - width, :width, :stored])
        record = recordio.pack(recordio.IRHeader(0, 0, 0, 0), pnm.encode(image))
        first = 8 * page - len(record)
        area[first : 8 * page] = record
        view = (ctypes.c_ubyte * len(record)).from_address(start + first)
        height, side = image.shape[0], min(image.shape[:2])
        for channels in (1, 3):
            for method in (0, 1, 2, 3, 4):
                for more in (
                    dict(data_shape=(channels, height, width)),
                    dict(data_shape=(channels, side, side), crop_x_start=width - side,
                         crop_y_start=height - side),
                    dict(data_shape=(channels, 40, 40), resize=45),
                    dict(data_shape=(channels, 5, 5), resize=7),
                    dict(data_shape=(channels, max(height // 2, 1), max(width // 2, 1)),
                         resize=max(side // 2, 1)),
                    dict(data_shape=(channels, 30, 30), rotate=30, resize=33),
                    dict(data_shape=(channels, 30, 30), rotate=1, pad=3),
                    dict(data_shape=(channels, height + 4, width + 4), pad=2),
                ):
                    if method == 0 and "rotate" in more:
                        continue
                    recipe = Recipe(**more, inter_method=method, **shared)
                    layout, dtype = random.choice(forms)
                    renderer = Renderer(RenderPlan(recipe, layout=layout, dtype=dtype))
                    try:
                        ours = renderer.sample(view, 0, tried)[0].copy()
                    except recordio.ImageDecodeError:
                        continue
                    assert np.array_equal(renderer.sample(record, 0, tried)[0], ours)
                    tried += 1
print(tried)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="protects pages the POSIX way")
def test_nothing_is_read_behind_a_record_at_the_end_of_a_mapping():
    """The pages behind the record must not be touched; a crash would end the child process."""
    done = subprocess.run(
        [sys.executable, "-c", GUARDED], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1250
