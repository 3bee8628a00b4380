"""`ImageLoader` with the image processor of a vision-language model as its transform."""

import io

import numpy as np
import PIL.Image
import pytest

import recordio
from iterators import NamedRecipe, count_patches, preprocess
from iterators.fields import Text

torch = pytest.importorskip("torch")
from iterators.torch import ImageLoader  # noqa: E402

QWEN = {"image_processor_type": "Qwen2VLImageProcessor"}


class Qwen2VLImageProcessor:
    """What is asked of the class of transformers."""

    def to_dict(self):
        return dict(QWEN)


class Processor:
    """A processor of texts and images."""

    image_processor = Qwen2VLImageProcessor()


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(2)
    return [rng.integers(0, 256, (h, w, 3), np.uint8) for h, w in rng.integers(20, 90, (30, 2))]


@pytest.fixture(scope="module")
def files(images, tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("files"), []
    for number, image in enumerate(images):
        PIL.Image.fromarray(image).save(folder / f"{number}.png")
        found.append((folder / f"{number}.png", number))
    return found


@pytest.mark.parametrize(
    "transform",
    [NamedRecipe.from_processor(QWEN), Qwen2VLImageProcessor(), Processor()],
    ids=["recipe", "image processor", "processor"],
)
def test_batches_are_those_of_the_processor(files, images, transform):
    with ImageLoader(files, transform=transform, batch_patches=200, shuffle=True, seed=3) as loader:
        seen = []
        for inputs, labels in loader:
            numbers = labels.tolist()
            expected = preprocess([images[number] for number in numbers], QWEN)
            assert list(inputs) == list(expected)
            for name, value in expected.items():
                assert torch.equal(inputs[name], torch.from_numpy(value))
            assert count_patches([images[n].shape[:2] for n in numbers], QWEN).sum() <= 200
            seen += numbers
        assert len(seen) == len(images) == len(set(seen))
        assert len(loader) > 2


def test_a_batch_size_is_a_number_of_images(files):
    with ImageLoader(files, transform=NamedRecipe.from_processor(QWEN), batch_size=8) as loader:
        assert [len(labels) for _, labels in loader] == [8, 8, 8, 6]


@pytest.mark.parametrize("ranks", [[1, 2, 3], [3, 2, 1], [2, 3, 2]])
def test_any_number_of_ranks_goes_on(files, images, ranks):
    state, seen = None, []
    for step, count in enumerate([*ranks, 1]):
        loaders = [
            ImageLoader(
                files, transform=Processor(), batch_patches=100, shuffle=True, seed=1,
                rank=rank, world_size=count,
            )
            for rank in range(count)
        ]  # fmt: skip
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
            batches = iter(loader)
            if step < len(ranks):
                seen += next(batches)[1].tolist()
            else:
                seen += [label for _, labels in batches for label in labels.tolist()]
        state = loaders[0].state_dict()
        for loader in loaders:
            loader.close()
    assert sorted(seen) == list(range(len(images)))


def test_what_chooses_or_collates_single_images_is_refused(files):
    recipe = NamedRecipe.from_processor(QWEN)
    with pytest.raises(ValueError, match="batch_patches choose the images"):
        ImageLoader(files, transform=recipe, batch_patches=99, sampler=range(5))
    with pytest.raises(ValueError, match="a processor puts together"):
        ImageLoader(files, transform=recipe, batch_patches=99, collate_fn=list)


@pytest.fixture(scope="module")
def captioned(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("captioned")
    texts = [f"picture {number}".encode() for number in range(len(images))]
    for name, contents in (("a", [png(image) for image in images]), ("a.caption", texts)):
        with recordio.RecordWriter(folder / f"{name}.rec", folder / f"{name}.idx") as writer:
            for number, content in enumerate(contents):
                header = recordio.IRHeader(0, float(number), number, 0)
                writer.write(recordio.pack(header, content), number)
    return folder / "a.rec"


def png(image):
    file = io.BytesIO()
    PIL.Image.fromarray(image).save(file, "png")
    return file.getvalue()


@pytest.mark.parametrize(
    "more",
    [
        {"transform": NamedRecipe.from_processor(QWEN), "batch_patches": 200},
        {"data_shape": (3, 8, 8), "batch_size": 4},
    ],
    ids=["patches", "one shape"],
)
def test_texts_stand_between_images_and_labels(captioned, images, more):
    with ImageLoader(captioned, fields={"caption": Text()}, shuffle=True, **more) as loader:
        seen = []
        for batch in loader:
            _, texts, labels = batch
            assert texts == [f"picture {number}" for number in labels.tolist()]
            seen += texts
    assert len(set(seen)) == len(seen) == len(images)
