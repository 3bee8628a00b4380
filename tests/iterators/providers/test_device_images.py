"""The engine of `decode_on="device"`, with host memory and a stand-in for nvJPEG as the device.

The table, the block, the calls of the library and the kernel are those that run on a device; what
is left to `test_cuda` are streams, and nvJPEG's own pixels.
"""

import gc
import io
import os
import signal
import threading
import time

import numpy as np
import pytest
from device_standin import HostMachine, count, library
from PIL import Image

from iterators import ImageRecordIter, Pack
from iterators.core import device as devices
from iterators.images.device.decoder import DeviceDecodeError
from iterators.providers import image_engines, image_job
from iterators.testing import encode_jpeg, picture, write_pack
from recordio import ImageDecodeError, decode_image

torch = pytest.importorskip("torch")
CROPS = {
    "random_resized_crop": True,
    "min_random_area": 0.2,
    "max_random_area": 1.0,
    "min_aspect_ratio": 0.75,
    "max_aspect_ratio": 1.5,
    "rand_mirror": True,
}


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    """Make "cuda" a device that tensors reach without being moved; its library was used well."""

    class Here(devices.TorchPlacement):
        device = torch.device("cuda")

    real = image_job.placement
    monkeypatch.setattr(
        image_job,
        "placement",
        lambda device, ring=4: Here(torch) if device == "cuda" else real(device, ring),
    )
    monkeypatch.setattr(image_engines, "CudaMachine", HostMachine)
    library().standin_reset()
    yield
    assert library().standin_fault() == b""


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    images = [encode_jpeg(picture(120 + i, 150 - i, seed=i)) for i in range(20)]
    return write_pack(tmp_path_factory.mktemp("device") / "images.rec", images)


def made(pack, **more):
    settings = {"path_imgrec": str(pack), "data_shape": (3, 64, 64), "batch_size": 6, "seed": 3}
    return ImageRecordIter(**{**settings, "verbose": False, **more})


def there(pack, **more):
    return made(pack, device="cuda", decode_on="device", **more)


def same(found, wanted):
    """Compare batches to the last bit."""
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(one.label[0], other.label[0]) and one.pad == other.pad
        assert np.array_equal(one.index, other.index)
        data = torch.as_tensor(other.data[0])
        assert one.data[0].dtype == data.dtype
        assert torch.equal(one.data[0], data)


@pytest.mark.parametrize(
    "recipe",
    [
        {**CROPS, "shuffle": True},
        {**CROPS, "shuffle": True, "scaled_decode": False},
        {"resize": 80, "rand_crop": True, "rand_mirror": True},
        {"resize": 50, "rand_crop": True},
        {"resize": 100, **CROPS},
        {"inter_method": 2, **CROPS},
        {"resample": "pillow", **CROPS},
        {"resample": "pillow", "interpolation": "bicubic", "resize": 70, "rand_crop": True},
        {"data_shape": (3, 12, 16), **CROPS},
        {"data_shape": (1, 40, 30), "flip_p": 0.5},
        {"data_shape": (3, 60, 75), "resize": 60},
        {"layout": "NHWC"},
        {"layout": "HWCN", "rand_crop": True},
        {"mean_r": 100.0, "std_g": 3.0, "scale": 0.5, "layout": "NHWC"},
        {"mean_r": 100.0, "std_g": 3.0, "dtype": "float16"},
        {"dtype": "uint8", "round_batch": False},
    ],
)
def test_batches_are_those_of_the_stage(pack, recipe):
    with there(pack, **recipe) as ours, made(pack, device="cpu", **recipe) as wanted:
        for _ in range(2):
            same(ours, wanted)
        counts = ours.stats()
        assert counts["device_images"] >= 20 and counts["host_images"] == 0


@pytest.fixture(scope="module")
def sizes(tmp_path_factory):
    """Images of sizes at which kernels reach beyond edges, and which are halved exactly."""
    found = (1, 1), (2, 3), (5, 4), (17, 31), (64, 64), (128, 128), (200, 90), (33, 401), (256, 64)
    images = [encode_jpeg(picture(*size, seed=i)) for i, size in enumerate(found)]
    return write_pack(tmp_path_factory.mktemp("sizes") / "sizes.rec", images)


@pytest.mark.parametrize("shape", [(3, 32, 32), (3, 64, 64), (1, 7, 90), (3, 130, 3), (3, 1, 1)])
@pytest.mark.parametrize(
    "kernel",
    [
        {"inter_method": 1},
        {"inter_method": 2},
        {"resample": "pillow", "interpolation": "bilinear"},
        {"resample": "pillow", "interpolation": "bicubic"},
    ],
)
def test_any_size_to_any_other(sizes, shape, kernel):
    asked = {"data_shape": shape, "batch_size": 9, "dtype": "uint8", "flip_p": 0.5, **kernel}
    for crop in ({**CROPS, "min_random_area": 0.05}, {"resize": "cover"}):
        with (
            there(sizes, **asked, **crop) as ours,
            made(sizes, device="cpu", **asked, **crop) as wanted,
        ):
            for _ in range(3):
                same(ours, wanted)
            assert ours.stats()["device_images"] >= 27


def test_bfloat16_is_that_of_the_stage(pack):
    pytest.importorskip("ml_dtypes")
    recipe = {"mean_r": 100.0, "std_g": 3.0, "dtype": "bfloat16"}
    with there(pack, **recipe) as ours, made(pack, device="cpu", **recipe) as wanted:
        same(ours, wanted)


@pytest.mark.libjpeg
def test_engines_decode_rectangles_and_scales(pack):
    for shape, kind in (((3, 12, 16), "scaled"), ((3, 100, 100), "cropped")):
        with there(pack, data_shape=shape, **CROPS) as ours:
            list(ours)
        assert count(kind) > 0
    assert count("widest") == 4  # as many as there are cores


def test_a_device_without_engines_decodes_whole_images(pack):
    library().standin_device(0, 0, 0)
    with (
        there(pack, **CROPS) as ours,
        made(pack, device="cpu", scaled_decode=False, **CROPS) as wanted,
    ):
        same(ours, wanted)
        assert ours.stats()["device_images"] >= 20
    assert count("scaled") == count("cropped") == 0 < count("images")


def test_images_that_the_library_refuses_are_made_on_the_processor(pack):
    library().standin_device(2, 2, 1)
    with there(pack, **CROPS) as ours, made(pack, device="cpu", **CROPS) as wanted:
        same(ours, wanted)
        assert ours.stats()["device_images"] == 0 < ours.stats()["host_images"]
    assert count("images") == 0


def test_a_saved_state_goes_on(pack):
    with there(pack, shuffle=True, **CROPS) as provider:
        wanted = [batch.data[0].clone() for batch in provider]
    with there(pack, shuffle=True, **CROPS) as provider:
        provider.next()
        state = provider.state_dict()
    with there(pack, shuffle=True, **CROPS) as provider:
        provider.load_state_dict(state)
        for batch, other in zip(provider, wanted[1:], strict=True):
            assert torch.equal(batch.data[0], other)


def test_other_images_are_made_on_the_processor(tmp_path):
    images = [encode_jpeg(picture(70, 80, seed=i)) for i in range(6)]
    images[1] = encode_jpeg(picture(70, 80, seed=1), progressive=True)
    images[2] = picture(70, 80, seed=2)
    path = write_pack(tmp_path / "mixed.rec", images)
    with there(path) as ours, made(path) as wanted:
        for slot in (1, 2):
            assert np.array_equal(ours.next().data[0][slot], wanted.next().data[0][slot])
            ours.reset()
            wanted.reset()
        assert ours.stats()["host_images"] >= 4


def test_stored_colours_that_a_device_would_take_for_others_are_left_to_the_processor(tmp_path):
    """JPEG files of RGB, by Adobe's segment or by the names of their components."""
    image = Image.fromarray(decode_image(encode_jpeg(picture(70, 80, seed=1)), channels=3))
    kept = io.BytesIO()
    image.save(kept, "JPEG", keep_rgb=True)
    turned, cmyk = io.BytesIO(), io.BytesIO()
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(turned, "JPEG", exif=exif)
    image.convert("CMYK").save(cmyk, "JPEG")
    images = [one.getvalue() for one in (kept, turned, cmyk)]
    images += [encode_jpeg(picture(70, 80, seed=i)) for i in range(3)]
    path = write_pack(tmp_path / "rgb.rec", images)
    with there(path) as ours, made(path, device="cpu") as wanted:
        same(ours, wanted)
        counts = ours.stats()
        assert counts["host_images"] == 3 * counts["batches"] == counts["device_images"]


@pytest.mark.parametrize("damage", ["no image", "cut off"])
def test_a_record_without_an_image_is_named_or_replaced(tmp_path, damage):
    images = [encode_jpeg(picture(70, 80, seed=i)) for i in range(6)]
    images[4] = b"\xff\xd8 no image" if damage == "no image" else images[4][:1500]
    path = write_pack(tmp_path / "damaged.rec", images)
    with there(path, batch_size=3) as provider:
        provider.next()
        with pytest.raises(ImageDecodeError, match=r"damaged\.rec.*record 4"):
            provider.next()
    with there(path, batch_size=3, on_error="skip") as ours:
        labels = [batch.label[0].tolist() for batch in ours]
        assert labels == [[0, 1, 2], [3, 5, 5]] and [number for number, _ in ours.skipped] == [4]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"brightness": 0.3}, "brightness is drawn on the processor"),
        ({"rotate": 5}, "rotate is drawn on the processor"),
        ({"cache": "ram"}, 'cache needs decode_on="host"'),
        ({"strict": True}, 'strict needs decode_on="host"'),
        ({"inter_method": 9}, "resamples with inter_method 1 or 2"),
        ({"data_shape": (4, 8, 8)}, "1 or 3 channels"),
        ({"data_shape": None}, "one data_shape"),
        ({"dtype": "int8"}, "int8"),
    ],
)
def test_what_a_device_cannot_follow_is_refused(pack, more, message):
    with pytest.raises(ValueError, match=message):
        there(pack, **more)


def test_a_device_is_needed(pack):
    for device in (None, "cpu"):
        with pytest.raises(ValueError, match='decode_on="device" needs device="cuda"'):
            made(pack, device=device, decode_on="device")


def test_labels_packs_and_images_of_the_size_that_is_wanted(tmp_path):
    same = [encode_jpeg(picture(64, 64, seed=i)) for i in range(5)]
    other = [encode_jpeg(picture(70, 80, seed=10 + i)) for i in range(5)]
    labels = [[i, 2 * i, 5] for i in range(5)]
    packs = [
        Pack(str(write_pack(tmp_path / "same.rec", same, labels))),
        Pack(str(write_pack(tmp_path / "other.rec", other, labels)), rand_mirror=True),
    ]
    asked = {"path_imgrec": packs, "label_width": 3, "shuffle": True, "scaled_decode": False}
    with there(None, **asked) as ours, made(None, **asked) as wanted:
        for one, found in zip(wanted, ours, strict=True):
            assert np.array_equal(found.label[0], one.label[0])
            assert np.array_equal(found.source, one.source)
            assert np.array_equal(found.data[0], one.data[0])
        assert ours.stats()["device_images"] >= 10


def test_a_state_is_of_the_decoder_that_made_the_pixels(pack):
    with there(pack, dtype="uint8") as ours, made(pack, dtype="uint8") as other:
        with pytest.raises(ValueError, match="decode_on"):
            other.load_state_dict(ours.state_dict())
        with pytest.raises(ValueError, match="decode_on"):
            ours.load_state_dict(other.state_dict())


# -- failures of the library -----------------------------------------------------------------------

#: Statuses of nvJPEG that are about images; of all others nothing can be made of a batch.
ABOUT_IMAGES = {3: "BAD_JPEG", 4: "JPEG_NOT_SUPPORTED", 10: "INCOMPLETE_BITSTREAM"}
OTHERS = {
    1: "NOT_INITIALIZED",
    2: "INVALID_PARAMETER",
    5: "ALLOCATOR_FAILURE",
    6: "EXECUTION_FAILED",
    7: "ARCH_MISMATCH",
    8: "INTERNAL_ERROR",
    9: "IMPLEMENTATION_NOT_SUPPORTED",
}


@pytest.mark.parametrize("engines", [2, 0])
@pytest.mark.parametrize("status", ABOUT_IMAGES)
def test_images_of_a_call_that_fails_are_made_on_the_processor(pack, status, engines):
    library().standin_device(engines, 2, 0)
    name = b"DecodeBatchedEx" if engines else b"DecodeBatched"
    with there(pack) as ours, made(pack, device="cpu") as wanted:
        library().standin_fail(name, status, 1 if engines else 0)
        same(ours, wanted)
        counts = ours.stats()
        assert 0 < counts["host_images"] <= 6 and counts["device_images"] > 0


def test_a_bad_image_of_a_call_that_fails_is_named(tmp_path):
    images = [encode_jpeg(picture(70, 80, seed=i)) for i in range(6)]
    images[4] = images[4][:700] + images[4][-2:]  # its header is well, and its end is there
    path = write_pack(tmp_path / "damaged.rec", images)
    with there(path) as ours, made(path, device="cpu") as wanted:
        library().standin_fail(b"DecodeBatchedEx", 3, 1)
        same(ours, wanted)


@pytest.mark.parametrize("status", OTHERS)
def test_a_failure_of_the_device_is_raised_and_the_next_batch_is_made(pack, status):
    with there(pack, prefetch_buffer=1, seed=4) as ours:
        library().standin_fail(b"DecodeBatchedEx", status, 1)
        with pytest.raises(DeviceDecodeError, match=f"BatchedEx failed: {OTHERS[status]}; .+"):
            ours.next()
        ours.next()  # which may be under way already
        ours.next()
    assert count("jobs") == 0  # nothing is written any more
    with made(pack, device="cpu") as wanted, there(pack) as again:
        same(again, wanted)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("DecodeBatchedInitialize", "nvjpegDecodeBatchedInitialize failed: INTERNAL_ERROR"),
        ("DecodeParamsSetROI", "SetROI or -ScaleFactor failed: INTERNAL_ERROR"),
        ("cuLaunchKernel", "cuLaunchKernel failed: status 8"),
    ],
)
def test_every_call_of_a_batch_is_looked_after(pack, name, message):
    with there(pack, prefetch_buffer=1, data_shape=(3, 100, 100)) as ours:
        after = 6 if name == "DecodeParamsSetROI" else 0  # headers are looked at with rectangles
        library().standin_fail(name.encode(), 8, after)
        with pytest.raises(DeviceDecodeError, match=message):
            for _ in range(3):
                ours.next()
        ours.next()


def test_a_stream_that_fails_is_a_failure_of_the_batch(pack):
    with there(pack, prefetch_buffer=1, batch_size=18) as ours:
        library().standin_fail(b"cuStreamSynchronize", 700, 2)  # after both were ready
        with pytest.raises(DeviceDecodeError, match="cuStreamSynchronize failed: status 700"):
            ours.next()


@pytest.mark.parametrize("name", ["DecodeBatchedSupportedEx", "JpegStreamParseHeader"])
def test_an_image_whose_header_fails_is_made_on_the_processor(pack, name):
    with there(pack) as ours, made(pack, device="cpu") as wanted:
        library().standin_fail(name.encode(), 4, 2)
        same(ours, wanted)
        assert ours.stats()["host_images"] >= 1


def test_memory_taken_in_advance_may_fail(pack):
    with there(pack) as ours, made(pack, device="cpu") as wanted:
        library().standin_fail(b"DecodeBatchedPreAllocate", 5, 0)
        same(ours, wanted)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("JpegStateCreate", "nvjpegJpegStateCreate failed: ALLOCATOR_FAILURE; the device has no"),
        ("JpegStreamCreate", "nvjpegJpegStreamCreate failed: ALLOCATOR_FAILURE"),
        ("DecodeParamsCreate", "nvjpegDecodeParamsCreate failed: ALLOCATOR_FAILURE"),
        ("cuModuleLoadData", "cuModuleLoadData failed: status 5"),
        ("nvrtcCompileProgram", "nvrtcCompileProgram failed: status 5"),
    ],
)
def test_a_device_that_cannot_be_opened_leaves_nothing(pack, name, message):
    library().standin_fail(name.encode(), 5, 0)
    with pytest.raises(DeviceDecodeError, match=message):
        there(pack)
    gc.collect()
    assert count("objects") == 0


# -- the life of a block ---------------------------------------------------------------------------


def test_everything_is_given_back(pack):
    with there(pack) as provider:
        provider.next()
        assert count("objects") > 0
    assert count("objects") == 0  # whoever still refers to the provider
    there(pack).next()  # dropped while batches are under way
    until = time.monotonic() + 10
    while count("objects") and time.monotonic() < until:
        gc.collect()
        time.sleep(0.01)
    assert count("objects") == count("jobs") == 0


def test_images_larger_than_was_expected_get_a_larger_block(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (7, 300, 400, 3), np.uint8)
    images = [encode_jpeg(one, quality=100) for one in noise]
    images[3] = encode_jpeg(noise[3], quality=100, progressive=True)
    images[5] = b"\xff\xd8 no image"
    path = write_pack(tmp_path / "large.rec", images)
    asked = {"batch_size": 7, "on_error": "skip", "data_shape": (3, 280, 390), **CROPS}
    assert sum(map(len, images)) > 7 << 16
    with there(path, **asked) as ours, made(path, device="cpu", **asked) as wanted:
        for _ in range(2):
            same(ours, wanted)
        assert [number for number, _ in ours.skipped] == [5]
        assert ours.stats()["host_images"] >= 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_is_refused_and_the_parent_goes_on(pack):
    with there(pack) as provider, made(pack, device="cpu") as wanted:
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                provider.next()
            except RuntimeError as error:
                os.write(write, str(error).encode())
            del provider
            gc.collect()
            os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        assert b"fork" in os.read(read, 1 << 12)
        os.close(read)
        same(provider, wanted)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_batches_are_whole_after_ctrl_c(pack):
    class Interrupt(KeyboardInterrupt):
        pass

    def interrupt(number, frame):
        while frame is not None:  # only while the loop waits: a batch that it has got is its own
            if frame.f_code.co_filename == threading.__file__ and frame.f_code.co_name == "wait":
                raise Interrupt
            frame = frame.f_back

    with made(pack, device="cpu", shuffle=True, **CROPS) as provider:
        wanted = [(one.label[0].clone(), one.data[0].clone()) for _ in range(5) for one in provider]
    before = signal.signal(signal.SIGALRM, interrupt)
    found, interrupted = [], 0
    try:
        with there(pack, shuffle=True, **CROPS) as provider:
            while len(found) < len(wanted):
                signal.setitimer(signal.ITIMER_REAL, 0.002, 0.003)
                try:
                    batch = provider.next()
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except Interrupt:
                    interrupted += 1
                    continue
                except StopIteration:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    provider.reset()
                    continue
                found.append((batch.label[0].clone(), batch.data[0].clone()))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 0
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])


def test_providers_in_threads_do_not_meet(pack):
    results = {}

    def run(number):
        with there(pack, shuffle=True, seed=number, **CROPS) as provider:
            results[number] = [batch.data[0].clone() for batch in provider]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(3):
        with made(pack, device="cpu", shuffle=True, seed=number, **CROPS) as provider:
            for one, other in zip(results[number], provider, strict=True):
                assert torch.equal(one, other.data[0])
