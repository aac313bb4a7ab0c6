"""A process that begins to train: one loader, one batch.

    python first_batch.py FOLDER LOADER

LOADER is a function of `loaders`. Prints the images of the batch and the CPU seconds until then,
and ends at once: what a loader does ahead, and how it ends, are not measured.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import loaders
from clock import cpu_seconds


def main() -> None:
    folder, name = sys.argv[1:]
    results = os.dup(1)
    os.dup2(2, 1)  # output of libraries is not a result
    count, _, _ = next(getattr(loaders, name)(Path(folder))())
    os.write(results, f"{count} {cpu_seconds()}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main()
