"""`im2rec --ray` makes the shards that im2rec makes alone, also when workers and nodes die."""

import os
import signal
import sys
import threading

import pytest

import recordio
from recordio.tools.arguments import parse_arguments
from recordio.tools.im2rec import main
from recordio.tools.pack_shards import finish, shard_tasks

pytestmark = [
    pytest.mark.filterwarnings("default"),  # Ray's own
    pytest.mark.timeout(300),
]


def run(*words):
    return main([str(word) for word in words])


def files(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix in (".rec", ".idx")} | {
        p.name: p.read_bytes() for p in folder.glob("*.shards.json")
    }


@pytest.fixture
def alone(photo_folder, tmp_path):
    """The list, and the shards that one process makes of it: together the pack of plain im2rec."""
    folder = tmp_path / "alone"
    folder.mkdir()
    assert run("--shards", 6, folder / "p", photo_folder) == 0
    shards = files(folder)
    assert run(folder / "p", photo_folder) == 0
    parts = [content for name, content in sorted(shards.items()) if name.endswith(".rec")]
    assert b"".join(parts) == (folder / "p.rec").read_bytes() and len(parts) == 6
    return (folder / "p.lst").read_bytes(), shards


def test_the_pack_is_that_of_im2rec_alone(ray_cluster, photo_folder, output, alone, capsys):
    assert run("--ray", "--shards", 6, output / "p", photo_folder) == 0
    assert files(output) == alone[1]
    assert "6 of 6 shards in" in capsys.readouterr().err
    (output / "p-000004.idx").unlink()
    assert run("--ray", "--shards", 6, output / "p", photo_folder) == 0
    messages = capsys.readouterr().err
    assert "5 of 6 shards are whole already" in messages and "1 of 6 shards in" in messages
    assert files(output) == alone[1]


def test_bad_images(ray_cluster, photo_folder, output, capsys):
    (output / "p.lst").write_text("1\t0\tcat/00.jpg\n2\t0\tmissing.jpg\n")
    assert run("--ray", "--shards", 2, output / "p", photo_folder) == 1
    assert "1 skipped in all" in capsys.readouterr().err
    assert recordio.check_shards(output / "p.shards.json").records == 1
    words = ("--strict", "--quality", 90)
    assert run("--ray", "--shards", 2, *words, output / "p", photo_folder) == 1
    message = capsys.readouterr().err
    assert "error: " in message and "missing.jpg" in message and "Traceback" not in message


def test_a_killed_worker_costs_one_shard(ray_cluster, photo_folder, output, alone):
    from recordio.ray import run_tasks

    (output / "p.lst").write_bytes(alone[0])
    tasks = shard_tasks(str(output / "p.lst"), str(photo_folder), shards=6)
    died = str(output / "died")

    def make(task):
        def strike(count):
            if task.number == 2 and not os.path.exists(died):
                with open(died, "w"):
                    os.kill(os.getpid(), signal.SIGKILL)

        return task.make(threads=1, progress=strike)

    notes = dict(run_tasks(make, tasks))
    assert os.path.exists(died)
    finish(tasks, [notes[number] for number in range(6)])
    assert files(output) == alone[1]
    assert not list(output.glob("*.partial"))


def test_a_killed_node_costs_its_shards(ray_cluster, photo_folder, output, alone):
    from recordio.ray import run_tasks

    (output / "p.lst").write_bytes(alone[0])
    tasks = shard_tasks(str(output / "p.lst"), str(photo_folder), shards=6)
    doomed = ray_cluster.add_node(doomed=1)
    started = output / "started"

    def make(task):
        def hold(count):
            import ray

            mine = ray.get_runtime_context().get_node_id()
            if any("doomed" in n["Resources"] for n in ray.nodes() if n["NodeID"] == mine):
                started.touch()
                threading.Event().wait()  # for the end of the node
            while not started.exists():  # so that others do not take all tasks before
                threading.Event().wait(0.05)

        return task.make(threads=1, progress=hold)

    def strike():
        for _ in range(600):
            if started.exists():
                ray_cluster.kill(doomed)
                return
            threading.Event().wait(0.1)

    thread = threading.Thread(target=strike)
    thread.start()
    notes = dict(run_tasks(make, tasks))
    thread.join()
    assert started.exists()
    finish(tasks, [notes[number] for number in range(6)])
    assert files(output) == alone[1]


def test_what_a_task_raises_comes_out_and_nothing_stays_behind(ray_cluster):
    from recordio.ray import run_tasks

    def fail(number):
        raise recordio.LabelError("no label", path="a.rec", record=number)

    with pytest.raises(recordio.LabelError, match="a.rec, record 3: no label"):
        list(run_tasks(fail, [3]))
    with pytest.raises(KeyboardInterrupt):
        list(run_tasks(lambda number: threading.Event().wait(), [1], cancelled=lambda: True))


# -- the command line, for which no Ray is needed --------------------------------------------------


@pytest.mark.parametrize(
    ("words", "address"),
    [
        (["--ray", "data/p", "photos"], ""),
        (["data/p", "photos", "--ray"], ""),
        (["--ray", "10.0.0.1:6379", "data/p", "photos"], "10.0.0.1:6379"),
        (["--ray", "ray://head:10001", "data/p", "photos"], "ray://head:10001"),
        (["--ray=auto", "data/p", "photos"], "auto"),
        (["data/p", "photos"], None),
    ],
)
def test_an_address_is_told_from_a_prefix(words, address):
    settings = parse_arguments(words)
    assert settings.ray == address and os.path.basename(settings.prefix) == "p"


def test_one_process_or_many():
    with pytest.raises(SystemExit):
        parse_arguments(["--ray", "--part", "1/2", "data/p", "photos"])


def test_without_ray_it_is_said_what_to_install(photo_folder, output, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run("--ray", output / "p", photo_folder) == 1
    assert "pip install 'recordio-iterators[ray]'" in capsys.readouterr().err
