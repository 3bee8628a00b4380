"""The example for Ray Train: killed, it goes on with other workers, and sees every image."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("torch")
ray = pytest.importorskip("ray.train")

PATH = Path(__file__).parents[2] / "examples" / "train_ray.py"

pytestmark = [
    pytest.mark.filterwarnings("default"),  # Ray's own
    pytest.mark.timeout(500),
]


def seen(folder, workers):
    """Epoch and place before each step, with the ids that the workers saw in it together."""
    steps = {}
    for rank in range(workers):
        for line in (folder / f"seen-by-{rank}-of-{workers}.txt").read_text().splitlines():
            epoch, done, *ids = map(int, line.split())
            steps.setdefault((epoch, done), []).extend(ids)
    return steps


def test_every_image_is_seen_whoever_dies(ray_cluster, tmp_path):
    specification = importlib.util.spec_from_file_location("train_ray", PATH)
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    pack = example.make_pack(tmp_path)
    with pytest.raises(ray.TrainingFailedError):
        example.run(tmp_path, pack, workers=2, die_at=7)
    result = example.run(tmp_path, pack, workers=3)
    assert result.metrics["epoch"] == example.EPOCHS
    first, second = seen(tmp_path, 2), seen(tmp_path, 3)
    began = min(second)
    assert began == (0, 4 * 2 * 4) and max(first) > began  # the last checkpoint, not the end
    for epoch in range(example.EPOCHS):
        steps = {place: ids for place, ids in first.items() if place < began} | second
        ids = [i for (number, _), found in steps.items() if number == epoch for i in found]
        assert set(ids) == set(range(example.IMAGES))
        assert len(ids) < example.IMAGES + 3  # workers take as many steps: some come twice
