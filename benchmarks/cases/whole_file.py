"""The least that anything costs which goes through a file: reading it, or copying it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from case import Task
from inputs import Inputs


def file_of(inputs: Inputs, name: str) -> Path:
    """An input that is a file; of one that is a dataset, its only shard."""
    path = inputs.path(name)
    if path.is_dir():
        (path,) = path.glob("*.tfrecord")
    return path


def reading(name: str) -> Callable[[Inputs], Task]:
    """In blocks of a mebibyte, and nothing else."""

    def prepare(inputs: Inputs) -> Task:
        path, count = file_of(inputs, name), inputs.record_counts[name]
        buffer = bytearray(1 << 20)

        def run() -> int:
            with open(path, "rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass
            return count

        return Task(run, count, digest=int)

    return prepare


def copying(name: str) -> Callable[[Inputs], Task]:
    """By the operating system, and written through to the disk."""

    def prepare(inputs: Inputs) -> Task:
        source, out = file_of(inputs, name), inputs.out("copied")

        def run() -> int:
            shutil.copyfile(source, out)
            with open(out, "rb+") as file:
                os.fsync(file.fileno())
            return out.stat().st_size

        return Task(
            run, inputs.record_counts[name], before=lambda: out.unlink(missing_ok=True), digest=int
        )

    return prepare
