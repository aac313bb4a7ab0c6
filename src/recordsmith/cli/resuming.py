"""What to do after a job was interrupted: how to resume it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recordsmith.cli import console
from recordsmith.errors import FileAccessError


@contextmanager
def reporting_complete_shards(out: str) -> Iterator[None]:
    """Print how many shards are complete if the block is interrupted or the disk is full."""
    try:
        yield
    except (KeyboardInterrupt, FileAccessError):
        from recordsmith.building import completed_files

        done = completed_files(Path(out))
        if done:
            console.print_aside(
                f"{console.count(len(done), 'shard')} complete: rerun the command to resume, or "
                f"remove {out} to discard them"
            )
        raise
