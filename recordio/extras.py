"""Optional packages: the error for one that is missing, with the command that installs it.

`need` imports a package when it is first used.  Where it is missing, the error says what it was to
be used for and how to install it.  Nothing is installed here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Packages, by the names under which they are imported -> the extra of ours that brings them.
EXTRAS = {
    "torch": "torch",
    "fsspec": "remote",
    "obstore": "remote",
    "starlette": "view",
    "uvicorn": "view",
    "jinja2": "view",
    "ray": "ray",
    "pyarrow": "parquet",
    "scipy": "libsvm",
    "ml_dtypes": "bfloat16",
    "lmdb": "lmdb",
    "nvidia.nvjpeg": "device",
}
#: Packages that are spelled otherwise than they are imported: for people, and for pip.
PACKAGES = {
    "PIL": ("Pillow", "pillow"),
    "cv2": ("OpenCV", "opencv-python-headless"),
    "jinja2": ("Jinja2", "jinja2"),
    "nvidia.cuda_nvrtc": ("nvrtc", "nvidia-cuda-nvrtc"),
    "nvidia.nvjpeg": ("nvJPEG", "nvidia-nvjpeg"),
    "scipy": ("SciPy", "scipy"),
    "yaml": ("PyYAML", "pyyaml"),
}


def command(module: str, extra: str | None = None) -> str:
    """Spell the command that installs a package; `extra` is one of several extras that bring it."""
    package = module.partition(".")[0]
    extra = extra or EXTRAS.get(module, EXTRAS.get(package))
    if extra:
        return f"pip install 'recordio-iterators[{extra}]'"
    return f"pip install {_names(module)[1]}"


def _names(module: str) -> tuple[str, str]:
    """Return the names of a package for people and for pip."""
    package = module.partition(".")[0]
    return PACKAGES.get(module) or PACKAGES.get(package, (package, package))


def missing(
    module: str, purpose: str, otherwise: str = "", extra: str | None = None
) -> ModuleNotFoundError:
    """Return the error for a package that is missing, with the command that installs it."""
    text = f"{_names(module)[0]} is needed for {purpose}: {command(module, extra)}"
    text += f" ({otherwise})" if otherwise else ""
    return ModuleNotFoundError(text, name=module.partition(".")[0])


def need(module: str, purpose: str, otherwise: str = "", extra: str | None = None) -> Any:
    """Import a package, or raise ModuleNotFoundError with the command that installs it.

    The error names `purpose`, the feature as the user asked for it, and `otherwise`, a way to do
    without.  Errors inside a package that is installed are raised as they are.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise missing(module, purpose, otherwise, extra) from error
