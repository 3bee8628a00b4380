"""Names in folders and archives that systems and programs make besides the data."""

from __future__ import annotations

__all__ = ["is_system_name"]

#: Files and folders of Windows, macOS, Linux, and of Synology's and QNAP's stores, in lower case.
SYSTEM_NAMES = frozenset(
    {
        "#recycle",
        "$recycle.bin",
        "@eadir",
        "@recycle",
        "__macosx",
        "desktop.ini",
        "lost+found",
        "system volume information",
        "thumbs.db",
    }
)


def is_system_name(path: str) -> bool:
    """Tell whether a path with slashes belongs to a system and not to the data, at any depth.

    These are hidden files, all that is in hidden folders, and well-known names.  The path begins
    below the root, which may be hidden itself.

    >>> [is_system_name(path) for path in ("a/._1.jpg", ".git/1.jpg", "__MACOSX/1.jpg", "./1.jpg")]
    [True, True, True, False]
    """
    return any(
        (part.startswith(".") and part not in (".", "..")) or part.lower() in SYSTEM_NAMES
        for part in path.split("/")
    )
