"""Functions in Python behind a recipe: what they get, what becomes of it, and what is refused."""

import numpy as np
import pytest

from iterators import AugmentedDataset, ImageRecordIter, NamedRecipe
from iterators.testing import write_pack

SIZE = {"data_shape": (3, 6, 4)}
BYTES = {**SIZE, "dtype": "uint8", "layout": "NHWC"}
PIXELS = [np.full((6, 4, 3), 20 * i, np.uint8) for i in range(5)]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("tail") / "a.rec"
    write_pack(path, PIXELS, range(5))
    return path


def recipe(*tail, of="array", keywords=BYTES):
    return NamedRecipe("mine", keywords=keywords, tail=tail, tail_of=of)


def provider(path, named, **more):
    return ImageRecordIter(path_imgrec=path, batch_size=2, recipe=named, verbose=False, **more)


def test_arrays_and_the_shape_and_type_of_what_comes_back(path):
    def half(image):
        assert (image.shape, image.dtype) == ((6, 4, 3), np.uint8)
        return {"image": image[:3].astype(np.float32) / 2}

    with provider(path, recipe(half, half_of_width)) as batches:
        (desc,) = batches.provide_data
        assert (desc.shape, desc.dtype, desc.layout) == ((2, 3, 2, 3), np.float32, "NHWC")
        found = [batch.data[0] for batch in batches]
    assert [float(image.mean()) for batch in found for image in batch] == [0, 10, 20, 30, 40, 0]
    assert found[0].shape == (2, 3, 2, 3)


def half_of_width(image):
    return {"image": image[:, :2]}


def test_images_of_pillow(path):
    def turned(image):
        assert (image.size, image.mode) == ((4, 6), "RGB")
        return image.rotate(90, expand=True)

    with provider(path, recipe(turned, of="image")) as batches:
        assert batches.next().data[0].shape == (2, 4, 6, 3)


def test_grey_images_of_pillow(path):
    named = recipe(lambda image: image.convert("RGB"), of="image",
                   keywords={**BYTES, "data_shape": (1, 6, 4)})  # fmt: skip
    with provider(path, named) as batches:
        assert batches.next().data[0].shape == (2, 6, 4, 3)


def test_tensors(path):
    torch = pytest.importorskip("torch")
    named = recipe(lambda image: image.half() + 1, of="tensor", keywords=SIZE)
    with provider(path, named, device="cpu") as batches:
        batch = batches.next()
        assert batches.provide_data[0].layout == "NCHW"
    assert (batch.data[0].dtype, batch.data[0].shape) == (torch.float16, (2, 3, 6, 4))
    assert float(batch.data[0][1].mean()) == 21


def test_a_state_names_the_functions(path):
    with provider(path, recipe(half_of_width)) as batches:
        batches.next()
        state = batches.state_dict()
        rest = batches.next().data[0]
    with provider(path, recipe(half_of_width)) as batches:
        batches.load_state_dict(state)
        np.testing.assert_equal(batches.next().data[0], rest)
    with provider(path, recipe(half_of_width, half_of_width)) as batches:
        with pytest.raises(ValueError, match="recipe"):
            batches.load_state_dict(state)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"layout": "NCHW"}, "which get one image each, of NHWC: drop layout"),
        ({"views": [{}, {}]}, "drop views"),
    ],
)
def test_what_functions_cannot_have(path, more, text):
    with pytest.raises(ValueError, match=text):
        provider(path, recipe(half_of_width), **more)


def test_what_functions_must_return(path):
    with pytest.raises(ValueError, match=r"<lambda>: returned an array of shape \(3,\), no image"):
        provider(path, recipe(lambda image: {"image": image[0, 0]}))
    lit = recipe(lambda image: {"image": image[: 3 if image.any() else 6]})
    with provider(path, lit) as batches, pytest.raises(ValueError, match="one shape and type"):
        batches.next()


def test_what_else_knows_no_functions(path):
    with provider(path, recipe(half_of_width)) as batches:
        with pytest.raises(ValueError, match="made by functions in Python"):
            batches.show()
    named = recipe(half_of_width, keywords=SIZE)
    with pytest.raises(ValueError, match="recipe calls half_of_width in Python"):
        AugmentedDataset(path, recipe=named)
