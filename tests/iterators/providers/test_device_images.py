"""The engine of `decode_on="device"`, with the processor in the place of the device.

The decoder is this project's; everything else is what runs on a device, see `test_cuda`.
"""

import numpy as np
import pytest

from iterators import ImageRecordIter, Pack
from iterators.core import device as devices
from iterators.providers import image_engines, image_job
from iterators.providers.device_images import DeviceImages
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


def decode(contents, steps, stream):
    """Rectangles of images; None for one that is damaged."""
    found = []
    for content, step in zip(contents, steps, strict=True):
        try:
            image = decode_image(content, channels=3, strict=True)
        except ImageDecodeError:
            found.append(None)
            continue
        rows, columns = slice(step.y, step.y + step.height), slice(step.x, step.x + step.width)
        found.append(torch.from_numpy(image[rows, columns].copy()))
    return found


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    """Make "cuda" a device that tensors reach without being moved."""

    class Here(devices.TorchPlacement):
        device = torch.device("cuda")

    class Engine(DeviceImages):
        def __init__(self, source, plans, device, **sizes):
            super().__init__(source, plans, torch.device("cpu"), decode=decode, **sizes)

    real = image_job.placement
    monkeypatch.setattr(
        image_job,
        "placement",
        lambda device, ring=4: Here(torch) if device == "cuda" else real(device, ring),
    )
    monkeypatch.setattr(image_engines, "DeviceImages", Engine)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    images = [encode_jpeg(picture(120 + i, 150 - i, seed=i)) for i in range(20)]
    return write_pack(tmp_path_factory.mktemp("device") / "images.rec", images)


def made(pack, **more):
    settings = {"path_imgrec": str(pack), "data_shape": (3, 64, 64), "batch_size": 6, "seed": 3}
    return ImageRecordIter(**{**settings, "verbose": False, **more})


def there(pack, **more):
    return made(pack, device="cuda", decode_on="device", **more)


@pytest.mark.parametrize(
    ("recipe", "levels"),
    [
        ({**CROPS, "shuffle": True, "scaled_decode": False}, 1),
        ({"resize": 80, "rand_crop": True, "rand_mirror": True, "scaled_decode": False}, 1),
        ({"inter_method": 2, **CROPS, "scaled_decode": False}, 2),
        ({"resample": "pillow", **CROPS}, 2),
        ({"layout": "NHWC"}, 1),
        ({"mean_r": 100.0, "std_g": 3.0, "layout": "NHWC"}, 1),
        ({"dtype": "uint8"}, 1),
    ],
)
def test_crops_are_those_of_the_stage(pack, recipe, levels):
    with there(pack, **recipe) as ours, made(pack, **recipe) as wanted:
        for _ in range(2):
            for one, other in zip(ours, wanted, strict=True):
                assert np.array_equal(one.label[0], other.label[0]) and one.pad == other.pad
                assert np.array_equal(one.index, other.index)
                assert one.data[0].dtype == getattr(torch, str(other.data[0].dtype))
                off = np.abs(one.data[0].numpy().astype(float) - other.data[0])
                assert off.max() <= levels + 1e-4
        counts = ours.stats()
        assert counts["device_images"] >= 20 and counts["host_images"] == 0


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
            assert np.abs(found.data[0].numpy() - one.data[0]).max() <= 1
        assert ours.stats()["device_images"] >= 10


def test_a_worker_that_fails_works_on(pack, monkeypatch):
    """A batch that the decoder gives up is raised, and its worker makes the next one."""
    failing = [True]

    def decoder(contents, steps, stream):
        if failing and failing.pop():
            raise RuntimeError("out of memory")
        return decode(contents, steps, stream)

    workers = []
    real = DeviceImages._worker

    def counted(engine):
        workers.append(engine)
        return real(engine)._replace(decode=decoder)

    monkeypatch.setattr(DeviceImages, "_worker", counted)
    with there(pack, prefetch_buffer=1) as provider:
        with pytest.raises(RuntimeError, match="out of memory"):
            provider.next()
        provider.next()
        assert len(workers) == 1


def test_a_state_is_of_the_decoder_that_made_the_pixels(pack):
    with there(pack, dtype="uint8") as ours, made(pack, dtype="uint8") as other:
        with pytest.raises(ValueError, match="decode_on"):
            other.load_state_dict(ours.state_dict())
        with pytest.raises(ValueError, match="decode_on"):
            ours.load_state_dict(other.state_dict())
