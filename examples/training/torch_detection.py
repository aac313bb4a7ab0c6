"""PyTorch: a small detector of flowers, on batches with padded boxes.

    python examples/training/torch_detection.py

Each cell of a grid predicts its flower, if any, and the distances to the four sides of its box
(FCOS). Rows are padded with empty boxes, which contain no cell, so the targets of a batch are
computed at once, without a loop over its images.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from data import NAMES, SIDE, options, packed_meadows
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import recordsmith as rs
from recordsmith.torch.stream import batches

STRIDE = 8
CENTRES = (torch.arange(SIDE // STRIDE) + 0.5) * STRIDE / SIDE  # of cells, as fractions
CELL_Y, CELL_X = (at.flatten() for at in torch.meshgrid(CENTRES, CENTRES, indexing="ij"))
CELLS = torch.stack([CELL_Y, CELL_X, CELL_Y, CELL_X], 1)  # (cells, 4), as boxes are


def block(inputs: int, outputs: int, stride: int = 2) -> nn.Module:
    convolution = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU())


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(block(3, 16), block(16, 32), block(32, 64), block(64, 64, 1))
        self.kind = nn.Conv2d(64, 1 + len(NAMES), 1)  # 0 is the meadow
        self.sides = nn.Conv2d(64, 4, 1)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Kinds, (batch, classes, cells), and boxes, (batch, cells, 4)."""
        found = self.trunk(pixels)
        away = self.sides(found).flatten(2).transpose(1, 2).exp() * STRIDE / SIDE
        return self.kind(found).flatten(2), CELLS + away * torch.tensor([-1, -1, 1, 1])


def targets(boxes: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The target of each cell: its kind, (batch, cells), and its box, (batch, cells, 4)."""
    top, left, bottom, right = boxes[:, None].unbind(-1)  # each (batch, 1, n)
    y, x = CELL_Y[:, None], CELL_X[:, None]
    is_inside = (top < y) & (y < bottom) & (left < x) & (x < right)  # (batch, cells, n)
    away = (y - (top + bottom) / 2).abs() + (x - (left + right) / 2).abs()
    nearest = away.masked_fill(~is_inside, torch.inf).argmin(2)
    kinds = labels.gather(1, nearest).where(is_inside.any(2), 0)
    return kinds, boxes.gather(1, nearest[..., None].expand(-1, -1, 4))


def overlap(one: Tensor, other: Tensor) -> Tensor:
    """Intersection over union of boxes."""
    sides = torch.minimum(one, other)[..., 2:] - torch.maximum(one, other)[..., :2]
    common = sides.clamp(min=0).prod(-1)
    areas = [(box[..., 2:] - box[..., :2]).prod(-1) for box in (one, other)]
    return common / (areas[0] + areas[1] - common)


@torch.no_grad()
def share_found(model: nn.Module, stream: DataLoader) -> float:
    """Return the share of flowers whose centre cell has their kind and a box with IoU above 0.5."""
    model.eval()
    found = []
    for batch in stream:
        kinds, boxes = model(batch["image"])
        is_real = torch.arange(batch["boxes"].shape[1]) < batch["boxes_lengths"][:, None]
        row, true = is_real.nonzero()[:, 0], batch["boxes"][is_real]
        y, x = ((true[:, :2] + true[:, 2:]) / 2 * SIDE / STRIDE).long().unbind(1)
        cell = y * len(CENTRES) + x
        is_right = kinds.argmax(1)[row, cell] == batch["boxes_labels"][is_real]
        found.append(is_right & (overlap(boxes[row, cell], true) > 0.5))
    return torch.cat(found).float().mean().item()


def main() -> None:
    args = options(__doc__, images=300, epochs=15).parse_args()
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # a small model; leaves processors to the loader's threads

    dataset = packed_meadows(args.folder, args.images, boxes=True)
    boxes = rs.Boxes()  # ymin, xmin, ymax, xmax from 0 to 1; boxes_labels, boxes_lengths
    whole = rs.Image("image/encoded", SIDE, dtype="float32", layout="CHW")
    crop = replace(whole, fit="random-crop", crop_area=(0.4, 1), flip="both")
    train, validation = (rs.open(dataset, split=name) for name in ("train", "validation"))
    loader = rs.Loader(
        train,
        {"image": crop, "boxes": boxes},
        batch_size=10,
        shuffle=True,
        seed=0,
        last_batch="drop",
    )
    unseen = rs.Loader(validation, {"image": whole, "boxes": boxes}, batch_size=30)
    stream = DataLoader(batches(loader), batch_size=None)
    unseen_stream = DataLoader(batches(unseen), batch_size=None)
    draw(next(iter(stream)), args.folder / "detection.jpg")

    model = Detector()
    total = args.epochs * len(loader)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=total)
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for batch in stream:
            true_kinds, true_boxes = targets(batch["boxes"], batch["boxes_labels"])
            kinds, found = model(batch["image"])
            is_flower = true_kinds > 0
            missed = 1 - overlap(found[is_flower], true_boxes[is_flower])
            loss = cross_entropy(kinds, true_kinds) + missed.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        mean, share = sum(losses) / len(losses), share_found(model, unseen_stream)
        print(f"epoch {epoch + 1:2}  loss {mean:.4f}  found {share:.1%}")


def draw(batch: dict[str, Tensor], path: Path) -> None:
    arrays = {name: entry.numpy() for name, entry in batch.items()}
    labels = arrays["boxes_labels"]
    rs.draw_batch(
        arrays["image"], path, boxes=arrays["boxes"], box_labels=labels, columns=5,
        title="A batch of the detector", overwrite=True,
    )  # fmt: skip
    lengths = ", ".join(map(str, arrays["boxes_lengths"]))
    print(f"{labels.shape[0]} images with {lengths} boxes, filled up to {labels.shape[1]}: {path}")


if __name__ == "__main__":
    main()
