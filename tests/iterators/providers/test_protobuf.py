"""`ProtobufRecordIter`: a provider as the others over rows, dense or sparse."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from iterators import MXDataProvider, ProtobufRecordIter
from recordio import write_protobuf

FEATURES = np.arange(21, dtype=np.float32).reshape(7, 3)
LABELS = np.arange(7, dtype=np.float32)


@pytest.fixture
def path(tmp_path):
    write_protobuf(tmp_path / "a.pbr", FEATURES, LABELS)
    return tmp_path / "a.pbr"


def rows_of(provider):
    return [row for batch in provider for row in batch.index[: len(batch.index) - batch.pad]]


def test_batches_descriptions_and_padding(path):
    provider = ProtobufRecordIter(path=path, batch_size=3)
    assert isinstance(provider, MXDataProvider) and len(provider) == 3
    assert provider.provide_data[0] == ("data", (3, 3))
    batches = list(provider)
    assert [batch.pad for batch in batches] == [0, 0, 2]
    assert np.concatenate([b.data[0] for b in batches])[:7].tolist() == FEATURES.tolist()
    assert batches[-1].label[0].tolist() == [6, 0, 1]
    padded = list(ProtobufRecordIter(path=path, batch_size=3, round_batch=False))[-1]
    assert padded.data[0].tolist() == [FEATURES[6].tolist(), [0] * 3, [0] * 3] and padded.pad == 2


def test_shuffled_parts_are_an_epoch_and_a_run_is_resumed(path):
    parts = [
        rows_of(ProtobufRecordIter(path=path, batch_size=2, shuffle=True, seed=4, num_parts=3,
                                   part_index=part))
        for part in range(3)
    ]  # fmt: skip
    assert sorted(np.concatenate(parts)) == list(range(7))
    whole = ProtobufRecordIter(path=path, batch_size=2, shuffle=True, seed=4)
    half = ProtobufRecordIter(path=path, batch_size=2, shuffle=True, seed=4)
    expected = [batch.label[0].tolist() for batch in whole]
    half.next()
    again = ProtobufRecordIter(path=path, batch_size=2, shuffle=True, seed=4)
    again.load_state_dict(half.state_dict())
    assert [batch.label[0].tolist() for batch in again] == expected[1:]


def test_sparse_features_stay_sparse(tmp_path):
    matrix = csr_array(FEATURES * (FEATURES % 2))
    write_protobuf(tmp_path / "a.pbr", matrix, LABELS)
    provider = ProtobufRecordIter(path=tmp_path / "a.pbr", batch_size=7)
    batch = provider.next()
    assert (batch.data[0].toarray() == matrix.toarray()).all()
    with pytest.raises(ValueError, match="sparse"):
        ProtobufRecordIter(path=tmp_path / "a.pbr", batch_size=7, dtype="float64")


def test_types_and_files_without_labels(tmp_path):
    write_protobuf(tmp_path / "a.pbr", FEATURES.astype(np.int32))
    provider = ProtobufRecordIter(path=tmp_path / "a.pbr", batch_size=7)
    assert provider.next().data[0].dtype == np.int32 and not provider.provide_label
    provider = ProtobufRecordIter(path=tmp_path / "a.pbr", batch_size=7, dtype="float64")
    assert provider.next().data[0].dtype == np.float64


@pytest.mark.parametrize(
    ("keywords", "error", "word"),
    [
        ({"on_error": "skip"}, ValueError, "on_error"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"data_shape": (3,)}, TypeError, "data_shape"),
        ({"layout": "CN"}, ValueError, "layout"),
        ({"dtype": "int8"}, ValueError, "dtype"),
    ],
)
def test_keywords_are_checked(path, keywords, error, word):
    with pytest.raises(error, match=word):
        ProtobufRecordIter(**{"path": path, "batch_size": 2, **keywords})
