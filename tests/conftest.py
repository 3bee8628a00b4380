"""Fixtures that more than one folder of tests needs."""

import gc
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

# Scripts that import MXNet, and which `iterators/compat/test_scripts.py` runs.
collect_ignore_glob = ["compat_scripts/*"]

# Where helpers of tests are found, and the modules of `faces`.
sys.path.append(str(Path(__file__).parent))

# A shell that starts the suite in the background has Ctrl-C ignored, which children would inherit;
# a handler of our own is not inherited, so that they begin with the usual one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Ray listens on the loopback alone, and reports nothing; it looks when it is imported.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# Nodes of a busy machine take their time.
os.environ["RAY_raylet_start_wait_time_s"] = "120"  # noqa: SIM112


def pytest_runtest_setup(item):
    """Skip what is about images decoded by libraries that were not found."""
    from recordio.formats import by_opencv
    from recordio.formats.jpeg import jpeg
    from recordio.formats.webp import webp

    if item.get_closest_marker("libjpeg") and not jpeg.available():
        pytest.skip("built without libjpeg-turbo")
    if item.get_closest_marker("libwebp") and not webp.available():
        pytest.skip("built without libwebp")
    if item.get_closest_marker("opencv") and not by_opencv.available():
        pytest.skip("the package does not see OpenCV")


@pytest.fixture
def new_threads():
    """``new_threads()``: those that were started since the test began; older ones may end."""
    before = set(threading.enumerate())
    return lambda: set(threading.enumerate()) - before


@pytest.fixture
def interrupt_after():
    """``interrupt_after(seconds)``: Ctrl-C in this process.

    No garbage is collected until the test ends: hypothesis has a callback of the collector, which
    swallows what is raised inside of it.
    """
    gc.disable()
    yield lambda seconds: threading.Timer(seconds, signal.raise_signal, [signal.SIGINT]).start()
    gc.enable()


@pytest.fixture
def impatient():
    """``with impatient(seconds)``: requests are given up as if that were `remote_timeout`.

    Opening before has all its time, and so has what comes afterwards, on a machine however busy.
    """
    from recordio.bytes.remote.settings import RemoteSettings

    return lambda seconds: patch.object(RemoteSettings, "timeout", seconds)


@pytest.fixture(scope="session")
def golden():
    """Folder of files written by MXNet 1.9.1 and what its iterators return for them."""
    return Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def photos():
    """Photographs of the examples: name -> uint8 array (height, width, 3), RGB, read-only."""
    from PIL import Image

    folder = Path(__file__).parents[1] / "examples" / "photographs"
    images = {}
    for name in ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg"):
        with Image.open(folder / name) as image:
            pixels = np.array(image.convert("RGB"))
        pixels.flags.writeable = False
        images[name.partition(".")[0]] = pixels
    return images


@pytest.fixture(scope="session")
def s3_endpoint():
    """URL of an S3 server on the loopback; skipped where moto is not installed."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def bucket(s3_endpoint):
    """Client of that server, which has a bucket of that name."""
    client = pytest.importorskip("boto3").client(
        "s3", endpoint_url=s3_endpoint, region_name="us-east-1",
        aws_access_key_id="me", aws_secret_access_key="hunter2-hunter2",
    )  # fmt: skip
    client.create_bucket(Bucket="bucket")
    return client


class RayCluster:
    """A cluster of node processes on this machine, where nodes are added and killed."""

    def __init__(self):
        import ray
        from ray.cluster_utils import Cluster

        node = {"node_ip_address": "127.0.0.1", "object_store_memory": 80 << 20}
        head = {**node, "num_cpus": 1, "include_dashboard": False}
        self._node = node
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._cluster.add_node(num_cpus=1, **node)
        self.address = self._cluster.address
        ray.init(self.address, log_to_driver=False, _node_ip_address="127.0.0.1")
        ray.data.DataContext.get_current().enable_progress_bars = False

    def add_node(self, **resources):
        """One more, with one processor."""
        return self._cluster.add_node(num_cpus=1, resources=resources, **self._node)

    def kill(self, node):
        """End all processes of a node at once."""
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self):
        import ray

        ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="module")  # what one module killed is not in the way of the next
def ray_cluster():
    """Two nodes with a processor each; skipped where Ray is not installed."""
    pytest.importorskip("ray.data")
    cluster = RayCluster()
    yield cluster
    cluster.close()


@pytest.fixture
def fake_containers(monkeypatch):
    """Make ``.spans`` and ``.packed`` files containers; see `fake_containers`."""
    from fake_containers import register

    register(monkeypatch)
