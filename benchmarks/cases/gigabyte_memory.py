"""How far memory rises while a gigabyte is verified, resharded and salvaged.

None of them holds more than an index of the records and a few blocks of them, whatever the size.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from case import Case, Peer, Settings, Table, Task
from cases.reshard import LARGE, SMALL, resharding
from cases.salvage import salvaging
from inputs import LARGE_BYTES, Inputs
from measure import measure_peaks


def _verifying(name: str) -> Callable[[Inputs], Task]:
    def prepare(inputs: Inputs) -> Task:
        from recordsmith import verify

        path = inputs.path(name)
        return Task(lambda: verify(path), 1)

    return prepare


_SIZES = {
    "of 200 bytes": (SMALL, "small"),
    f"of {LARGE_BYTES // 1000} kB": (LARGE, "large"),
}
_ACTIONS: dict[str, Callable[[str, str], Callable[[Inputs], Task]]] = {
    "`verify`": lambda folder, _: _verifying(folder),
    "`reshard`, in order": lambda folder, _: resharding(folder),
    "`reshard`, a sample of 10%": lambda folder, _: resharding(folder, sample=0.1),
    "`reshard`, shuffled": lambda folder, _: resharding(folder, shuffle=True),
    "`salvage` of a damaged file": lambda _, size: salvaging(size),
}

CASE = Case(
    name="gigabyte-memory",
    title="Peak memory of verifying, resharding and salvaging a gigabyte",
    what=(
        "MiB above what is resident after the imports, of one process for each figure. Indexes "
        "take 8 bytes a record: of the file given, of all files when they are shuffled; small "
        "records that are read here and there are mapped, up to 256 MiB."
    ),
    unit="record",
    peers=tuple(
        Peer(f"{action}, {size}", prepare(folder, name))
        for action, prepare in _ACTIONS.items()
        for size, (folder, name) in _SIZES.items()
    ),
    inputs=(SMALL, LARGE, "small-damaged.tfrecord", "large-damaged.tfrecord"),
)


def report(settings: Settings) -> Table:
    """A table of both sizes of records, a row for each job."""
    peaks, _ = measure_peaks(CASE, settings)
    rows = tuple(
        (
            action,
            *(
                f"{statistics.median(peaks[f'{action}, {size}']) / (1 << 20):.1f}"
                for size in _SIZES
            ),
        )
        for action in _ACTIONS
    )
    data = [{"action": name, "peak_bytes": peak} for name, peak in peaks.items()]
    header = ("", *(f"records {size}, MiB" for size in _SIZES))
    return Table(CASE.name, CASE.title, CASE.what, header, rows, data={"rows": data})
