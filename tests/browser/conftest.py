"""A browser, and `recordio view` over a few small packs."""

import io
import os
import shutil
import signal
import subprocess
import sys

import pytest
from PIL import Image

from recordio import IRHeader, RecordWriter, pack, pack_img

PROGRAM = "import sys; from recordio.tools.cli import main; sys.exit(main(sys.argv[1:]))"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HARMFUL = "<img src=x onerror=alert(1)><script>alert(2)</script>"
#: Resolved to this machine by the browser: a name that somebody else could have given it.
ELSEWHERE = "evil.example"


@pytest.fixture(scope="session")
def packs(tmp_path_factory, photos):
    """photos: 150 images of 3 classes; harmful: names with HTML; damaged: one lost, one cut off."""
    import cv2

    folder = tmp_path_factory.mktemp("packs")
    names = ["cat", "coffee", "rocket"]
    images = [photos["chelsea"], photos["coffee"], photos["rocket"]]
    lines = []
    with RecordWriter(folder / "photos.rec", folder / "photos.idx") as writer:
        for number in range(150):
            image = cv2.resize(images[number % 3], (120 + number, 150))
            header = IRHeader(0, number % 3, number, 0)
            writer.write(pack_img(header, image[..., ::-1]), key=number)
            lines.append(f"{number}\t{number % 3}\t{names[number % 3]}/IMG_{number:03d}.jpg\n")
    (folder / "photos.lst").write_text("".join(lines))
    classes = "".join(f"{label}\t{name}\n" for label, name in enumerate(names))
    (folder / "photos.classes.txt").write_text(classes)

    target = io.BytesIO()
    Image.fromarray(photos["chelsea"]).save(target, "JPEG")
    with RecordWriter(folder / "harmful.rec", folder / "harmful.idx") as writer:
        writer.write(pack(IRHeader(0, 0, 0, 0), target.getvalue()), key=0)
        writer.write(HARMFUL.encode(), key=1)
        boxes = [2, 5, 0, 0.2, 0.2, 0.8, 0.8]
        writer.write(pack(IRHeader(0, boxes, 2, 0), target.getvalue()), key=2)
        writer.write(pack(IRHeader(0, 0, 3, 0), f"<svg>{HARMFUL}</svg>".encode()), key=3)
    (folder / "harmful.lst").write_text(f"0\t0\t{HARMFUL}.jpg\n")
    (folder / "harmful.classes.txt").write_text(f"0\t{HARMFUL}\n")

    with RecordWriter(folder / "damaged.rec", folder / "damaged.idx") as writer:
        for number in range(8):
            content = target.getvalue()[: 3000 if number == 6 else None]
            writer.write(pack(IRHeader(0, 1, number, 0), content), key=number)
    data = bytearray((folder / "damaged.rec").read_bytes())
    offset = int((folder / "damaged.idx").read_text().split()[5])
    data[offset : offset + 4] = b"XXXX"
    (folder / "damaged.rec").write_bytes(data)
    write_fields(folder, photos)
    return [str(folder / f"{name}.rec") for name in ("photos", "harmful", "damaged", "fields")]


def write_fields(folder, photos):
    """Six images with a mask, key points, boxes and a caption each."""
    import cv2
    import numpy as np

    def write(name, rows):
        with RecordWriter(folder / f"{name}.rec", folder / f"{name}.idx") as writer:
            for key, (label, content) in enumerate(rows):
                writer.write(pack(IRHeader(0, label, key, 0), content), key=key)

    image = cv2.resize(photos["chelsea"], (300, 200))
    mask = np.zeros((200, 300), np.uint8)
    mask[40:150, 30:200], mask[:60, 240:] = 1, 255
    images = [cv2.imencode(".png", one)[1].tobytes() for one in (image[..., ::-1], mask)]
    write("fields", [(0.0, images[0])] * 6)
    write("fields.mask", [(0.0, images[1])] * 6)
    points = [2, 9, 0.2, 0.3, 2, 0.5, 0.6, 1, 0, 0, 0]
    write("fields.points", [(points, b"")] * 6)
    write("fields.boxes", [([2, 5, 0, 0.1, 0.2, 0.7, 0.75], b"")] * 6)
    write("fields.caption", [(0.0, f"a cat, {HARMFUL}".encode())] * 6)


class Viewer:
    """A running command."""

    def __init__(self, paths):
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "view", "--no-browser", *paths],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.address = self.process.stdout.readline().strip()
        assert self.address, self.process.stderr.read()
        self.base, self.token = self.address.split("/?token=")
        self.port = int(self.base.rpartition(":")[2])

    def stop(self):
        """End it as Ctrl-C does; returns its exit code and what it said."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


@pytest.fixture(scope="session")
def viewer(packs):
    running = Viewer(packs)
    yield running
    if running.process.poll() is None:
        running.stop()


@pytest.fixture
def own_viewer(packs):
    """One that a test may close."""
    running = Viewer(packs)
    yield running
    if running.process.poll() is None:
        running.stop()


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"none of the browsers {', '.join(BROWSERS)} is installed")
    with api.sync_playwright() as playwright:
        options = [f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            options.append("--no-sandbox")
        started = playwright.chromium.launch(executable_path=path, args=options)
        yield started
        started.close()


class Tab:
    """One page, which notes what it should never do."""

    def __init__(self, browser, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.wrong = []
        self.requested = []
        self.page.on("dialog", lambda dialog: (self.wrong.append(dialog.message), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.page.on("console", self._console)

    def _console(self, message):
        if message.type == "error" and "status of" not in message.text:
            self.wrong.append(message.text)


@pytest.fixture
def open_tab(browser, viewer):
    """Open the printed address, and then a page; with options of the browser's context."""
    tabs = []

    def opened(path="/pack/photos/", log_in=True, **options):
        tab = Tab(browser, **options)
        tabs.append(tab)
        if log_in:
            tab.page.goto(viewer.address)
        tab.page.goto(viewer.base + path)
        return tab

    yield opened
    for tab in tabs:
        tab.context.close()
        assert not tab.wrong
        assert all(url.startswith(viewer.base) for url in tab.requested), tab.requested
