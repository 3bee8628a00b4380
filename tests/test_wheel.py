"""`.ci/wheel.py`: which wheels, and which sources of the libraries inside, are refused."""

import base64
import dataclasses
import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"


@pytest.fixture
def ci(monkeypatch):
    """The script, imported from where it is."""
    monkeypatch.syspath_prepend(str(CI))
    for name in ("wheel", "libraries"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import wheel

    yield wheel
    for name in ("wheel", "libraries"):
        sys.modules.pop(name, None)


@pytest.fixture(params=["libjpeg", "libwebp"])
def library(ci, request):
    return next(library for library in ci.LIBRARIES if library.name == request.param)


def made(folder, ci, name="a-1-cp311-cp311-manylinux_2_28_x86_64.whl", without=None, more=b""):
    """A wheel; `without` leaves a library or a licence out, `more` comes into each module."""
    path = folder / name
    with zipfile.ZipFile(path, "w") as file:
        for library in ci.LIBRARIES:
            title = f"{library.package} {library.version}"
            content = b"OpenCV" if without == library.name else title.encode() + more
            file.writestr(f"{library.module}cpython-311.so", content)
            if without != "licences":
                file.writestr(f"a-1.dist-info/licenses/licenses/{library.package}.md", "")
        file.writestr("recordio/frames/frame.cpython-311.so", b"frame")
        file.writestr("a-1.dist-info/METADATA", "Name: a\nLicense-Expression: Apache-2.0\n\nText\n")
        file.writestr("a-1.dist-info/RECORD", "a-1.dist-info/METADATA,sha256=0,1\n")
    if without != "list":
        ci.complete(path)
    return path


def test_a_wheel_with_the_libraries_to_itself_passes_and_is_described(ci, tmp_path, capsys):
    ci.check(made(tmp_path, ci))
    said = capsys.readouterr().out
    assert "modules       3 files" in said and "frame.cpython-311.so" in said


def test_a_wheel_without_a_library_is_refused(ci, library, tmp_path):
    with pytest.raises(SystemExit, match=rf"cpython-311.so: without {library.package} "):
        ci.check(made(tmp_path, ci, without=library.name))


def test_a_module_that_needs_the_library_of_the_system_is_refused(ci, library, tmp_path):
    needing = b"\0" + library.name.encode() + b".so.0\0"
    with pytest.raises(SystemExit, match=f"needs a {library.name} of the system"):
        ci.check(made(tmp_path, ci, more=needing))


def test_a_module_that_shows_functions_of_a_library_is_refused(ci, library, tmp_path):
    for function in library.functions:
        with pytest.raises(SystemExit, match=f"shows {function}$"):
            ci.check(made(tmp_path, ci, more=b"\0" + function.encode() + b"\0"))


def test_modules_that_are_not_stripped_keep_hidden_names(ci, library, tmp_path):
    content = b"\0" + library.functions[0].encode() + b"\0"
    ci.check(made(tmp_path, ci, "a-1-cp311-cp311-macosx_11_0_arm64.whl", more=content))


def test_a_wheel_without_the_licences_is_refused(ci, library, tmp_path):
    with pytest.raises(SystemExit, match=f"without the licence of {library.package}"):
        ci.check(made(tmp_path, ci, without="licences"))


def test_a_wheel_says_which_libraries_are_inside_and_under_which_licences(ci, tmp_path):
    with zipfile.ZipFile(made(tmp_path, ci)) as opened:
        described = opened.read("a-1.dist-info/METADATA").decode().splitlines()
        listed = json.loads(opened.read("a-1.dist-info/sboms/libraries.cdx.json"))
        record = opened.read("a-1.dist-info/RECORD").decode().splitlines()
        rows = dict(line.split(",", 1) for line in record)
        for name in ("a-1.dist-info/METADATA", "a-1.dist-info/sboms/libraries.cdx.json"):
            digest = base64.urlsafe_b64encode(hashlib.sha256(opened.read(name)).digest())
            size = opened.getinfo(name).file_size
            assert rows[name] == f"sha256={digest.decode().rstrip('=')},{size}"
    every = " AND ".join(["Apache-2.0", *(library.licence for library in ci.LIBRARIES)])
    assert described == ["Name: a", f"License-Expression: {every}", "", "Text"]
    assert listed["metadata"]["component"]["licenses"] == [{"expression": every}]
    assert [(item["name"], item["version"]) for item in listed["components"]] == [
        (library.package, library.version) for library in ci.LIBRARIES
    ]
    assert len(record) == len(rows) == 2


def test_a_wheel_without_a_list_of_the_libraries_is_refused(ci, tmp_path):
    with pytest.raises(SystemExit, match="without a list of the libraries inside"):
        ci.check(made(tmp_path, ci, without="list"))


def test_a_wheel_that_is_too_large_is_refused(ci, tmp_path, monkeypatch):
    monkeypatch.setattr(ci, "LIMIT", 100)
    with pytest.raises(SystemExit, match="bytes are more than 100"):
        ci.check(made(tmp_path, ci))


def test_a_source_with_another_checksum_is_refused(library, tmp_path, monkeypatch):
    monkeypatch.setenv("RECORDIO_SOURCES", str(tmp_path))
    tmp_path.joinpath(library.archive).write_bytes(b"something else")
    with pytest.raises(SystemExit, match=rf"{library.archive}: its SHA-256 is \w+, not"):
        library.source()


def test_a_source_that_is_missing_is_named(library, tmp_path, monkeypatch):
    monkeypatch.setenv("RECORDIO_SOURCES", str(tmp_path))
    with pytest.raises(SystemExit, match=f"{library.archive}: "):
        library.source()


def test_a_source_is_taken_from_the_next_place_where_it_is(library, tmp_path, monkeypatch):
    (tmp_path / "source").write_bytes(b"the source")
    places = [(tmp_path / "gone").as_uri(), (tmp_path / "source").as_uri()]
    monkeypatch.setattr(type(library), "places", lambda self: places)
    digest = hashlib.sha256(b"the source").hexdigest()
    assert dataclasses.replace(library, sha256=digest).source() == b"the source"


def test_sources_are_at_github_and_in_debian(library, monkeypatch):
    monkeypatch.delenv("RECORDIO_SOURCES", raising=False)
    github, debian = library.places()
    assert library.version in github and github.startswith("https://github.com/")
    assert debian.endswith(f"/{library.package[:4]}/{library.package}/{library.archive}")


def test_the_log_of_a_run_that_fails_stays_and_is_named(ci, tmp_path, monkeypatch, capfdbinary):
    monkeypatch.setattr(ci, "WORK", tmp_path / "work")
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(int(sys.argv[1]))"
    ci.run_logged(sys.executable, "-uc", program, 0)
    assert not list((tmp_path / "work").iterdir())
    with pytest.raises(SystemExit) as caught:
        ci.run_logged(sys.executable, "-uc", program, 3)
    (log,) = (tmp_path / "work").iterdir()
    assert log.read_text().split() == ["out", "err"]
    assert "status 3" in str(caught.value) and str(log) in str(caught.value)
    assert capfdbinary.readouterr().out.endswith(b"\nout\nerr\n")
