"""Pipelines of the real libraries: every parameter is known, and the pixels are the same."""

import inspect
import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from iterators import ImageRecordIter, NamedRecipe, PipelineError
from iterators.images.augment.pipelines import albumentations, processors, timm
from iterators.images.augment.pipelines import torchvision as names
from iterators.torch import ImageLoader
from recordio import IRHeader, RecordWriter, pack

torchvision = pytest.importorskip("torchvision", exc_type=(ImportError, RuntimeError))
from torchvision import datasets  # noqa: E402
from torchvision.transforms import InterpolationMode, _presets, v2  # noqa: E402
from torchvision.transforms import transforms as v1  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(600)]
IMAGES, SIDE = 6, 40


# -- parameters ------------------------------------------------------------------------------------


def parameters(*classes):
    """Names of what the constructors of classes take."""
    return {
        name
        for one in classes
        for name, found in inspect.signature(one.__init__).parameters.items()
        if name != "self" and found.kind in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY)
    }


@pytest.mark.parametrize("name", names.TRANSFORMS)
def test_every_parameter_of_torchvision_is_known(name):
    modules = (v1, v2, torchvision.transforms, _presets)
    classes = [getattr(module, name) for module in modules if hasattr(module, name)]
    assert classes
    assert parameters(*classes) == names.TRANSFORMS[name].listed


@pytest.mark.parametrize("name", timm._OWN)
def test_every_parameter_of_timm_is_known(name):
    pytest.importorskip("timm")
    from timm.data import auto_augment, mixup, random_erasing, transforms

    modules = (transforms, auto_augment, mixup, random_erasing)
    (found,) = {getattr(module, name) for module in modules if hasattr(module, name)}
    # A parameter of an older release may be known besides.
    assert parameters(found) <= timm._OWN[name].listed | {"prob", "hparams"}


@pytest.mark.parametrize("name", albumentations._TRANSFORMS)
def test_every_parameter_of_albumentations_is_known(name):
    library = pytest.importorskip("albumentations")
    found = getattr(library, name, None) or getattr(library.pytorch, name)
    assert parameters(found) <= albumentations._TRANSFORMS[name].listed


@pytest.mark.parametrize("name", processors.CLASSES)
def test_keys_and_defaults_of_processors_are_known(name):
    library = pytest.importorskip("transformers")
    found = getattr(library, f"{name}ImageProcessor")()
    config = {key: value for key, value in found.to_dict().items() if value is not None}
    unknown = set(config) - processors._READ - processors.IDLE - set(processors._REFUSED)
    assert not {key for key in unknown if config[key]}
    for key, value in processors.CLASSES[name].items():
        own = getattr(found, key)
        own = {k: v for k, v in dict(own).items() if v is not None} if key in _SIZES else own
        own = list(own) if isinstance(own, tuple) else own
        assert own == value or (own is None and value is False), key


_SIZES = ("size", "crop_size")


def test_a_parameter_that_is_new_is_refused_unless_it_has_its_default():
    class Resize(v2.Resize):
        __module__ = "torchvision.transforms.v2"

        def __init__(self, size, sharpen=False):
            super().__init__(size)
            self.sharpen = sharpen

    NamedRecipe.from_torchvision(Resize((8, 8)))
    with pytest.raises(PipelineError, match="has sharpen=True, which is not known here"):
        NamedRecipe.from_torchvision(Resize((8, 8), sharpen=True))


# -- pixels ----------------------------------------------------------------------------------------


def pictures(mode):
    """Pictures of one kind, with smooth shapes."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(IMAGES):
        small = Image.fromarray(rng.integers(0, 256, (7, 6, 4), np.uint8), "RGBA")
        image = small.resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        if mode != "RGBA":
            image = image.convert("RGB").convert(mode)
        found.append(image)
    return found


class Digits(datasets.MNIST):
    """Grey arrays."""

    def __init__(self, transform):
        self.data = torch.from_numpy(np.stack([np.asarray(one) for one in pictures("L")]))
        self.targets, self.transform = torch.arange(IMAGES) % 10, transform
        self.target_transform, self.root = None, ""


Digits.classes = [str(number) for number in range(10)]


class Colours(datasets.CIFAR10):
    """Colour arrays."""

    def __init__(self, transform):
        self.data = np.stack([np.asarray(one) for one in pictures("RGB")])
        self.targets, self.transform = list(range(IMAGES)), transform
        self.target_transform, self.root, self.train = None, "", True


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder and a pack for every kind of picture."""
    root = tmp_path_factory.mktemp("pictures")
    for mode in ("L", "RGB", "P", "RGBA"):
        (root / mode / "a").mkdir(parents=True)
        with RecordWriter(root / f"{mode}.rec", root / f"{mode}.idx") as out:
            for number, image in enumerate(pictures(mode)):
                file = root / mode / "a" / f"{number}.png"
                image.save(file)
                out.write(pack(IRHeader(0, 0.0, number, 0), file.read_bytes()), number)
    return root


def data(folders, source, transform):
    """Make a data set of torchvision."""
    if source in ("digits", "colours"):
        return {"digits": Digits, "colours": Colours}[source](transform)
    return datasets.ImageFolder(folders / source, transform)


def one_batch(loader):
    return next(iter(loader))[0]


TENSOR = [v1.ToTensor()]
V2 = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
SQUARE = [v1.Resize((24, 28))]
HALF = v1.Normalize(0.5, 0.25)
COLOURED = v1.Normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.1))
BILINEAR = InterpolationMode.BILINEAR
#: Pipelines that draw nothing, and how many levels a value may differ at most.
PIPELINES = {
    "nothing": ([*TENSOR], 0),
    "v2": ([*V2], 0),
    "resize": ([*SQUARE, *TENSOR, HALF], 0),
    "a number": ([v1.Resize(24), v1.CenterCrop(20), *TENSOR], 0),
    "crop": ([v1.CenterCrop((30, 22)), *TENSOR], 0),
    "a larger crop": ([v1.CenterCrop((50, 44)), *TENSOR], 0),
    "pad": ([v1.Pad(2), *TENSOR], 0),
    "reflect": ([v1.Pad(3, padding_mode="reflect"), *TENSOR], 0),
    "fill": ([v1.Pad(2, fill=9), *TENSOR], 0),
    "fill of floats": ([*TENSOR, v1.Pad(2, fill=1.0)], 0),
    "half a level": ([*TENSOR, v1.Pad(2, fill=0.5)], 0),
    "pad, crop": ([v1.Pad(4), v1.CenterCrop(36), *TENSOR, HALF], 0),
    "flips": ([*SQUARE, v1.RandomHorizontalFlip(1), v1.RandomVerticalFlip(1), *TENSOR], 0),
    "turn": ([*SQUARE, v1.RandomRotation((30, 30), BILINEAR), *TENSOR], 0),
    "turn, fill": ([v1.RandomRotation((30, 30), fill=7), *TENSOR], 0),
    "affine": ([*SQUARE, v1.RandomAffine((20, 20), scale=(1.5, 1.5)), *TENSOR], 0),
    "brightness": ([*SQUARE, v1.ColorJitter((1.3, 1.3)), *TENSOR], 0),
    "saturation": ([*SQUARE, v1.ColorJitter(0, 0, (0.4, 0.4)), *TENSOR], 0),
    "hue": ([*SQUARE, v1.ColorJitter(0, 0, 0, (0.2, 0.2)), *TENSOR], 0),
    "grey": ([*SQUARE, v1.Grayscale(), *TENSOR, HALF], 6),
    "grey of v2": ([v2.Grayscale(), *V2, v2.Normalize([0.5], [0.5])], 6),
    "grey of three": ([*SQUARE, v1.Grayscale(3), *TENSOR, COLOURED], 0),
    "perhaps grey": ([*SQUARE, v1.RandomGrayscale(1), *TENSOR], 0),
    "rgb": ([v2.ToImage(), v2.RGB(), v2.ToDtype(torch.float32, scale=True), COLOURED], 0),
    "rgb of images": ([v2.RGB(), *SQUARE, *TENSOR], 0),
    "grey, rgb": ([*SQUARE, v1.Grayscale(), v2.RGB(), *TENSOR, COLOURED], 0),
    "means": ([*SQUARE, *V2, v2.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.1])], 0),
    "blur": ([*SQUARE, v1.GaussianBlur(5, (1.2, 1.2)), *TENSOR], 1),
    "solarize": ([*SQUARE, v1.RandomSolarize(100, 1), *TENSOR], 0),
    "posterize": ([*SQUARE, v1.RandomPosterize(3, 1), *TENSOR], 0),
    "equalize": ([*SQUARE, v1.RandomEqualize(1), *TENSOR], 0),
    "autocontrast": ([*SQUARE, v1.RandomAutocontrast(1), *TENSOR], 0),
    "invert": ([*SQUARE, v1.RandomInvert(1), *TENSOR], 0),
    "sharpness": ([*SQUARE, v1.RandomAdjustSharpness(2.5, 1), *TENSOR], 0),
    "apply": ([*SQUARE, v1.RandomApply([v1.Grayscale(3), v1.RandomInvert(1)], 1), *TENSOR], 0),
    "choice": ([*SQUARE, v1.RandomChoice([v1.RandomInvert(1)]), *TENSOR], 0),
    # Of tensors
    "tensors": ([v2.ToImage(), v2.Resize((24, 28)), v2.ToDtype(torch.float32, scale=True)], 1),
    "bicubic": ([v2.PILToTensor(), v2.Resize((24, 28), 3), *V2[1:]], 2),
    "floats": ([*TENSOR, v1.Resize((24, 28))], 1),
    "bicubic floats": ([*TENSOR, v1.Resize((60, 64), InterpolationMode.BICUBIC)], 1),
    "no antialias": ([*TENSOR, v1.Resize((14, 18), antialias=False)], 1),
    "no antialias of crops": (
        [v2.ToImage(), v2.RandomResizedCrop(14, (1, 1), (1, 1), antialias=None), *V2[1:]], 1,
    ),
    "nearest": ([v2.ToImage(), v2.Resize((14, 18), InterpolationMode.NEAREST), *V2[1:]], 0),
    "exact": ([v2.ToImage(), v2.Resize((23, 18), InterpolationMode.NEAREST_EXACT), *V2[1:]], 0),
    "nearest of images": ([v1.Resize((14, 18), InterpolationMode.NEAREST), *TENSOR], 0),
    "turned tensors": ([*SQUARE, v2.ToImage(), v2.RandomRotation((30, 30), BILINEAR), *V2[1:]], 0),
    "moved tensors": ([*SQUARE, *TENSOR, v1.RandomAffine((9, 9), shear=(5, 5))], 0),
    "hue of tensors": ([*SQUARE, *TENSOR, v1.ColorJitter(0, 0, 0, (0.2, 0.2))], 0),
    "bright tensors": ([*SQUARE, *TENSOR, v1.ColorJitter((1.3, 1.3))], 1.3),
    "contrast of tensors": ([*SQUARE, v2.ToImage(), v2.ColorJitter(0, (1.3, 1.3)), *V2[1:]], 1),
    "grey tensors": ([*SQUARE, v2.ToImage(), v2.Grayscale(3), *V2[1:]], 1),
    "equal tensors": ([*SQUARE, *TENSOR, v2.RandomEqualize(1)], 0),
    "erased integers": (
        [v2.PILToTensor(), v2.RandomErasing(1, (1, 1), (1, 1), 7), *V2[1:]], 0,
    ),
    "and back": ([*TENSOR, v1.ToPILImage(), *SQUARE, *TENSOR], 0),
    "classification": ([_presets.ImageClassification(crop_size=20, resize_size=24)], 0),
    "segmentation": ([_presets.SemanticSegmentation(resize_size=24)], 0),
    "detection": ([_presets.ObjectDetection()], 0),
    "a short side": ([v1.Resize(23), *TENSOR], 0),
    "long side": ([v2.Resize(None, max_size=24), v1.CenterCrop(24), *TENSOR], 0),
    "limited": ([v1.Resize(20, max_size=22), v1.CenterCrop(20), *TENSOR], 0),
    "half": ([*SQUARE, v2.ToImage(), v2.ToDtype(torch.float16, scale=True)], 0.1),
    "bytes": ([*SQUARE, v2.ToImage()], 0),
}  # fmt: skip
SOURCES = ("digits", "colours", "L", "RGB", "P", "RGBA")


@pytest.mark.parametrize("name", PIPELINES)
def test_pixels_are_those_of_dataloader(folders, name):
    transforms, levels = PIPELINES[name]
    for source in SOURCES:
        dataset = data(folders, source, v2.Compose(transforms))
        try:
            wanted = one_batch(torch.utils.data.DataLoader(dataset, IMAGES))
        except (RuntimeError, TypeError, ValueError, AttributeError):
            with pytest.raises((RuntimeError, TypeError, ValueError, AttributeError)):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    one_batch(ImageLoader(dataset, IMAGES))
            continue
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            loader = ImageLoader(dataset, IMAGES)
            found = one_batch(loader)
        in_python = loader.provider is None
        assert in_python == any("__getitem__" in str(one.message) for one in said)
        assert found.shape == wanted.shape and found.dtype == wanted.dtype, source
        unit = 1.0 if wanted.dtype == torch.uint8 else 255.0
        most = 0 if in_python else (levels + 1e-3) / unit * (4 if wanted.min() < 0 else 1)
        far = float((found.double() - wanted.double()).abs().max())
        assert far <= most, f"{source}: {far * unit:g} levels"


@pytest.mark.parametrize("name", PIPELINES)
def test_pixels_of_packs_are_those_of_files(folders, name):
    transforms, levels = PIPELINES[name]
    for mode in SOURCES[2:]:
        dataset = datasets.ImageFolder(folders / mode, v2.Compose(transforms))
        pack = folders / f"{mode}.rec"
        try:
            recipe = NamedRecipe.from_torchvision(transforms)
            loader = ImageLoader(pack, IMAGES, transform=recipe)
        except ValueError as error:
            assert isinstance(error, PipelineError) or "sizes of their own" in str(error)
            continue
        wanted = one_batch(torch.utils.data.DataLoader(dataset, IMAGES))
        far = float((one_batch(loader).double() - wanted.double()).abs().max())
        unit = 1.0 if wanted.dtype == torch.uint8 else 255.0
        assert far <= (levels + 1e-3) / unit * (4 if wanted.min() < 0 else 1), mode


#: Those that have to be made by threads, and of which sources.
FAST = {
    "v2": SOURCES[:2], "pad": SOURCES[:2], "fill of floats": SOURCES[:2], "grey": SOURCES,
    "rgb": SOURCES[:2], "grey of v2": SOURCES[:2], "grey of three": SOURCES,
    "perhaps grey": SOURCES, "hue": SOURCES, "turn": SOURCES, "equalize": SOURCES,
    "classification": SOURCES[1:], "apply": SOURCES[1:], "tensors": SOURCES,
    "long side": SOURCES, "limited": SOURCES,
}  # fmt: skip


@pytest.mark.parametrize("name", FAST)
def test_common_pipelines_are_not_left_to_python(folders, name):
    for source in FAST[name]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dataset = data(folders, source, v2.Compose(PIPELINES[name][0]))
            assert ImageLoader(dataset, 2).provider is not None


def test_images_of_different_sizes_are_a_list(folders):
    preset = _presets.SemanticSegmentation(resize_size=24)
    recipe = NamedRecipe.from_torchvision(preset)
    keywords = {"data_shape": (3, None, None), "orient": True}
    batches = ImageRecordIter(
        path_imgrec=folders / "RGB.rec", recipe=recipe, batch_size=2, **keywords
    )
    for number, image in enumerate(next(iter(batches)).data[0]):
        wanted = preset(Image.open(folders / "RGB" / "a" / f"{number}.png"))
        np.testing.assert_allclose(image, wanted.numpy(), atol=1e-5)
    with pytest.raises(ValueError, match="sizes of their own"):
        ImageLoader(folders / "RGB.rec", 2, transform=preset)


@pytest.mark.parametrize("weights", ["ResNet50_Weights", "ViT_B_16_Weights"])
def test_presets_of_weights(folders, weights):
    for one in getattr(torchvision.models, weights):
        preset = one.transforms()
        loader = ImageLoader(folders / "RGB.rec", 2, transform=preset)
        wanted = torch.stack(
            [preset(Image.open(folders / "RGB" / "a" / f"{i}.png")) for i in range(2)]
        )
        torch.testing.assert_close(one_batch(loader), wanted, rtol=0, atol=1e-5)


#: Presets whose images are frames of videos, or pairs.
OTHER_PRESETS = ("VideoClassification", "OpticalFlow")


def test_every_preset(tmp_path):
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 131, 3), np.uint8)).save(
        tmp_path / "a.png"
    )
    image = Image.open(tmp_path / "a.png")
    models, seen = torchvision.models, set()
    for weights in [one for name in models.list_models() for one in models.get_model_weights(name)]:
        preset = weights.transforms()
        if type(preset).__name__ in OTHER_PRESETS or repr(preset) in seen:
            continue
        seen.add(repr(preset))
        keywords = {} if hasattr(preset, "crop_size") else {"data_shape": None, "orient": True}
        loader = ImageLoader([(tmp_path / "a.png", 0)], 1, transform=preset, **keywords)
        wanted, found = preset(image), one_batch(loader)[0]
        near = 1e-5 * max(1, float(wanted.abs().max()) / 10)
        torch.testing.assert_close(found, wanted, rtol=0, atol=near, msg=str(weights))
    assert len(seen) > 20


@pytest.mark.parametrize("shape", [(40, 64), (64, 40), (33, 57), (7, 90)])
@pytest.mark.parametrize("size", [(20, 23), (20, 60), (None, 24)])
def test_resize_with_a_limit(tmp_path, shape, size):
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    Image.fromarray(image).save(tmp_path / "a.png")
    resize = v2.Resize(size[0], max_size=size[1])
    transform = v2.Compose([resize, v2.ToImage()])
    wanted = transform(Image.open(tmp_path / "a.png"))
    keywords = {"data_shape": None, "orient": True}
    loader = ImageLoader([(tmp_path / "a.png", 0)], 1, transform=transform, **keywords)
    torch.testing.assert_close(one_batch(loader)[0], wanted.as_subclass(torch.Tensor))


def test_transforms_of_timm_in_a_folder(folders):
    create = pytest.importorskip("timm.data").create_transform
    for mode in ("center", "squash", "border"):
        means = {"mean": (0.5,) * 3, "std": (0.5,) * 3, "crop_pct": 0.9}
        transform = create(24, is_training=False, crop_mode=mode, **means)
        dataset = datasets.ImageFolder(folders / "RGB", transform)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loader = ImageLoader(dataset, IMAGES)
        wanted = one_batch(torch.utils.data.DataLoader(dataset, IMAGES))
        torch.testing.assert_close(one_batch(loader), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", [(40, 64), (64, 40), (33, 57), (48, 48)])
def test_a_letterbox_of_albumentations(tmp_path, shape, monkeypatch):
    monkeypatch.setenv("NO_ALBUMENTATIONS_UPDATE", "1")
    library = pytest.importorskip("albumentations")
    box = library.Compose(
        [library.LongestMaxSize(48), library.PadIfNeeded(48, 48, border_mode=0, fill=7)]
    )
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    Image.fromarray(image).save(tmp_path / "a.png")
    recipe = NamedRecipe.from_albumentations(box)
    found = one_batch(ImageLoader([(tmp_path / "a.png", 0)], 1, transform=recipe))[0]
    wanted = box(image=image)["image"].transpose(2, 0, 1)
    assert np.abs(found.numpy().astype(int) - wanted).max() <= 1
