"""Plain English on the pages: ``python docs/prose.py [FILE ...]``, which `make docs` runs.

proselint looks for its own faults and for those of `FAULTS`, which are ours; `TERMS` keeps one word
for one thing.  Code, links, tables of parameters and quotations are left out.
"""

import re
import sys
from pathlib import Path

from proselint.checks import __register__ as CHECKS
from proselint.registry.checks import Check, types

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("paper/*.md", "skills/**/*.md", "docs/**/*.md"),
)
#: The architecture page has metaphors of its own, and nobody writes generated pages.
LEFT_OUT = ("docs/internals/architecture.md", "docs/reference/api/generated/", "docs/_build/")

#: Name, pattern, and what to write instead.
FAULTS = (
    (
        "clause",
        r"(?:^[#|*-]* *|\. +)(?:What|Who|Whether|Whoever|Whatever|That which) [^?.|\n]*[.:|\n]",
        "the sentence begins with a clause: name the thing",
    ),
    (
        "fronted",
        r"(?:^|[.*:|] )Of [a-z\d]",
        "begin with the subject",
    ),
    ("suppose", r"\b[Ss]ay that (?:there|you|it)\b", "suppose"),
    ("belong", r"\bbelongs? into\b", "belongs in"),
    ("usual", r"\bas ever\b", "as usual"),
    ("clock", r"\bby the clock\b", "elapsed time"),
    ("endless", r"\bwithout end\b", "forever"),
    ("behind", r"\bone behind the other\b", "one after the other"),
    ("told", r"\b(?:is|are|be|was|were) told (?:of|about|that|to)\b", "say who does what"),
    (
        "feelings",
        r"\b(?:file|loader|iterator|package|provider|it|option)s? (?:wants?|likes?|asks?)\b",
        "software does not want, like or ask",
    ),
    ("riddle", r"\bseen, not held\b|\bthe judge\b|\bculprits?\b", "say it plainly"),
)
#: One word for one thing: the words on the left are not used.
TERMS = {
    "data-set": "data set",
    "mini-batch": "batch",
    "minibatch": "batch",
    "whitespace": "white space",
    "filesystem": "file system",
    "Python's lock": "GIL",
}
#: Of proselint's checks, those that fit a technical text.
WANTED = ("archaism", "malapropisms", "nonwords", "redundancy.garner")


def checks():
    """Return our checks and the chosen ones of proselint."""
    ours = [
        Check(types.ExistenceSimple(f"(?m-i){pattern}"), path=f"ours.{name}", message=message)
        for name, pattern, message in FAULTS
    ]
    words = [
        Check(types.ExistenceSimple(rf"(?i)\b{word}\b"), path="ours.terms", message=instead)
        for word, instead in TERMS.items()
    ]
    theirs = [check for check in CHECKS if any(map(check.matches_partial, WANTED))]
    return [*ours, *words, *theirs]


def prose(text):
    """Return a page of the same length: signs for code, and paragraphs of one line each."""

    def signs(found):
        return re.sub(r"[^\n]", "\N{SECTION SIGN}", found[0])

    text = re.sub(r"(?ms)^( *)(```|~~~|:::).*?^\1\2[`~:]*$", signs, text)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>\n]*>|\"[^\"\n]*\"", signs, text)
    return re.sub(r"(?m)(?<=^)([^#|\n][^\n]*)\n(?=\s*[^\s#|*+>\d-])", r"\1 ", text)


def main(names):
    """Print what is found on the pages, and return the exit status."""
    chosen = checks()
    pages = [Path(name) for name in names] or [
        path
        for pattern in PAGES
        for path in sorted(ROOT.glob(pattern))
        if not path.relative_to(ROOT).as_posix().startswith(LEFT_OUT)
    ]
    found = 0
    for page in pages:
        text = page.read_text(encoding="utf-8")
        content = f"\n{prose(text)}\n"  # checks look at the characters around a word
        for check in chosen:
            for result in check.check(content):
                line = text.count("\n", 0, result.span[0]) + 1
                print(f"{page}:{line}: {content[slice(*result.span)].strip()}: {result.message}")
                found += 1
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
