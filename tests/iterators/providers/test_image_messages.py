"""What the image providers accept in place of one path, types of labels, and what they say."""

import inspect
import re
from dataclasses import fields
from functools import partial

import numpy as np
import pytest

import recordio
from iterators import (
    ArrayDataProvider,
    CompositeSpace,
    CSVIter,
    ImageDetRecordIter,
    ImageIter,
    ImageRecordIter,
    ImageRecordIter_v1,
    ImageRecordUInt8Iter,
    LibSVMIter,
    MNISTIter,
    NDArrayIter,
    ResizeIter,
    VectorSpace,
)
from iterators.datasets.augmented import AugmentedDataset
from iterators.datasets.records import ImageRecordDataset, RecordDataset
from iterators.images.augment.augmenter import described_augmenter
from iterators.images.augment.det_recipe import DetRecipe
from iterators.images.augment.recipe import Recipe
from iterators.providers.image_options import ImageClassOptions
from iterators.testing import box_label, write_pack
from recordio.frames.reader import RecordReader
from recordio.keywords.options import Options
from recordio.keywords.synonyms import SYNONYMS

SHAPE = (3, 8, 8)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Three record files of two images each, with the labels 0 to 5, and files beside them."""
    folder = tmp_path_factory.mktemp("parts")
    for part in range(3):
        numbers = [2 * part, 2 * part + 1]
        images = [np.full((8, 8, 3), i, np.uint8) for i in numbers]
        write_pack(folder / f"part-{part}.rec", images, numbers, ids=numbers, keys=numbers)
    return folder


def labels_of(path, kind=ImageRecordIter, **keywords):
    with kind(path_imgrec=path, data_shape=SHAPE, batch_size=2, **keywords) as provider:
        return [float(label) for batch in provider for label in batch.label[0][: batch.count]]


@pytest.mark.parametrize("kind", [ImageRecordIter, ImageIter])
def test_lists_patterns_and_folders_name_record_files(parts, kind):
    names = [str(parts / f"part-{i}.rec") for i in range(3)]
    assert labels_of([parts / "part-2.rec", names[0]], kind) == [4, 5, 0, 1]
    assert labels_of((names[1],), kind) == [2, 3]
    assert labels_of(parts / "part-*.rec", kind) == [0, 1, 2, 3, 4, 5]
    assert labels_of(str(parts / "part-[12]*"), kind) == [2, 3, 4, 5]
    assert labels_of(str(parts / "**" / "part-1.rec"), kind) == [2, 3]
    assert labels_of([parts], kind) == labels_of(";".join(names), kind) == [0, 1, 2, 3, 4, 5]
    indexes = [parts / f"part-{i}.idx" for i in (2, 0)]
    assert labels_of([names[2], names[0]], kind, path_imgidx=indexes) == [4, 5, 0, 1]
    assert labels_of(names, kind, path_imgidx=parts / "*.idx") == [0, 1, 2, 3, 4, 5]


def test_what_exists_is_a_name_and_no_pattern(parts, tmp_path):
    (tmp_path / "a[0];b.rec").write_bytes((parts / "part-2.rec").read_bytes())
    assert labels_of(tmp_path / "a[0];b.rec") == labels_of([tmp_path / "a[0];b.rec"]) == [4, 5]


def test_a_state_belongs_to_the_files_however_they_are_named(parts):
    keywords = {"data_shape": SHAPE, "batch_size": 2}
    with ImageRecordIter(path_imgrec=parts / "*.rec", **keywords) as first:
        next(first)
        state = first.state_dict()
    names = [parts / f"part-{i}.rec" for i in range(3)]
    with ImageRecordIter(path_imgrec=names, **keywords) as second:
        second.load_state_dict(state)
        assert next(second).index.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("nowhere://bucket/train.rec", OSError, r"^nowhere://bucket/train.rec: no library for it"),
        ("nothing-*.rec", FileNotFoundError, "no .rec file has a name like that"),
        ([], ValueError, "names no file"),
        ([3], TypeError, "path_imgrec=3: expected a path"),
    ],
)
def test_paths_that_cannot_be_read(path, error, message):
    with pytest.raises(error, match=message):
        labels_of(path)


@pytest.mark.parametrize(
    "make",
    [
        lambda shape: Recipe(data_shape=shape),
        lambda shape: DetRecipe(data_shape=shape),
        described_augmenter,
        lambda shape: ImageRecordIter(path_imgrec="a.rec", data_shape=shape, batch_size=2),
    ],
)
def test_channels_come_first(make):
    expected = r"data_shape=\(64, 48, 3\): expected \(channels, height, width\)"
    with pytest.raises(ValueError, match=expected + r".* mean \(3, 64, 48\)\?$"):
        make((64, 48, 3))
    with pytest.raises(ValueError, match=r"\(3, 64\): expected \(channels, height, width\)"):
        make((3, 64))


@pytest.mark.parametrize(
    "kind", [ImageRecordIter, ImageRecordUInt8Iter, ImageDetRecordIter, ImageIter, CSVIter]
)
def test_messages_name_the_class_that_was_called(kind):
    name = re.escape(f"{kind.__name__}() ")
    with pytest.raises(TypeError, match=f"^{name}has .* 'batchsize'; did you mean 'batch_size'"):
        kind(batchsize=3)
    with pytest.raises(TypeError, match=f"^{name}needs .*batch_size"):
        kind()


def test_so_does_the_older_name():
    with (
        pytest.warns(DeprecationWarning),
        pytest.raises(TypeError, match=r"^ImageRecordIter_v1\(\) needs batch_size"),
    ):
        ImageRecordIter_v1()


@pytest.mark.parametrize("kind", [LibSVMIter, MNISTIter, NDArrayIter, ArrayDataProvider])
def test_the_closest_keyword_is_suggested_everywhere(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\(\) .*did you mean 'batch_size'"):
        kind(batchsize=3)


@pytest.mark.address_space
@pytest.mark.parametrize("batch_size", [1 << 24, 1 << 30])
def test_an_impossible_batch_says_its_bytes(parts, batch_size):
    nbytes = batch_size * 3 * 2000 * 2000 * 4
    with pytest.raises(MemoryError, match=f"a batch takes {nbytes:,} bytes.* batch_size smaller"):
        ImageRecordIter(
            path_imgrec=parts / "part-0.rec", data_shape=(3, 2000, 2000), batch_size=batch_size
        )


@pytest.mark.address_space
@pytest.mark.parametrize("shuffle", [False, True])
def test_an_impossible_batch_of_rows_says_its_bytes(tmp_path, shuffle):
    (tmp_path / "a.csv").write_text("1,2\n")
    with pytest.raises(MemoryError, match=f"a batch takes {8 << 50:,} bytes"):
        CSVIter(data_csv=tmp_path / "a.csv", data_shape=(2,), batch_size=1 << 50, shuffle=shuffle)


# -- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ImageRecordIter, ImageIter])
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", np.int64])
def test_labels_have_the_type_that_is_asked_for(parts, kind, dtype):
    keywords = {"path_imgrec": parts / "*.rec", "data_shape": SHAPE, "batch_size": 2}
    with kind(**keywords, label_dtype=dtype) as provider:
        assert provider.provide_label[0].dtype == dtype
        for batch in provider:
            assert batch.label[0].dtype == dtype
            assert batch.label[0].tolist() == batch.index.tolist()
        data, label = next(provider.iterator("sequential", batch_size=2))
        assert (data.dtype, label.dtype) == (np.float32, dtype)


def test_labels_for_torch_are_ready_for_its_losses(parts):
    torch = pytest.importorskip("torch")
    with ImageRecordIter(
        path_imgrec=parts / "part-0.rec",
        data_shape=SHAPE,
        batch_size=2,
        device="cpu",
        label_dtype=torch.int64,
    ) as provider:
        label = next(provider).label[0]
    assert label.dtype == torch.int64
    torch.nn.functional.cross_entropy(torch.zeros(2, 6), label)


def test_types_that_labels_cannot_have(parts, tmp_path):
    keywords = {"path_imgrec": parts / "*.rec", "data_shape": SHAPE, "batch_size": 2}
    with pytest.raises(ValueError, match="label_dtype='int7'"):
        ImageRecordIter(**keywords, label_dtype="int7")
    with pytest.raises(ValueError, match="label_dtype='int64': expected one of"):
        ImageDetRecordIter(**keywords, label_dtype="int64")
    with pytest.raises(ValueError, match="label_dtype='int64' has no effect without labels"):
        ImageRecordIter(**keywords, label_dtype="int64", label_name=None)
    specs = VectorSpace(3 * 64), "features"
    with pytest.raises(ValueError, match="drop label_dtype"):
        ImageRecordIter(**keywords, label_dtype="int64", data_specs=specs)
    with pytest.raises(ValueError, match="label_dtype, not both"):
        ImageIter(**keywords, label_dtype="int64", dtype="int64")
    write_pack(tmp_path / "half.rec", 1, [0.5])
    with (
        ImageRecordIter(
            path_imgrec=tmp_path / "half.rec", data_shape=SHAPE, batch_size=1, label_dtype="int64"
        ) as provider,
        pytest.raises(ValueError, match=r"label_dtype='int64', but there is a label 0\.5"),
    ):
        next(provider)


def test_boxes_may_be_doubles(tmp_path):
    write_pack(tmp_path / "boxes.rec", 1, [box_label((0, 0.25, 0.25, 0.5, 0.5))])
    with ImageDetRecordIter(
        path_imgrec=tmp_path / "boxes.rec", data_shape=SHAPE, batch_size=1, label_dtype="float64"
    ) as provider:
        assert provider.provide_label[0].dtype == next(provider).label[0].dtype == np.float64


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (ImageRecordIter, "num_workers", "did you mean 'preprocess_threads'? It is a number of"),
        (ImageRecordIter, "drop_last", "did you mean 'round_batch'? It is about what fills"),
        (ImageIter, "drop_last", "did you mean 'last_batch_handle'? last_batch_handle='discard'"),
        (MNISTIter, "drop_last", "did you mean 'last_batch'? last_batch='drop' drops"),
        (ImageRecordIter, "transform", "did you mean 'recipe'?"),
        (ImageRecordIter, "mean", "did you mean 'mean_r'?"),
        (ImageRecordIter, "world_size", "did you mean 'num_parts'?"),
        (ImageRecordIter, "path", "did you mean 'path_imgrec'?"),
        (CSVIter, "path", "did you mean 'data_csv'?"),
        (CSVIter, "num_workers", "did you mean 'threads'?"),
        (ImageRecordDataset, "num_workers", "did you mean 'threads'?"),
        (AugmentedDataset, "num_workers", "did you mean 'threads'?"),
        (RecordDataset, "remote_timout", "did you mean 'remote_timeout'?"),
        (RecordReader, "idx", "did you mean 'index'?"),
        (NDArrayIter, "num_workers", "nothing here starts worker processes"),
        (CSVIter, "pin_memory", "did you mean 'device'? device='cuda' uploads"),
    ],
)
def test_keywords_of_other_libraries_are_understood(kind, name, said):
    kind = partial(kind, "a") if kind is RecordReader else kind
    with pytest.raises(TypeError, match=rf"has no parameter '{name}'; .*{re.escape(said)}"):
        next(iter(kind(**{name: 1})))


def test_batches_for_torch_understand_them_too():
    pytest.importorskip("torch")
    from iterators.torch import RecordBatches

    with pytest.raises(TypeError, match=r"ImageRecordIter\(\) .*'preprocess_threads'"):
        next(iter(RecordBatches(ImageRecordIter, num_workers=4)))


def test_synonyms_mean_keywords_that_exist():
    families = [kind for kind in below(Options) if kind.__module__.startswith("iterators.")]
    known = {item.name for family in families for item in fields(family)}
    for kind in (ImageRecordDataset, RecordDataset):
        known |= set(inspect.signature(kind).parameters)
    named = {target for meanings in SYNONYMS.values() for target in meanings if target}
    # Those are of im2rec and of RecordBatches.
    assert named - known - {"num_thread", "convert"} == set()


def below(kind):
    """The classes that inherit from one."""
    return {inner for child in kind.__subclasses__() for inner in {child, *below(child)}}


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"remote_cache": 3}, "remote_cache=3: expected a path"),
        ({"remote_cache_size": 0}, "remote_cache_size=0: expected an integer of at least 1"),
        ({"remote_timeout": -1}, "remote_timeout=-1: expected seconds, above 0"),
        ({"remote_options": 3}, "remote_options: expected a mapping from names to values"),
    ],
)
def test_settings_of_servers_are_the_same_everywhere(keywords, said):
    for make in (
        recordio.RemoteSettings,
        lambda **given: recordio.RecordReader("a.rec", **given),
        lambda **given: ImageRecordDataset("a.rec", **given),
        lambda **given: ImageRecordIter(data_shape=SHAPE, batch_size=1, **given),
    ):
        with pytest.raises((ValueError, TypeError), match=re.escape(said)):
            make(**keywords)


def test_credentials_are_not_shown():
    options = ImageClassOptions(batch_size=1, remote_options={"secret_access_key": "hunter2"})
    assert "hunter2" not in repr(options) and "batch_size=1" in repr(options)


# -- what is shown --------------------------------------------------------------------------------


def test_a_batch_is_no_pair(parts):
    with (
        ImageRecordIter(
            path_imgrec=parts / "part-0.rec", data_shape=SHAPE, batch_size=2
        ) as provider,
        pytest.raises(TypeError, match=r"use batch.data\[0\] and batch.label\[0\].*padding"),
    ):
        for _images, _labels in provider:
            pass


def test_a_batch_that_was_asked_for_as_a_tuple_or_an_array_is_one(parts):
    with ImageRecordIter(
        path_imgrec=parts / "part-0.rec",
        data_shape=SHAPE,
        batch_size=2,
        data_specs=(CompositeSpace([VectorSpace(192), VectorSpace(1)]), ("features", "targets")),
    ) as provider:
        images, labels = next(provider)
        assert images.shape == (2, 192) and labels.shape == (2, 1)
    with ImageRecordIter(
        path_imgrec=parts / "part-0.rec",
        data_shape=SHAPE,
        batch_size=2,
        data_specs=(VectorSpace(192), "features"),
    ) as provider:
        first, second = next(provider)  # the rows of the matrix
        assert first.shape == second.shape == (192,)


def test_providers_batches_and_recipes_show_themselves(parts):
    path = str(parts / "part-0.rec")
    with ImageRecordIter(path_imgrec=path, data_shape=SHAPE, batch_size=2) as provider:
        assert repr(provider) == (
            f"<ImageRecordIter: {path}, samples=2, batches=1, epoch=0, "
            "data=(2, 3, 8, 8) float32, softmax_label=(2,) float32>"
        )
        assert repr(next(provider)) == (
            "DataBatch(data=(2, 3, 8, 8) float32, softmax_label=(2,) float32, pad=0)"
        )
        resized = repr(ResizeIter(provider, 3))
        assert resized.startswith("<ResizeIter: data=(2, 3, 8, 8) float32")
    assert repr(ArrayDataProvider(np.zeros((4, 2)), batch_size=4)).startswith(
        "<ArrayDataProvider: samples=4, batches=1, epoch=0, data=(4, 2)"
    )
    assert repr(Recipe(data_shape=SHAPE, pad=4)) == "Recipe(data_shape=(3, 8, 8), pad=4)"
    assert repr(DetRecipe(data_shape=SHAPE)) == "DetRecipe(data_shape=(3, 8, 8))"
    assert repr(described_augmenter(SHAPE)) == "Augmenter(data_shape=(3, 8, 8), inter_method=2)"
