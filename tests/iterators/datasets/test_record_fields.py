"""Fields of the map-style data set: those of the batches of `ImageRecordIter`, one at a time."""

import json
import pickle

import cv2
import numpy as np
import pytest
from range_server import RangeServer

import recordio
from iterators import Conv2DSpace, ImageRecordDataset, ImageRecordIter, concat_examples, show
from iterators.core.field_specs import field_of
from iterators.fields import Boxes, Crop, Image, Json, Keypoints, Mask, Size, Text
from iterators.samples import Dataset, fields_meta
from iterators.testing import write_pack
from recordio import FieldError
from recordio.packs.fields_meta import FieldMeta, format_fields

COUNT = 6
AUGMENTATION = {
    "data_shape": (3, 32, 36), "random_resized_crop": True, "min_random_area": 0.3,
    "rand_mirror": True, "max_rotate_angle": 20, "brightness": 0.3, "seed": 3,
}  # fmt: skip


def write(prefix, records, order=None):
    keys = order or range(len(records))
    labels, contents = zip(*(records[key] for key in keys), strict=True)
    write_pack(f"{prefix}.rec", contents, labels, ids=keys, keys=keys)


def png(pixels):
    return cv2.imencode(".png", pixels)[1].tobytes()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Images of different sizes, whose fields lie in another order."""
    folder, rng = tmp_path_factory.mktemp("set"), np.random.default_rng(0)
    sizes = [(40 + 3 * i, 50 - 2 * i) for i in range(COUNT)]
    values = [rng.integers(0, 200, size, np.uint8) for size in sizes]
    order = [3, 0, 5, 1, 4, 2]
    write(
        folder / "a", [(float(i), png(np.repeat(v[..., None], 3, 2))) for i, v in enumerate(values)]
    )
    write(folder / "a.same", [(0.0, png(v)) for v in values], order)
    write(folder / "a.deep", [(0.0, png(v.astype(np.uint16) * 257)) for v in values], order)
    write(folder / "a.after", [(0.0, png(np.repeat(v[..., None], 3, 2))) for v in values], order)
    points = [([2, 6, *[0.4, 0.5, 2, 0.5, 0.25, 1] * (i % 3)], b"") for i in range(COUNT)]
    write(folder / "a.points", points, order)
    boxes = [([2, 5, *[1, 0.2, 0.2, 0.7, 0.85] * (i % 2 + 1)], b"") for i in range(COUNT)]
    write(folder / "a.boxes", boxes, order)
    write(folder / "a.caption", [(0.0, f"é {i}\nline 2".encode()) for i in range(COUNT)], order)
    write(folder / "a.meta", [(0.0, json.dumps({"i": i}).encode()) for i in range(COUNT)], order)
    described = {
        "same": FieldMeta(kind="mask", ignore=7, classes={0: "ground"}),
        "points": FieldMeta(kind="keypoints", points=["l", "r"], swap=[(0, 1)]),
        **{name: FieldMeta(kind="image") for name in ("deep", "after")},
        "boxes": FieldMeta(kind="boxes"),
        "caption": FieldMeta(kind="text"),
        "meta": FieldMeta(kind="json"),
    }
    (folder / "a.fields.json").write_bytes(format_fields(described))
    return folder / "a.rec"


def every_field():
    return {
        "same": Mask(),
        "deep": Image(dtype="uint16"),
        "after": Image(),
        "points": Keypoints(swap=[(0, 1)]),
        "boxes": Boxes(format="cxcywh"),
        "caption": Text(line="random"),
        "meta": Json(),
        "crop": Crop(),
        "size": Size(),
    }


def equal(one, other):
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


@pytest.mark.parametrize("epoch", [0, 2])
@pytest.mark.parametrize("views", [None, [{}, {"data_shape": (3, 20, 24), "pad": 3}]])
def test_examples_have_the_fields_of_batches(path, epoch, views):
    fields = every_field()
    data = ImageRecordDataset(path, fields=fields, views=views, **AUGMENTATION)
    data.set_epoch(epoch)
    names = list(data.fields)
    with ImageRecordIter(
        path_imgrec=path, batch_size=COUNT, fields=fields, views=views, epoch=epoch, **AUGMENTATION
    ) as provider:
        batch = provider.next()
    examples = data.__getitems__(range(COUNT))
    assert len(examples) == COUNT
    images = ["data"] if views is None else ["data0", "data1"]
    for row, example in enumerate(examples):
        assert len(example) == len(images) + len(names) + 1
        for name, value in zip([*images, *names], example[:-1], strict=True):
            equal(value, batch[name][row])
        assert example[-1] == row
    for one, other in zip(data[4][:-1], examples[4][:-1], strict=True):
        equal(one, other)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_fields_of_images_as_they_are(path, layout):
    data = ImageRecordDataset(path, layout=layout, fields=every_field(), threads=3)
    for row, example in enumerate(data[:]):
        image, same, deep, after, points, boxes, caption, meta, crop, size, label = example
        grey = image[..., 0] if layout == "HWC" else image[0]
        height, width = grey.shape
        np.testing.assert_array_equal(same, grey)
        np.testing.assert_array_equal(deep[0], grey.astype(np.uint16) * 257)
        np.testing.assert_array_equal(after, image)
        found = np.full((2, 2, 3), -1, np.float32)
        found[: row % 3] = [[0.4 * width, 0.5 * height, 2], [0.5 * width, 0.25 * height, 1]]
        np.testing.assert_allclose(points, found, rtol=1e-6)
        centre = [1, 0.45 * width, 0.525 * height, 0.5 * width, 0.65 * height]
        np.testing.assert_allclose(boxes[0], centre, rtol=1e-5)
        assert (boxes[1] == -1).all() == (row % 2 == 0)
        assert caption in (f"é {row}", "line 2") and meta == {"i": row} and label == row
        assert crop.tolist() == [0, 0, width, height] and size.tolist() == [width, height]


def test_packed_objects_are_as_many_as_there_are(path):
    data = ImageRecordDataset(path, fields={"points": Keypoints(packed=True)})
    assert [len(points) for _, points, _ in data] == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("augmentation", [{}, AUGMENTATION])
def test_a_pickled_data_set_and_a_transform(path, augmentation):
    fields = {"same": Mask(dtype="int32"), "points": Keypoints(), "caption": Text()}
    data = ImageRecordDataset(path, fields=fields, transform=np.negative, **augmentation)
    data[0]  # something is open
    again = pickle.loads(pickle.dumps(data))
    for one, other in zip(data, again, strict=True):
        for a, b in zip(one, other, strict=True):
            equal(a, b)
    assert data[0][1].min() >= 0  # the transform saw the image alone


def test_workers_of_a_loader(path):
    torch = pytest.importorskip("torch")
    fields = {"same": Mask(), "points": Keypoints(), "caption": Text(line="first")}
    data = ImageRecordDataset(path, fields=fields, label_dtype="int64", **AUGMENTATION)
    data.set_epoch(0)  # so that no warning says that it is the same epoch for all
    alone = [data[row] for row in range(COUNT)]
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(
            data, batch_size=3, num_workers=1, multiprocessing_context=context
        )
        batches = list(loader)
        assert len(batches) == 2
        for number, (images, masks, points, captions, labels) in enumerate(batches):
            for slot in range(3):
                image, mask, own, caption, label = alone[3 * number + slot]
                np.testing.assert_array_equal(images[slot], image)
                np.testing.assert_array_equal(masks[slot], mask)
                np.testing.assert_array_equal(points[slot], own)
                assert captions[slot] == caption and labels[slot] == label


def test_the_pack_says_of_which_kind_a_field_is(path, tmp_path):
    names = ["same", "points", "caption", "meta", "after", "boxes"]
    kinds = {
        "same": Mask(ignore=7), "points": Keypoints(swap=[(0, 1)]), "caption": Text(),
        "meta": Json(), "after": Image(), "boxes": Boxes(),
    }  # fmt: skip
    data = ImageRecordDataset(path, fields=names, **AUGMENTATION)
    assert data.fields == kinds
    for one, other in zip(
        data[2], ImageRecordDataset(path, fields=kinds, **AUGMENTATION)[2], strict=True
    ):
        equal(one, other)
    keywords = {"path_imgrec": path, "batch_size": 2, **AUGMENTATION}
    with ImageRecordIter(fields={"same": None, "size": Size()}, **keywords) as provider:
        assert provider.fields == {"same": Mask(ignore=7), "size": Size()}
        provider.next()
        state, after = provider.state_dict(), provider.next()["same"]
    with ImageRecordIter(fields={"same": Mask(ignore=7), "size": Size()}, **keywords) as provider:
        provider.load_state_dict(state)  # it is the same, however it was asked for
        np.testing.assert_array_equal(provider.next()["same"], after)
    with pytest.raises(ValueError, match="data_specs needs the kind of each field: give same one"):
        specs = Conv2DSpace((32, 36), num_channels=3, axes=("b", 0, 1, "c")), "features"
        ImageRecordIter(fields=["same"], data_specs=specs, **keywords)
    write(tmp_path / "b", [(0.0, png(np.zeros((9, 9, 3), np.uint8)))])
    write(tmp_path / "b.m", [(0.0, b"x")])
    with pytest.raises(FieldError, match="field m is not described by the pack: give its kind"):
        ImageRecordDataset(tmp_path / "b.rec", fields=["m"])
    with pytest.raises(FieldError, match=r"with one of Image\(\), .* and Json\(\)"):
        ImageRecordDataset(tmp_path / "b.rec", fields=["m"])
    (tmp_path / "b.m.rec").rename(tmp_path / "b.boxes.rec")
    with pytest.raises(FieldError, match=r"fields=\{'boxes': Boxes\(\)\}"):
        ImageRecordDataset(tmp_path / "b.rec", fields=["boxes"])
    (tmp_path / "b.boxes.rec").rename(tmp_path / "b.m.rec")
    (tmp_path / "b.fields.json").write_bytes(format_fields({"m": FieldMeta(kind="bytes")}))
    with pytest.raises(FieldError, match="field m is of no kind that a batch has"):
        ImageRecordDataset(tmp_path / "b.rec", fields=["m"])
    with pytest.raises((TypeError, ValueError)):
        ImageRecordDataset(tmp_path / "b.rec", fields=[3])


@pytest.mark.parametrize(
    ("meta", "kind"),
    [
        (FieldMeta(kind="mask"), Mask()),
        (FieldMeta(kind="mask", ignore=-1), Mask(ignore=-1, dtype="int32")),
        (FieldMeta(kind="mask", dtype="uint16", ignore=300), Mask(ignore=300, dtype="uint16")),
        (FieldMeta(kind="mask", ignore=70000), Mask(ignore=70000, dtype="int32")),
        (FieldMeta(kind="image", dtype="uint16"), Image(dtype="uint16")),
        (FieldMeta(kind="image", dtype="uint8"), Image()),
    ],
)
def test_kinds_of_descriptions(meta, kind):
    assert field_of("x", meta) == kind


def test_mistakes_are_named(path, tmp_path):
    with pytest.raises(FieldError, match="no field depth: .* does not name it; its fields: after"):
        ImageRecordDataset(path, fields={"depth": Image()})
    with pytest.raises(TypeError, match="expected one of iterators.fields"):
        ImageRecordDataset(path, fields={"same": "mask"})
    with pytest.raises(ValueError, match="after=.* has the type of the image"):
        ImageRecordDataset(path, fields={"after": Image()}, dtype="float32")
    write(tmp_path / "b", [(0.0, png(np.zeros((9, 9, 3), np.uint8)))] * 3)
    masks = [(0.0, png(np.zeros((9, 9), np.uint8))), (0.0, png(np.zeros((8, 9), np.uint8)))]
    write(tmp_path / "b.m", [*masks, (0.0, b"no image")])
    write(tmp_path / "b.meta", [(0.0, b"{}"), (0.0, b"{"), (0.0, b"1")])
    for augmentation in ({}, {"data_shape": (3, 4, 4)}):
        data = ImageRecordDataset(tmp_path / "b.rec", fields={"m": Mask()}, **augmentation)
        assert data[0][1].max() == 0
        with pytest.raises(recordio.RecordIOError, match=r"b\.m\.rec, .* 9 x 8 pixels.* 9 x 9"):
            data[1]
        with pytest.raises(recordio.RecordIOError, match=r"b\.m\.rec"):
            data[2]
        data = ImageRecordDataset(tmp_path / "b.rec", fields={"meta": Json()}, **augmentation)
        with pytest.raises(FieldError, match=r"b\.meta\.rec, .*content of field meta is no JSON"):
            data[1]
        assert data[2][1] == 1 and data[0][1] == {}
    write_pack(tmp_path / "b.m.rec", [masks[0][1]], [0.0], ids=[2], keys=[2])
    with pytest.raises(FieldError, match="no record with the key 0"):
        ImageRecordDataset(tmp_path / "b.rec", fields={"m": Mask()})


# -- as samples -----------------------------------------------------------------------------------


def test_samples_see_fields_with_what_is_known_of_them(path):
    fields = {"same": Mask(), "points": Keypoints(), "crop": Crop()}
    d = Dataset(ImageRecordDataset(path, fields=fields, **AUGMENTATION))
    assert d._fields == ("input", "same", "points", "crop", "target")
    known = fields_meta(d)
    assert known["input"]["shape"] == (3, 32, 36) and known["input"]["layout"] == "CHW"
    same = {"kind": "mask", "ignore": 7, "classes": {0: "ground"}, "field": Mask()}
    assert known["same"] == same
    assert known["points"]["swap"] == ((0, 1),) and known["crop"]["kind"] == "crop"
    assert d[3].same._meta["kind"] == d[1:4].same._meta["kind"] == "mask"
    image, mask, *_ = ImageRecordDataset(path, fields=fields, **AUGMENTATION)[3]
    np.testing.assert_array_equal(d[3].input(), image)
    np.testing.assert_array_equal(d.same[2:5]()[1], mask)
    assert Dataset(ImageRecordDataset(path), {"y": 1})._fields == ("y",)
    batch = concat_examples([d[0], d[3]])
    np.testing.assert_array_equal(batch[1][1], mask)


def test_a_loader_over_samples(path):
    torch = pytest.importorskip("torch")
    data = ImageRecordDataset(path, fields={"same": Mask()}, **AUGMENTATION)
    loader = torch.utils.data.DataLoader(Dataset(data), batch_size=4)
    images, masks, _ = next(iter(loader))
    np.testing.assert_array_equal(images[2], data[2][0])
    np.testing.assert_array_equal(masks[2], data[2][1])


@pytest.mark.parametrize("augmentation", [{}, AUGMENTATION])
def test_samples_are_shown(path, augmentation):
    fields = {"same": Mask(), "points": Keypoints(), "boxes": Boxes(), "caption": Text()}
    sources = [ImageRecordDataset(path, fields=f, **augmentation) for f in (fields, None)]
    for source in sources if augmentation else []:
        source.set_epoch(0)  # all of it is shown twice
    d, plain = map(Dataset, sources)
    images, everything = np.asarray(show(d.input)), np.asarray(show(d))
    assert (images != everything[: len(images), : images.shape[1]]).mean() > 0.01
    np.testing.assert_array_equal(np.asarray(show(plain.input)), images)
    assert np.asarray(show(plain)).size > images.size  # labels stand below
    assert np.asarray(show(d.same[1:3])).any()
    assert show(d[2], columns=1).size[0] < show(d).size[0]
    assert show(d[2].input).size
    with pytest.raises(ValueError, match="has no image and no mask"):
        show(d.caption)
    with pytest.raises(ValueError, match="give the kind of each"):
        show(d, fields=["same"])


def test_arrays_are_shown_as_samples():
    pixels = np.zeros((3, 20, 24, 3), np.uint8)
    pixels[:, 4:9] = 200
    masks = (pixels[..., 0] > 0).astype(np.uint8)
    meta = {"input": {"layout": "HWC"}, "mask": {"kind": "mask"}}
    d = Dataset({"input": pixels, "mask": masks}, fields_meta=meta)
    assert (np.asarray(show(d)) != np.asarray(show(d.input))).any()
    assert show(Dataset(pixels.transpose(0, 3, 1, 2))).size == show(d.input).size


def test_fields_on_a_server(path, tmp_path):
    pytest.importorskip("obstore")
    server = RangeServer()
    try:
        for file in path.parent.glob("a.*"):
            if file.suffix in (".rec", ".idx", ".json"):
                server.objects[file.name] = file.read_bytes()
        url, cache = f"{server.url}/a.rec", {"remote_cache": str(tmp_path / "mirrors")}
        fields = {"same": None, "caption": None, "points": Keypoints(most=2)}
        for augmentation in ({}, AUGMENTATION):
            local = ImageRecordDataset(path, fields=fields, **augmentation)
            data = ImageRecordDataset(url, fields=fields, **cache, **augmentation)
            assert len(data.source.files[0].field_names) == 7  # the server lists no files
            for example, expected in zip(data[:], local[:], strict=True):
                for one, other in zip(example, expected, strict=True):
                    equal(one, other)
        with pytest.raises(ValueError, match="points lies on a server, .* give it most"):
            ImageRecordDataset(url, fields={"points": Keypoints()}, **cache)
        server.objects["a.fields.json"] = b"{"
        with pytest.raises(FieldError, match="it is no JSON"):
            ImageRecordDataset(url, fields=["same"], remote_cache=str(tmp_path / "others"))
    finally:
        server.stop()
