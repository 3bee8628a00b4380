"""Iterators of `mx.io` and `mx.image` deliver `NDArray`, in every way that a batch can be had."""

from pathlib import Path

import numpy as np
import pytest

import iterators
from iterators.compat import mxnet as mx

GOLDEN = Path(__file__).parents[2] / "golden"
PACK = str(GOLDEN / "photospng.rec")


def image_records(**keywords):
    return mx.io.ImageRecordIter(path_imgrec=PACK, data_shape=(3, 16, 16), batch_size=4, **keywords)


ITERATORS = {
    "image": image_records,
    "boxes": lambda: mx.io.ImageDetRecordIter(
        path_imgrec=str(GOLDEN / "det_boxes.rec"), data_shape=(3, 16, 16), batch_size=2
    ),
    "csv": lambda: mx.io.CSVIter(data_csv=str(GOLDEN / "data.csv"), data_shape=(6,), batch_size=3),
    "mnist": lambda: mx.io.MNISTIter(
        image=str(GOLDEN / "images-idx3-ubyte"),
        label=str(GOLDEN / "labels-idx1-ubyte"),
        batch_size=5,
    ),
    "arrays": lambda: mx.io.NDArrayIter(np.zeros((6, 2)), np.zeros(6), 3),
    "resized": lambda: mx.io.ResizeIter(image_records(), 2),
    "ahead": lambda: mx.io.PrefetchingIter(image_records()),
    "foreign": lambda: mx.io.MXDataIter(iterators.NDArrayIter(np.zeros((6, 2)), np.zeros(6), 3)),
    "python": lambda: mx.image.ImageIter(4, (3, 16, 16), path_imgrec=PACK),
    "own steps": lambda: mx.image.ImageIter(
        4, (3, 16, 16), path_imgrec=PACK, aug_list=[mx.image.ForceResizeAug((16, 16))]
    ),
}


@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_every_batch_holds_ndarrays(make):
    def check(arrays):
        assert arrays
        for array in arrays:
            assert isinstance(array, mx.nd.NDArray) and type(array.asnumpy()) is np.ndarray

    it = make()
    for batch in it:
        check([*batch.data, *batch.label])
    it.reset()
    batch = it.next()
    check([*batch.data, *batch.label])
    it.reset()
    assert it.iter_next()
    check([it.getdata()] if isinstance(it.getdata(), np.ndarray) else it.getdata())
    for desc, array in zip(it.provide_data, batch.data, strict=True):
        assert desc.shape == array.shape


def test_the_class_of_iterators_that_were_compiled():
    for name in ("image", "boxes", "csv", "mnist"):
        assert isinstance(ITERATORS[name](), mx.io.MXDataIter)
    assert not isinstance(ITERATORS["arrays"](), mx.io.MXDataIter)


def test_batches_are_those_of_this_package_and_so_are_states():
    ours = iterators.ImageRecordIter(
        path_imgrec=PACK, data_shape=(3, 16, 16), batch_size=4, shuffle=True, seed=3
    )
    theirs = image_records(shuffle=True, seed=3)
    first = next(iter(theirs))
    assert (next(iter(ours)).data[0] == first.data[0].asnumpy()).all()
    ours.load_state_dict(theirs.state_dict())
    assert (ours.next().data[0] == theirs.next().data[0].asnumpy()).all()
    assert type(ours.next().data[0]) is np.ndarray


def test_a_form_that_was_asked_for_is_left_alone():
    space = iterators.VectorSpace(3 * 16 * 16)
    it = image_records(data_specs=(space, "features"))
    assert type(next(iter(it))) is not mx.nd.NDArray


def test_functions_of_a_script_are_called_with_ndarrays():
    seen = []

    class Halved(mx.image.Augmenter):
        def __call__(self, src):
            seen.append(type(src))
            return mx.nd.array(src.asnumpy() / 2)

    it = mx.image.ImageIter(
        2, (3, 16, 16), path_imgrec=PACK, aug_list=[Halved(), mx.image.CenterCropAug((16, 16))]
    )
    next(iter(it))
    assert set(seen) == {mx.nd.NDArray}


def test_augmenters_and_functions_give_ndarrays():
    image = mx.nd.array(np.arange(12 * 14 * 3).reshape(12, 14, 3) % 255, dtype="uint8")
    for step in mx.image.CreateAugmenter(
        (3, 8, 8), resize=10, rand_crop=True, rand_mirror=True, brightness=0.1, hue=0.1, mean=True
    ):
        image = step(image)
        assert isinstance(image, mx.nd.NDArray), step
    steps = mx.image.CreateAugmenter((3, 8, 8))
    assert isinstance(steps[0], mx.image.CenterCropAug) and steps[:1] == (steps[0],)
    it = mx.image.ImageIter(2, (3, 8, 8), path_imgrec=PACK, aug_list=steps)
    assert next(iter(it)).data[0].shape == (2, 3, 8, 8)
    objects = np.array([[0, 0.1, 0.1, 0.9, 0.9]])
    for step in mx.image.CreateDetAugmenter((3, 8, 8), rand_mirror=True, rand_crop=0.5):
        image, objects = step(image, objects)
        assert isinstance(image, mx.nd.NDArray) and not isinstance(objects, mx.nd.NDArray)
    cropped, place = mx.image.random_crop(image, (4, 4))
    assert isinstance(cropped, mx.nd.NDArray) and all(type(number) is int for number in place)


def test_libsvm_gives_sparse_matrices_of_mxnets_methods():
    it = mx.io.LibSVMIter(data_libsvm=str(GOLDEN / "data.libsvm"), data_shape=(20,), batch_size=3)
    batch = next(iter(it))
    assert batch.data[0].stype == "csr"
    dense = batch.data[0].asnumpy()
    assert dense.shape == (3, 20) and (batch.data[0].asscipy().toarray() == dense).all()
