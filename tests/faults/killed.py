"""A program that makes a file again and again and is killed at another step each time.

``killed.py SCENARIO FOLDER [WORD ...]`` prints at how many steps it was struck.  It forks for every
attempt, so that everything is imported once; the child kills itself before its n-th call of the
system that changes what is on the disk.
"""

import contextlib
import os
import shutil
import signal
import sys
from pathlib import Path

import recordio
from recordio.bytes import storage

CALLS = [
    "open",
    "fsync",
    "rename",
    "replace",
    "unlink",
    "link",
    "mkdir",
    "rmdir",
    "truncate",
    "ftruncate",
]


def strike_at(turn):
    """Kill this process when one of the calls is made for the `turn`-th time in all."""
    left = [turn]

    def watch(owner, name):
        call = getattr(owner, name)

        def watched(*arguments, **keywords):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **keywords)

        setattr(owner, name, watched)

    for name in CALLS:
        watch(os, name)
    watch(storage._OwnFile, "write")


def run(job, turn=0):
    """Do it in a child that is killed at a step; the code with which it ends."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what a command says
            strike_at(turn)
            job()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def published(found):
    """Those that do not say that they are temporary."""
    ends = (".partial", ".replaced")
    return {name: data for name, data in found.items() if not name.split("/")[0].endswith(ends)}


def nothing():
    """Prepare no file, and look at none."""


def strike_everywhere(folder, prepare, job, main, companions, check=nothing):
    """Kill `job` at every step; `main` and its companions belong together.

    Afterwards every file is the old or the new one, none stands beside another version, what
    `check` looks at holds, and the same job ends as if nothing had happened.
    """
    prepare()
    old = files(folder)
    job()  # here, so that no child has anything to import
    new = files(folder)
    assert main in new and published(new) == new, sorted(new)
    turn = 0
    while True:
        turn += 1
        shutil.rmtree(folder)
        folder.mkdir()
        prepare()
        code = run(job, turn)
        if code == 0:
            return turn - 1
        assert code == -signal.SIGKILL, code
        left = published(files(folder))
        for name, data in left.items():
            assert data in (old.get(name), new.get(name)), (turn, name)
        assert left.get(main) in (old.get(main), new[main]), turn
        version = new if left.get(main) == new[main] else old
        for name in companions:
            assert left.get(name) in (None, version.get(name)), (turn, name)
        check()
        assert run(job) == 0, turn
        assert files(folder) == new, (turn, sorted(files(folder)))


class Scenarios:
    """Each returns what prepares the folder, the job, the main file and its companions."""

    def __init__(self, folder, words):
        self.folder, self.words = folder, words

    def old(self, name="a"):
        path = self.folder / f"{name}.rec"
        with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
            writer.write(b"old", 5)

    def writer(self, prepare=nothing):
        def job():
            path = self.folder / "a.rec"
            with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
                for number in range(12):
                    writer.write(bytes(100_000), number + 10)

        return prepare, job, "a.rec", ["a.idx"]

    def replacing_writer(self):
        return self.writer(self.old)

    def continuing_writer(self):
        path, index = self.folder / "a.rec", self.folder / "a.idx"

        def job():
            with recordio.RecordReader(path) as reader:
                done = len(reader)
            if not index.exists():
                with contextlib.suppress(recordio.IndexFileError):
                    recordio.RecordWriter(path, index, append=True)
                    raise AssertionError("a record file was continued without its index")
                recordio.build_index(path, index)
                pairs = [line.split() for line in index.read_text().splitlines()]
                index.write_text("".join(f"{int(key) + 5}\t{offset}\n" for key, offset in pairs))
            with recordio.RecordWriter(path, index, append=True) as writer:
                for _ in range(done, 12):
                    writer.write(bytes(100_000))

        return self.old, job, "a.rec", ["a.idx"]

    def mxnet_writer(self):
        path, index = self.folder / "a.rec", self.folder / "a.idx"

        def job():
            record = recordio.MXIndexedRecordIO(index, path, "w", key_type=str)
            for number in range(3):
                record.write_idx(f"key {number}", bytes(600_000))
            record.close()

        return self.old, job, "a.rec", ["a.idx"]

    def im2rec(self, prepare=nothing):
        from recordio.tools.im2rec import main

        def job():
            words = ["--num-thread", "1", "--resize", "30", str(self.folder / "p"), *self.words]
            assert main(words) == 0

        return prepare, job, "p.rec", ["p.idx"]

    def replacing_im2rec(self):
        return self.im2rec(lambda: self.old("p"))

    def command(self):
        """The command ``recordio`` where p stands for the pack that it writes."""
        from recordio.tools import cli

        def job():
            words = [str(self.folder / "p") if word == "p" else word for word in self.words]
            assert cli.main([*words, "--force"]) in (0, 1)

        return lambda: self.old("p"), job, "p.rec", ["p.idx"]

    def material(self):
        """A command over packs, in small steps; p and q stand for the packs that it writes."""
        from recordio.operations import copying, output

        copying.CHUNK, output.STEP = 5, 1
        targets = {"p": str(self.folder / "p"), "q": str(self.folder / "q")}
        words = []
        for word in self.words:
            name, equals, share = word.partition("=")
            words.append(targets.get(name, name) + equals + share)
        self.words = words
        return self.command()

    def shards(self):
        """Four files are replaced by four others: where there is a manifest, it is right."""
        manifest = self.folder / "p.shards.json"

        def make(pack):
            recordio.shard(pack, self.folder / "p", 4)

        def check():
            if manifest.exists():
                recordio.check_shards(manifest)

        old, new = self.words
        return (lambda: make(old)), (lambda: make(new)), "p-000000.rec", ["p-000000.idx"], check

    def index(self):
        from recordio.tools import cli

        def job():
            assert cli.main(["index", str(self.folder / "a.rec"), "--force"]) == 0

        return self.old, job, "a.idx", []

    def export(self):
        from recordio.tools import cli

        pack, target, *options = self.words

        def job():
            if not (self.folder / target).exists():
                assert cli.main(["export", pack, str(self.folder / target), *options]) == 0

        first = target if options else f"{target}/cat/00.jpg"
        others = [] if options else [f"{target}/dog/{number:02d}.jpg" for number in range(12)]
        return nothing, job, first, others

    def mean_image(self):
        import numpy as np

        from iterators.images.augment.mean_image import write_mean_image

        path = self.folder / "mean.bin"

        def job():
            write_mean_image(str(path), np.ones((3, 200, 200), np.float32))

        return lambda: path.write_bytes(b"old"), job, "mean.bin", []

    def made_once(self):
        from iterators import cache_or_load_file, set_dataset_root

        path = self.folder / "made.bin"
        set_dataset_root(str(self.folder.parent / "root"))

        def job():
            cache_or_load_file(str(path), lambda new: Path(new).write_bytes(b"made"), open)

        return nothing, job, "made.bin", []


if __name__ == "__main__":
    name, place, *rest = sys.argv[1:]
    scenario = getattr(Scenarios(Path(place), rest), name)()
    print(strike_everywhere(Path(place), *scenario))
