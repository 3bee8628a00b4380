"""Build the Cython extensions; everything declarative lives in ``pyproject.toml``.

``RECORDIO_COMPILED=1`` installs what is compiled in place already, without compiling it again.
``RECORDIO_FACES=1`` compiles `FACES` too, which otherwise comes with what is compiled in place.
``RECORDIO_LIBRARIES=FOLDER`` links the static libraries in that folder (``.ci/libraries.py`` makes
them) instead of looking for those of the system.

Every ``.pyx`` below the two packages becomes one extension module.  Its first line says what it
needs, if anything: ``# build: small`` compiles a module without loops over pixels, records or
numbers for size, which makes wheels 320 kB smaller (docs/measurements/performance.md has the
rates); names of C files beside it belong to it; and a name of `LIBRARIES` links that library, which
is optional: without its headers the module is still built, reports that it has no decoder, and
Pillow decodes instead.  What all modules need of Cython itself is one more, `SHARED`.
"""

import functools
import itertools
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

if sys.byteorder != "little":
    sys.exit(
        "recordio-iterators needs a little-endian processor, such as x86-64 or aarch64: "
        "its decoders and kernels read words as those have them. This one is big-endian."
    )

PACKAGES = ("recordio", "iterators")
#: Modules that only tests call, because the product reaches the same C code without Python.
FACES = Path("tests", "faces")
#: Made by Cython: memoryviews and the like, of which every module would have a copy.
SHARED = "recordio._cyutility"
REQUIRES = ["filelock>=3.12", "lazy-loader>=0.4", "numpy>=2", "pillow>=10", "tqdm>=4.60"]
#: Everything works without it, some of it slower.  It has no wheels for interpreters without the
#: GIL and for musl, and markers know neither; but each of our wheels has requirements of its own.
OPENCV = "opencv-python-headless>=4.8"
#: Fused multiply-add would make results depend on the machine; batches must not.  What only
#: debuggers need, for which Python's own flags ask, would be three fifths of an installation.
COMPILE_ARGS = (
    ["/O2", "/fp:precise"]
    if sys.platform == "win32"
    else ["-O3", "-ffp-contract=off", "-pthread", "-g0"]
)
LINK_ARGS = [] if sys.platform == "win32" else ["-pthread"]

#: Sanitizers of gcc or clang to compile for, such as ``address,undefined``: see ``make sanitize``.
SANITIZERS = os.environ.get("RECORDIO_SANITIZERS", "")
if SANITIZERS:
    COMPILE_ARGS += [f"-fsanitize={SANITIZERS}", "-fno-sanitize-recover=undefined"]
    # What ASan sees as well, and a quarter of the time of compiling.
    COMPILE_ARGS += ["-fno-sanitize=null,object-size"] if "undefined" in SANITIZERS else []
    COMPILE_ARGS += ["-fno-omit-frame-pointer", "-O1", "-g1"]
    LINK_ARGS += [f"-fsanitize={SANITIZERS}"]
#: A folder of static libraries to put into the modules, as wheels have them.
STATIC = os.environ.get("RECORDIO_LIBRARIES", "")
#: Objects of different flags must not meet.
BUILD_BASE = f"build/{SANITIZERS.replace(',', '-')}" if SANITIZERS else "build"
if STATIC:
    BUILD_BASE += "/wheel"
    # What only C++ exceptions need takes no room.
    COMPILE_ARGS += [] if sys.platform == "win32" else ["-fno-asynchronous-unwind-tables"]


@dataclass(frozen=True)
class Library:
    """A library that some extensions use where a probe compiles and links.

    Its name is that of pkg-config; ``RECORDIO_WITHOUT_LIBJPEG=1``, for example, leaves it alone.
    """

    name: str
    link: str
    macro: str
    probe: str
    missing: str

    def flags(self):
        """Return flags of the compiler and the linker, and the files that are linked statically."""
        if not STATIC:
            compile_args = self.pkg_config("--cflags", [])
            return compile_args, self.pkg_config("--libs", [self.link]), []
        folder = Path(STATIC).resolve()
        suffix = ".lib" if sys.platform == "win32" else ".a"
        archive = str(folder / "lib" / (self.name + suffix))
        # Nobody else in the process is to find its functions; what is unused is left out.
        hidden = {
            "linux": [archive, "-Wl,--exclude-libs,ALL", "-Wl,--gc-sections"],
            "darwin": [f"-Wl,-load_hidden,{archive}"],
        }
        # The version, for the headers of which it is no part.
        version = Path(folder, f"{self.name}-version").read_text()
        compile_args = [f"-I{folder / 'include'}", f"-D{self.name.upper()}_VERSION={version}"]
        return compile_args, hidden.get(sys.platform, [archive]), [archive]

    def pkg_config(self, option, otherwise):
        """Flags as pkg-config gives them."""
        command = [os.environ.get("PKG_CONFIG", "pkg-config"), option, self.name]
        try:
            found = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return otherwise
        return found.stdout.split() or otherwise

    def links(self, compiler, compile_args, link_args):
        """Return whether the probe compiles and links."""
        if os.environ.get(f"RECORDIO_WITHOUT_{self.name.upper()}"):
            return False
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text(self.probe)
            try:
                objects = compiler.compile(
                    [str(probe)], output_dir=folder, extra_postargs=compile_args
                )
                compiler.link_executable(
                    objects, str(Path(folder, "probe")), extra_postargs=link_args
                )
            except Exception:  # the exception classes differ between compilers
                return False
        return True


LIBRARIES = (
    Library(
        "libjpeg",
        "-ljpeg",
        "HAVE_LIBJPEG_TURBO",
        """
#include <stddef.h>
#include <stdio.h>
#include <jpeglib.h>
#ifndef LIBJPEG_TURBO_VERSION_NUMBER
#error not libjpeg-turbo
#endif
int main(void) {
    struct jpeg_decompress_struct cinfo;
    JDIMENSION x = 0, width = 8;
    jpeg_crop_scanline(&cinfo, &x, &width);
    return (int)jpeg_skip_scanlines(&cinfo, 1);
}
""",
        "libjpeg-turbo headers not found (Debian: libjpeg62-turbo-dev, Fedora: "
        "libjpeg-turbo-devel, Homebrew: jpeg-turbo): Pillow will decode JPEG, slower",
    ),
    Library(
        "libwebp",
        "-lwebp",
        "HAVE_LIBWEBP",
        """
#include <webp/decode.h>
int main(void) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) return 1;
    config.options.use_cropping = 1;
    return (int)WebPDecode((const uint8_t*)"", 0, &config);
}
""",
        "libwebp headers not found (Debian: libwebp-dev, Fedora: libwebp-devel, Homebrew: webp): "
        "Pillow will decode WebP, slower",
    ),
)


def requirements():
    """What the wheel that is built needs: OpenCV where there are wheels of it."""
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    musl = "musl" in str(sysconfig.get_config_var("SOABI"))
    return REQUIRES if free_threaded or musl else sorted([*REQUIRES, OPENCV])


class BuildExt(build_ext):
    """``build_ext`` that links modules to the libraries that it finds."""

    def finalize_options(self):
        """Compile on all cores unless told otherwise."""
        super().finalize_options()
        if self.parallel is None:
            self.parallel = os.cpu_count() or 1

    def run(self):
        """Compile; `FACES` that an earlier build left stay out of wheels."""
        if not any(extension.name.startswith(f"{FACES.name}.") for extension in self.extensions):
            shutil.rmtree(Path(self.build_lib, FACES.name), ignore_errors=True)
        super().run()

    def build_extensions(self):
        """Look for each library once, then compile."""
        self.changed = set()
        answers = {}
        for library in LIBRARIES:
            users = {one.name for one in self.extensions if library.name in needs(one.name)}
            if not users:
                continue
            compile_args, link_args, archive = library.flags()
            found = library.links(self.compiler, compile_args, link_args)
            if archive and not found:
                sys.exit(f"RECORDIO_LIBRARIES: there is no {library.name} to link in {STATIC}")
            if not found:
                print(library.missing, file=sys.stderr)
            # What depends on a library is compiled again when it has come or gone.
            known = Path(BUILD_BASE, f"{library.name}-{sys.implementation.cache_tag}.txt")
            answers[known] = repr((found, compile_args, link_args))
            if not known.is_file() or known.read_text() != answers[known]:
                self.changed |= users
            for extension in self.extensions:
                if extension.name in users and found:
                    extension.define_macros.append((library.macro, "1"))
                    extension.extra_compile_args += compile_args
                    extension.extra_link_args += link_args
                    extension.depends += archive
        self.begun = itertools.count(1)
        super().build_extensions()
        for known, answer in answers.items():
            known.parent.mkdir(parents=True, exist_ok=True)
            known.write_text(answer)

    def tell(self, number, name):
        """Show the progress: in one line of a terminal, else every ten modules."""
        total, screen = len(self.extensions), sys.stderr.isatty()
        if screen or number % 10 == 0 or number == total:
            end = "\r" if screen and number < total else "\n"
            line = f"compiling {number} of {total}: {name}"
            print(f"{line:<72}", end=end, file=sys.stderr, flush=True)

    def build_extension(self, extension):
        """Compile one, whatever its files' times say where a library has changed."""
        self.tell(next(self.begun), extension.name)
        forced = self.force
        self.force = forced or extension.name in self.changed
        super().build_extension(extension)
        self.force = forced


def included(sources):
    """Headers of ours that the sources need, through others and through cimports as well."""
    found, open_ends = set(), list(sources)
    while open_ends:
        source = open_ends.pop()
        text = source.read_text(encoding="utf-8")
        near = [source.parent / name for name in re.findall(r'#include "(.+?)"', text)]
        near += [Path(name) for name in re.findall(r'cdef extern from "(.+?)"', text)]
        near += [
            Path(*module.split(".")).with_suffix(".pxd")
            for module in re.findall(r"^(?:from|cimport) ([\w.]+)(?: cimport| as)", text, re.M)
        ]
        for path in near:
            name = os.path.normpath(path)
            if name not in found and os.path.isfile(name):
                found.add(name)
                open_ends.append(Path(name))
    return {name for name in found if name.endswith(".h")}


@functools.cache
def needs(name):
    """Words of the line ``# build: ...`` with which the source of a module begins."""
    source = Path(*name.split(".")).with_suffix(".pyx")
    line = source.read_text(encoding="utf-8").partition("\n")[0] if source.is_file() else ""
    return line.split()[2:] if line.startswith("# build: ") else []


def compile_args(name):
    """Flags of a module, without those of libraries."""
    small = [] if SANITIZERS or not (name == SHARED or "small" in needs(name)) else ["-Os"]
    return [*COMPILE_ARGS, *(["/O1"] if small and sys.platform == "win32" else small)]


def extension(source, name):
    """One ``.pyx`` and what belongs to it."""
    own = filter(Path.exists, [source.with_suffix(".pxd")])  # cimported without a word
    c_files = [source.with_name(word) for word in needs(name) if word.endswith(".c")]
    return Extension(
        name,
        [path.as_posix() for path in (source, *c_files)],
        depends=sorted(included([source, *own, *c_files])),
        include_dirs=["."],
        extra_compile_args=compile_args(name),
        extra_link_args=list(LINK_ARGS),
    )


def long_description():
    """Return the README for a package index, where pictures and links beside it do not exist."""
    text = Path("README.md").read_text(encoding="utf-8")
    pages = (
        "The folder `docs` of the source distribution has the pages; `make docs` builds the site."
    )
    text = re.sub(r"(?ms)^## Read on\n.*?(?=^## )", f"## Read on\n\n{pages}\n\n", text)
    text = re.sub(r"(?m)^!\[[^]]*\]\((?!https:)[^)]*\)\n+", "", text)
    return re.sub(r"\[([^]]*)\]\((?!https:|#)[^)]*\)", r"\1", text)


def packages():
    """Every folder with an ``__init__.py``; ``tools`` is installed as ``recordio.tools``."""
    tools = ("recordio.tools", *(f"recordio.tools.{name}" for name in find_packages("tools")))
    return sorted({*find_packages(include=[f"{name}*" for name in PACKAGES]), *tools})


def extensions():
    """One extension for every ``.pyx``, and what they share."""
    compiled = os.environ.get("RECORDIO_COMPILED")
    in_place = not {"--inplace", "-i", "editable_wheel"}.isdisjoint(sys.argv)
    if not compiled:
        yield Extension(
            SHARED, [], extra_compile_args=compile_args(SHARED), extra_link_args=LINK_ARGS
        )
        for package in PACKAGES:
            for source in sorted(Path(package).rglob("*.pyx")):
                yield extension(source, ".".join(source.with_suffix("").parts))
    if os.environ.get("RECORDIO_FACES") or (in_place and not compiled):
        for source in sorted(FACES.glob("*.pyx")):
            yield extension(source, f"{FACES.name}.{source.stem}")


# Cython compiles in processes that may import this file.
if __name__ == "__main__":
    setup(
        cmdclass={"build_ext": BuildExt},
        packages=packages(),
        install_requires=requirements(),
        long_description=long_description(),
        long_description_content_type="text/markdown",
        options={"build": {"build_base": BUILD_BASE}},
        ext_modules=cythonize(
            list(extensions()),
            nthreads=0 if sys.platform == "win32" else os.cpu_count() or 1,
            build_dir="build/cython",
            shared_utility_qualified_name=SHARED,
            compiler_directives={
                "language_level": 3,
                "autotestdict": False,  # doctest finds the examples by itself
                "boundscheck": False,
                "wraparound": False,
                "initializedcheck": False,
                "cdivision": True,
                "embedsignature": True,
                "freethreading_compatible": True,
            },
        ),
    )
