"""One batch in many forms: views, their gradients, and training from preprocessed data.

Run it by itself: ``python examples/views.py``.  It needs torch and takes a second.
"""

import numpy as np
import torch

from iterators import ClassView, ImageView
from iterators.views import GCN, DataSet, DataSource, Sampler, ShuffleSampler, Standardize

CLASSES = ("horizontal", "vertical")


def stripes(count, seed):
    """Noisy images of stripes, 8 x 8 pixels with one channel, and which way they run."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count)
    wave = np.sin(np.arange(8) * np.pi / 2)
    rows = np.broadcast_to(wave[:, None], (8, 8))
    columns = np.broadcast_to(wave, (8, 8))
    images = np.where(labels[:, None, None] == 0, rows, columns)
    images = 100 + 20 * (images + random.normal(0, 0.7, images.shape))
    return images[..., None].astype(np.float32), labels


def show_forms():
    """Ask one batch for what three consumers want, and sum their gradients."""
    images, _ = stripes(4, seed=0)
    view = ImageView("bhwc", images)
    print("base     ", view)
    print("flat     ", view.forward_get("bf", "double").dtype, view.forward_get("bf").shape)
    planes = view.forward_get("bchw", "float32@cpu")
    print("planes   ", planes.dtype, tuple(planes.shape))
    print("no copy  ", np.shares_memory(view.forward_get("chwb"), images))

    view.backward_put("bf", np.ones((4, 64)))  # as float64
    view.backward_put("bchw", torch.ones_like(planes))
    gradient = view.backward_get()
    print("gradient ", gradient.dtype, gradient.shape, "all", gradient.max())


def train():
    """Fit a linear classifier to stripes; return its accuracy on the test set."""
    sets = []
    for number, name in enumerate(("train", "test")):
        images, labels = stripes(600, seed=number)
        targets = ClassView("b", labels)
        targets.set_classes(CLASSES)
        sets.append(DataSet(name, ImageView("bhwc", images), targets))
    source = DataSource(
        sets[0], test_set=sets[1], input_preprocess=[GCN(progress=False), Standardize()]
    )
    torch.manual_seed(0)
    model = torch.nn.Linear(64, len(source.classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = ShuffleSampler(batch_size=50)
    for _ in range(5):
        for batch, _, _ in sampler.sample_epoch(source):
            optimizer.zero_grad()
            scores = model(batch.inputs.forward_get("bf", torch.float32))
            loss = torch.nn.functional.cross_entropy(
                scores, batch.targets.forward_get("b", torch.int64)
            )
            loss.backward()
            optimizer.step()
    right = 0
    with torch.no_grad():
        for batch, _, _ in Sampler(batch_size=128).sample_epoch(source.test_set):
            scores = model(batch.inputs.forward_get("bf", torch.float32))
            right += int((scores.argmax(1) == batch.targets.forward_get("b", torch.int64)).sum())
    return right / source.test_set.n_sample


if __name__ == "__main__":
    show_forms()
    print(f"accuracy  {train():.3f}")
