"""The example that describes images: it learns, and its score is what it says."""

import importlib.util
import math
import re
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "examples" / "caption.py"


@pytest.fixture(scope="module")
def example():
    """The example as a module, which finds the one beside it."""
    sys.path.append(str(PATH.parent))
    specification = importlib.util.spec_from_file_location("caption", PATH)
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    finally:
        sys.path.remove(str(PATH.parent))
    return module


def test_the_loss_falls_and_a_score_is_printed(example, capsys):
    assert example.main(["--images", "64", "--epochs", "4", "--batch-size", "16"]) == 0
    printed = capsys.readouterr().out
    losses = [float(found) for found in re.findall(r"loss ([\d.]+)", printed)]
    assert len(losses) == 4 and losses[-1] < 0.8 * losses[0]
    assert re.search(r"BLEU-4 [01]\.\d+, captions without a mistake [01]\.\d+\n", printed)


@pytest.fixture
def scenes(example, tmp_path):
    path = str(tmp_path / "scenes.rec")
    example.draw_scenes(path, 20, seed=3)
    return path


def test_another_caption_in_another_epoch(example, scenes):
    """Both captions of a scene are seen, each of its own image."""
    with example.caption_batches(scenes, 48, 6, "all") as batches:
        texts = [text for batch in batches for text in batch["caption"][: batch.count]]
    both = [text.splitlines() for text in texts]
    assert len(both) == 20 and all(len(captions) == 2 for captions in both)
    met = [set() for _ in both]
    with example.caption_batches(scenes, 48, 6, "random", shuffle=True, seed=1) as batches:
        for _ in range(8):
            for batch in batches:
                pairs = zip(batch.index.tolist(), batch["caption"], strict=True)
                for index, caption in list(pairs)[: batch.count]:
                    assert caption in both[index]
                    met[index].add(caption)
    assert sum(map(len, met)) > 35


def test_words_are_numbers_and_words_again(example, scenes):
    vocabulary = example.Vocabulary(scenes)
    captions = ["A red disc above a blue square.", "a green disc"]
    long, short = map(example.words_of, captions)
    inputs, targets = vocabulary.inputs_and_targets(captions)
    assert inputs.shape == targets.shape == (2, 8)
    assert (inputs[:, 0] == example.BEGIN).all()
    assert inputs[0, 1:].tolist() == targets[0, :-1].tolist()
    assert targets[0, -1] == targets[1, 3] == example.END and (targets[1, 4:] == -100).all()
    assert vocabulary.text(targets[0].tolist()) == long
    assert vocabulary.text(targets[1].tolist()) == short == ["a", "green", "disc"]
    assert vocabulary.inputs_and_targets(["a zebra"])[0][0, 2] == example.UNKNOWN


def test_bleu_by_hand(example):
    wanted = [[example.words_of("a b c d"), example.words_of("a b c d e f")]]
    assert example.bleu([example.words_of("a b c d")], wanted) == pytest.approx(1)
    assert example.bleu([example.words_of("f e d c")], wanted) == 0
    # Runs of one to four words: 4 of 5, 3 of 4, 2 of 3, 1 of 2; the nearer caption has 4 words.
    found = example.bleu([example.words_of("a b c d x")], wanted)
    assert found == pytest.approx((4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    # Words that are repeated count as often as they stand in a caption; short ones pay for it.
    assert example.bleu([example.words_of("a a")], wanted, 1) == pytest.approx(0.5 / math.e)
