"""Networks that the benchmarks of a CUDA device train, and one step of their training."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["MODELS", "Training"]


class FaceBlock(nn.Module):
    """The block of the residual networks for faces: normalised before, PReLU between."""

    def __init__(self, inside, outside, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(inside),
            nn.Conv2d(inside, outside, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outside),
            nn.PReLU(outside),
            nn.Conv2d(outside, outside, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outside),
        )
        self.way = nn.Identity()
        if stride > 1 or inside != outside:
            self.way = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x):
        """Add what the body makes to what goes by."""
        return self.body(x) + self.way(x)


def iresnet50(classes=1000):
    """The network of 50 layers that face recognition trains, for 112 x 112, and a linear head."""
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.PReLU(64)]
    inside = 64
    for outside, blocks in ((64, 3), (128, 4), (256, 14), (512, 3)):
        for number in range(blocks):
            layers.append(FaceBlock(inside, outside, 1 if number else 2))
            inside = outside
    head = [nn.BatchNorm2d(512), nn.Flatten(), nn.Linear(512 * 49, 512), nn.BatchNorm1d(512)]
    return nn.Sequential(*layers, *head, nn.Linear(512, classes, bias=False))


def resnet50():
    """torchvision's."""
    from torchvision.models import resnet50 as model

    return model()


#: By name: what makes it, the job of `peers.jobs` that feeds it, and images in a batch.
MODELS = {
    "resnet50": (resnet50, "random_resized_crop", 256),
    "iresnet50": (iresnet50, "faces", 256),
}


class Training:
    """A network on a device, with bfloat16 arithmetic and pixels last; a call is one step."""

    def __init__(self, make, device="cuda"):
        torch.backends.cudnn.benchmark = True
        self.model = make().to(device, memory_format=torch.channels_last).train()
        self.optimizer = torch.optim.SGD(self.model.parameters(), 1e-3, momentum=0.9)

    def __call__(self, images, labels):
        """Train on images (N, C, H, W) and labels (N,)."""
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
