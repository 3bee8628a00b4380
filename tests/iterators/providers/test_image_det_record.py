"""`ImageDetRecordIter`: batches of MXNet 1.9.1, boxes that follow their pixels, and bad labels."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

import recordio
from iterators import (
    CompositeSpace,
    Conv2DSpace,
    ImageDetRecordIter,
    IndexSpace,
    SpecError,
    VectorSpace,
)
from iterators.images.augment.mean_image import read_mean_image, write_mean_image
from iterators.testing import box_label, copies, encode, maker, same, samples, write_rows
from recordio.errors import ImageDecodeError, LabelError, RecordHeaderError

torch = pytest.importorskip("torch")

GOLDEN = Path(__file__).parents[2] / "golden"
CASES = json.loads((GOLDEN / "det_cases.json").read_text())
BOXES = GOLDEN / "det_boxes.rec"

HEIGHT, WIDTH = 200, 240
EVERYTHING = {
    "rand_crop_prob": 0.7,
    "num_crop_sampler": 2,
    "min_crop_scales": 0.4,
    "max_crop_scales": 0.95,
    "min_crop_aspect_ratios": 0.6,
    "max_crop_aspect_ratios": 1.6,
    "min_crop_object_coverages": (0, 0.5),
    "rand_pad_prob": 0.5,
    "max_pad_scale": 2.5,
    "rand_mirror_prob": 0.5,
    "fill_value": 0,
}


provider_of = maker(ImageDetRecordIter, data_shape=(3, 60, 50), batch_size=4, preprocess_threads=2)


def objects_of(row):
    """Objects of a row of the label array, header width 2."""
    return row[6 : 4 + int(row[3])].reshape(-1, int(row[5]))


def coordinates():
    """Red tells the column, green the row, blue that this is the image and no border."""
    image = np.full((HEIGHT, WIDTH, 3), 200, np.uint8)
    image[..., 0] = np.arange(WIDTH)
    image[..., 1] = np.arange(HEIGHT)[:, None]
    return image


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """30 records with 1 to 3 boxes on an image whose pixels tell their place."""
    rng = np.random.default_rng(3)
    content = encode(coordinates())
    records = []
    for i in range(30):
        objects = []
        for number in range(1 + i % 3):
            low = rng.uniform(0, 0.6, 2)
            high = np.minimum(low + rng.uniform(0.2, 0.6, 2), 1)
            objects.append([number, *low, *high])
        records.append((100 + i, box_label(*objects), content))
    return write_rows(tmp_path_factory.mktemp("det") / "boxes.rec", records)


def source_boxes(path):
    """Record id -> objects as they are stored."""
    boxes = {}
    with recordio.RecordReader(path) as reader:
        for record in reader:
            header, _ = recordio.unpack(record)
            boxes[header.id] = np.asarray(header.label)[2:].reshape(-1, 5)
    return boxes


# -- MXNet ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:mean_r=-10")
@pytest.mark.parametrize("name", CASES)
def test_a_batch_is_that_of_mxnet(name):
    with provider_of(BOXES, **({"batch_size": 3} | CASES[name])) as provider:
        (batch,) = provider
    with np.load(GOLDEN / "det_batches.npz") as expected:
        assert np.array_equal(batch.data[0], expected[f"{name}/data"].astype(np.float32))
        # The only place of a crop that is as large as the image is drawn from a few millionths.
        tolerance = 1e-5 if name == "tight_crop" else 0
        assert np.abs(batch.label[0] - expected[f"{name}/label"]).max() <= tolerance
    assert batch.index.tolist() == [10, 11, 12]


def test_the_arrays_are_described():
    with provider_of(BOXES, layout="NHWC", dtype="uint8", label_name="label") as provider:
        (data,), (label,) = provider.provide_data, provider.provide_label
        (batch,) = provider
    assert (data.shape, data.dtype, data.layout) == ((4, 60, 50, 3), np.uint8, "NHWC")
    assert (label.name, label.shape) == ("label", (4, 21))
    assert batch.data[0].shape == data.shape and batch.data[0].dtype == np.uint8
    assert batch.label[0].shape == label.shape and batch.pad == 1
    with provider_of(BOXES, label_name=None) as provider:
        assert provider.provide_label == [] and next(iter(provider)).label == []


# -- boxes and pixels -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["force", "shrink", "fit"])
@pytest.mark.parametrize("resize", [-1, 150, 260])
def test_boxes_stay_on_their_pixels(pack, mode, resize):
    boxes = source_boxes(pack)
    checked = mirrored = cropped = padded = 0
    provider = provider_of(
        pack,
        data_shape=(3, 170, 160),
        resize=resize,
        resize_mode=mode,
        layout="NHWC",
        dtype="uint8",
        round_batch=False,
        **EVERYTHING,
    )
    with provider:
        for batch in [*provider, *provider, *provider]:
            for slot in range(batch.count):
                row, canvas = batch.label[0][slot], batch.data[0][slot].astype(int)
                rows, columns = int(row[1]), int(row[2])
                assert row[0] == 3 and 1 <= rows <= 170 and 1 <= columns <= 160
                assert not canvas[rows:].any() and not canvas[:, columns:].any()
                image = canvas[:rows, :columns]
                inside = image[..., 2] > 190
                where = np.argwhere(inside)
                top, left = where.min(0)
                bottom, right = where.max(0)
                flip = image[top, left, 0] > image[top, right, 0]
                mirrored += flip
                padded += not inside.all()
                original = boxes[int(batch.index[slot])]
                cropped += len(objects_of(row)) < len(original)
                # Source pixels per pixel of the result: how exact a place can be told.
                exact = 2 + 1.5 * max(WIDTH / columns, HEIGHT / rows) * 2.5
                for found in objects_of(row):
                    want = original[int(found[0])] * [1, WIDTH, HEIGHT, WIDTH, HEIGHT]
                    for x, y, source_y in ((1, 2, 2), (3, 4, 4)):
                        source_x = (4 - x) if flip else x
                        column = int(np.clip(found[x] * columns, left, right))
                        line = int(np.clip(found[y] * rows, top, bottom))
                        if 0.001 < found[x] < 0.999:
                            assert abs(image[line, column, 0] - want[source_x]) < exact
                            checked += 1
                        if 0.001 < found[y] < 0.999:
                            assert abs(image[line, column, 1] - want[source_y]) < exact
                            checked += 1
    assert checked > 150 and mirrored > 20 and cropped > 5 and padded > 10


def test_jpeg_gives_what_the_decoded_image_gives(tmp_path, photos):
    """The decoder's regions and scales are no part of the geometry."""
    label = [2, 5, 1, 0.1, 0.1, 0.6, 0.7, 2, 0.5, 0.4, 0.9, 0.95]
    jpegs, decoded = [], []
    for i, photo in enumerate(photos.values()):
        data = cv2.imencode(".jpg", photo[..., ::-1])[1]
        jpegs.append((i, label, data.tobytes()))
        decoded.append((i, label, cv2.imdecode(data, cv2.IMREAD_COLOR)[..., ::-1]))
    first = write_rows(tmp_path / "jpeg.rec", jpegs)
    second = write_rows(tmp_path / "png.rec", decoded)
    for epoch in range(6):
        with provider_of(first, epoch=epoch, inter_method=3, **EVERYTHING) as one:
            with provider_of(second, epoch=epoch, inter_method=3, **EVERYTHING) as other:
                (a,), (b,) = one, other
        assert np.array_equal(a.label[0], b.label[0])
        assert np.abs(a.data[0] - b.data[0]).mean() < 2


def test_the_mirror_is_exact_without_resampling(pack):
    plain = {"data_shape": (3, HEIGHT, WIDTH), "resize_mode": "shrink"}
    with (
        provider_of(pack, **plain) as straight,
        provider_of(pack, rand_mirror_prob=1, **plain) as flipped,
    ):
        a, b = next(straight), next(flipped)
    assert np.array_equal(a.data[0], b.data[0][..., ::-1])
    for one, other in zip(a.label[0], b.label[0], strict=True):
        want = objects_of(one)[:, [0, 3, 2, 1, 4]] * [1, -1, 1, -1, 1] + [0, 1, 0, 1, 0]
        assert np.allclose(objects_of(other), want, atol=1e-6)


@pytest.mark.parametrize("channels", [1, 3])
def test_colours_leave_the_border_as_it_is(tmp_path, channels):
    image = np.full((40, 50, 3), 100, np.uint8)
    path = write_rows(tmp_path / "grey.rec", [(i, [7, 5, 0, 0, 0, 0, 0], image) for i in range(40)])
    provider = provider_of(
        path,
        data_shape=(channels, 200, 200),
        resize_mode="shrink",
        dtype="uint8",
        batch_size=40,
        rand_pad_prob=1,
        max_pad_scale=3,
        max_random_contrast=0.5,
        random_contrast_prob=1,
    )
    with provider:
        (batch,) = provider
    levels = set()
    for row, canvas in zip(batch.label[0], batch.data[0], strict=True):
        found = canvas[:, : int(row[1]), : int(row[2])]
        values = set(np.unique(found).tolist()) - {127}
        assert (
            len(values) <= 1
            and (found == 127).sum() == found.size - 40 * 50 * channels
            or (127 not in found)
        )
        levels |= values
    assert min(levels) >= 50 and max(levels) <= 150 and len(levels) > 20


def test_hue_is_changed_as_opencv_would(tmp_path, photos):
    from faces.colour import shift_hls
    from faces.draws import drawn_det_jitter as drawn
    from iterators.images.augment.det_recipe import DetRecipe

    image = photos["coffee"][:60, :50]
    colours = {"max_random_hue": 30, "random_hue_prob": 1, "max_random_illumination": 40}
    colours |= {"random_illumination_prob": 1}
    path = write_rows(tmp_path / "one.rec", [(0, [7, 5, 0, 0, 0, 0, 0], image)])
    with provider_of(path, dtype="uint8", layout="NHWC", batch_size=1, **colours) as provider:
        (batch,) = provider
    from iterators.images.view_plans import augment_key

    shift = drawn(DetRecipe(data_shape=(3, 60, 50), **colours), augment_key(0), 0, 0)
    assert shift["hue"] and shift["lightness"]
    want = shift_hls(image, shift["hue"], shift["lightness"], shift["saturation"])
    assert np.array_equal(batch.data[0][0], want)


# -- normalisation --------------------------------------------------------------------------------


def test_a_mean_image_is_subtracted_where_it_lies_on_the_canvas(tmp_path, pack):
    mean = np.random.default_rng(0).uniform(0, 255, (3, 210, 250)).astype(np.float32)
    write_mean_image(tmp_path / "mean.bin", mean)
    arguments = {"data_shape": mean.shape, "resize_mode": "shrink", "rand_mirror_prob": 0.5}
    with (
        provider_of(pack, **arguments) as plain,
        provider_of(pack, mean_img=tmp_path / "mean.bin", **arguments) as centred,
    ):
        for a, b in zip(plain, centred, strict=True):
            assert np.array_equal(a.data[0] - mean, b.data[0])


def test_the_means_win_over_a_mean_image_which_is_then_not_made(tmp_path, pack):
    with (
        pytest.warns(UserWarning, match="mean_img=.* has no effect with a mean above 0"),
        provider_of(pack, mean_r=5, mean_img=tmp_path / "mean.bin") as provider,
    ):
        first = next(provider).data[0]
    with provider_of(pack) as provider:
        assert np.array_equal(next(provider).data[0] - np.float32([5, 0, 0])[:, None, None], first)
    assert not (tmp_path / "mean.bin").exists()


def test_a_missing_mean_image_is_made_from_the_plain_images(tmp_path, pack):
    path = tmp_path / "mean.bin"
    with provider_of(pack, mean_img=path, resize_mode="fit", **EVERYTHING) as provider:
        next(provider)
    with provider_of(pack, resize_mode="fit") as provider:
        want = np.concatenate([b.data[0][: b.count] for b in provider]).mean(0)
    assert np.allclose(read_mean_image(path), want, atol=1e-3)


def test_means_without_effect_are_told(pack):
    with pytest.warns(UserWarning, match="mean_g=-3.0 has no effect"):
        provider_of(pack, mean_g=-3).close()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16"])
def test_other_element_types_fill_the_canvas_too(pack, dtype):
    more = {} if dtype == "uint8" else {"mean_r": 10}
    with provider_of(pack, dtype=dtype, resize_mode="fit", **more) as provider:
        batch = next(provider)
    rows = int(batch.label[0][0, 1])
    assert rows < 60
    assert (batch.data[0][0, 0, rows:] == (0 if dtype == "uint8" else -10)).all()


# -- labels ---------------------------------------------------------------------------------------


def test_all_parts_have_the_width_of_the_longest_label_of_all(pack):
    for part in range(3):
        with provider_of(pack, num_parts=3, part_index=part) as provider:
            assert provider.provide_label[0].shape == (4, 4 + 2 + 3 * 5)
    with provider_of(pack, label_pad_width=40, label_pad_value=-9) as provider:
        label = next(provider).label[0]
    assert label.shape == (4, 44)
    assert (label[0, 4 + int(label[0, 3]) :] == -9).all()


def test_a_label_pad_width_that_is_too_small_names_a_record(pack):
    with pytest.raises(LabelError, match=r"record 2: label_pad_width=16.* 17 values"):
        provider_of(pack, label_pad_width=16)


def pack_with(path, number, label, flag=None, count=5):
    """Records of one box each, number `number` with another label; `flag` replaces its length."""
    data = encode(coordinates())
    with recordio.RecordWriter(path) as writer:
        for i in range(count):
            values = label if i == number else GOOD
            record = recordio.pack(recordio.IRHeader(0, values, i, 0), data)
            if i == number and flag is not None:
                record = flag.to_bytes(4, "little") + record[4:]
            writer.write(record)
    return path


def test_one_flipped_bit_does_not_make_all_labels_wide(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (600, 600, 3), np.uint8)
    with recordio.RecordWriter(tmp_path / "flip.rec") as writer:
        for i in range(5):
            record = recordio.pack(recordio.IRHeader(0, GOOD, i, 0), encode(noise))
            if i == 3:
                record = (7 + (1 << 18)).to_bytes(4, "little") + record[4:]
            writer.write(record)
    for more in ({}, {"label_pad_width": 20}):
        with provider_of(tmp_path / "flip.rec", batch_size=5, on_error="skip", **more) as provider:
            assert provider.provide_label[0].shape == (5, 4 + more.get("label_pad_width", 7))
            (batch,) = provider
            assert batch.index.tolist() == [0, 1, 2, 4, 4]
            ((number, reason),) = provider.skipped
        assert number == 3 and "whole number of objects" in reason
        with provider_of(tmp_path / "flip.rec", batch_size=5, **more) as provider:
            with pytest.raises(LabelError, match="flip.rec, offset [0-9]+, record 3") as caught:
                provider.next()
        assert caught.value.record == 3 and caught.value.offset > 0


def test_labels_that_break_a_rule_do_not_count_for_the_width(tmp_path):
    long = [1.0] * 5 * 9
    bad = {
        "header width": [1, 5, *long],
        "object width": [2, 4, *long],
        "whole number": [2, 5, *long, 1],
        "not a finite": [2, 5, *long[1:], float("nan")],
        "class is not a finite": [2, 5, *[0.5] * 45, float("nan"), 0, 0, 1, 1],
        "in fractions of the image": [2, 5, *long, 1, 10, 10, 30, 30],
    }
    for text, label in bad.items():
        path = pack_with(tmp_path / "bad.rec", 1, label)
        with provider_of(path, on_error="skip", batch_size=5) as provider:
            assert provider.provide_label[0].shape == (5, 11)
            provider.next()
            assert [text in reason for _, reason in provider.skipped] == [True]


def test_a_label_beyond_the_limit_is_refused_or_skipped(tmp_path):
    wide = [2, 5, *[1, 0, 0, 1, 1] * 4000]
    path = pack_with(tmp_path / "wide.rec", 2, wide)
    with pytest.raises(LabelError, match=r"record 2: max_label_width=16384, .* 20002 values.* 0"):
        provider_of(path)
    with provider_of(path, on_error="skip", batch_size=5) as provider:
        assert provider.provide_label[0].shape == (5, 11)
        provider.next()
        ((number, reason),) = provider.skipped
    assert number == 2 and "20002 values" in reason and "max_label_width" in reason
    for more in ({"max_label_width": 0}, {"max_label_width": 20002}, {"label_pad_width": 20002}):
        with provider_of(path, batch_size=5, **more) as provider:
            (batch,) = provider
        assert batch.label[0].shape == (5, 20006) and batch.label[0][2, 3] == 20002


def test_a_label_that_is_stored_in_parts_is_checked_too(tmp_path):
    magic = np.frombuffer(b"\x0a\x23\xd7\xce", "<f4")[0]
    for last, width in ((1, 12), (float("inf"), 7)):
        path = pack_with(tmp_path / "parts.rec", 1, [2, 5, 1, 0, 0, 1, 1, magic, 0, 0, 1, last])
        with provider_of(path, on_error="skip", batch_size=5) as provider:
            assert provider.provide_label[0].shape == (5, 4 + width)


def test_the_limit_holds_for_labels_of_a_list(tmp_path):
    path = tmp_path / "boxes.lst"
    path.write_text("10\t2\t5\t7\t0\t0\t1\t1\tx\n11\t2\t5" + "\t1" * 50 + "\tx\n12\t1\t5\tx\n")
    with provider_of(BOXES, path_imglist=path, batch_size=3) as provider:
        assert provider.provide_label[0].shape == (3, 56)
    with pytest.raises(LabelError, match="boxes.lst, id 11: max_label_width=20, .* 52 values"):
        provider_of(BOXES, path_imglist=path, max_label_width=20)
    arguments = {"max_label_width": 20, "on_error": "skip", "batch_size": 3}
    with provider_of(BOXES, path_imglist=path, **arguments) as provider:
        assert provider.provide_label[0].shape == (3, 11)
        provider.next()
        assert [number for number, _ in provider.skipped] == [11, 12]


def test_labels_of_a_list_replace_those_of_the_records(tmp_path):
    path = tmp_path / "boxes.lst"
    path.write_text(
        "10\t2\t5\t7\t0.1\t0.2\t0.3\t0.4\ta name.png\n\n"
        "11 2 5 8 0 0 1 1 9 0.5 0.5 1 1 17\n"
        "12\t7\t5\t1\t2\t3\t4\t5\tx\r\n"
    )
    with provider_of(BOXES, path_imglist=path, batch_size=3) as provider:
        (batch,) = provider
    label = batch.label[0]
    assert label.shape == (3, 16) and label[:, 3].tolist() == [7, 12, 7]
    assert objects_of(label[0]).tolist() == [np.float32([7, 0.1, 0.2, 0.3, 0.4]).tolist()]
    assert objects_of(label[1])[1].tolist() == [9, 0.5, 0.5, 1, 1]
    assert label[2, 4:11].tolist() == [7, 5, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("line", ["10 2 5 x 0 0 1 1 a", "10\tpath", "-1 2 5 0 0 0 1 1 a"])
def test_a_bad_line_of_a_list_is_named(tmp_path, line):
    path = tmp_path / "boxes.lst"
    path.write_text(line + "\n")
    with pytest.raises(LabelError, match="line 1"):
        provider_of(BOXES, path_imglist=path)


GOOD = [2, 5, 1, 0, 0, 1, 1]
BAD_RECORDS = {
    "a single label": (
        lambda data: recordio.pack(recordio.IRHeader(0, 3.0, 55, 0), data),
        LabelError,
    ),
    "object width": (
        lambda data: recordio.pack(recordio.IRHeader(0, [2, 4, 1, 0, 0, 1], 55, 0), data),
        LabelError,
    ),
    "announces 4294967295 labels": (
        lambda data: b"\xff" * 4 + recordio.pack(recordio.IRHeader(0, GOOD, 55, 0), data)[4:],
        RecordHeaderError,
    ),
    "shorter than": (lambda data: b"\2\0", RecordHeaderError),
    "no image data": (
        lambda data: recordio.pack(recordio.IRHeader(0, GOOD, 55, 0), b""),
        ImageDecodeError,
    ),
}


@pytest.mark.parametrize("text", BAD_RECORDS)
def test_bad_records_are_errors_with_their_place_or_skipped(tmp_path, text):
    make, kind = BAD_RECORDS[text]
    data = encode(coordinates())
    path = tmp_path / "bad.rec"
    with recordio.RecordWriter(path) as writer:
        for i in range(5):
            good = recordio.pack(recordio.IRHeader(0, GOOD, i, 0), data)
            writer.write(make(data) if i == 3 else good)
    with provider_of(path, batch_size=5) as provider:
        with pytest.raises(kind) as caught:
            provider.next()
    assert caught.value.record == 3 and caught.value.path == str(path)
    if text == "object width":
        text = "object width"
    assert text in str(caught.value)
    with provider_of(path, batch_size=5, on_error="skip") as provider:
        (batch,) = provider
        assert batch.index.tolist() == [0, 1, 2, 4, 4]
        assert len(provider.skipped) == 1
        assert provider.provide_label[0].shape == (5, 11)


def test_an_exact_label_width_can_be_asked_for(pack):
    with provider_of(pack, label_width=7, batch_size=1) as provider:
        provider.next()
        with pytest.raises(LabelError, match="12 labels, label_width is 7"):
            provider.next()


def test_a_file_without_label_vectors_is_refused(tmp_path):
    path = write_rows(tmp_path / "plain.rec", [(0, 1.0, encode(coordinates()))])
    with pytest.raises(LabelError, match="no record has a vector of labels"):
        provider_of(path)


# -- epochs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 4])
def test_batches_do_not_depend_on_threads_or_prefetching(pack, threads):
    def run(**arguments):
        with provider_of(pack, shuffle=True, seed=4, **EVERYTHING, **arguments) as provider:
            return copies(provider) + copies(provider)

    reference = run(preprocess_threads=2, prefetch_buffer=2)
    assert same(run(preprocess_threads=threads, prefetch_buffer=threads), reference)
    assert not same(reference[:8], reference[8:])


@pytest.mark.parametrize("batches", [0, 3, 8, 11])
def test_a_state_goes_on_exactly_where_it_was_saved(pack, batches):
    arguments = {"shuffle": True, "seed": 9} | EVERYTHING
    with provider_of(pack, **arguments) as provider:
        whole = copies(provider) + copies(provider)
    with provider_of(pack, **arguments) as provider:
        for _ in range(batches):
            try:
                provider.next()
            except StopIteration:
                provider.reset()
                provider.next()
        state = json.loads(json.dumps(provider.state_dict()))
    with provider_of(pack, **arguments) as provider:
        provider.load_state_dict(state)
        rest = copies(provider) + (copies(provider) if batches < 8 else [])
    assert same(rest, whole[batches:])


def test_a_state_of_other_settings_is_refused(pack):
    with provider_of(pack, rand_crop_prob=0.5) as provider:
        state = provider.state_dict()
    with provider_of(pack, rand_crop_prob=0.6) as provider:
        with pytest.raises(ValueError, match="rand_crop_prob"):
            provider.load_state_dict(state)


def test_shuffled_parts_are_disjoint_and_complete(pack):
    ids = []
    for part in range(4):
        with provider_of(pack, shuffle=True, num_parts=4, part_index=part) as provider:
            ids += np.concatenate([b.index[: b.count] for b in provider]).tolist()
    assert sorted(ids) == list(range(100, 130))


def test_without_rounding_the_tail_is_zero(pack):
    with provider_of(pack, round_batch=False, mean_r=5) as provider:
        *_, last = provider
    assert last.pad == 2 and not last.data[0][2:].any() and not last.label[0][2:].any()


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"rand_crop_probe": 1}, TypeError, "did you mean 'rand_crop_prob'"),
        ({"label_pad_widht": 1}, TypeError, "did you mean 'label_pad_width'"),
        ({"rand_crop": True}, TypeError, "ImageDetRecordIter() has no parameter 'rand_crop'"),
        ({"aug_seq": "aug_default"}, ValueError, "'det_aug_default'"),
        ({"label_width": -2}, ValueError, "label_width=-2"),
        ({"dtype": "uint8", "std_r": 2}, ValueError, "std_r=2.0 has no effect on integer"),
    ],
)
def test_wrong_keywords_are_refused(pack, arguments, kind, text):
    with pytest.raises(kind) as caught:
        provider_of(pack, **arguments)
    assert text in str(caught.value)


def test_every_parameter_of_mxnet_is_accepted(pack):
    limits = ("scales", "aspect_ratios", "overlaps", "sample_coverages", "object_coverages")
    arguments = {
        "path_imglist": "", "aug_seq": "det_aug_default", "label_width": -1, "label_pad_width": 0,
        "label_pad_value": -1, "verbose": False, "num_parts": 1, "part_index": 0,
        "shuffle_chunk_size": 0, "shuffle_chunk_seed": 0, "shuffle": False, "seed": 0,
        "round_batch": True, "prefetch_buffer": 4, "ctx": "gpu", "dtype": None, "resize": -1,
        "rand_crop_prob": 0, "num_crop_sampler": 1, "max_crop_trials": (25,),
        "crop_emit_mode": "center", "emit_overlap_thresh": 0.3, "rand_pad_prob": 0,
        "max_pad_scale": 1, "max_random_hue": 0, "random_hue_prob": 0, "max_random_saturation": 0,
        "random_saturation_prob": 0, "max_random_illumination": 0, "random_illumination_prob": 0,
        "max_random_contrast": 0, "random_contrast_prob": 0, "rand_mirror_prob": 0,
        "fill_value": 127, "inter_method": 1, "resize_mode": "force", "mean_img": "", "scale": 1,
    }  # fmt: skip
    arguments |= {f"min_crop_{limit}": int(limit == "aspect_ratios") for limit in limits}
    arguments |= {f"max_crop_{limit}": 1 for limit in limits}
    arguments |= {f"mean_{c}": 0 for c in "rgba"} | {f"std_{c}": 0 for c in "rgba"}
    # and path_imgrec, data_shape, batch_size, preprocess_threads
    assert len(arguments) + 4 == 60
    with provider_of(pack, **arguments) as given, provider_of(pack) as default:
        assert same(copies(given), copies(default))


def test_weights_go_by_record_not_by_label(pack):
    with pytest.raises(ValueError, match="weights by label need class labels"):
        provider_of(pack, weights={2: 1})
    weights = np.zeros(30)
    weights[7] = 1
    with provider_of(pack, weights=weights, **EVERYTHING) as provider:
        batches = copies(provider)
    assert {int(number) for batch in batches for number in batch.index} == {107}
    images = [image.tobytes() for image, _, _ in samples(batches)]
    assert len(set(images)) > 20  # some may be left as they are by all chances


# -- data_specs ------------------------------------------------------------------------------------


def specs(dim, axes=("b", 0, 1, "c"), dtype="float32", **label):
    image = Conv2DSpace((60, 50), num_channels=3, axes=axes, dtype=dtype)
    target = VectorSpace(dim=dim, **({"dtype": "float32"} | label))
    return CompositeSpace((image, target)), ("features", "targets")


@pytest.mark.parametrize("axes", [("b", 0, 1, "c"), ("c", 0, 1, "b")])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_objects_are_targets_of_data_specs(pack, axes, dtype):
    arguments = {"label_pad_width": 30, "dtype": dtype, **EVERYTHING}
    asked = specs(34, axes, dtype)
    del arguments["dtype"]
    with (
        provider_of(pack, dtype=dtype, **arguments) as plain,
        provider_of(pack, data_specs=asked, **arguments) as provider,
    ):
        assert [desc.name for desc in provider.provide_data] == ["features"]
        assert provider.provide_label == [("targets", (4, 34))]
        for expected, batch in zip(plain, provider, strict=True):
            images, targets = batch
            asked[0].np_validate(batch)
            np.testing.assert_array_equal(targets, expected.label[0])
            order = [axes.index(axis) for axis in ("b", "c", 0, 1)]
            np.testing.assert_array_equal(images.transpose(order), expected.data[0])
            assert batch["targets"] is targets and batch.pad == expected.pad
            assert batch.index.tolist() == expected.index.tolist()


def test_the_automatic_width_is_named_when_the_targets_do_not_fit(pack):
    with provider_of(pack) as plain:
        width = plain.provide_label[0].shape[1]
    with pytest.raises(SpecError, match=f"{width} elements and VectorSpace"):
        provider_of(pack, data_specs=specs(width + 1))
    with provider_of(pack, data_specs=specs(width, dtype="float64")) as provider:
        assert next(provider)[1].shape == (4, width)


def test_images_alone_and_torch_on_request(pack):
    image = Conv2DSpace((60, 50), num_channels=3, axes=("b", 0, 1, "c"), dtype="float16")
    with provider_of(pack, data_specs=(image, "features"), device="cpu") as provider:
        images = next(provider).array
        assert isinstance(images, torch.Tensor) and images.dtype == torch.float16
        assert provider.provide_label == []
    with provider_of(pack, data_specs=(image, "features"), label_name=None) as provider:
        assert next(provider).shape == (4, 60, 50, 3)


def test_object_labels_are_no_classes(pack):
    with provider_of(pack) as plain:
        width = plain.provide_label[0].shape[1]
    space = CompositeSpace((specs(1)[0].components[0], IndexSpace(dim=width, max_labels=9)))
    with provider_of(pack, data_specs=(space, ("features", "targets"))) as provider:
        with pytest.raises(SpecError, match="is not an integer|does not fit"):
            next(provider)
