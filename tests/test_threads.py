"""Eight threads that use one object at once: a reader, a cache, everything that gives batches.

Without the GIL these are the tests that matter; with it, threads are made to change places often.
"""

import contextlib
import sys
import tarfile
import threading
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import recordio
from iterators import TextDataset
from iterators.core.order import ShuffledOrder
from iterators.core.order.mixed import MixedOrder
from iterators.core.pool import BufferPool
from iterators.datasets import ZippedImageDataset
from iterators.testing import write_images
from recordio import ImageDecodeError, decode_image
from recordio.formats.jpeg import jpeg
from recordio.packs.open_pack import OpenPack

sys.path.insert(0, str(Path(__file__).parent))
import shared_objects
from shared_objects import Makers, encoded

THREADS = 8
ROUNDS = 3
TAKEN_FROM = [
    "image_record_iter",
    "cached_in_memory",
    "cached_in_a_file",
    "image_det_record_iter",
    "image_iter",
    "array_provider",
    "csv_iter",
    "resize_iter",
    "prefetching_iter",
    "finite_iterator",
    "serial_iterator",
    "multithread_iterator",
    "multiprocess_iterator",
]

#: Newer versions of Python warn when a process that has threads is forked.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def makers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    shared_objects.prepare(folder)
    return Makers(folder)


@pytest.fixture(autouse=True)
def frequent_changes():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work):
    """Run ``work(number)`` in eight threads that begin together; raises what one of them raised."""
    start, failures = threading.Barrier(THREADS), []

    def guarded(number):
        start.wait()
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(n,), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if failures:
        raise failures[0]


@pytest.mark.parametrize("index", [False, True])
def test_one_reader_in_every_way_at_once(makers, index):
    make, _, wanted = makers.reader()
    count = len(wanted)

    def ways(reader, offset):
        yield lambda: list(reader) == wanted
        yield lambda: len(reader) == count
        yield lambda: all(reader[i] == wanted[i] for i in range(-count, count))
        yield lambda: reader[::-1] == wanted[::-1]
        yield lambda: reader.read_many([5, -1, 5]) == [wanted[5], wanted[-1], wanted[5]]
        yield lambda: all(reader.by_key(key) == wanted[key] for key in range(count))
        yield lambda: reader.position_of(7) == 7 and reader.keys.tolist() == list(range(count))
        yield lambda: reader.read_at(offset)[0] == wanted[3] and reader.offset_of(3) == offset
        yield lambda: reader.check_tail() > offset

    offset = int(make().offsets[3])
    for _ in range(ROUNDS):
        # A new one, so that what is made on first use is made by all of them.
        reader = make() if index else recordio.RecordReader(makers.folder / "a.rec")

        def work(number, reader=reader):
            every = list(ways(reader, offset))
            for way in every[number:] + every[:number]:
                assert way()

        at_once(work)


@pytest.mark.parametrize("name", TAKEN_FROM)
def test_every_batch_is_given_to_one_thread(makers, name):
    make, take, wanted = getattr(makers, name)()
    for _ in range(ROUNDS):
        shared, found = make(), []

        def work(number, shared=shared, found=found):
            try:
                while True:
                    found.append(take(shared))
            except StopIteration:
                pass

        try:
            at_once(work)
        finally:
            getattr(shared, "close", lambda: None)()
        assert sorted(found) == wanted


@pytest.mark.parametrize(
    "name",
    [
        "image_record_iter",
        "cached_in_memory",
        "cached_in_a_file",
        "array_provider",
        "resize_iter",
        "serial_iterator",
        "multithread_iterator",
    ],
)
def test_states_and_resets_meanwhile(makers, name):
    """They come between two batches; the end of all threads is what is tested here."""
    make, take, wanted = getattr(makers, name)()
    shared = make()
    state = shared.state_dict()

    def work(number):
        for _ in range(30):
            if number == 0:
                shared.reset()
            elif number == 1:
                shared.load_state_dict(state)
            elif number == 2:
                shared.state_dict()
            else:
                with contextlib.suppress(StopIteration):
                    assert take(shared) in wanted

    at_once(work)
    shared.load_state_dict(state)
    assert [take(shared) for _ in wanted] == wanted
    getattr(shared, "close", lambda: None)()


@pytest.mark.parametrize("name", ["cached_in_memory", "cached_in_a_file"])
def test_one_cache_that_eight_threads_fill_and_read(makers, name):
    """The threads of one provider share its cache."""
    makers.image["preprocess_threads"] = THREADS
    try:
        make, take, wanted = getattr(makers, name)()
        with make() as provider:
            for _ in range(6):
                assert [take(provider) for _ in wanted] == wanted
                provider.reset()
            info = provider.cache_info()
            assert info.images == len({i for batch in wanted for i in batch})
            assert info.hits > info.misses
    finally:
        makers.image["preprocess_threads"] = 2


def test_providers_of_eight_threads_fill_and_read_one_cache_file(makers):
    make, take, wanted = makers.cached_in_a_file()
    makers.folder.joinpath("images.cache").unlink(missing_ok=True)

    def work(number):
        with make() as provider:
            for _ in range(3):
                assert [take(provider) for _ in wanted] == wanted
                provider.reset()

    at_once(work)


@pytest.mark.parametrize("kind", ["jpeg", "progressive", "png"])
def test_eight_threads_decode_at_once(kind):
    """Each with decoders of its own; what the library keeps for the process is made meanwhile."""
    if kind != "png" and not jpeg.available():
        pytest.skip("OpenCV decodes this kind here")
    shapes = [(17 + 5 * i, 90 - 3 * i, 3) for i in range(12)]
    images = [
        np.random.default_rng(i).integers(0, 256, shape, np.uint8) for i, shape in enumerate(shapes)
    ]
    settings = {"progressive": True} if kind == "progressive" else {}
    files = [encoded(image, "png" if kind == "png" else "jpeg", **settings) for image in images]
    regions = [(3, 2, 9, 11), None]
    wanted = [[decode_image(file, region=region) for file in files] for region in regions]

    def work(number):
        for step in range(10 * len(files)):
            i, region = (step * 5 + number) % len(files), (step + number) % 2
            found = decode_image(files[i], region=regions[region])
            assert np.array_equal(found, wanted[region][i])
            with contextlib.suppress(ImageDecodeError):  # errors are no reason to change the next
                decode_image(files[i][: len(files[i]) // 4])

    at_once(work)


def one_of(name, folder):
    """A function of the number of a sample, of one object that reads a file of 24."""
    files = write_images(folder, 24)
    if name == "text":
        (folder / "a.txt").write_text("".join(f"line {i}\n" for i in range(24)))
        return TextDataset(folder / "a.txt").__getitem__
    if name == "tar":
        with tarfile.open(folder / "a.tar", "w") as archive:
            for file in files:
                archive.add(file, file.name)
        return OpenPack(folder / "a.tar").reader.content
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.name)
    if name == "zip":
        return OpenPack(folder / "a.zip").reader.content
    images = ZippedImageDataset(folder / "a.zip")
    return lambda number: images[number].tobytes()


@pytest.mark.parametrize("name", ["text", "tar", "zip", "images of a zip"])
def test_eight_threads_read_one_file(name, tmp_path):
    read = one_of(name, tmp_path)
    wanted = [bytes(read(i)) if name != "text" else read(i) for i in range(24)]

    def work(number):
        for turn in range(200):
            i = (turn + number) % 24
            assert read(i) == wanted[i]

    at_once(work)


def test_eight_threads_ask_one_order_of_packs():
    def order():
        parts = [ShuffledOrder(100), ShuffledOrder(1000)]
        return MixedOrder(parts, [Fraction("0.7"), Fraction("0.3")], size=1 << 19)

    positions = [np.arange(k, 1 << 19, 1 << 14) for k in range(THREADS)]
    wanted, shared = [order().at(0, mine) for mine in positions], order()

    def work(number):
        assert (shared.at(0, positions[number]) == wanted[number]).all()

    at_once(work)


def test_eight_threads_take_blocks_of_one_pool_and_drop_them_at_once():
    """No block is shorter than it says, and none has two owners."""
    pool = BufferPool(512, keep=3)

    def work(number):
        for turn in range(1000):
            wanted = 64 * (1 + (turn * 7 + number) % 64)
            own = np.frombuffer(pool.take(wanted), np.uint8)
            own[:] = number
            assert len(own) == wanted and (own == number).all()

    at_once(work)
