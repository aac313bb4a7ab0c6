"""What is said after a job that was stopped: what need not be done again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recordsmith.cli import console
from recordsmith.errors import FileAccessError


@contextmanager
def telling_what_is_kept(out: str) -> Iterator[None]:
    """If the block is interrupted, or the disk is full, say how many shards are complete."""
    try:
        yield
    except (KeyboardInterrupt, FileAccessError):
        from recordsmith.building import complete_shards

        done = complete_shards(Path(out))
        if done:
            console.print_aside(
                f"{console.count(len(done), 'shard')} complete: the same command goes on from "
                f"there. To give it up, remove {out}"
            )
        raise
