"""PyTorch: one classifier of flowers, trained by several processes with DDP.

    torchrun --nproc-per-node 2 examples/training/torch_ddp.py
    torchrun --nproc-per-node 2 examples/training/torch_ddp.py --stop-after 45
    torchrun --nproc-per-node 3 examples/training/torch_ddp.py --resume

Each image of an epoch is read by one process, and all processes take the same number of steps. The
first process writes one checkpoint, from which any number of processes can resume.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import torch
import torch.distributed as dist
from data import NAMES, options, packed_flowers
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch_classifier import MEAN, STD, make_model

import recordsmith as rs
from recordsmith.torch.stream import batches, this_rank


def summed(*numbers: float) -> list[float]:
    """The sums over all processes."""
    totals = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(totals)
    return totals.tolist()


@torch.no_grad()
def accuracy(model: nn.Module, stream: DataLoader) -> float:
    """Evaluate; each process takes its share of the images."""
    model.eval()
    right = [model(batch["image"]).argmax(1) == batch["label"] for batch in stream]
    right_count, count = summed(torch.cat(right).sum().item(), len(torch.cat(right)))
    return right_count / count


def main() -> None:
    args = options(__doc__, images=300, epochs=12, resumes=True).parse_args()
    if not dist.is_torchelastic_launched():
        sys.exit("start this program with torchrun; its docstring has the command")
    dist.init_process_group("gloo")
    is_first = dist.get_rank() == 0
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # a small model; leaves processors to the loader's threads

    if is_first:
        packed_flowers(args.folder, args.images)
    dist.barrier()
    dataset = packed_flowers(args.folder, args.images)  # exists by now
    train, validation = (rs.open(dataset, split=name) for name in ("train", "validation"))
    whole = rs.Image("image/encoded", 48, dtype="float32", mean=MEAN, std=STD, layout="CHW")
    crop = replace(whole, fit="random-crop", crop_area=(0.4, 1), flip="horizontal")
    label = rs.Scalar("image/class/label")
    loader = rs.Loader(
        train,
        {"image": crop, "label": label},
        batch_size=20 // dist.get_world_size(),  # in each process
        shuffle=True,
        seed=0,
        last_batch="drop",
        **this_rank(),
    )
    unseen = rs.Loader(validation, {"image": whole, "label": label}, batch_size=30, **this_rank())
    stream = DataLoader(batches(loader), batch_size=None)
    unseen_stream = DataLoader(batches(unseen), batch_size=None)

    model = DistributedDataParallel(make_model(len(NAMES)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses: list[float] = []  # of the epoch
    step = 0
    checkpoint_path = args.folder / "torch_ddp.pt"
    if args.resume:
        checkpoint = torch.load(checkpoint_path)
        model.module.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        loader.load_state_dict(checkpoint["loader"])
        losses, step = checkpoint["losses"], checkpoint["step"]

    for epoch in range(loader.epoch, args.epochs):
        model.train()
        for batch in stream:
            loss = cross_entropy(model(batch["image"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses += [total / dist.get_world_size() for total in summed(loss.item())]
            step += 1
            if step == args.stop_after:
                break
        if step != args.stop_after:
            mean, right = sum(losses) / len(losses), accuracy(model, unseen_stream)
            if is_first:
                print(f"epoch {epoch + 1:2}  loss {mean:.4f}  accuracy {right:.1%}", flush=True)
            losses = []
        if is_first:
            checkpoint = {
                "model": model.module.state_dict(),
                "optimizer": optimizer.state_dict(),
                "loader": loader.state_dict(),  # the same in all processes
                "losses": losses,
                "step": step,
            }
            torch.save(checkpoint, checkpoint_path)
        if step == args.stop_after:
            if is_first:
                print(f"stopped after step {step}, in epoch {epoch + 1}")
            break
    dist.barrier()  # no process ends while another still needs it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
