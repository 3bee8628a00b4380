"""The libraries inside a wheel, from their pinned sources: ``python .ci/libraries.py FOLDER``.

Static libraries and their headers are put into FOLDER; with ``RECORDIO_LIBRARIES=FOLDER`` setup.py
links them into the modules.  Their symbols are hidden, so that they never meet the copies of torch,
OpenCV or Pillow in one process.  Needed are CMake, a C compiler and, for x86, NASM.

A source is one archive in several places: that of the tag at GitHub is, to the byte, what Debian
calls the original source of its package.  ``RECORDIO_SOURCES`` names a folder with archives that
are there already, as ``apt-get source --download-only`` leaves them.  The checksums are compared in
any case.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

GITHUB = "https://github.com"
DEBIAN = "https://deb.debian.org/debian/pool/main"
#: Position-independent, because they become part of modules, and static.
OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
    "-DCMAKE_C_VISIBILITY_PRESET=hidden",
)
#: The linker leaves out functions that no module calls only if each is in a section of its own; and
#: tables for exceptions of C++ serve nobody here.
FLAGS = "-ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables"
if sys.platform != "win32":
    OPTIONS += (f"-DCMAKE_C_FLAGS={FLAGS}",)


@dataclass(frozen=True)
class Library:
    """A library: where its source comes from, how it is made, and which files are wanted."""

    name: str
    package: str  # as Debian spells it
    version: str
    sha256: str
    place: str
    options: tuple[str, ...]
    target: str
    archives: tuple[str, ...]  # whichever of these the compiler makes
    headers: tuple[str, ...]  # in the source or among what is made
    folder: str  # of the headers among those of all
    #: The module that tells the version, and functions that no module may show or need.
    module: str
    functions: tuple[str, ...]
    licence: str  # as SPDX writes it

    @property
    def archive(self):
        """The source's name in Debian."""
        return f"{self.package}_{self.version}.orig.tar.gz"

    def places(self):
        """URLs at which the source may be."""
        folder = os.environ.get("RECORDIO_SOURCES")
        if folder:
            return [Path(folder, self.archive).resolve().as_uri()]
        return [self.place, f"{DEBIAN}/{self.package[:4]}/{self.package}/{self.archive}"]

    def source(self):
        """Return the bytes of the archive."""
        reasons = []
        for place in self.places():
            try:
                with urllib.request.urlopen(place, timeout=60) as response:
                    found = response.read()
            except OSError as error:
                reasons.append(f"{place}: {error}")
                continue
            checksum = hashlib.sha256(found).hexdigest()
            if checksum == self.sha256:
                return found
            reasons.append(f"{place}: its SHA-256 is {checksum}, not {self.sha256}")
        sys.exit(f"no source of {self.name} {self.version}:\n  " + "\n  ".join(reasons))

    def build(self, folder):
        """Compile the library and put it into `folder` with its headers."""
        with tempfile.TemporaryDirectory() as work:
            archive, objects = Path(work, "source.tar.gz"), Path(work, "objects")
            archive.write_bytes(self.source())
            with tarfile.open(archive) as opened:
                opened.extractall(work, filter="data")
            code = Path(work, f"{self.package}-{self.version}")
            command = ["cmake", "-S", code, "-B", objects, *OPTIONS, *self.options]
            subprocess.run(command, check=True)
            command = ["cmake", "--build", objects, "--target", self.target]
            subprocess.run([*command, "--config", "Release", "--parallel"], check=True)
            for header in self.headers:
                places = (code / header, objects / header)
                below = folder / "include" / self.folder
                below.mkdir(exist_ok=True)
                shutil.copy(next(filter(Path.is_file, places)), below)
            (made,) = [path for name in self.archives for path in objects.rglob(name)]
            shutil.copy(made, folder / "lib" / f"{self.name}{made.suffix}")


LIBRARIES = (
    Library(
        "libjpeg",
        "libjpeg-turbo",
        "3.1.3",
        "3a13a5ba767dc8264bc40b185e41368a80d5d5f945944d1dbaa4b2fb0099f4e5",
        f"{GITHUB}/libjpeg-turbo/libjpeg-turbo/archive/refs/tags/3.1.3.tar.gz",
        (
            "-DENABLE_SHARED=OFF",
            "-DREQUIRE_SIMD=ON",
            "-DWITH_TURBOJPEG=OFF",
            "-DWITH_TOOLS=OFF",
        ),
        "jpeg-static",
        ("libjpeg.a", "jpeg-static.lib"),
        ("src/jpeglib.h", "src/jmorecfg.h", "src/jerror.h", "jconfig.h"),
        "",
        "recordio/formats/jpeg/jpeg.",
        ("jpeg_CreateDecompress", "jpeg_std_error", "jpeg_read_header"),
        "IJG AND BSD-3-Clause AND Zlib",
    ),
    Library(
        "libwebp",
        "libwebp",
        "1.6.0",
        "e4ab7009bf0629fd11982d4c2aa83964cf244cffba7347ecd39019a9e38c4564",
        f"{GITHUB}/webmproject/libwebp/archive/refs/tags/v1.6.0.tar.gz",
        (
            "-DBUILD_SHARED_LIBS=OFF",
            *(
                f"-DWEBP_BUILD_{part}=OFF"
                for part in (
                    *("ANIM_UTILS", "CWEBP", "DWEBP", "GIF2WEBP", "IMG2WEBP", "VWEBP", "WEBPINFO"),
                    *("LIBWEBPMUX", "WEBPMUX", "EXTRAS"),
                )
            ),
        ),
        "webpdecoder",
        ("libwebpdecoder.a", "libwebpdecoder.lib", "webpdecoder.lib"),
        ("src/webp/decode.h", "src/webp/types.h"),
        "webp",
        "recordio/formats/webp/webp.",
        ("WebPDecode", "WebPGetFeaturesInternal", "WebPInitDecoderConfigInternal"),
        "BSD-3-Clause",
    ),
)


def main(folder):
    """Build into `folder` what is not there in this version."""
    folder = Path(folder)
    for name in ("include", "lib"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for library in LIBRARIES:
        version = folder / f"{library.name}-version"
        if not version.is_file() or version.read_text() != library.version:
            library.build(folder)
            version.write_text(library.version)


if __name__ == "__main__":
    main(sys.argv[1])
