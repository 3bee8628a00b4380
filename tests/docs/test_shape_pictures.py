"""The pictures of batches of many shapes, and the histograms beside them."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "docs"))
import make_shape_pictures as pictures  # noqa: E402


def test_a_page_shows_a_batch_of_each_kind(tmp_path):
    pictures.main(tmp_path)
    text = (tmp_path / "shapes.md").read_text()
    drawn = {path.name for path in tmp_path.iterdir()} - {"shapes.md"}
    assert len(drawn) == len(pictures.KINDS) + 2
    assert all(f"]({name})" in text for name in drawn)
    assert all(f"`{words}`" in text for words in pictures.KINDS)


def test_histograms_count_every_image():
    drawn = pictures.histogram(np.array([0.0, 0.01, 0.01, 0.26, 0.9]))
    bars = ElementTree.fromstring(drawn).findall("{*}text")[: pictures.BINS]
    counts = [int(bar.text or 0) for bar in bars]
    assert (counts[0], counts[10], counts[-1]) == (3, 1, 1) and sum(counts) == 5
