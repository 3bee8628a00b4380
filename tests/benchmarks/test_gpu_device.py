"""The parts of ``benchmarks/gpu.py device``, with host memory in the place of a device."""

import pytest
from device_standin import HostMachine, count, library

from iterators.core import device as devices
from iterators.providers import image_job
from iterators.testing import encode_jpeg, picture, write_pack

torch = pytest.importorskip("torch")
pytest.importorskip("cv2")
gpu_device = pytest.importorskip("gpu_device")


@pytest.fixture
def path(tmp_path, monkeypatch):
    class Here(devices.TorchPlacement):
        device = torch.device("cuda")

    real = image_job.placement
    monkeypatch.setattr(
        image_job,
        "placement",
        lambda device, ring=4: Here(torch) if device == "cuda" else real(device, ring),
    )
    library().standin_reset()
    images = [encode_jpeg(picture(300 + i, 400 - i, seed=i)) for i in range(8)]
    yield str(write_pack(tmp_path / "images.rec", images))
    assert library().standin_fault() == b""


def test_the_check_compares_kernels_and_pixels(path):
    table = gpu_device.check(path, HostMachine, batches=2, batch=4)
    lines = table.splitlines()[2:]
    assert len(lines) == len(gpu_device.CHECKED)
    assert all("| yes |" in line and "| 0.000 |" in line for line in lines)


def test_a_kernel_that_differs_is_found(path, monkeypatch):
    class Wrong(HostMachine):
        def resample(self, layout, tail, pixels, out, form, slots):
            super().resample(layout, tail, pixels, out, form, slots)
            out.view(-1)[0] += 1

    monkeypatch.setattr(gpu_device, "CHECKED", {"crops": gpu_device.CROPS})
    assert "| NO: " in gpu_device.check(path, Wrong, batches=1, batch=8)


def test_rates_by_width_and_decoders(path):
    table = gpu_device.widths(path, HostMachine, "cpu", seconds=0.01, batch=8, slots=(1, 4))
    assert "Engines for JPEG: yes, 4 images in a call by default, scales: yes, smooth" in table
    assert [line.split("|")[1].strip() for line in table.splitlines()[-2:]] == ["1", "4"]
    assert count("images") > 8 and count("objects") == 0


def test_without_a_device_the_script_says_so(monkeypatch, capsys):
    gpu = pytest.importorskip("gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main(["device"]) == 2
    assert "torch finds no CUDA device" in capsys.readouterr().err
