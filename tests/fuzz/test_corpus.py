"""Every file of the corpus, and some hundred changed ones, through every target.

``make fuzz`` goes on from here for as long as it is told to.  What was found once is a file of the
corpus for ever; its name says what it did.
"""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from targets import CORPUS, TARGETS

HERE = Path(__file__).parent
#: Inputs of each target; the first are the files of its corpus.
EXECUTIONS = 60
#: Seconds after which the driver hangs; it takes some 20, and many times that beside other tests.
LIMIT = 400

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver needs fork")


def run_driver(*arguments):
    command = [sys.executable, HERE / "driver.py", *map(str, arguments)]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"")[-200:]
        pytest.fail(f"the driver runs for {late.timeout} s; its last words: {said!r}")


@pytest.fixture(scope="module")
def said():
    """Target -> what the driver printed about it."""
    importlib.import_module("cv2")  # targets need it
    done = run_driver("--seed", 1, "--executions", EXECUTIONS, "--seconds", 4000, "--minimise", 0)
    found = {}
    for line in done.stdout.splitlines()[1:-1]:
        if not line.startswith(" "):
            name = line.split()[0]
            found[name] = ""
        found[name] += line + "\n"
    assert set(found) == set(TARGETS), (done.stdout, done.stderr)
    return found


@pytest.mark.timeout(LIMIT + 20)
@pytest.mark.parametrize("name", TARGETS)
def test_no_input_does_harm(said, name):
    _, executions, _, _, findings, _ = said[name].splitlines()[0].split()
    assert findings == "0", said[name]
    assert int(executions) >= max(EXECUTIONS, len(TARGETS[name].corpus()))


def test_every_folder_of_the_corpus_has_a_target_and_is_small():
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 1 << 20


#: What a target does to an input with the word "bad", and how the key of the finding begins.
HARMS = {
    "raise KeyError('x')": "KeyError at ",
    "os.abort()": "SIGABRT",
    "bytearray(1 << 40)": "MemoryError at ",
    "while data: signal.pause()": "more than 1 seconds",
    "sys.exit(3)": "exit status",
}
FINDINGS = f"""
import os, random, signal, sys
sys.path.insert(0, {str(HERE)!r})
import driver
from children import Limits
from targets.target import Target

Target.corpus = lambda self: []
limits = Limits(1, 1 << 30)
for harm in sys.argv[1:]:
    code = compile(harm, "harm", "exec")

    def check(data):
        if b"bad" in data:
            exec(code)

    target = Target("t", check)
    target_corpus = [b"good", b"12345 bad 67890"]
    _, found, _ = driver.run_in_child(target, target_corpus, 0, 0, 2, 60, limits)
    (finding,) = found
    small = driver.minimised(target, finding, limits, 60)
    print(repr((finding.key, small.data)), flush=True)
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Key and smallest input of every harm; one process does all of them, in children."""
    done = subprocess.run(
        [sys.executable, "-c", FINDINGS, *HARMS],
        capture_output=True, text=True, cwd=tmp_path_factory.mktemp("harm"), timeout=LIMIT,
    )  # fmt: skip
    found = [ast.literal_eval(line) for line in done.stdout.splitlines()]
    assert len(found) == len(HARMS), (done.stdout, done.stderr)
    return dict(zip(HARMS, found, strict=True))


@pytest.mark.timeout(LIMIT + 20)
@pytest.mark.parametrize("harm", HARMS)
def test_the_driver_sees_harm_and_makes_its_input_small(seen, harm):
    key, smallest = seen[harm]
    assert key.startswith(HARMS[harm])
    assert smallest == b"bad"
