"""Batches for vision-language models: what is in them, how many patches, and where runs go on."""

import numpy as np
import pytest

import recordio
from iterators import ImageIter, ImageRecordIter, NamedRecipe, count_patches, preprocess
from iterators.fields import Image, Text
from iterators.images.augment.pipelines.processor_families import FAMILIES
from recordio.errors import ImageDecodeError, LabelError

QWEN = {"image_processor_type": "Qwen2VLImageProcessor"}
SIGLIP = {"image_processor_type": "Siglip2ImageProcessor"}


def packed_image(image, number, label=0.0):
    """Pack an RGB image, which `pack_img` takes as BGR."""
    header = recordio.IRHeader(0, label, number, 0)
    return recordio.pack_img(header, image[..., ::-1], img_fmt=".png")


#: With a budget that makes several batches of the images here.
PROCESSORS = pytest.mark.parametrize(
    ("config", "budget"), [(QWEN, 200), (SIGLIP, 1100)], ids=["Qwen2VL", "Siglip2"]
)


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(7)
    sizes = rng.integers(30, 500, (24, 2))
    return [rng.integers(0, 256, (h // 9 + 1, w // 9 + 1, 3), np.uint8) for h, w in sizes]


@pytest.fixture(scope="module")
def pack(images, tmp_path_factory):
    path = tmp_path_factory.mktemp("pack") / "a.rec"
    with recordio.RecordWriter(path) as writer:
        for number, image in enumerate(images):
            writer.write(packed_image(image, number, float(number % 5)))
    return path


def provider_of(pack, config=QWEN, **more):
    recipe = NamedRecipe.from_processor(config)
    return ImageRecordIter(path_imgrec=pack, recipe=recipe, **more)


@PROCESSORS
@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_is_what_preprocess_makes_of_its_images(pack, images, config, budget, threads):
    shared = {"shuffle": True, "seed": 4, "preprocess_threads": threads}
    with provider_of(pack, config, batch_patches=budget, **shared) as provider:
        names = [desc.name for desc in provider.provide_data]
        seen = []
        for batch in provider:
            numbers = batch.index.tolist()
            expected = preprocess([images[number] for number in numbers], config)
            assert list(expected) == names
            for name, value in expected.items():
                assert batch[name].dtype == value.dtype and np.array_equal(batch[name], value)
            assert batch.label[0].tolist() == [number % 5 for number in numbers]
            assert [desc.shape for desc in batch.provide_data] == [a.shape for a in batch.data]
            assert batch.pad == 0
            seen += numbers
        assert sorted(seen) == list(range(len(images)))
        assert len(provider) > 1


@PROCESSORS
def test_no_batch_has_more_patches_than_its_budget(pack, images, config, budget):
    counts = count_patches([image.shape[:2] for image in images], config)
    with provider_of(pack, config, batch_patches=budget, shuffle=True) as provider:
        totals = [int(counts[batch.index.astype(int)].sum()) for batch in provider]
    assert max(totals) <= budget and len(totals) > 1


def test_without_a_budget_a_batch_has_as_many_images_as_asked_for(pack):
    with provider_of(pack, batch_size=7) as provider:
        batches = list(provider)
    assert [(len(batch.index), batch.pad) for batch in batches] == [(7, 0), (7, 0), (7, 0), (3, 0)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8"])
def test_pixels_have_the_type_that_is_asked_for(pack, images, dtype):
    with provider_of(pack, batch_size=3, dtype=dtype) as provider:
        batch = next(provider)
    expected = preprocess(images[:3], QWEN, dtype=dtype)["pixel_values"]
    assert batch["pixel_values"].dtype == expected.dtype
    assert batch["pixel_values"].tobytes() == expected.tobytes()


@pytest.mark.parametrize("ranks", [[1, 2, 3, 1], [3, 1, 2, 2], [2, 2, 3, 1]])
def test_runs_that_stop_go_on_with_other_numbers_of_ranks(pack, images, ranks):
    shared = {"batch_patches": 300, "shuffle": True, "seed": 9}
    state, seen = None, []
    for count in [*ranks, *[1] * 40]:
        providers = [
            provider_of(pack, num_parts=count, part_index=part, **shared) for part in range(count)
        ]
        if state is not None:
            for provider in providers:
                provider.load_state_dict(state)
        for provider in providers:
            batch = next(provider)
            seen += batch.index[: len(batch.index) - batch.pad].tolist()
        state = providers[0].state_dict()
        for provider in providers:
            provider.close()
        if state["epoch"]:
            break
    assert sorted(seen) == list(range(len(images)))


def test_a_state_of_another_budget_or_processor_is_refused(pack):
    with provider_of(pack, batch_patches=300) as provider:
        next(provider)
        state = provider.state_dict()
    for config, budget in ((QWEN, 301), (SIGLIP, 300), ({**QWEN, "merge_size": 1}, 300)):
        with provider_of(pack, config, batch_patches=budget) as provider:
            with pytest.raises(ValueError, match="the state was saved with"):
                provider.load_state_dict(state)


@pytest.fixture
def damaged(images, tmp_path):
    path = tmp_path / "b.rec"
    with recordio.RecordWriter(path) as writer:
        for number, image in enumerate(images):
            packed = packed_image(image, number, [1.0, 2.0] if number == 8 else 1.0)
            cut = {3: packed[:90], 5: packed[:24] + b"no image"}
            writer.write(cut.get(number, packed))
    return path


def test_a_bad_image_is_named(damaged):
    with provider_of(damaged, batch_size=4) as provider:
        with pytest.raises(ImageDecodeError, match="record 3") as caught:
            next(provider)
        assert caught.value.path == str(damaged)
        with pytest.raises(recordio.RecordIOError, match="record 5"):
            next(provider)
        with pytest.raises(LabelError, match="record 8"):
            next(provider)


@pytest.mark.parametrize("budget", [{"batch_size": 4}, {"batch_patches": 400}], ids=str)
def test_another_image_takes_the_place_of_a_bad_one(damaged, images, budget):
    counts = count_patches([image.shape[:2] for image in images], QWEN)
    with provider_of(damaged, on_error="skip", **budget) as provider:
        seen = []
        for batch in provider:
            numbers = batch.index.astype(int).tolist()
            expected = preprocess([images[number] for number in numbers], QWEN)
            assert np.array_equal(batch["pixel_values"], expected["pixel_values"])
            assert "batch_patches" not in budget or counts[numbers].sum() <= 400
            seen += numbers
        assert len(provider.skipped) == 3
    assert set(seen) == set(range(len(images))) - {3, 5, 8}


def test_texts_come_beside_the_images(images, tmp_path):
    with recordio.RecordWriter(tmp_path / "c.rec", tmp_path / "c.idx") as writer:
        for number, image in enumerate(images):
            writer.write(packed_image(image, number), number)
    with recordio.RecordWriter(tmp_path / "c.caption.rec", tmp_path / "c.caption.idx") as writer:
        for number in range(len(images)):
            header = recordio.IRHeader(0, 0.0, number, 0)
            writer.write(recordio.pack(header, f"picture {number}".encode()), number)
    with provider_of(
        tmp_path / "c.rec", batch_patches=500, shuffle=True, fields={"caption": Text()}
    ) as provider:
        for batch in provider:
            assert batch["caption"] == [f"picture {number}" for number in batch.index.tolist()]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"rand_mirror": True}, "rand_mirror changes images"),
        ({"data_shape": (3, 8, 8)}, "says how large images are"),
        ({"mean_r": 3.0}, "mean_r"),
        ({"cache": "ram"}, "cache needs images of one shape"),
        ({"views": [{}, {}]}, "views needs"),
        ({"layout": "NHWC"}, "layout needs"),
        ({"dtype": "int8"}, "dtype='int8'"),
        ({"fields": {"depth": Image()}}, "field depth"),
        ({"label_width": "longest"}, "label_width"),
        ({"multi_hot": 4}, "multi_hot"),
        ({"num_parts": 2}, "shuffle=True"),
        ({"entry_points": True}, "entry_points"),
        ({"patches": 14, "sequence_lengths": 9}, "patches"),
        ({"buckets": [(8, 8), (9, 8)]}, "data_shape and buckets"),
    ],
)
def test_what_a_processor_has_no_use_for_is_refused(pack, more, message):
    with pytest.raises(ValueError, match=message):
        provider_of(pack, batch_size=2, **more)


def test_iterators_of_one_shape_refuse_the_recipe(pack):
    recipe = NamedRecipe.from_processor(QWEN)
    with pytest.raises(ValueError, match="sizes of their own"):
        ImageIter(2, (3, 8, 8), path_imgrec=str(pack), recipe=recipe)
    with pytest.raises(ValueError, match="batch_patches need"):
        ImageRecordIter(path_imgrec=pack, data_shape=(3, 8, 8), batch_size=2, batch_patches=9)


@pytest.mark.parametrize("name", [f"{name}ImageProcessor" for name in FAMILIES])
def test_every_processor_makes_batches(pack, images, name):
    with provider_of(pack, {"image_processor_type": name}, batch_size=3) as provider:
        batch = next(provider)
        described = [(desc.name, desc.shape, desc.dtype) for desc in provider.provide_data]
    expected = preprocess(images[:3], {"image_processor_type": name})
    assert [desc.name for desc in batch.provide_data] == list(expected)
    for given, (name, shape, dtype) in zip(expected.values(), described, strict=True):
        value, given = batch[name], np.asarray(given)
        assert value.dtype == dtype and value.ndim == len(shape)
        assert all(side in (0, found) for side, found in zip(shape, value.shape, strict=True))
        assert value.tobytes() == given.tobytes()


def test_images_of_llama_are_a_sample_each(pack):
    config = {"image_processor_type": "MllamaImageProcessor"}
    with provider_of(pack, config, batch_size=3) as provider:
        batch = next(provider)
    assert batch["pixel_values"].shape[:3] == (3, 1, 4)
    assert batch["aspect_ratio_ids"].shape == batch["num_tiles"].shape == (3, 1)
