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


# -- several images for a sample -------------------------------------------------------------------

COUNTS = [2, 1, 0, 5, 1, 40, 3, 1, 0, 2]
RECIPE = NamedRecipe.from_processor(QWEN)


@pytest.fixture(scope="module")
def lists():
    rng = np.random.default_rng(6)
    return [[rng.integers(0, 256, (*rng.integers(20, 60, 2), 3), np.uint8) for _ in range(count)]
            for count in COUNTS]  # fmt: skip


class Samples(torch.utils.data.Dataset):
    """Lists of images in some form, a number and a text; counts how often it is asked."""

    def __init__(self, lists, form):
        self.lists, self.form, self.asked = lists, form, 0

    def __len__(self):
        return len(self.lists)

    def __getitem__(self, number):
        self.asked += 1
        images = [self.form(image) for image in self.lists[number]]
        return images, number, f"text {number}"


class Named(Samples):
    """The same as a dictionary; a sample with one image has no list."""

    def __getitem__(self, number):
        images, label, text = super().__getitem__(number)
        return {"id": label, "image": images[0] if len(images) == 1 else images, "texts": [text]}


FORMS = {
    "arrays": lambda image: image,
    "pillow": PIL.Image.fromarray,
    "bytes": png,
    "undecoded": lambda image: {"bytes": png(image), "path": None},
}


def opened(dataset, **more):
    with pytest.warns(UserWarning, match="made by its own __getitem__"):
        return ImageLoader(dataset, transform=RECIPE, **more)


def patches_of(images):
    return sum(int(count_patches([image.shape[:2]], QWEN)[0]) for image in images)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threads", [0, 2])
def test_samples_of_a_data_set_have_lists_of_images(lists, form, threads):
    dataset = Samples(lists, FORMS[form])
    with opened(dataset, batch_patches=120, shuffle=True, seed=2, num_workers=threads) as loader:
        assert dataset.asked == len(lists)  # once each, for the sizes of their images
        seen = []
        for inputs, labels, texts in loader:
            numbers = labels.tolist()
            expected = preprocess([lists[number] for number in numbers], QWEN)
            assert list(inputs) == list(expected)
            assert all(torch.equal(inputs[key], torch.from_numpy(v)) for key, v in expected.items())
            assert inputs["image_counts"].tolist() == [COUNTS[number] for number in numbers]
            assert texts == [f"text {number}" for number in numbers]
            assert len(numbers) == 1 or sum(patches_of(lists[n]) for n in numbers) <= 120
            seen += numbers
        assert sorted(seen) == list(range(len(lists)))


def test_samples_may_be_dictionaries(lists):
    loader = opened(Named(lists, png), batch_size=4)
    batches = list(loader)
    assert list(batches[0]) == ["pixel_values", "image_grid_thw", "image_counts", "id", "texts"]
    counts = [count for batch in batches for count in batch["image_counts"].tolist()]
    assert counts == COUNTS
    assert torch.cat([batch["id"] for batch in batches]).tolist() == list(range(len(lists)))
    assert batches[0]["texts"][1] == ["text 1"]


def test_samples_may_be_lists_of_files(lists, tmp_path):
    items = []
    for number, images in enumerate(lists):
        files = [tmp_path / f"{number}-{at}.png" for at in range(len(images))]
        for file, image in zip(files, images, strict=True):
            PIL.Image.fromarray(image).save(file)
        items.append((files, number) if len(files) != 1 else (files[0], number))
    with ImageLoader(items, transform=RECIPE, batch_patches=120, shuffle=True, seed=2) as loader:
        seen = []
        for inputs, labels in loader:
            numbers = labels.tolist()
            expected = preprocess([lists[number] for number in numbers], QWEN)
            assert all(torch.equal(inputs[key], torch.from_numpy(v)) for key, v in expected.items())
            seen += numbers
        assert sorted(seen) == list(range(len(lists)))
    with pytest.raises(ValueError, match="lists of images, which need the image processor"):
        ImageLoader(items, data_shape=(3, 8, 8))
    items[3][0][2].write_bytes(b"no image")
    with ImageLoader(items, transform=RECIPE, batch_size=1) as loader:
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        with pytest.raises(recordio.RecordIOError, match="record 3: image 2: not an image"):
            next(batches)
    with pytest.raises(TypeError, match=r"dataset has 3 in its item 1: expected a file"):
        ImageLoader([([], 0), ([3], 1)], transform=RECIPE)


def test_samples_without_any_image_make_batches():
    loader = opened(Samples([[], [], []], png), batch_patches=2)
    shapes = [(inputs["pixel_values"].shape, len(labels)) for inputs, labels, _ in loader]
    assert shapes == [((0, 1176), 2), ((0, 1176), 1)]


@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_bad_image_of_a_data_set_is_named(lists, place):
    class Damaged(Samples):
        def __getitem__(self, number):
            images, *rest = super().__getitem__(number)
            if number == 3:
                images[place] = b"no image"
            return images, *rest

    for budget in ({"batch_size": 4}, {"batch_patches": 2000}):
        loader = opened(Damaged(lists, png), **budget)
        with pytest.raises(recordio.RecordIOError, match=f"record 3: image {place}: not an image"):
            list(loader)


@pytest.mark.parametrize("ranks", [[1, 2, 3], [3, 1, 2]])
def test_any_number_of_ranks_goes_on_with_lists(ranks):
    rng = np.random.default_rng(1)
    many = [[np.zeros((*rng.integers(20, 60, 2), 3), np.uint8)] * (n % 4) for n in range(40)]
    state, seen = None, []
    for step, count in enumerate([*ranks, 1]):
        for rank in range(count):
            loader = opened(
                Samples(many, png), batch_patches=60, shuffle=True, seed=1,
                rank=rank, world_size=count,
            )  # fmt: skip
            if state is not None:
                loader.load_state_dict(state)
            batches = [next(iter(loader))] if step < len(ranks) else loader
            seen += [number for _, labels, _ in batches for number in labels.tolist()]
            after = loader.state_dict()
        state = after
    assert sorted(seen) == list(range(40))


def test_what_does_not_go_with_lists_is_refused(lists):
    dataset = Samples(lists, png)
    with pytest.raises(ValueError, match="batch_patches choose the images"):
        ImageLoader(dataset, transform=RECIPE, batch_patches=99, sampler=range(5))
    with pytest.raises(ValueError, match="a processor puts together"):
        ImageLoader(dataset, transform=RECIPE, batch_size=2, collate_fn=list)
    with pytest.raises(ValueError, match="rand_mirror"):
        ImageLoader(dataset, transform=RECIPE, batch_size=2, rand_mirror=True)
    with pytest.raises(ValueError, match="give it the transform"):
        ImageLoader(dataset, transform={"data_shape": (3, 8, 8)}, batch_size=2)
    loader = opened(dataset, batch_patches=120, seed=1)
    state = loader.state_dict()
    for other in ({"batch_patches": 121}, {"batch_size": 4}):
        with pytest.raises(ValueError, match="the state was saved with"):
            opened(dataset, seed=1, **other).load_state_dict(state)

    class Nameless(Samples):
        def __getitem__(self, number):
            return {"pictures of it": self.lists[number]}

    with pytest.raises(TypeError, match="no images under a usual name, only pictures of it"):
        list(opened(Nameless(lists, png), batch_size=2))
