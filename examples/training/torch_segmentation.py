"""PyTorch: which flower is each pixel? Images and masks, cropped and flipped together.

    python examples/training/torch_segmentation.py

A small U-Net. Prints the mean intersection over union of the classes after each epoch. At the end,
it draws unseen images with the predicted masks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from data import NAMES, SIDE, options, packed_meadows
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate
from torch.utils.data import DataLoader

import recordsmith as rs
from recordsmith.torch.stream import batches


def block(inputs: int, outputs: int) -> nn.Module:
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU())


class SmallUNet(nn.Module):
    def __init__(self, class_count: int) -> None:
        super().__init__()
        self.down = nn.ModuleList([block(3, 12), block(12, 24), block(24, 48)])
        self.up = nn.ModuleList([block(48 + 24, 24), block(24 + 12, 12)])
        self.head = nn.Conv2d(12, class_count, 1)

    def forward(self, pixels: Tensor) -> Tensor:
        fine = self.down[0](pixels)
        middle = self.down[1](nn.functional.max_pool2d(fine, 2))
        coarse = self.down[2](nn.functional.max_pool2d(middle, 2))
        middle = self.up[0](torch.cat([interpolate(coarse, scale_factor=2.0), middle], dim=1))
        return self.head(self.up[1](torch.cat([interpolate(middle, scale_factor=2.0), fine], 1)))


@torch.no_grad()
def mean_iou(model: nn.Module, stream: DataLoader, class_count: int) -> float:
    model.eval()
    table = torch.zeros(class_count, class_count)  # pixels by true and by predicted class
    for batch in stream:
        pairs = batch["mask"] * class_count + model(batch["image"]).argmax(1)
        table += torch.bincount(pairs.flatten(), minlength=class_count**2).view_as(table)
    hit = table.diagonal()
    return (hit / (table.sum(0) + table.sum(1) - hit)).mean().item()


def main() -> None:
    args = options(__doc__, images=240, epochs=12).parse_args()
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # a small model; leaves processors to the loader's threads

    dataset = packed_meadows(args.folder, args.images)
    mask = rs.Mask("image/segmentation/class/encoded", dtype="int64")
    whole = rs.Image("image/encoded", SIDE, dtype="float32", layout="CHW")
    crop = replace(whole, size=64, fit="random-crop", crop_area=(0.3, 1), flip="both")
    loader = rs.Loader(
        rs.open(dataset, split="train"),
        {"image": crop, "mask": mask},  # a mask follows its image
        batch_size=10,
        shuffle=True,
        seed=0,
    )
    unseen = rs.Loader(
        rs.open(dataset, split="validation"), {"image": whole, "mask": mask}, batch_size=12
    )
    stream = DataLoader(batches(loader), batch_size=None)
    unseen_stream = DataLoader(batches(unseen), batch_size=None)

    class_count = 1 + len(NAMES)  # 0 is the meadow
    model = SmallUNet(class_count)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for batch in stream:
            loss = cross_entropy(model(batch["image"]), batch["mask"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        mean, overlap = sum(losses) / len(losses), mean_iou(model, unseen_stream, class_count)
        print(f"epoch {epoch + 1:2}  loss {mean:.4f}  mean IoU {overlap:.1%}")

    draw_predictions(model, next(iter(unseen_stream)), args.folder / "segmentation.jpg")


@torch.no_grad()
def draw_predictions(model: nn.Module, batch: dict[str, Tensor], path: Path) -> None:
    predicted = model(batch["image"]).argmax(1)
    title = "Images that the model has not seen, and what it takes each pixel for"
    rs.draw_batch(
        batch["image"].numpy(), path, masks=predicted.numpy(), title=title, overwrite=True
    )
    print("drawn:", path)


if __name__ == "__main__":
    main()
