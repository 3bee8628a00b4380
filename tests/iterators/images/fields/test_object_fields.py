"""Key points, boxes, texts, crops and sizes: where the pixels that they belong to are."""

import json

import cv2
import numpy as np
import pytest

import recordio
from iterators import ImageDetRecordIter, ImageRecordIter
from iterators.fields import Boxes, Crop, Json, Keypoints, Mask, Size, Text
from iterators.images.fields.payload_fields import scan_objects
from iterators.images.sources.record_source import RecordSource
from iterators.testing import write_pack
from recordio import IRHeader
from recordio.errors import FieldError, LabelError

COUNT, POINTS = 14, 4


def write(prefix, records):
    """Records of labels and contents."""
    labels, contents = zip(*records, strict=True)
    write_pack(f"{prefix}.rec", contents, labels)


def marked(rng):
    """An image whose values say where its pixels are: x in red and y in green."""
    height, width = rng.integers(40, 90, 2)
    image = np.zeros((height, width, 3), np.uint8)
    image[..., 0], image[..., 1], image[..., 2] = np.arange(width), np.arange(height)[:, None], 9
    return image


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("objects"), np.random.default_rng(3)
    images = [marked(rng) for _ in range(COUNT)]
    encoded = [cv2.imencode(".png", image[..., ::-1])[1].tobytes() for image in images]
    write(folder / "a", [(float(i), data) for i, data in enumerate(encoded)])
    points, boxes = [], []
    for number, image in enumerate(images):
        height, width = image.shape[:2]
        own = []
        for _ in range(number % 3):
            xy = rng.integers(0, (width, height), (POINTS, 2)) + 0.5
            own += np.c_[xy / (width, height), rng.integers(0, 3, POINTS)].ravel().tolist()
        points.append(([2, 3 * POINTS, *own], b""))
        own = []
        for kind in range(number % 4):
            low = rng.uniform(0, 0.6, 2)
            own += [kind, *low, *(low + rng.uniform(0.1, 0.4, 2))]
        boxes.append(([2, 5, *own], b""))
    write(folder / "a.points", points)
    write(folder / "a.boxes", boxes)
    captions = ["one", "eins\nzwei\ndrei", "", "ä line\n", "a\n\nb"]
    write(folder / "a.caption", [(0.0, captions[i % 5].encode()) for i in range(COUNT)])
    write(folder / "a.meta", [(0.0, json.dumps({"key": i}).encode()) for i in range(COUNT)])
    write(folder / "boxes", [([2, 5, 7, 0.1, 0.2, 0.7, 0.9] * 1, data) for data in encoded])
    write(folder / "empty", [(float(i), data) for i, data in enumerate(encoded)])
    write(folder / "empty.boxes", [([2, 5], b"")] * COUNT)
    return folder


FIELDS = {
    "points": Keypoints(swap=[(0, 1)]),
    "boxes": Boxes(),
    "caption": Text(),
    "meta": Json(),
    "crop": Crop(),
    "size": Size(),
}
CROPS = {"rand_crop": True, "rand_mirror": True, "flip_p": 0.3, "shuffle": True, "dtype": "uint8"}


def provider(pack, name="a", **keywords):
    keywords = {"data_shape": (3, 32, 36), "batch_size": 5, "fields": FIELDS, **keywords}
    return ImageRecordIter(path_imgrec=pack / f"{name}.rec", **keywords)


def stored(pack, name):
    with recordio.RecordReader(pack / f"{name}.rec") as reader:
        return [recordio.unpack(bytes(record)) for record in reader]


def test_points_lie_on_their_pixels(pack):
    """Red and green of the pixel under a point say which one it was."""
    labels = [header.label for header, _ in stored(pack, "a.points")]
    seen = hidden = 0
    with provider(pack, **CROPS) as batches:
        desc = {d.name: d.shape for d in batches.provide_data}
        assert desc["points"] == (5, 2, POINTS, 3)
        for batch in [batch for _ in range(5) for batch in batches]:
            for slot in range(batch.count_samples()):
                size = batch["size"][slot]
                label = labels[int(batch.index[slot])]
                whole = label[2:].reshape(-1, POINTS, 3)
                found = batch["points"][slot]
                assert (found[len(whole) :] == -1).all()
                left, top, width, height = batch["crop"][slot]
                image = batch["data"][slot]
                mirrored = image[0, 0, 0] > image[0, 0, 1]
                flipped = image[1, 0, 0] > image[1, 1, 0]
                order = [1, 0, 2, 3] if mirrored != flipped else [0, 1, 2, 3]
                for instance, own in zip(whole[:, order], found, strict=False):
                    for (x, y, v), (at_x, at_y, state) in zip(instance, own, strict=True):
                        x, y = x * size[0], y * size[1]
                        if v == 0:
                            assert (at_x, at_y, state) == (0, 0, 0)
                            continue
                        inside = left <= x < left + width and top <= y < top + height
                        assert state == (v if inside else 0)
                        hidden += not inside
                        if inside:
                            seen += 1
                            pixel = image[:, int(at_y), int(at_x)]
                            assert tuple(pixel[:2]) == (int(x), int(y))
    assert seen > 20 and hidden > 5


EDGES = [(0, 0), (0, 12.5), (5, 0), (12.5, 12.5), (25, 25), (25, 0)]


def points_of(folder, points, **keywords):
    """What is seen of the points of a black image of 25 pixels a side."""
    image = cv2.imencode(".png", np.zeros((25, 25, 3), np.uint8))[1].tobytes()
    write(folder / "a", [(0.0, image)])
    label = [value for x, y in points for value in (x / 25, y / 25, 2)]
    write(folder / "a.points", [([2, 3 * len(points), *label], b"")])
    keywords = {"data_shape": (3, 25, 25), "batch_size": 1, **keywords}
    with provider(folder, fields={"points": Keypoints()}, **keywords) as batches:
        return next(iter(batches))["points"][0, 0, :, 2].tolist()


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"mirror": True},
        {"flip_p": 1.0},
        {"steps": ["hflip"]},
        {"steps": ["vflip", "hflip", "hflip"]},
        {"rotation": (180, 180)},
        {"steps": [{"op": "rotate", "degrees": (180, 180)}]},
        {"steps": [{"op": "rotate", "degrees": (90, 90)}]},
        {"resize": 50, "data_shape": (3, 50, 50)},
        {"pad": 3, "data_shape": (3, 31, 31)},
    ],
)
def test_points_on_the_edge_are_seen(tmp_path, keywords):
    assert points_of(tmp_path, EDGES, **keywords) == [2] * len(EDGES)


def test_points_outside_by_a_hundredth_of_a_pixel_are_hidden(tmp_path):
    assert points_of(tmp_path, [(-0.01, 12), (25.01, 12), (12, 12)], mirror=True) == [0, 0, 2]


def test_boxes_are_the_seen_parts(pack):
    labels = [header.label for header, _ in stored(pack, "a.boxes")]
    kept = 0
    with provider(pack, **CROPS) as batches:
        for batch in batches:
            for slot in range(batch.count_samples()):
                left, top, width, height = batch["crop"][slot]
                size = np.tile(batch["size"][slot], 2)
                whole = labels[int(batch.index[slot])][2:].reshape(-1, 5)
                expected = []
                image = batch["data"][slot]
                for kind, *corners in whole:
                    x1, y1, x2, y2 = corners * size - np.tile((left, top), 2)
                    if image[0, 0, 0] > image[0, 0, 1]:
                        x1, x2 = width - x2, width - x1
                    if image[1, 0, 0] > image[1, 1, 0]:
                        y1, y2 = height - y2, height - y1
                    box = np.clip((x1, y1, x2, y2), 0, (width, height, width, height))
                    if (box[2:] > box[:2]).all():
                        expected.append((kind, *box))
                found = batch["boxes"][slot]
                kept += len(expected)
                np.testing.assert_allclose(found[: len(expected)], expected, atol=1e-3) if (
                    expected
                ) else None
                assert (found[len(expected) :] == -1).all()
    assert kept > 5


@pytest.mark.parametrize("format", ["xyxy", "xywh", "cxcywh"])
def test_packed_objects_are_the_padded_ones(pack, format):
    many = {"boxes": Boxes(format=format), "points": Keypoints()}
    few = {"boxes": Boxes(format=format, packed=True), "points": Keypoints(packed=True)}
    turned = {"rotation": 30, "resample": "pillow", "resize": 40, **CROPS}
    with (
        provider(pack, fields=many, **turned) as padded,
        provider(pack, fields=few, **turned) as packed,
    ):
        assert [d.name for d in packed.provide_data] == [
            "data", "boxes", "boxes_offsets", "points", "points_offsets",
        ]  # fmt: skip
        for one, other in zip(padded, packed, strict=True):
            for name in few:
                offsets = other[f"{name}_offsets"]
                assert offsets[0] == 0 and offsets[-1] == len(other[name])
                for slot, (first, last) in enumerate(zip(offsets, offsets[1:], strict=False)):
                    own = one[name][slot]
                    np.testing.assert_array_equal(own[: last - first], other[name][first:last])
                    assert (own[last - first :] == -1).all()
        with pytest.raises(ValueError, match="packed fields have no axis of samples"):
            packed.iterator(batch_size=2)


def test_boxes_are_around_the_pixels_of_turned_images(pack, tmp_path):
    """A mask of the box, turned as well, lies in its box and touches the edges."""
    write(tmp_path / "a", [(0.0, content) for _, content in stored(pack, "a")])
    masks, boxes = [], []
    for _, content in stored(pack, "a"):
        height, width = cv2.imdecode(np.frombuffer(content, np.uint8), 0).shape
        mask = np.zeros((height, width), np.uint8)
        mask[height // 4 : height // 2, width // 4 : width // 2] = 1
        masks.append((0.0, cv2.imencode(".png", mask)[1].tobytes()))
        corners = width // 4 / width, height // 4 / height
        boxes.append(([2, 5, 0, *corners, width // 2 / width, height // 2 / height], b""))
    write(tmp_path / "a.mask", masks)
    write(tmp_path / "a.boxes", boxes)
    how = {"rotation": 45, "perspective": 0.4, "resample": "pillow", "resize": 44, **CROPS}
    fields, met = {"mask": Mask(), "boxes": Boxes()}, 0
    with provider(tmp_path, fields=fields, **how) as batches:
        for _ in range(6):
            for batch in batches:
                for mask, box in zip(batch["mask"], batch["boxes"], strict=True):
                    rows, columns = np.nonzero(mask == 1)
                    if box[0, 0] < 0:
                        assert len(rows) < 4
                        continue
                    if len(rows) < 20:
                        continue
                    met += 1
                    found = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
                    assert np.abs(box[0, 1:5] - found).max() < 2.6
    assert met > 30


def test_a_share_or_the_centre_decides_which_boxes_stay(pack):
    kept = {}
    for name, box in {
        "all": Boxes(),
        "half": Boxes(min_overlap=0.5),
        "center": Boxes(emit="center"),
    }.items():
        with provider(pack, fields={"boxes": box}, **CROPS) as batches:
            kept[name] = sum(int((batch["boxes"][..., 0] >= 0).sum()) for batch in batches)
    assert kept["all"] > max(kept["half"], kept["center"]) > 0


def test_texts_are_lists(pack):
    with provider(pack, fields={"caption": Text(), "meta": Json()}) as batches:
        assert [d.name for d in batches.provide_data] == ["data"]
        batch = batches.next()
        assert batch["caption"] == ["one", "eins\nzwei\ndrei", "", "ä line\n", "a\n\nb"]
        assert batch["meta"] == [{"key": i} for i in range(5)]
        assert batches.get(batch, "caption") is batch["caption"]
        with pytest.raises(KeyError, match="caption, meta"):
            batch["nothing"]
    with provider(pack, fields={"caption": Text(line="first")}) as batches:
        assert batches.next()["caption"] == ["one", "eins", "", "ä line", "a"]
    with provider(pack, fields={"caption": Text(line="random")}) as batches:
        lines = [{batch["caption"][1] for batch in [next(iter(batches))]} for _ in range(30)]
        assert set.union(*lines) == {"eins", "zwei", "drei"}
        again = [batch["caption"] for batch in batches]
    with provider(pack, fields={"caption": Text(line="random")}, epoch=30) as batches:
        assert [batch["caption"] for batch in batches] == again


def test_crops_are_those_of_the_image(pack):
    fields = {"crop": Crop(), "size": Size()}
    how = {"random_resized_crop": True, "min_random_area": 0.2, "inter_method": 1}
    with provider(pack, fields=fields, scaled_decode=False, **how) as batches:
        batch = batches.next()
    for image, (left, top, width, height), size in zip(
        batch["data"], batch["crop"], batch["size"], strict=True
    ):
        assert abs(image[0].min() - left) <= 1 and abs(image[0].max() - (left + width - 1)) <= 1
        assert abs(image[1].min() - top) <= 1 and abs(image[1].max() - (top + height - 1)) <= 1
        assert left + width <= size[0] and top + height <= size[1]


def test_detection_images_have_the_boxes_of_their_labels(pack):
    keywords = {
        "data_shape": (3, 40, 48), "batch_size": 4, "rand_mirror_prob": 0.5, "rand_crop_prob": 0.8,
        "num_crop_sampler": 1, "min_crop_scales": 0.3, "rand_pad_prob": 0.5, "max_pad_scale": 2,
        "resize_mode": "fit", "path_imgrec": pack / "boxes.rec",
    }  # fmt: skip
    fields = {"boxes": Boxes(packed=True)}
    for mosaic in (0.0, 0.7):
        with ImageDetRecordIter(**keywords, fields=fields, mosaic=mosaic) as batches:
            for batch in batches:
                expected = []
                for row in batch.label[0]:
                    for kind, *corners in recordio.boxes_of(row, in_batch=True):
                        expected.append((kind, *np.multiply(corners, np.tile(row[2:0:-1], 2))))
                np.testing.assert_allclose(batch["boxes"], expected, rtol=1e-6)
                assert len(batch["boxes_offsets"]) == 5
    with pytest.raises(ValueError, match="only the boxes in the labels"):
        ImageDetRecordIter(**keywords, fields={"crop": Crop()}, mosaic=0.5)


def test_images_without_objects_have_none(pack):
    for packed in (False, True):
        with provider(pack, "empty", fields={"boxes": Boxes(packed=packed)}) as batches:
            boxes = batches.next()["boxes"]
            assert (boxes == -1).all() and boxes.shape == ((0, 5) if packed else (5, 1, 5))


def test_bad_objects_and_texts_are_bad_records(pack, tmp_path):
    write(tmp_path / "a", [(0.0, content) for _, content in stored(pack, "a")])
    bad = [([2, 5, 0, 0.1, 0.1, 0.5, 0.5] * 1, b"")] * COUNT
    bad[2] = ([2, 5, 0, 0.1, 0.1, 0.5], b"")
    bad[4] = (3.0, b"")
    bad[6] = ([2, 5, 0, 0.1, 0.1, float("nan"), 0.5], b"")
    bad[8] = ([2, 6, 0, 0.1, 0.1, 0.4, 0.5, 9], b"")
    bad[9] = ([2, 5, *[0, 0.1, 0.1, 0.5, 0.5] * 4], b"")
    write(tmp_path / "a.boxes", bad)
    texts = [(0.0, b'{"a": 1}')] * COUNT
    texts[1], texts[3] = (0.0, b"\xff"), (0.0, b"{")
    write(tmp_path / "a.meta", texts)
    fields = {"boxes": Boxes(most=3), "meta": Json()}
    with provider(tmp_path, fields=fields, batch_size=1) as batches:
        messages = {}
        for number in range(COUNT):
            try:
                batches.next()
            except (LabelError, FieldError) as error:
                assert error.record == number
                messages[number] = str(error)
    assert sorted(messages) == [1, 2, 3, 4, 6, 8, 9]
    for number, text in {
        1: "is no UTF-8", 2: "no whole number of objects", 3: "is no JSON",
        4: "no vector of labels", 6: "not a finite number", 8: "6 values, and those of others 5",
        9: "4 objects, and most=3",
    }.items():  # fmt: skip
        assert text in messages[number]
    with provider(tmp_path, fields=fields, on_error="skip") as batches:
        for batch in batches:
            assert batch["meta"] == [{"a": 1}] * 5 and (batch["boxes"][:, 0, 0] == 0).all()
        assert len(batches.skipped) == 7


def test_headers_are_counted(pack):
    assert scan_objects(RecordSource.open(pack / "a.points.rec").bytes_source(), 3) == (12, 2)
    assert scan_objects(RecordSource.open(pack / "a.boxes.rec").bytes_source(), 5) == (5, 3)
    assert scan_objects(RecordSource.open(pack / "a.rec").bytes_source(), 5) == (0, 0)


def test_labels_without_objects_state_their_width(tmp_path):
    with recordio.RecordWriter(tmp_path / "a.rec") as writer:
        for label in ([2, 9], [2, 6], [2, 6, *[0.5, 0.5, 2] * 2]):
            writer.write(recordio.pack(IRHeader(0, label, 0, 0), b""))
    source = RecordSource.open(tmp_path / "a.rec").bytes_source()
    assert scan_objects(source, 3) == (6, 1) and scan_objects(source, 3, 2) == (9, 0)


def test_an_epoch_is_the_same_with_any_threads_and_resumed(pack):
    def content(batches):
        return [
            [*(array.tobytes() for array in batch.data), batch["caption"], batch["meta"]]
            for batch in batches
        ]

    fields = {**FIELDS, "caption": Text(line="random")}
    keywords = {**CROPS, "fields": fields}
    with provider(pack, **keywords, preprocess_threads=1) as batches:
        whole = content(batches) + content(batches)
    with provider(pack, **keywords, preprocess_threads=3) as batches:
        first = content([batches.next()])
        state = batches.state_dict()
    with provider(pack, **keywords) as batches:
        batches.load_state_dict(state)
        assert first + content(batches) + content(batches) == whole


def test_views_have_their_own_points(pack):
    with provider(pack, views=[{}, {"data_shape": (3, 20, 24)}], **CROPS) as batches:
        batch = batches.next()
    assert batch["points0"].shape == batch["points1"].shape == (5, 2, POINTS, 3)
    assert batch["size"].shape == (5, 2) and len(batch["caption"]) == 5
    assert (batch["crop1"][:, 2:] == (24, 20)).all()


def test_what_cannot_be_is_refused(pack):
    with pytest.raises(ValueError, match="a point is in one pair at most"):
        Keypoints(swap=[(0, 1), (1, 2)])
    with pytest.raises(ValueError, match="there are 4 key points"):
        provider(pack, fields={"points": Keypoints(swap=[(0, 4)])})
    with pytest.raises(FieldError, match="no such field|no field|nothing"):
        provider(pack, fields={"nothing": Text()})
