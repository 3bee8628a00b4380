"""Every example on every page runs, in the order of the page and in a folder with small material.

A page says in its fences what there is: ``python`` is run, in one namespace for a page; of
``console`` the lines after ``$`` are run, and what they print is compared with what is shown,
except for numbers.  ``sh`` and ``text`` are for people: commands that install, need a network, or
are described only.
"""

import ast
import contextlib
import importlib
import importlib.util
import os
import pkgutil
import re
import runpy
import shlex
import shutil
import signal
import sys
import warnings
from pathlib import Path

import pytest

from iterators import AbstractDataProvider, Iterator, get_dataset_root, set_dataset_root
from recordio.tools import cli, im2rec, rec2idx

from . import material

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Pages that are not on the site, whose examples run as well.
OUTSIDE = (ROOT / "README.md", ROOT / "skills" / "recordio-iterators" / "SKILL.md")
#: Pages whose examples a test of their own runs, which looks at the outcome as well.
ELSEWHERE = {
    "how-to/packs.md",
    "how-to/frameworks.md",
    "reference/recordio-command.md",
    "tutorials/jax.md",
}
#: The fixture that a page needs: a server with a pack, or the variables that torchrun sets.
SURROUNDINGS = {"how-to/remote.md": "pack_on_s3", "how-to/distributed.md": "one_rank"}
#: What this page calls needs a cluster, and is called by the tests of `make test-ray`.
WITH_A_CLUSTER = {"how-to/ray.md"}
COMMANDS = {"im2rec": im2rec.main, "rec2idx": rec2idx.main, "recordio": cli.main}
COMMANDS["python"] = lambda words: run_script(*words)
#: What scripts import from `gluon.data`, its `vision` and its `vision.transforms`.
GLUON = """
SequentialSampler RandomSampler BatchSampler FilterSampler IntervalSampler SplitSampler
MNIST FashionMNIST CIFAR10 CIFAR100 ImageRecordDataset ImageFolderDataset ImageListDataset
Compose HybridCompose Cast ToTensor Normalize Resize CenterCrop RandomCrop RandomResizedCrop
CropResize RandomFlipLeftRight RandomFlipTopBottom RandomBrightness RandomContrast RandomSaturation
RandomHue RandomColorJitter RandomLighting RandomGray Rotate RandomRotation RandomApply
HybridRandomApply DataLoader
"""
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.S | re.M)
#: What a machine for tests has less of: memory, time, devices, a network.
SMALLER = (
    (r"batch_size=\d{3,}", "batch_size=8"),
    (r"ImageIter\(128,", "ImageIter(8,"),
    (r"range\(90\)", "range(2)"),
    (r"epoch in range\(16\)", "epoch in range(7)"),
    (r"number in range\(1500\)", "number in range(200)"),
    (r"--size \d+(.*)--epochs \d+", r"--size 56\1--epochs 1"),
    (r"--size 320$", "--size 64 --epochs 1"),
    (r'"cuda(:\d)?"', '"cpu"'),
    (r"float16@cuda", "float16@cpu"),
    (r"n_processes=4", "n_processes=2"),
    (r"cache_size=60_000_000_000", "cache_size=60_000_000"),
    (r'"/scratch/mirrors"', '"mirrors"'),
)


def pages():
    found = [path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0][0] != "_"]
    return [path for path in sorted(found) if "generated" not in path.parts]


def name_of(path):
    return path.relative_to(DOCS).as_posix()


def fences(path):
    """Language, first line and text of every block; what is commented out does not count."""
    text = re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), path.read_text(), flags=re.S)
    for found in FENCE.finditer(text):
        yield found[2], text[: found.start()].count("\n") + 2, found[3]


def with_examples():
    kinds = {"python", "console"}
    for path in [*pages(), *OUTSIDE]:
        if any(language in kinds for language, _, _ in fences(path)):
            name = name_of(path) if path.is_relative_to(DOCS) else path.name
            if name not in ELSEWHERE | WITH_A_CLUSTER:
                yield pytest.param(path, name, id=name)


@pytest.fixture(scope="session")
def stock(tmp_path_factory, photos):
    folder = tmp_path_factory.mktemp("stock")
    material.make(folder, photos)
    return folder


@pytest.fixture
def folder(stock, tmp_path, monkeypatch):
    """Where a page is followed."""
    place = tmp_path / "reader"
    shutil.copytree(stock, place)
    monkeypatch.chdir(place)
    before = get_dataset_root()
    set_dataset_root(tmp_path / "root")
    yield place
    set_dataset_root(before)


@pytest.fixture
def pack_on_s3(folder, bucket, s3_endpoint, monkeypatch):
    """``s3://bucket/train.rec``, for whom the environment says where that is."""
    for suffix in ("rec", "idx"):
        bucket.upload_file(f"train.{suffix}", "bucket", f"train.{suffix}")
    for name, value in {
        "AWS_ENDPOINT_URL": s3_endpoint, "AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "word",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)


@pytest.fixture
def one_rank(monkeypatch):
    """What torchrun says to the only process of a machine."""
    for name, value in {
        "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    yield
    distributed = pytest.importorskip("torch.distributed")
    if distributed.is_initialized():
        distributed.destroy_process_group()


@pytest.mark.libjpeg
@pytest.mark.parametrize(("path", "name"), list(with_examples()))
def test_every_example_of_the_page_runs(path, name, folder, capfd, request):
    if name in SURROUNDINGS:
        request.getfixturevalue(SURROUNDINGS[name])
    space = {"__name__": "__main__"}
    for language, line, text in fences(path):
        if language == "python":
            run_python(path, line, text, space)
        elif language == "console":
            run_console(path, line, text, capfd)
    for value in list(space.values()):
        if isinstance(value, AbstractDataProvider | Iterator):
            value.close()


@pytest.mark.libjpeg
def test_the_loss_of_the_front_page_falls(folder, capsys):
    path = DOCS / "index.md"
    (program,) = [text for language, _, text in fences(path) if language == "python"]
    run_python(path, 1, "import torch\ntorch.manual_seed(0)\n" + program, {"__name__": "__main__"})
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert len(losses) == 10 and losses[-1] < 0.5 * losses[0], losses


@pytest.mark.libjpeg
@pytest.mark.parametrize("stop", [1, 5, "epoch", "epoch and 1", "end"])
def test_the_loop_of_the_start_page_goes_on_where_it_was_stopped(folder, stop, capfd):
    """However the run is cut in two, the loop of the page sees every batch once."""
    path = DOCS / "start" / "index.md"
    command, *_ = [text for language, _, text in fences(path) if language == "console"]
    run_console(path, 1, command, capfd)
    train, save, load = [text for language, _, text in fences(path) if language == "python"]
    train = train.replace("optimizer.step()\n", "optimizer.step()\n        seen(batch)\n")
    begin, loop = re.fullmatch(r"(.*)(^for .*)", train, re.S | re.M).groups()

    def run(blocks, last=None):
        met = []

        def seen(batch):
            met.append((batch.index.tolist(), batch.data[0].sum().item()))
            if len(met) == last:
                raise InterruptedError

        space = {"seen": seen}
        for block in blocks:
            with contextlib.suppress(InterruptedError):
                exec(block, space)
        space["train"].close()
        return met, len(space["train"])

    whole, length = run([begin, loop])
    last = {"epoch": length, "epoch and 1": length + 1, "end": 3 * length}.get(stop, stop)
    assert len(whole) == 3 * length and last <= len(whole)
    first, _ = run([begin, loop, save], last)
    (parts,) = re.findall(r"^parts = .*\n", save, re.M)
    rest, _ = run([begin, parts, load, loop])
    assert first + rest == whole


def run_python(path, line, text, space):
    text = smaller(text.replace("https://example.org/", f"file://{os.getcwd()}/"))
    code = compile("\n" * (line - 1) + text, str(path), "exec")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(code, space)


def smaller(text):
    """The same program or command for a machine for tests."""
    for pattern, replacement in SMALLER:
        text = re.sub(pattern, replacement, text)
    return text


def run_console(path, line, text, capfd):
    importlib.import_module("cv2")  # commands need it, and would say so to people only
    for example in text.replace("\\\n", "").split("$ ")[1:]:
        command, _, shown = example.partition("\n")
        command = smaller(command)
        words = shlex.split(command, comments=True)
        code = run_command(words)
        printed = "".join(capfd.readouterr())
        where = f"{path}:{line}: {command}\n{printed}"
        expected = re.search(r"# exits with (\d+)", command)
        assert code == int(expected[1] if expected else 0), where
        if shown.strip():
            assert hidden(shown) == hidden(printed), where


def run_command(words):
    """The exit code of a command; ``VARIABLE=value command`` is understood."""
    with contextlib.ExitStack() as stack:
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            os.environ[name] = value
            stack.callback(os.environ.pop, name)
        assert words[0] in COMMANDS, f"{words[0]} is not a command of this package"
        try:
            return int(COMMANDS[words[0]](words[1:]) or 0)
        except SystemExit as error:
            return int(error.code or 0)


def run_script(path, *words):
    """Run a program of the repository; return its exit code."""
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [path, *words])
            patch.syspath_prepend((ROOT / path).parent)
            runpy.run_path(str(ROOT / path), run_name="__main__")
    except SystemExit as error:
        return error.code
    finally:
        signal.signal(signal.SIGINT, interrupt)


def hidden(text):
    """Without numbers, which depend on encoders and machines, and without layout."""
    text = re.sub(r"\d[\d.,]*", "N", text)
    return " ".join(text.split())


def test_every_page_is_in_the_navigation():
    listed = set()
    for path in pages():
        for toctree in re.findall(r"^```\{toctree\}\n(.*?)^```", path.read_text(), re.S | re.M):
            for entry in toctree.splitlines():
                if entry and not entry.startswith(":"):
                    target = re.sub(r".*<(.*)>", r"\1", entry)
                    listed.add((path.parent / f"{target}.md").resolve())
    missing = [name_of(path) for path in pages() if path not in listed]
    assert missing == ["index.md"]


def from_examples(path):
    """Name and lines of the parts of examples that a page shows."""
    for file, name in re.findall(r"literalinclude\} (\S+)\n:pyobject: (\w+)", path.read_text()):
        source = (path.parent / file).read_text()
        shown = [part for part in ast.parse(source).body if getattr(part, "name", None) == name]
        assert len(shown) == 1, f"{file} has no {name}"
        yield name, source.splitlines()[shown[0].lineno - 1 : shown[0].end_lineno]


def test_code_fits_the_site():
    """In 88 columns; what commands print is shown as it is."""
    for path in pages():
        for name, lines in from_examples(path):
            assert max(map(len, lines)) <= 88, f"{path}: {name}"
    for path in [*pages(), *OUTSIDE]:
        for language, line, text in fences(path):
            goes_on = False
            for number, shown in enumerate(text.splitlines(), line):
                command = shown.startswith("$ ") or goes_on
                goes_on = command and shown.endswith("\\")
                printed = language == "console" and not command
                directive = language == "" and shown.startswith(".. ")
                if not (printed or directive):
                    assert len(shown) <= 88, f"{path}:{number}: {len(shown)} columns"


#: What nobody writes by hand in a column of this name.
BY_HAND = {"Default": r"\d|`|\b(?:None|True|False)\b", "Parameters": "="}


def test_defaults_are_those_of_the_code():
    """Columns of defaults hold the role `default`, and those of parameters hold names alone."""
    for path in pages():
        head = []
        for line in FENCE.sub("", path.read_text()).split("\n"):
            cells = [cell.strip() for cell in line.split("|")] if line.startswith("|") else []
            head = (head or cells) if cells else []
            for name, cell in zip(head, cells, strict=False):
                written = re.sub(r"\{default\}`[\w.:]+`", "", cell)
                assert not re.search(BY_HAND.get(name, "(?!)"), written), f"{path}: {line}"


def test_measured_numbers_have_a_source():
    """Pages with times and rates are in the table of `measurements/numbers.md`."""
    table = DOCS / "measurements" / "numbers.md"
    linked = re.findall(r"\]\(([^)#\s]+)", table.read_text())
    listed = {(table.parent / target).resolve() for target in linked}
    measured = re.compile(r"\d (?:times as (?:fast|many|much)|ms|ns|µs|microseconds|[GM]B/s)\b")
    for path in pages():
        prose = FENCE.sub("", path.read_text())
        if path.parent.name != "measurements" and measured.search(prose):
            assert path in listed, f"{path}: add it to {table}"


def test_programs_that_pages_name_exist():
    """Benchmarks with their cases, examples and tests."""
    cases = "".join(file.read_text() for file in (ROOT / "benchmarks").glob("*.py"))
    for path in [*pages(), *OUTSIDE]:
        text = path.read_text()
        for name in re.findall(r"\b(?:benchmarks|examples|tests|docs)/[\w/]+\.\w+", text):
            assert (ROOT / name).exists(), f"{path}: {name}"
        for name in re.findall(r"make bench ARGS=\"?(\w+)", text):
            assert re.search(rf"\b{name}\b", cases), f"{path}: no case {name}"


def test_links_lead_somewhere():
    for path in [*pages(), *ROOT.glob("*.md"), *OUTSIDE]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
            if "://" not in target and "_pictures" not in target:
                assert (path.parent / target).exists(), f"{path}: {target}"


def test_every_public_name_is_in_the_reference():
    import iterators
    import recordio

    text = "".join(page.read_text() for page in (DOCS / "reference" / "api").glob("*.md"))
    documented = {line.strip().rpartition(".")[2] for line in text.splitlines()}
    for package in (recordio, iterators):
        for name in package.__all__:
            if not isinstance(getattr(package, name), type(os)):  # a module
                assert name in documented, f"{package.__name__}.{name}: add it in reference/api"


def named_objects():
    """What pages call by its whole name, and the pages."""
    found = {}
    for path in [*pages(), *OUTSIDE]:
        for name in re.findall(r"`((?:iterators|recordio)(?:\.\w+)+)", path.read_text()):
            found.setdefault(name, path.relative_to(ROOT).as_posix())
    return found


def test_what_pages_call_by_its_whole_name_is_there():
    """Tables for people who come from other libraries name counterparts that no example uses."""
    absent = [f".{name}" for name in ("ray", "torch") if importlib.util.find_spec(name) is None]
    for name, page in named_objects().items():
        if any(part in name for part in absent):
            continue
        try:
            pkgutil.resolve_name(name)
        except (ModuleNotFoundError, AttributeError) as error:
            raise AssertionError(f"{page}: there is no {name}") from error


def test_every_name_of_gluon_has_its_line():
    """The names of `gluon.data.vision` that scripts import: each has a counterpart or a reason."""
    page = (DOCS / "coming-from" / "mxnet.md").read_text()
    for name in GLUON.split():
        row = re.search(rf"^\| (?:[^|]*\W)?{name}\b[^|]*\|[^|]*\w", page, re.M)
        assert row, f"no line about {name}"
