"""Build the Cython extensions; everything declarative lives in ``pyproject.toml``.

Every ``.pyx`` below the two packages becomes one extension module.  C files that belong to an
extension stand beside it and are listed in ``C_SOURCES``.  libjpeg-turbo is optional: without its
headers the JPEG module is still built, reports that it has no decoder, and OpenCV decodes instead.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

PACKAGES = ("recordio", "iterators")
C_SOURCES = {
    "recordio.mapping": ["recordio/map_guard.c"],
    "iterators.images.jpeg": [
        "iterators/images/jpeg_decoder.c",
        "iterators/images/jpeg_entropy.c",
        "iterators/images/jpeg_check.c",
        "iterators/images/jpeg_unavailable.c",
    ],
    "iterators.images.jpeg_transcode": [
        "iterators/images/jpeg_rewrite.c",
        "iterators/images/jpeg_coefficients.c",
        "iterators/images/jpeg_scan.c",
        "iterators/images/jpeg_rewrite_unavailable.c",
    ],
}
USES_LIBJPEG = {"iterators.images.jpeg", "iterators.images.jpeg_transcode"}

#: Fused multiply-add would make results depend on the machine; batches must not.
COMPILE_ARGS = (
    ["/O2", "/fp:precise"] if sys.platform == "win32" else ["-O3", "-ffp-contract=off", "-pthread"]
)
LINK_ARGS = [] if sys.platform == "win32" else ["-pthread"]

JPEG_PROBE = """
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
"""


def pkg_config(option):
    """Flags of libjpeg as pkg-config gives them, or none."""
    command = [os.environ.get("PKG_CONFIG", "pkg-config"), option, "libjpeg"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return []


class BuildExt(build_ext):
    """``build_ext`` that links the JPEG module to libjpeg-turbo when it can."""

    def finalize_options(self):
        """Compile on all cores unless told otherwise."""
        super().finalize_options()
        if self.parallel is None:
            self.parallel = os.cpu_count() or 1

    def build_extensions(self):
        """Look for libjpeg-turbo once, then compile."""
        compile_args, link_args = pkg_config("--cflags"), pkg_config("--libs") or ["-ljpeg"]
        found = self.links_libjpeg(compile_args, link_args)
        if not found:
            print(
                "libjpeg-turbo headers not found (Debian: libjpeg62-turbo-dev, Fedora: "
                "libjpeg-turbo-devel, Homebrew: jpeg-turbo): OpenCV will decode JPEG, slower",
                file=sys.stderr,
            )
        for extension in self.extensions:
            if extension.name in USES_LIBJPEG and found:
                extension.define_macros.append(("HAVE_LIBJPEG_TURBO", "1"))
                extension.extra_compile_args += compile_args
                extension.extra_link_args += link_args
        super().build_extensions()

    def build_extension(self, extension):
        """Compile again what depends on libjpeg-turbo: it may have come or gone since."""
        forced, self.force = self.force, self.force or extension.name in USES_LIBJPEG
        super().build_extension(extension)
        self.force = forced

    def links_libjpeg(self, compile_args, link_args):
        """Whether a program that uses the region interface compiles and links."""
        if os.environ.get("RECORDIO_WITHOUT_LIBJPEG"):
            return False
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text(JPEG_PROBE)
            try:
                objects = self.compiler.compile(
                    [str(probe)], output_dir=folder, extra_postargs=compile_args
                )
                self.compiler.link_executable(
                    objects, str(Path(folder, "probe")), extra_postargs=link_args
                )
            except Exception:  # the exception classes differ between compilers
                return False
        return True


def extensions():
    """One extension for every ``.pyx``."""
    for package in PACKAGES:
        for source in sorted(Path(package).rglob("*.pyx")):
            name = ".".join(source.with_suffix("").parts)
            yield Extension(
                name,
                [source.as_posix(), *C_SOURCES.get(name, [])],
                depends=[header.as_posix() for header in source.parent.glob("*.h")],
                include_dirs=[source.parent.as_posix()],
                extra_compile_args=list(COMPILE_ARGS),
                extra_link_args=list(LINK_ARGS),
            )


setup(
    cmdclass={"build_ext": BuildExt},
    ext_modules=cythonize(
        list(extensions()),
        nthreads=0 if sys.platform == "win32" else os.cpu_count() or 1,
        build_dir="build/cython",
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
