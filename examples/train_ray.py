"""Training under Ray Train that is killed, and goes on with another number of workers.

``python examples/train_ray.py`` makes a small pack, trains on it with two workers, of which one
is killed in the first epoch, and runs again with three: these begin where the last checkpoint was
made.  Everything is written into ``--folder``.  Needs Ray (``pip install 'ray[train]'``) and torch.
"""

import argparse
import os
import signal
import tempfile
from pathlib import Path

import numpy as np
import ray
import ray.train
import ray.train.torch
import torch

from iterators import ImageRecordIter
from iterators.ray import save_state, train_iterator
from recordio import IRHeader, RecordWriter, pack_img, shard

CLASSES, IMAGES, SIDE = 3, 96, 8
EPOCHS, SAVE_EVERY = 2, 4


def make_pack(folder):
    """Squares in colours that tell their class, in two shards; returns the manifest."""
    random = np.random.default_rng(0)
    with RecordWriter(folder / "all.rec", folder / "all.idx") as writer:
        for number in range(IMAGES):
            image = random.integers(0, 100, (SIDE, SIDE, 3), np.uint8)
            image[..., number % CLASSES] += 120
            header = IRHeader(0, number % CLASSES, number, 0)
            writer.write(pack_img(header, image, img_fmt=".png"), number)
    shard(folder / "all", folder / "train", 2)
    return folder / "train.shards.json"


def train(settings):
    """Do the work of one worker."""
    context = ray.train.get_context()
    rank, workers = context.get_world_rank(), context.get_world_size()
    log = Path(settings["folder"], f"seen-by-{rank}-of-{workers}.txt")
    images = train_iterator(
        ImageRecordIter,
        path_imgrec=settings["pack"],
        data_shape=(3, SIDE, SIDE),
        batch_size=4,
        shuffle=True,
        scale=1 / 255,
        label_dtype="int64",
        preprocess_threads=1,
    )
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIDE * SIDE, CLASSES))
    found = ray.train.get_checkpoint()
    if found is not None:
        with found.as_directory() as saved:
            model.load_state_dict(torch.load(os.path.join(saved, "model.pt")))
    model = ray.train.torch.prepare_model(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step, place = 0, images.state_dict()
    for epoch in range(images.epoch, EPOCHS):
        for batch in images:
            loss = torch.nn.functional.cross_entropy(
                model(torch.from_numpy(batch.data[0])), torch.from_numpy(batch.label[0]).ravel()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            seen = " ".join(map(str, batch.index[: batch.count_samples()].tolist()))
            with open(log, "a") as lines:
                lines.write(f"{place['epoch']} {place['done']} {seen}\n")
            place = images.state_dict()
            if step == settings["die_at"] and rank == 1:
                ray.train.get_all_reported_checkpoints()  # waits until they are on the disk
                os.kill(os.getpid(), signal.SIGKILL)
            if step % SAVE_EVERY == 0:
                report(model, images, {"epoch": epoch, "loss": loss.item()})
    report(model, images, {"epoch": EPOCHS, "loss": loss.item() if step else None})


def report(model, images, metrics):
    """Tell Ray how it goes; the worker of rank 0 saves model and place."""
    if ray.train.get_context().get_world_rank():
        ray.train.report(metrics)
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = getattr(model, "module", model)
        torch.save(plain.state_dict(), os.path.join(folder, "model.pt"))
        save_state(images, folder)
        ray.train.report(metrics, checkpoint=ray.train.Checkpoint.from_directory(folder))


def run(folder, pack, workers, die_at=None):
    """One run; a run of the same name goes on where the last checkpoint was made."""
    trainer = ray.train.torch.TorchTrainer(
        train,
        train_loop_config={"folder": str(folder), "pack": str(pack), "die_at": die_at},
        scaling_config=ray.train.ScalingConfig(
            num_workers=workers, resources_per_worker={"CPU": 0.5}
        ),
        run_config=ray.train.RunConfig(name="squares", storage_path=str(folder / "runs")),
    )
    return trainer.fit()


def main():
    """Train, be killed, go on."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("demo/ray"))
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True)
    pack = make_pack(folder)
    try:
        run(folder, pack, workers=2, die_at=7)
    except ray.train.TrainingFailedError as error:
        print(f"a worker was killed: {type(error).__name__}")
    result = run(folder, pack, workers=3)
    print(f"went on with 3 workers to the end: {result.metrics}")


if __name__ == "__main__":
    main()
