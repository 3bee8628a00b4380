"""recordio.packs.entry_points: whole or not at all, and only beside the pack that they are of."""

import os
import shutil
from pathlib import Path

import pytest

from faces.codecs import decode_jpeg
from iterators.testing import encode_jpeg, picture, write_pack
from recordio.formats.jpeg.entry_store import EntryStore
from recordio.packs.entry_points import keep_entry_points, load_entry_points
from recordio.packs.open_pack import OpenPack, open_pack

pytestmark = pytest.mark.libjpeg
COUNT = 6


@pytest.fixture(autouse=True)
def own_entropy_decoder(monkeypatch, tmp_path):
    monkeypatch.setenv("ITERATORS_JPEG", "")
    monkeypatch.setenv("RECORDIO_INDEX_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def images():
    return [encode_jpeg(picture(160, 240, seed), quality=90) for seed in range(COUNT)]


@pytest.fixture
def pack(tmp_path, images):
    write_pack(tmp_path / "pack.rec", images)
    return tmp_path / "pack.rec"


def opened(path) -> OpenPack:
    return open_pack(str(path))


def noted(images, only=range(COUNT), first=0):
    """A store that has the points of some images."""
    store = EntryStore(first + len(images), share=1)
    for i in only:
        decode_jpeg(images[i], entries=store, record=first + i)
    return store


def all_of(store, first=0):
    return [store.packed(i) for i in range(first, len(store))]


def loaded(path, first=0):
    store = EntryStore(first + COUNT, share=1)
    load_entry_points(opened(path), store, first)
    return all_of(store, first)


def test_what_is_kept_is_found_again(pack, images):
    store = noted(images, [0, 2, 5], first=3)
    assert loaded(pack) == [None] * COUNT
    keep_entry_points(opened(pack), store, 3)
    assert pack.with_suffix(".entry").is_file()
    assert loaded(pack) == all_of(store, 3)
    assert sum(one is not None for one in loaded(pack, 7)) == 3


def test_a_file_is_written_only_for_something_new(pack, images):
    keep_entry_points(opened(pack), EntryStore(COUNT), 0)
    file = pack.with_suffix(".entry")
    assert not file.exists()
    keep_entry_points(opened(pack), noted(images), 0)
    os.utime(file, ns=(1 << 62, 1 << 62))
    keep_entry_points(opened(pack), noted(images), 0)
    assert file.stat().st_mtime_ns == 1 << 62


def test_processes_add_to_what_others_wrote(pack, images):
    first, second = noted(images, [0, 1]), noted(images, [1, 4])
    keep_entry_points(opened(pack), first, 0)
    keep_entry_points(opened(pack), second, 0)
    assert [one is not None for one in loaded(pack)] == [True, True, False, False, True, False]
    assert all_of(second) == loaded(pack)


def test_of_any_other_bytes_nothing_is_believed(pack, images):
    keep_entry_points(opened(pack), noted(images), 0)
    file = pack.with_suffix(".entry")
    data = file.read_bytes()
    for at in [*range(0, 60), len(data) // 2, *range(len(data) - 8, len(data))]:
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert loaded(pack) == [None] * COUNT, at
    for size in [*range(0, 60), len(data) // 2, len(data) - 1]:
        file.write_bytes(data[:size])
        assert loaded(pack) == [None] * COUNT, size
    file.write_bytes(data + b"\0")
    assert loaded(pack) == [None] * COUNT
    file.write_bytes(data)
    assert None not in loaded(pack)


def test_another_pack_has_none(pack, images, tmp_path):
    keep_entry_points(opened(pack), noted(images), 0)
    other = write_pack(tmp_path / "other.rec", images[::-1])
    shutil.copy(pack.with_suffix(".entry"), other.with_suffix(".entry"))
    assert loaded(other.with_suffix(".rec")) == [None] * COUNT


def test_a_pack_that_was_written_anew_has_none(pack, images):
    keep_entry_points(opened(pack), noted(images), 0)
    status = pack.stat()
    os.utime(pack, ns=(status.st_atime_ns, status.st_mtime_ns + 10**12))
    assert loaded(pack) == [None] * COUNT


def test_where_nobody_may_write_the_cache_folder_takes_it(pack, images, tmp_path, monkeypatch):
    from recordio.bytes import storage

    class Refused(storage.AtomicOutput):
        def __init__(self, path, *args, **settings):
            if Path(path).parent == pack.parent:
                raise PermissionError(13, "no")
            super().__init__(path, *args, **settings)

    from recordio.containers import index

    monkeypatch.setattr(index, "AtomicOutput", Refused)
    keep_entry_points(opened(pack), noted(images), 0)
    assert not pack.with_suffix(".entry").exists()
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert None not in loaded(pack)


def test_points_of_a_container_lie_beside_it(images, tmp_path):
    import io
    import tarfile

    path = tmp_path / "set.tar"
    with tarfile.open(path, "w") as file:
        for number, image in enumerate(images):
            for name, content in ((f"{number}.jpg", image), (f"{number}.cls", b"1")):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                file.addfile(info, io.BytesIO(content))
    keep_entry_points(opened(path), noted(images), 0)
    assert (tmp_path / "set.tar.entry").is_file()
    assert None not in loaded(path)
