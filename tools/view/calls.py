"""Calls of image iterators as text and as forms: parsed, never executed.

Only names of keywords, literals, and in `fields` the kinds of `iterators.fields` have a meaning.
The files are those of the pack that is shown; keywords that would name others are refused, and
those that make no difference are left out, with a note.  Values that the iterator refuses are
refused here as well, with its own error.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NamedTuple

import iterators
import iterators.fields
from iterators.core.field_specs import FieldKind
from recordio.keywords.checks import unknown_keyword

#: Iterators that can be shown.
KINDS = ("ImageRecordIter", "ImageRecordUInt8Iter", "ImageRecordInt8Iter", "ImageDetRecordIter")
SAME = {"ImageRecordProvider": "ImageRecordIter", "ImageRecordIter_v1": "ImageRecordIter"}
LONGEST = 10_000
#: Given by the page.
FILES = ("path_imgrec", "path_imgidx")
NO_DIFFERENCE = (
    "preprocess_threads", "prefetch_buffer", "verbose", "ctx", "device", "device_id", "data_name",
    "normalise_on", "epoch", "verify", "remote_cache", "remote_cache_size", "remote_timeout",
    "remote_options",
)  # fmt: skip
REFUSED = {
    "path_imglist": "it names a file, and the page reads the packs that it was started with",
    "mean_img": "it names a file, and the page reads the packs that it was started with",
    "cache": "the page keeps no cache; batches do not depend on one if there is a resize, and "
    "otherwise are those of scaled_decode=False",
    "cache_size": "the page keeps no cache",
    "data_specs": "the page shows images: ask for a layout",
    "label_name": "it has no effect on what is shown",
}
#: Parameters of addresses that are no keywords.
OF_PAGES = ("hide", "kind", "in_epoch", "batch", "record", "slot", "what", "show", "call", "note")
#: Accepted by the iterators with a single value, and in no form.
ONE_VALUE = ("aug_seq",)
#: Keywords that a form shows first; the rest is folded away.
COMMON = (
    "data_shape", "batch_size", "shuffle", "seed", "resize", "rand_crop", "rand_mirror",
    "random_resized_crop", "min_random_area", "max_random_area", "min_aspect_ratio",
    "max_aspect_ratio", "max_rotate_angle", "brightness", "contrast", "saturation", "pca_noise",
    "rand_crop_prob", "rand_pad_prob", "rand_mirror_prob", "resize_mode", "fields",
)  # fmt: skip


#: Errors of `ast.literal_eval`.
UNREADABLE = (ValueError, TypeError, SyntaxError, RecursionError, MemoryError)


class CallError(ValueError):
    """Fault of a form or a call that has no meaning here."""


@dataclass(frozen=True)
class Settings:
    """Iterator and its keywords, without files."""

    kind: str = KINDS[0]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def text(self, **more: Any) -> str:
        """Return the call as Python."""
        keywords = {**more, **self.keywords}
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value in keywords.items())})"

    def query(self) -> dict[str, str]:
        """Return parameters of an address for the call."""
        return {"kind": self.kind, **{name: repr(v) for name, v in self.keywords.items()}}


class Field(NamedTuple):
    """Field of a form."""

    name: str
    kind: str
    default: str
    text: str
    value: str


def parse_call(text: str) -> tuple[Settings, list[str]]:
    """Read a pasted call of an iterator, perhaps assigned to a name.

    It returns the settings, and texts about everything that was left out.  Another expression, a
    value that is no literal, and a keyword that the iterator refuses are a CallError.
    """
    if len(text) > LONGEST:
        raise CallError(f"the text has {len(text)} characters, more than {LONGEST}")
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CallError(f"this is not Python: {error}") from None
    node = getattr(body[0], "value", None) if len(body) == 1 else None
    if not isinstance(node, ast.Call):
        raise CallError(f"expected one call, such as {KINDS[0]}(batch_size=32, ...)")
    function = node.func
    name = str(getattr(function, "attr", getattr(function, "id", "")))
    kind = SAME.get(name, name)
    if kind not in KINDS:
        raise CallError(f"{name or 'this'} cannot be shown, only {', '.join(KINDS)}")
    if node.args or any(keyword.arg is None for keyword in node.keywords):
        raise CallError("write every argument as name=value")
    nodes: dict[str, ast.expr] = {}
    for keyword in node.keywords:
        assert keyword.arg is not None
        if keyword.arg in nodes:
            raise CallError(f"{keyword.arg} is given twice")
        nodes[keyword.arg] = keyword.value
    options = _options_of(kind)
    keywords: dict[str, Any] = {}
    notes: list[str] = []
    for name, value in nodes.items():
        if name in FILES:
            notes.append(f"{name}: this pack")
        elif name in NO_DIFFERENCE:
            _check_left_out(options[name], value)
            notes.append(f"{name}: makes no difference to what is shown")
        else:
            keywords[name] = _literal(name, value)
    return _checked(kind, keywords), notes


def _check_left_out(item: Any, node: ast.expr) -> None:
    """Refuse the value of a keyword that is left out where the iterator refuses it.

    A value that is no literal, such as ``os.cpu_count()``, is known only where the script runs.
    """
    check = item.metadata["check"]
    try:
        value = ast.literal_eval(node)
    except UNREADABLE:
        return
    try:
        if check is not None:
            check(item.name, value)
    except (TypeError, ValueError) as error:
        raise CallError(str(error)) from None


def _literal(name: str, node: ast.expr) -> Any:
    try:
        if name == "fields" and isinstance(node, ast.Dict):
            keys = [ast.literal_eval(key) for key in node.keys if key is not None]
            return dict(zip(keys, map(_field_kind, node.values), strict=True))
        return ast.literal_eval(node)
    except CallError:
        raise
    except UNREADABLE:
        what = (
            'a dict of names and kinds of fields, such as {"mask": Mask(ignore=255)}'
            if name == "fields"
            else "a number, a text, or a tuple of these"
        )
        raise CallError(
            f"{name}={ast.unparse(node)[:80]}: the page executes nothing, so write {what}"
        ) from None


def _field_kind(node: ast.expr) -> FieldKind | None:
    """Make a kind of `iterators.fields` of a call with literals; one that it refuses is refused.

    None stands for the kind that the pack says.
    """
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    function = getattr(node, "func", None)
    name = str(getattr(function, "attr", getattr(function, "id", "")))
    if name not in iterators.fields.__all__ or not isinstance(node, ast.Call) or node.args:
        raise ValueError
    keywords = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    try:
        return getattr(iterators.fields, name)(**keywords)
    except (TypeError, ValueError) as error:
        raise CallError(str(error)) from None


def parse_fields(values: Mapping[str, str]) -> Settings:
    """Read a form; empty fields are left out, and keywords that make no difference.

    A keyword that does not exist, or that the page refuses, is a CallError.
    """
    kind = values.get("kind", KINDS[0])
    if kind not in KINDS:
        raise CallError(f"{kind!r} cannot be shown, only {', '.join(KINDS)}")
    keywords: dict[str, Any] = {}
    for name, text in values.items():
        if name in (*OF_PAGES, *FILES, *NO_DIFFERENCE) or not text.strip():
            continue
        if len(text) > LONGEST:
            raise CallError(f"{name} has {len(text)} characters, more than {LONGEST}")
        try:
            keywords[name] = _literal(name, ast.parse(text.strip(), mode="eval").body)
        except CallError:
            if name == "fields":
                raise
            keywords[name] = text.strip()
        except UNREADABLE:
            keywords[name] = text.strip()
    return _checked(kind, keywords)


def _checked(kind: str, keywords: dict[str, Any]) -> Settings:
    options = _options_of(kind)
    for name in keywords:
        if name not in options:
            raise CallError(str(unknown_keyword(kind, name, options)))
        if name in REFUSED:
            raise CallError(f"{name}: {REFUSED[name]}; leave it out")
    return Settings(kind, keywords)


def form_groups(settings: Settings) -> dict[str, list[Field]]:
    """Return the fields of a form: those that are common, and the others."""
    groups: dict[str, list[Field]] = {"common": [], "more": []}
    items = {item.name: item for item in _fields(settings.kind)}
    for name in [*(n for n in COMMON if n in items), *(n for n in items if n not in COMMON)]:
        groups["common" if name in COMMON else "more"].append(_field(items, name, settings))
    return groups


def _field(items: dict[str, Any], name: str, settings: Settings) -> Field:
    names = list(items)
    at = names.index(name)
    while items[names[at]].metadata["text"] is ... and at:
        at -= 1  # the description of the one before is its own, too
    item, text = items[name], items[names[at]].metadata["text"]
    default = "" if item.default is MISSING else repr(item.default)
    setting = settings.keywords.get(name, "")
    if isinstance(item.default, bool) and setting != "":
        with contextlib.suppress(TypeError, ValueError):  # shown as it is; the iterator refuses it
            setting = item.metadata["check"](name, setting)
    value = setting if isinstance(setting, str) else repr(setting)
    return Field(name, item.metadata["kind"], default, text.replace("``", "`"), value)


def _options_of(kind: str) -> dict[str, Any]:
    """Return every keyword of an iterator, by its name."""
    options, recipe = getattr(iterators, kind).families
    return {item.name: item for family in (recipe, options) for item in fields(family)}


def _fields(kind: str) -> list[Any]:
    hidden = {*FILES, *NO_DIFFERENCE, *REFUSED, *ONE_VALUE}
    return [item for name, item in _options_of(kind).items() if name not in hidden]
