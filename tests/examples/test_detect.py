"""The detector of the examples: it learns, and its precision is what it says."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch

PATH = Path(__file__).parents[2] / "examples" / "detect.py"


@pytest.fixture(scope="module")
def example():
    specification = importlib.util.spec_from_file_location("detect", PATH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_loss_falls_and_a_precision_is_printed(example, capsys):
    small = ["--images", "32", "--size", "64", "--epochs", "3", "--batch-size", "8"]
    assert example.main(small) == 0
    printed = capsys.readouterr().out
    losses = [float(found) for found in re.findall(r"loss ([\d.]+)", printed)]
    assert len(losses) == 3 and losses[-1] < losses[0]
    assert 0 <= float(re.search(r"mAP at 0.5: ([\d.]+)", printed)[1]) <= 1


class Oracle(torch.nn.Module):
    """Gives the objects of a batch as cells, some of them twice and some wrong."""

    def __init__(self, example, batches, size, wrong):
        super().__init__()
        self.example, self.size, self.wrong = example, size, wrong
        self.labels = {}
        for batch in batches:
            for image, label in zip(batch.data[0], batch.label[0], strict=True):
                self.labels[image.numpy().tobytes()] = label

    def forward(self, images):
        scores, boxes = torch.full((len(images), 8, 3), -9.0), torch.zeros(len(images), 8, 4)
        boxes[..., 2:] = 1
        for row, image in enumerate(images):
            classes, wanted = self.example.objects_of(
                self.labels[image.numpy().tobytes()], self.size
            )
            for cell, (own, box) in enumerate(zip(classes, wanted, strict=True)):
                scores[row, cell, (own + self.wrong) % 3], boxes[row, cell] = 5, box
                scores[row, cell + 4, (own + self.wrong) % 3], boxes[row, cell + 4] = 4, box + 0.5
        return scores, boxes


@pytest.mark.parametrize(("wrong", "least", "most"), [(0, 0.9, 1), (1, 0, 0)])
def test_precision_of_right_boxes_and_of_wrong_classes(example, tmp_path, wrong, least, most):
    """Objects of one class that cover each other are found as one: hence not quite 1."""
    path = str(tmp_path / "scenes.rec")
    example.draw_scenes(path, 12, size=64, seed=3)
    with example.det_batches(path, 64, 5) as batches:
        network = Oracle(example, batches, 64, wrong)
        found = example.mean_average_precision(network, batches, 64, 3)
    assert least <= found <= most
