"""Containers have the rights of packs: all that is read of one equals what its converter packs.

Another container is one more row in `CONTAINERS`, and all tests here are about it.
"""

import io
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from iterators import ImageRecordIter, Pack
from iterators.testing import check_provider, encode_jpeg, maker, noise, write_pack
from recordio import RecordIOError
from recordio.tools.cli import main

COUNT, CLASSES = 22, 3


@dataclass(frozen=True)
class Row:
    """A container: ``write(folder, samples)`` makes one of names, contents and labels.

    It returns the path, or a pattern, below the folder.  ``convert(path, prefix)`` are the
    words of the command that makes a pack of it.  Contents are those bytes in the files of the
    container, which the tests damage, unless it is `packed`.
    """

    write: Callable[[Path, list[tuple[str, bytes, int]]], str]
    convert: Callable[[str, str], list[str]]
    has_classes: bool = False
    is_packed: bool = False
    needs: str = ""


def write_tars(folder, samples):
    for number, some in enumerate((samples[:9], samples[9:10], samples[10:])):
        with tarfile.open(folder / f"set-{number:02d}.tar", "w") as archive:
            for name, content, label in some:
                for ending, data in (("jpg", content), ("cls", b"%d\n" % label), ("txt", b"words")):
                    info = tarfile.TarInfo(f"set/{name}.{ending}")
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
    return "set-{00..02}.tar"


def write_folders(folder, samples):
    for name, content, label in samples:
        path = folder / "images" / f"class {label}" / f"{name}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return "images"


CONTAINERS = {
    "tar": Row(write_tars, lambda path, prefix: ["from-webdataset", path, prefix]),
    "folder": Row(
        write_folders, lambda path, prefix: ["from-imagefolder", path, prefix], has_classes=True
    ),
}


@dataclass(frozen=True)
class Case:
    """A container, the pack that its converter makes of it, and its contents."""

    row: Row
    path: str
    pack: str
    contents: list[bytes]


def made(folder, row):
    """Write a container and convert it."""
    if row.needs:
        pytest.importorskip(row.needs)
    samples = [
        (f"{i:04d}", encode_jpeg(noise(20 + i % 3, 24, i)), i * 7 % CLASSES) for i in range(COUNT)
    ]
    path, prefix = str(folder / row.write(folder, samples)), str(folder / "pack")
    assert main(row.convert(path, prefix)) == 0
    return Case(row, path, f"{prefix}.rec", [content for _, content, _ in samples])


@pytest.fixture(scope="module", params=CONTAINERS)
def case(request, tmp_path_factory):
    """Containers that no test changes."""
    return made(tmp_path_factory.mktemp(request.param), CONTAINERS[request.param])


provider_of = maker(
    ImageRecordIter,
    data_shape=(3, 16, 16),
    batch_size=5,
    preprocess_threads=2,
    rand_crop=True,
    rand_mirror=True,
    seed=3,
    verbose=False,
)


def epochs(provider, count=2):
    """What some epochs deliver."""
    return [
        [(b.data[0].tobytes(), b.label[0].tobytes(), b.index.tolist(), b.pad) for b in provider]
        for _ in range(count)
    ]


def delivered(path, **keywords):
    """What a new provider delivers."""
    with provider_of(path, **keywords) as provider:
        return epochs(provider)


def indexed(path):
    """The index of a pack, by which its parts are counted as those of containers."""
    return {"path_imgidx": path.replace(".rec", ".idx")} if path.endswith(".rec") else {}


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"shuffle": True},
        {"round_batch": False},
        *({"num_parts": 3, "part_index": part, "shuffle": part == 1} for part in range(3)),
        {"weights": {k: float(k + 1) for k in range(CLASSES)}},
        {"images_per_class": 2, "batch_size": 6},
        {"shuffle": True, "epoch_size": 37},
        {"shuffle": True, "cache": "ram", "resize": 18},
        {"label_dtype": "int64", "dtype": "uint8"},
    ],
    ids=lambda keywords: "-".join(map(str, keywords)) or "plain",
)
def test_batches_are_those_of_the_pack(case, keywords):
    wanted = delivered(case.pack, **keywords, **indexed(case.pack))
    assert delivered(case.path, **keywords) == wanted


def test_what_is_said_of_it_is_true(case):
    check_provider(
        lambda **more: provider_of(case.path, shuffle=True, **more),
        variants=[{"preprocess_threads": 4}, {"prefetch_buffer": 1}],
    )


def rest(provider, most=20):
    """What is left of the epoch, and then more of them."""
    found = []
    while len(found) < most:
        try:
            batch = provider.next()
        except StopIteration:
            provider.reset()
            continue
        found.append((batch.data[0].tobytes(), batch.index.tolist(), batch.pad))
    return found


@pytest.mark.parametrize("keywords", [{"shuffle": True}, {"num_parts": 2, "part_index": 1}, {}])
def test_resumed_after_any_batch_by_another_number_of_threads(case, keywords):
    with provider_of(case.path, **keywords) as provider:
        count, states = len(provider), [provider.state_dict()]
        for _ in range(count):
            provider.next()
            states.append(provider.state_dict())
    with provider_of(case.path, **keywords) as provider:
        wanted = rest(provider)
    for done, state in enumerate(states):
        with provider_of(case.path, preprocess_threads=4, **keywords) as provider:
            provider.load_state_dict(state)
            assert rest(provider)[:10] == wanted[done : done + 10]


@pytest.mark.parametrize("parts", [2, 3])
def test_resumed_after_any_batch_by_another_number_of_parts(case, parts):
    """What is left of the epoch is dealt out among more parts as it is for the pack."""
    found = []
    for path in (case.path, case.pack):
        dealt = []
        with provider_of(path, shuffle=True) as provider:
            states = [provider.state_dict()]
            for _ in range(len(provider) - 1):
                provider.next()
                states.append(provider.state_dict())
        for state in states:
            for part in range(parts):
                more = {"num_parts": parts, "part_index": part, **indexed(path)}
                with provider_of(path, shuffle=True, **more) as provider:
                    provider.load_state_dict(state)
                    dealt.append(rest(provider, 6))
        found.append(dealt)
    assert found[0] == found[1]


def test_mixed_with_a_pack_by_shares(case, tmp_path):
    other = write_pack(tmp_path / "other.rec", 9, lambda number: number % CLASSES)
    for order in (1, -1):
        found = [
            delivered(
                [Pack(path, share=0.7), Pack(other, share=0.3)][::order],
                shuffle=True,
                epoch_size=30,
            )
            for path in (case.path, case.pack)
        ]
        assert found[0] == found[1]


def test_classes_have_their_names(case):
    with provider_of(case.path) as here, provider_of(case.pack) as there:
        assert here.classes == there.classes
        assert bool(here.classes) == case.row.has_classes
        assert here.num_samples == there.num_samples == COUNT


def damaged_files(folder, content):
    """Write over a content in the file that holds it."""
    for path in folder.rglob("*"):
        if (
            path.is_file()
            and path.name != "pack.rec"
            and (data := path.read_bytes()).count(content)
        ):
            path.write_bytes(data.replace(content, b"<" * len(content)))
            return path
    raise AssertionError("no file has that content")


@pytest.mark.parametrize("name", [n for n, row in CONTAINERS.items() if not row.is_packed])
def test_a_damaged_image_is_named_or_skipped(tmp_path, name):
    case = made(tmp_path, CONTAINERS[name])
    whole = delivered(case.path, batch_size=1)[0]
    path = damaged_files(tmp_path, case.contents[13])
    with provider_of(case.path, batch_size=1) as it, pytest.raises(RecordIOError) as caught:
        epochs(it)
    assert str(path) in str(caught.value) or caught.value.path in str(path)
    assert caught.value.record is not None
    with provider_of(case.path, batch_size=1, on_error="skip") as it:
        found = epochs(it, 1)[0]
        assert len(it.skipped) == 1
    wanted = {batch[2][0] for batch in whole}
    assert len(wanted - {batch[2][0] for batch in found}) == 1


def test_a_container_that_moved_goes_on(case, tmp_path):
    """A state belongs to the content, not to the path."""
    with provider_of(case.path, shuffle=True) as here:
        here.next()
        state, wanted = here.state_dict(), rest(here)
    ignored = shutil.ignore_patterns("*.index")
    shutil.copytree(Path(case.path).parent, tmp_path / "moved", ignore=ignored)
    with provider_of(str(tmp_path / "moved" / Path(case.path).name), shuffle=True) as there:
        there.load_state_dict(state)
        assert rest(there) == wanted


def test_labels_and_shares_of_a_part(case):
    """Parts together have every sample once."""
    numbers = []
    for part in range(4):
        for batch in delivered(case.path, num_parts=4, part_index=part, round_batch=False)[0]:
            numbers += batch[2][: len(batch[2]) - batch[3]]
    assert sorted(numbers) == list(range(COUNT))
    with provider_of(case.path, images_per_class=2, batch_size=6) as it:
        assert np.isin(np.unique(it.next().label[0]), range(CLASSES)).all()
