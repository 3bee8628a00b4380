"""``dtype="bfloat16"``: the float32 batch rounded, to the byte, whatever the form and the way."""

import itertools
import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iterators import (
    AugmentedDataset,
    Conv2DSpace,
    ImageDetRecordIter,
    ImageIter,
    ImageRecordDataset,
    ImageRecordIter,
    MixBatches,
)
from iterators.core.dtypes import array_over
from iterators.testing import box_label, maker, noise, write_pack

BFLOAT16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
LAYOUTS = ["".join(order) for order in itertools.permutations("NCHW")]
#: Everything that touches values on their way into a batch.
CHANGES = {
    "rand_crop": True,
    "rand_mirror": True,
    "shuffle": True,
    "max_random_contrast": 0.3,
    "max_random_illumination": 9,
    "mean_r": 120.5,
    "mean_g": 7,
    "std_b": 57.4,
    "scale": 0.017,
}
ERASING = {"random_erasing": 0.9, "erasing_value": "pixel"}
SPACE = Conv2DSpace((20, 16), num_channels=3, axes=("b", 0, 1, "c"), dtype="bfloat16")

of_records = maker(
    ImageRecordIter, data_shape=(3, 20, 16), batch_size=4, preprocess_threads=2, seed=3
)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("bfloat16") / "a.rec"
    return write_pack(path, [noise(24, 28, i) for i in range(11)], labels=range(11))


def batches(provider):
    """All images of an epoch as NumPy arrays, those of every view."""
    with provider:
        found = [array for batch in provider for array in batch.data]
    return [array if isinstance(array, np.ndarray) else array_over(array) for array in found]


def check_rounded(found, exact):
    assert len(found) == len(exact) > 0
    for rounded, array in zip(found, exact, strict=True):
        assert rounded.dtype == BFLOAT16 and rounded.shape == array.shape
        assert rounded.tobytes() == np.ascontiguousarray(array).astype(BFLOAT16).tobytes()


def compare(make, *values, **keywords):
    exact = batches(make(*values, **keywords))
    check_rounded(batches(make(*values, dtype="bfloat16", **keywords)), exact)
    return exact


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    layout=st.sampled_from(LAYOUTS),
    threads=st.integers(1, 4),
    size=st.tuples(st.integers(1, 24), st.integers(1, 28)),
    batch_size=st.integers(1, 7),
    erasing=st.booleans(),
    device=st.sampled_from([None, "cpu"]),
    seed=st.integers(0, 99),
)
def test_a_batch_is_the_rounded_one_of_float32(
    pack, layout, threads, size, batch_size, erasing, device, seed
):
    if device:
        pytest.importorskip("torch")
    keywords = {**CHANGES, **(ERASING if erasing else {}), "layout": layout, "seed": seed}
    keywords.update(data_shape=(3, *size), batch_size=batch_size, preprocess_threads=threads)
    compare(of_records, pack, device=device, **keywords)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_whole_line_and_an_odd_row_of_a_large_image(tmp_path, layout):
    path = write_pack(tmp_path / "large.rec", [noise(128, 131, i) for i in range(3)])
    for width in (128, 131, 33):
        compare(of_records, path, data_shape=(3, 128, width), layout=layout, **CHANGES)


def test_bytes_are_those_of_torch(pack):
    torch = pytest.importorskip("torch")
    exact = batches(of_records(pack, **CHANGES))
    with of_records(pack, dtype=torch.bfloat16, device="cpu", **CHANGES) as provider:
        assert provider.provide_data[0].dtype == BFLOAT16
        for batch, array in zip(provider, exact, strict=True):
            assert batch.data[0].dtype is torch.bfloat16
            assert torch.equal(batch.data[0], torch.from_numpy(array).bfloat16())


@pytest.mark.parametrize(
    "more",
    [
        {"views": [{}, {"mean_r": 3, "std_r": 9}, {"data_shape": (3, 7, 9)}]},
        {"cache": "ram", "scaled_decode": False},
        {"pca_noise": 0.1, "random_h": 20},
        {"random_erasing": 0.9, "erasing_value": "colour"},
        {"random_erasing": 0.9, "erasing_value": 8.0},
    ],
    ids=lambda more: next(iter(more)),
)
def test_views_cached_images_colours_and_erasing(pack, more):
    compare(of_records, pack, **CHANGES, **more)


def test_a_mean_image(pack, tmp_path):
    compare(of_records, pack, mean_img=str(tmp_path / "mean.bin"), rand_mirror=True, scale=0.1)


@pytest.mark.parametrize("strict", [False, True])
def test_detection_records(tmp_path, strict):
    label = box_label((0, 0.1, 0.1, 0.7, 0.9))
    path = write_pack(tmp_path / "det.rec", 5, [label] * 5)
    make = maker(ImageDetRecordIter, data_shape=(3, 30, 20), batch_size=2, strict=strict)
    drawn = {"rand_mirror_prob": 0.5, "rand_pad_prob": 0.5, "max_pad_scale": 2.0}
    compare(make, path, mean_r=9.5, std_g=31, seed=4, **drawn)


def test_spaces_ask_for_it(pack):
    with of_records(pack, data_specs=(SPACE, "features"), **CHANGES) as provider:
        found = list(provider)
    exact = batches(of_records(pack, layout="NHWC", **CHANGES))
    check_rounded(found, exact)


def test_image_iter(pack):
    keywords = {"path_imgrec": pack, "batch_size": 4, "data_shape": (3, 20, 16)}
    keywords.update(brightness=0.3, contrast=0.2, hue=0.1, rand_mirror=True, mean=True, std=True)
    with ImageIter(data_specs=(SPACE, "features"), **keywords) as provider:
        found = list(provider)
    with ImageIter(layout="NHWC", **keywords) as provider:
        exact = [batch.data[0] for batch in provider]
    check_rounded(found, exact)


def test_examples_of_data_sets(pack):
    keywords = {"data_shape": (3, 20, 16), "mean_r": 3.3, "rand_crop": True, **ERASING}
    images = [(noise(24, 28, i), i) for i in range(3)]
    for dataset, source in ((ImageRecordDataset, pack), (AugmentedDataset, images)):
        exact = dataset(source, **keywords)
        exact.set_epoch(0)  # so that no warning says that it is the same epoch for both
        for dtype in ("bfloat16", BFLOAT16):
            found = dataset(source, dtype=dtype, **keywords)
            check_rounded([found[i][0] for i in range(3)], [exact[i][0] for i in range(3)])


@pytest.mark.parametrize("kind", ["mixup", "cutmix"])
def test_mixed_batches_are_those_of_rounded_images(pack, kind):
    settings_of_mix = {kind: 0.8, "seed": 5, "classes": 11}
    exact = batches(of_records(pack, **CHANGES))
    with MixBatches(of_records(pack, dtype="bfloat16", **CHANGES), **settings_of_mix) as provider:
        for number, (batch, array) in enumerate(zip(provider, exact, strict=True)):
            own = array[: batch.count].astype(BFLOAT16)
            partner, mixture = np.roll(own, 1, axis=0), provider.mixture(0, number)
            if mixture.box is None:
                weight = mixture.weight
                partner = partner.astype("f4") * np.float32(1 - weight)
                wanted = (partner + own.astype("f4") * np.float32(weight)).astype(BFLOAT16)
            else:
                left, right, top, bottom = mixture.rectangle(16, 20)
                wanted = own.copy()
                wanted[..., top:bottom, left:right] = partner[..., top:bottom, left:right]
            assert batch.data[0].dtype == BFLOAT16
            assert batch.data[0][: batch.count].tobytes() == wanted.tobytes()


def test_resume_and_a_state_of_another_type(pack):
    keywords = {**CHANGES, **ERASING, "dtype": "bfloat16"}
    whole = batches(of_records(pack, **keywords))
    with of_records(pack, **keywords) as provider:
        provider.next()
        state = json.loads(json.dumps(provider.state_dict()))
    with of_records(pack, **keywords) as provider:
        provider.load_state_dict(state)
        rest = [batch.data[0] for batch in provider]
    assert [array.tobytes() for array in rest] == [array.tobytes() for array in whole[1:]]
    with of_records(pack, **CHANGES, **ERASING) as provider:
        with pytest.raises(ValueError, match="bfloat16"):
            provider.load_state_dict(state)


def test_normalised_on_the_device(pack):
    torch = pytest.importorskip("torch")
    fixed = {"rand_crop": True, "rand_mirror": True, "mean_r": 120.5, "std_b": 57.4}
    keywords = {**fixed, "device": "cpu", "normalise_on": "device"}
    with of_records(pack, dtype="bfloat16", **keywords) as provider:
        assert provider.next().data[0].dtype is torch.bfloat16
    compare(of_records, pack, **keywords)


def test_nobody_has_to_import_ml_dtypes(pack):
    """NumPy knows the name of the type only from then on."""
    keywords = {"data_shape": (3, 20, 16), "batch_size": 4, **CHANGES, "dtype": "bfloat16"}
    program = f"""
    import iterators, numpy
    with iterators.ImageRecordIter(path_imgrec={str(pack)!r}, **{keywords!r}) as provider:
        print(provider.next().data[0].dtype)
    data = iterators.ImageRecordDataset({str(pack)!r}, data_shape=(3, 9, 9), dtype="bfloat16")
    print(data[0][0].dtype)
    array = numpy.array([1.5, 2])
    with iterators.ArrayDataProvider(array, batch_size=2, dtype="bfloat16") as provider:
        print(provider.next().data[0])
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n")[:3] == ["bfloat16", "bfloat16", "[1.5 2]"], done.stderr


def test_without_ml_dtypes_the_error_says_what_to_install(pack, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match=r"pip install 'recordio-iterators\[bfloat16\]'"):
        of_records(pack, dtype="bfloat16")


def test_pictures_of_a_batch(pack):
    with of_records(pack, dtype="bfloat16", mean_r=100, std_r=50) as provider:
        batch = provider.next()
        assert provider.show(batch, classes={}).size == provider.show(classes={}).size
