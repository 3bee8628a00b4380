"""``python -m iterators.compat check``: scripts are read, never run, and every line is named."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.compat import check as checking
from iterators.compat.__main__ import main

SCRIPT = """\
import os, mxnet as mx
import mxnet.gluon.data as d
from mxnet import autograd, gluon, nd
from iterators.compat import mxnet as ours
import iterators.compat.chainer as ch
raise SystemExit("this script is never run")
x = mx.sym.Variable("x")
with autograd.record(): pass
gluon.Trainer({}, "sgd")
it = mx.io.ImageRecordIter(path_imgrec="x", data_shape=(3, 2, 2), batch_size=3).next().data
nd.FullyConnected(nd.array([1]))
d.DataLoader([1], 2, pin_memory=True)
ours.gluon.data.vision.MNIST()
ch.datasets.get_mnist(), ch.links.Linear(3)
mx.gpu(0)
mx.io.DataDesc.get_nothing
own = os.path.join("mx.sym", "mxnet")
"""
MISSING = {7: "mxnet.sym.Variable", 8: "mxnet.autograd.record", 9: "gluon.Trainer"}
MISSING |= {11: "mxnet.nd.FullyConnected", 14: "chainer.links.Linear", 16: "mxnet.io.DataDesc"}


def found(text, kind, path="a.py"):
    return {f.line: f for f in checking.check_text(text, path) if f.kind == kind}


def test_names_that_are_missing_are_found_with_their_lines():
    missing = found(SCRIPT, "missing")
    assert {line: f.name for line, f in missing.items()} == {
        **MISSING,
        16: "mxnet.io.DataDesc.get_nothing",
    }
    assert "trains models" in missing[7].text and "no operators" in missing[11].text


def test_names_that_differ_and_imports_that_change():
    assert set(found(SCRIPT, "differs")) == {12, 13, 14, 15}
    changes = found(SCRIPT, "changes")
    assert [changes[line].text for line in sorted(changes)] == [
        "becomes from iterators.compat import mxnet as mx",
        "becomes from iterators.compat.mxnet.gluon import data as d",
        "becomes from iterators.compat.mxnet import autograd, gluon, nd",
    ]


def test_an_order_that_follows_another_seed_is_named():
    script = """\
import mxnet as mx
mx.io.NDArrayIter(x, y, 4, shuffle=True)
mx.image.ImageIter(4, (3, 8, 8), path_imgrec="a.rec", shuffle=wanted)
mx.io.NDArrayIter(x, y, 4, shuffle=False)
mx.io.NDArrayIter(x, y, 4)
"""
    differs = found(script, "differs")
    assert set(differs) == {2, 3} and "seed=" in differs[2].text


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("import mxnet.gluon.data\nmxnet.gluon.data.DataLoader", None),
        ("import mxnet.gluon.data\nmxnet.sym.x", "mxnet.sym.x"),
        ("from mxnet.gluon.model_zoo import vision", "mxnet.gluon.model_zoo.vision"),
        ("from mxnet.io import Nothing", "mxnet.io.Nothing"),
        ("import mxnet.nothing", "mxnet.nothing"),
        ("from chainer import training, Variable", None),
        ("from chainer.iterators import DaliIterator", "chainer.iterators.DaliIterator"),
        ("from pylearn2.space import VectorSpace\nVectorSpace(3).nothing", None),
        ("from pylearn2.utils.iteration import Nothing", "pylearn2.utils.iteration.Nothing"),
        ("from iterators.compat import dp\ndp.DataView\ndp.Model", "dp.Model"),
        ("from . import mxnet\nmxnet.sym.x", None),
        ("mx = 3\nmx.sym", None),
        ("import mxnet as mx\nmx.sym = 3", None),
    ],
)
def test_ways_to_import(line, missing):
    names = [f.name for f in checking.check_text(line, "a.py") if f.kind == "missing"]
    assert names == ([missing] if missing else [])


def test_a_star_is_told():
    (finding,) = found("from mxnet.gluon import *", "differs").values()
    assert "one by one" in finding.text


def test_names_of_dp_in_lua():
    text = "require 'dp'\nds = dp.Mnist{}\nx = dp.Experiment{} -- dp.Optimizer\n"
    assert {line: f.name for line, f in found(text, "missing", "a.lua").items()} == {
        3: "dp.Experiment"
    }


def test_the_command_takes_folders_and_tells_by_its_exit_code(tmp_path, capsys):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.py").write_text(SCRIPT)
    (tmp_path / "b.py").write_text("import mxnet as mx\nmx.nd.zeros(3)\n")
    (tmp_path / "c.txt").write_text("import mxnet\nmxnet.sym.x")
    assert main(["check", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert f"{tmp_path / 'inner' / 'a.py'}:7: mxnet.sym.Variable missing: " in printed
    assert printed.endswith("2 scripts: 4 imports change, 4 names differ, 6 are missing\n")
    assert main(["check", str(tmp_path / "b.py")]) == 0
    (tmp_path / "d.py").write_text("print 'Python 2'\n")
    assert main(["check", str(tmp_path / "d.py"), str(tmp_path / "b.py")]) == 2
    assert main(["check", str(tmp_path / "none.py")]) == 2
    assert "d.py: cannot be read" in capsys.readouterr().err


def test_every_difference_is_of_a_name_that_exists():
    for name in [*checking.DIFFERENCES, *(name for name, _ in checking.KEYWORDS)]:
        text = f"import {name.partition('.')[0]}\n{name}"
        assert not found(text, "missing"), name


@given(st.text(alphabet="mxnet. ()=\n\timport fromas*0", max_size=60))
def test_any_text_is_looked_up_or_is_no_python(text):
    with contextlib.suppress(SyntaxError, ValueError):
        checking.check_text(text, "a.py")
