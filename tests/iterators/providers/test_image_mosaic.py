"""Mosaics of `ImageDetRecordIter`: four records in one image, with the objects of all."""

import cv2
import numpy as np
import pytest
from range_server import RangeServer
from scipy import stats

import recordio
from iterators import ImageDetRecordIter, Pack
from iterators.testing import copies, encode, maker, same, samples, write_rows
from recordio.bytes.remote.block_table import HAS_LOCKS
from recordio.errors import ImageDecodeError, LabelError

COUNT = 24
SIDE = 64


def grey_of(number):
    """The level of the object of a record; that of its ground is half of it."""
    return 60 + 8 * number


def record(number, width=60, height=60, label=None):
    """A light rectangle on a ground of half its level, both of which tell the record."""
    image = np.full((height, width, 3), grey_of(number % COUNT) // 2, np.uint8)
    left, top, right, bottom = width // 6, height // 4, width * 5 // 6, height * 3 // 4
    image[top:bottom, left:right] = grey_of(number % COUNT)
    box = [left / width, top / height, right / width, bottom / height]
    return number, [2, 5, number, *box] if label is None else label, encode(image)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("mosaic") / "boxes.rec"
    sizes = [(60, 60), (90, 60), (40, 80)]
    return write_rows(path, [record(i, *sizes[i % 3]) for i in range(COUNT)])


provider_of = maker(
    ImageDetRecordIter, data_shape=(3, SIDE, SIDE), batch_size=6, preprocess_threads=2,
    dtype="uint8", mosaic=1.0, fill_value=0, layout="NHWC",
)  # fmt: skip


def objects_of(row):
    return row[6 : 4 + int(row[3])].reshape(-1, int(row[5]))


# -- what a mosaic is ------------------------------------------------------------------------------


@pytest.mark.parametrize("center", [(0.5, 1.5), 1, (0, 2)])
def test_boxes_lie_where_the_pixels_of_their_records_are(pack, center):
    """Every object kept by a low threshold is the extent of the pixels of its level."""
    with provider_of(
        pack, mosaic_center=center, inter_method=0, crop_emit_mode="overlap",
        emit_overlap_thresh=0.05,
    ) as provider:  # fmt: skip
        batches = copies(provider)
    seen = 0
    for image, label, own in samples(batches):
        assert image.shape == (SIDE, SIDE, 3) and label[1:3].tolist() == [SIDE, SIDE]
        classes = objects_of(label)[:, 0].astype(int).tolist()
        assert center != 1 or (classes[0] == own and len(classes) == 4)
        for number, *box in objects_of(label).tolist():
            if classes.count(int(number)) > 1:
                continue  # drawn twice
            rows, columns = np.nonzero(image[..., 0] == grey_of(int(number)))
            around = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            np.testing.assert_allclose(np.array(box) * SIDE, around, atol=1.6)
            seen += 1
    assert seen > COUNT


def test_the_first_image_is_that_of_the_record_at_the_upper_left(pack):
    with provider_of(pack, mosaic_center=1, inter_method=0) as provider:
        for image, label, own in samples(provider):
            assert image[SIDE // 2 - 1, SIDE // 2 - 1, 0] == grey_of(own) // 2
            assert objects_of(label)[0, 0] == own


def test_what_no_image_reaches_has_the_fill_value(pack):
    with provider_of(pack, mosaic_center=1, fill_value=7, inter_method=0) as provider:
        levels = {7} | {x for i in range(COUNT) for x in (grey_of(i), grey_of(i) // 2)}
        for image, _, _ in samples(provider):
            assert set(np.unique(image)) <= levels
        assert provider.stats()["mosaics"] == provider.stats()["images"] >= COUNT


def test_the_probability_is_that_of_a_mosaic(pack):
    with provider_of(pack, mosaic=0.3, seed=4) as provider:
        found = [len(objects_of(label)) for _ in range(20) for _, label, _ in
                 samples(provider)]  # fmt: skip
        made = provider.stats()
    share = np.mean(np.array(found) > 1)
    assert abs(share - 0.3) < 0.08
    assert abs(made["mosaics"] / made["images"] - 0.3) < 0.08


def test_without_a_mosaic_an_image_is_as_it_always_was(pack):
    """The other draws stay, and so do the images that are left alone."""
    keywords = {"rand_mirror_prob": 0.5, "rand_crop_prob": 0.5, "min_crop_scales": 0.5}
    with provider_of(pack, mosaic=0.4, **keywords) as provider:
        mixed = list(samples(provider))
    with provider_of(pack, mosaic=0, **keywords | {"fill_value": 127}) as provider:
        plain = list(samples(provider))
    alone = [np.array_equal(a[0], b[0]) for a, b in zip(mixed, plain, strict=True)]
    assert 5 < sum(alone) < 20
    for a, b, equal in zip(mixed, plain, alone, strict=True):
        if equal:
            assert np.array_equal(objects_of(a[1]), objects_of(b[1]))


def test_partners_are_drawn_evenly_from_the_whole_pack(pack):
    """Of a part with few records, too, and never the record itself."""
    counts, expected = np.zeros(COUNT), np.zeros(COUNT)
    with provider_of(pack, batch_size=1, num_parts=12, mosaic_center=1) as provider:
        assert provider.num_samples < 5
        for _ in range(150):
            for _, label, own in samples(provider):
                partners = objects_of(label)[1:, 0].astype(int)
                assert own not in partners
                np.add.at(counts, partners, 1)
                expected[np.arange(COUNT) != own] += 3 / (COUNT - 1)
    assert stats.chisquare(counts, expected).pvalue > 1e-5


def test_a_pack_of_one_record_meets_itself(tmp_path):
    path = write_rows(tmp_path / "one.rec", [record(3)])
    with provider_of(path, batch_size=1, mosaic_center=1) as provider:
        (batch,) = copies(provider)
    assert objects_of(batch.label[0][0])[:, 0].tolist() == [3, 3, 3, 3]


def test_the_whole_goes_the_way_of_an_image(pack):
    """Mirror, border, crop and policy see the mosaic: boxes stay on their pixels."""
    with provider_of(
        pack, rand_mirror_prob=0.5, rand_pad_prob=0.5, max_pad_scale=1.5, rand_crop_prob=0.7,
        min_crop_scales=0.6, auto_augment="rand-m5-t3a", crop_emit_mode="overlap",
        resize_mode="fit",
    ) as provider:  # fmt: skip
        batches = copies(provider)
    assert max(len(objects_of(label)) for _, label, _ in samples(batches)) == 4
    with provider_of(
        pack, rand_mirror_prob=1, inter_method=0, crop_emit_mode="overlap", mosaic_center=1
    ) as provider:
        for image, label, own in samples(provider):
            number, *box = objects_of(label)[0].tolist()
            assert number == own
            rows, columns = np.nonzero(image[..., 0] == grey_of(own))
            around = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            np.testing.assert_allclose(np.array(box) * SIDE, around, atol=1.6)


# -- the same whoever makes it ---------------------------------------------------------------------

EVERYTHING = {
    "mosaic": 0.6, "shuffle": True, "seed": 5, "rand_mirror_prob": 0.5, "rand_crop_prob": 0.5,
    "min_crop_scales": 0.5, "auto_augment": "randaugment", "random_erasing": 0.5,
    "inter_method": 10,
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 5])
def test_batches_do_not_depend_on_threads_or_prefetching(pack, threads):
    with provider_of(pack, **EVERYTHING) as provider:
        expected = [copies(provider), copies(provider)]
    with provider_of(pack, **EVERYTHING, preprocess_threads=threads, prefetch_buffer=1) as provider:
        found = [copies(provider), copies(provider)]
    assert all(same(a, b) for a, b in zip(expected, found, strict=True))
    assert not same(*expected)


@pytest.mark.parametrize("batches", [1, 3, 5])
def test_a_state_goes_on_exactly_where_it_was_saved(pack, batches):
    with provider_of(pack, **EVERYTHING) as provider:
        expected = copies(provider) + copies(provider)
    with provider_of(pack, **EVERYTHING) as provider:
        for _ in range(batches):
            try:
                provider.next()
            except StopIteration:
                provider.reset()
                provider.next()
        state = provider.state_dict()
    with provider_of(pack, **EVERYTHING) as provider:
        provider.load_state_dict(state)
        found = copies(provider)
    rest = batches if batches < len(expected) // 2 else batches - len(expected) // 2
    start = batches - rest
    assert same(found, expected[start + rest : start + len(expected) // 2])
    with provider_of(pack, **EVERYTHING | {"mosaic": 0.5}) as provider:
        with pytest.raises(ValueError, match="mosaic"):
            provider.load_state_dict(state)


def test_a_record_that_comes_again_meets_others(pack):
    weights = np.ones(COUNT)
    weights[0] = 1000
    with provider_of(pack, weights=weights, mosaic_center=1) as provider:
        met = [tuple(objects_of(label)[1:, 0]) for _, label, own in samples(provider)
               if own == 0]  # fmt: skip
    assert len(met) > 10 and len(set(met)) > len(met) // 2


def test_partners_come_from_the_pack_of_the_record(pack, tmp_path):
    other = write_rows(tmp_path / "other.rec", [
        record(30 + i, label=[2, 5, 30 + i, 0.1, 0.1, 0.9, 0.9]) for i in range(10)
    ])  # fmt: skip
    packs = [Pack(pack, mosaic=1, mosaic_center=1), Pack(other)]
    with provider_of(packs, mosaic=0, fill_value=127) as provider:
        assert provider.provide_label[0].shape == (6, 26)
        for _, label, own in samples(provider):
            met = objects_of(label)[:, 0]
            assert met.tolist() == [own] if own >= 30 else len(met) == 4
            assert (met < 30).all() or own >= 30


@pytest.mark.parametrize("library", ["obstore", "fsspec"])
@pytest.mark.parametrize("bounded", [False, True])
def test_partners_on_servers_are_fetched_with_the_batch(tmp_path, library, bounded):
    """Also where no file stays as a whole, so that what is not held may be given up."""
    pytest.importorskip("obstore" if library == "obstore" else "aiohttp")
    if bounded and not HAS_LOCKS:
        pytest.skip("mirrors are bounded on Linux only")
    rng = np.random.default_rng(0)
    records = [
        (i, [2, 5, i, 0.1, 0.1, 0.9, 0.9], encode(rng.integers(0, 256, (150, 150, 3), np.uint8)))
        for i in range(60)
    ]
    path = write_rows(tmp_path / "far.rec", records)
    keywords = {"shuffle": True, "seed": 2, "mosaic": 0.5, "verbose": False}
    with provider_of(path, **keywords) as provider:
        expected = [copies(provider), copies(provider)]
    server = RangeServer()
    try:
        for file in (path, path.with_suffix(".idx")):
            server.objects[file.name] = file.read_bytes()
        remote = {
            "remote_cache": tmp_path / "mirrors", "remote_timeout": 20,
            "remote_options": {"library": library},
        }  # fmt: skip
        url = f"{server.url}/far.rec"
        size = path.stat().st_size // 3
        if bounded:
            with pytest.warns(UserWarning, match="remote_cache_size"):
                provider = provider_of(url, **keywords, **remote, remote_cache_size=size)
        else:
            provider = provider_of(url, **keywords, **remote)
        with provider:
            found = [copies(provider), copies(provider)]
            assert (provider.stats()["remote_evicted"] > 0) == bounded
    finally:
        server.stop()
    assert all(same(a, b) for a, b in zip(expected, found, strict=True))


# -- labels ----------------------------------------------------------------------------------------


def test_rows_have_room_for_four_labels(pack, tmp_path):
    with provider_of(pack) as provider:
        assert provider.provide_label[0].shape == (6, 4 + 2 + 4 * 5)
    labels = [[3, 5, 9, *([1, 0.1, 0.1, 0.9, 0.9] * count)] for count in (1, 3, 2, 3)]
    path = write_rows(tmp_path / "more.rec", [record(i, label=x) for i, x in enumerate(labels)])
    with provider_of(path, batch_size=4, mosaic_center=1) as provider:
        for _, label, _ in samples([b for _ in range(10) for b in copies(provider)]):
            assert label[4:7].tolist() == [3, 5, 9]
            assert label[3] <= len(label) - 4


def test_objects_beyond_a_given_width_are_left_out_from_the_end(pack):
    """The first ones are those of a row with enough room, and nothing is written beyond it."""
    with provider_of(pack, mosaic_center=1) as provider:
        whole = list(samples(provider))
    for room in (1, 2, 3):
        with provider_of(pack, mosaic_center=1, label_pad_width=2 + 5 * room + 3) as provider:
            for (data, label, _), (all_data, all_label, _) in zip(
                samples(provider), whole, strict=True
            ):
                assert np.array_equal(data, all_data)
                assert np.array_equal(objects_of(label), objects_of(all_label)[:room])
                assert (label[6 + 5 * room :] == -1).all()


def test_a_partner_with_objects_of_another_width_is_named(tmp_path):
    wide = [2, 6, 1, 0.1, 0.1, 0.9, 0.9, 0.5]
    path = write_rows(tmp_path / "wide.rec", [record(0), record(1, label=wide)])
    with provider_of(path, batch_size=1, preprocess_threads=1) as provider:
        with pytest.raises(LabelError, match="objects of the record have 6 values") as caught:
            provider.next()
    assert caught.value.record_id == 1


def test_records_without_objects_and_padding(tmp_path):
    flat = [2, 5, 1, 0.5, 0.5, 0.5, 0.9]
    path = write_rows(tmp_path / "flat.rec", [record(i, label=flat) for i in range(3)])
    with provider_of(path, batch_size=2, label_pad_value=-3) as provider:
        for _, label, _ in samples(provider):
            assert label[3:6].tolist() == [2, 2, 5] and (label[6:] == -3).all()


# -- damage ----------------------------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path):
    """Record 5 is no image; 20 others are."""
    records = [record(i) for i in range(21)]
    records[5] = (5, records[5][1], b"\x89PNG\r\n\x1a\n" + bytes(50))
    return write_rows(tmp_path / "damaged.rec", records)


def test_a_damaged_partner_is_the_record_that_is_named(damaged):
    with provider_of(damaged, batch_size=1, num_parts=21, part_index=0) as provider:
        assert provider.num_samples == 1  # record 0 alone, which is whole
        with pytest.raises(ImageDecodeError) as caught:
            for _ in range(60):
                list(provider)
    assert caught.value.record_id == 5 and caught.value.record == 5
    assert str(damaged) in str(caught.value)


def test_a_damaged_partner_is_skipped_and_listed_once(damaged):
    keywords = {"on_error": "skip", "batch_size": 3, "mosaic_center": 1}
    with provider_of(damaged, **keywords, mosaic=1) as provider:
        batches = [batch for _ in range(5) for batch in copies(provider)]
        assert [number for number, _ in provider.skipped] == [5]
    found = list(samples(batches))
    assert len(found) == 5 * 21
    for image, label, own in found:
        met = objects_of(label)[:, 0].astype(int)
        assert met[0] == own and 5 not in met and len(met) == 4
        assert image[SIDE // 2 - 1, SIDE // 2 - 1, 0] == grey_of(own) // 2
    with provider_of(damaged, **keywords, preprocess_threads=4, prefetch_buffer=2) as provider:
        assert same(batches, [batch for _ in range(5) for batch in copies(provider)])


def test_verified_partners_are_compared_with_their_checksums(tmp_path):
    path = write_rows(tmp_path / "sums.rec", map(record, range(4)), checksums=True)
    with recordio.RecordReader(path) as reader:
        place = int(reader.offsets[2]) + 120
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))
    with provider_of(path, batch_size=1, num_parts=4, verify=True) as provider:
        assert provider.num_samples == 1
        with pytest.raises(recordio.RecordIOError, match="are not those that") as caught:
            for _ in range(30):
                list(provider)
    assert caught.value.record == 2


# -- keywords --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"mosaic": 1.5}, "mosaic=1.5"),
        ({"mosaic_center": (0.5, 2.5)}, "mosaic_center"),
        ({"mosaic_center": (1.5, 0.5)}, "is above"),
        ({"mosaic": 0, "mosaic_center": 1, "fill_value": 127}, "has no effect without mosaic"),
        ({"cache": "ram"}, "drop cache"),
    ],
)
def test_wrong_keywords_are_refused(pack, keywords, text):
    with pytest.raises(ValueError, match=text):
        provider_of(pack, **keywords)


def test_a_cache_of_a_pack_is_refused_too(pack):
    with pytest.raises(ValueError, match="drop cache"):
        provider_of([Pack(pack, cache="ram")])


# -- odd sizes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 1, 1), (1, 5, 40), (4, 33, 2), (3, 300, 7)])
@pytest.mark.parametrize("mode", ["force", "fit"])
def test_images_of_any_proportion_meet_in_any_shape(tmp_path, shape, mode):
    sizes = [(1, 1), (1, 300), (300, 1), (7, 5), (200, 90), (2, 2)]
    label = [2, 5, 1, 0, 0, 1, 1]
    records = []
    for i, (width, height) in enumerate(sizes):
        size = height, width, max(shape[0], 3)
        image = np.random.default_rng(i).integers(0, 256, size, np.uint8)
        records.append((i, label, cv2.imencode(".png", image)[1].tobytes()))
    path = write_rows(tmp_path / "odd.rec", records)
    policy = {"auto_augment": "rand-m9-n3-mstd0.5", "random_erasing": 0.5}
    keywords = {"data_shape": shape, "resize_mode": mode, "mosaic_center": (0, 2), **policy}
    with provider_of(path, **keywords, rand_crop_prob=0.5, min_crop_scales=0.3) as provider:
        for _ in range(20):
            for image, row, _ in samples(provider):
                assert image.shape == (shape[1], shape[2], shape[0])
                boxes = objects_of(row)[:, 1:]
                assert (boxes >= 0).all() and (boxes <= 1).all()
                assert (boxes[:, :2] <= boxes[:, 2:]).all()


def test_images_alone_are_the_same(pack):
    with provider_of(pack) as provider, provider_of(pack, label_name=None) as alone:
        for a, b in zip(provider, alone, strict=True):
            assert np.array_equal(a.data[0], b.data[0]) and b.label == []
