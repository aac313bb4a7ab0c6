"""One shard of `reshard` or `edit` as a task, and how a worker writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.building import ShardResult, check_written, claim, is_valid_file_name
from recordsmith.dataset import Manifest
from recordsmith.errors import OptionError
from recordsmith.reshaping.copies import ShardCopies
from recordsmith.reshaping.inputs import InputRecords
from recordsmith.reshaping.plan import ReshardedShard
from recordsmith.stores import as_folder
from recordsmith.tasks import Engine, Task, run_on
from recordsmith.work import Work


def run_tasks(
    engine: Engine,
    copies: ShardCopies,
    shards: Sequence[ReshardedShard],
    work: Work,
    earlier: Manifest | None,
) -> list[ShardResult]:
    """Write the shards of a plan on an engine; return the results in the order of the plan."""
    results = run_on(engine, _tasks(copies, shards), work.advance)
    in_order = [results[number] for number in range(len(shards))]
    check_written(copies.folder, in_order, earlier)
    copies.records.check_unchanged()
    return in_order


def _tasks(copies: ShardCopies, shards: Sequence[ReshardedShard]) -> Iterator[Task]:
    common = {
        "plan": copies.fingerprint,
        "out": str(copies.folder.absolute()),
        "compression": copies.compression,
        "versions": copies.versions,
        "edits": copies.edits,
        "trusting": copies.trusting,
    }
    for number, shard in enumerate(shards):
        inputs, size = _inputs(copies, shard)
        content = {
            **common,
            "shard": shard,
            "is_surveyed": shard.split in copies.surveyed,
            **inputs,
        }
        yield Task(run_task, number, shard.file, size, content)


def _inputs(copies: ShardCopies, shard: ReshardedShard) -> tuple[dict[str, Any], int]:
    """Return the inputs of a shard and the positions of its records in them, and their size."""
    records = copies.records
    spans = list(copies.spans(shard))
    counts = np.zeros(len(records), np.int64)  # of the records of each input
    for positions in spans:
        if isinstance(positions, range):
            counts[records.numbers_of(np.array(positions[:1]))] += len(positions)
        else:
            counts += np.bincount(records.numbers_of(positions), minlength=len(records))
    used = np.flatnonzero(counts)
    shifts = np.zeros(len(records), np.int64)
    shifts[used] = offsets_from_lengths(np.array(records.counts)[used])[:-1] - records.starts[used]
    moved: list[range | Int64Array] = []
    for positions in spans:
        if isinstance(positions, range):
            shift = int(shifts[records.numbers_of(np.array(positions[:1]))[0]])
            moved.append(range(positions.start + shift, positions.stop + shift))
        else:
            moved.append(positions + shifts[records.numbers_of(positions)])
    bytes_each = np.array(records.sizes) / np.maximum(1, records.counts)
    size = int((bytes_each * counts).sum())
    return {"inputs": [records.to_task(number) for number in used.tolist()], "spans": moved}, size


def run_task(content: dict[str, Any]) -> ShardResult:
    """Write the shard of a task."""
    shard: ReshardedShard = content["shard"]
    if not is_valid_file_name(shard.file):
        raise OptionError(option="file", value=shard.file, expected="a name of a shard")
    folder = claim(as_folder(content["out"]), content["plan"], [shard.file])
    work = Work(1, None)
    copies = ShardCopies(
        folder,
        content["plan"],
        content["compression"],
        InputRecords.from_task(content["inputs"], work),
        lambda _: content["spans"],
        content["versions"],
        [shard.split] if content["is_surveyed"] else [],
        content["edits"],
        content["trusting"],
    )
    (result,) = copies.run([shard], work, checks_inputs=True)
    return result
