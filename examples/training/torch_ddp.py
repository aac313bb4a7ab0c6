"""PyTorch: one classifier trained by several processes, each with its share of every batch.

    torchrun --nproc-per-node 2 examples/training/torch_ddp.py
    torchrun --nproc-per-node 2 examples/training/torch_ddp.py --stop-after 50
    torchrun --nproc-per-node 3 examples/training/torch_ddp.py --resume

All processes take the same number of steps, and each picture of an epoch is read by one of them.
One checkpoint serves all, also those of a job with another number of processes.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from data import options, packed_flowers
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch_classifier import MEAN, STD, make_model

import recordsmith as rs
from recordsmith.torch import batches, this_rank


def summed(*numbers: float) -> list[float]:
    """The sums over all processes."""
    totals = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(totals)
    return totals.tolist()
