"""One shard of `reshard` or `edit` as a task, and how a worker writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.building import ShardResult, check_written, claim, is_valid_file_name
from recordsmith.dataset import Manifest
from recordsmith.errors import OptionError
from recordsmith.reshaping.copies import ShardCopies
from recordsmith.reshaping.edits import Edits
from recordsmith.reshaping.inputs import InputRecords
from recordsmith.reshaping.plan import ReshardedShard
from recordsmith.stores import as_folder
from recordsmith.tasks import Document, Engine, Task, run_on
from recordsmith.work import Work


def run_tasks(
    engine: Engine,
    copies: ShardCopies,
    shards: Sequence[ReshardedShard],
    work: Work,
    earlier: Manifest | None,
) -> list[ShardResult]:
    """Write the shards of a plan on an engine; return the results in the order of the plan.

    Args:
        earlier: the manifest in the folder.
    """
    found = run_on(engine, _tasks(copies, shards), work.advance)
    results = [
        ShardResult.of_task(found[number], shard.file, copies.fingerprint)
        for number, shard in enumerate(shards)
    ]
    check_written(copies.folder, results, earlier)
    copies.records.check_unchanged()
    return results


def _tasks(copies: ShardCopies, shards: Sequence[ReshardedShard]) -> Iterator[Task]:
    common = {
        "out": str(copies.folder.absolute()),
        "compression": copies.compression,
        "versions": copies.versions,
        "edits": None if copies.edits is None else copies.edits.to_task(),
        "tiles": copies.tiles,
        "trusting": copies.trusting,
    }
    for number, shard in enumerate(shards):
        inputs, size = _inputs(copies, shard)
        content = {
            **common,
            "file": shard.file,
            "split": shard.split,
            "is_surveyed": shard.split in copies.surveyed,
            **inputs,
        }
        yield Task("reshard", copies.fingerprint, number, shard.file, size, content)


def _inputs(copies: ShardCopies, shard: ReshardedShard) -> tuple[dict[str, Any], int]:
    """Return the inputs of a shard, numbered in its task, with its records; and their size."""
    records = copies.records
    bytes_each = np.array(records.sizes) / np.maximum(1, records.counts)
    spans: list[list[Any]] = []
    used: dict[int, int] = {}  # number in the task by number of the input
    size = 0.0
    for positions in copies.spans(shard):
        is_run = isinstance(positions, range)
        array = np.array(positions[:1] if is_run else positions)
        numbers = np.searchsorted(records.starts, array, side="right") - 1
        places = array - records.starts[numbers]
        for number in np.unique(numbers).tolist():
            used.setdefault(number, len(used))
        if isinstance(positions, range):
            begin = int(places[0])
            spans.append([used[int(numbers[0])], begin, begin + len(positions)])
            size += float(bytes_each[numbers[0]]) * len(positions)
        else:
            own = np.array([used.get(number, 0) for number in range(len(records))])
            spans.append([own[numbers].tolist(), places.tolist()])
            size += float(bytes_each[numbers].sum())
    return {"inputs": [records.to_json(number) for number in used], "spans": spans}, int(size)


def run_task(task: Task) -> Document:
    """Write the shard of a task; return its result."""
    content = task.content
    file, split = str(content["file"]), str(content["split"])
    if not is_valid_file_name(file):
        raise OptionError(option="file", value=file, expected="a name of a shard")
    folder = claim(as_folder(content["out"]), task.plan, [file])
    work = Work(1, None)
    records = InputRecords.from_json(content["inputs"], work)
    starts = records.starts

    def spans(_: ReshardedShard) -> Iterator[range | Int64Array]:
        for span in content["spans"]:
            if len(span) == 3:
                first = int(starts[span[0]])
                yield range(first + span[1], first + span[2])
            else:
                yield starts[np.array(span[0])] + np.array(span[1], np.int64)

    copies = ShardCopies(
        folder,
        task.plan,
        content["compression"],
        records,
        spans,
        content["versions"],
        [split] if content["is_surveyed"] else [],
        None if content["edits"] is None else Edits.from_task(content["edits"]),
        content["tiles"],
        content["trusting"],
    )
    (result,) = copies.run([ReshardedShard(file, split, 0, 0)], work, checks_inputs=True)
    return result.to_json()
