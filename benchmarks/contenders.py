"""Programs that are compared, each in a process of its own that is stopped while others run."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CONTENDERS", "OURS", "Contender", "Failed", "Process"]

PROGRAMS = Path(__file__).resolve().parent / "peers"
OURS = "recordio"


class Failed(Exception):
    """A contender cannot do a job, for the reason given."""


@dataclass(frozen=True)
class Contender:
    """A program, and the environment it needs; None is the one that has this project."""

    title: str
    program: str
    environment: str | None = None
    arguments: tuple[str, ...] = ()

    @property
    def settings(self) -> str:
        """Settings of the program: its docstring."""
        source = (PROGRAMS / self.program).read_text()
        return " ".join((ast.get_docstring(ast.parse(source)) or "").split())


CONTENDERS = {
    OURS: Contender("this project", "with_recordio.py"),
    "untouched": Contender("this project, untouched pack", "with_recordio.py"),
    "mxnet": Contender("MXNet", "with_mxnet.py", "mxnet"),
    "dali": Contender("DALI (CPU)", "with_dali.py", "dali"),
    "torch": Contender("torch DataLoader + OpenCV", "with_torch.py", "torch"),
    "torchvision_pillow": Contender(
        "torchvision v2, Pillow", "with_torchvision.py", "torch", ("pillow",)
    ),
    "torchvision_tensors": Contender(
        "torchvision v2, tensors", "with_torchvision.py", "torch", ("tensors",)
    ),
    "transformers_pillow": Contender(
        "transformers, Pillow", "with_transformers.py", "transformers", ("Pil",)
    ),
    "transformers_torchvision": Contender(
        "transformers, torchvision", "with_transformers.py", "transformers", ("",)
    ),
    "webdataset": Contender("WebDataset + OpenCV", "with_webdataset.py", "torch"),
    "spdl": Contender("SPDL + OpenCV", "with_spdl.py", "torch"),
    "litdata": Contender("LitData + OpenCV", "with_litdata.py", "torch"),
    "tensorflow": Contender("tf.data", "with_tensorflow.py", "tensorflow"),
    "pyarrow": Contender("pyarrow", "with_pyarrow.py", "tables"),
    "polars": Contender("polars", "with_polars.py", "tables"),
    "numpy": Contender("numpy.loadtxt", "with_numpy.py"),
    **{
        name: Contender(title, "with_decoder.py", environment, (decoder,))
        for name, title, environment, decoder in (
            ("simplejpeg", "simplejpeg", "decoders", "simplejpeg"),
            ("imagecodecs", "imagecodecs", "decoders", "imagecodecs"),
            ("kornia", "kornia-rs", "decoders", "kornia-rs"),
            ("opencv", "OpenCV", "decoders", "OpenCV"),
            ("pillow", "Pillow", "decoders", "Pillow"),
            ("torchcodec", "torchcodec", "torch", "torchcodec"),
            ("torchvision", "torchvision", "torch", "torchvision"),
        )
    },
    "full_decode": Contender("limit: full decode", "with_libjpeg.py", arguments=("full_decode",)),
    "coefficients": Contender(
        "limit: coefficients only", "with_libjpeg.py", arguments=("read_coefficients",)
    ),
}


class Process:
    """A running contender with one job.  It works only while it is asked something.

    Between two questions all its processes are stopped by a signal, so that batches prepared ahead
    take nothing from the others.

    Parameters
    ----------
    contender : Contender
        Which.
    python : str
        The interpreter.
    limit : float
        Seconds after which a question that has no answer ends it.
    """

    def __init__(self, contender, python, limit=300.0):
        self.limit = limit
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [python, "-E", PROGRAMS / contender.program, *contender.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._signal(signal.SIGKILL)
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._errors.close()

    def _signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def ask(self, **question) -> dict:
        """Its answer; `Failed` if it has none."""
        timer = threading.Timer(self.limit, self._signal, [signal.SIGKILL])
        timer.start()
        self._signal(signal.SIGCONT)
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            raise Failed(self._last_words())
        self._signal(signal.SIGSTOP)
        answer = json.loads(line)
        if "unsupported" in answer:
            raise Failed(answer["unsupported"])
        return answer

    def _last_words(self):
        status = self._process.wait()
        self._errors.seek(0)
        lines = [line for line in self._errors.read().splitlines() if line.strip()]
        return lines[-1][:200] if lines else f"ended with status {status}"
