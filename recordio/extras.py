"""What is not installed: one rule for every optional package, and the command that brings it.

`need` imports a package when it is first used.  Where it is missing, the error says what it was to
be used for and how to install it.  Nothing is installed here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["EXTRAS", "PACKAGES", "command", "need"]

#: Packages, by the names under which they are imported -> the extra of ours that brings them.
EXTRAS = {
    "torch": "torch",
    "fsspec": "remote",
    "obstore": "remote",
    "starlette": "view",
    "uvicorn": "view",
    "jinja2": "view",
    "ray": "ray",
    "pyarrow": "ray",
    "scipy": "libsvm",
    "google_crc32c": "checksums",
}
#: What is spelled otherwise than it is imported: for people, and for pip.
PACKAGES = {
    "PIL": ("Pillow", "pillow"),
    "cv2": ("OpenCV", "opencv-python-headless"),
    "google_crc32c": ("google-crc32c", "google-crc32c"),
    "jinja2": ("Jinja2", "jinja2"),
    "scipy": ("SciPy", "scipy"),
    "yaml": ("PyYAML", "pyyaml"),
}


def command(module: str, extra: str | None = None) -> str:
    """Spell the command that installs a package.

    Parameters
    ----------
    module : str
        As it is imported.
    extra : str, optional
        Which of several extras that bring it.

    Returns
    -------
    str

    Examples
    --------
    >>> command("torch")
    "pip install 'recordio-iterators[torch]'"
    >>> command("cv2")
    'pip install opencv-python-headless'
    """
    package = module.partition(".")[0]
    extra = extra or EXTRAS.get(package)
    if extra:
        return f"pip install 'recordio-iterators[{extra}]'"
    return f"pip install {PACKAGES.get(package, (package, package))[1]}"


def need(module: str, purpose: str, otherwise: str = "", extra: str | None = None) -> Any:
    """Import what something cannot do without.

    Parameters
    ----------
    module : str
        What to import, such as ``"scipy.sparse"``.
    purpose : str
        What it is needed for, as the user asked for it: the error says so.
    otherwise : str, optional
        What to do without it.
    extra : str, optional
        Which of several extras that bring it.

    Returns
    -------
    module

    Raises
    ------
    ModuleNotFoundError
        If it is not installed, with the command that installs it.  What goes wrong in a package
        that is installed is raised as it is.

    Examples
    --------
    >>> need("math", "roots").sqrt(4)
    2.0
    >>> need("no_such_package", "magic")
    Traceback (most recent call last):
        ...
    ModuleNotFoundError: no_such_package is needed for magic: pip install no_such_package
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        name = PACKAGES.get(package, (package, package))[0]
        text = f"{name} is needed for {purpose}: {command(module, extra)}"
        text += f" ({otherwise})" if otherwise else ""
        raise ModuleNotFoundError(text, name=package) from error
