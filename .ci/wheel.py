"""Wheels: the steps of `make wheel`, which are those of cibuildwheel: ``python .ci/wheel.py STEP``.

``libraries``
    libjpeg-turbo and libwebp from their pinned sources, static, in build/libraries.
``complete WHEEL``
    Add to a wheel what it is made of: the licences of the libraries to its own, and a list of them,
    an SBOM in the place that PEP 770 gives it.
``check WHEEL``
    Say what is in a wheel; refuse it if it is too large, or if one of these libraries is not inside
    or not to itself.
``faces``
    Compile what only tests call, in place: it is not in the wheel.
``test [ARGUMENTS OF PYTEST]``
    The suite, or the files of it that are named, against the wheel that is installed beside this
    Python, away from the checkout.  If it fails, what it printed stays in a file of build/wheel.
``all [ARGUMENTS OF PYTEST]``
    Everything, on Linux and without containers: build, repair, install into an empty environment,
    check and test, with compilers, headers and the system's copies of the libraries out of sight.

cibuildwheel (see ``pyproject.toml``) calls the first five, and its own steps lie between them.
"""

import base64
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from libraries import LIBRARIES
from libraries import main as build_libraries

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "build" / "libraries"
WORK = ROOT / "build" / "wheel"
#: Bytes that a wheel may have.
LIMIT = 5_000_000
#: Where a wheel lists the libraries inside, by PEP 770.
SBOM = "sboms/libraries.cdx.json"
#: What a machine without development packages does not have.
HIDDEN = [
    pattern
    for name in ("libjpeg", "libwebp")
    for pattern in (f"/usr/lib/*/{name}.*", f"/usr/lib*/{name}.*")
]
HIDDEN += ["/usr/include/jpeglib.h", "/usr/include/webp/decode.h"]
COMPILERS = ("/usr/bin/*gcc*", "/usr/bin/cc", "/usr/bin/c99", "/usr/bin/clang*")


def run(*command, **settings):
    """Run a command, whose failure ends this program."""
    print("+", *command, flush=True)
    subprocess.run([*map(str, command)], check=True, **settings)


def run_logged(*command, **settings):
    """Run a command; if it fails, what it printed stays in a file, and that is named."""
    print("+", *command, flush=True)
    WORK.mkdir(parents=True, exist_ok=True)
    log = WORK / f"tests-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    with (
        open(log, "wb") as file,
        subprocess.Popen(
            [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **settings
        ) as process,
    ):
        while piece := process.stdout.read1(1 << 16):
            for output in (file, sys.stdout.buffer):
                output.write(piece)
                output.flush()
    if process.returncode:
        sys.exit(f"failed with status {process.returncode}; what it printed: {log}")
    log.unlink()


def libraries():
    """Build the libraries, unless they are there."""
    build_libraries(BUILT)


def components():
    """Return the libraries inside a wheel as a CycloneDX document describes them."""
    return [
        {
            "type": "library",
            "bom-ref": f"{library.package}@{library.version}",
            "name": library.package,
            "version": library.version,
            "licenses": [{"expression": library.licence}],
            "purl": f"pkg:generic/{library.package}@{library.version}?download_url={library.place}",
            "hashes": [{"alg": "SHA-256", "content": library.sha256}],
        }
        for library in LIBRARIES
    ]


def complete(wheel):
    """Add licences and SBOM to a wheel, in its place."""
    wheel = Path(wheel)
    name, version = wheel.name.split("-")[:2]
    facts, name = f"{name}-{version}.dist-info", name.replace("_", "-")
    with zipfile.ZipFile(wheel) as opened:
        files = {item: opened.read(item) for item in opened.infolist() if not item.is_dir()}
    content = {item.filename: data for item, data in files.items()}
    pattern = rb"(?m)^License-Expression: (.+?)\r?$"
    own = re.search(pattern, content[f"{facts}/METADATA"])[1].decode()
    every = " AND ".join([own, *(library.licence for library in LIBRARIES)])
    described = re.sub(
        pattern, f"License-Expression: {every}".encode(), content[f"{facts}/METADATA"], count=1
    )
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": f"{name}@{version}",
                "name": name,
                "version": version,
                "licenses": [{"expression": every}],
                "purl": f"pkg:pypi/{name}@{version}",
            }
        },
        "components": components(),
    }
    changed = {
        f"{facts}/METADATA": described,
        f"{facts}/{SBOM}": json.dumps(document, indent=1).encode(),
    }
    lines = content[f"{facts}/RECORD"].decode().splitlines()
    lines = [line for line in lines if line.partition(",")[0] not in changed]
    for path, data in changed.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        lines.append(f"{path},sha256={digest},{len(data)}")
    changed[f"{facts}/RECORD"] = "\n".join([*lines, ""]).encode()
    new = wheel.with_suffix(".part")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as target:
        for item, data in files.items():
            if item.filename not in changed:
                target.writestr(item, data, compresslevel=9)
        for path, data in changed.items():
            target.writestr(path, data, compresslevel=9)
    new.replace(wheel)


def strangers(module, stripped):
    """Return the ties of a compiled module to other copies of the libraries, as reasons."""
    found = []
    for library in LIBRARIES:
        if f"{library.name}.so".encode() in module:
            found.append(f"needs a {library.name} of the system")
        if stripped:  # then only those names remain that the loader is to find
            names = [name for name in library.functions if f"\0{name}\0".encode() in module]
            found += [f"shows {name}" for name in names]
    return found


def contents(opened):
    """Return the faults of the content of an open wheel, as a list of reasons."""
    wrong, linux = [], "linux" in Path(opened.filename).name
    names = opened.namelist()
    for name in filter(is_compiled, names):
        module = opened.read(name)
        wrong += [f"{name}: {reason}" for reason in strangers(module, linux)]
        for library in LIBRARIES:
            title = f"{library.package} {library.version}"
            if name.startswith(library.module) and title.encode() not in module:
                wrong.append(f"{name}: without {title}")
    wrong += [f"brings {name} along" for name in names if ".libs/" in name]
    for library in LIBRARIES:
        if not any(f"/licenses/licenses/{library.package}" in name for name in names):
            wrong.append(f"without the licence of {library.package}")
    listed = [name for name in names if name.endswith(f".dist-info/{SBOM}")]
    if not listed or json.loads(opened.read(listed[0]))["components"] != components():
        wrong.append("without a list of the libraries inside")
    return wrong


def is_compiled(name):
    """Return whether a file of a wheel is a compiled module."""
    return name.endswith((".so", ".pyd"))


def describe(opened):
    """Print what takes room in an open wheel."""
    rooms = {}
    for item in opened.infolist():
        compiled = is_compiled(item.filename)
        room = "modules" if compiled else Path(item.filename).suffix or "other"
        sizes = rooms.setdefault(room, [0, 0, 0])
        sizes[:] = sizes[0] + 1, sizes[1] + item.file_size, sizes[2] + item.compress_size
    for room, (number, plain, packed) in sorted(rooms.items(), key=lambda entry: -entry[1][2]):
        print(f"  {room:<10} {number:>4} files {plain:>12,} bytes, packed {packed:>10,}")
    modules = [item for item in opened.infolist() if is_compiled(item.filename)]
    modules.sort(key=lambda item: item.compress_size)
    for title, few in (("smallest", modules[:3]), ("largest", modules[-5:])):
        for item in few:
            print(f"  {title:<10} {item.compress_size:>10,} {item.filename}")


def check(wheel):
    """Print what takes room in a wheel, and refuse what must not be published."""
    size = Path(wheel).stat().st_size
    print(f"{Path(wheel).name}: {size:,} bytes")
    with zipfile.ZipFile(wheel) as opened:
        describe(opened)
        wrong = contents(opened)
    if size > LIMIT:
        wrong.append(f"{size:,} bytes are more than {LIMIT:,}")
    if wrong:
        sys.exit("\n".join(wrong))


def faces():
    """Compile what only tests call."""
    settings = {**os.environ, "RECORDIO_COMPILED": "1", "RECORDIO_FACES": "1"}
    run(sys.executable, "setup.py", "-q", "build_ext", "--inplace", cwd=ROOT, env=settings)


def test(*arguments):
    """Run the suite, or the files that are named, from an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        # Processes that tests start import the module of the test from where they are.
        shutil.copytree(ROOT / "tests", Path(folder, "tests"))
        program = (
            "import iterators, recordio, sys\n"
            "for package in (iterators, recordio):\n"
            "    print(package.__path__[0])\n"
            "    if not package.__path__[0].startswith(sys.prefix):\n"
            "        sys.exit('that is not what is installed')\n"
        )
        run(sys.executable, "-c", program, cwd=folder)
        run(sys.executable, "-m", "iterators", cwd=folder)
        pytest = ["-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT]
        pytest += ["-p", "no:cacheprovider", "-n", "auto", "--maxprocesses", "8"]
        named = [ROOT / name if (ROOT / name).exists() else name for name in arguments]
        if named == list(arguments):  # with the examples of what is installed
            named += [ROOT / "tests", "--pyargs", "recordio", "iterators"]
        run_logged(sys.executable, *pytest, "--dist", "loadfile", *named, cwd=folder)


def out_of_sight():
    """Return the prefix of a command that hides compilers and libraries; it needs no rights."""
    files = [file for pattern in (*HIDDEN, *COMPILERS) for file in glob.glob(pattern)]
    files = sorted({os.path.realpath(file) for file in files})
    script = 'n=$1; shift; while [ $n -gt 0 ]; do mount --bind /dev/null "$1" || exit 1; '
    script += 'shift; n=$((n - 1)); done; exec "$@"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    command += [str(len(files)), *files]
    subprocess.run([*command, "true"], check=True)
    return command


def everything(*arguments):
    """Make a wheel in dist/ and try it."""
    shutil.rmtree(WORK / "made", ignore_errors=True)
    libraries()
    environment = {**os.environ, "RECORDIO_LIBRARIES": str(BUILT)}
    environment.pop("RECORDIO_COMPILED", None)
    pip = (sys.executable, "-m", "pip")
    # In this environment: in one of its own, Cython would be new, and all would be compiled again.
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", WORK / "made")
    run(*pip, "wheel", *options, ROOT, env=environment)
    (made,) = (WORK / "made").glob("*.whl")
    auditwheel = (sys.executable, "-m", "auditwheel")
    run(*auditwheel, "repair", "--strip", "--wheel-dir", WORK / "made" / "repaired", made)
    (repaired,) = (WORK / "made" / "repaired").glob("*.whl")
    run(*auditwheel, "show", repaired)
    complete(repaired)
    check(repaired)
    faces()
    empty = WORK / "environment"
    run(sys.executable, "-m", "venv", "--clear", empty)
    hidden = out_of_sight()
    python = empty / "bin" / "python"
    run(python, "-m", "pip", "install", "--upgrade", "pip>=25.1")
    group = f"{ROOT / 'pyproject.toml'}:test"
    run(*hidden, python, "-m", "pip", "install", repaired, "--group", group)
    run(*hidden, python, Path(__file__), "test", *arguments)
    (ROOT / "dist").mkdir(exist_ok=True)
    print(shutil.copy(repaired, ROOT / "dist"))


STEPS = {
    "libraries": libraries,
    "complete": complete,
    "check": check,
    "faces": faces,
    "test": test,
    "all": everything,
}

if __name__ == "__main__":
    STEPS[sys.argv[1]](*sys.argv[2:])
