"""Names of older systems that a script uses, looked up before it runs, without running it.

Imports are followed to names of modules and classes.  Methods of objects are not known before a
script runs, and are not looked at.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from .training_stubs import TrainingStub

__all__ = ["Finding", "check", "check_text", "scripts_in"]

#: Systems whose names are here, as scripts import them.
SYSTEMS = ("mxnet", "chainer", "pylearn2", "dp")
HERE = "iterators.compat"
MISSING, DIFFERS, CHANGES = "missing", "differs", "changes"

NO_DOWNLOAD = "nothing is downloaded: the files must be in the folder that it is given"
#: Names that exist here and do something else on purpose.
DIFFERENCES = {
    "mxnet.gpu": "arrays cannot be there: pass device='cuda:0' to iterators, or move them by torch",
    "mxnet.context.num_gpus": "is 0: arrays are in host memory",
    "mxnet.gluon.data.vision.MNIST": NO_DOWNLOAD,
    "mxnet.gluon.data.vision.FashionMNIST": NO_DOWNLOAD,
    "mxnet.gluon.data.vision.CIFAR10": NO_DOWNLOAD,
    "mxnet.gluon.data.vision.CIFAR100": NO_DOWNLOAD,
    "mxnet.gluon.data.vision.transforms.RandomSaturation": "grey is the brightness of all channels",
    "mxnet.io.MNISTIter": "a new order in every epoch: shuffle=False where two loops must agree",
    "mxnet.random.seed": "seeds draws of mx.random, gluon's transforms and loaders, nothing else",
    "chainer.get_device": "a GPU is 'cuda:0', and its arrays are torch tensors",
    "chainer.datasets.get_mnist": NO_DOWNLOAD,
    "chainer.datasets.get_fashion_mnist": NO_DOWNLOAD,
    "chainer.datasets.get_kuzushiji_mnist": NO_DOWNLOAD,
    "chainer.datasets.get_cifar10": NO_DOWNLOAD,
    "chainer.datasets.get_cifar100": NO_DOWNLOAD,
    "pylearn2.space.is_symbolic_batch": "symbolic batches are torch tensors",
}
SEEDS = "the order follows seed=, 0 by default, and the epoch; not numpy.random.seed or random.seed"
#: Keywords that do nothing, or something else, unless they are False.
KEYWORDS = {
    ("mxnet.gluon.data.DataLoader", "pin_memory"): "has no effect, and a warning says so",
    ("mxnet.io.NDArrayIter", "shuffle"): SEEDS,
    ("mxnet.image.ImageIter", "shuffle"): SEEDS,
    ("mxnet.image.ImageDetIter", "shuffle"): SEEDS,
}
#: Names of dp, whose scripts are in Lua.
LUA_NAME = re.compile(r"\bdp\.([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Finding:
    """A line of a script: a name that is missing, one that differs, or an import that changes."""

    path: str
    line: int
    kind: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name} {self.kind}: {self.text}"


def scripts_in(path: str | Path) -> list[Path]:
    """Return a script itself, or all scripts in a folder and below it."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix in (".py", ".lua"))


def check(path: str | Path) -> list[Finding]:
    """Look a script up; raises SyntaxError for one that is no Python, and OSError."""
    return check_text(Path(path).read_text(encoding="utf-8", errors="replace"), str(path))


def check_text(text: str, path: str) -> list[Finding]:
    """Return what there is to say of the text of a script, by its lines."""
    if path.endswith(".lua"):
        findings = list(_of_lua(text, path))
    else:
        findings = _Names(ast.parse(text, path), path).findings()
    return sorted(set(findings), key=lambda finding: (finding.line, finding.name))


def _of_lua(text: str, path: str) -> Iterator[Finding]:
    """Yield names of dp that are not here; those of Lua are spelled in Python's way."""
    for number, line in enumerate(text.split("\n"), 1):
        for name in LUA_NAME.findall(line.partition("--")[0]):
            if not hasattr(import_module(f"{HERE}.dp"), name):
                reason = "it is not in iterators.compat.dp, which has dp's views and data sets"
                yield Finding(path, number, MISSING, f"dp.{name}", reason)


class _Names:
    """The names of a script that come from an older system, by the names they have there."""

    def __init__(self, tree: ast.Module, path: str) -> None:
        self.tree, self.path = tree, path
        #: What a name of the script stands for: a dotted name of a system.
        self.meanings: dict[str, str] = {}
        self.imports: list[Finding] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._import(node)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self._import_from(node)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            own, was = _own_name(alias.name)
            if own is None:
                continue
            if was:
                whole = own if alias.asname else own.partition(".")[0]
                above, _, name = f"{HERE}.{whole}".rpartition(".")
                aliased = f" as {alias.asname}" if alias.asname else ""
                after = f"from {above} import {name}{aliased}"
                self._change(node, f"import {alias.name}{aliased}", after)
            if alias.asname:
                self.meanings[alias.asname] = own
            elif was:
                self.meanings[own.partition(".")[0]] = own.partition(".")[0]
            self._look_up(node, own, own)

    def _import_from(self, node: ast.ImportFrom) -> None:
        if node.module == HERE:
            self.meanings |= {a.asname or a.name: a.name for a in node.names if a.name in SYSTEMS}
            return
        own, was = _own_name(node.module or "")
        if own is None:
            return
        if was:
            before = ast.unparse(node)
            self._change(node, before, before.replace("from ", f"from {HERE}.", 1))
        for alias in node.names:
            if alias.name == "*":
                text = "names that come from * cannot be looked up: import them one by one"
                self.imports.append(Finding(self.path, node.lineno, DIFFERS, f"{own}.*", text))
                continue
            self.meanings[alias.asname or alias.name] = f"{own}.{alias.name}"
            self._look_up(node, f"{own}.{alias.name}", f"{own}.{alias.name}")

    def _change(self, node: ast.stmt, before: str, after: str) -> None:
        """Note an import that must be of this package."""
        self.imports.append(Finding(self.path, node.lineno, CHANGES, before, f"becomes {after}"))

    def findings(self) -> list[Finding]:
        """Return everything, imports included."""
        inner: set[ast.AST] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                self._look_at_keywords(node)
            if not isinstance(node, ast.Attribute | ast.Name) or node in inner:
                continue
            inner |= set(ast.walk(node)) - {node}
            dotted = _dotted(node)
            if dotted is None or not isinstance(node.ctx, ast.Load):
                continue
            first, _, rest = dotted.partition(".")
            if first in self.meanings:
                self._look_up(node, ".".join(filter(None, (self.meanings[first], rest))), dotted)
        return self.imports

    def _look_at_keywords(self, node: ast.Call) -> None:
        dotted = _dotted(node.func)
        if dotted is None:
            return
        first, _, rest = dotted.partition(".")
        full = self.meanings.get(first, "") + (f".{rest}" if rest else "")
        for keyword in node.keywords:
            off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
            text = KEYWORDS.get((_canonical(full), keyword.arg or ""))
            if text and not off:
                name = f"{dotted}({keyword.arg}=)"
                self.imports.append(Finding(self.path, node.lineno, DIFFERS, name, text))

    def _look_up(self, node: Any, full: str, spelling: str) -> None:
        """Note a name that is missing or differs; what is behind functions is not known."""
        system, *rest = full.split(".")
        value: Any = import_module(f"{HERE}.{system}")
        for position, name in enumerate(rest):
            if not isinstance(value, ModuleType | type):
                return
            try:
                value = getattr(value, name)
            except (AttributeError, NotImplementedError, ImportError) as error:
                upto = ".".join([system, *rest[: position + 1]])
                text = str(error)
                if "iterators.compat" in text and "mx." not in text:
                    text = f"it is not in {HERE}.{system}"
                self.imports.append(Finding(self.path, node.lineno, MISSING, upto, text))
                return
        if isinstance(node, ast.ImportFrom | ast.Import):
            return  # what is not here can be imported, and is looked at where it is used
        if isinstance(value, TrainingStub):
            text = (value.__doc__ or "").partition(": ")[2]
            self.imports.append(Finding(self.path, node.lineno, MISSING, spelling, text))
        elif text := DIFFERENCES.get(_canonical(full), ""):
            self.imports.append(Finding(self.path, node.lineno, DIFFERS, spelling, text))


def _own_name(module: str) -> tuple[str | None, bool]:
    """Return the name of a module in its system, and whether it is imported from there."""
    if module.partition(".")[0] in SYSTEMS:
        return module, True
    inside = module.removeprefix(f"{HERE}.")
    if inside != module and inside.partition(".")[0] in SYSTEMS:
        return inside, False
    return None, False


def _canonical(full: str) -> str:
    """Return a dotted name as `DIFFERENCES` spells it."""
    return full.replace(".vision.datasets.", ".vision.").replace("mxnet.context.gpu", "mxnet.gpu")


def _dotted(node: ast.AST) -> str | None:
    """Return ``a.b.c`` for such an expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        above = _dotted(node.value)
        return above and f"{above}.{node.attr}"
    return None
