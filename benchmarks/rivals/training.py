"""A training loop that saves its state every few batches, and is killed: the job of a rank."""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rival import Options, Rival


def keeps(key: int) -> bool:
    """The filter."""
    return key % 3 != 0


def train(
    rival: Rival,
    *,
    log: str,
    epoch_count: int,
    save_every: int,
    kill_at: int | None,
    states: Sequence[str],
    filtered: bool,
    port: int,
    **options: Any,
) -> dict[str, Any]:
    """Read epochs to their end; after each batch its keys are a line of the log.

    log: a file. The last state is in a file next to it, with the number of lines that it contains.
    kill_at: the line after which the process and its workers are killed.
    states: those that all ranks of the last run had saved.
    """
    chosen = Options(**options, what="bytes", keep=keeps if filtered else None)
    if rival.environment == "torch":
        _join(chosen.rank, chosen.world_size, port)
    loader = rival.loader(chosen)
    step, first_epoch = 0, 0
    if states:
        saved = [pickle.loads(Path(path).read_bytes()) for path in states]
        step, first_epoch = saved[0]["step"], saved[0]["epoch"]
        if len(saved) == chosen.world_size:
            loader.load(saved[chosen.rank]["loader"])
        else:
            loader.load_other_ranks([state["loader"] for state in saved])
    with Path(log).open("w", buffering=1) as lines:
        for epoch in range(first_epoch, epoch_count):
            for batch in loader.epoch():
                step += 1
                print(json.dumps([int(key) for key in batch.keys]), file=lines)
                if step == kill_at:
                    os.killpg(0, signal.SIGKILL)
                if step % save_every == 0:
                    _save(log, {"step": step, "epoch": epoch, "loader": loader.state()})
    return {"steps": step}


def _join(rank: int, world_size: int, port: int) -> None:
    """Tell the libraries their rank, as torchrun and a training program do."""
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    if world_size > 1:
        import torch.distributed

        torch.distributed.init_process_group("gloo")


def _save(log: str, state: dict[str, Any]) -> None:
    """The old state or the new one is there, whenever the process is killed."""
    new = Path(f"{log}.new")
    new.write_bytes(pickle.dumps(state))
    new.rename(f"{log}.state")
