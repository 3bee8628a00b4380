"""How the libraries of CUDA are found and opened, and what is done without some functions."""

import ctypes
import importlib.util
from types import SimpleNamespace

import pytest
from device_standin import HostMachine, count, library

from iterators.images.device import cuda
from iterators.images.device.decoder import DRIVER, SYMBOLS, BatchDecoder, DeviceDecodeError

pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def well_used():
    library().standin_reset()
    yield
    assert library().standin_fault() == b""


def test_wheels_come_before_the_system_and_the_version_of_torch_first(tmp_path, monkeypatch):
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(cuda.sys, "platform", "linux")
    names = list(cuda.library_names("nvjpeg", ("13", "12")))
    assert names[0] == str(tmp_path / "cu13" / "lib" / "libnvjpeg.so.13")
    assert str(tmp_path / "nvjpeg" / "lib" / "libnvjpeg.so.12") in names
    assert names[-2:] == ["libnvjpeg.so.13", "libnvjpeg.so.12"]
    names = list(cuda.library_names("nvrtc", ("12", "11")))
    assert str(tmp_path / "cuda_nvrtc" / "lib" / "libnvrtc.so.12") in names
    assert names[-1] == "libnvrtc.so.11.2"
    (tmp_path / "cu13" / "bin" / "x86_64").mkdir(parents=True)
    (tmp_path / "cu13" / "bin" / "x86_64" / "nvjpeg64_13.dll").touch()
    monkeypatch.setattr(cuda.sys, "platform", "win32")
    names = list(cuda.library_names("nvjpeg", ("13",)))
    assert [name.endswith("nvjpeg64_13.dll") for name in names] == [True, True]


def test_a_library_that_is_missing_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setattr(cuda, "library_names", lambda name, majors: ["libof_nobody.so.13"])
    with pytest.raises(ModuleNotFoundError) as raised:
        cuda.open_library("nvjpeg", "nvidia.nvjpeg", 'decode_on="device"', ("13",))
    assert str(raised.value) == (
        "nvJPEG is needed for decode_on=\"device\": pip install 'recordio-iterators[device]' "
        '(or leave decode_on="host")'
    )


def test_the_kernel_compiles_for_devices():
    """By the compiler itself, which needs no device."""
    for path in cuda.library_names("nvrtc", cuda.MAJORS):
        try:
            nvrtc = ctypes.CDLL(path)
        except OSError:
            continue
        assert cuda.compiled(nvrtc, "sm_80")[:4] == b"\x7fELF"
        with pytest.raises(DeviceDecodeError, match="nvrtcCompileProgram"):
            cuda.compiled(nvrtc, "sm_1")
        return
    pytest.skip("no nvrtc")


def decoder(without=(), **more):
    """A decoder of the stand-in, where some functions are missing."""
    context = ctypes.c_void_p()
    library().cuCtxGetCurrent(ctypes.byref(context))
    functions = cuda.addresses(library(), list(SYMBOLS), "nvjpeg")
    assert set(functions) == set(SYMBOLS)
    return BatchDecoder(
        {name: address for name, address in functions.items() if name not in without},
        cuda.addresses(library(), DRIVER),
        context.value,
        [1, 2],
        **more,
    )


def test_functions_of_newer_libraries_may_be_missing():
    made = decoder()
    assert made.hardware and made.scales and made.images_per_call == 4
    assert not decoder(["DecodeParamsSetScaleFactor"]).scales
    assert decoder(["GetHardwareDecoderInfo"]).images_per_call == 5
    assert decoder(["DecodeBatchedPreAllocate"]).hardware
    for name in ("DecodeBatchedEx", "DecodeBatchedSupportedEx", "DecodeParamsSetROI"):
        older = decoder([name])
        assert not older.hardware and not older.scales and older.images_per_call == 64
    assert decoder(images_per_call=7).images_per_call == 7
    del made, older
    assert count("objects") == 0


def test_chroma_is_interpolated_where_the_library_can():
    for version, smooth in ((13003, True), (12001, True), (12000, False), (11009, False)):
        library().standin_version(version)
        assert decoder().smooth is smooth
    assert not decoder(["GetProperty"]).smooth


def test_functions_that_every_library_has_are_needed():
    for name, needed in SYMBOLS.items():
        if needed:
            with pytest.raises(ImportError, match=f"no nvjpeg{name}: install nvidia-nvjpeg"):
                decoder([name])


def test_neither_decoder_is_an_error():
    library().standin_device(0, 0, 0)
    library().standin_fail(b"CreateEx", 1, 1)
    with pytest.raises(DeviceDecodeError, match="CreateEx failed: NOT_INITIALIZED; the driver is"):
        decoder()


@pytest.mark.parametrize("decoders", [1, 2, 4])
def test_any_number_of_decoders(decoders):
    machine = HostMachine(decoders=decoders)
    assert len(machine.streams) == decoders
    machine.decoder(3, images_per_call=2)
    assert count("objects") == 0
