"""The example that trains with and without a recipe."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import recordio

PATH = Path(__file__).parents[2] / "examples" / "train_recipe.py"


@pytest.fixture(scope="module")
def example():
    """The example as a module, which finds the one beside it."""
    sys.path.append(str(PATH.parent))
    specification = importlib.util.spec_from_file_location("train_recipe", PATH)
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    finally:
        sys.path.remove(str(PATH.parent))
    return module


def test_both_runs_are_told(example, tmp_path, capsys):
    """A few steps: what comes of them is a matter of chance."""
    images = np.random.default_rng(1).integers(0, 256, (70, 28, 28), np.uint8)
    names = {"--images": images, "--labels": np.arange(70, dtype=np.uint8) % 10}
    for name, array in names.items():
        recordio.write_idx_array(tmp_path / name, array)
    arguments = [str(part) for name in names for part in (name, tmp_path / name)]
    arguments += ["--train", "40", "--epochs", "3", "--batch-size", "16", "--width", "2"]
    assert example.main([*arguments, "--held-out", "30"]) in (0, 1)
    first, plain, recipe = capsys.readouterr().out.splitlines()
    assert first == "40 digits are learnt, 30 are held out"
    assert plain.startswith("plain   training loss ")
    assert recipe.startswith("recipe  training loss ")
    assert all(0 <= float(line.split()[-1].strip("%")) <= 100 for line in (plain, recipe))


def test_the_recipe_changes_digits_and_mixes_labels(example, tmp_path):
    images = np.random.default_rng(1).integers(0, 256, (6, 28, 28), np.uint8)
    path = tmp_path / "digits.rec"
    example.write(path, images, range(6))
    with example.batches(path, batch_size=6) as provider:
        plain = provider.next().data[0]
    with example.batches(path, batch_size=6, **example.RECIPE) as provider:
        assert not np.array_equal(plain, provider.next().data[0])
    provider = example.batches(path, batch_size=6)
    mixing = {**example.MIXING, "prob": 1}
    with example.MixBatches(provider, classes=example.CLASSES, **mixing) as provider:
        label = provider.next().label[0]
    assert label.shape == (6, example.CLASSES)
    assert np.allclose(label.sum(1), 1)


def test_images_need_labels(example, capsys):
    with pytest.raises(SystemExit):
        example.main(["--images", "x"])
    assert "belong together" in capsys.readouterr().err
