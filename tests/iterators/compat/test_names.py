"""`iterators.compat` has names of other systems, of which each belongs to an object of ours."""

import ast
import importlib
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import iterators
from iterators import compat
from iterators.compat import mxnet as mx

FOLDER = Path(compat.__file__).parent
SYSTEMS = ["chainer", "dp", "mxnet", "pylearn2"]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(compat.__path__, "iterators.compat.")
    if module.name.rpartition(".")[2] != "__main__"
)


def run(program):
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_can_be_imported_first(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public)


def test_nothing_else_imports_compat():
    for path in (FOLDER.parents[1] / "recordio", FOLDER.parent, FOLDER.parents[1] / "tools"):
        for file in path.rglob("*.py"):
            if FOLDER in file.parents:
                continue
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ImportFrom):
                    assert "compat" not in (node.module or "").split("."), file
                elif isinstance(node, ast.Import):
                    assert all("compat" not in alias.name.split(".") for alias in node.names), file


def test_iterators_can_be_used_without_compat_being_loaded():
    run(
        "import sys, iterators\n"
        "iterators.ImageRecordIter, iterators.datasets.gluon, iterators.mx_image\n"
        "sys.exit(any(name.startswith('iterators.compat') for name in sys.modules))"
    )


def test_a_system_is_loaded_when_it_is_asked_for():
    run(
        "import sys, iterators\n"
        "iterators.compat.dp\n"
        "loaded = {name for name in sys.modules if name.startswith('iterators.')}\n"
        "wrong = loaded & {'iterators.datasets', 'iterators.providers', 'iterators.compat.mxnet'}\n"
        "sys.exit(', '.join(sorted(wrong)) or 0)"
    )


def test_mxnet_is_imported_as_scripts_import_it():
    run(
        "import iterators.compat.mxnet.gluon.data\n"
        "import iterators.compat.mxnet as mx\n"
        "from iterators.compat.mxnet import autograd, gluon, image, io, nd, recordio\n"
        "from iterators.compat.mxnet.gluon import nn\n"
        "from iterators.compat.mxnet.gluon.data.vision import transforms, ImageRecordDataset\n"
        "from iterators.compat.mxnet.gluon.data.vision.datasets import MNIST\n"
        "from iterators.compat.mxnet.io import DataBatch, DataIter\n"
        "from iterators.compat.mxnet.base import integer_types, numeric_types, string_types\n"
        "from iterators.compat.mxnet.image import imdecode\n"
        "from iterators.compat.mxnet.image.detection import CreateDetAugmenter, ImageDetIter\n"
        "from iterators.compat.mxnet.image.image import _get_interp_method, imread\n"
        "from iterators.compat.mxnet.gluon.data.dataloader import _MultiWorkerIter\n"
        "from iterators.compat.mxnet.ndarray import NDArray\n"
        "import iterators.compat.mxnet.ndarray as nd2\n"
        "assert nd is mx.nd is mx.ndarray is nd2 and mx.img is mx.image and mx.rnd is mx.random\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        "from iterators.compat.chainer import training, dataset, datasets, iterators, serializers",
        "from iterators.compat.chainer.dataset import concat_examples, convert, tabular, to_device",
        "from iterators.compat.chainer.datasets import TupleDataset, get_mnist, split_dataset",
        "from iterators.compat.chainer.iterators import SerialIterator, MultiprocessIterator",
        "from iterators.compat.chainer.serializers import load_npz, save_npz",
        "from iterators.compat.chainer.backend import get_device",
        "import iterators.compat.chainer as c; c.get_device('@numpy'), c.dataset.DatasetMixin",
        "from iterators.compat.pylearn2.space import VectorSpace, Conv2DSpace, CompositeSpace",
        "from iterators.compat.pylearn2.datasets.dense_design_matrix import DenseDesignMatrix",
        "from iterators.compat.pylearn2.datasets.vector_spaces_dataset import VectorSpacesDataset",
        "from iterators.compat.pylearn2.datasets.transformer_dataset import TransformerDataset",
        "from iterators.compat.pylearn2.datasets.preprocessing import GlobalContrastNormalization",
        "from iterators.compat.pylearn2.utils.data_specs import DataSpecsMapping, is_flat_specs",
        "from iterators.compat.pylearn2.utils.iteration import FiniteDatasetIterator",
        "from iterators.compat.pylearn2.format.target_format import OneHotFormatter",
        "from iterators.compat import dp; dp.DataView, dp.Mnist, dp.ShuffleSampler",
    ],
)
def test_imports_of_the_other_systems(line):
    exec(line, {})


@pytest.mark.parametrize("name", ["chainer.links.Linear", "pylearn2.models.mlp"])
def test_other_systems_say_what_is_not_here(name):
    system, part, own = name.split(".")
    module = getattr(getattr(compat, system), part)
    with pytest.raises(NotImplementedError, match=f"{own} of {system}.{part}.*trains models"):
        getattr(module, own)


def test_the_library_in_c_says_what_there_is_instead():
    with pytest.raises(NotImplementedError, match="MXRecordIOReaderTell of mx.base._LIB.*rec2idx"):
        mx.base._LIB.MXRecordIOReaderTell(None)
    with pytest.raises(NotImplementedError, match="no such library"):
        mx.base.check_call(0)


def test_names_of_mxnet_jl():
    for name in ("ImageRecord", "MNIST", "CSV"):
        assert getattr(mx, f"{name}Provider") is getattr(mx.io, f"{name}Iter")
    assert mx.MXDataProvider is mx.io.MXDataIter
    assert mx.eachbatch is iterators.providers.protocol.eachbatch


def test_the_names_are_of_subclasses_or_of_the_thing_itself():
    for name in ("ImageRecordIter", "CSVIter", "NDArrayIter", "PrefetchingIter", "ImageIter"):
        own = getattr(mx.io, name, None) or getattr(mx.image, name)
        assert own.__name__ == name and issubclass(own, getattr(iterators, name))
        assert getattr(iterators, name).__doc__.startswith(own.__doc__) and own.__doc__
    assert mx.recordio.MXIndexedRecordIO is iterators.recordio.MXIndexedRecordIO
    assert mx.io.DataIter is iterators.DataIter and mx.io.DataBatch is iterators.DataBatch
    step = mx.image.ResizeAug(8)
    again = pickle.loads(pickle.dumps(step))
    assert type(again) is mx.image.ResizeAug and again.dumps() == step.dumps()


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("mx.sym.Variable('data')", "trains models"),
        ("mx.mod.Module", "trains models"),
        ("mx.contrib.ndarray", "trains models"),
        ("mx.autograd.record()", "trains models"),
        ("mx.gluon.Trainer({}, 'sgd')", "trains models"),
        ("mx.gluon.model_zoo.vision", "trains models"),
        ("mx.gluon.nn.Dense(3)", "delivers data"),
        ("mx.np.zeros(3)", "NumPy"),
        ("mx.gluon.utils.download('http://x')", "cached_download"),
        ("mx.test_utils.get_mnist()", "nothing is downloaded"),
    ],
)
def test_what_this_package_is_not_is_an_error_that_says_so(code, word):
    with pytest.raises(NotImplementedError, match=word):
        eval(code, {"mx": mx})


def test_names_that_are_not_here_are_attribute_errors():
    for module in (mx, mx.nd, mx.io, mx.image, mx.gluon.data, mx.test_utils):
        assert not hasattr(module, "no_such_name")
    with pytest.raises(AttributeError, match=r"mx\.nd\.Convolution.*no operators"):
        mx.nd.Convolution
    with pytest.raises(ImportError):
        importlib.import_module("iterators.compat.mxnet.gluon.model_zoo.vision")
