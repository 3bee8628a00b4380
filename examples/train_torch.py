"""Train a small residual network on a record file, and go on where an interrupted run stopped.

    python examples/train_torch.py --rec train.rec --checkpoint run.pt
    python examples/train_torch.py --rec train.rec --checkpoint run.pt --resume
    torchrun --nproc-per-node 2 examples/train_torch.py --rec train.rec

Ctrl-C finishes the batch, saves, and stops; ``--resume`` continues with exactly the batches that
were left.  Without ``--rec`` it draws two sets of shapes first.
"""

import argparse
import contextlib
import os
import signal
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
import torch
import torch.distributed as distributed
from torch import nn
from torch.nn.functional import cross_entropy

import recordio
from iterators import ImageRecordIter
from iterators.torch import RecordBatches

INTERRUPTED = 130  # the exit status of a program that Ctrl-C ended


# -- data -----------------------------------------------------------------------------------------


def draw_shapes(path, count=300, size=32, seed=0):
    """Write a record file of discs, squares and triangles on noise, labels 0 to 2."""
    random = np.random.default_rng(seed)
    with recordio.RecordWriter(path, Path(path).with_suffix(".idx")) as writer:
        for number in range(count):
            image = random.integers(0, 120, (size, size, 3), np.uint8)
            (x, y), radius = random.integers(12, 20, 2).tolist(), int(random.integers(6, 11))
            colour, label = random.integers(130, 256, 3).tolist(), number % 3
            if label == 0:
                cv2.circle(image, (x, y), radius, colour, -1)
            elif label == 1:
                cv2.rectangle(image, (x - radius, y - radius), (x + radius, y + radius), colour, -1)
            else:
                corners = [(x, y - radius), (x - radius, y + radius), (x + radius, y + radius)]
                cv2.fillPoly(image, [np.array(corners)], colour)
            header = recordio.IRHeader(0, float(label), number, 0)
            writer.write(recordio.pack_img(header, image, quality=95), number)


def samples(batch):
    """Images, labels and ids of a batch, without the padding of the last one of an epoch."""
    count = batch.count
    return batch.data[0][:count], batch.label[0][:count].long(), batch.index[:count]


def record_batches(path, options, **arguments):
    """Batches of this rank: which part that is follows from torch.distributed."""
    return RecordBatches(
        ImageRecordIter,
        convert=samples,
        path_imgrec=path,
        data_shape=(3, options.size, options.size),
        batch_size=options.batch_size,
        mean_r=124, mean_g=117, mean_b=104, std_r=58, std_g=57, std_b=57,
        preprocess_threads=2,
        device=options.device,
        verbose=False,
        **arguments,
    )  # fmt: skip


# -- network --------------------------------------------------------------------------------------


class Block(nn.Module):
    """Two convolutions and the way round them."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.convolve = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        """Add what was learnt to what came in."""
        return torch.relu(self.convolve(x) + self.shortcut(x))


def residual_network(classes, width=16, blocks=(1, 1, 1)):
    """Build a ResNet of `blocks` per stage; the width doubles and the image halves at each."""
    layers = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    inputs = width
    for stage, count in enumerate(blocks):
        for number in range(count):
            outputs = width << stage
            layers.append(Block(inputs, outputs, 2 if stage and not number else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


# -- training -------------------------------------------------------------------------------------


class Stop:
    """Notices Ctrl-C; a second one ends the program at once."""

    def __init__(self):
        self.asked = False
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, *_):
        self.asked = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def agreed(self):
        """Return True if any rank was told to stop: all leave after the same batch."""
        if not distributed.is_initialized():
            return self.asked
        flag = torch.tensor(float(self.asked))
        distributed.all_reduce(flag, distributed.ReduceOp.MAX)
        return bool(flag)


def save(path, parts):
    """Write a checkpoint that is whole or not there; the first rank's serves all."""
    if path and (not distributed.is_initialized() or distributed.get_rank() == 0):
        partial = f"{path}.partial"
        torch.save({name: part.state_dict() for name, part in parts.items()}, partial)
        os.replace(partial, path)


def train(options):
    """Train; return the exit status."""
    torch.manual_seed(options.seed)
    stop = Stop()
    network = residual_network(options.classes).to(options.device)
    rule = {"momentum": 0.9, "weight_decay": 5e-4}
    optimizer = torch.optim.SGD(network.parameters(), options.lr, **rule)
    batches = record_batches(
        options.rec,
        options,
        shuffle=True,
        seed=options.seed,
        rand_mirror=True,
        pad=2,
        rand_crop=True,
    )
    valid = record_batches(options.valid or options.rec, options, even=False)
    len(valid)  # opens the file: if it is missing, the program ends now
    steps = options.epochs * len(batches)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    parts = {
        "network": network, "optimizer": optimizer,
        "schedule": schedule, "batches": batches,
    }  # fmt: skip
    if options.resume:
        checkpoint = torch.load(options.checkpoint, weights_only=True)
        for name, part in parts.items():
            part.load_state_dict(checkpoint[name])
    model = network
    if distributed.is_initialized():
        model = nn.parallel.DistributedDataParallel(network)
    rank, _ = batches.world
    network.train()
    while batches.epoch < options.epochs:
        epoch, loss = batches.epoch, float("nan")
        for images, labels, ids in batches:
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if options.verbose:
                line = f"rank {rank} epoch {epoch} loss {loss:.4f} ids {ids.tolist()}"
                print(line, flush=True)
            if stop.agreed():
                save(options.checkpoint, parts)
                print(f"stopped in epoch {epoch}; go on with --resume", flush=True)
                return INTERRUPTED
        save(options.checkpoint, parts)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss:.4f}", flush=True)
    accuracy = evaluate(network, valid)
    if rank == 0:
        print(f"accuracy {accuracy:.3f}", flush=True)
    return 0


@torch.no_grad()
def evaluate(network, batches):
    """Return the share of right labels, counting every sample of all ranks once."""
    network.eval()
    counts = torch.zeros(2)
    for images, labels, _ in batches:
        right = network(images).argmax(1) == labels
        counts += torch.tensor([right.sum(), len(labels)])
    if distributed.is_initialized():
        distributed.all_reduce(counts)
    return float(counts[0] / counts[1])


def parse(arguments=None):
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rec", help="record file; without it shapes are drawn")
    parser.add_argument("--valid", help="record file for the accuracy; by default --rec")
    parser.add_argument("--classes", type=int, default=3)
    parser.add_argument("--size", type=int, default=32, help="pixels of a side")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32, help="of one process")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--checkpoint", help="file to save to")
    parser.add_argument("--resume", action="store_true", help="go on where --checkpoint says")
    parser.add_argument("--verbose", action="store_true", help="print what is in every batch")
    options = parser.parse_args(arguments)
    if options.resume and not options.checkpoint:
        parser.error("--resume needs --checkpoint")
    return options


def main(arguments=None):
    """Run, under torchrun as one of its ranks."""
    options = parse(arguments)
    with contextlib.ExitStack() as stack:
        if "LOCAL_RANK" in os.environ:
            if options.rec is None:
                raise SystemExit("several processes need one record file: give --rec")
            if options.device == "cuda":
                options.device = f"cuda:{os.environ['LOCAL_RANK']}"
                torch.cuda.set_device(options.device)
            backend = "gloo" if options.device == "cpu" else "cpu:gloo,cuda:nccl"
            distributed.init_process_group(backend)
            stack.callback(distributed.destroy_process_group)
        if options.rec is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            if options.checkpoint:  # to be found again by --resume
                folder = Path(options.checkpoint).resolve().parent
            options.rec = str(Path(folder, "shapes.rec"))
            options.valid = str(Path(folder, "shapes-valid.rec"))
            draw_shapes(options.rec)
            draw_shapes(options.valid, 150, seed=1)
        return train(options)


if __name__ == "__main__":
    sys.exit(main())
