"""Batches with fields further on: mixed, shown, in a form, in a loader, on a device."""

import io
import tarfile

import cv2
import numpy as np
import pytest

import recordio
from iterators import (
    CompositeSpace,
    Conv2DSpace,
    DataBatch,
    ImageRecordIter,
    MixBatches,
    VectorSpace,
    show,
)
from iterators.fields import Boxes, Crop, Image, Keypoints, Mask, Size, Text
from iterators.testing import write_pack
from recordio.errors import FieldError
from recordio.packs.fields_meta import FieldMeta, format_fields

COUNT = 8


def write(prefix, records):
    labels, contents = zip(*records, strict=True)
    write_pack(f"{prefix}.rec", contents, labels)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("batches"), np.random.default_rng(0)
    values = [rng.integers(0, 200, (48, 60), np.uint8) for _ in range(COUNT)]
    images = [cv2.imencode(".png", np.repeat(v[..., None], 3, 2))[1].tobytes() for v in values]
    masks = []
    for number in range(COUNT):
        mask = np.zeros((48, 60), np.uint8)
        mask[10:40, 12:40] = 1 + number % 3
        masks.append(cv2.imencode(".png", mask)[1].tobytes())
    write(folder / "a", [(float(i % 4), data) for i, data in enumerate(images)])
    write(folder / "a.same", [(0.0, cv2.imencode(".png", v)[1].tobytes()) for v in values])
    write(folder / "a.mask", [(0.0, data) for data in masks])
    write(folder / "a.after", [(0.0, data) for data in images])
    write(folder / "a.points", [([2, 6, 0.4, 0.5, 2, 0.5, 0.5, 1], b"")] * COUNT)
    write(folder / "a.boxes", [([2, 5, 1, 0.2, 0.2, 0.7, 0.85], b"")] * COUNT)
    write(folder / "a.caption", [(0.0, f"number {i}".encode()) for i in range(COUNT)])
    return folder / "a.rec"


def provider(path, fields, **keywords):
    keywords = {"data_shape": (3, 40, 44), "batch_size": 4, "rand_crop": True, **keywords}
    return ImageRecordIter(path_imgrec=path, fields=fields, **keywords)


def test_cutmix_cuts_masks_and_images_as_the_image(path):
    fields = {"same": Mask(), "after": Image()}
    with MixBatches(provider(path, fields), cutmix=1.0) as batches:
        cut = 0
        for batch in batches:
            np.testing.assert_array_equal(batch["same"], batch["data"][:, 0])
            np.testing.assert_array_equal(batch["after"], batch["data"])
            cut += int((batch.label[2] < 1).any())
    assert cut


def test_mixup_adds_images_alone(path):
    with MixBatches(provider(path, {"after": Image()}), mixup=0.5) as batches:
        for batch in batches:
            np.testing.assert_array_equal(batch["after"], batch["data"])


@pytest.mark.parametrize(
    ("name", "kind", "how", "message"),
    [
        ("same", Mask(), "mixup", "a sum of two masks is none"),
        ("same", Mask(dtype="float32"), "mixup", "a sum of two masks is none"),
        ("after", Image(dtype="uint8"), "mixup", "integers cannot be added"),
        ("points", Keypoints(), "cutmix", "two samples have no Keypoints together"),
        ("boxes", Boxes(), "mixup", "two samples have no Boxes together"),
        ("caption", Text(), "cutmix", "two samples have no Text together"),
        ("crop", Crop(), "mixup", "two samples have no Crop together"),
    ],
)
def test_what_makes_no_mixture_is_refused(path, name, kind, how, message):
    with provider(path, {name: kind}) as inside, pytest.raises(ValueError, match=message):
        MixBatches(inside, **{how: 0.5})


def test_a_form_names_image_mask_and_points(path):
    spaces = CompositeSpace(
        [
            Conv2DSpace((40, 44), num_channels=3, axes=("b", 0, 1, "c")),
            VectorSpace(40 * 44, dtype="float32"),
        ]
    )
    specs = spaces, ("features", "mask")
    with provider(path, {"mask": Mask(), "caption": Text()}, data_specs=specs) as batches:
        with provider(path, {"mask": Mask()}) as plain:
            for batch, other in zip(batches, plain, strict=True):
                images, masks = batch
                np.testing.assert_array_equal(images.transpose(0, 3, 1, 2), other["data"])
                np.testing.assert_array_equal(masks, other["mask"].reshape(4, -1))
                assert len(batch["caption"]) == 4


def test_fields_follow_a_shape_that_is_drawn_for_each_batch(path):
    shapes = [(3, 24, 32), (3, 40, 44), (3, 30, 20)]
    with provider(
        path, {"same": Mask(), "points": Keypoints()}, data_shape=shapes, dtype="uint8"
    ) as batches:
        met = set()
        for _ in range(6):
            for batch in batches:
                np.testing.assert_array_equal(batch["same"], batch["data"][:, 0])
                met.add(batch["same"].shape[1:])
    assert len(met) == 3


def test_pictures_show_fields(path):
    fields = {
        "mask": Mask(),
        "points": Keypoints(packed=True),
        "boxes": Boxes(format="cxcywh"),
        "caption": Text(),
        "size": Size(),
    }
    with provider(path, None) as plain, provider(path, fields) as batches:
        without, sheet = np.asarray(plain.show()), np.asarray(batches.show())
        assert without.shape == sheet.shape and (without != sheet).mean() > 0.1
        batch = batches.next()
        assert np.asarray(batches.show(batch)).shape == sheet.shape
        # Without its provider: the batch knows what its fields are, and the title alone differs.
        np.testing.assert_array_equal(np.asarray(show(batch))[24:], sheet[24:])
        assert batch.kinds == fields and "<img" in batch._repr_html_()
        copied = DataBatch(batch.data, batch.label, provide_data=batch.provide_data)
        copied.fields = batch.fields
        bare = np.asarray(show(copied))[24:]
        np.testing.assert_array_equal(bare, np.asarray(plain.show())[24:])
        np.testing.assert_array_equal(np.asarray(show(copied, fields=fields))[24:], sheet[24:])
        for odd, error in (({"size": Mask()}, ValueError), ({"none": Mask()}, KeyError)):
            with pytest.raises(error):
                show(copied, fields=odd)
        with pytest.raises(ValueError, match="give the kind of each"):
            show(copied, fields=["mask"])
    with provider(path, {"mask": Mask()}, views=[{}, {}]) as views:
        views.show()


def test_pictures_have_names_and_skeletons_of_the_pack(path, tmp_path):
    for file in path.parent.glob("a.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    fields = {"points": Keypoints(), "boxes": Boxes()}
    with provider(tmp_path / "a.rec", fields, rand_crop=False) as batches:
        plain = np.asarray(batches.show(classes={}))
        named = np.asarray(batches.show(classes={1: "tree"}))
    described = {
        "points": FieldMeta(kind="keypoints", points=["a", "b"], skeleton=[(0, 1)]),
        "boxes": FieldMeta(kind="boxes", classes={1: "tree"}),
    }
    (tmp_path / "a.fields.json").write_bytes(format_fields(described))
    with provider(tmp_path / "a.rec", fields, rand_crop=False) as batches:
        sheet = np.asarray(batches.show(classes={}))
    assert (sheet != plain).any() and (sheet != named).any()  # with a name, and a line
    assert (sheet != plain).sum() > (named != plain).sum() * 0.5


def test_a_loader_gives_fields_between_images_and_labels(path):
    torch = pytest.importorskip("torch")
    from iterators.torch import ImageLoader

    keywords = {"batch_size": 4, "data_shape": (3, 40, 44), "rand_crop": True}
    fields = {"mask": Mask(), "points": Keypoints()}
    with ImageLoader(str(path), fields=fields, **keywords) as loader:
        for images, masks, points, labels in loader:
            assert images.shape == (4, 3, 40, 44) and masks.shape == (4, 40, 44)
            assert points.shape == (4, 1, 2, 3) and labels.dtype == torch.int64
    packed = {"points": Keypoints(packed=True)}
    with ImageLoader(str(path), fields=packed, **keywords) as loader:
        with pytest.raises(ValueError, match="packed fields have no axis of samples"):
            next(iter(loader))


def test_iterators_of_other_forms_refuse_lists(path):
    with provider(path, {"caption": Text()}) as batches:
        with pytest.raises(ValueError, match="is a list, and batches of chosen samples"):
            batches.iterator("sequential")


def test_tensors_and_normalisation_on_a_device(path):
    torch = pytest.importorskip("torch")
    fields = {"same": Mask(), "after": Image(), "points": Keypoints(packed=True)}
    keywords = {"device": "cpu", "normalise_on": "device", "mean_r": 3, "std_g": 2}
    with provider(path, fields, **keywords) as batches:
        batch = batches.next()
        assert batch["same"].dtype == torch.uint8 and batch["points_offsets"].dtype == torch.int64
        assert torch.equal(batch["after"], batch["data"])
        assert torch.equal(batch["same"].float() - 3, batch["data"][:, 0])
        assert {d.name: d.dtype.name for d in batches.provide_data}["after"] == "float32"


def test_weights_and_parts_keep_fields_with_their_images(path):
    parts = []
    for part in range(2):
        keywords = {"num_parts": 2, "part_index": part, "shuffle": True, "dtype": "uint8"}
        with provider(path, {"same": Mask()}, **keywords) as b:
            for batch in b:
                np.testing.assert_array_equal(batch["same"], batch["data"][:, 0])
                parts += batch.index.tolist()
    assert sorted(parts) == list(range(COUNT))
    with provider(
        path, {"same": Mask()}, weights={0: 1.0, 1: 0, 2: 0, 3: 2.0}, dtype="uint8"
    ) as batches:
        for batch in batches:
            np.testing.assert_array_equal(batch["same"], batch["data"][:, 0])
            assert set(batch.label[0]) <= {0, 3}


def test_a_record_that_a_field_lacks_is_a_bad_record(path, tmp_path):
    with recordio.RecordReader(path) as reader:
        contents = [recordio.unpack(bytes(record))[1] for record in reader]
    with recordio.RecordReader(path.with_name("a.same.rec")) as reader:
        masks = [recordio.unpack(bytes(record))[1] for record in reader]
    write(tmp_path / "a", [(float(i), data) for i, data in enumerate(contents)])
    keys = (7, 0, 5, 1, 6, 2, 4)  # in another order, and without 3
    write_pack(tmp_path / "a.same.rec", [masks[k] for k in keys], [0] * 7, ids=keys, keys=keys)
    pack = tmp_path / "a.rec"
    with pytest.raises(FieldError, match="no record with the key 3"):
        provider(pack, {"same": Mask()})
    with provider(pack, {"same": Mask()}, on_error="skip", dtype="uint8") as batches:
        for batch in batches:
            np.testing.assert_array_equal(batch["same"], batch["data"][:, 0])
        assert [number for number, _ in batches.skipped] == [3]


def test_files_of_one_stem_in_a_tar_are_fields(path, tmp_path):
    with recordio.RecordReader(path) as reader:
        contents = [recordio.unpack(bytes(record))[1] for record in reader]
    with recordio.RecordReader(path.with_name("a.same.rec")) as reader:
        masks = [recordio.unpack(bytes(record))[1] for record in reader]
    with tarfile.open(tmp_path / "set.tar", "w") as file:
        for number, (image, mask) in enumerate(zip(contents, masks, strict=True)):
            files = {"png": image, "cls": b"1", "mask.png": mask, "txt": b"number %d" % number}
            for suffix, content in files.items():
                member = tarfile.TarInfo(f"{number:03}.{suffix}")
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))
    fields = {"mask": Mask(), "txt": Text()}
    with provider(tmp_path / "set.tar", fields, dtype="uint8") as batches:
        texts = []
        for batch in batches:
            np.testing.assert_array_equal(batch["mask"], batch["data"][:, 0])
            texts += batch["txt"]
    assert texts == [f"number {i}" for i in range(COUNT)]
