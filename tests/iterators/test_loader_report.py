"""`report()` of loaders and of `RecordBatches`."""

import numpy as np
import pytest

from iterators import ImageRecordIter
from iterators.testing import encode_jpeg, picture, write_pack

pytest.importorskip("torch")

from iterators.torch import ImageLoader, RecordBatches  # noqa: E402

COUNT = 11


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """A few photographs."""
    images = [encode_jpeg(picture(60, 70, seed)) for seed in range(COUNT)]
    return str(write_pack(tmp_path_factory.mktemp("report") / "pack.rec", images))


class Samples:
    """A data set of somebody's own."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return np.zeros((3, 8, 8), np.float32), index


def test_a_loader_reports_the_epochs_of_its_provider(pack):
    loader = ImageLoader(pack, batch_size=4, shuffle=True, data_shape=(3, 32, 32), num_workers=2)
    assert loader.report().images == 0
    for _ in range(2):
        list(loader)
        report = loader.report()
        assert report.images == COUNT and "decode" in report.shares and report.threads == 2
        assert sum(report.shares.values()) == pytest.approx(1)
    loader.close()
    assert loader.report().images == COUNT


@pytest.mark.parametrize("threads", [0, 2])
def test_samples_made_in_python_are_named(threads):
    with pytest.warns(UserWarning, match="__getitem__"):
        loader = ImageLoader(Samples(), batch_size=4, num_workers=threads)
    assert loader.report().images == 0
    list(loader)
    report = loader.report()
    assert report.images == COUNT and "python" in report.shares and report.threads == threads
    assert "decode" not in report.shares and "read" not in report.shares


def test_collating_in_python_is_counted(pack):
    loader = ImageLoader(pack, batch_size=4, data_shape=(3, 32, 32), collate_fn=list)
    list(loader)
    assert "python" in loader.report(advise=False).shares
    loader.close()


def test_record_batches_report_their_provider(pack):
    dataset = RecordBatches(
        ImageRecordIter, path_imgrec=pack, data_shape=(3, 32, 32), batch_size=4, device="cpu"
    )
    assert dataset.report().images == 0
    list(dataset)
    assert dataset.report().images == COUNT and "collate" in dataset.report().shares
    dataset.close()
    assert dataset.report().images == COUNT
