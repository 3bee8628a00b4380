"""Arrow files of the hub's library datasets: images in place, labels by the rules of Parquet."""

import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
from labelled_containers import IMAGES

from iterators import ImageRecordIter
from recordio import RecordIOError
from recordio.containers.arrow import ARROW
from recordio.containers.container import Choice
from recordio.packs.open_pack import open_listed
from recordio.tools.cli import main

pa = pytest.importorskip("pyarrow")

FEATURES = {
    "image": {"_type": "Image"},
    "label": {"_type": "ClassLabel", "names": ["cat", "cup", "dog"]},
}


def table_of(labels=(2, 0, 1), contents=IMAGES, **more):
    images = [{"bytes": content, "path": f"{i}.jpg"} for i, content in enumerate(contents)]
    table = pa.table({"image": images, "label": list(labels), **more})
    return table.replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": FEATURES}})}
    )


def write(path, table, stream=True, chunk=2, **options):
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(str(path), table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=chunk)
    return str(path)


@pytest.mark.parametrize("stream", [True, False])
def test_images_are_spans_of_the_file(stream, tmp_path):
    path = write(tmp_path / "a.arrow", table_of(), stream)
    (pack,) = open_listed(path)
    assert pack.container is ARROW and ARROW.rows is None
    assert [bytes(pack.reader.content(row)) for row in range(3)] == IMAGES
    assert pack.samples.labels.tolist() == [2, 0, 1]
    assert pack.classes == {0: "cat", 1: "cup", 2: "dog"}
    assert pack.samples.all_names() == ["0.jpg", "1.jpg", "2.jpg"]


def test_a_folder_of_a_saved_set(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    write(folder / "data-00000-of-00002.arrow", table_of())
    write(folder / "data-00001-of-00002.arrow", table_of([1, 1, 2]))
    (folder / "state.json").write_text("{}")
    with ImageRecordIter(path_imgrec=str(folder), batch_size=6, data_shape=(3, 16, 16)) as images:
        assert next(images).label[0].tolist() == [2, 0, 1, 1, 1, 2]
        assert images.classes == ["cat", "cup", "dog"]
    assert main(["pack", str(folder), str(tmp_path / "b")]) == 0
    with ImageRecordIter(
        path_imgrec=f"{tmp_path}/b.rec", batch_size=6, data_shape=(3, 16, 16)
    ) as images:
        assert next(images).label[0].tolist() == [2, 0, 1, 1, 1, 2]


def test_nulls_and_other_columns(tmp_path):
    contents = [IMAGES[0], None, IMAGES[2]]
    more = {"caption": ["a", "b", "c"], "style": [3, 4, 5]}
    path = write(tmp_path / "a.arrow", table_of(contents=contents, **more))
    (pack,) = open_listed(path)
    assert list(pack.samples.faults) == [1] and "null" in pack.samples.faults[1]
    assert pack.field_names == ["caption"]
    assert [bytes(pack.field("caption").reader.content(row)) for row in range(3)] == [
        b"a",
        b"b",
        b"c",
    ]
    (pack,) = open_listed(path, choice=Choice(label_field="style"))
    assert pack.samples.labels.tolist() == [3, 4, 5]


def test_compressed_and_damaged_files_are_errors(tmp_path):
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    path = write(tmp_path / "a.arrow", table_of(), options=options)
    with pytest.raises(RecordIOError, match="compressed"):
        open_listed(path)
    path = write(tmp_path / "b.arrow", table_of())
    os.truncate(path, os.path.getsize(path) // 2)
    with pytest.raises(RecordIOError, match=r"b\.arrow"):
        open_listed(path)


class HubSet:
    """A stand-in for the class of the library datasets, as far as the loader looks at it."""

    def __init__(self, files, names, count, rows=None):
        parts = [SimpleNamespace(path=name, num_rows=count) for name in files]
        self.cache_files = [{"filename": name} for name in files]
        self.features = dict.fromkeys(names)
        self.data = SimpleNamespace(blocks=[[part] for part in parts])
        self.column_names = names
        self._indices = None if rows is None else pa.table({"indices": rows})
        self.count = count if rows is None else len(rows)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        raise AssertionError("the files are read in place")


def test_the_loader_takes_the_files_of_a_set(tmp_path):
    torch = pytest.importorskip("torch")
    from iterators.torch import ImageLoader

    path = write(tmp_path / "a.arrow", table_of())
    shape = {"batch_size": 2, "data_shape": (3, 16, 16)}
    for rows, wanted in ((None, [2, 0, 1]), ([2, 0], [1, 2])):
        loader = ImageLoader(HubSet([path], ["image", "label"], 3, rows), **shape)
        assert torch.cat([label for _, label in loader]).tolist() == wanted
    for other in (
        HubSet([path], ["image", "label"], 2),  # a slice of the table
        HubSet([path], ["image"], 3),
        HubSet([], ["image", "label"], 3),
    ):
        with pytest.raises(ValueError, match="save_to_disk"):
            ImageLoader(other, **shape)


def test_a_set_of_the_library_itself(tmp_path):
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("torch")
    from iterators.torch import ImageLoader

    images = [{"bytes": content, "path": None} for content in IMAGES]
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "cup", "dog"])}
    )
    made = datasets.Dataset.from_dict({"image": images, "label": [2, 0, 1]}, features=features)
    made.save_to_disk(tmp_path / "set")
    with ImageRecordIter(
        path_imgrec=str(tmp_path / "set"), batch_size=3, data_shape=(3, 16, 16)
    ) as batches:
        assert next(batches).label[0].tolist() == [2, 0, 1]
        assert batches.classes == ["cat", "cup", "dog"]
    loaded = datasets.load_from_disk(str(tmp_path / "set"))
    twice = datasets.concatenate_datasets([loaded, loaded])
    for one in (loaded, loaded.shuffle(seed=3), loaded.select([2, 0]), twice):
        loader = ImageLoader(one, batch_size=3, data_shape=(3, 16, 16))
        found = np.concatenate([label.numpy() for _, label in loader]).tolist()
        assert found == [one[row]["label"] for row in range(len(one))]
    first, rest = loaded.select(range(1)), loaded.select(range(1, 3))
    joined = datasets.concatenate_datasets
    for other in (
        loaded.remove_columns("label"),
        loaded.rename_column("label", "y"),
        made,
        joined([rest, first]),
        joined([rest, first]).shuffle(seed=3),
        joined([first, first, first]),
        joined([rest, made.select(range(1))]),
    ):
        with pytest.raises(ValueError, match="save_to_disk"):
            ImageLoader(other, batch_size=1, data_shape=(3, 16, 16))
