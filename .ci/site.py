"""The site with all its versions, for `.github/workflows/pages.yml`: ``python .ci/site.py FOLDER``.

Each release has its pages below its version, the checkout that this runs in has them below ``dev``,
and the root of the site leads to the newest release, or to ``dev`` while there is none.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Releases whose pages are kept.
KEPT = 5
REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={}/">\n'


def releases():
    """Return the tags of the releases, the newest first."""
    listed = subprocess.run(
        ["git", "tag", "--list", "v*"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tags = [tag for tag in listed.stdout.split() if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    return sorted(tags, key=lambda tag: [*map(int, tag[1:].split("."))], reverse=True)


def build(checkout, target):
    """Build the pages of a checkout and copy them into a folder named after the version."""
    names = {"DOCS_SWITCHER": "../_static/switcher.json", "DOCS_VERSION": target.name}
    subprocess.run(["make", "docs"], cwd=checkout, check=True, env={**os.environ, **names})
    shutil.copytree(Path(checkout, "docs", "_build", "html"), target)


def main(folder):
    """Make the whole site in a new folder."""
    site = Path(folder)
    site.mkdir()
    newest = releases()[:KEPT]
    versions = ["dev", *(tag[1:] for tag in newest)]
    preferred = versions[1] if newest else "dev"
    build(ROOT, site / "dev")
    for tag in newest:
        with tempfile.TemporaryDirectory() as checkout:
            subprocess.run(
                ["git", "worktree", "add", "--detach", checkout, tag], cwd=ROOT, check=True
            )
            build(checkout, site / tag[1:])
            subprocess.run(["git", "worktree", "remove", "--force", checkout], cwd=ROOT, check=True)
    switcher = [
        {"version": name, "url": f"../{name}/", "preferred": name == preferred} for name in versions
    ]
    for name in versions:
        (site / name / "_static" / "switcher.json").write_text(json.dumps(switcher, indent=1))
    (site / "index.html").write_text(REDIRECT.format(preferred))
    shutil.copy(site / preferred / "llms.txt", site / "llms.txt")


if __name__ == "__main__":
    main(*sys.argv[1:])
