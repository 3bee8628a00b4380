"""The command itself: it prints an address, answers, and ends on Ctrl-C leaving nothing."""

import concurrent.futures
import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = "import sys; from recordio.tools.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def started(plain, tmp_path):
    """A running command, its port and its token."""
    pytest.importorskip("uvicorn", reason="the extra view is not installed")
    processes = []

    def start(*words):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "view", "--no-browser", *(words or [plain])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        processes.append(process)
        line = process.stdout.readline()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{32})\n", line)
        assert found, (line, process.stderr.read())
        return process, int(found[1]), found[2]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def get(port, path, token):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        cookie = f"recordio_view_{port}={token}"
        connection.request("GET", path, headers={"Cookie": cookie})
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_on_a_signal_and_leaves_nothing(started, plain, tmp_path, number):
    before = sorted(os.listdir(os.path.dirname(plain)))
    process, port, token = started()
    assert get(port, "/pack/plain/", token)[0] == 200
    assert get(port, "/pack/plain/numbers", token)[0] == 200
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (0, "", "")
    assert sorted(os.listdir(os.path.dirname(plain))) == before and not os.listdir(tmp_path)


def listening(process):
    """Addresses and ports at which a process listens, in the form of Linux."""
    folder = Path(f"/proc/{process.pid}")
    links = set()
    for link in (folder / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            links.add(os.readlink(link))
    lines = [line.split() for name in ("tcp", "tcp6")
             for line in (folder / "net" / name).read_text().splitlines()[1:]]  # fmt: skip
    return {line[1] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in links}


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_it_listens_on_this_machine_only(started):
    process, port, _ = started()
    assert listening(process) == {f"{socket.htonl(0x7F000001):08X}:{port:04X}"}


def test_fifty_clients_while_the_page_is_closed(started):
    process, port, token = started()
    closing, under_way = threading.Event(), threading.Semaphore(0)
    paths = [f"/pack/plain/image/{n % 30}/224" for n in range(30)]
    paths += ["/pack/plain/", "/pack/plain/record/3", "/pack/plain/training?record=3"]

    def ask(number):
        answers = []
        for turn in range(10_000):
            try:
                status, _ = get(port, paths[(number + turn) % len(paths)], token)
            except (OSError, http.client.HTTPException):
                assert closing.is_set()
                return answers
            answers.append(status)
            under_way.release()
        return answers

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        clients = [pool.submit(ask, number) for number in range(50)]
        for _ in range(100):
            assert under_way.acquire(timeout=100)
        closing.set()
        process.send_signal(signal.SIGINT)
        answers = sum((client.result(timeout=100) for client in clients), [])
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and set(answers) == {200}
    assert answers.count(200) >= 100 and "Traceback" not in errors


@pytest.mark.parametrize("module", ["jinja2", "starlette", "uvicorn"])
def test_an_extra_that_is_missing_is_said(command, tmp_path, capsys, monkeypatch, module):
    for name in ("jinja2", "starlette", "uvicorn"):  # what is not installed here has to be the one
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module, None)
    assert command("view", "--no-browser", tmp_path / "none") == 1
    assert "for recordio view: pip install 'recordio-iterators[view]'" in capsys.readouterr().err


def test_a_pack_that_is_missing_is_said(command, tmp_path, capsys):
    pytest.importorskip("uvicorn", reason="the extra view is not installed")
    assert command("view", "--no-browser", tmp_path / "none") == 1
    assert "there is no such file" in capsys.readouterr().err


def test_a_port_that_is_taken_is_said(command, plain, capsys):
    pytest.importorskip("uvicorn", reason="the extra view is not installed")
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert command("view", "--no-browser", "--port", other.getsockname()[1], plain) == 1
    assert "Address already in use" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--port", "x"], ["--port", "70000"], ["--threads", "0"], []])
def test_wrong_arguments(command, words):
    with pytest.raises(SystemExit) as ended:
        command("view", *words)
    assert ended.value.code == 2


def test_a_processor_is_read_first(started, plain, tmp_path, capsys):
    from recordio.tools.cli import main

    file = tmp_path / "preprocessor_config.json"
    file.write_text('{"image_processor_type": "CLIPImageProcessor"}')
    assert main(["view", "--no-browser", "--processor", str(file), plain]) == 1
    assert "none of a vision-language model" in capsys.readouterr().err
    file.write_text('{"image_processor_type": "Siglip2ImageProcessor"}')
    _, port, token = started("--processor", str(file), plain)
    assert b"Siglip2ImageProcessor" in get(port, "/pack/plain/record/1", token)[1]
