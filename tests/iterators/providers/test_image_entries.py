"""`entry_points=`: the same batches, from the first epoch on, and what is kept beside the pack."""

import numpy as np
import pytest

from iterators import ImageDetRecordIter, ImageIter, ImageRecordIter, Pack
from iterators.testing import copies, encode_jpeg, maker, picture, same, write_pack
from recordio.errors import RecordIOError
from recordio.formats.jpeg import jpeg
from recordio.packs.entry_points import SUFFIX

COUNT = 10
make = maker(
    ImageRecordIter,
    data_shape=(3, 64, 64),
    batch_size=4,
    random_resized_crop=True,
    min_random_area=0.08,
    min_aspect_ratio=3 / 4,
    max_aspect_ratio=4 / 3,
    rand_mirror=True,
    shuffle=True,
    verbose=False,
)


@pytest.fixture(autouse=True)
def own_entropy_decoder(monkeypatch):
    monkeypatch.setenv("ITERATORS_JPEG", "")


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """Images of which some have no points: progressive, small, PNG."""
    images = [
        encode_jpeg(picture(300, 400, seed, noise=8), quality=95, sampling=sampling)
        for seed, sampling in enumerate(["420", "444", "422", "440", "420", "444", "420"])
    ]
    images.append(encode_jpeg(picture(200, 200), progressive=True))
    images.append(encode_jpeg(picture(70, 80)))
    images.append(picture(100, 90))
    return write_pack(tmp_path_factory.mktemp("entries") / "pack.rec", images)


def epochs(path, count=3, **options):
    with make(path, **options) as provider:
        return [copies(provider) for _ in range(count)]


def store_of(provider):
    return provider._entries.store


@pytest.mark.libjpeg
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"dtype": "uint8", "layout": "NHWC"},
        {"cache": "ram", "cache_size": 1 << 20},
        {"views": 2},
        {"data_shape": (1, 64, 64)},
    ],
    ids=str,
)
def test_batches_do_not_depend_on_it(pack, threads, more):
    if "views" in more:
        more = {"views": [{}, {"rand_mirror": False}]}
    plain = epochs(pack, preprocess_threads=threads, **more)
    found = epochs(pack, preprocess_threads=threads, entry_points=True, **more)
    for one, other in zip(plain, found, strict=True):
        assert all(map(same, one, other))


@pytest.mark.libjpeg
def test_points_are_noted_in_the_first_epochs(pack):
    with make(pack, entry_points=True) as provider:
        assert store_of(provider).images == 0
        for _ in provider:
            pass
        assert 0 < store_of(provider).images <= 7
        for _ in range(8):
            for _ in provider:
                pass
        assert store_of(provider).images == 7
        assert store_of(provider).nbytes < pack.stat().st_size / 200
    assert not pack.with_suffix(SUFFIX).exists()
    with make(pack) as provider:
        assert provider._entries is None


@pytest.mark.libjpeg
def test_they_are_kept_beside_the_pack(pack, tmp_path):
    path = tmp_path / "kept.rec"
    for suffix in (".rec", ".idx"):
        path.with_suffix(suffix).write_bytes(pack.with_suffix(suffix).read_bytes())
    plain = epochs(path, 2)
    with make(path, entry_points="pack") as provider:
        assert all(map(same, copies(provider), plain[0]))
        assert not path.with_suffix(SUFFIX).exists()
    assert path.with_suffix(SUFFIX).is_file()
    with make(path, entry_points="pack") as provider:
        assert store_of(provider).images > 0
        for wanted in plain:
            assert all(map(same, copies(provider), wanted))
    path.with_suffix(SUFFIX).write_bytes(b"something else")
    with make(path, entry_points="pack") as provider:
        assert store_of(provider).images == 0
        assert all(map(same, copies(provider), plain[0]))


@pytest.mark.libjpeg
def test_several_packs_keep_theirs(pack, tmp_path):
    paths = []
    for name in ("a", "b"):
        paths.append(tmp_path / f"{name}.rec")
        for suffix in (".rec", ".idx"):
            paths[-1].with_suffix(suffix).write_bytes(pack.with_suffix(suffix).read_bytes())
    packs = [Pack(paths[0], share=0.5), Pack(paths[1], share=0.5)]
    plain = epochs(packs)
    found = epochs(packs, entry_points="pack")
    again = epochs(packs, entry_points="pack")
    for one, other, third in zip(plain, found, again, strict=True):
        assert all(map(same, one, other)) and all(map(same, one, third))
    assert all(path.with_suffix(SUFFIX).is_file() for path in paths)


@pytest.mark.parametrize("value", [None, 1, "ram", "yes", b"pack"])
def test_other_values_are_refused(pack, value):
    with pytest.raises(TypeError, match="entry_points"):
        make(pack, entry_points=value)


def test_a_build_without_libjpeg_turbo_says_what_to_install(pack, monkeypatch):
    monkeypatch.setattr(jpeg, "available", lambda: False)
    with pytest.raises(RecordIOError, match=r"entry_points='pack': .*headers of libjpeg-turbo"):
        make(pack, entry_points="pack")
    with make(pack, entry_points=False) as provider:
        assert len(next(provider).data[0]) == 4


@pytest.mark.libjpeg
def test_resuming_with_and_without_points(pack):
    with make(pack, seed=3) as provider:
        wanted = copies(provider) + copies(provider)
    with make(pack, seed=3, entry_points=True) as provider:
        begun = [copies([next(provider)])[0] for _ in range(2)]
        state = provider.state_dict()
    assert all(map(same, begun, wanted))
    with make(pack, seed=3) as provider:
        provider.load_state_dict(state)
        rest = copies(provider) + copies(provider)
    assert all(map(same, begun + rest, wanted))


@pytest.mark.libjpeg
def test_detection_records_with_mosaics(tmp_path):
    from iterators.testing import box_label

    images = [encode_jpeg(picture(200, 260, seed, noise=8), quality=95) for seed in range(8)]
    labels = [box_label((1, 0.1, 0.1, 0.6, 0.7)) for _ in images]
    write_pack(tmp_path / "boxes.rec", images, labels)
    options = {
        "path_imgrec": str(tmp_path / "boxes.rec"), "data_shape": (3, 96, 96), "batch_size": 4,
        "mosaic": 0.7, "verbose": False, "label_pad_width": 60,
    }  # fmt: skip
    found = []
    for more in ({}, {"entry_points": True}):
        with ImageDetRecordIter(**options, **more) as provider:
            found.append([copies(provider) for _ in range(3)])
    for one, other in zip(*found, strict=True):
        assert all(map(same, one, other))
        assert all(np.isfinite(batch.data[0]).all() for batch in one)


@pytest.mark.libjpeg
def test_image_iter_notes_and_uses_points(pack, tmp_path):
    """Of record files in memory and beside them, of image files in memory alone."""
    shape = {"batch_size": 4, "data_shape": (3, 64, 64), "rand_crop": True, "rand_resize": True}
    with ImageIter(path_imgrec=pack, **shape) as provider:
        wanted = [copies(provider) for _ in range(2)]
    with ImageIter(path_imgrec=pack, entry_points=True, **shape) as provider:
        for epoch in wanted:
            same(copies(provider), epoch)
        assert store_of(provider).images
    files = []
    for number in range(4):
        (tmp_path / f"{number}.jpg").write_bytes(encode_jpeg(picture(300, 400, number), quality=95))
        files.append([float(number), f"{number}.jpg"])
    listed = {"imglist": files, "path_root": str(tmp_path), **shape}
    with ImageIter(**listed) as provider:
        wanted = [copies(provider) for _ in range(2)]
    with ImageIter(entry_points=True, **listed) as provider:
        for epoch in wanted:
            same(copies(provider), epoch)
        assert store_of(provider).images == 4
    with pytest.raises(ValueError, match="needs path_imgrec"):
        ImageIter(entry_points="pack", **listed)
    with pytest.raises(ValueError, match="entry_points is for images that CreateAugmenter"):
        ImageIter(4, (3, 64, 64), path_imgrec=pack, entry_points=True, aug_list=[lambda x: x])
