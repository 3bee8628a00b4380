"""What nvImageCodec is asked for, without a device."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from iterators.images import device_decode


@pytest.mark.parametrize(("channels", "colours"), [(1, "grey"), (3, "rgb")])
def test_the_decoder_has_one_thread_and_smooth_chroma(monkeypatch, channels, colours):
    codec = Mock(ColorSpec=SimpleNamespace(GRAY="grey", SRGB="rgb"))
    monkeypatch.setattr(device_decode, "need", lambda *names: codec)
    device_decode.DeviceDecoder(SimpleNamespace(index=1), channels)
    asked = codec.Decoder.call_args.kwargs
    assert asked["device_id"] == 1
    assert asked["max_num_cpu_threads"] == 1  # more wait for ever for a batch of one image
    assert asked["options"] == ":fancy_upsampling=1"
    assert codec.DecodeParams.call_args.kwargs["color_spec"] == colours
