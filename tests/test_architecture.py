"""The house keeps its shape: floors, sibling rooms, sizes, stubs and docstrings.

Imports are read from the source text, so that a forbidden import inside a function counts as well.
"""

import ast
import functools
import graphlib
import importlib
import inspect
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_LINES = 600

#: A room may import itself and every room on a lower floor; never a sibling, never upwards: by
#: statement, by a string given to `import_module`, by cimport or by include.
FLOORS = {
    "recordio.keywords": -1,
    "recordio": 0,
    "iterators.core": 1,
    "iterators.spaces": 2,
    "iterators.views": 2,
    "iterators.images": 2,
    "iterators.samples": 2,
    "iterators.datasets": 3,
    "iterators.loops": 3,
    "iterators.providers": 3,
    "iterators.torch": 4,
    "iterators.ray": 4,
    "iterators.testing": 4,
    "recordio.ray": 4,
    "iterators": 4,
    "iterators.compat.mxnet.tools": 6,
    "recordio.tools": 5,
    "recordio.convert": 6,
}

#: The same for the rooms and files of `recordio`, from the ground up, a row for each floor.
ROWS = [
    ["keywords"],
    [
        "exit_hooks",
        "counter",
        "encodings",
        "errors",
        "extras",
        "little_endian",
        "ordered",
        "partition",
        "sync",
        "wire",
        "values",
    ],
    ["header", "kernels", "file_limits", "boxes", "notes", "pickled"],
    ["bytes", "formats"],
    ["file_kinds"],
    ["payload", "frames", "idx_array", "list_files", "packed_images", "text"],
    ["containers"],
    ["image_sets", "mxnet", "packs", "protobuf", "verification"],
    ["operations"],
    ["ray"],
]
RECORDIO = {f"recordio.{room}": floor for floor, row in enumerate(ROWS) for room in row}
#: What stands beside rooms that have floors is above all of them.
RECORDIO["recordio"] = len(ROWS)

#: The same for the rooms of `formats`.
FORMATS = {
    "recordio.formats.avif": 0,
    "recordio.formats.jpeg_segments": 0,
    "recordio.formats.status": 0,
    "recordio.formats.jpeg_limits": 1,
    "recordio.formats.row_source": 1,
    "recordio.formats.codec_rows": 2,
    "recordio.formats.jpeg_markers": 2,
    "recordio.formats.jpeg": 3,
    "recordio.formats.png": 3,
    "recordio.formats.webp": 3,
    "recordio.formats.pnm": 4,
    "recordio.formats.decode": 10,
    "recordio.formats.encode": 11,
    "recordio.formats.headers": 5,
    "recordio.formats.table": 6,
    "recordio.formats.by_opencv": 7,
    "recordio.formats.image_header": 7,
    "recordio.formats": 9,
}

#: The same for the rooms of `images`.
IMAGES = {
    "iterators.images.cache": 1,
    "iterators.images.augment": 1,
    "iterators.images.processors": 2,
    "iterators.images.sources": 3,
    "iterators.images": 4,
}

#: Extras: imported inside the function that needs them, because everything else works without.
OPTIONAL = {
    "torch",
    "ray",
    "pyarrow",
    "fsspec",
    "ml_dtypes",
    "scipy",
    "sklearn",
    "jinja2",
    "lmdb",
    "starlette",
    "uvicorn",
    "typing_extensions",
    "yaml",
}
ADAPTERS = {"iterators.torch", "iterators.ray", "recordio.ray"}

#: ``from X import a, b`` and ``from X cimport (a, b)``; ``import X, Y`` and ``cimport X``.
FROM_IMPORT = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+c?import[ \t]+(\([^)]*\)|.*)", re.M)
IMPORT_BY_NAME = re.compile(r"""\bimport_module\(\s*f?["'](\.*[\w.]+)["']""")
INCLUDE = re.compile(r'(?:#include|cdef extern from) "(.+?)"')
PLAIN_IMPORT = re.compile(r"^[ \t]*c?import[ \t]+([\w., \t]+)", re.M)
#: Names that Python code can see: ``def``, ``class``, ``cpdef ... name(`` and ``cdef class``.
PUBLIC_NAME = re.compile(r"^(?:def|class|cdef class|cpdef\b.*?)[ \t]+([a-zA-Z]\w*)[ \t]*[(:]", re.M)


def module_name(path):
    """Dotted name under which a file is installed; ``tools/`` becomes ``recordio.tools``."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] == "tools":
        parts.insert(0, "recordio")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources(*suffixes):
    """Every source file of ours with one of the suffixes."""
    return [
        path
        for package in ("recordio", "iterators", "tools")
        for path in sorted((ROOT / package).rglob("*"))
        if path.suffix in suffixes
    ]


def room_of(name, floors=FLOORS):
    """The room a dotted name lives in, or None for what is not ours."""
    return max(
        (room for room in floors if f"{name}.".startswith(f"{room}.")), key=len, default=None
    )


def python_imports(nodes):
    """Yield ``(module, imported names)``; a relative module keeps its leading dots."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            dots = "." * node.level
            yield dots + (node.module or ""), [alias.name for alias in node.names]


def cython_imports(text):
    """The same for the ``import`` and ``cimport`` lines of a Cython file."""
    for module, names in FROM_IMPORT.findall(text):
        yield module, [name.split()[0] for name in names.strip("() \t").split(",") if name.strip()]
    for modules in PLAIN_IMPORT.findall(text):
        yield from ((name.split()[0], []) for name in modules.split(",") if name.strip())


@functools.cache
def parsed(path):
    """Syntax tree of a file of Python."""
    return ast.parse(path.read_text())


@functools.cache
def imported_names(path):
    """Absolute dotted names of everything that a file imports or includes."""
    return list(_imported_names(path))


def _imported_names(path):
    package = module_name(path).split(".")
    if path.stem != "__init__":
        package.pop()
    text = path.read_text()
    for name in INCLUDE.findall(text):
        for base in (path.parent, ROOT):
            if (base / name).is_file():
                yield module_name((base / name).resolve())
    imports = [(name, []) for name in IMPORT_BY_NAME.findall(text)]
    if path.suffix in (".pyx", ".pxd"):
        imports += cython_imports(text)
    elif path.suffix in (".py", ".pyi"):
        imports += python_imports(ast.walk(parsed(path)))
    for module, names in imports:
        bare = module.lstrip(".")
        if level := len(module) - len(bare):
            above = package[: len(package) - level + 1]
            module = ".".join([*above, bare] if bare else above)
        yield from ([f"{module}.{name}" for name in names] or [module])


@pytest.mark.parametrize(
    "floors",
    [FLOORS, RECORDIO, FORMATS, IMAGES],
    ids=["house", "recordio", "formats", "images"],
)
def test_imports_go_down_the_floors_only(floors):
    rooms = {
        path: room
        for path in sources(".py", ".pyi", ".pyx", ".pxd", ".c", ".h")
        if (room := room_of(module_name(path), floors))
    }
    assert set(rooms.values()) == set(floors)
    wrong = [
        f"{module_name(path)} (floor {floors[room]}) imports {name}"
        for path, room in rooms.items()
        for name in imported_names(path)
        if (other := room_of(name, floors)) not in (None, room) and floors[other] >= floors[room]
    ]
    assert not wrong


def test_every_way_to_import_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "iterators" / "core").mkdir(parents=True)
    (tmp_path / "iterators" / "images").mkdir()
    (tmp_path / "iterators" / "images" / "a.h").write_text("")
    path = tmp_path / "iterators" / "core" / "b.pyx"
    path.write_text(
        'cdef extern from "iterators/images/a.h":\n    pass\n'
        "from iterators.images.stage cimport Stage\n"
        "import_module('..spaces', __package__)\n"
        'import_module("iterators.views")\n'
    )
    assert set(imported_names(path)) == {
        "iterators.images.a", "iterators.images.stage.Stage", "iterators.spaces", "iterators.views"
    }  # fmt: skip


def imports_of_files():
    """For every module of ours, by its dotted name, the files that it imports, wherever it does.

    Declarations and stubs count as the module that they belong to.  What files of C include is not
    looked at, because a header and what it declares are two files.
    """
    files = {}
    for path in sources(".py", ".pyi", ".pyx", ".pxd", ".c", ".h"):
        files.setdefault(module_name(path), []).append(path)
    return {
        name: {
            room_of(other, files)
            for path in paths
            if path.suffix not in (".c", ".h")
            for other in imported_names(path)
        }
        - {name, None}
        for name, paths in files.items()
    }


def test_no_files_import_each_other_in_a_circle():
    graphlib.TopologicalSorter(imports_of_files()).prepare()  # its error names the circle


@pytest.mark.parametrize(
    "closing",
    [
        "from recordio.a import A\n",
        "def late():\n    from .a import A\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import A\n",
        "from . import a\n",
        "",
    ],
)
def test_every_circle_is_found(tmp_path, monkeypatch, closing):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    folder = tmp_path / "recordio"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "a.py").write_text("from recordio.b import B\n")
    (folder / "b.pyx").write_text("")
    (folder / "b.pxd").write_text("from recordio.c cimport C\n")
    (folder / "c.py").write_text(closing)
    if not closing:
        test_no_files_import_each_other_in_a_circle()
        return
    with pytest.raises(graphlib.CycleError) as raised:
        test_no_files_import_each_other_in_a_circle()
    assert {"recordio.a", "recordio.b", "recordio.c"} == set(raised.value.args[1])


def test_optional_packages_are_imported_only_when_asked_for():
    at_import = {
        (module_name(path), name.partition(".")[0])
        for path in sources(".py")
        if room_of(module_name(path)) not in ADAPTERS
        for name, _ in python_imports(parsed(path).body)
    }
    assert not {(module, name) for module, name in at_import if name in OPTIONAL}


@pytest.mark.filterwarnings("default")
def test_long_modules_are_named():
    for path in sources(".py", ".pyx", ".pxd", ".c", ".h"):
        lines = path.read_text().count("\n")
        if lines > MAX_LINES:  # advice: a limit would decide what a module is
            warnings.warn(f"{path.name} has {lines} lines", stacklevel=1)


def test_compiled_modules_say_what_they_are_for():
    assert not [
        path for path in sources(".pyx") if not re.match(r'(#.*\n|\s)*"""\S', path.read_text())
    ]


def test_compiled_modules_with_public_names_have_a_stub():
    without = [path for path in sources(".pyx") if not path.with_suffix(".pyi").is_file()]
    public = {module_name(path): PUBLIC_NAME.findall(path.read_text()) for path in without}
    assert not {name: names for name, names in public.items() if names}


def undocumented(module):
    """Yield the names that a module defines for others without a docstring."""
    for name, value in vars(module).items():
        own = getattr(value, "__module__", None) == module.__name__
        if not own or name.startswith("_") or not (inspect.isclass(value) or callable(value)):
            continue
        documented = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        if not documented:
            yield f"{module.__name__}.{name}"


def test_what_others_import_is_documented():
    names = [module_name(path) for path in sources(".py", ".pyx") if path.stem != "__main__"]
    assert not [found for name in names for found in undocumented(importlib.import_module(name))]


# -- names ------------------------------------------------------------------------------------

#: Classes, and functions with names of classes.  What begins with an underscore is known to its
#: file alone.
CLASS_NAME = re.compile(r"^(?:(?:cdef |cpdef )?class|def)[ \t]+([A-Z]\w*)[ \t]*[(:]", re.M)


def classes_of_one_name():
    """Names of classes that several files define, with the modules."""
    found = {}
    for path in sources(".py", ".pyx"):
        for name in CLASS_NAME.findall(path.read_text()):
            found.setdefault(name, set()).add(module_name(path))
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def test_no_two_classes_have_one_name():
    assert not classes_of_one_name()


def test_classes_of_one_name_are_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "recordio").mkdir()
    (tmp_path / "recordio" / "a.py").write_text(
        "class Plan:\n    class Inner: ...\nclass _Job: ..."
    )
    (tmp_path / "recordio" / "b.pyx").write_text(
        "cdef class Plan(Base):\n    pass\nclass _Job: ..."
    )
    (tmp_path / "recordio" / "c.py").write_text("def Make(x):\n    ...\nclass Inner: ...")
    assert classes_of_one_name() == {"Plan": {"recordio.a", "recordio.b"}}


# -- docstrings -------------------------------------------------------------------------------

#: A section of numpydoc, which takes many lines to say what signatures say.
SECTION = re.compile(
    r"^(Parameters|Other Parameters|Attributes|Returns|Yields|Raises|Warns|See Also|Notes|Examples)"
    r"\n-{3,}$",
    re.M,
)
#: First lines that begin with a clause instead of a verb or a noun.
CLAUSE = re.compile(r"(What|Whether|That|Who|Which|How|Where|Those|The same)\b")
#: Methods of these begin with an underscore, because attributes without one are fields.
UNDERSCORED = {"iterators.samples.sample.Sample", "iterators.samples.dataset.Dataset"}
#: Syntax with a docstring.
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
#: Names under their module on a page of the API.
ON_API_PAGE = re.compile(r"currentmodule:: (\S+)\s+\.\. autosummary::((?:\n *(?::.*|\w*))+)")


@functools.cache
def names_for_users(root):
    """Dotted names that packages export or pages of the API show, with all that is behind them."""
    names = set()
    for package in ("recordio", "iterators"):
        for path in (root / package).rglob("__init__.py*"):
            exported = re.search(r"^__all__ = \[([^]]*)\]", path.read_text(), re.M)
            names |= {
                name
                for name in imported_names(path)
                if not exported or f'"{name.rpartition(".")[2]}"' in exported[1]
            }
    for path in (root / "docs" / "reference" / "api").glob("*.md"):
        for module, shown in ON_API_PAGE.findall(path.read_text()):
            names |= {f"{module}.{name}" for name in shown.split() if ":" not in name}
    more = names
    while more:
        more = {name for shown in more for name in names_behind(root, shown)} - names
        names |= more
    return {name for name in names if not (root / name.replace(".", "/")).is_dir()}


def names_behind(root, name):
    """Yield the name in another module under which a module imports one, and its base classes."""
    module, _, own = name.rpartition(".")
    path = (root / module.replace(".", "/")).with_suffix(".py")
    imported, bases = imports_and_bases(path) if path.is_file() else ((), {})
    yield from (found for found in imported if found.endswith(f".{own}"))
    yield from (f"{module}.{base}" for base in bases.get(own, ()))


@functools.cache
def imports_and_bases(path):
    """Names that a module imports, and those of the base classes of its classes."""
    classes = [node for node in parsed(path).body if isinstance(node, ast.ClassDef)]
    bases = {node.name: [ast.unparse(base) for base in node.bases] for node in classes}
    return imported_names(path), bases


def documented(node, name):
    """Yield dotted name and docstring of a module and of everything in it."""
    if isinstance(node, DOCUMENTED):
        name += f".{node.name}" if hasattr(node, "name") else ""
        yield name, ast.get_docstring(node) or ""
    for inner in ast.iter_child_nodes(node):
        yield from documented(inner, name)


def is_for_users(name):
    """Return True for a name that users import, and for the public members of one."""
    owner, _, own = name.rpartition(".")
    is_public = own and (own[0] != "_" or own.endswith("__") or owner in UNDERSCORED)
    return name in names_for_users(ROOT) or (is_public and is_for_users(owner))


def faults_of_docstrings(path):
    """Names whose docstring has sections that nobody looks up, or begins with a clause."""
    return [
        name
        for name, text in documented(parsed(path), module_name(path))
        if CLAUSE.match(text) or (SECTION.search(text) and not is_for_users(name))
    ]


def test_docstrings_are_one_plain_line_but_for_names_that_users_import():
    """Sections of numpydoc are for those names; no first line begins with What, Whether, How ..."""
    assert not [name for path in sources(".py") for name in faults_of_docstrings(path)]


def test_faults_of_docstrings_are_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    section = '"""Count.\n\n    Returns\n    -------\n    int\n    """'
    texts = {
        "docs/reference/api/inner.md": (
            ".. currentmodule:: recordio.inner.b\n\n.. autosummary::\n   :toctree: c\n\n   shown\n"
        ),
        "recordio/__init__.pyi": (
            "from . import inner as inner\nfrom .inner.a import Exported as Exported\n"
        ),
        "recordio/inner/__init__.py": 'from .a import named, not_named\n__all__ = ["named"]\n',
        "recordio/inner/a.py": "from .b import Exported, named\ndef not_named():\n    pass\n",
        "recordio/inner/b.py": (
            "".join(f"def {name}():\n    {section}\n" for name in ("shown", "named", "not_named"))
            + f"class Base:\n    def count(self):\n        {section}\n"
            + f"    def _count(self):\n        {section}\n"
            + f"class Exported(Base):\n    def __call__(self):\n        {section}\n"
            + f"class Other:\n    def count(self):\n        {section}\n"
            + 'def clause():\n    """Whether it counts."""\ndef noun():\n    """Whatever."""\n'
        ),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert faults_of_docstrings(tmp_path / "recordio" / "inner" / "b.py") == [
        f"recordio.inner.b.{name}" for name in ("not_named", "Base._count", "Other.count", "clause")
    ]


# -- one place for axes -----------------------------------------------------------------------

#: What changes the order of axes, and what gives an array another shape.
PERMUTES = {"T", "einsum", "mT", "moveaxis", "movedim", "permute", "rollaxis", "swapaxes"}
PERMUTES |= {"swapdims", "tensordot", "transpose"}
RESHAPES = {"expand_dims", "flatten", "ravel", "reshape", "squeeze", "unflatten", "unsqueeze"}

#: Where the layout engine lives: `layout` says what is meant, `steps` does it, with the operations
#: of `backend`; only the last may call the libraries.
ENGINE = {"iterators.core.layout", "iterators.core.steps", "iterators.core.backend"}

#: Everybody else asks the engine.  What is allowed beside it moves no axis of a batch: the reasons.
EXCEPTIONS = {
    # matrices of linear algebra
    "iterators.views.preprocess": {"T"},
    # `transpose` of a View, which returns a plan
    "iterators.views.list_view": {"transpose"},
    # memory without a shape is given one, or looked at as bytes
    "iterators.images.stage": {"reshape"},
    # patches are put together again, for people to see
    "iterators.providers.image_shapes": {"reshape"},
    "iterators.images.augment.mean_image": {"reshape"},
    "iterators.providers.array_rows": {"reshape"},
    "iterators.providers.python_images": {"reshape"},
    "iterators.providers.row_stream": {"reshape"},
    "iterators.images.sources.record_source": {"reshape"},
    "iterators.core.shared_arrays": {"reshape"},
    "iterators.loops.packing": {"reshape"},
    # an empty list of places is one of integers
    "iterators.core.indexing": {"reshape"},
    # a few numbers of any shape are read one after another, or a result gets their shape
    "iterators.core.random": {"reshape"},
    "iterators.providers.image_sources": {"ravel", "reshape"},
    # objects that lie one behind the other as bytes
    "iterators.images.fields.image_fields": {"reshape"},
    "iterators.images.augment.augmenter": {"ravel"},
    "iterators.images.augment.det_geometry": {"ravel"},
    # `reshape` of an iterator, which is MXNet's name for room for more objects
    "iterators.mx_image.det_iter": {"reshape"},
    # constants that are broadcast along the channels
    "iterators.core.device": {"reshape"},
    # row numbers that are broadcast against others
    "iterators.samples.array_region": {"reshape"},
    # MXNet's own functions of arrays and images
    "iterators.compat.mxnet.ndarray.array": {"expand_dims", "ravel", "reshape", "transpose"},
    "iterators.compat.mxnet.ndarray.functions": {
        "expand_dims",
        "squeeze",
        "tensordot",
        "transpose",
    },
    "iterators.compat.mxnet.ndarray.image": {"moveaxis", "reshape"},
    "iterators.compat.mxnet.gluon.data.vision.datasets": {"moveaxis"},
    # rows of patches in a tensor, and the bytes of one
    "iterators.images.processors.preprocess": {"reshape"},
}


def moves_of_axes(path):
    """Names of the operations on axes that a file uses as attributes; strings do not count."""
    if path.suffix == ".py":
        found = {node.attr for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute)}
    else:
        text = re.sub(r'"""(?:.|\n)*?"""|#.*', "", path.read_text())
        found = set(re.findall(r"\.([A-Za-z_]\w*)", text))
    return found & (PERMUTES | RESHAPES)


def test_only_the_layout_engine_moves_axes():
    moves = {
        name: found
        for path in sources(".py", ".pyx")
        if room_of(name := module_name(path)) not in ("recordio", "recordio.tools")
        and name not in ENGINE
        and (found := moves_of_axes(path))
    }
    assert moves == EXCEPTIONS
