"""Epochs, padding, order, damage and ends of `ImageRecordIter`."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recordio
from faces.codecs import decode_jpeg
from iterators import ImageRecordIter
from iterators.testing import copies, encode, maker, same, write_pack, write_records
from recordio.errors import (
    CorruptRecordError,
    EmptyRecordFileError,
    ImageDecodeError,
    LabelError,
    RecordHeaderError,
    RecordIOError,
    TruncatedRecordError,
)

RANDOM = {
    "random_resized_crop": True,
    "min_random_area": 0.2,
    "max_random_area": 1,
    "min_aspect_ratio": 3 / 4,
    "max_aspect_ratio": 4 / 3,
    "rand_mirror": True,
}


@pytest.fixture(scope="module")
def pack(tmp_path_factory, photos):
    """41 records, JPEG of several kinds with some PNG, ids 100, 101, ..."""
    rng = np.random.default_rng(0)
    contents = []
    for i in range(41):
        photo = list(photos.values())[i % 4]
        top, left = rng.integers(0, 100, 2)
        height, width = rng.integers(70, 200, 2)
        image = photo[top : top + height, left : left + width]
        progressive = [cv2.IMWRITE_JPEG_PROGRESSIVE, 1] if i % 7 == 5 else []
        contents.append(encode(image, ".png" if i % 7 == 3 else ".jpg", *progressive))
    numbers = range(100, 141)
    path = tmp_path_factory.mktemp("pack") / "photos.rec"
    return write_pack(path, contents, ids=numbers, keys=numbers)


provider_of = maker(ImageRecordIter, data_shape=(3, 48, 40), batch_size=6, preprocess_threads=2)


# -- epochs ---------------------------------------------------------------------------------------


def test_an_epoch_has_every_record_once_and_says_what_is_padding(pack):
    with provider_of(pack, shuffle=True) as provider:
        assert (len(provider), provider.num_samples, provider.batch_size) == (7, 41, 6)
        for epoch in range(3):
            batches = list(provider)
            assert provider.epoch == epoch
            assert [b.pad for b in batches] == [0] * 6 + [1]
            ids = np.concatenate([b.index[: b.count] for b in batches])
            assert sorted(ids.tolist()) == list(range(100, 141))
            labels = np.concatenate([b.label[0][: b.count] for b in batches])
            assert np.array_equal(labels, ids.astype(np.float32) - 100)


def test_the_tail_wraps_to_the_start_of_the_same_epoch(pack):
    with provider_of(pack, batch_size=12) as provider:
        *_, last = provider
    assert last.pad == 7
    assert last.index.tolist() == [136, 137, 138, 139, 140, 100, 101, 102, 103, 104, 105, 106]


def test_a_batch_larger_than_the_file_repeats_it(pack):
    with provider_of(pack, batch_size=100) as provider:
        (batch,) = provider
    assert batch.pad == 59
    assert batch.index.tolist() == np.resize(np.arange(100, 141), 100).tolist()


def test_without_rounding_the_tail_is_zero(pack):
    with provider_of(pack, round_batch=False, mean_r=5) as provider:
        *_, last = provider
    assert last.pad == 1
    assert not last.data[0][5:].any()
    assert not last.label[0][5:].any()
    assert not last.index[5:].any()


def test_epochs_differ_when_shuffled_and_repeat_with_the_seed(pack):
    runs = []
    for seed in (0, 0, 1):
        with provider_of(pack, shuffle=True, seed=seed, **RANDOM) as provider:
            runs.append([copies(provider), copies(provider)])
    assert same(runs[0][0], runs[1][0])
    assert same(runs[0][1], runs[1][1])
    assert not same(runs[0][0], runs[0][1])
    assert not same(runs[0][0], runs[2][0])


@pytest.mark.parametrize("threads", [1, 3, 8])
@pytest.mark.parametrize("prefetch", [1, 5])
def test_batches_do_not_depend_on_threads_or_prefetching(pack, threads, prefetch):
    def run(**arguments):
        with provider_of(pack, shuffle=True, seed=4, **RANDOM, **arguments) as provider:
            return copies(provider) + copies(provider)

    reference = run(preprocess_threads=2, prefetch_buffer=2)
    assert same(run(preprocess_threads=threads, prefetch_buffer=prefetch), reference)


def test_with_and_without_an_index_the_batches_are_the_same(pack):
    with provider_of(pack, shuffle=True) as scanned:
        with provider_of(pack, shuffle=True, path_imgidx=pack.with_suffix(".idx")) as indexed:
            assert same(copies(scanned), copies(indexed))


def test_epoch_chooses_the_first_epoch(pack):
    with provider_of(pack, shuffle=True) as provider:
        list(provider)
        second = copies(provider)
    with provider_of(pack, shuffle=True, epoch=1) as provider:
        assert provider.epoch == 1
        assert same(copies(provider), second)


def test_reset_before_anything_was_delivered_loses_no_epoch(pack):
    with provider_of(pack, shuffle=True) as plain, provider_of(pack, shuffle=True) as old_style:
        for _ in range(3):
            old_style.reset()
            assert same(copies(plain), copies(old_style))


def test_reset_in_the_middle_begins_the_next_epoch(pack):
    with provider_of(pack, shuffle=True) as provider:
        epochs = [copies(provider) for _ in range(2)]
    with provider_of(pack, shuffle=True) as provider:
        provider.next()
        provider.reset()
        assert provider.epoch == 1
        assert same(copies(provider), epochs[1])


def test_leaving_a_loop_early_is_followed_by_a_new_epoch(pack):
    with provider_of(pack, shuffle=True) as provider:
        for _batch in provider:
            break
        assert len(list(provider)) == len(provider)
        assert provider.epoch == 1


def test_nested_loops_are_refused(pack):
    with provider_of(pack) as provider:
        outer = iter(provider)
        next(outer)
        assert len(list(provider)) == 7
        with pytest.raises(RuntimeError, match="another loop"):
            next(outer)


def test_the_low_level_protocol_of_mxnet(pack):
    with provider_of(pack) as provider:
        with pytest.raises(RuntimeError, match="iter_next"):
            provider.getdata()
        count = 0
        while provider.iter_next():
            assert provider.getdata().shape == (6, 3, 48, 40)
            assert provider.getlabel().shape == (6,)
            assert provider.getindex()[0] == 100 + 6 * count
            count += 1
        assert count == 7
        assert not provider.iter_next()
        with pytest.raises(StopIteration):
            provider.next()
        provider.reset()
        assert provider.next().index[0] == 100
        assert provider.getpad() == 0


def test_labels_can_be_left_out_and_names_chosen(pack):
    with provider_of(pack, data_name="image", label_name=None) as provider:
        batch = provider.next()
        assert provider.provide_label == []
        assert (batch.label, provider.getlabel()) == ([], None)
        assert batch["image"] is batch.data[0]


# -- pixels ---------------------------------------------------------------------------------------


def test_a_crop_is_the_part_of_the_picture_that_opencv_decodes(pack):
    reader = recordio.RecordReader(pack)
    with provider_of(pack) as provider:
        got = np.concatenate([b.data[0][: b.count] for b in provider])
    for record, image in zip(reader, got, strict=True):
        whole = cv2.imdecode(np.frombuffer(recordio.unpack(record)[1], np.uint8), cv2.IMREAD_COLOR)
        top, left = (whole.shape[0] - 48) // 2, (whole.shape[1] - 40) // 2
        want = whole[top : top + 48, left : left + 40, ::-1].transpose(2, 0, 1)
        assert np.abs(image - want).max() <= 2


@pytest.mark.libjpeg
def test_without_scaled_decoding_the_pixels_are_those_of_opencv(tmp_path, photos):
    from faces.resample import resize

    data = encode(photos["coffee"], ".jpg")
    path = write_records(tmp_path / "a.rec", [recordio.pack(recordio.IRHeader(0, 0, 0, 0), data)])
    settings = {"data_shape": (3, 90, 90), "resize": 90, "batch_size": 1, "dtype": "uint8"}
    whole = resize(decode_jpeg(data), (135, 90))[:, 22:112].transpose(2, 0, 1)
    with provider_of(path, scaled_decode=False, **settings) as full:
        assert np.array_equal(full.next().data[0][0], whole)
    with provider_of(path, **settings) as scaled:
        difference = np.abs(scaled.next().data[0][0].astype(int) - whole)
    assert 0 < difference.mean() < 12


@pytest.mark.parametrize("layout", ["NHWC", "CHWN", "WNCH"])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "float16", "int8"])
def test_other_layouts_hold_the_same_numbers(pack, layout, dtype):
    arguments = {"dtype": dtype, **RANDOM}
    if dtype != "uint8":
        arguments["mean_r"] = 100
    if dtype.startswith("float"):
        arguments["std_g"] = 3
    with provider_of(pack, **arguments) as provider:
        want = provider.next().data[0]
    with provider_of(pack, layout=layout, **arguments) as provider:
        batch = provider.next()
    assert batch.data[0].dtype == dtype
    assert batch.count == 6
    back = batch.data[0].transpose([layout.index(axis) for axis in "NCHW"])
    assert np.array_equal(back, want)


def test_mirror_turns_every_row_round(pack):
    with provider_of(pack) as plain, provider_of(pack, mirror=True) as mirrored:
        assert np.array_equal(plain.next().data[0], mirrored.next().data[0][..., ::-1])


def test_rand_mirror_turns_about_half_of_the_pictures(pack):
    with provider_of(pack) as plain, provider_of(pack, rand_mirror=True) as random:
        turned = 0
        for first in range(10):
            for a, b in zip(plain, random, strict=True):
                for x, y in zip(a.data[0], b.data[0], strict=True):
                    turned += not np.array_equal(x, y)
                    assert np.array_equal(x, y) or np.array_equal(x, y[..., ::-1])
        assert 150 < turned < 270  # of 420; beyond 5 standard deviations otherwise


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    "recipe", [{}, {"resize": 30, "data_shape": (3, 28, 26)}, {"resize": 90}, RANDOM]
)
def test_exif_orientation_is_applied(tmp_path, photos, orientation, recipe):
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = Image.fromarray(photos["chelsea"][40:232, 60:220])
    picture.save(tmp_path / "turned.jpg", quality=95, exif=exif, subsampling=0)
    turned = (tmp_path / "turned.jpg").read_bytes()
    upright = cv2.imdecode(np.frombuffer(turned, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    Image.fromarray(upright).save(tmp_path / "upright.jpg", quality=100, subsampling=0)
    files = turned, (tmp_path / "upright.jpg").read_bytes()
    records = [recordio.pack(recordio.IRHeader(0, 0, 0, 0), data) for data in files]
    results = []
    for i, record in enumerate(records):
        path = write_records(tmp_path / f"{i}.rec", [record])
        with provider_of(path, batch_size=1, **recipe) as provider:
            results.append(provider.next().data[0])
    assert np.abs(results[0] - results[1]).mean() < 0.6  # encoding once more costs a little


def test_grey_and_alpha(tmp_path, photos):
    image = photos["coffee"][:60, :50]
    alpha = np.dstack([image[..., ::-1], np.arange(60 * 50, dtype=np.uint8).reshape(60, 50)])
    data = [encode(image, ".jpg"), cv2.imencode(".png", alpha)[1].tobytes()]
    for i, content in enumerate(data):
        write_records(
            tmp_path / f"{i}.rec", [recordio.pack(recordio.IRHeader(0, 0, 0, 0), content)]
        )
    with provider_of(tmp_path / "0.rec", data_shape=(1, 60, 50), batch_size=1) as provider:
        want = cv2.imdecode(np.frombuffer(data[0], np.uint8), cv2.IMREAD_GRAYSCALE)
        assert np.abs(provider.next().data[0][0, 0] - want).max() <= 2
    with provider_of(tmp_path / "1.rec", data_shape=(4, 60, 50), batch_size=1) as provider:
        got = provider.next().data[0][0]
        assert np.array_equal(got, alpha[..., [2, 1, 0, 3]].transpose(2, 0, 1))
    with provider_of(tmp_path / "0.rec", data_shape=(4, 60, 50), batch_size=1) as provider:
        with pytest.raises(ImageDecodeError, match="channels"):
            provider.next()


def test_a_record_that_holds_the_magic_word_is_joined(tmp_path):
    image = np.frombuffer(bytes.fromhex("0a23d7ce") * 300, np.uint8).reshape(20, 20, 3)
    record = recordio.pack(recordio.IRHeader(0, 1, 0xCED7230A, 0), encode(image, ".bmp"))
    path = write_records(tmp_path / "magic.rec", [record])
    with provider_of(path, data_shape=(3, 20, 20), batch_size=1) as provider:
        batch = provider.next()
    assert batch.index[0] == 0xCED7230A
    assert np.array_equal(batch.data[0][0], image.transpose(2, 0, 1))


def test_label_vectors(tmp_path):
    image = encode(np.zeros((9, 9, 3), np.uint8), ".png")
    records = [recordio.pack(recordio.IRHeader(0, [i, i + 0.5, -i], i, 0), image) for i in range(4)]
    path = write_records(tmp_path / "vectors.rec", records)
    with provider_of(path, data_shape=(3, 9, 9), batch_size=4, label_width=3) as provider:
        assert provider.provide_label[0].shape == (4, 3)
        assert provider.next().label[0].tolist() == [[i, i + 0.5, -i] for i in range(4)]


# -- batches belong to whoever holds them ----------------------------------------------------------


def test_no_batch_that_is_held_is_overwritten(pack):
    with provider_of(pack, shuffle=True, prefetch_buffer=2, batch_size=3) as provider:
        held = [(batch, batch.data[0].copy()) for _ in range(4) for batch in provider]
        assert all(np.array_equal(batch.data[0], copy) for batch, copy in held)
        assert len({batch.data[0].ctypes.data for batch, _ in held}) == len(held)
    assert all(np.array_equal(batch.data[0], copy) for batch, copy in held)


def test_memory_is_used_again_when_batches_are_dropped(pack):
    with provider_of(pack, prefetch_buffer=2, batch_size=3) as provider:
        addresses = {batch.data[0].ctypes.data for _ in range(5) for batch in provider}
    assert len(addresses) <= 5


def test_torch_tensors_share_memory_and_keep_it(pack):
    torch = pytest.importorskip("torch")
    with provider_of(pack, device="cpu", prefetch_buffer=1) as provider:
        tensors = [batch.data[0] for batch in provider]
        labels = [batch.label[0] for batch in provider]
    with provider_of(pack) as provider:
        arrays = [batch.data[0] for batch in provider]
    assert all(isinstance(tensor, torch.Tensor) for tensor in tensors + labels)
    assert all(np.array_equal(t.numpy(), a) for t, a in zip(tensors, arrays, strict=True))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_normalising_on_the_device_gives_the_same_numbers(pack, layout):
    settings = {"mean_r": 100, "mean_b": 3, "std_g": 57, "scale": 0.5, "layout": layout, **RANDOM}
    with provider_of(pack, device="cpu", **settings) as host:
        with provider_of(pack, device="cpu", normalise_on="device", **settings) as device:
            assert device.provide_data[0].dtype == np.float32
            for a, b in zip(host, device, strict=True):
                assert a.data[0].dtype == b.data[0].dtype
                assert (a.data[0] - b.data[0]).abs().max() < 1e-5


@pytest.mark.parametrize(
    "arguments",
    [{}, {"device": "cpu", "max_random_contrast": 1}, {"device": "cpu", "dtype": "int8"}],
)
def test_normalising_on_the_device_refuses_what_it_cannot_do(pack, arguments):
    with pytest.raises(ValueError, match="normalise_on"):
        provider_of(pack, normalise_on="device", **arguments)


# -- bad parameters --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"shuffel": True}, TypeError, "did you mean 'shuffle'"),
        ({"rand_miror": True}, TypeError, "did you mean 'rand_mirror'"),
        ({"batch_size": 0}, ValueError, "batch_size=0: expected an integer from 1 to 2147483647"),
        ({"batch_size": -3}, ValueError, "batch_size=-3"),
        ({"prefetch_buffer": 0}, ValueError, "prefetch_buffer=0"),
        ({"preprocess_threads": 0}, ValueError, "preprocess_threads=0"),
        ({"data_shape": (3, 8)}, ValueError, "data_shape="),
        ({"data_shape": (2, 8, 8)}, ValueError, "with 1, 3 or 4 channels"),
        ({"data_shape": (3, 0, 8)}, ValueError, "data_shape="),
        ({"inter_method": 7}, ValueError, "inter_method=7"),
        ({"std_g": 0}, ValueError, "std_g=0"),
        ({"resize": 0}, ValueError, "resize=0"),
        ({"layout": "NCH"}, ValueError, "layout='NCH'"),
        ({"dtype": "float64"}, ValueError, "dtype='float64'"),
        ({"scale": float("nan")}, ValueError, "scale=nan"),
        ({"label_width": 0}, ValueError, "label_width=0"),
        ({"shuffle": None}, TypeError, "shuffle=None"),
        (
            {"random_resized_crop": True, "rand_crop": True},
            ValueError,
            "rand_crop=True contradicts",
        ),
        ({**RANDOM, "min_random_area": 0}, ValueError, "min_random_area"),
        ({**RANDOM, "min_random_area": 0.9, "max_random_area": 0.5}, ValueError, "max_random_area"),
        ({**RANDOM, "min_aspect_ratio": None, "max_aspect_ratio": 1.5}, ValueError, "aspect"),
        ({**RANDOM, "crop_x_start": 1}, ValueError, "crop_x_start"),
    ],
)
def test_bad_parameters_are_refused_by_name(pack, arguments, error, text):
    with pytest.raises(error, match=text):
        provider_of(pack, **arguments)


def test_a_missing_file_and_an_empty_one(tmp_path):
    with pytest.raises(OSError, match="nothing.rec"):
        provider_of(tmp_path / "nothing.rec")
    (tmp_path / "empty.rec").touch()
    with pytest.raises(
        EmptyRecordFileError, match="empty.rec: the file holds no records"
    ) as caught:
        provider_of(tmp_path / "empty.rec")
    assert isinstance(caught.value, RecordIOError) and isinstance(caught.value, ValueError)
    assert caught.value.path == str(tmp_path / "empty.rec")


# -- bad records -----------------------------------------------------------------------------------


def jpeg_record(photos, label=0.0):
    return recordio.pack(
        recordio.IRHeader(0, label, 55, 0), encode(photos["rocket"][:80, :80], ".jpg")
    )


BAD_RECORDS = [
    ("no image data", lambda good: good[:24], ImageDecodeError),
    ("shorter than the 24 bytes", lambda good: good[:20], RecordHeaderError),
    ("", lambda good: b"", RecordHeaderError),
    ("text", lambda good: good[:24] + b"this is a text, not an image", ImageDecodeError),
    ("truncated", lambda good: good[:900], ImageDecodeError),
    ("announces 4294967295 labels", lambda good: b"\xff" * 4 + good[4:], RecordHeaderError),
    ("2 labels, label_width is 1", lambda good: b"\2\0\0\0" + good[4:], LabelError),
    (
        "corrupt png",
        lambda good: good[:24] + encode(np.zeros((50, 50, 3), np.uint8), ".png")[:60],
        ImageDecodeError,
    ),
]


@pytest.mark.parametrize(
    ("text", "damage", "error"), BAD_RECORDS, ids=[b[0] or "empty" for b in BAD_RECORDS]
)
def test_a_bad_record_is_an_error_with_its_place_and_the_rest_can_still_be_read(
    tmp_path, photos, text, damage, error
):
    good = jpeg_record(photos)
    records = [good] * 12
    records[5] = damage(good)
    path = write_records(tmp_path / "bad.rec", records)
    with provider_of(path, batch_size=4) as provider:
        provider.next()
        with pytest.raises(error) as caught:
            provider.next()
        assert caught.value.record == 5
        assert caught.value.offset == recordio.RecordReader(path).offsets[5]
        assert str(path) in str(caught.value)
        if text not in ("", "text", "truncated", "corrupt png"):
            assert text in str(caught.value)
        assert np.array_equal(
            provider.next().data[0], provider_of(path, batch_size=4).next().data[0]
        )


def test_the_first_bad_record_of_a_batch_is_named_whatever_the_threads_do(tmp_path, photos):
    good = jpeg_record(photos)
    records = [good] * 40
    for i in (7, 8, 22, 39):
        records[i] = good[:24] + b"x" * i
    path = write_records(tmp_path / "bad.rec", records)
    for _ in range(10):
        with provider_of(path, batch_size=40, preprocess_threads=8) as provider:
            with pytest.raises(ImageDecodeError) as caught:
                provider.next()
            assert caught.value.record == 7


def test_a_damaged_file_behind_a_good_index(tmp_path, photos):
    path, index = tmp_path / "a.rec", tmp_path / "a.idx"
    with recordio.RecordWriter(path, index) as writer:
        for _ in range(6):
            writer.write(jpeg_record(photos))
    offsets = recordio.RecordReader(path, index).offsets.copy()
    content = bytearray(path.read_bytes())
    content[offsets[1]] ^= 0xFF
    path.write_bytes(content[: offsets[5] + 40])
    with provider_of(path, path_imgidx=index, batch_size=1) as provider:
        provider.next()
        with pytest.raises(CorruptRecordError) as caught:
            provider.next()
        assert (caught.value.record, caught.value.offset) == (1, offsets[1])
        for _ in range(3):
            provider.next()
        with pytest.raises(TruncatedRecordError) as caught:
            provider.next()
        assert caught.value.record == 5


@pytest.mark.parametrize("shuffle", [False, True])
def test_damage_in_a_file_without_an_index_can_be_skipped(tmp_path, photos, shuffle):
    path = write_records(tmp_path / "a.rec", [jpeg_record(photos, i) for i in range(6)])
    offsets = recordio.RecordReader(path).offsets.copy()
    content = bytearray(path.read_bytes())
    content[offsets[2]] ^= 0xFF
    path.write_bytes(content[: offsets[5] + 41])
    with pytest.raises(CorruptRecordError):
        provider_of(path, batch_size=6)
    with provider_of(path, batch_size=6, on_error="skip", shuffle=shuffle) as provider:
        (batch,) = provider
        assert (batch.pad, provider.num_samples, len(provider.skipped)) == (0, 6, 2)
        assert set(batch.label[0].tolist()) <= {0, 1, 3, 4}
        assert sorted(name for name, _ in provider.skipped) == [2, 5]


def test_a_crop_outside_the_picture_is_an_error(tmp_path, photos):
    path = write_records(tmp_path / "a.rec", [jpeg_record(photos)])
    with provider_of(path, crop_x_start=50, batch_size=1) as provider:
        with pytest.raises(ImageDecodeError, match="crop_x_start"):
            provider.next()


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_damage_gives_batches_or_typed_errors(tmp_path, photos, data):
    content = bytearray(jpeg_record(photos))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=8)):
        content[place] = data.draw(st.integers(0, 255))
    path = write_records(tmp_path / "fuzz.rec", [bytes(content)])
    with provider_of(path, batch_size=1, **RANDOM) as provider:
        try:
            assert provider.next().data[0].shape == (1, 3, 48, 40)
        except recordio.RecordIOError as error:
            assert error.record == 0


# -- processes, threads, ends ----------------------------------------------------------------------


def test_dropping_a_provider_ends_its_threads(pack, new_threads):
    providers = [provider_of(pack, batch_size=2) for _ in range(5)]
    for provider in providers:
        provider.next()
    assert len(new_threads()) == 10
    del provider
    providers.clear()
    gc.collect()
    assert not new_threads()


def test_a_closed_provider_says_so_and_closing_twice_is_fine(pack):
    provider = provider_of(pack)
    batch = provider.next()
    copy = batch.data[0].copy()
    provider.close()
    provider.close()
    with pytest.raises(ValueError, match="closed"):
        provider.next()
    assert np.array_equal(batch.data[0], copy)


def use_in_child(provider, results):
    try:
        provider.next()
    except RuntimeError as error:
        results.put(str(error))
    provider.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_told_and_the_parent_goes_on(pack):
    with provider_of(pack) as provider:
        provider.next()
        context = multiprocessing.get_context("fork")
        results = context.Queue()
        child = context.Process(target=use_in_child, args=(provider, results))
        child.start()
        assert "process that created it" in results.get(timeout=30)
        child.join(30)
        assert child.exitcode == 0
        assert provider.next().index[0] == 106


def run_script(script, *arguments, **keywords):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **keywords,
    )


def test_the_interpreter_ends_with_a_provider_alive(pack):
    script = """
        import sys, iterators
        provider = iterators.ImageRecordIter(
            path_imgrec=sys.argv[1], data_shape=(3, 40, 40), batch_size=4)
        iterator = iter(provider)
        next(iterator)
        print("done")
    """
    child = run_script(script, pack)
    out, error = child.communicate(timeout=60)
    assert (child.returncode, out, error) == (0, "done\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_ctrl_c_interrupts_a_loop_and_the_provider_still_works(pack):
    script = """
        import sys, iterators
        provider = iterators.ImageRecordIter(
            path_imgrec=sys.argv[1], data_shape=(3, 400, 400), batch_size=64, resize=500)
        try:
            print("started", flush=True)
            while True:
                for batch in provider:
                    pass
        except KeyboardInterrupt:
            print(provider.next().data[0].shape)
    """
    with run_script(script, pack) as child:
        try:
            assert child.stdout.readline() == "started\n"
            child.send_signal(signal.SIGINT)
            out, error = child.communicate(timeout=60)
        finally:
            child.kill()
    assert (child.returncode, error) == (0, "")
    assert out == "(64, 3, 400, 400)\n"


def test_many_consumers_threads_one_provider_each(pack):
    wanted = copies(provider_of(pack, shuffle=True, **RANDOM))
    failures = []

    def consume():
        with provider_of(pack, shuffle=True, **RANDOM) as provider:
            if not same(copies(provider), wanted):
                failures.append(1)

    threads = [threading.Thread(target=consume) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
