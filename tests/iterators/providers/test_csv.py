"""`CSVIter`: the batches of MXNet, parts, states, and bad rows."""

import gc
import gzip
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iterators import CSVIter, CSVProvider
from iterators.testing import same
from recordio.errors import ErrorBudgetError, TextFormatError
from recordio.text.csv import CSVReader
from recordio.text.row_count import count_rows


def epoch_of(provider):
    return [(b.data[0].copy(), b.label[0].copy(), b.index.tolist(), b.pad) for b in provider]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """23 rows of 3 numbers and of 2 labels."""
    folder = tmp_path_factory.mktemp("csv")
    table = np.arange(69).reshape(23, 3)
    labels = -np.arange(46).reshape(23, 2)
    np.savetxt(folder / "data.csv", table, "%d", ",")
    np.savetxt(folder / "label.csv", labels, "%d", ",")
    return folder / "data.csv", folder / "label.csv", table, labels


def provider_of(files, **arguments):
    defaults = {
        "data_csv": files[0],
        "data_shape": (3,),
        "label_csv": files[1],
        "label_shape": (2,),
        "batch_size": 5,
        "threads": 2,
    }
    return CSVIter(**(defaults | arguments))


@pytest.mark.parametrize("name", ["csv", "csv_nolabel"])
def test_batches_are_those_of_mxnet(golden, name):
    case = json.loads((golden / "text_cases.json").read_text())[name]
    expected = np.load(golden / "text_batches.npz")
    arguments = {**case["args"], "data_csv": golden / case["args"]["data_csv"]}
    if "label_csv" in arguments:
        arguments["label_csv"] = golden / arguments["label_csv"]
    with CSVIter(**arguments) as provider:
        assert [[d[0], list(d[1])] for d in provider.provide_data] == case["provide_data"]
        assert [[d[0], list(d[1])] for d in provider.provide_label] == case["provide_label"]
        count = 0
        for count, batch in enumerate(provider, 1):
            key = f"{name}/0/{count - 1}"
            real = batch.count
            for got, what in ((batch.data[0], "data"), (batch.label[0], "label")):
                want = expected[f"{key}/{what}"]
                assert got.dtype == want.dtype
                np.testing.assert_array_max_ulp(got[:real], want[:real], 1)
            assert batch.index[:real].tolist() == expected[f"{key}/index"][:real].tolist()
        assert f"{name}/0/{count}/data" not in expected
        assert real == 3


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_batches_are_the_rows_of_the_file(files, data):
    arguments = {
        "batch_size": data.draw(st.integers(1, 60)),
        "round_batch": data.draw(st.booleans()),
        "shuffle": data.draw(st.booleans()),
        "dtype": data.draw(st.sampled_from(["float32", "float64", "int32", "int64"])),
        "num_parts": (parts := data.draw(st.integers(1, 4))),
        "part_index": data.draw(st.integers(0, parts - 1)),
        "even": data.draw(st.booleans()),
    }
    with provider_of(files, **arguments) as provider:
        for _ in range(2):
            batches = epoch_of(provider)
            assert len(batches) == len(provider)
            for x, y, index, pad in batches:
                real = len(x) - pad
                filled = len(x) if arguments["round_batch"] else real
                assert x.dtype == y.dtype == arguments["dtype"]
                assert np.array_equal(x[:filled], files[2][index[:filled]])
                assert np.array_equal(y[:filled], files[3][index[:filled]])
                assert not x[filled:].any()
                assert not y[filled:].any()
            rows = [row for _, _, index, pad in batches for row in index[: len(index) - pad]]
            assert len(rows) == provider.num_samples
            if arguments["num_parts"] == 1:
                assert sorted(rows) == list(range(23))


def test_parts_are_blocks_of_equal_size(files):
    rows = []
    for part in range(4):
        with provider_of(files, num_parts=4, part_index=part, batch_size=1) as provider:
            rows.append([int(batch.index[0]) for batch in provider])
    assert [len(mine) for mine in rows] == [6, 6, 6, 5]
    assert sum(rows, []) == list(range(23))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_run_resumed_at_any_batch_is_the_run(files, shuffle, parts):
    arguments = {"shuffle": shuffle, "num_parts": parts, "part_index": parts - 1, "batch_size": 4}
    with provider_of(files, **arguments) as provider:
        whole, states = [], [provider.state_dict()]
        for _ in range(2):
            for batch in provider:
                whole.append((batch.data[0].copy(), batch.index.tolist()))
                states.append(provider.state_dict())
    for done, state in enumerate(states[:-1]):
        with provider_of(files, prefetch_buffer=1, **arguments) as provider:
            provider.load_state_dict(state)
            rest = [(b.data[0].copy(), b.index.tolist()) for _ in range(2) for b in provider]
        for (x, i), (y, j) in zip(rest, whole[done:], strict=False):
            assert i == j
            assert np.array_equal(x, y)


def test_reset_in_the_middle_begins_at_the_first_row(files):
    with provider_of(files, round_batch=False) as provider:
        first = epoch_of(provider)
        provider.reset()
        provider.next()
        provider.next()
        provider.reset()
        assert same(epoch_of(provider), first)
        assert provider.epoch == 2


def test_many_small_chunks_give_the_same_batches(files, monkeypatch):
    with provider_of(files) as provider:
        want = epoch_of(provider) + epoch_of(provider)
    import iterators.providers.csv as module

    monkeypatch.setattr(module, "CSVReader", lambda *a, **k: CSVReader(*a, chunk_bytes=11, **k))
    with provider_of(files) as provider:
        assert same(epoch_of(provider) + epoch_of(provider), want)


def test_shapes_of_rows_and_labels(files):
    with provider_of(files, data_shape=(1, 3, 1), label_shape=(1, 2)) as provider:
        assert provider.provide_data == [("data", (5, 1, 3, 1))]
        assert provider.provide_label == [("softmax_label", (5, 1, 2))]
        batch = provider.next()
        assert batch.data[0].shape == (5, 1, 3, 1)
        assert batch.label[0].shape == (5, 1, 2)
    for shuffle in (False, True):
        with provider_of(
            files,
            data_csv=files[1],
            data_shape=(2,),
            label_csv=None,
            label_shape=(1,),
            shuffle=shuffle,
        ) as provider:
            assert provider.provide_label == [("softmax_label", (5,))]
            for batch in provider:
                assert batch.label[0].tolist() == [0] * 5
        none = {"label_csv": None, "label_shape": (1,), "label_name": None, "shuffle": shuffle}
        with provider_of(files, **none) as provider:
            assert (provider.provide_label, provider.next().label) == ([], [])


def test_a_file_of_labels_that_nobody_asks_for_is_told_of(files):
    with (
        pytest.warns(UserWarning, match="label_csv=.* has no effect without labels"),
        provider_of(files, label_name=None) as provider,
    ):
        assert provider.provide_label == []


@pytest.mark.parametrize("shuffle", [False, True])
def test_one_label_for_a_row_has_no_axis_of_its_own(tmp_path, shuffle):
    (tmp_path / "data").write_text("1,2\n3,4\n")
    (tmp_path / "label").write_text("5\n6\n")
    provider = CSVIter(
        data_csv=tmp_path / "data",
        data_shape=(2,),
        label_csv=tmp_path / "label",
        batch_size=2,
        shuffle=shuffle,
    )
    (batch,) = provider
    assert batch.label[0].shape == (2,)
    assert sorted(batch.label[0].tolist()) == [5, 6]


@pytest.mark.parametrize("shuffle", [False, True])
def test_text_of_every_kind(tmp_path, shuffle):
    text = "\ufeffa;b\r\n\r\n 1 ; 2.5\r\n   \t\r\n-3;nan\r\ninf;4e-3;\r\n\r\n5;6"
    (tmp_path / "a.csv").write_bytes(text.encode())
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.csv", "b.csv.gz"):
        assert count_rows(tmp_path / name, skip_header=1) == 4
    provider = CSVIter(
        data_csv=tmp_path,
        data_shape=(2,),
        batch_size=8,
        delimiter=";",
        skip_header=1,
        shuffle=shuffle,
    )
    (batch,) = provider
    order = np.argsort(batch.index)
    want = [[1, 2.5], [-3, np.nan], [np.inf, np.float32(4e-3)], [5, 6]] * 2
    assert np.array_equal(batch.data[0][order], np.array(want, np.float32), equal_nan=True)


@settings(deadline=None)
@given(st.text(alphabet="1, \t\r\n", max_size=300))
def test_rows_are_counted_as_they_are_parsed(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("count") / "a.csv"
    path.write_bytes(text.encode())
    lines = [line for line in text.split("\n") if line.strip(" \t\r")]
    assert count_rows(path) == len(lines)


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_bad_line_is_an_error_with_its_place_again_and_again(tmp_path, shuffle):
    (tmp_path / "a.csv").write_text("1,2\n3,4\n5,x\n7,8\n")
    arguments = {"data_csv": tmp_path / "a.csv", "data_shape": (2,), "batch_size": 1}
    if shuffle:
        with pytest.raises(TextFormatError, match="a.csv, line 3"):
            CSVIter(shuffle=True, **arguments)
        return
    with CSVIter(**arguments) as provider:
        for _ in range(4):
            with pytest.raises(TextFormatError, match="a.csv, line 3") as caught:
                list(provider)
            assert (caught.value.line, caught.value.record) == (3, 2)
            assert provider.next().data[0].tolist() == [[7, 8]]  # goes on behind it
            provider.reset()


# ---- bad rows


def damaged(folder, bad, bad_labels, rows=40, ending="\n"):
    """Rows ``i, 10 * i`` and labels ``-i``, some of which cannot be read."""
    junk = ["x,1", "1", "1,2,3", "1,", ",", "1,2x"]
    data = [junk[i % 6] if i in bad else f"{i},{10 * i}" for i in range(rows)]
    label = ["?" if i in bad_labels else f"{-i}" for i in range(rows)]
    (folder / "data.csv").write_text(ending.join(data) + ending * 2)
    (folder / "label.csv").write_text(ending.join(label))
    return {
        "data_csv": folder / "data.csv",
        "data_shape": (2,),
        "label_csv": folder / "label.csv",
        "threads": 2,
    }


def replaced(order, bad):
    """What comes in every place of an epoch."""
    good = []
    for place in range(len(order)):
        rows = [*order[place:], *order[:place]]
        good.append(next(row for row in rows if row not in bad))
    return good


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_bad_rows_are_replaced_by_the_next_good_ones(tmp_path, data):
    rows = st.sets(st.integers(0, 39), max_size=20)
    bad, bad_labels = data.draw(rows), data.draw(rows)
    if len(bad | bad_labels) > 38:
        return
    arguments = damaged(
        tmp_path, bad, bad_labels, ending=data.draw(st.sampled_from(["\n", "\r\n"]))
    )
    arguments |= {
        "batch_size": data.draw(st.integers(1, 50)),
        "num_parts": (parts := data.draw(st.integers(1, 3))),
        "part_index": data.draw(st.integers(0, parts - 1)),
        "shuffle": data.draw(st.booleans()),
        "on_error": "skip",
    }
    bad |= bad_labels
    import iterators.providers.csv as module

    chunk_bytes = data.draw(st.sampled_from([8, 50, 1 << 20]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            module, "CSVReader", lambda *a, **k: CSVReader(*a, chunk_bytes=chunk_bytes, **k)
        )
        provider = CSVIter(**arguments)
    with provider:
        order = provider._plan.order
        seen = set()
        for epoch in range(2):
            mine = order.take(epoch, 0, order.count()).tolist()
            if mine and not set(mine) - bad:
                with pytest.raises(TextFormatError):
                    list(provider)
                return
            seen.update(mine)
            batches = epoch_of(provider)
            got = [i for _, _, index, pad in batches for i in index[: len(index) - pad]]
            assert got == replaced(mine, bad)
            for x, y, index, _ in batches:
                assert np.array_equal(x, np.array([[i, 10 * i] for i in index]))
                assert y.tolist() == [-i for i in index]
        assert {row for row, _ in provider.skipped} == bad & seen
        assert len(provider.skipped) == len(bad & seen)
        assert all("line" in reason for _, reason in provider.skipped)


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_budget_for_bad_rows(tmp_path, shuffle):
    arguments = damaged(tmp_path, {3, 5, 7}, {5, 9}) | {"batch_size": 8, "shuffle": shuffle}
    with CSVIter(on_error="skip", error_budget=4, **arguments) as provider:
        assert len(list(provider)) == 5
        assert len(provider.skipped) == 4
        assert all(row in (3, 5, 7, 9) for row, _ in provider.skipped)
        assert {row for row, reason in provider.skipped if "label.csv" in reason} == {9}
    with CSVIter(on_error="skip", error_budget=3, **arguments) as provider:
        with pytest.raises(ErrorBudgetError, match="more than the error_budget"):
            list(provider)
    with CSVIter(on_error="skip", error_budget=0.1, **arguments) as provider:
        assert len(list(provider)) == 5


def test_every_batch_with_a_bad_row_raises_and_no_other(tmp_path):
    arguments = damaged(tmp_path, {3, 17}, {18, 38}) | {"batch_size": 4}
    with CSVIter(**arguments) as provider:
        for _ in range(2):
            got, lines = [], []
            while True:
                try:
                    got += provider.next().index.tolist()
                except TextFormatError as error:
                    lines.append((error.path[-9:], error.line, error.record))
                except StopIteration:
                    break
            assert got == [i for i in range(40) if i // 4 not in (0, 4, 9)]
            assert lines == [("/data.csv", 4, 3), ("/data.csv", 18, 17), ("label.csv", 39, 38)]
            provider.reset()
        assert provider.skipped == []


def test_a_resumed_run_skips_the_same_rows(tmp_path):
    arguments = damaged(tmp_path, {3, 4, 20, 39}, {5}) | {"batch_size": 3, "on_error": "skip"}
    with CSVIter(**arguments) as provider:
        whole, states = [], []
        for batch in provider:
            states.append(provider.state_dict())
            whole.append(batch.index.tolist())
    for number, state in enumerate(states[:-1]):
        with CSVIter(**arguments) as provider:
            provider.load_state_dict(state)
            assert [batch.index.tolist() for batch in provider] == whole[number + 1 :]


@pytest.mark.parametrize("method", ["advance", "row"])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_an_interrupt_anywhere_costs_no_row(tmp_path, monkeypatch, method, count):
    import iterators.providers.csv as module

    arguments = damaged(tmp_path, {3, 5, 20, 21, 33}, {8}) | {"batch_size": 4, "on_error": "skip"}
    monkeypatch.setattr(module, "CSVReader", lambda *a, **k: CSVReader(*a, chunk_bytes=20, **k))
    with CSVIter(**arguments) as provider:
        want = [batch.index.tolist() for batch in provider]
    with CSVIter(**arguments) as provider:
        stream = provider._engine._produce.streams[0]
        inside, calls = getattr(stream, method), []

        def interrupted(*args):
            result = inside(*args)
            calls.append(None)
            if len(calls) == count:
                raise KeyboardInterrupt
            return result

        setattr(stream, method, interrupted)
        got = []
        for _ in range(2):
            try:
                while True:
                    batch = provider.next()
                    got.append(batch.index.tolist())
                    assert batch.data[0][:, 0].tolist() == got[-1]
            except (KeyboardInterrupt, StopIteration):
                pass
        assert got == want
        assert len(calls) > count


def test_rows_of_a_url_from_any_one_on():
    fsspec = pytest.importorskip("fsspec")
    text = "".join(f"{i},{-i}\n" for i in range(5000)).encode()
    for name, content in (("a.csv", text), ("b.csv.gz", gzip.compress(text))):
        with fsspec.open(f"memory://rows/{name}", "wb") as file:
            file.write(content)
        provider = CSVIter(
            data_csv=f"memory://rows/{name}",
            data_shape=(2,),
            batch_size=1000,
            num_parts=5,
            part_index=3,
        )
        (batch,) = provider
        assert batch.data[0][:, 1].tolist() == list(range(-3000, -4000, -1))


def test_a_long_run_of_bad_rows_is_gone_through_once(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1\n" + "x\n" * 5000 + "2\n")
    with CSVIter(data_csv=path, data_shape=(1,), batch_size=10, on_error="skip") as provider:
        calls = []
        replace = provider._engine._replace
        provider._engine._replace = lambda *a: (calls.append(a[0]), replace(*a))
        values = np.concatenate([batch.data[0][:, 0] for batch in provider])
        assert values.tolist() == [1] + [2] * 5001 + [1] + [2] * 7
        assert len(calls) < 16_000


def test_a_file_of_something_else_does_not_fill_the_memory_with_errors(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n" * 100_000)
    for shuffle in (False, True):
        with pytest.raises(TextFormatError, match="another kind of file"):
            CSVIter(
                data_csv=path, data_shape=(1,), batch_size=1, on_error="skip", shuffle=shuffle
            ).next()


@pytest.mark.parametrize("packed", [False, True])
def test_parts_and_resumed_runs_parse_little_of_what_comes_before(tmp_path, packed, monkeypatch):
    import recordio.text.csv

    text = "".join(f"{i},{i % 7}\n" + "\n" * (i % 5 == 0) for i in range(20_000)).encode()
    path = tmp_path / "a.csv"
    path.write_bytes(gzip.compress(text) if packed else text)
    lines = []

    class Noting(recordio.text.csv.LineChunks):
        def read(self, buffer=None):
            chunk = super().read(buffer)
            if chunk is not None:
                lines.append(chunk.first_line)
            return chunk

    import iterators.providers.csv as module

    monkeypatch.setattr(recordio.text.csv, "LineChunks", Noting)
    monkeypatch.setattr(module, "CSVReader", lambda *a, **k: CSVReader(*a, chunk_bytes=1000, **k))
    arguments = {"data_csv": path, "data_shape": (2,), "batch_size": 100}
    with CSVIter(num_parts=4, part_index=3, **arguments) as provider:
        assert np.concatenate([b.index for b in provider]).tolist() == list(range(15_000, 20_000))
        assert min(lines) > 17_800
        lines.clear()
        provider.reset()
        assert provider.next().data[0][:, 0].tolist() == list(range(15_000, 15_100))
        assert not lines  # the first rows of the part are kept
        assert provider.next().data[0][:, 0].tolist() == list(range(15_100, 15_200))
        assert min(lines) > 17_800
    with CSVIter(**arguments) as provider:
        state = {**provider.state_dict(), "done": 12_345}
        lines.clear()
        provider.load_state_dict(state)
        assert provider.next().data[0][:, 0].tolist() == list(range(12_345, 12_445))
        assert min(lines) > 14_650


def test_layout_puts_the_axes_in_order(tmp_path):
    table = np.arange(10 * 24, dtype=np.float32).reshape(10, 24)
    np.savetxt(tmp_path / "a.csv", table, "%d", ",")
    images = table.reshape(10, 2, 3, 4)
    for shuffle in (False, True):
        for layout in ("NCHW", "NHWC", "HWCN"):
            provider = CSVIter(
                data_csv=tmp_path / "a.csv",
                data_shape=(2, 3, 4),
                batch_size=5,
                layout=layout,
                shuffle=shuffle,
            )
            with provider:
                (desc,) = provider.provide_data
                assert desc.layout == layout
                for batch in provider:
                    want = images[batch.index.astype(int)].transpose(
                        ["NCHW".index(axis) for axis in layout]
                    )
                    assert np.array_equal(batch.data[0], want)
                    assert batch.data[0].flags.c_contiguous
                    assert batch.data[0].shape == desc.shape
                    assert (batch.count, provider.batch_size) == (5, 5)


def test_bad_rows_are_replaced_in_any_layout(tmp_path):
    (tmp_path / "a.csv").write_text("1,2,3,4\nx\n5,6,7,8\n")
    for shuffle in (False, True):
        provider = CSVIter(
            data_csv=tmp_path / "a.csv",
            data_shape=(2, 2, 1),
            batch_size=3,
            layout="HWCN",
            on_error="skip",
            shuffle=shuffle,
        )
        (batch,) = provider
        rows = np.moveaxis(batch.data[0], 3, 0).transpose(0, 3, 1, 2).reshape(3, 4)
        assert {1, 5} == set(rows[:, 0].tolist())
        assert np.array_equal(rows, rows[:, :1] + np.arange(4))
        assert set(batch.index.tolist()) == {0, 2}


def test_a_file_that_shrinks_is_an_error(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,2\n" * 9)
    with CSVIter(data_csv=path, data_shape=(2,), batch_size=9) as provider:
        path.write_text("1,2\n" * 4)
        with pytest.raises(TextFormatError, match="had more rows .* there are 4"):
            provider.next()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"dtype": "float16"}, ValueError, "dtype='float16'"),
        ({"delimiter": "ab"}, ValueError, "delimiter"),
        ({"skip_header": -1}, ValueError, "skip_header=-1"),
        ({"threads": 0}, ValueError, "threads=0"),
        ({"data_shape": (0,)}, ValueError, "data_shape"),
        ({"batch_size": 0}, ValueError, "batch_size=0"),
        ({"part_index": 2}, ValueError, "part_index=2"),
        ({"on_error": "ignore"}, ValueError, "on_error='ignore'"),
        ({"error_budget": 3}, ValueError, "needs on_error='skip'"),
        ({"layout": "NCHW"}, ValueError, "has the axes 'NC'"),
        ({"layout": "NC", "data_shape": (3, 1)}, ValueError, "have names"),
        ({"delimeter": ";"}, TypeError, "did you mean 'delimiter'"),
        ({"data_csv": "nowhere.csv"}, OSError, "nowhere.csv"),
    ],
)
def test_bad_parameters(files, arguments, error, text):
    with pytest.raises(error, match=text):
        provider_of(files, **arguments)


def test_files_without_rows_and_with_too_few_labels(files, tmp_path):
    (tmp_path / "empty").write_text("\n \n")
    with pytest.raises(TextFormatError, match="empty: the file holds no rows"):
        provider_of(files, data_csv=tmp_path / "empty")
    (tmp_path / "few").write_text("1,2\n" * 22)
    with pytest.raises(TextFormatError, match="few: 22 labels for the 23 rows"):
        provider_of(files, label_csv=tmp_path / "few")


def test_torch_tensors(files):
    torch = pytest.importorskip("torch")
    with provider_of(files, device="cpu") as provider:
        tensors = [batch.data[0] for batch in provider]
    assert all(isinstance(tensor, torch.Tensor) for tensor in tensors)
    assert torch.cat(tensors)[:23].tolist() == files[2].tolist()


def test_no_batch_that_is_held_is_overwritten(files):
    with provider_of(files, prefetch_buffer=2) as provider:
        held = [
            (batch, batch.data[0].copy(), batch.label[0].copy())
            for _ in range(4)
            for batch in provider
        ]
    assert all(np.array_equal(b.data[0], x) and np.array_equal(b.label[0], y) for b, x, y in held)


def test_dropping_a_provider_in_the_middle_ends_all_threads(tmp_path, new_threads):
    path = tmp_path / "a.csv"
    path.write_text("1,2,3,4,5,6,7,8\n" * 500_000)  # more than is read ahead
    providers = [CSVIter(data_csv=path, data_shape=(8,), batch_size=10) for _ in range(2)]
    for provider in providers:
        provider.next()
    assert new_threads()
    del provider
    providers.clear()
    gc.collect()
    assert not new_threads()


def test_the_other_name():
    assert CSVProvider is CSVIter


def test_limits_are_those_of_the_reader(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"1,2\n" * 4000 + b"1" * (1 << 23) + b",2\n"))
    plain = {"data_csv": path, "data_shape": (2,), "batch_size": 10}
    for shuffle in (False, True):
        with pytest.raises(TextFormatError, match="raise max_line_bytes"):
            CSVIter(**plain, shuffle=shuffle, max_line_bytes=1 << 20)
    path.write_bytes(gzip.compress(b"1,2\n" * 4000))
    with pytest.raises(TextFormatError, match="raise max_array_bytes"):
        CSVIter(**plain, shuffle=True, max_array_bytes=31_999)
    CSVIter(**plain, shuffle=True, max_array_bytes=32_000).close()


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_row_has_one_label_that_keeps_its_digits(tmp_path, shuffle):
    data, label = tmp_path / "data", tmp_path / "label"
    data.write_text("1\n2\n3\n")
    for text, words in (
        ("1\n2\n", "2 labels"),
        ("1\n" * 4, "4 labels"),
        ("1\n16777217\n2\n", "exact"),
    ):
        label.write_text(text)
        with pytest.raises(TextFormatError, match=words):
            files = {"data_csv": data, "label_csv": label}
            list(CSVIter(**files, data_shape=(1,), batch_size=1, shuffle=shuffle))


@pytest.mark.parametrize("shuffle", [False, True])
def test_empty_fields_get_a_value(tmp_path, shuffle):
    data = tmp_path / "data"
    data.write_text("1,,3\n4,5,\n,,\n")
    arguments = {"data_csv": data, "data_shape": (3,), "batch_size": 3, "shuffle": shuffle}
    with pytest.raises(TextFormatError, match="the field is empty"):
        list(CSVIter(**arguments))
    (batch,) = CSVIter(missing=-1, **arguments)
    assert sorted(batch.data[0].tolist()) == [[-1, -1, -1], [1, -1, 3], [4, 5, -1]]
