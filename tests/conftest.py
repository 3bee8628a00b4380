"""Fixtures that more than one folder of tests needs."""

import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# A shell that starts the suite in the background has Ctrl-C ignored, which children would inherit;
# a handler of our own is not inherited, so that they begin with the usual one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# How long an example takes says more about the machine than about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_runtest_setup(item):
    """Skip what is about JPEG images decoded by libjpeg-turbo where it was not found."""
    from iterators.images.codecs.jpeg import jpeg

    if item.get_closest_marker("libjpeg") and not jpeg.available():
        pytest.skip("built without libjpeg-turbo")


@pytest.fixture(scope="session")
def golden():
    """Folder of files written by MXNet 1.9.1 and what its iterators return for them."""
    return Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def photos():
    """Photographs inside scikit-image: name -> uint8 array (height, width, 3), RGB, read-only."""
    import skimage
    from PIL import Image

    folder = Path(skimage.__file__).parent / "data"
    images = {}
    for name in ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg"):
        with Image.open(folder / name) as image:
            pixels = np.array(image.convert("RGB"))
        pixels.flags.writeable = False
        images[name.partition(".")[0]] = pixels
    return images
