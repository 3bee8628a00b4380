"""The suite must not pass by skipping: what this machine can build has to be there."""

import importlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import iterators
import recordio

ROOT = Path(__file__).parents[1]
COMPILED = sorted(
    ".".join(source.relative_to(ROOT).with_suffix("").parts)
    for package in ("recordio", "iterators")
    for source in (ROOT / package).rglob("*.pyx")
)


#: Library -> its header, a word that it must contain, the module that uses it.
LIBRARIES = {
    "libjpeg": ("jpeglib.h", "jpeg_crop_scanline", "recordio.formats.jpeg.jpeg"),
    "libwebp": ("webp/decode.h", "use_cropping", "recordio.formats.webp.webp"),
}


def header_of(library):
    """The header that a compiler would find, if it has what is needed."""
    name, word, _ = LIBRARIES[library]
    homebrew = Path("/opt/homebrew/opt")
    folders = ["/usr/include", "/usr/local/include", homebrew / "jpeg-turbo/include"]
    folders.append(homebrew / "webp/include")
    try:
        found = subprocess.run(
            ["pkg-config", "--variable=includedir", library],
            capture_output=True,
            text=True,
            check=True,
        )
        folders.insert(0, found.stdout.strip())
    except (OSError, subprocess.CalledProcessError):
        pass
    for folder in folders:
        header = Path(folder, name)
        if header.is_file() and word in header.read_text(errors="replace"):
            return header
    return None


def test_the_tree_has_compiled_modules():
    assert COMPILED


@pytest.mark.parametrize("name", COMPILED)
def test_every_pyx_is_importable_as_a_compiled_extension(name):
    module = importlib.import_module(name)
    assert module.__file__.endswith(tuple(EXTENSION_SUFFIXES))


@pytest.mark.parametrize("other", ["recordio", "iterators"])
def test_packages_of_others_with_our_names_are_an_error(other, tmp_path):
    package = Path(recordio.__file__).parent  # compiled, wherever it is
    shutil.copytree(package, tmp_path / "recordio", ignore=lambda *_: ["__pycache__"])
    (tmp_path / "recordio_iterators-0.1.0.dist-info").mkdir()
    command = [sys.executable, "-c", "import recordio"]
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 60}
    assert subprocess.run(command, **options).returncode == 0
    (tmp_path / f"{other}-0.2.0.dist-info").mkdir()
    ran = subprocess.run(command, **options)
    assert ran.returncode == 1 and f"`pip uninstall {other}`" in ran.stderr


@pytest.mark.parametrize(
    "statement",
    ["import recordio", "import iterators", "from iterators.core.random import derive_key"],
)
def test_sources_that_are_not_compiled_say_what_to_do(statement, tmp_path):
    for package in ("recordio", "iterators"):
        for source in (ROOT / package).rglob("*.py*"):
            if source.suffix in (".py", ".pyi"):
                target = tmp_path / source.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
    ran = subprocess.run(
        [sys.executable, "-c", statement], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 1
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("ImportError") and str(tmp_path) in last and "--editable" in last


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_used_where_its_headers_are(library):
    if os.environ.get(f"RECORDIO_WITHOUT_{library.upper()}"):
        pytest.skip(f"built without {library} on request")
    header = header_of(library)
    if header is None:
        pytest.skip(f"no headers of {library} on this machine: OpenCV decodes")
    module = importlib.import_module(LIBRARIES[library][2])
    assert module.available(), f"{header} is there, yet not used: install again (make clean)"


def test_every_folder_of_modules_is_a_package():
    """The build finds packages by their ``__init__.py``."""
    folders = {
        file.parent
        for package in ("recordio", "iterators", "tools")
        for file in (ROOT / package).rglob("*.py*")
        if file.suffix in (".py", ".pyx")
    }
    assert len(folders) > 50
    assert not [folder for folder in folders if not (folder / "__init__.py").is_file()]


def test_the_files_of_the_pages_are_installed():
    """By the patterns of package-data; source archives take the whole folder."""
    text = (ROOT / "pyproject.toml").read_text()
    (patterns,) = re.findall(r'^"recordio.tools.view" = \[(.*)\]$', text, re.M)
    folder = ROOT / "tools" / "view"
    listed = {path for pattern in re.findall(r'"(.+?)"', patterns) for path in folder.glob(pattern)}
    there = {path for path in folder.rglob("*") if path.is_file() and path.suffix != ".py"}
    there = {path for path in there if path.parent.name != "__pycache__"}
    assert there and listed == there
    assert "graft tools" in (ROOT / "MANIFEST.in").read_text().splitlines()


def test_every_console_command_can_be_loaded():
    commands = importlib.metadata.distribution("recordio-iterators").entry_points
    assert "im2rec" in {command.name for command in commands}
    assert all(callable(command.load()) for command in commands)


def test_recordio_tools_is_found_from_any_folder(tmp_path):
    subprocess.run(
        [sys.executable, "-c", "import recordio.tools.im2rec"], cwd=tmp_path, check=True, timeout=60
    )


#: What must not be loaded after statements: packages, and of the standard library what takes long.
SLOW = {"cv2", "PIL", "tqdm", "filelock", "scipy", "urllib.request", "asyncio", "ssl"}
STATEMENTS = {
    "import recordio, iterators": {*SLOW, "numpy", "multiprocessing", "concurrent.futures"},
    "import recordio; recordio.RecordReader, recordio.RecordWriter, recordio.build_index": SLOW,
    "import iterators; iterators.ImageRecordIter, iterators.CSVIter, iterators.DataView": SLOW,
    "import recordio.tools.cli": {"cv2", "PIL", "tqdm", "filelock", "scipy", "ssl"},
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_only_some_uses_need_is_not_imported_before(statement):
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"  # what makes an editable installation work, for example
        f"{statement}\n"
        f"loaded = ({STATEMENTS[statement]!r} & set(sys.modules)) - before\n"
        "sys.exit(f'{loaded} were loaded' if loaded else 0)"
    )
    folder = Path(iterators.__file__).parents[1]  # the package that is tested, installed or not
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr


def test_extras_are_not_imported_before_they_are_asked_for(tmp_path):
    program = (
        "import sys, recordio, iterators, recordio.tools.im2rec, recordio.tools.cli\n"
        "iterators.ImageRecordIter, recordio.join\n"
        "loaded = {'torch', 'ray', 'pyarrow', 'obstore', 'fsspec'} & set(sys.modules)\n"
        "sys.exit(f'{loaded} were loaded' if loaded else 0)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=60)
