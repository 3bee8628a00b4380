"""Recipes of today through the data sets: the bytes of `ImageRecordIter`, one example at a time."""

import pickle
import warnings

import cv2
import numpy as np
import pytest
from PIL import Image
from torch.utils.data import DataLoader

import recordio
from iterators import (
    AugmentedDataset,
    ImageDataset,
    ImageRecordDataset,
    ImageRecordIter,
    LabeledImageDataset,
    MultithreadIterator,
    NamedRecipe,
    Pack,
    RecordDataset,
    SubDataset,
    TransformDataset,
    concat_examples,
)
from iterators.images.augment.named_recipes import NAMED_RECIPES
from iterators.images.augment.recipe import Recipe
from iterators.testing import write_pack
from recordio.errors import ImageDecodeError

torch = pytest.importorskip("torch")

COUNT = 13
CROP = {
    "random_resized_crop": True, "min_random_area": 0.2, "min_aspect_ratio": 3 / 4,
    "max_aspect_ratio": 4 / 3, "rand_mirror": True, "data_shape": (3, 32, 32),
}  # fmt: skip
RECIPES = {
    "timm": {**CROP, "auto_augment": "rand-m9-mstd0.5-inc1", "random_erasing": 0.5,
             "erasing_value": "pixel", "mean_r": 124, "std_g": 58},
    "faces": {**CROP, "low_resolution": 0.5, "crop_on_fill": 0.5, "color_jitter": 0.5},
    "dino": {**CROP, "random_grayscale": 0.3, "gaussian_blur": 0.5, "solarize_p": 0.3,
             "three_augment": True},
    "mxnet": {"data_shape": (3, 24, 40), "resize": 44, "rand_crop": True, "brightness": 0.4,
              "random_h": 30, "max_rotate_angle": 20},
}  # fmt: skip
VIEWS = [{"gaussian_blur": 1.0}, {"solarize_p": 0.5}, {"data_shape": (3, 16, 20)}]


def images():
    rng = np.random.default_rng(0)
    for i in range(COUNT):
        small = rng.integers(0, 256, (9, 11, 3), dtype=np.uint8)
        yield cv2.resize(small, (60 + 3 * i, 64), interpolation=cv2.INTER_CUBIC)


@pytest.fixture(scope="module", params=[".jpg", ".png"])
def pack(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("packs") / "a.rec"
    numbers = range(100, 100 + COUNT)
    return write_pack(path, images(), lambda i: i % 5, ids=numbers, kind=request.param)


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """The same images as they are, so that decoding cannot make a difference."""
    path = tmp_path_factory.mktemp("packs") / "raw.rec"
    numbers = range(100, 100 + COUNT)
    return write_pack(path, images(), lambda i: i % 5, ids=numbers, kind=".ppm")


def delivered(pack, epoch=0, **keywords):
    """Everything of an epoch as `ImageRecordIter` delivers it: arrays, one for each view."""
    keywords = {"preprocess_threads": 1, "batch_size": COUNT, "epoch": epoch} | keywords
    with ImageRecordIter(path_imgrec=pack, verbose=False, **keywords) as provider:
        (batch,) = provider
        return [array.copy() for array in (*batch.data, batch.label[0])]


def compare(examples, wanted):
    found = concat_examples(examples)
    assert len(found) == len(wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("threads", [1, 8])
def test_examples_are_the_samples_of_image_record_iter(pack, name, threads):
    recipe = RECIPES[name]
    data = ImageRecordDataset(pack, seed=3, threads=threads, **recipe)
    for epoch in (0, 4):
        data.set_epoch(epoch)
        wanted = delivered(pack, epoch, seed=3, preprocess_threads=9 - threads, **recipe)
        compare(data[:], wanted)
        compare([data[i] for i in range(-COUNT, 0)], wanted)
    one, other = delivered(pack, 0, seed=3, **recipe), delivered(pack, 0, seed=4, **recipe)
    assert not np.array_equal(one[0], other[0])


@pytest.mark.parametrize("threads", [1, 8])
def test_views_come_one_after_the_other_in_an_example(pack, threads):
    keywords = RECIPES["timm"] | {"views": VIEWS, "scaled_decode": False}
    data = ImageRecordDataset(pack, threads=threads, **keywords)
    data.set_epoch(0)  # all of it is read twice
    first, second, third, label = data[2]
    assert (first.shape, second.shape, third.shape) == ((3, 32, 32), (3, 32, 32), (3, 16, 20))
    assert label == 2
    wanted = delivered(pack, **keywords)
    assert len(wanted) == 4
    compare(data[:], wanted)
    batch = next(iter(DataLoader(data, batch_size=5)))
    assert [tuple(part.shape) for part in batch] == [
        (5, 3, 32, 32), (5, 3, 32, 32), (5, 3, 16, 20), (5,),
    ]  # fmt: skip
    for mine, theirs in zip(batch, wanted, strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs[:5])


def test_a_view_is_decoded_once(pack, monkeypatch):
    data = ImageRecordDataset(pack, **CROP, views=[{}] * 6)
    calls = []
    sample = data._examples.__class__.__call__
    monkeypatch.setattr(
        data._examples.__class__,
        "__call__",
        lambda self, record, number: calls.append(number) or sample(self, record, number),
    )
    assert len(data[3]) == 7
    assert calls == [3]


@pytest.mark.parametrize("recipe", NAMED_RECIPES, ids=lambda recipe: recipe.name)
def test_named_recipes(raw, recipe):
    data = ImageRecordDataset(raw, recipe=recipe.name)
    wanted = delivered(raw, recipe=recipe)
    compare(data[:3], [array[:3] for array in wanted])
    again = ImageRecordDataset(raw, recipe=NamedRecipe.of(recipe.to_json()))
    compare(again[:3], [array[:3] for array in wanted])


@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16"])
def test_layouts_and_types(raw, layout, dtype):
    keywords = {**CROP, "auto_augment": "augmix"}
    data = ImageRecordDataset(raw, layout=layout, dtype=dtype, **keywords)
    wanted = delivered(raw, layout=f"N{layout}", dtype=dtype, **keywords)
    compare(data[:], wanted)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_other_processes_draw_the_same(pack, read_in_a_new_process, read_in_forks):
    data = ImageRecordDataset(pack, **RECIPES["timm"], views=VIEWS)
    data.set_epoch(2)
    wanted = data[3:6]
    for found in (read_in_a_new_process(data, slice(3, 6)), pickle.loads(pickle.dumps(data))[3:6]):
        compare(found, concat_examples(wanted))
    for found in read_in_forks(data, range(3, 6)):
        compare(found, concat_examples(wanted))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(
    ("pack", "method", "workers"),
    [(".jpg", "fork", 2), (".png", "fork", 2), (".jpg", "spawn", 1)],
    indirect=["pack"],
)
def test_epochs_reach_workers_that_are_running(pack, method, workers):
    data = ImageRecordDataset(pack, **RECIPES["timm"])
    loader = DataLoader(
        data, batch_size=4, num_workers=workers, persistent_workers=True,
        multiprocessing_context=method,
    )  # fmt: skip
    for epoch in (0, 1, 5):
        data.set_epoch(epoch)
        found = torch.cat([part for part, _ in loader])
        np.testing.assert_array_equal(found.numpy(), delivered(pack, epoch, **RECIPES["timm"])[0])
    del loader


def test_labels_lists_and_packs(pack, tmp_path):
    (tmp_path / "a.lst").write_text("".join(f"{100 + i}\t{i}\tx\n" for i in range(COUNT)))
    packs = [Pack(pack), Pack(pack, path_imglist=tmp_path / "a.lst", labels="append")]
    keywords = RECIPES["faces"]
    data = ImageRecordDataset(packs, **keywords, label_dtype="int64")
    wanted = delivered(packs, batch_size=2 * COUNT, label_dtype="int64", **keywords)
    compare(data[:], wanted)


def test_a_transform_takes_every_view(pack):
    data = ImageRecordDataset(pack, **CROP, views=VIEWS, transform=lambda view: view.shape[1:])
    assert data[0] == ((32, 32), (32, 32), (16, 20), 0)


def test_chainers_iterators_and_subsets(pack):
    data = ImageRecordDataset(pack, **CROP, views=VIEWS)
    part = SubDataset(data, 2, 6)
    batch = next(MultithreadIterator(part, 4, repeat=False, shuffle=False))
    compare(batch, concat_examples(data[2:6]))


def test_damage_is_named(tmp_path):
    path = write_pack(tmp_path / "a.rec", [next(images()), b"no image"])
    data = ImageRecordDataset(path, **CROP, auto_augment="augmix", threads=2)
    with pytest.raises(ImageDecodeError) as caught:
        data[:]
    assert (caught.value.path, caught.value.record) == (str(path), 1)
    with pytest.raises(ImageDecodeError, match="max_pixels|too large"):
        ImageRecordDataset(path, **CROP, max_pixels=100)[0]


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"auto_augment": "randaugment"}, TypeError, "needs data_shape"),
        ({"seed": 3}, TypeError, "needs data_shape"),
        ({"auto_augmnt": "randaugment"}, TypeError, "did you mean 'auto_augment'"),
        ({"remote_timout": 3}, TypeError, "did you mean 'remote_timeout'"),
        ({"recipe": "dinno"}, ValueError, "did you mean 'dino'"),
        ({"recipe": {"gausian_blur": 1}, **CROP}, TypeError, "did you mean 'gaussian_blur'"),
        ({**CROP, "num_ops": 2}, ValueError, "has no effect without auto_augment"),
        ({**CROP, "channels": 1}, ValueError, "channels=1, but data_shape has 3"),
        ({**CROP, "layout": "NCHW"}, ValueError, "layout"),
        (
            {**CROP, "dtype": "uint8", "mean_r": 3},
            ValueError,
            "no effect on uint8 and",
        ),
        ({**CROP, "dtype": "int8", "std_r": 3}, ValueError, "no effect on integer pixels"),
        ({**CROP, "dtype": "float64"}, ValueError, "dtype"),
        ({**CROP, "views": [{}]}, ValueError, "expected 2 to 16"),
        ({**CROP, "views": [{}, {"blur": 1}]}, TypeError, "no parameter 'blur'"),
        ({**CROP, "views": [{}, {"data_shape": (1, 8, 8)}]}, ValueError, "same number of channels"),
        ({**CROP, "views": [{}, {"dtype": "uint8"}]}, TypeError, "no parameter 'dtype'"),
    ],
)
def test_what_cannot_make_sense_is_refused(raw, keywords, error, text):
    with pytest.raises(error, match=text):
        ImageRecordDataset(raw, **keywords)


def test_epochs_of_images_as_they_are(raw):
    data = ImageRecordDataset(raw)
    assert data.epoch == 0
    with pytest.raises(ValueError, match="not augmented"):
        data.set_epoch(1)
    data = ImageRecordDataset(raw, **CROP)
    for wrong in (-1, 1 << 32):
        with pytest.raises(ValueError, match="epoch"):
            data.set_epoch(wrong)


# -- images of other data sets ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["arrays", "channels first", "Pillow", "records"])
@pytest.mark.parametrize("threads", [1, 8])
def test_images_of_any_data_set_give_the_same(raw, kind, threads):
    keywords = RECIPES["timm"] | {"views": VIEWS, "seed": 7}
    stored = {"stored": "CHW"} if kind == "channels first" else {}
    inside = {
        "records": ImageRecordDataset(raw),
        "channels first": ImageRecordDataset(raw, layout="CHW"),
        "arrays": list(ImageRecordDataset(raw)),
        "Pillow": [(Image.fromarray(image), label) for image, label in ImageRecordDataset(raw)],
    }[kind]
    data = AugmentedDataset(inside, **stored, threads=threads, **keywords)
    assert len(data) == COUNT
    data.set_epoch(3)
    compare(data[:], delivered(raw, 3, **keywords))
    compare([data[-1]], [part[-1:] for part in delivered(raw, 3, **keywords)])
    assert pickle.loads(pickle.dumps(data)).epoch == data.epoch == 3


def test_image_files_and_images_alone(tmp_path):
    pixels = next(images())[:, :, ::-1]
    Image.fromarray(pixels).save(tmp_path / "a.png")
    keywords = {"data_shape": (3, 20, 20), "auto_augment": "trivialaugment"}
    alone = AugmentedDataset([pixels], **keywords)[0]
    assert isinstance(alone, np.ndarray)
    found = ImageDataset(["a.png"], tmp_path, "uint8")
    np.testing.assert_array_equal(AugmentedDataset(found, stored="CHW", **keywords)[0], alone)
    labelled = LabeledImageDataset([("a.png", 4)], tmp_path, "uint8")
    image, label = AugmentedDataset(labelled, stored="CHW", **keywords)[0]
    np.testing.assert_array_equal(image, alone)
    assert label == 4
    views = AugmentedDataset([pixels], **keywords, views=[{}, {}])[0]
    assert isinstance(views, tuple)
    assert not np.array_equal(*views)
    grey = AugmentedDataset([pixels[:, :, 0]], data_shape=(1, 20, 20), gaussian_blur=1.0)[0]
    assert grey.shape == (1, 20, 20)


@pytest.mark.parametrize(
    ("example", "error", "text"),
    [
        (np.zeros((3, 4, 5), np.float32), TypeError, "example 0 is an array of float32"),
        (np.zeros((3, 4, 5), np.uint8), ValueError, "pass another `stored`"),
        (np.zeros((3, 4, 4), np.uint8), ValueError, "1 or 3 channels"),
        (np.zeros(4, np.uint8), ValueError, "1 or 3 channels"),
        (np.zeros((0, 4, 3), np.uint8), ValueError, "1 or 3 channels"),
        (b"bytes", TypeError, "images have to be uint8"),
        ("text", TypeError, "images have to be uint8"),
    ],
)
def test_what_is_no_image_is_refused(example, error, text):
    data = AugmentedDataset([(example, 1)], data_shape=(3, 4, 4))
    with pytest.raises(error, match=text):
        data[0]


def test_recipes_are_no_functions(raw):
    for recipe in (Recipe(data_shape=(3, 8, 8)), NamedRecipe.named("dino")):
        with pytest.raises(TypeError, match="AugmentedDataset"):
            TransformDataset(RecordDataset(raw), recipe)
    with pytest.raises(TypeError, match="expected a function"):
        TransformDataset([1], 3)


@pytest.mark.parametrize("recipe", NAMED_RECIPES, ids=lambda recipe: recipe.name)
def test_recipes_can_be_pickled(recipe):
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    keywords = {name: value for name, value in recipe.keywords.items() if name != "views"}
    made = Recipe(**keywords)
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("kind", ["record", "augmented"])
def test_the_same_changes_in_a_second_epoch_are_said_once(tmp_path, kind):
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (12, 3, 20, 20), np.uint8)
    for number, image in enumerate(pixels):
        file = recordio.encode_image(image.transpose(1, 2, 0), "png")
        (tmp_path / f"{number}.png").write_bytes(file)

    def made(**changes):
        keywords = {"data_shape": (3, 12, 12), "seed": 3, **changes}
        if kind == "record":
            return ImageRecordDataset(tmp_path, **keywords)
        return AugmentedDataset(list(pixels), stored="CHW", **keywords)

    dataset = made(rand_crop=True)
    [dataset[i] for i in (0, 0, *range(12))]
    with pytest.warns(UserWarning, match=r"again in epoch 0.*call set_epoch") as said:
        [dataset[i] for _ in range(3) for i in range(12)]
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known, plain = made(rand_crop=True), made()
        for epoch in range(3):
            known.set_epoch(epoch)
            [one[i] for one in (known, plain) for i in range(12)]
