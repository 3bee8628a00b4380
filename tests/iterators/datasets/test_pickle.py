"""Files of pickles: reading, sharing, damage, and nothing run that was not asked for."""

import io
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iterators
from iterators.datasets import (
    PickleDataset,
    PickleDatasetWriter,
    open_pickle_dataset,
    open_pickle_dataset_writer,
)

OBJECTS = st.recursive(
    st.none() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@given(st.lists(OBJECTS, max_size=6), st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_what_is_written_is_read(objects, protocol):
    file = io.BytesIO()
    writer = PickleDatasetWriter(file, protocol)
    for item in objects:
        writer.write(item)
    writer.flush()
    data = PickleDataset(file)
    assert len(data) == len(objects)
    assert list(data) == objects
    assert data[::-1] == objects[::-1]
    for i in range(-len(objects), 0):
        assert data[i] == objects[i]
    with pytest.raises(IndexError):
        data[len(objects)]


def test_large_objects_of_any_protocol(tmp_path):
    arrays = [np.arange(n) for n in (0, 1, 100_000, 3)]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with open_pickle_dataset_writer(tmp_path / "a.pkl", protocol) as writer:
            for array in arrays:
                writer.write(array)
        with open_pickle_dataset(tmp_path / "a.pkl") as data:
            for found, array in zip(data, arrays, strict=True):
                np.testing.assert_array_equal(found, array)


def test_it_has_to_be_asked_for_by_its_full_name():
    assert not hasattr(iterators, "PickleDataset")


class Harmful:
    ran = 0

    def __reduce__(self):
        return harm, ()


def harm():
    Harmful.ran += 1
    return "harmed"


def test_counting_runs_nothing_and_an_unpickler_can_forbid():
    content = pickle.dumps([1, 2]) + pickle.dumps(Harmful())
    Harmful.ran = 0
    assert len(PickleDataset(io.BytesIO(content))) == 2
    assert Harmful.ran == 0

    class Plain(pickle.Unpickler):
        def find_class(self, module, name):
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed")

    data = PickleDataset(io.BytesIO(content), unpickler=Plain)
    assert data[0] == [1, 2]
    with pytest.raises(pickle.UnpicklingError, match="not allowed"):
        data[1]
    assert Harmful.ran == 0


@given(st.binary(min_size=1, max_size=60))
def test_random_bytes_are_unpickling_errors(content):
    try:
        data = PickleDataset(io.BytesIO(content))
    except pickle.UnpicklingError:
        return
    assert len(data) > 0


def test_a_truncated_file_is_an_unpickling_error():
    content = pickle.dumps([1, 2]) + pickle.dumps({"a": np.arange(3)})
    first = len(pickle.dumps([1, 2]))
    for end in range(1, len(content)):
        if end != first:
            with pytest.raises(pickle.UnpicklingError, match="offset"):
                PickleDataset(io.BytesIO(content[:end]))


def test_the_reader_must_be_seekable():
    class Pipe(io.BytesIO):
        def seekable(self):
            return False

    with pytest.raises(ValueError, match="seekable"):
        PickleDataset(Pipe())


def test_datasets_go_into_other_processes_and_threads(
    tmp_path, read_in_a_new_process, read_in_forks
):
    objects = [("item", i, "x" * (i % 50)) for i in range(300)]
    with open_pickle_dataset_writer(tmp_path / "a.pkl") as writer:
        for item in objects:
            writer.write(item)
    with open_pickle_dataset(tmp_path / "a.pkl") as data:
        assert read_in_a_new_process(data, -1) == objects[-1]
        assert read_in_forks(data, range(300)) == [objects] * 3
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(data.get_example, range(300))) == objects
        copied = pickle.loads(pickle.dumps(data))
        assert copied[5] == objects[5]
        copied.close()


def test_the_hook_of_a_reader_is_called_in_forked_children(read_in_forks):
    class Reader(io.BytesIO):
        forks = 0

        def after_fork(self):
            self.forks += 1

    class Forks(PickleDataset):
        def get_example(self, i):
            return self._reader.forks

    data = Forks(Reader(pickle.dumps(1)))
    assert read_in_forks(data, [0]) == [[1]] * 3
    assert data[0] == 0
