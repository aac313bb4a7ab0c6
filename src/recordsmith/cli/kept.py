"""What is said after a job that was stopped: what need not be done again."""

from __future__ import annotations

from pathlib import Path

from recordsmith.cli import console


def print_kept(out: str) -> None:
    """Say how many shards are complete, if any are."""
    from recordsmith.building import complete_shards

    done = complete_shards(Path(out))
    if done:
        console.print_aside(
            f"{console.count(len(done), 'shard')} complete: the same command goes on from there. "
            f"To give it up, remove {out}"
        )
