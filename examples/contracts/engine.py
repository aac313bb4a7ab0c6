"""An engine of one's own: threads run the tasks of a job.

An engine chooses where tasks run; what they are and what comes of them is the business of the job.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import recordsmith as rs
from recordsmith.support.tasks import Outcome, Task


class Threads:
    """Runs a few tasks at a time, and takes no task before a thread is free."""

    def __init__(self, count: int) -> None:
        self.count = count

    def map(self, function: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
        waiting = iter(tasks)
        with ThreadPoolExecutor(self.count) as pool:
            while some := list(islice(waiting, self.count)):
                yield from pool.map(function, some)


def main(folder: Path) -> None:
    """Write a dataset again on the engine, read it, verify it."""
    rows = rs.Rows({"square": [n * n]} for n in range(100))
    rs.pack(rows, folder / "packed", shards=2, shuffle=False)
    engine = Threads(3)
    rs.reshard(folder / "packed", folder / "resharded", shards=5, engine=engine)
    squares = [int(record["square"][0]) for record in rs.open(folder / "resharded")]
    assert squares == [n * n for n in range(100)]
    assert rs.verify(folder / "resharded", deep=True, engine=engine).is_good


if __name__ == "__main__":
    main(Path(sys.argv[1]))
