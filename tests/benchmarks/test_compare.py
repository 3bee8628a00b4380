"""The comparison with peers: the protocol, stopped processes, ratios and the page."""

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import contenders
import cv2
import environments
import harness
import numpy as np
import pytest
import report
from compare import FOR_KIND
from contenders import CONTENDERS, OURS, Contender, Failed, Process
from packs import Packs
from peers.jobs import JOBS

from iterators import ImageRecordIter
from recordio import IRHeader, RecordWriter, pack

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "benchmarks" / "peers"

PROGRAM = """
import subprocess, sys, time
sys.path.append({peers!r})
from protocol import Unsupported, serve

def images(job, files, threads):
    if job.name == "heavy":
        raise Unsupported("too heavy")
    if job.name == "raw":
        raise ValueError("it broke")
    print("what a library prints")
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    with open(files["note"], "w") as file:
        file.write(str(child.pid))
    while True:
        time.sleep(0.01)
        yield 7 * threads

serve({{"made up": "1.0"}}, images=images)
"""


def state_of(process):
    """One letter for what a process is doing; Z or nothing when it has ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return "Z"
    return text.rpartition(")")[2].split()[0]


def wait_for(condition):
    """Until something happens that takes the system a moment."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        os.sched_yield()


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A contender that counts, and starts a child that is always busy."""
    (tmp_path / "program.py").write_text(PROGRAM.format(peers=str(PEERS)))
    monkeypatch.setattr(contenders, "PROGRAMS", tmp_path)
    return Contender("made up", "program.py")


@pytest.fixture
def faces(tmp_path):
    """A record file of 40 noisy images, 112 x 112."""
    records = tmp_path / "faces.rec"
    noise = np.random.default_rng(1).integers(0, 256, (40, 112, 112, 3), np.uint8)
    with RecordWriter(records, records.with_suffix(".idx")) as writer:
        for number, image in enumerate(noise):
            blob = cv2.imencode(".jpg", image)[1].tobytes()
            writer.write(pack(IRHeader(0, number, number, 0), blob), number)
    return {"records": str(records), "index": str(records.with_suffix(".idx"))}


def test_questions_are_answered_and_work_stops_between_them(made_up, tmp_path):
    note = tmp_path / "note"
    with Process(made_up, sys.executable) as process:
        answer = process.ask(job="faces", files={"note": str(note)}, threads=2)
        assert answer["versions"] == {"made up": "1.0"}
        assert answer["items"] == 14 * answer["steps"]
        child = int(note.read_text())
        wait_for(lambda: state_of(child) == "T")
        again = process.ask(steps=5)
        assert (again["steps"], again["items"]) == (5, 70)
        assert again["elapsed"] >= 0.05
        busy = process.ask(steps=100)
        assert busy["processor"] > 0  # all of it the child's
        wait_for(lambda: state_of(child) == "T")
    wait_for(lambda: state_of(child) == "Z")


@pytest.mark.parametrize(
    ("job", "reason"), [("heavy", "too heavy"), ("raw", "ValueError: it broke")]
)
def test_what_cannot_be_done_is_said(made_up, job, reason):
    with Process(made_up, sys.executable) as process, pytest.raises(Failed, match=reason):
        process.ask(job=job, files={}, threads=1)


def test_jobs_of_a_kind_that_a_contender_lacks(made_up):
    with Process(made_up, sys.executable) as process, pytest.raises(Failed, match="table"):
        process.ask(job="csv_floats", files={}, threads=1)


def test_a_question_without_an_answer_ends(made_up, tmp_path):
    with Process(made_up, sys.executable) as process:
        process.ask(job="faces", files={"note": str(tmp_path / "note")}, threads=1)
        process.limit = 0.2
        with pytest.raises(Failed, match="-9"):
            process.ask(steps=10**9)


def test_our_own_program(faces):
    with Process(CONTENDERS[OURS], sys.executable) as process:
        answer = process.ask(job="faces", files=faces, threads=2)
        assert answer["items"] > 0
        assert process.ask(steps=2)["items"] == 80  # without padding


@pytest.mark.parametrize("job", [job for job in JOBS.values() if job.kind == "images"])
def test_our_side_takes_the_parameters_of_every_job(job, faces):
    with ImageRecordIter(
        path_imgrec=faces["records"], verbose=False, **job.record_iter_parameters()
    ) as provider:
        batch = provider.next()
    assert batch.data[0].shape == (job.batch, 3, job.recipe.size, job.recipe.size)
    assert batch.data[0].dtype == np.float32


@pytest.mark.parametrize("job", JOBS.values(), ids=lambda job: job.name)
def test_jobs_name_what_there_is(job):
    others = {*(job.contenders or FOR_KIND[job.kind]), *(["untouched"] if job.prepared else [])}
    assert set(job.bars) <= others <= set(CONTENDERS)
    assert hasattr(Packs, job.pack)
    assert job.prepared is None or hasattr(Packs, job.prepared)


@pytest.mark.parametrize("path", sorted(PEERS.glob("*.py")), ids=lambda path: path.stem)
def test_programs_of_peers_are_readable_for_old_interpreters(path):
    ast.parse(path.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize("contender", CONTENDERS.values(), ids=lambda contender: contender.title)
def test_contenders_say_what_they_are_set_to(contender):
    assert len(contender.settings) > 40
    assert contender.environment is None or contender.environment in environments.ENVIRONMENTS


def turns(*rates, cores=2):
    """Turns of two seconds with these rates."""
    return [
        {"steps": 2, "items": 2 * rate, "elapsed": 2.0, "processor": 2.0 * cores} for rate in rates
    ]


@pytest.fixture
def result():
    """What came out of a job: three rounds against one peer, another one absent."""
    return {
        "job": "faces",
        "rounds": {OURS: turns(200, 300, 500), "dali": turns(100, 100, 100, cores=1)},
        "absent": {"mxnet": "no environment: none found"},
    }


def test_ratios_are_taken_within_rounds(result):
    ours, dali = report.rows(result)
    assert (ours["rate"], ours["cpu_rate"], ours["cores"]) == (300, 150, 2)
    assert "ratio" not in ours
    assert (dali["ratio"], dali["spread"], dali["cpu_ratio"]) == (3, (2, 5), 1.5)
    text = report.job_section(result)
    assert "| DALI (CPU) | 100 | 100 | 1.00 | **3.00** | 2.00 to 5.00 | 1.50 | 1.6, met |" in text
    assert "absent: MXNet (no environment: none found)" in text


def test_json_has_a_line_for_each_turn(result):
    text = report.as_json({"jobs": [result]})
    assert json.loads(text) == {"jobs": [result]}
    assert sum('"elapsed"' in line for line in text.splitlines()) == 6
    assert not any(line.count('"elapsed"') > 1 for line in text.splitlines())


def test_only_what_is_between_markers_is_renewed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n")
    report.put(page, "x", "new")
    report.put(page, "x", "newer\n")
    assert page.read_text() == "a\n<!-- x: begin -->\nnewer\n<!-- x: end -->\nb\n"
    with pytest.raises(ValueError, match="y: begin"):
        report.put(page, "y", "new")


@pytest.mark.parametrize("marker", ["machine", "results", "settings", "growth", "threads"])
def test_the_page_has_all_markers(marker, tmp_path):
    page = tmp_path / "benchmarks.md"
    page.write_text((ROOT / "docs" / "measurements" / "benchmarks.md").read_text())
    report.put(page, marker, "put there")
    assert page.read_text().count("put there") == 1


def test_an_environment_without_an_interpreter_is_absent(tmp_path, monkeypatch):
    old = environments.Environment(("nothing",), newest=(3, 7))
    monkeypatch.setitem(environments.ENVIRONMENTS, "old", old)
    with pytest.raises(environments.Absent, match=r"no Python from 3\.8 to 3\.7"):
        environments.python_of("old", tmp_path)


def test_an_environment_is_absent_when_pip_fails_and_made_once_when_not(tmp_path, monkeypatch):
    commands = []

    def run(command, **_):
        commands.append(command)
        (tmp_path / "new").mkdir(exist_ok=True)
        if command[-1] == "missing":
            errors = "WARNING: one\nERROR: no such thing\n"
            raise subprocess.CalledProcessError(1, command, stderr=errors)

    monkeypatch.setattr(environments.subprocess, "run", run)
    monkeypatch.setattr(environments, "interpreter", lambda newest: "python")
    monkeypatch.setitem(environments.ENVIRONMENTS, "new", environments.Environment(("missing",)))
    with pytest.raises(environments.Absent, match="ERROR: no such thing"):
        environments.python_of("new", tmp_path)
    monkeypatch.setitem(environments.ENVIRONMENTS, "new", environments.Environment(("thing",)))
    commands.clear()
    first = environments.python_of("new", tmp_path)
    assert [command[-1] for command in commands] == [str(tmp_path / "new"), "thing"]
    assert environments.python_of("new", tmp_path) == first == str(tmp_path / "new/bin/python")
    assert len(commands) == 2


def test_the_table_of_make_bench_as_markdown():
    first = harness.Result("job", "MB/s", 20.0, 10.0, 2.0, 1.5, cpu_ratio=1.75)
    second = harness.Result("memory", "MiB", 3.0, None, 3.0, 16.0, at_least=False, detail="peak")
    assert harness.markdown([first, second]).splitlines() == [
        "| Job | ours | reference | unit | ratio | bar | per CPU s |  |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: | --- |",
        "| job | 20 | 10 | MB/s | 2.00 | >= 1.50 | 1.75 | met |",
        "| memory | 3 | - | MiB | - | <= 16 | - | met; peak |",
    ]
