"""Samples with any number of images: in one batch as a whole, counted, and never cut or lost."""

import io
import json
import subprocess
import sys
import tarfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import recordio
from iterators import ImageRecordIter, NamedRecipe, count_patches, preprocess
from iterators.fields import Text
from iterators.images.augment.pipelines.processor_families import FAMILIES
from recordio.containers.container import Choice
from recordio.errors import ImageDecodeError, RecordIOError
from recordio.packs.open_pack import open_listed

QWEN = {"image_processor_type": "Qwen2VLImageProcessor"}
#: Tiles of other sizes than usual, for processors that cut so many that a test would take seconds.
FEW_TILES = {"size": {"longest_edge": 256}, "max_image_size": {"longest_edge": 64}}
COUNTS = [2, 1, 0, 5, 1, 40, 12, 1, 0, 2, 3, 1, 1, 4]


def encoded(rng, mode="RGB", form="PNG"):
    """An image file of a random size."""
    file = io.BytesIO()
    pixels = rng.integers(0, 256, (*rng.integers(20, 90, 2), 3), np.uint8)
    Image.fromarray(pixels).convert(mode).save(file, form)
    return file.getvalue()


def samples_of(counts, seed=3):
    """Lists of images of many kinds."""
    rng = np.random.default_rng(seed)
    kinds = [("RGB", "PNG"), ("L", "PNG"), ("RGBA", "PNG"), ("CMYK", "JPEG"), ("RGB", "JPEG")]
    made = iter(range(sum(counts)))
    return [[encoded(rng, *kinds[next(made) % len(kinds)]) for _ in range(n)] for n in counts]


def write_structs(path, samples):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kind = pa.list_(pa.struct([("path", pa.string()), ("bytes", pa.binary())]))
    rows = [None if s is None else [{"path": None, "bytes": b} for b in s] for s in samples]
    table = pa.table({"images": pa.array(rows, kind), "label": pa.array(range(len(samples)))})
    pq.write_table(table, path, row_group_size=3)


def write_binaries(path, samples):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = [f"text {number}" for number in range(len(samples))]
    images = pa.array(samples, pa.list_(pa.binary()))
    pq.write_table(pa.table({"images": images, "text": texts}), path, row_group_size=4)


def write_arrow(path, samples):
    pa = pytest.importorskip("pyarrow")
    kind = pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    rows = [None if s is None else [{"path": None, "bytes": b} for b in s] for s in samples]
    table = pa.table({"images": pa.array(rows, kind), "label": pa.array(range(len(samples)))})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)


def write_tar(path, samples, name="{}", label="cls"):
    with tarfile.open(path, "w") as archive:

        def add(member, content):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))

        for key, images in enumerate(samples):
            for number in sorted(range(len(images)), key=str):  # as `tar --sort=name` has them
                add(f"s{key:03}.{name.format(number)}.png", images[number])
            add(f"s{key:03}.{label}", str(key).encode())
            add(f"s{key:03}.text", f"text {key}".encode())


WRITERS = {
    "structs.parquet": write_structs,
    "binaries.parquet": write_binaries,
    "a.arrow": write_arrow,
    "a.tar": write_tar,
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Files of every kind, and the samples of each; those of a tar file have images."""
    folder, found = tmp_path_factory.mktemp("several"), {}
    for name, write in WRITERS.items():
        samples = samples_of([count for count in COUNTS if count or name != "a.tar"])
        write(folder / name, samples)
        found[name] = folder / name, samples
    return found


def provider_of(path, config=QWEN, **more):
    recipe = NamedRecipe.from_processor(config)
    return ImageRecordIter(path_imgrec=path, recipe=recipe, **more)


def patches_of(samples):
    """Patches of each sample."""
    sizes = [[Image.open(io.BytesIO(b)).size[::-1] for b in sample] for sample in samples]
    return np.array([count_patches(np.reshape(s, (-1, 2)).astype(int), QWEN).sum() for s in sizes])


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("form", [{"batch_patches": 200}, {"batch_size": 3}], ids=str)
def test_a_batch_has_whole_samples(written, name, form):
    path, samples = written[name]
    patches = patches_of(samples)
    with provider_of(path, shuffle=True, seed=4, preprocess_threads=2, **form) as provider:
        seen = []
        for batch in provider:
            numbers = batch.index.astype(int).tolist()
            expected = preprocess([samples[number] for number in numbers], QWEN)
            assert [desc.name for desc in batch.provide_data] == list(expected)
            assert all(np.array_equal(batch[key], value) for key, value in expected.items())
            assert batch["image_counts"].dtype == np.int64
            assert batch["image_counts"].tolist() == [len(samples[number]) for number in numbers]
            assert "batch_patches" not in form or len(numbers) == 1 or sum(patches[numbers]) <= 200
            if name != "binaries.parquet":
                assert batch.label[0].tolist() == numbers
            seen += numbers
        assert sorted(seen) == list(range(len(samples)))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_processor_has_batches_of_samples(written, family):
    path, samples = written["structs.parquet"]
    config = {"image_processor_type": f"{family}ImageProcessor"}
    if family in ("Idefics3", "SmolVLM"):
        config |= FEW_TILES
    with provider_of(path, config, batch_size=4) as provider:
        batch = next(provider)
        described = [(desc.name, desc.shape, desc.dtype) for desc in provider.provide_data]
    expected = preprocess(samples[:4], config)
    assert [name for name, _, _ in described] == list(expected)
    for value, (name, shape, dtype) in zip(expected.values(), described, strict=True):
        found = batch[name]
        assert found.dtype == dtype and found.ndim == len(shape)
        assert all(side in (0, is_) for side, is_ in zip(shape, found.shape, strict=True)), name
        if isinstance(value, list):  # lists of lists are rows with zeros at their ends
            assert [row[: len(v)].tolist() for row, v in zip(found, value, strict=True)] == value
        else:
            assert np.array_equal(found, value)


def test_texts_come_beside_samples(written):
    for name, field in (("binaries.parquet", "text"), ("a.tar", "text")):
        path, _ = written[name]
        with provider_of(path, batch_patches=300, shuffle=True, fields={field: Text()}) as provider:
            for batch in provider:
                numbers = batch.index.astype(int).tolist()
                assert batch[field] == [f"text {number}" for number in numbers]


def test_packs_and_lists_are_mixed(written, tmp_path):
    path, samples = written["structs.parquet"]
    single = samples_of([1] * 4, 9)
    with recordio.RecordWriter(tmp_path / "one.rec") as writer:
        for number, (content,) in enumerate(single):
            writer.write(recordio.pack(recordio.IRHeader(0, 7.0, number, 0), content))
    both = [recordio_pack(tmp_path / "one.rec"), recordio_pack(path)]
    with provider_of(both, batch_patches=400) as provider:
        counts = [count for batch in provider for count in batch["image_counts"].tolist()]
    assert counts == [1] * 4 + COUNTS


def recordio_pack(path):
    from iterators import Pack

    return Pack(path)


@pytest.mark.filterwarnings("ignore:.*have no label under a usual name")
@pytest.mark.parametrize("name", ["{}", "image{}", "img_{}"])
@pytest.mark.parametrize("label", ["cls", "txt"])
def test_images_of_a_key_are_in_the_order_of_their_numbers(tmp_path, name, label):
    samples = samples_of([12, 1, 2])
    write_tar(tmp_path / "a.tar", samples, name, label)
    with provider_of(tmp_path / "a.tar", batch_size=3) as provider:
        batch = next(provider)
    assert batch["image_counts"].tolist() == [12, 1, 2]
    expected = preprocess(samples, QWEN)["pixel_values"]
    assert np.array_equal(batch["pixel_values"], expected)


def test_without_a_processor_files_are_read_as_before(written, tmp_path):
    path, samples = written["a.tar"]
    with ImageRecordIter(path_imgrec=path, data_shape=(3, 8, 8), batch_size=3) as provider:
        assert provider.num_samples == len(samples)
    for name in ("structs.parquet", "binaries.parquet", "a.arrow"):
        with pytest.raises(RecordIOError, match="a list of images in each row of its column"):
            ImageRecordIter(path_imgrec=written[name][0], data_shape=(3, 8, 8), batch_size=3)
    assert open_listed(str(path))[0].image_starts is None
    starts = open_listed(str(path), choice=Choice(several=True))[0].image_starts
    assert np.diff(starts).tolist() == [len(sample) for sample in samples]


def test_an_index_keeps_the_images(written, tmp_path):
    for name in WRITERS:
        path, samples = written[name]
        for _ in range(2):  # found, and read from the index
            pack = open_listed(str(path), choice=Choice(several=True))[0]
            assert np.diff(pack.image_starts).tolist() == [len(sample) for sample in samples]
            flat = [image for sample in samples for image in sample]
            assert [pack.images.reader.copied_content(n) for n in range(len(flat))] == flat
            pack.close()


# -- bad images ------------------------------------------------------------------------------------


@pytest.fixture(params=["structs.parquet", "a.arrow", "a.tar"])
def damaged(request, tmp_path):
    samples = samples_of([2, 5, 1, 3, 1, 2], 8)
    samples[1][3] = samples[1][3][:60]
    samples[3][0] = b"no image"
    WRITERS[request.param](tmp_path / request.param, samples)
    return tmp_path / request.param, samples


@pytest.mark.parametrize("form", [{"batch_patches": 10_000}, {"batch_size": 1}], ids=str)
def test_a_bad_image_in_the_middle_is_named(damaged, form):
    path, _ = damaged
    with provider_of(path, **form) as provider:
        found = []
        for _ in range(4):
            try:
                found += next(provider)["image_counts"].tolist()
            except ImageDecodeError as error:
                found.append((error.record, error.reason.partition(":")[0], error.path))
            except StopIteration:
                break
    if "batch_size" in form:
        assert found == [2, (1, "image 3", str(path)), 1, (3, "image 0", str(path))]
    else:
        assert found[0] == (1, "image 3", str(path))


@pytest.mark.parametrize("form", [{"batch_patches": 300}, {"batch_size": 2}], ids=str)
def test_another_sample_takes_the_place_of_one_with_a_bad_image(damaged, form):
    path, samples = damaged
    with provider_of(path, on_error="skip", **form) as provider:
        seen = []
        for batch in provider:
            numbers = batch.index.astype(int).tolist()
            assert batch["image_counts"].tolist() == [len(samples[number]) for number in numbers]
            expected = preprocess([samples[number] for number in numbers], QWEN)
            assert np.array_equal(batch["pixel_values"], expected["pixel_values"])
            seen += numbers
        assert {number for number, _ in provider.skipped} == {1, 3}
    assert set(seen) == {0, 2, 4, 5}


@pytest.mark.parametrize("write", [write_structs, write_arrow])
def test_a_list_that_is_null_is_no_empty_list(tmp_path, write):
    samples = samples_of([1, 0, 2, 1])
    write(tmp_path / "a.parquet" if write is write_structs else tmp_path / "a.arrow",
          [*samples[:2], None, samples[3]])  # fmt: skip
    (path,) = tmp_path.iterdir()
    with provider_of(path, batch_size=1) as provider:
        assert [next(provider)["image_counts"].tolist() for _ in range(2)] == [[1], [0]]
        with pytest.raises(RecordIOError, match="record 2: its images is null"):
            next(provider)
        assert next(provider)["image_counts"].tolist() == [1]


def test_a_null_among_the_images_is_a_bad_image(tmp_path):
    samples = samples_of([2, 3])
    write_structs(tmp_path / "a.parquet", [samples[0], [samples[1][0], None, samples[1][2]]])
    write_arrow(tmp_path / "a.arrow", [samples[0], [samples[1][0], None, samples[1][2]]])
    for name in ("a.parquet", "a.arrow"):
        with provider_of(tmp_path / name, batch_size=1, preprocess_threads=1) as provider:
            assert next(provider)["image_counts"].tolist() == [2]
            with pytest.raises(RecordIOError, match="record 1: .*null"):
                next(provider)


# -- runs that end early ---------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(
    counts=st.lists(st.integers(0, 6), min_size=1, max_size=12).filter(any),
    budget=st.integers(20, 400),
    ranks=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    seed=st.integers(0, 9),
)
def test_every_image_comes_once_with_any_number_of_ranks(
    tmp_path_factory, counts, budget, ranks, seed
):
    path = tmp_path_factory.mktemp("any") / "a.parquet"
    samples = samples_of(counts)
    write_structs(path, samples)
    patches = patches_of(samples)
    shared = {"batch_patches": budget, "shuffle": True, "seed": seed, "preprocess_threads": 1}
    state, seen = None, []
    for count in [*ranks, *[1] * len(counts)]:
        steps = set()
        for part in range(count):
            with provider_of(path, num_parts=count, part_index=part, **shared) as provider:
                if state is not None:
                    provider.load_state_dict(state)
                batch = next(provider)
                numbers = batch.index.astype(int).tolist()
                assert batch["image_counts"].tolist() == [counts[number] for number in numbers]
                assert len(numbers) == 1 or np.maximum(patches[numbers], 1).sum() <= budget
                seen += numbers[: len(numbers) - batch.pad]
                after = provider.state_dict()
                steps.add((after["epoch"], after["done"]))
        assert len(steps) == 1  # all ranks are at the same place
        state = after
        if state["epoch"]:
            break
    assert sorted(seen) == list(range(len(counts)))


KILLED = """
import json, os, signal, sys

path, kind, ranks, stop, folder = *sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
from iterators import ImageRecordIter, NamedRecipe

recipe = NamedRecipe.from_processor({"image_processor_type": "Qwen2VLImageProcessor"})
shared = {"batch_patches": 160, "shuffle": True, "seed": 5}


def opened(rank):
    if kind == "provider":
        return ImageRecordIter(
            path_imgrec=path, recipe=recipe, num_parts=ranks, part_index=rank, **shared
        )
    from iterators.torch import ImageLoader

    return ImageLoader(path, transform=recipe, rank=rank, world_size=ranks, **shared)


runs = [opened(rank) for rank in range(ranks)]
kept = os.path.join(folder, "state.json")
if os.path.exists(kept):
    with open(kept) as file:
        for run in runs:
            run.load_state_dict(json.load(open(kept)))
loops = [iter(run) for run in runs]
step = 0
while True:
    found = []
    for loop in loops:
        batch = next(loop, None)
        if batch is None:
            continue
        if kind == "provider":
            found += batch.index[: len(batch.index) - batch.pad].tolist()
        else:
            found += batch[1].tolist()
    if found:
        with open(os.path.join(folder, "seen.jsonl"), "a") as file:
            file.write(json.dumps(found) + "\\n")
    state = runs[0].state_dict()
    with open(kept + ".new", "w") as file:
        json.dump(state, file)
    os.replace(kept + ".new", kept)
    step += 1
    if state["epoch"] or not found:
        print("done")
        break
    if step == stop:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
@pytest.mark.parametrize(
    ("kind", "name"), [("provider", "lists"), ("provider", "pack"), ("loader", "lists")]
)
def test_a_process_that_is_killed_goes_on_with_other_ranks(kind, name, tmp_path):
    if kind == "loader":
        pytest.importorskip("torch")
    counts = [count % 7 for count in range(3, 43)] if name == "lists" else [1] * 160
    samples, path = samples_of(counts), tmp_path / "a.parquet"
    if name == "lists":
        write_structs(path, samples)
    else:
        path = tmp_path / "a.rec"
        with recordio.RecordWriter(path) as writer:
            for number, (content,) in enumerate(samples):
                header = recordio.IRHeader(0, float(number), number, 0)
                writer.write(recordio.pack(header, content))
    (tmp_path / "run").mkdir()
    for ranks, stop in ((1, 2), (3, 1), (2, 1), (1, 1000)):
        arguments = [str(path), kind, str(ranks), str(stop), str(tmp_path / "run")]
        run = subprocess.run(
            [sys.executable, "-c", KILLED, *arguments], capture_output=True, text=True, timeout=200
        )
        if stop < 1000:
            assert run.returncode == -9, run.stderr
        else:
            assert run.stdout == "done\n", run.stderr
    lines = (tmp_path / "run" / "seen.jsonl").read_text().splitlines()
    seen = [number for line in lines for number in json.loads(line)]
    assert sorted(seen) == list(range(len(samples)))


# -- servers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["structs.parquet", "a.tar"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_samples_lie_on_servers(name, shuffle, tmp_path, monkeypatch):
    pytest.importorskip("obstore")
    from range_server import RangeServer

    monkeypatch.setenv("RECORDIO_INDEX_CACHE", str(tmp_path / "indexes"))
    samples = samples_of([2, 1, 5, 12, 1, 3])
    WRITERS[name](tmp_path / name, samples)
    server = RangeServer()
    try:
        server.objects[name] = (tmp_path / name).read_bytes()
        with provider_of(
            f"{server.url}/{name}", batch_patches=300, shuffle=shuffle, on_error="raise",
            remote_cache=str(tmp_path / "mirrors"), remote_options={"library": "obstore"},
        ) as provider:  # fmt: skip
            seen = []
            for batch in provider:
                numbers = batch.index.astype(int).tolist()
                expected = preprocess([samples[number] for number in numbers], QWEN)
                assert all(np.array_equal(batch[key], value) for key, value in expected.items())
                seen += numbers
        assert sorted(seen) == list(range(len(samples)))
    finally:
        server.stop()
