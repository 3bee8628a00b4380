"""Several packs as one: shares, labels, classes in turn, recipes and caches of their own."""

import gc
import weakref

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iterators import ImageDetRecordIter, ImageIter, ImageRecordIter, Pack
from iterators.datasets import ImageRecordDataset
from iterators.images.sources.record_source import RecordSource
from iterators.testing import write_faces, write_rows
from recordio import RecordReader, verify
from recordio.errors import LabelError, RecordIOError

SHAPE = {"data_shape": (3, 8, 8), "batch_size": 16}


def content(value, suffix=".png"):
    image = np.full((12, 10, 3), value % 251, np.uint8)
    image[2:5, 3:6] = 255 - value % 251
    return cv2.imencode(suffix, image)[1].tobytes()


def write(path, records):
    """Records of label, id and content."""
    return write_rows(path, [(number, label, data) for label, number, data in records])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("packs")


@pytest.fixture(scope="module")
def faces(folder):
    """An identity pack: 10 identities of 10 images, ids 1 to 100."""
    return write_faces(folder / "faces.rec", [10] * 10, map(content, range(1, 101)))


@pytest.fixture(scope="module")
def plain(folder):
    """60 images of 6 classes, ids 1000 to 1059."""
    records = [(float(i % 6), 1000 + i, content(i)) for i in range(60)]
    return write(folder / "plain.rec", records)


@pytest.fixture(scope="module")
def boxes(folder):
    """20 images with an object of class 0 to 3, ids 2000 to 2019."""
    records = [
        ([2, 5, i % 4, 0.1, 0.1, 0.5, 0.9, (i + 1) % 4, 0.2, 0.2, 0.6, 0.6], 2000 + i, content(i))
        for i in range(20)
    ]
    return write(folder / "boxes.rec", records)


def index_of(path):
    return path.with_suffix(".idx")


def mixed(faces, plain, first=0.7, second=0.3, **more):
    packs = [
        Pack(faces, share=first, path_imgidx=index_of(faces)),
        Pack(plain, share=second, labels="append"),
    ]
    return ImageRecordIter(path_imgrec=packs, **{**SHAPE, "shuffle": True, "seed": 1, **more})


def contents(batches):
    def arrays(batch):
        return batch.data[0], batch.label[0], batch.index, batch.source

    return [(batch.pad, *(array.tobytes() for array in arrays(batch))) for batch in batches]


def samples(provider, name="source"):
    """An array of what the batches of an epoch hold, without padding."""
    found = []
    for batch in provider:
        values = {"source": batch.source, "index": batch.index, "label": batch.label[0]}[name]
        found.append(np.array(values[: batch.count]))
    return np.concatenate(found)


# -- shares ----------------------------------------------------------------------------------------


def test_two_packs_in_shares(faces, plain):
    with mixed(faces, plain) as provider:
        assert (provider.num_samples, provider.num_classes) == (160, 16)
        assert [pack.path for pack in provider.packs] == [str(faces), str(plain)]
        for _ in range(3):
            batches = list(provider)
            source = np.concatenate([batch.source for batch in batches])
            ids = np.concatenate([batch.index for batch in batches]).astype(np.int64)
            labels = np.concatenate([batch.label[0] for batch in batches])
            assert np.bincount(source).tolist() == [112, 48]
            given = np.cumsum(source == 0) - 0.7 * np.arange(1, 161)
            assert np.abs(given).max() <= 1 + 1e-9
            assert ((ids >= 1000) == (source == 1)).all()
            wanted = np.where(source == 0, (ids - 1) // 10, 10 + (ids - 1000) % 6)
            assert (labels == wanted).all()


def test_what_is_left_of_a_pack_comes_in_the_next_epoch(faces, plain):
    with mixed(faces, plain, 0.25, 0.75, epoch_size=80) as provider:
        assert len(provider) == 5
        epochs = [samples(provider, "index") for _ in range(10)]
    small = np.concatenate(epochs)
    assert (np.bincount(small[small >= 1000].astype(int) - 1000, minlength=60) == 10).all()
    assert (np.bincount(small[small < 1000].astype(int), minlength=101)[1:] == 2).all()


def test_repeats(faces, plain):
    packs = [Pack(faces, repeat=0.5), Pack(plain, repeat=2)]
    with ImageRecordIter(path_imgrec=packs, shuffle=True, **SHAPE) as provider:
        assert provider.num_samples == 50 + 120
        assert np.bincount(samples(provider)).tolist() == [50, 120]


def test_a_pack_without_a_repeat_comes_once(faces, plain):
    packs = [Pack(plain, repeat=3), plain]
    with ImageRecordIter(path_imgrec=packs, **SHAPE) as provider:
        assert np.bincount(samples(provider)).tolist() == [180, 60]


def test_without_shares_packs_are_one_after_the_other(faces, plain):
    packs = [Pack(plain), str(plain)]
    listed = [str(plain), str(plain)]
    with ImageRecordIter(path_imgrec=packs, **SHAPE) as provider:
        with ImageRecordIter(path_imgrec=listed, **SHAPE) as wanted:
            for one, other in zip(provider, wanted, strict=True):
                assert one.data[0].tobytes() == other.data[0].tobytes()
                assert other.source.tolist() == [0] * 16
        assert samples(provider).tolist() == [0] * 60 + [1] * 60


def test_one_path_has_a_size_of_an_epoch_too(plain):
    with ImageRecordIter(path_imgrec=plain, shuffle=True, epoch_size=48, **SHAPE) as provider:
        found = np.concatenate([samples(provider, "index") for _ in range(5)])
    assert (np.bincount(found.astype(int) - 1000) == 4).all()
    for start in range(0, 240, 60):
        assert len(set(found[start : start + 60].tolist())) == 60


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(n=st.integers(1, 4), m=st.integers(1, 4), taken=st.integers(0, 6), epoch=st.integers(0, 2))
def test_another_number_of_parts_goes_on_with_the_same_sequence(faces, plain, n, m, taken, epoch):
    more = {"batch_size": 4, "epoch": epoch, "rand_mirror": True, "rand_crop": True}

    def dealt(parts, number, state=None):
        """The samples of some rounds of batches of all parts, in the global order."""
        rounds = []
        for part in range(parts):
            with mixed(faces, plain, num_parts=parts, part_index=part, **more) as provider:
                if state is not None:
                    provider.load_state_dict(state)
                mine = [provider.next() for _ in range(number)]
                rounds.append([
                    (b.index[i], b.label[0][i], b.source[i], b.data[0][i].tobytes())
                    for b in mine for i in range(4)
                ])  # fmt: skip
                after = provider.state_dict()
        return [sample for turn in zip(*rounds, strict=True) for sample in turn], after

    whole, _ = dealt(1, 36)
    before, state = dealt(n, taken)
    rest, _ = dealt(m, 3, state)
    assert before == whole[: len(before)]
    assert rest == whole[len(before) : len(before) + len(rest)]


def test_resume_at_every_batch_of_three_epochs(faces, plain):
    with mixed(faces, plain, rand_crop=True, rand_mirror=True) as provider:
        whole, states = [], []
        for _ in range(3):
            for batch in provider:
                whole.append(contents([batch])[0])
                states.append(provider.state_dict())
    for number in range(0, len(states) - 1, 4):
        with mixed(faces, plain, rand_crop=True, rand_mirror=True) as provider:
            provider.load_state_dict(states[number])
            assert contents([provider.next()])[0] == whole[number + 1]


def test_threads_and_prefetching_change_nothing(faces, plain):
    wanted = contents(mixed(faces, plain, rand_crop=True))
    for threads, ahead in ((1, 1), (3, 2), (8, 9)):
        with mixed(
            faces, plain, rand_crop=True, preprocess_threads=threads, prefetch_buffer=ahead
        ) as provider:
            assert contents(provider) == wanted


@pytest.mark.parametrize(
    "other",
    [{"first": 0.6, "second": 0.4}, {"epoch_size": 96}],
)
def test_a_state_of_other_shares_is_refused(faces, plain, other):
    with mixed(faces, plain) as one, mixed(faces, plain, **other) as another:
        with pytest.raises(ValueError, match="the state was saved with order=mixed"):
            another.load_state_dict(one.state_dict())


def test_a_state_of_other_labels_is_refused(plain):
    def of(labels):
        return ImageRecordIter(path_imgrec=[Pack(plain, labels=labels)], **SHAPE)

    with of({i: i for i in range(6)}) as one, of({i: i + 1 for i in range(6)}) as another:
        with pytest.raises(ValueError, match="the state was saved with packs="):
            another.load_state_dict(one.state_dict())


def test_a_replaced_record_says_where_it_came_from(faces, plain, folder):
    bad = [(float(i % 2), 3000 + i, content(i) if i % 3 else b"no image") for i in range(30)]
    path = write(folder / "bad.rec", bad)
    packs = [Pack(plain, share=0.5), Pack(path, share=0.5)]
    keywords = {"path_imgrec": packs, "shuffle": True, "on_error": "skip", **SHAPE}
    with ImageRecordIter(**keywords) as provider:
        for batch in provider:
            assert ((batch.index >= 3000) == (batch.source == 1)).all()
        assert {number for number, _ in provider.skipped} == set(range(3000, 3030, 3))


def test_a_place_without_a_sample_comes_from_nowhere(plain):
    keywords = {"path_imgrec": [Pack(plain, share=1)], "round_batch": False, **SHAPE}
    with ImageRecordIter(**keywords) as provider:
        *_, last = provider
    assert last.source.tolist() == [0] * 12 + [-1] * 4


def test_weights_of_a_pack(faces, plain):
    packs = [
        Pack(faces, share=0.5, path_imgidx=index_of(faces)),
        Pack(plain, share=0.5, labels="append", weights={10 + i: float(i == 4) for i in range(6)}),
    ]
    with ImageRecordIter(path_imgrec=packs, seed=3, **SHAPE) as provider:
        labels = samples(provider, "label")
        assert set(labels[labels >= 10].tolist()) == {14.0}
        assert sorted(labels[labels < 10].tolist()) == np.repeat(np.arange(8), 10).tolist()


# -- labels ----------------------------------------------------------------------------------------


def by_id(provider):
    return {int(i): float(v) for i, v in zip(samples(provider, "index"), samples(provider, "label"),
                                             strict=True)}  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ("keep", lambda old: old),
        ("append", lambda old: old + 10),
        ({i: 100 - i for i in range(6)}, lambda old: 100 - old),
        ([5, 4, 3, 2, 1, 0], lambda old: 5 - old),
        (np.array([5, 4, 3, 2, 1, 0]), lambda old: 5 - old),
        (lambda old: old * 2, lambda old: old * 2),
        (None, lambda old: -1),
    ],
)
@pytest.mark.parametrize("kind", ["records", "functions", "dataset"])
def test_labels(faces, plain, labels, wanted, kind):
    packs = [Pack(faces, path_imgidx=index_of(faces)), Pack(plain, labels=labels)]
    if kind == "dataset":
        dataset = ImageRecordDataset(packs)
        assert [dataset.pack_of(i) for i in (0, 99, 100, -1)] == [0, 0, 1, 1]
        found = {1000 + i: float(dataset[100 + i][1]) for i in range(60)}
        assert dataset.num_classes == max(10, *(wanted(i) + 1 for i in range(6)))
    elif kind == "records":
        with ImageRecordIter(path_imgrec=packs, **SHAPE) as provider:
            found = by_id(provider)
            assert provider.num_classes == max(10, *(wanted(i) + 1 for i in range(6)))
    else:

        def crop(image):
            return image[:8, :8]

        with ImageIter(16, (3, 8, 8), path_imgrec=packs, aug_list=[crop]) as provider:
            found = {}
            for batch in provider:
                found.update(zip(batch.index.tolist(), batch.label[0].tolist(), strict=True))
    assert {i: v for i, v in found.items() if i >= 1000} == {
        1000 + i: wanted(i % 6) for i in range(60)
    }  # fmt: skip


def test_other_labels_of_a_record_stay(folder):
    path = write(folder / "pairs.rec", [([i, 7.5], i, content(i)) for i in range(4)])
    pack = Pack(path, labels=[10, 11, 12, 13])
    with ImageRecordIter(path_imgrec=pack, **{**SHAPE, "batch_size": 4}, label_width=2) as provider:
        (batch,) = provider
    assert batch.label[0].tolist() == [[10, 7.5], [11, 7.5], [12, 7.5], [13, 7.5]]
    assert ImageRecordDataset(pack)[2][1].tolist() == [12, 7.5]


def test_labels_of_a_list_of_a_pack(plain, folder):
    lines = "".join(f"{1000 + i}\t{i % 2}\tx.png\n" for i in range(60))
    path = folder / "plain.lst"
    path.write_text(lines)
    packs = [Pack(plain), Pack(plain, path_imglist=path, labels="append")]
    with ImageRecordIter(path_imgrec=packs, **SHAPE) as provider:
        labels = samples(provider, "label")
        assert provider.num_classes == 8
    assert labels[:60].tolist() == [i % 6 for i in range(60)]
    assert labels[60:].tolist() == [6 + i % 2 for i in range(60)]
    dataset = ImageRecordDataset(packs)
    assert [float(dataset[i][1]) for i in range(60, 120)] == labels[60:].tolist()


@pytest.mark.parametrize("labels", [{0: 0, 1: 1}, [0, 1]])
def test_unknown_labels_name_pack_and_record(faces, plain, labels):
    packs = [Pack(faces, path_imgidx=index_of(faces)), Pack(plain, labels=labels)]
    with ImageRecordIter(path_imgrec=packs, **SHAPE) as provider:
        with pytest.raises(
            LabelError, match=r"plain\.rec, offset \d+, record 2, id 1002: .*label 2"
        ):
            list(provider)
    with ImageRecordIter(path_imgrec=packs, on_error="skip", **SHAPE) as provider:
        assert set(samples(provider, "label").tolist()) <= {*range(10)}
        assert len(provider.skipped) == 40
    dataset = ImageRecordDataset(packs)
    with pytest.raises(LabelError, match=r"plain\.rec, offset \d+, record 2.*label 2 is unknown"):
        dataset[102]


def test_more_classes_than_were_promised(plain):
    with ImageRecordIter(path_imgrec=Pack(plain, classes=3), **SHAPE) as provider:
        with pytest.raises(LabelError, match="the label 3 numbers none of the 3 classes"):
            list(provider)


def test_unknown_labels_are_found_where_classes_are_needed(plain):
    packs = [Pack(plain, labels={0: 0, 1: 1, 2: 2})]
    keywords = {"path_imgrec": packs, "images_per_class": 4, "data_shape": (3, 8, 8)}
    with pytest.raises(LabelError, match="record 3: the label 3 is unknown"):
        ImageRecordIter(batch_size=12, **keywords)
    with ImageRecordIter(batch_size=12, on_error="skip", **keywords) as provider:
        assert set(samples(provider, "label").tolist()) == {0, 1, 2}
        assert len(provider.skipped) == 30


def test_classes_of_boxes(boxes, plain):
    packs = [Pack(boxes), Pack(boxes, labels="append"), Pack(plain, labels=None)]
    with ImageDetRecordIter(path_imgrec=packs, label_pad_width=20, **SHAPE) as provider:
        assert provider.num_classes == 8
        for batch in provider:
            for row, pack, number in zip(batch.label[0], batch.source, batch.index, strict=True):
                objects = row[6 : 4 + int(row[3])].reshape(-1, 5)
                shift = {0: 0, 1: 4}.get(int(pack))
                i = int(number) - 2000
                wanted = [] if pack == 2 else [shift + i % 4, shift + (i + 1) % 4]
                assert objects[:, 0].tolist() == wanted
                assert (row[4 + int(row[3]) :] == -1).all()


def test_mapped_and_unknown_classes_of_boxes(boxes):
    pack = Pack(boxes, labels={0: 7, 1: 8, 2: 9, 3: 7})
    with ImageDetRecordIter(path_imgrec=pack, **SHAPE) as provider:
        first = provider.next().label[0][1]
        assert (first[6], first[11], provider.num_classes) == (8, 9, 10)
    with ImageDetRecordIter(path_imgrec=Pack(boxes, classes=3), **SHAPE) as provider:
        with pytest.raises(LabelError, match=r"boxes\.rec.*label 3 numbers none of the 3 classes"):
            list(provider)


def test_numbers_of_classes_without_packs(plain, faces):
    with ImageRecordIter(path_imgrec=plain, **SHAPE) as provider:
        assert provider.num_classes == 6
        provider.close()
        with pytest.raises(ValueError, match="closed"):
            _ = provider.num_classes
    keywords = {"path_imgrec": faces, "path_imgidx": index_of(faces)}
    with ImageRecordIter(**keywords, **SHAPE) as provider:
        assert provider.num_classes == 10


# -- classes in turn -------------------------------------------------------------------------------


def test_batches_of_classes_across_packs(faces, plain):
    packs = [Pack(faces, path_imgidx=index_of(faces)), Pack(plain, labels="append")]
    keywords = {"path_imgrec": packs, "images_per_class": 4, **SHAPE}
    parts = []
    for part in range(2):
        with ImageRecordIter(num_parts=2, part_index=part, **keywords) as provider:
            parts.append(list(provider))
    with ImageRecordIter(**keywords, shuffle=True) as provider:
        whole = list(provider)
    assert len(whole) == 10
    for batch in whole:
        labels = batch.label[0].reshape(4, 4)
        assert (labels == labels[:, :1]).all()
        assert len(set(labels[:, 0].tolist())) == 4
        assert len(set(batch.index.tolist())) == 16
    assert {float(v) for batch in whole for v in batch.label[0]} == {*range(16)}
    dealt = [batch for turn in zip(*parts, strict=True) for batch in turn]
    assert contents(dealt) == contents(whole)


def test_a_limit_of_classes(plain):
    keywords = {"path_imgrec": plain, "images_per_class": 2, "classes_per_batch": 2, **SHAPE}
    with ImageRecordIter(**keywords) as provider:
        for batch in provider:
            assert np.unique(batch.label[0], return_counts=True)[1].tolist() == [8, 8]


# -- images ----------------------------------------------------------------------------------------


def test_a_pack_has_augmentation_of_its_own(plain):
    packs = [Pack(plain), Pack(plain, mean_r=3, mean_g=3, mean_b=3, resize=9, mirror=True)]
    with ImageRecordIter(path_imgrec=packs, **SHAPE) as provider:
        found = {}
        for batch in provider:
            for image, number, pack in zip(batch.data[0], batch.index, batch.source, strict=True):
                found[int(pack), int(number)] = image
    for pack, more in ((0, {}), (1, packs[1].augmentation)):
        with ImageRecordIter(path_imgrec=plain, **SHAPE, **more) as provider:
            for batch in provider:
                for image, number in zip(batch.data[0], batch.index, strict=True):
                    assert (found[pack, int(number)] == image).all()


def test_a_pack_is_warned_of_what_does_nothing(plain):
    with pytest.warns(UserWarning, match=r"min_random_area=0\.5 has no effect"):
        ImageRecordIter(path_imgrec=[Pack(plain, min_random_area=0.5)], **SHAPE).close()


def test_augmentation_of_an_image_iter(plain):
    packs = [Pack(plain), Pack(plain, mean=np.array([3.0, 3.0, 3.0]))]
    with ImageIter(60, (3, 8, 8), path_imgrec=packs) as provider:
        one, other = (batch.data[0] for batch in provider)
    assert (one - 3 == other).all()


def test_normalisation_on_the_device_is_that_of_all(plain):
    pytest.importorskip("torch")
    keywords = {"device": "cpu", "normalise_on": "device", **SHAPE}
    with pytest.raises(ValueError, match="packs that differ in mean"):
        ImageRecordIter(path_imgrec=[Pack(plain), Pack(plain, mean_r=3)], **keywords)
    with ImageRecordIter(path_imgrec=[Pack(plain), Pack(plain, mirror=True)], **keywords) as it:
        assert it.next().data[0].shape == (16, 3, 8, 8)


@pytest.mark.parametrize("where", ["provider", "packs"])
def test_caches(faces, plain, tmp_path, where):
    wanted = contents(mixed(faces, plain, rand_crop=True, resize=10))
    places = ["ram", "ram"] if where == "provider" else [tmp_path / "a.cache", "ram"]
    packs = [
        Pack(faces, share=0.7, path_imgidx=index_of(faces)),
        Pack(plain, share=0.3, labels="append"),
    ]
    if where == "packs":
        for pack, place in zip(packs, places, strict=True):
            pack.cache, pack.cache_size = str(place), 1 << 20
    more = {"cache": "ram", "cache_size": 1 << 21} if where == "provider" else {}
    keywords = {"shuffle": True, "seed": 1, "rand_crop": True, "resize": 10, **SHAPE, **more}
    with ImageRecordIter(path_imgrec=packs, **keywords) as provider:
        assert contents(provider) == wanted
        list(provider)
        list(provider)
        info = provider.cache_info()
    assert info.images == 160
    assert 160 <= info.misses < 200  # what comes twice at a time may be decoded twice
    assert info.hits > 280
    with pytest.raises(ValueError, match="closed"):
        provider.cache_info()


def test_one_pack_with_a_cache_among_others(faces, plain):
    packs = [Pack(faces, share=0.5), Pack(plain, share=0.5, cache="ram", cache_size=1 << 20)]
    with ImageRecordIter(path_imgrec=packs, resize=10, on_error="skip", **SHAPE) as provider:
        source = np.concatenate([samples(provider) for _ in range(2)])
        info = provider.cache_info()
    assert info.images == 60
    assert info.hits + info.misses >= (source == 1).sum()


def test_dropped_providers_are_freed(faces, plain):
    gc.collect()
    gc.disable()
    try:
        provider = mixed(faces, plain)
        list(provider)
        alive = weakref.ref(provider)
        del provider
        assert alive() is None
    finally:
        gc.enable()


def test_batches_of_torch(faces, plain):
    pytest.importorskip("torch")
    from iterators.torch import RecordBatches

    packs = [Pack(faces, share=0.7, path_imgidx=index_of(faces)),
             Pack(plain, share=0.3, labels="append")]  # fmt: skip
    dataset = RecordBatches(
        ImageRecordIter, path_imgrec=packs, shuffle=True, seed=1, label_dtype="int64", **SHAPE
    )
    wanted = mixed(faces, plain)
    for (images, labels), batch in zip(dataset, wanted, strict=True):
        assert (images.numpy() == batch.data[0]).all()
        assert labels.tolist() == batch.label[0].astype(int).tolist()


# -- what cannot be --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "more", "error", "message"),
    [
        ([{"share": 0.7}, {}], {}, ValueError, "has no share, but others have"),
        ([{"share": 0.7}, {"share": 0.7}], {}, ValueError, "add up to 1.4, not 1"),
        ([{"share": 0.5}, {"repeat": 2}], {}, ValueError, "has no share"),
        ([{"share": 0.999}, {"share": 0.001}], {}, ValueError, "an epoch of 160 samples has none"),
        ([{"repeat": 2}, {}], {"epoch_size": 9}, ValueError, "repeat sets the length"),
        ([{}, {"data_shape": (3, 4, 4)}], {}, ValueError, "data_shape is the same for all"),
        ([{}, {"rand_miror": True}], {}, TypeError, "did you mean 'rand_mirror'"),
        ([{}, {"std_r": 0}], {}, ValueError, "std_r=0"),
        ([{}, {"cache_size": 5}], {}, ValueError, "no effect without a cache"),
        ([{}, {}], {"path_imgidx": "a.idx"}, ValueError, "path_imgidx belongs to one pack"),
        ([{}, {}], {"path_imglist": "a.lst"}, ValueError, "path_imglist belongs to one pack"),
        ([{}, {}], {"cache": "a.cache"}, ValueError, "every pack needs a file of its own"),
        ([{}, {"cache": "ram"}], {"cache": "ram"}, ValueError, "drop one of both"),
        ([{"share": 0.5}] * 2, {"weights": {0: 1}}, ValueError, "give them to each Pack"),
        ([{"share": 0.5}] * 2, {"images_per_class": 2}, ValueError, "drop share"),
        ([{}, {}], {"images_per_class": 5}, ValueError, "not a multiple of images_per_class=5"),
        ([{}, {}], {"classes_per_batch": 5}, ValueError, "not a multiple of classes_per_batch=5"),
        ([{}, {}], {"classes_per_batch": 16}, ValueError, "there are 1[01] classes"),
        ([{}, {"labels": "apend"}], {}, ValueError, r"plain\.rec: labels='apend'"),
    ],
)  # fmt: skip
def test_packs_that_cannot_be_mixed(faces, plain, said, more, error, message):
    first, second = said
    with pytest.raises(error, match=message):
        packs = [Pack(faces, path_imgidx=index_of(faces), **first), Pack(plain, **second)]
        ImageRecordIter(path_imgrec=packs, shuffle="weights" not in more, **SHAPE, **more)


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ({"share": 0}, ValueError, "share=0: expected a number above 0"),
        ({"share": float("nan")}, ValueError, "share"),
        ({"repeat": -1}, ValueError, "repeat=-1"),
        ({"share": 0.5, "repeat": 2}, ValueError, "give one of both"),
        ({"classes": 0}, ValueError, "classes"),
        ({"path_imgidx": 7}, TypeError, "path_imgidx"),
        ({"rand_miror": True}, TypeError, r"^Pack\(\) has .*; did you mean 'rand_mirror'"),
        ({"hflip": True}, TypeError, r"^Pack\(\) has .*; did you mean 'rand_mirror'"),
        ({"shar": 0.5}, TypeError, r"^Pack\(\) has .*; did you mean 'share'"),
        ({"std_r": -1}, ValueError, "std_r=-1"),
        ({"rand_mirror": 2}, ValueError, "rand_mirror=2: expected True or False"),
        ({"max_random_contrast": "x"}, ValueError, "max_random_contrast='x': expected a number"),
    ],
)
def test_a_pack_that_cannot_be(said, error, message):
    with pytest.raises(error, match=message):
        Pack("a.rec", **said)


@pytest.mark.parametrize("said", [{"share": 1.0}, {"repeat": 2}, {"cache": "ram"}, {"resize": 9}])
def test_a_dataset_does_not_mix(plain, said):
    with pytest.raises(ValueError, match="is for iterators over packs"):
        ImageRecordDataset([Pack(plain, **said)])


def test_a_missing_pack_is_named(plain):
    with pytest.raises((RecordIOError, OSError), match="nowhere"):
        ImageRecordIter(path_imgrec=[plain, Pack("nowhere.rec")], **SHAPE)


def test_how_a_pack_looks():
    pack = Pack("a.rec", share=0.3, labels="append", rand_mirror=True)
    assert repr(pack) == "Pack('a.rec', share=0.3, labels='append', rand_mirror=True)"


@pytest.mark.parametrize("torn", [True, False])
def test_an_error_of_a_face_pack_has_the_number_of_the_record_in_the_file(tmp_path, torn):
    path = write_faces(tmp_path / "a.rec", [2, 3], map(content, range(1, 6)))
    offsets = RecordReader(path).offsets.copy()
    with open(path, "r+b") as file:
        file.seek(offsets[3] + (0 if torn else 32))
        file.write(b"\0" * 32)
    expected = [problem.record for problem in verify(path).problems] if torn else [3]
    assert expected == [3]
    with ImageRecordIter(path_imgrec=path, path_imgidx=index_of(path), **SHAPE) as provider:
        with pytest.raises(RecordIOError) as caught:
            next(provider)
    assert (caught.value.record, caught.value.offset) == (3, offsets[3])
    dataset = ImageRecordDataset(Pack(path, path_imgidx=index_of(path)))
    with pytest.raises(RecordIOError) as caught:
        dataset[2]
    assert (caught.value.record, caught.value.offset) == (3, offsets[3])
    if torn:
        with pytest.raises(RecordIOError) as caught:
            RecordSource.open(path, index_of(path)).labels()
        assert (caught.value.record, caught.value.offset) == (3, offsets[3])
