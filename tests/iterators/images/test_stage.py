"""The threads of the image stage: what may happen to them while they work."""

import threading
import weakref

import numpy as np
import pytest

import recordio
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.sources.source import RecordFiles
from iterators.images.stage import Stage
from iterators.images.workers import PlanGroup
from iterators.testing import write_pack
from recordio.formats import general as codec


class Memory(np.ndarray):
    """An array that can be watched."""


@pytest.fixture
def stage_of(tmp_path):
    def make():
        images = [np.full((9, 9, 3), i, np.uint8) for i in range(8)]
        path = write_pack(tmp_path / "images.rec", images, kind=".bmp")
        reader = recordio.RecordReader(path)
        plan = RenderPlan(Recipe(data_shape=(3, 8, 8)))
        return Stage(
            RecordFiles([reader], reader.offsets, np.zeros(1, np.int64)),
            PlanGroup(plan),
            batch_size=4,
            threads=1,
            depth=2,
        )

    return make


def test_closing_in_a_worker_leaves_the_memory_that_it_fills(stage_of, monkeypatch):
    """A worker that decodes with Python may collect garbage and so close its own provider."""
    alive, watched, ended = [], [], threading.Event()
    decode = codec.decode_other

    def zeros(*arguments):
        memory = np.empty(*arguments).view(Memory)
        watched.append(weakref.ref(memory))
        return memory

    def closing(data, channels, **limits):
        stage.close()
        alive.append(all(memory() is not None for memory in watched))
        ended.set()
        return decode(data, channels, **limits)

    monkeypatch.setattr(codec, "decode_other", closing)
    stage = stage_of()
    stage.start()
    worker = next(t for t in threading.enumerate() if t.name.startswith("image-stage"))
    with monkeypatch.context() as patch:
        patch.setattr(np, "zeros", zeros)
        stage.submit(np.arange(4), 0)
    assert ended.wait(60)
    assert len(watched) == 2 and alive[0]  # labels and ids
    worker.join(60)
    assert not worker.is_alive()
    with pytest.raises(ValueError, match="closed"):
        stage.collect()
