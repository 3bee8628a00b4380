"""Batches as contact sheets."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

import recordio
from iterators import (
    ArrayDataProvider,
    DataBatch,
    ImageDetRecordIter,
    ImageIter,
    ImageRecordIter,
    Pack,
    show,
)
from iterators.images.contact_sheet import COLOURS, Tile, _wrapped, contact_sheet
from iterators.testing import box_label, write_pack

SIDE, GAP, LINE = 80, 4, 16
TOP = 2 * GAP + LINE


def place(number, columns=8):
    return GAP + number % columns * (SIDE + GAP), TOP + number // columns * (SIDE + GAP + LINE)


def image_of(sheet, number, columns=8):
    """What a sheet shows of one sample."""
    left, top = place(number, columns)
    return np.asarray(sheet.crop((left, top, left + SIDE, top + SIDE)))


@pytest.fixture
def images():
    rng = np.random.default_rng(3)
    return rng.integers(0, 256, (5, SIDE, SIDE, 3), np.uint8)


@pytest.fixture
def path(tmp_path, images):
    return write_pack(tmp_path / "a.rec", images, lambda number: number % 3)


def batch_of(images, layout="NHWC", pad=0):
    axes = ["NHWC".index(letter) for letter in layout]
    from iterators import DataDesc

    data = np.ascontiguousarray(images.transpose(axes))
    desc = [DataDesc("data", data.shape, data.dtype, layout)]
    return DataBatch([data], [np.arange(len(images), dtype="f4")], pad, provide_data=desc)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "CHWN"])
def test_the_pixels_are_those_of_the_batch(images, layout):
    sheet = show(batch_of(images, layout), columns=3)
    assert sheet.mode == "RGB" and sheet.width == 3 * (SIDE + GAP) + GAP
    for number, image in enumerate(images):
        assert np.array_equal(image_of(sheet, number, 3), image)


def test_padding_is_faint(images):
    sheet = show(batch_of(images, pad=2))
    assert np.array_equal(image_of(sheet, 2), images[2])
    assert image_of(sheet, 3).min() > 170


@pytest.mark.parametrize(
    ("factor", "shift"), [(1, 0), (1 / 255, 0), (1 / 50, -2)], ids=["255", "1", "normalised"]
)
def test_floats_are_shown_as_well_as_it_goes(images, factor, shift):
    images = images.copy()
    images[0, 0, 0], images[0, 0, 1] = 0, 255
    sheet = show(batch_of((images * factor + shift).astype(np.float32)))
    difference = image_of(sheet, 1).astype(int) - images[1]
    assert np.abs(difference).max() <= 1


NORMALISED = {"mean_r": 120, "mean_g": 110, "mean_b": 100, "std_r": 58, "std_g": 57, "std_b": 56}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        NORMALISED,
        {**NORMALISED, "scale": 1 / 255, "layout": "NHWC"},
        {"dtype": "uint8"},
        {"dtype": "float16"},
        {**{name: v for name, v in NORMALISED.items() if "mean" in name}, "dtype": "int8"},
    ],
    ids=["plain", "normalised", "scaled", "uint8", "float16", "int8"],
)
def test_normalisation_is_undone(path, images, settings):
    with ImageRecordIter(
        path_imgrec=path, data_shape=(3, SIDE, SIDE), batch_size=5, **settings
    ) as provider:
        sheet = provider.show(provider.next())
    for number, image in enumerate(images):
        if settings.get("dtype") == "int8":  # saturated
            image = np.clip(image, 0, 127 + np.array([120, 110, 100]))
        assert np.abs(image_of(sheet, number).astype(int) - image).max() <= 1


def test_each_pack_has_its_own_normalisation(path, images):
    packs = [Pack(path, mean_r=200, std_r=3), Pack(path, mean_b=10)]
    with ImageRecordIter(path_imgrec=packs, data_shape=(3, SIDE, SIDE), batch_size=10) as provider:
        batch = provider.next()
        sheet = provider.show(batch)
    assert set(batch.source) == {0, 1}
    for number, id in enumerate(batch.index):
        assert np.abs(image_of(sheet, number).astype(int) - images[int(id)]).max() <= 1


def test_a_mean_image_is_added_again(path, images, tmp_path):
    with ImageRecordIter(
        path_imgrec=path, data_shape=(3, SIDE, SIDE), batch_size=5, mean_img=tmp_path / "mean.bin"
    ) as provider:
        sheet = provider.show()
    assert np.abs(image_of(sheet, 4).astype(int) - images[4]).max() <= 1


def test_the_next_batch_is_shown_and_not_taken(path):
    settings = {"data_shape": (3, SIDE, SIDE), "batch_size": 2, "shuffle": True, "seed": 4}
    with ImageRecordIter(path_imgrec=path, **settings) as provider:
        for turn in range(7):  # over the ends of epochs
            shown = provider.show()
            assert provider.show().tobytes() == shown.tobytes()
            try:
                batch = provider.next()
            except StopIteration:
                provider.reset()
                batch = provider.next()
            taken = provider.show(batch)
            below = (0, TOP, taken.width, taken.height)  # the title names the epoch of one only
            assert shown.crop(below).tobytes() == taken.crop(below).tobytes(), turn


def test_classes_are_named(path):
    with ImageRecordIter(path_imgrec=path, data_shape=(3, SIDE, SIDE), batch_size=5) as provider:
        plain = provider.show().tobytes()
        named = [
            provider.show(classes=names).tobytes()
            for names in (["cat", "dog", "horse"], {0: "cat", 1: "dog", 2: "horse"})
        ]
    assert named[0] == named[1] != plain


@pytest.fixture
def names(path):
    """The names of the classes, beside the pack."""
    file = path.with_name("a.classes.txt")
    file.write_text("0\tcat\n1\tdog\n2\thorse\n")
    return file


def test_the_names_beside_a_pack_are_shown(path, names):
    classes = ["cat", "dog", "horse"]
    with ImageRecordIter(path_imgrec=path, data_shape=(3, SIDE, SIDE), batch_size=5) as provider:
        shown = provider.show().tobytes()
        assert shown == provider.show(classes=classes).tobytes()
        assert shown != provider.show(classes={}).tobytes()
        batch = provider.next()
        assert provider.show(batch).tobytes() == provider.show(batch, classes=names).tobytes()
        names.unlink()
        provider.reset()
        assert provider.show().tobytes() == provider.show(classes={}).tobytes()


def test_the_names_of_several_packs_are_those_that_labels_become(path, names):
    settings = {"data_shape": (3, SIDE, SIDE), "batch_size": 10}
    for more, expected in (
        ({"labels": "append"}, ["cat", "dog", "horse", "cat", "dog", "horse"]),
        ({"labels": {0: 5, 1: 1, 2: 0}}, {1: "dog", 2: "horse", 5: "cat"}),  # 0 has two names
        ({"labels": None}, ["cat", "dog", "horse"]),
    ):
        packs = [Pack(path), Pack(path, **more)]
        with ImageRecordIter(path_imgrec=packs, **settings) as provider:
            assert provider.show().tobytes() == provider.show(classes=expected).tobytes(), more


def test_names_are_taken_from_a_pack(path, names, images):
    batch = batch_of(images)
    expected = show(batch, classes=["cat", "dog", "horse"]).tobytes()
    for place in (path, str(path), str(path)[: -len(".rec")], names, str(names)):
        assert show(batch, classes=place).tobytes() == expected
    names.write_text("nonsense")
    with pytest.raises(recordio.RecordIOError, match=r"a\.classes\.txt, line 1"):
        show(batch, classes=path)
    names.write_text("0\t.\n")
    with pytest.raises(ValueError, match="no names of classes"):
        show(batch, classes=path)
    with pytest.raises(recordio.RecordIOError, match="none"):
        show(batch, classes=path.with_name("none"))


def test_other_labels_than_the_class_have_no_names(tmp_path, images):
    (tmp_path / "two.classes.txt").write_text("0\tcat\n1\tdog\n")
    path = write_pack(tmp_path / "two.rec", images[:1], [[1, 0]])
    settings = {"data_shape": (3, SIDE, SIDE), "batch_size": 1, "label_width": 2}
    with ImageRecordIter(path_imgrec=path, **settings) as provider:
        assert provider.show().tobytes() == provider.show(classes={}).tobytes()


def test_boxes_are_drawn(tmp_path, images):
    label = box_label((1, 0.25, 0.25, 0.75, 0.75))
    path = write_pack(tmp_path / "boxes.rec", images[:1] * 0, [label])
    with ImageDetRecordIter(path_imgrec=path, data_shape=(3, SIDE, SIDE), batch_size=1) as provider:
        sheet = provider.show()
    shown = image_of(sheet, 0)
    assert (
        tuple(shown[SIDE // 4, SIDE // 2]) == COLOURS[1] and not shown[SIDE // 2, SIDE // 2].any()
    )


def test_a_batch_has_the_boxes_of_its_records(tmp_path, images):
    labels = [[2, 5, 1, 0.25, 0.25, 0.75, 0.75], [4, 5, 9, 9, 0, 0, 0, 1, 1, 2, 0, 0, 0.5, 0.5]]
    path = write_pack(tmp_path / "boxes.rec", images[:2], labels)
    with ImageDetRecordIter(path_imgrec=path, data_shape=(3, SIDE, SIDE), batch_size=2) as provider:
        rows = provider.next().label[0]
    for row, values in zip(rows, labels, strict=True):
        found = recordio.boxes_of(row, in_batch=True)
        assert np.array_equal(found, recordio.boxes_of(values))


def test_other_providers_have_it_too(path, images):
    with ImageIter(batch_size=5, data_shape=(3, SIDE, SIDE), path_imgrec=path) as provider:
        assert np.abs(image_of(provider.show(), 2).astype(int) - images[2]).max() <= 1


@pytest.mark.parametrize("shape", [(4, 7), (4, 3, 8), (4, 5, 8, 8)])
def test_what_holds_no_images_is_an_error(shape):
    with ArrayDataProvider(np.zeros(shape), np.zeros(4), batch_size=4) as provider:
        with pytest.raises(ValueError, match="holds no images"):
            show(provider.next())


def test_a_closed_provider_shows_nothing(path):
    provider = ImageRecordIter(path_imgrec=path, data_shape=(3, SIDE, SIDE), batch_size=5)
    provider.close()
    with pytest.raises(ValueError, match="closed"):
        provider.show()


def test_tensors_are_shown_as_arrays(images):
    import torch

    batch = batch_of(images)
    expected = show(batch).tobytes()
    batch.data = [torch.from_numpy(batch.data[0])]
    batch.label = [torch.from_numpy(batch.label[0])]
    assert show(batch).tobytes() == expected


@pytest.mark.parametrize("size", [5, 20])
def test_notebooks_show_the_first_images_of_a_batch(images, size):
    batch = batch_of(np.resize(images, (size, SIDE, SIDE, 3)))
    stored = re.search(r'<img src="data:image/png;base64,([^"]+)">', batch._repr_html_())[1]
    with Image.open(io.BytesIO(base64.b64decode(stored))) as sheet:
        for number in range(min(size, 16)):
            assert (image_of(sheet, number) == images[number % 5]).all()
        assert sheet.size == show(batch_of(np.resize(images, (min(size, 16), SIDE, SIDE, 3)))).size


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_sheets_of_nothing_and_of_odd_sizes(channels):
    assert contact_sheet([]).size[0] > 0
    tiles = [Tile(np.zeros((1, 200, channels), np.uint8), "caption " * 40, faint=True)]
    tiles.append(Tile(np.zeros((90, 1, channels), np.uint8), "\u4e2d\u6587"))
    assert isinstance(contact_sheet(tiles, "title " * 100, 5), Image.Image)
    with pytest.raises(ValueError, match="columns"):
        contact_sheet(tiles, columns=0)


def test_captions_of_small_images_are_broken_into_lines():
    caption = "a red disc right of a green square"
    lines = _wrapped(caption, 128)
    assert len(lines) == 2 and " ".join(lines) == caption
    *whole, last = _wrapped(10 * f"{caption} ", 128)
    assert len(whole) == 2 and last.endswith("...")
    pixels = np.zeros((64, 64, 3), np.uint8)
    sizes = [contact_sheet([Tile(pixels, words)]).size for words in ("", "cup", caption)]
    assert sizes == [(72, 72), (72, 88), (136, 104)]
