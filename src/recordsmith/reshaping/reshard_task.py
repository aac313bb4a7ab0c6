"""One shard of `reshard` or `edit` as a task, and how a worker writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from recordsmith.building import ShardResult, check_written, claim, is_valid_file_name
from recordsmith.dataset import Manifest
from recordsmith.errors import OptionError
from recordsmith.reshaping.copies import ShardCopies
from recordsmith.reshaping.edits import Edits
from recordsmith.reshaping.inputs import InputRecords
from recordsmith.reshaping.plan import ReshardedShard, Span
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
    counts = np.array(records.counts)
    ends = np.cumsum(counts)
    bytes_each = np.array(records.sizes) / np.maximum(1, counts)
    spans: list[list[Any]] = []
    used: dict[int, int] = {}  # number in the task by number of the input
    size = 0.0
    for number, positions in copies.spans(shard):
        if isinstance(positions, range):
            assert number is not None
            spans.append([used.setdefault(number, len(used)), positions.start, positions.stop])
            size += float(bytes_each[number]) * len(positions)
            continue
        if number is None:
            inputs = np.searchsorted(ends, positions, side="right")
            numbers = positions - (ends - counts)[inputs]
        else:
            inputs, numbers = np.full(len(positions), number), positions
        for input_number in np.unique(inputs).tolist():
            used.setdefault(input_number, len(used))
        places = np.array([used.get(input_number, 0) for input_number in range(len(ends))])
        spans.append([places[inputs].tolist(), numbers.tolist()])
        size += float(bytes_each[inputs].sum())
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
    firsts = np.cumsum([0, *records.counts[:-1]])

    def spans(_: ReshardedShard) -> Iterator[Span]:
        for span in content["spans"]:
            if len(span) == 3:
                yield Span(span[0], range(span[1], span[2]))
            else:
                yield Span(None, firsts[np.array(span[0])] + np.array(span[1], np.int64))

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
