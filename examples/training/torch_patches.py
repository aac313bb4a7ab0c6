"""PyTorch: which flower is each pixel of a large image? Training on random patches of it.

    python examples/training/torch_patches.py

Only the patches are decoded. After each epoch, prints the mean intersection over union of the
classes on unseen images, which are predicted whole, from overlapping tiles. Draws patches of the
first batch, and a prediction.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from data import NAMES, options, packed_fields
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from torch_segmentation import SmallUNet

import recordsmith as rs
from recordsmith.torch.stream import batches

PATCH, TILE, OVERLAP = 64, 128, 32
CLASS_COUNT = 1 + len(NAMES)  # 0 is the meadow


@torch.no_grad()
def predict(model: nn.Module, image: Any) -> Any:
    """The class of each pixel of an image of any size; several tiles are in memory at once."""
    model.eval()
    tiles, offsets = rs.tile_image(image, TILE, overlap=OVERLAP, batch_size=8)
    scores = (
        model(torch.from_numpy(batch).movedim(3, 1) / 255).movedim(1, 3).numpy() for batch in tiles
    )
    return rs.untile(scores, offsets, image.shape[:2], blend="mean").argmax(axis=2)


def mean_iou(model: nn.Module, unseen: rs.Loader) -> float:
    table = np.zeros((CLASS_COUNT, CLASS_COUNT))  # pixels by true and by predicted class
    for batch in unseen:
        for image, mask in zip(batch["image"], batch["mask"], strict=True):
            np.add.at(table, (mask, predict(model, image)), 1)
    hit = table.diagonal()
    return float((hit / (table.sum(0) + table.sum(1) - hit)).mean())


def main() -> None:
    args = options(__doc__, images=10, epochs=12).parse_args()
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # a small model; leaves processors to the loader's threads

    dataset = packed_fields(args.folder, args.images)
    mask = rs.Mask("image/segmentation/class/encoded", dtype="int64")
    patches = rs.Patches(PATCH, 20, dtype="float32", layout="CHW", flip="both")
    loader = rs.Loader(
        rs.open(dataset, split="train"),
        {"image": patches, "mask": mask},  # a mask follows the patches
        batch_size=1,
        shuffle=True,
        seed=0,
    )
    unseen = rs.Loader(
        rs.open(dataset, split="validation"), {"image": rs.Image(), "mask": mask}, batch_size=1
    )
    stream = DataLoader(batches(loader), batch_size=None)

    model = SmallUNet(CLASS_COUNT)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        model.train()
        losses: list[float] = []
        for batch in stream:
            images, masks = batch["image"].flatten(0, 1), batch["mask"].flatten(0, 1)
            if not epoch and not losses:
                draw(images[:12], masks[:12], args.folder / "patches.jpg", "Random patches")
            loss = cross_entropy(model(images), masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        mean, overlap = sum(losses) / len(losses), mean_iou(model, unseen)
        print(f"epoch {epoch + 1:2}  loss {mean:.4f}  mean IoU {overlap:.1%}")

    image = next(iter(unseen))["image"][0]
    whole = rs.tile_image(image, image.shape[0] // 3)[0]
    predicted = rs.tile_image(predict(model, image), image.shape[0] // 3)[0]
    draw(whole, predicted, args.folder / "field.jpg", "An unseen image, in nine parts", columns=3)


def draw(images: Any, masks: Any, path: Path, title: str, columns: int = 6) -> None:
    pixels, numbers = np.asarray(images), np.asarray(masks)
    rs.draw_batch(pixels, path, masks=numbers, title=title, columns=columns, overwrite=True)
    print("drawn:", path)


if __name__ == "__main__":
    main()
