"""Packs to look at, and a client of their pages."""

import io
import shutil
from pathlib import Path

import numpy as np
import pytest

import recordio
from iterators.testing import write_faces, write_list, write_pack, write_records
from recordio import IRHeader, pack

TOKEN, PORT = "the-token", 8642
BASE = f"http://127.0.0.1:{PORT}"
#: Names of classes, the last of which would be harmful as HTML.
CLASSES = ("cat", "dog", "<script>alert('class')</script>")


@pytest.fixture(scope="session")
def plain(tmp_path_factory, images):
    """30 images of three classes, with names of classes and files: the prefix of the pack."""
    prefix = tmp_path_factory.mktemp("plain") / "plain"
    contents = [
        images.jpeg(40 + number, 60) if number % 2 else images.png(30, 40 + number)
        for number in range(30)
    ]
    labels, ids = [number % 3 for number in range(30)], range(1000, 1030)
    write_pack(f"{prefix}.rec", contents, labels, ids=ids, keys=ids)
    files = [f"{CLASSES[number % 3][:3]}/IMG_{number:03d}.jpg" for number in range(30)]
    write_list(f"{prefix}.lst", files, [f"{label}.000000" for label in labels], ids=ids)
    names = "".join(f"{label}\t{name}\n" for label, name in enumerate(CLASSES))
    prefix.with_name("plain.classes.txt").write_text(names)
    return str(prefix)


@pytest.fixture(scope="session")
def mixed(tmp_path_factory, images):
    """Records of every kind, by their positions in the list below; without an index."""
    prefix = tmp_path_factory.mktemp("mixed") / "mixed"
    array = io.BytesIO()
    np.save(array, np.arange(6, dtype=np.float32).reshape(2, 3))
    magic = (0xCED7230A).to_bytes(4, "little")
    records = [
        pack(IRHeader(0, 1, 0, 0), images.jpeg(24, 36, orientation=6)),
        b'{"name": "<b>", "values": [1, 2]}',
        b"a text with <i>tags</i>\n",
        pack(IRHeader(0, 2, 3, 0), array.getvalue()),
        bytes(range(256)),
        pack(IRHeader(0, 5, 5, 0), images.jpeg(200, 300)[:900]),
        pack(IRHeader(0, 5, 6, 0), b""),
        pack(IRHeader(0, [2, 5, 7, 0.25, 0.5, 0.75, 1, 8, 0, 0, 0.5, 0.5], 7, 0), images.png()),
        pack(IRHeader(0, [1, 2, 3.5], 8, 0), images.png()),
        pack(IRHeader(0, 1, 9, 0), b"abcd" + magic + b"efgh" + magic),
    ]
    write_records(f"{prefix}.rec", records, index=False)
    return str(prefix)


@pytest.fixture(scope="session")
def damaged(tmp_path_factory, plain):
    """The plain pack with a head destroyed in record 4, and its index."""
    prefix = tmp_path_factory.mktemp("damaged") / "damaged"
    data = bytearray(Path(f"{plain}.rec").read_bytes())
    _, offsets = recordio.frames.index_file.read_index(f"{plain}.idx")
    data[offsets[4] : offsets[4] + 4] = b"XXXX"
    prefix.with_name("damaged.rec").write_bytes(data)
    prefix.with_name("damaged.idx").write_bytes(Path(f"{plain}.idx").read_bytes())
    return str(prefix)


@pytest.fixture(scope="session")
def faces(tmp_path_factory):
    """Four identities with three images each."""
    pixels = [np.full((20, 20, 3), 20 * key, np.uint8) for key in range(1, 13)]
    path = write_faces(tmp_path_factory.mktemp("faces") / "faces.rec", [3] * 4, pixels)
    return str(path.with_suffix(""))


@pytest.fixture
def copied(tmp_path):
    """Copy a pack and its index, without what else lies beside them; returns the new prefix."""

    def copy(prefix):
        for file in Path(prefix).parent.glob(f"{Path(prefix).name}.[ri]*"):
            shutil.copy2(file, tmp_path)
        return str(tmp_path / Path(prefix).name)

    return copy


@pytest.fixture
def opened():
    """Open a pack by its prefix, everything counted."""
    from recordio.tools.view.pack import ShownPack

    packs = []

    def open_pack(prefix):
        packs.append(ShownPack(prefix))
        packs[-1].locations.survey()
        if packs[-1].list is not None:
            packs[-1].list.survey()
        return packs[-1]

    yield open_pack
    for shown in packs:
        shown.close()


@pytest.fixture
def site(plain, mixed, damaged, faces):
    """All packs."""
    pytest.importorskip("starlette", reason="the extra view is not installed")
    from recordio.tools.view.pack import open_packs
    from recordio.tools.view.site import Site

    made = Site(open_packs([plain, mixed, damaged, faces]), threads=2)
    for shown in made.packs.values():
        shown.locations.survey(lambda: False)
        if shown.list is not None:
            shown.list.survey()
    yield made
    made.close()


@pytest.fixture
def client(site):
    """A browser that has opened the address with the token."""
    from starlette.testclient import TestClient

    from recordio.tools.view.server import application

    with TestClient(application(site, TOKEN, PORT), base_url=BASE) as browser:
        assert browser.get(f"/?token={TOKEN}").status_code == 200
        yield browser
