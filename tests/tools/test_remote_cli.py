"""`recordio` over URLs: fetched, indexed, looked into and checked."""

import pytest
from range_server import RangeServer

import recordio
from recordio.formats.jpeg import jpeg
from recordio.tools.cli import main

pytest.importorskip("aiohttp")


@pytest.fixture
def url(tmp_path, monkeypatch):
    monkeypatch.setenv("RECORDIO_REMOTE_CACHE", str(tmp_path / "mirrors"))
    path = tmp_path / "a.rec"
    with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
        for i in range(20):
            header = recordio.IRHeader(0, float(i), i, 0)
            writer.write(recordio.pack(header, b"content %d" % i * 1000), key=i)
    server = RangeServer()
    for name in ("a.rec", "a.idx"):
        server.objects[name] = path.with_name(name).read_bytes()
    yield f"{server.url}/a.rec"
    server.stop()


def output(capfdbinary, *words):
    assert main([str(word) for word in words]) == 0
    return capfdbinary.readouterr().out


def test_packs_are_looked_into_as_local_ones(url, tmp_path, capfdbinary):
    local = str(tmp_path / "a.rec")
    for words in (["head", "-n", "3"], ["check"], ["info"], ["cat"]):
        more = ["7"] if words == ["cat"] else []
        here = output(capfdbinary, words[0], local, *more, *words[1:])
        there = output(capfdbinary, words[0], url, *more, *words[1:])
        assert there.replace(url[:-5].encode(), str(tmp_path / "x")[:-1].encode()) == here
    assert b"content 7" in output(capfdbinary, "cat", url, 7)


def test_fetch(url, tmp_path, capfdbinary):
    assert main(["fetch", url]) == 0
    assert url in capfdbinary.readouterr().err.decode()
    (place,) = (tmp_path / "mirrors").glob("a.rec-*")
    assert (place / "data").read_bytes() == (tmp_path / "a.rec").read_bytes()
    with pytest.raises(SystemExit):
        main(["fetch", str(tmp_path / "a.rec")])
    assert main(["fetch", url.replace("a.rec", "b.rec")]) == 1
    assert b"no such object" in capfdbinary.readouterr().err


def test_commands_over_packs(url, tmp_path, capfdbinary):
    prefix = url.removesuffix(".rec")
    for number, words in enumerate(
        (
            ["join", "PACK", "OUT"],
            ["filter", "PACK", "OUT", "--where", "label < 7"],
            ["shuffle", "PACK", "OUT", "--seed", "1"],
            ["relabel", "PACK", "OUT", "--none"],
            *([["optimize", "PACK", "OUT"]] if jpeg.available() else []),
        )
    ):
        made = []
        for pack in (str(tmp_path / "a"), url, prefix):
            out = tmp_path / f"{number}-{len(made)}"
            named = {"PACK": pack, "OUT": str(out)}
            output(capfdbinary, *(named.get(word, word) for word in words))
            made.append(
                [out.with_name(f"{out.name}{end}").read_bytes() for end in (".rec", ".idx")]
            )
        assert made[0] == made[1] == made[2]
    there, here = (output(capfdbinary, "stats", pack) for pack in (url, tmp_path / "a"))
    assert there.splitlines()[1:] == here.splitlines()[1:]
    output(capfdbinary, "diff", url, tmp_path / "a")
    output(capfdbinary, "dedup", url)
    with pytest.raises(SystemExit):
        main(["join", str(tmp_path / "a"), f"{prefix}-new"])
    assert b"a path of this machine is needed" in capfdbinary.readouterr().err


def test_outputs_are_local(url, tmp_path, capfdbinary):
    assert main(["check", url, "--write-checksums"]) == 1
    assert b"a path of this machine is needed" in capfdbinary.readouterr().err
