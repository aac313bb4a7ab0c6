"""What a comparison is made of: a case has peers, a peer prepares a task, a task is measured."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inputs import Inputs

OURS = "recordsmith"


@dataclass(frozen=True)
class Task:
    """What a peer measures, after its imports and preparations.

    run: the measured region; returns its result.
    records: how many records (images, rows) one run goes through.
    before: clears the place for a run; not measured.
    digest: a digest of the result, to check that all peers did the same work; not measured.
    """

    run: Callable[[], Any]
    records: int
    before: Callable[[], None] | None = None
    digest: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Peer:
    """One way to do the work of a case.

    name: as the table shows it.
    prepare: imports what it needs, in a process of its own, and returns the task.
    at_most: the target: recordsmith's CPU time is at most so many times that of this peer.
    strictly: the target is not met when the two are equal.
    python_setting: the name of the setting with another Python for it, or None.
    commit: the commit of recordsmith that it runs, built when the benchmark starts; None for the
        working tree.
    """

    name: str
    prepare: Callable[[Inputs], Task]
    at_most: float | None = None
    strictly: bool = False
    python_setting: str | None = None
    commit: str | None = None


@dataclass(frozen=True)
class Case:
    """Peers that do the same work, the first of which is recordsmith.

    what: the sentences under the heading of the table.
    unit: what is counted: record, row, image.
    inputs: names of the inputs that must be there before a peer starts.
    on_wall_too: the targets hold for seconds on the wall as well as for those of CPU.
    """

    name: str
    title: str
    what: str
    unit: str
    peers: tuple[Peer, ...]
    inputs: tuple[str, ...] = ()
    on_wall_too: bool = False


@dataclass(frozen=True)
class Settings:
    """What the command line asks for.

    repeat: measured rounds; each peer runs once in each.
    tfrecord_python: a Python that has the `tfrecord` package.
    tfr_reader_python: a Python that has tfr-reader.
    tfx_bsl_python: a Python that has tfx_bsl.
    beam_python: a Python that has recordsmith and apache-beam.
    ray_python: a Python that has recordsmith, Ray and TensorFlow.
    spark_python: a Python that has recordsmith and PySpark.
    lance_python: a Python that has pylance and litdata.
    """

    folder: Path
    quick: bool
    repeat: int
    tfrecord_python: str | None = None
    tfr_reader_python: str | None = None
    tfx_bsl_python: str | None = None
    beam_python: str | None = None
    ray_python: str | None = None
    spark_python: str | None = None
    lance_python: str | None = None


@dataclass(frozen=True)
class Table:
    """One table of the report; `data` is the same for programs."""

    name: str
    title: str
    what: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)

    def markdown(self) -> str:
        """A heading, what was measured, the table, and notes."""
        lines = [f"### {self.title}", "", self.what, ""]
        lines.append("| " + " | ".join(self.header) + " |")
        lines.append("| --- |" + " ---: |" * (len(self.header) - 1))
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines) + "\n"


class NotComparableError(Exception):
    """Peers of one case disagree on what they read or wrote."""


def processor() -> str:
    """The name of this machine's processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
