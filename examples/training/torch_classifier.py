"""PyTorch: a classifier of flowers, which can stop and resume mid-epoch.

    python examples/training/torch_classifier.py
    python examples/training/torch_classifier.py --stop-after 55
    python examples/training/torch_classifier.py --resume

The loader's threads decode the images. With `--workers 2`, worker processes of DataLoader do;
batches, losses and checkpoints are the same.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from data import NAMES, options, packed_flowers
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import recordsmith as rs
from recordsmith.torch.stream import batches

MEAN, STD = (0.45, 0.45, 0.35), (0.25, 0.25, 0.25)


def block(inputs: int, outputs: int) -> nn.Module:
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


def make_model(class_count: int) -> nn.Module:
    return nn.Sequential(
        block(3, 16), block(16, 32), block(32, 64),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, class_count),
    )  # fmt: skip


@torch.no_grad()
def accuracy(model: nn.Module, stream: DataLoader) -> float:
    model.eval()
    right = [model(batch["image"]).argmax(1) == batch["label"] for batch in stream]
    return torch.cat(right).float().mean().item()


def main() -> None:
    parser = options(__doc__, images=300, epochs=12, resumes=True)
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="processes that decode")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # a small model; leaves processors to the loader's threads

    dataset = packed_flowers(args.folder, args.images)
    train, validation = (rs.open(dataset, split=name) for name in ("train", "validation"))
    whole = rs.Image("image/encoded", 48, dtype="float32", mean=MEAN, std=STD, layout="CHW")
    crop = replace(whole, fit="random-crop", crop_area=(0.4, 1), flip="horizontal")
    label = rs.Scalar("image/class/label")
    loader = rs.Loader(
        train,
        {"image": crop, "label": label},
        batch_size=20,
        shuffle=True,
        seed=0,
        last_batch="drop",
    )
    step_count = len(loader)  # of an epoch
    stream = DataLoader(batches(loader), batch_size=None, num_workers=args.workers)
    unseen = rs.Loader(validation, {"image": whole, "label": label}, batch_size=60)
    unseen_stream = DataLoader(batches(unseen), batch_size=None)

    model = make_model(len(NAMES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses: list[float] = []
    checkpoint_path = args.folder / "torch_classifier.pt"
    if args.resume:
        checkpoint = torch.load(checkpoint_path)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        loader.load_state_dict(checkpoint["loader"])
        losses = checkpoint["losses"]
    first_step = len(losses)

    def save() -> None:
        checkpoint = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "loader": loader.state_after(len(losses) - first_step),  # workers read ahead
            "losses": losses,
        }
        torch.save(checkpoint, checkpoint_path)

    for epoch in range(loader.epoch, args.epochs):
        model.train()
        for batch in stream:
            loss = cross_entropy(model(batch["image"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == args.stop_after:
                save()
                print(f"stopped after step {len(losses)}, in epoch {epoch + 1}")
                return
        mean = sum(losses[-step_count:]) / step_count
        right = accuracy(model, unseen_stream)
        print(f"epoch {epoch + 1:2}  loss {mean:.4f}  accuracy {right:.1%}")
        save()


if __name__ == "__main__":
    main()
