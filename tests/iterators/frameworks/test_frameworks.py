"""`ImageLoader` in Lightning, Accelerate and the Trainer of transformers: the text of the page."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import iterators.torch
from iterators.testing import write_pack
from iterators.torch import ImageLoader

pytestmark = [
    pytest.mark.filterwarnings("default"),  # those of the frameworks
    pytest.mark.timeout(600),  # they are imported slowly
]
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "frameworks.md"
IMAGES = 40
BATCHES = 10
#: Tells in front of a script which images a process is given, by their grey levels, in one write.
SHOWN = """import os
import iterators.torch
class ImageLoader(iterators.torch.ImageLoader):
    def __iter__(self):
        for images, labels in super().__iter__():
            levels = (images.mean((1, 2, 3)) * 255 / 6).round().int().tolist()
            os.write(1, f"SHOWN {os.environ['RANK']} {levels}\\n".encode())
            yield images, labels
iterators.torch.ImageLoader = ImageLoader
"""


def sections():
    """The code of every section; the first is what the page begins with."""
    first, *others = re.split(r"^## (.*)$", PAGE.read_text(), flags=re.M)
    blocks = [re.findall(r"```python\n(.*?)```", text, re.S) for text in (first, *others[1::2])]
    return dict(zip(("", *others[::2]), blocks, strict=True))


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Folder with ``photos``: a folder for each of two classes."""
    random = np.random.default_rng(0)
    for number in range(IMAGES):
        file = tmp_path / "photos" / f"{number % 2}" / f"{number:02}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        shape = random.integers(0, 255, (5, 4, 3), np.uint8)
        Image.fromarray(shape).resize((40, 40), Image.Resampling.NEAREST).save(file, quality=95)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def given(monkeypatch):
    """Hashes of the batches that loaders have given, in order."""
    seen = []

    class Seen(ImageLoader):
        def __iter__(self):
            for batch in super().__iter__():
                images, labels = batch.values() if isinstance(batch, dict) else batch
                content = images.numpy().tobytes() + bytes(labels.tolist())
                seen.append(hashlib.sha1(content).hexdigest())
                yield batch

    monkeypatch.setattr(iterators.torch, "ImageLoader", Seen)
    return seen


@pytest.mark.parametrize(
    ("package", "section", "rest"),
    [
        ("lightning", "Lightning", 7),
        ("accelerate", "Accelerate", 1),
        ("transformers", "The Trainer of transformers", 7),
    ],
)
def test_a_run_of_the_page_goes_on_in_the_middle_of_an_epoch(package, section, rest, photos, given):
    pytest.importorskip(package)
    code = sections()
    train, resume = code[section]
    space = {"__name__": "page"}
    for block in (*code[""], train):
        exec(compile(block, f"{PAGE.name}, {section}", "exec"), space)
    whole = given.copy()
    assert len(whole) == len(set(whole)) == 2 * BATCHES
    given.clear()
    exec(compile(resume, f"{PAGE.name}, {section}, resumed", "exec"), space)
    assert given == whole[-rest:]


def test_two_processes_of_the_page_have_half_of_the_images_each(photos):
    pytest.importorskip("accelerate")
    code = sections()
    train, resume = code["Accelerate"]
    (command,) = re.findall(r"```sh\ntorchrun (.*?)\n```", PAGE.read_text())
    for number, file in enumerate(photos.glob("photos/*/*.jpg")):
        Image.new("RGB", (40, 40), (6 * number,) * 3).save(file)
    (photos / "train.py").write_text("\n".join((SHOWN, *code[""], train, resume)))
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", *command.split()],
        env={**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"},
        capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.findall(r"SHOWN (\d) (\[.*?\])", done.stdout)
    ranks = [[json.loads(levels) for rank, levels in found if rank == k] for k in "01"]
    batches = BATCHES // 2
    for epoch in range(2):
        halves = [sum(rank[epoch * batches : (epoch + 1) * batches], []) for rank in ranks]
        assert [len(half) for half in halves] == [IMAGES // 2] * 2
        assert sorted(halves[0] + halves[1]) == list(range(IMAGES))
    for rank in ranks:  # saved after three batches of the second epoch
        assert rank[2 * batches :] == rank[batches + 3 : 2 * batches]


def test_every_checkpoint_of_lightning_goes_on_with_the_next_batch(tmp_path):
    lightning = pytest.importorskip("lightning")
    write_pack(tmp_path / "a.rec", 12, size=(8, 8))

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = torch.nn.Linear(3 * 8 * 8, 1)
            self.seen = []

        def training_step(self, batch, number):
            images, labels = batch
            self.seen.append((self.current_epoch, labels.tolist()))
            return self.network(images.flatten(1)).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    class Save(lightning.Callback):
        def on_train_batch_end(self, trainer, *others):
            trainer.save_checkpoint(tmp_path / f"batch-{trainer.global_step}")

        def on_train_epoch_end(self, trainer, model):
            trainer.save_checkpoint(tmp_path / f"epoch-{trainer.global_step}")

    def run(checkpoint=None, *callbacks):
        model = Model()
        trainer = lightning.Trainer(
            max_epochs=3, callbacks=list(callbacks), logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, accelerator="cpu",
        )  # fmt: skip
        with ImageLoader(tmp_path / "a.rec", 4, shuffle=True, data_shape=(3, 8, 8)) as loader:
            trainer.fit(model, loader, ckpt_path=checkpoint)
        return model.seen

    whole = run(None, Save())
    assert len(whole) == 9
    assert len({str(labels) for _, labels in whole}) == 9
    for step in range(1, 9):
        assert run(tmp_path / f"batch-{step}") == whole[step:]
    for step in (3, 6):
        assert run(tmp_path / f"epoch-{step}") == whole[step:]


def test_the_page_about_jax_trains(tmp_path, monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.chdir(tmp_path)
    page = PAGE.parents[1] / "tutorials" / "jax.md"
    program = "".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))
    exec(compile(program, str(page), "exec"), {"__name__": "page"})
