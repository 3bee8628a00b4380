"""Batches on a CUDA device: equal to those on the processor, whatever the streams do meanwhile.

All of it is skipped without a device, but for what only the processor does.
"""

import os
import signal
import threading
import time

import numpy as np
import pytest

from iterators import (
    ArrayDataProvider,
    CSVIter,
    ImageDetRecordIter,
    ImageRecordIter,
    LibSVMIter,
    MixBatches,
    MNISTIter,
    PrefetchingIter,
)
from iterators.images.device.cuda import MAJORS, CudaMachine, open_library
from iterators.images.device.table import run_kernel
from iterators.providers import image_engines
from iterators.testing import box_label, encode_jpeg, picture, write_pack
from iterators.torch import ImageLoader
from recordio import ImageDecodeError, write_idx_array

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
RECORDS = 48
CROPS = {
    "random_resized_crop": True,
    "min_random_area": 0.2,
    "max_random_area": 1.0,
    "min_aspect_ratio": 0.75,
    "max_aspect_ratio": 1.5,
    "rand_mirror": True,
}


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuda")
    images = [encode_jpeg(picture(120 + i, 150 - i, seed=i)) for i in range(RECORDS)]
    return write_pack(folder / "images.rec", images)


def settings(pack, **more):
    return {
        "path_imgrec": str(pack),
        "data_shape": (3, 96, 96),
        "batch_size": 8,
        "shuffle": True,
        "seed": 7,
        "mean_r": 120.0,
        "std_r": 60.0,
        "verbose": False,
        **more,
    }


def arrays(batches):
    """Every array of some batches, copied to the processor."""
    return [
        [torch.as_tensor(one).cpu().clone() for one in (*batch.data, *batch.label)]
        for batch in batches
    ]


def assert_equal(found, wanted):
    assert len(found) == len(wanted) > 0
    for ours, theirs in zip(found, wanted, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.dtype == other.dtype and torch.equal(one, other)


def providers(folder):
    """Name and maker of a provider of each kind, over files in a folder."""
    rng = np.random.default_rng(0)
    np.savetxt(folder / "rows.csv", rng.random((20, 4)), delimiter=",")
    write_idx_array(folder / "images", rng.integers(0, 255, (20, 6, 6)).astype(np.uint8))
    write_idx_array(folder / "labels", rng.integers(0, 9, 20).astype(np.uint8))
    (folder / "rows.svm").write_text("".join(f"{i % 3} {i % 5}:1.5 6:2\n" for i in range(20)))
    boxes = write_pack(
        folder / "boxes.rec",
        [picture(40, 50, seed=i) for i in range(9)],
        [box_label((i % 3, 0.1, 0.2, 0.6, 0.7)) for i in range(9)],
    )
    return {
        "csv": lambda **more: CSVIter(
            data_csv=str(folder / "rows.csv"), data_shape=(4,), batch_size=6, **more
        ),
        "mnist": lambda **more: MNISTIter(
            image=str(folder / "images"),
            label=str(folder / "labels"),
            batch_size=6,
            silent=True,
            **more,
        ),
        "arrays": lambda **more: ArrayDataProvider(
            rng.permutation(20).reshape(20, 1).astype(np.float32), batch_size=6, **more
        ),
        "libsvm": lambda **more: LibSVMIter(
            data_libsvm=str(folder / "rows.svm"), data_shape=(8,), batch_size=6, **more
        ),
        "boxes": lambda **more: ImageDetRecordIter(
            path_imgrec=str(boxes), data_shape=(3, 32, 32), batch_size=4, verbose=False, **more
        ),
    }


@pytest.mark.parametrize("kind", ["csv", "mnist", "arrays", "libsvm", "boxes"])
def test_every_provider_gives_the_batches_of_the_processor(tmp_path, kind):
    first, second = (providers(tmp_path)[kind] for _ in range(2))
    with first() as here, second(device="cuda") as there:
        for wanted, found in zip(here, there, strict=True):
            for ours, theirs in zip(found.data + found.label, wanted.data + wanted.label):
                assert ours.is_cuda
                dense = ours.to_dense() if ours.layout != torch.strided else ours
                other = theirs.toarray() if hasattr(theirs, "toarray") else theirs
                assert np.array_equal(dense.cpu().numpy(), other)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8", "int8"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_images_are_those_of_the_processor(pack, dtype, layout):
    asked = settings(pack, dtype=dtype, layout=layout, **CROPS)
    if dtype.endswith("int8"):
        del asked["std_r"]
    if dtype == "uint8":
        del asked["mean_r"]
    with (
        ImageRecordIter(**asked, device="cpu") as here,
        ImageRecordIter(**asked, device="cuda") as there,
    ):
        for _ in range(2):
            assert_equal(arrays(there), arrays(here))


def test_normalisation_on_the_device_is_that_of_the_processor(pack):
    asked = settings(pack, **CROPS)
    with (
        ImageRecordIter(**asked, device="cpu") as here,
        ImageRecordIter(**asked, device="cuda", normalise_on="device") as there,
    ):
        for found, wanted in zip(arrays(there), arrays(here), strict=True):
            # Mean and factor are applied by two operations, which some hosts fuse.
            assert torch.allclose(found[0], wanted[0], rtol=0, atol=1e-6)
            assert torch.equal(found[1], wanted[1])


@pytest.mark.parametrize("wrapped", [False, True])
def test_no_batch_is_overwritten_while_a_stream_still_reads_it(pack, wrapped):
    """100 batches are held while their copies wait behind a stream that does nothing for long."""
    asked = settings(pack, **CROPS)
    with ImageRecordIter(**asked, device="cpu") as here:
        wanted = [batch for _ in range(17) for batch in arrays(here)][:100]
    stream = torch.cuda.Stream()
    with ImageRecordIter(**asked, device="cuda") as inside:
        provider = PrefetchingIter(inside) if wrapped else inside
        found = []
        with torch.cuda.stream(stream):
            torch.cuda._sleep(1_000_000_000)
            while len(found) < 100:
                for batch in provider:
                    # On the stream, behind all that it has to do: what is read is read late.
                    found.append([batch.data[0].clone(), batch.label[0].clone()])
                    if len(found) % 10 == 0:
                        torch.cuda._sleep(50_000_000)
                    if len(found) == 100:
                        break
                if wrapped:
                    provider.reset()
        stream.synchronize()
        if wrapped:
            provider.close()
    assert_equal([[one.cpu() for one in batch] for batch in found], wanted)


def test_batches_that_are_kept_stay_as_they_are(pack):
    asked = settings(pack, **CROPS)
    with ImageRecordIter(**asked, device="cpu") as here:
        wanted = arrays(here)
    with ImageRecordIter(**asked, device="cuda") as there:
        kept = list(there)
        for _ in range(10):
            for batch in there:
                batch.data[0].zero_()
    assert_equal(arrays(kept), wanted)


def test_several_providers_in_one_process(pack):
    """Each in a thread of its own, with streams of their own."""
    asked = settings(pack, **CROPS)
    with ImageRecordIter(**asked, device="cpu") as here:
        wanted = arrays(here)
    devices = [f"cuda:{i % torch.cuda.device_count()}" for i in range(4)]
    found = {}

    def run(number):
        with (
            ImageRecordIter(**asked, device=devices[number]) as provider,
            torch.cuda.device(devices[number]),
            torch.cuda.stream(torch.cuda.Stream()),
        ):
            found[number] = arrays(provider)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(devices))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(len(devices)):
        assert_equal(found[number], wanted)


def test_a_saved_state_goes_on_with_the_same_batches(pack):
    asked = settings(pack, **CROPS)
    with ImageRecordIter(**asked, device="cuda") as provider:
        wanted = arrays(provider)
        provider.reset()
    with ImageRecordIter(**asked, device="cuda") as provider:
        for _ in range(2):
            provider.next()
        state = provider.state_dict()
    with ImageRecordIter(**asked, device="cuda") as provider:
        provider.load_state_dict(state)
        assert_equal(arrays(provider), wanted[2:])


def test_mixed_batches_are_those_of_the_processor(pack):
    asked = settings(pack, **CROPS)
    found = {}
    for device in ("cpu", "cuda"):
        with ImageRecordIter(**asked, device=device) as provider:
            mixed = MixBatches(provider, mixup=0.4, cutmix=1.0, classes=RECORDS, seed=3)
            found[device] = arrays(mixed)
    for one, other in zip(found["cuda"], found["cpu"], strict=True):
        assert all(torch.allclose(a, b, rtol=0, atol=1e-5) for a, b in zip(one, other, strict=True))


def test_a_loader_pins_memory_and_delivers_on_the_device(tmp_path):
    from PIL import Image

    for i in range(12):
        folder = tmp_path / f"class{i % 2}"
        folder.mkdir(exist_ok=True)
        Image.fromarray(picture(40, 50, seed=i)).save(folder / f"{i}.png")
    asked = {"data_shape": (3, 32, 32), "batch_size": 4}
    plain = list(ImageLoader(str(tmp_path), **asked))
    for more in ({"device": "cuda"}, {"pin_memory": True}):
        for ours, theirs in zip(ImageLoader(str(tmp_path), **asked, **more), plain, strict=True):
            for one, other in zip(ours, theirs, strict=True):
                assert one.is_cuda if "device" in more else one.is_pinned()
                assert torch.equal(one.cpu(), other)


def test_a_damaged_record_is_named_while_copies_are_under_way(tmp_path):
    images = [encode_jpeg(picture(60, 70, seed=i)) for i in range(16)]
    images[9] = b"\xff\xd8 no image"
    path = write_pack(tmp_path / "damaged.rec", images)
    asked = settings(path, shuffle=False, batch_size=4, device="cuda")
    with ImageRecordIter(**asked) as provider:
        good = [provider.next() for _ in range(2)]
        with pytest.raises(ImageDecodeError, match="record 9"):
            provider.next()
        assert provider.next().data[0].is_cuda
        assert all(batch.data[0].isfinite().all() for batch in good)
    with ImageRecordIter(**asked, on_error="skip") as provider:
        assert len(list(provider)) == 4 and len(provider.skipped) == 1


def test_ctrl_c_while_copies_are_under_way_costs_no_batch(pack):
    asked = settings(pack, **CROPS)
    with ImageRecordIter(**asked, device="cuda") as provider:
        wanted = arrays(provider)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    found = []
    try:
        with ImageRecordIter(**asked, device="cuda") as provider:
            signal.setitimer(signal.ITIMER_REAL, 0.002, 0.003)
            while len(found) < len(wanted):
                try:
                    batch = provider.next()
                except KeyboardInterrupt:
                    continue
                signal.setitimer(signal.ITIMER_REAL, 0)
                found += arrays([batch])
                signal.setitimer(signal.ITIMER_REAL, 0.002, 0.003)
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert_equal(found, wanted)


def test_a_fork_after_cuda_was_initialised_is_an_error_that_says_so(pack):
    with ImageRecordIter(**settings(pack), device="cuda") as provider:
        provider.next()
        read, write = os.pipe()
        child = os.fork()
        if not child:
            said = []
            for use in (provider.next, lambda: ImageRecordIter(**settings(pack), device="cuda")):
                try:
                    use()
                    said.append("nothing")
                except Exception as error:
                    said.append(f"{type(error).__name__}: {error}")
            os.write(write, "\n".join(said).encode())
            os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        used, made = os.read(read, 1 << 16).decode().split("\n", 1)
        os.close(read)
        assert used.startswith("RuntimeError") and "fork" in used
        assert "fork" in made and "CUDA" in made
        assert provider.next().data[0].is_cuda


def test_memory_goes_back_when_a_provider_is_closed(pack):
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(5):
        with ImageRecordIter(**settings(pack), device="cuda") as provider:
            provider.next()
        del provider
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= before


def decoded_there(pack, **more):
    try:
        open_library("nvjpeg", "nvidia.nvjpeg", "tests", MAJORS)
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    return ImageRecordIter(**settings(pack, **more), device="cuda", decode_on="device")


class Checked(CudaMachine):
    """A device whose kernel is compared with the same kernel on the processor, to the bit."""

    def resample(self, layout, tail, pixels, out, form, slots):
        """Launch it, and run it."""
        super().resample(layout, tail, pixels, out, form, slots)
        tail, pixels = tail.cpu(), pixels.cpu()
        wanted = torch.zeros(out.shape, dtype=out.dtype)
        places = tail.data_ptr(), layout.rows, pixels.data_ptr(), wanted.data_ptr()
        run_kernel(*places, form, slots, layout.most)
        assert torch.equal(out.cpu(), wanted)


@pytest.mark.parametrize(
    "recipe",
    [
        CROPS,
        {**CROPS, "scaled_decode": False},
        {**CROPS, "data_shape": (3, 20, 24)},
        {"resize": 110, "rand_crop": True, "rand_mirror": True},
        {"resize": 140, "layout": "NHWC", "dtype": "float16", **CROPS},
        {"resample": "pillow", "dtype": "bfloat16", **CROPS},
        {"inter_method": 2, "dtype": "uint8", **CROPS},
        {"data_shape": (1, 96, 96), "flip_p": 0.5},
        {},
    ],
)
def test_images_that_the_device_decodes_have_the_same_crops(pack, recipe, monkeypatch):
    monkeypatch.setattr(image_engines, "CudaMachine", Checked)
    with (
        decoded_there(pack, **recipe) as there,
        ImageRecordIter(**settings(pack, **recipe), device="cpu") as here,
    ):
        for found, wanted in zip(arrays(there), arrays(here), strict=True):
            assert found[0].dtype == wanted[0].dtype and torch.equal(found[1], wanted[1])
            levels = (found[0].float() - wanted[0].float()).abs()
            red = levels.select(-1 if recipe.get("layout") == "NHWC" else 1, 0)
            red *= 1 if recipe.get("dtype") == "uint8" else 60
            assert levels.mean() < 1 and levels.max() <= 24
        counts = there.stats()
        assert counts["device_images"] >= RECORDS and counts["host_images"] == 0


def test_memory_of_decoders_goes_back_when_a_provider_is_closed(pack):
    with decoded_there(pack, **CROPS) as provider:
        provider.next()  # the context and the kernel stay
    torch.cuda.synchronize()
    free, _ = torch.cuda.mem_get_info()
    for _ in range(5):
        with decoded_there(pack, **CROPS) as provider:
            provider.next()
    torch.cuda.synchronize()
    assert torch.cuda.mem_get_info()[0] >= free - (64 << 20)


def test_providers_that_decode_there_do_not_meet(pack):
    with decoded_there(pack, **CROPS) as provider:
        wanted = arrays(provider)
    found = {}

    def run(number):
        with decoded_there(pack, **CROPS) as provider:
            found[number] = arrays(provider)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(3):
        assert_equal(found[number], wanted)


def test_what_the_device_does_not_decode_is_made_on_the_processor(tmp_path):
    images = [encode_jpeg(picture(60, 70, seed=i)) for i in range(6)]
    images[1] = encode_jpeg(picture(60, 70, seed=1), progressive=True)
    images[2] = picture(60, 70, seed=2)  # PNG
    images[4] = b"\xff\xd8 no image"
    path = write_pack(tmp_path / "mixed.rec", images)
    asked = {"shuffle": False, "batch_size": 3, "scaled_decode": False}
    with decoded_there(path, **asked) as provider:
        provider.next()
        with pytest.raises(ImageDecodeError, match="record 4"):
            provider.next()
    with (
        decoded_there(path, **asked, on_error="skip") as there,
        ImageRecordIter(**settings(path, **asked, on_error="skip"), device="cpu") as here,
    ):
        for found, wanted in zip(arrays(there), arrays(here), strict=True):
            assert torch.equal(found[1], wanted[1])
            assert (found[0][:, 1:] - wanted[0][:, 1:]).abs().max() <= 24
        assert [number for number, _ in there.skipped] == [4]


def test_a_device_decodes_behind_a_busy_stream(pack):
    with decoded_there(pack, **CROPS) as provider:
        wanted = arrays(provider)
    stream, found = torch.cuda.Stream(), []
    with decoded_there(pack, **CROPS) as provider, torch.cuda.stream(stream):
        torch.cuda._sleep(500_000_000)
        for batch in provider:
            found.append([batch.data[0].clone(), batch.label[0].clone()])
            time.sleep(0.001)
        stream.synchronize()
    assert_equal([[one.cpu() for one in batch] for batch in found], wanted)
