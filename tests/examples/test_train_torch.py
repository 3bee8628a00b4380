"""The training example: interrupted and resumed, and on two ranks."""

import contextlib
import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "examples" / "train_torch.py"
LINE = re.compile(r"rank (\d) epoch (\d+) loss ([\d.]+) ids (\[[^\]]*\])")
ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def example():
    """The example as a module."""
    specification = importlib.util.spec_from_file_location("train_torch", PATH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shapes(example, tmp_path_factory):
    """A record file of 30 tiny images."""
    path = tmp_path_factory.mktemp("shapes") / "shapes.rec"
    example.draw_shapes(path, count=30, size=32)
    return str(path)


def arguments(shapes, *more):
    return [
        "--rec", shapes, "--size", "12", "--batch-size", "8", "--epochs", "3", "--device", "cpu",
        "--verbose", *map(str, more),
    ]  # fmt: skip


def steps(output):
    """Rank, epoch, loss and record ids of every batch."""
    return [
        (int(rank), int(epoch), float(loss), eval(ids))
        for rank, epoch, loss, ids in LINE.findall(output)
    ]


def run_here(example, capsys, *more):
    status = example.main(arguments(*more))
    return status, steps(capsys.readouterr().out)


@pytest.fixture(scope="module")
def wanted(example, shapes):
    """The steps of a run that nobody interrupts."""
    handler = signal.getsignal(signal.SIGINT)
    with contextlib.redirect_stdout(io.StringIO()) as output, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert example.main(arguments(shapes)) == 0
    signal.signal(signal.SIGINT, handler)
    return steps(output.getvalue())


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", [1, 4, 6, 12])
def test_ctrl_c_and_resume_deliver_exactly_what_one_run_does(
    example, shapes, wanted, tmp_path, capsys, monkeypatch, number
):
    assert len(wanted) == 12
    for epoch in range(3):
        ids = [i for _, e, _, ids in wanted if e == epoch for i in ids]
        assert sorted(ids) == list(range(30))
    handler = signal.getsignal(signal.SIGINT)
    try:
        losses = []

        def interrupting(*scores):
            losses.append(1)
            if len(losses) == number:
                os.kill(os.getpid(), signal.SIGINT)
            return cross_entropy(*scores)

        cross_entropy = example.cross_entropy
        monkeypatch.setattr(example, "cross_entropy", interrupting)
        checkpoint = tmp_path / "run.pt"
        status, first = run_here(example, capsys, shapes, "--checkpoint", checkpoint)
        monkeypatch.undo()
        assert status == example.INTERRUPTED
        assert len(first) == number
        status, rest = run_here(example, capsys, shapes, "--checkpoint", checkpoint, "--resume")
        assert status == 0
    finally:
        signal.signal(signal.SIGINT, handler)
    found = first + rest
    assert [step[1] for step in found] == [step[1] for step in wanted]
    assert [step[3] for step in found] == [step[3] for step in wanted]
    assert [step[2] for step in found] == pytest.approx([step[2] for step in wanted], abs=2e-3)


def test_two_ranks_under_torchrun_share_every_epoch(shapes, tmp_path):
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        str(PATH), *arguments(shapes, "--checkpoint", tmp_path / "run.pt"),
    ]  # fmt: skip
    done = subprocess.run(command, env=ALONE, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    found = steps(done.stdout)
    for epoch in range(3):
        ranks = [[step for step in found if step[:2] == (rank, epoch)] for rank in range(2)]
        assert [[len(step[3]) for step in rank] for rank in ranks] == [[8, 7]] * 2
        assert sorted(i for rank in ranks for step in rank for i in step[3]) == list(range(30))
    assert "accuracy" in done.stdout
    assert (tmp_path / "run.pt").exists()


def test_resuming_needs_a_checkpoint(example, capsys):
    with pytest.raises(SystemExit):
        example.parse(["--resume"])
    assert "needs --checkpoint" in capsys.readouterr().err


def test_a_missing_file_for_the_accuracy_is_noticed_before_the_training(example, shapes, capsys):
    with pytest.raises(FileNotFoundError, match="absent"):
        example.main(arguments(shapes, "--valid", "absent.rec"))
    assert not capsys.readouterr().out
