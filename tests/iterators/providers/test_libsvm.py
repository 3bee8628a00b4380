"""`LibSVMIter`: the batches of MXNet, sparse rows, labels, parts and states."""

import gzip
import json

import numpy as np
import pytest

from iterators import LibSVMIter
from recordio.errors import ErrorBudgetError, TextFormatError

sparse = pytest.importorskip("scipy.sparse")


@pytest.fixture
def file(tmp_path):
    """11 rows of 6 features; the label is the row number."""
    dense = np.round(np.random.default_rng(0).standard_normal((11, 6)), 2)
    dense[np.random.default_rng(1).random((11, 6)) < 0.6] = 0
    lines = [
        " ".join([str(i), *(f"{j}:{row[j]}" for j in np.flatnonzero(row))])
        for i, row in enumerate(dense)
    ]
    path = tmp_path / "a.libsvm"
    path.write_text("\n".join(lines))
    return path, dense.astype(np.float32)


def provider_of(file, **arguments):
    return LibSVMIter(**({"data_libsvm": file[0], "data_shape": (6,), "batch_size": 4} | arguments))


def test_batches_are_those_of_mxnet(golden):
    case = json.loads((golden / "text_cases.json").read_text())["libsvm"]
    expected = np.load(golden / "text_batches.npz")
    arguments = {**case["args"], "data_libsvm": golden / case["args"]["data_libsvm"]}
    with LibSVMIter(**arguments) as provider:
        assert [[d[0], list(d[1])] for d in provider.provide_data] == case["provide_data"]
        assert [[d[0], list(d[1])] for d in provider.provide_label] == case["provide_label"]
        count = 0
        for count, batch in enumerate(provider, 1):
            key = f"libsvm/0/{count - 1}"
            assert batch.data[0].format == "csr"
            assert batch.data[0].dtype == np.float32
            np.testing.assert_array_max_ulp(batch.data[0].toarray(), expected[f"{key}/data"], 1)
            assert np.array_equal(batch.label[0], expected[f"{key}/label"])
            assert batch.index.tolist() == expected[f"{key}/index"].tolist()
            assert batch.pad == expected[f"{key}/pad"]
        assert f"libsvm/0/{count}/data" not in expected


@pytest.mark.parametrize("round_batch", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("batch_size", [1, 4, 11, 30])
def test_rows_labels_and_padding(file, round_batch, shuffle, batch_size):
    with provider_of(
        file, round_batch=round_batch, shuffle=shuffle, batch_size=batch_size
    ) as provider:
        for _ in range(2):
            rows = []
            for batch in provider:
                filled = batch_size if round_batch else batch.count
                index = batch.index[:filled].astype(int)
                got = batch.data[0].toarray()
                assert got.shape == (batch_size, 6)
                assert np.array_equal(got[:filled], file[1][index])
                assert batch.label[0][:filled].tolist() == index.tolist()
                assert not got[filled:].any()
                rows += index[: batch.count].tolist()
            assert sorted(rows) == list(range(11))


def test_parts_and_resuming(file):
    rows = []
    for part in range(3):
        with provider_of(file, num_parts=3, part_index=part, batch_size=1) as provider:
            rows.append([int(batch.index[0]) for batch in provider])
    starts = np.cumsum([0, *(len(line) + 1 for line in file[0].read_text().split("\n"))])[:-1]
    part = -(-file[0].stat().st_size // 3)
    cuts = [0, *((starts <= cut).sum() for cut in (part, 2 * part)), 11]
    assert rows == [list(range(a, b)) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    with provider_of(file, shuffle=True) as provider:
        provider.next()
        state = provider.state_dict()
        rest = [provider.next().index.tolist() for _ in range(2)]
    with provider_of(file, shuffle=True) as provider:
        provider.load_state_dict(state)
        assert [batch.index.tolist() for batch in provider] == rest


def test_labels_from_a_file_of_their_own(file, tmp_path):
    path = tmp_path / "labels"
    path.write_text("".join(f"0 {i % 3}:{i}.5\n" for i in range(11)))
    with provider_of(file, label_libsvm=path, label_shape=(3,)) as provider:
        assert provider.provide_label == [("softmax_label", (4, 3))]
        for batch in provider:
            want = np.zeros((4, 3))
            for slot, row in enumerate(batch.index.astype(int)):
                want[slot, row % 3] = row + 0.5
            assert np.array_equal(batch.label[0].toarray(), want)
    for count in (10, 12):
        path.write_text("0 1:1\n" * count)
        with pytest.raises(TextFormatError, match=f"{count} labels for 11 rows"):
            provider_of(file, label_libsvm=path, label_shape=(3,))
    path.write_text("0 1:16777217\n" * 11)
    with pytest.raises(TextFormatError, match="16777217 has no exact float32"):
        provider_of(file, label_libsvm=path, label_shape=(3,))


def test_torch_gets_sparse_tensors(file):
    torch = pytest.importorskip("torch")
    with provider_of(file, device="cpu", round_batch=False) as provider:
        batches = list(provider)
    assert all(batch.data[0].layout == torch.sparse_csr for batch in batches)
    dense = torch.cat([batch.data[0].to_dense()[: batch.count] for batch in batches])
    assert np.array_equal(dense.numpy(), file[1])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"data_shape": (6, 1)}, ValueError, "data_shape"),
        ({"data_shape": (2,)}, TextFormatError, "a.libsvm"),
        ({"label_shape": (3,)}, ValueError, "label_libsvm"),
        ({"dtype": "int32"}, ValueError, "dtype='int32'"),
        ({"on_error": "ignore"}, ValueError, "on_error='ignore'"),
        ({"layout": "CN"}, ValueError, "sparse"),
        ({"label_lbsvm": "x"}, TypeError, "did you mean 'label_libsvm'"),
    ],
)
def test_bad_parameters(file, arguments, error, text):
    with pytest.raises(error, match=text):
        provider_of(file, **arguments)


def test_a_file_without_rows(tmp_path):
    (tmp_path / "a").write_text("# nothing\n\n")
    with pytest.raises(TextFormatError, match="no rows"):
        LibSVMIter(data_libsvm=tmp_path / "a", data_shape=(3,), batch_size=1)


def test_names(file):
    with provider_of(file, data_name="x", label_name=None) as provider:
        assert provider.next()["x"].shape == (4, 6)
        assert provider.provide_label == []


@pytest.mark.parametrize("shuffle", [False, True])
def test_bad_rows_are_replaced_by_the_next_good_ones(tmp_path, shuffle):
    bad, bad_labels = {0: "1 9:1", 4: "1 2", 5: "x 1:1", 7: "1 1:1 2:x"}, {5: "0 y", 8: "0 -1:1"}
    data = [bad.get(i, f"{i} {i % 6}:{i}.5 5:1") for i in range(12)]
    label = [bad_labels.get(i, f"0 {i % 3}:{i}") for i in range(12)]
    (tmp_path / "data").write_text("\n# no row\n\n".join(data))
    (tmp_path / "label").write_text("\n".join(label))
    arguments = {
        "data_libsvm": tmp_path / "data",
        "data_shape": (6,),
        "label_libsvm": tmp_path / "label",
        "label_shape": (3,),
        "batch_size": 5,
        "shuffle": shuffle,
    }
    with pytest.raises(TextFormatError, match="data, line 1"):
        LibSVMIter(**arguments)
    with LibSVMIter(on_error="skip", **arguments) as provider:
        for epoch in range(2):
            order = provider._plan.order.take(epoch, 0, 12).tolist()
            got = []
            for batch in provider:
                index = batch.index.astype(int)
                got += index[: batch.count].tolist()
                want = np.zeros((5, 6), np.float32)
                labels = np.zeros((5, 3), np.float32)
                for slot, row in enumerate(index):
                    want[slot, row % 6] += row + 0.5
                    want[slot, 5] += 1
                    labels[slot, row % 3] = row
                assert np.array_equal(batch.data[0].toarray(), want)
                assert np.array_equal(batch.label[0].toarray(), labels)
            wrong = {0, 4, 5, 7, 8}
            assert got == [
                next(r for r in order[i:] + order[:i] if r not in wrong) for i in range(12)
            ]
        assert {row for row, _ in provider.skipped} == wrong
        assert len(provider.skipped) == 5
    with LibSVMIter(on_error="skip", error_budget=4, **arguments) as provider:
        with pytest.raises(ErrorBudgetError):
            list(provider)


def test_parts_are_those_of_mxnet(tmp_path):
    """How many rows of two files MXNet 1.9.1 delivers to each part."""
    widths = [3, 3, 0, 2, 4, 3, 3, 2, 3, 2, 4, 1, 1, 0]
    lines = [f"{i} " + " ".join(f"{j}:1" for j in range(w)) for i, w in enumerate(widths)]
    (tmp_path / "a").write_text("\n".join(lines[:9]) + "\n")
    (tmp_path / "b").write_text("\n".join(lines[9:]))
    lengths = {
        1: [14],
        2: [7, 7],
        3: [5, 4, 5],
        4: [4, 3, 3, 4],
        5: [4, 2, 2, 3, 3],
        7: [2, 3, 1, 2, 2, 1, 3],
        11: [2, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1],
    }
    for parts, want in lengths.items():
        rows = []
        for part in range(parts):
            with LibSVMIter(
                data_libsvm=tmp_path,
                data_shape=(9,),
                batch_size=1,
                num_parts=parts,
                part_index=part,
            ) as provider:
                rows.append([int(batch.label[0][0]) for batch in provider])
        assert [len(mine) for mine in rows] == want
        assert sum(rows, []) == list(range(14))


def test_limits_are_those_of_the_reader(tmp_path):
    path = tmp_path / "a.libsvm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n" * 1000))
    plain = {"data_libsvm": path, "data_shape": (2,), "batch_size": 10}
    with pytest.raises(TextFormatError, match="raise max_array_bytes"):
        LibSVMIter(**plain, max_array_bytes=23_999)
    LibSVMIter(**plain, max_array_bytes=24_000).close()
    path.write_bytes(gzip.compress(b"1" * (1 << 23)))
    with pytest.raises(TextFormatError, match="raise max_line_bytes"):
        LibSVMIter(**plain, max_line_bytes=1 << 20)
