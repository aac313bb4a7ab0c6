"""One shard of `reshard` or `edit` as a task, and how a worker writes it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from recordsmith.building import ShardResult, check_written, claim, is_valid_file_name
from recordsmith.dataset import Manifest
from recordsmith.errors import OptionError
from recordsmith.reshaping.inputs.input_records import InputRecords
from recordsmith.reshaping.resharding.reshard_options import ReshardOptions
from recordsmith.reshaping.resharding.reshard_plan import ReshardedShard, ReshardPlan
from recordsmith.reshaping.resharding.shard_copies import (
    Consecutive,
    PlannedSpans,
    Scattered,
    ShardCopies,
)
from recordsmith.stores import Location, as_folder
from recordsmith.tasks import Engine, Task, run_on
from recordsmith.work import Work


class ReshardTasks:
    """The tasks of a plan, made while they are iterated."""

    def __init__(
        self,
        folder: Location,
        fingerprint: str,
        plan: ReshardPlan,
        records: InputRecords,
        spans: PlannedSpans,
        *,
        versions: str,
        surveyed: Collection[str],
        options: ReshardOptions,
        trusting: bool,
    ) -> None:
        """Arguments as those of `ShardCopies`; `trusting` as in its `run`."""
        self._folder = folder
        self._plan = plan
        self._records = records
        self._spans = spans
        self._surveyed = surveyed
        self._common = {
            "plan": fingerprint,
            "out": str(folder.absolute()),
            "compression": plan.compression,
            "versions": versions,
            "edits": options.edits,
            "tiles": options.tiles,
            "trusting": trusting,
        }

    def run(self, engine: Engine, work: Work, earlier: Manifest | None) -> list[ShardResult]:
        """Run all tasks; return the results in the order of the plan.

        Args:
            earlier: the manifest in the folder.

        Raises:
            FileAccessError: a shard is not in the folder.
        """
        found = run_on(engine, self, work.advance)
        results = [found[number] for number in range(len(self._plan.shards))]
        check_written(self._folder, results, earlier)
        return results

    def __iter__(self) -> Iterator[Task]:
        ends = np.cumsum(self._records.counts)
        for number, shard in enumerate(self._plan.shards):
            content, size = self._content(shard, ends)
            yield Task(run_task, number, shard.file, size, content)

    def _content(self, shard: ReshardedShard, ends: Any) -> tuple[dict[str, Any], int]:
        """Return the content of a task, whose inputs are numbered in it, and its size in bytes."""
        spans: list[list[Any]] = []
        used: dict[int, int] = {}  # number in the task by number of the input
        size = 0.0
        bytes_each = [
            byte_count / max(1, count)
            for byte_count, count in zip(self._records.sizes, self._records.counts, strict=True)
        ]
        for span in self._spans.of(shard):
            if isinstance(span, Consecutive):
                at = used.setdefault(span.number, len(used))
                spans.append([at, span.start, span.stop])
                size += bytes_each[span.number] * (span.stop - span.start)
                continue
            positions = span.positions
            if span.number is None:
                inputs = np.searchsorted(ends, positions, side="right")
                positions = positions - (ends - self._records.counts)[inputs]
            else:
                inputs = np.full(len(positions), span.number)
            for number in np.unique(inputs).tolist():
                used.setdefault(number, len(used))
            places = np.array([used.get(number, 0) for number in range(len(ends))])
            spans.append([places[inputs].tolist(), positions.tolist()])
            size += float(np.array(bytes_each)[inputs].sum())
        inputs_json = [self._records.to_json(number) for number in used]
        content = {
            **self._common,
            "file": shard.file,
            "split": shard.split,
            "is_surveyed": shard.split in self._surveyed,
            "inputs": inputs_json,
            "spans": spans,
        }
        return content, int(size)


def run_task(content: dict[str, Any]) -> ShardResult:
    """Write the shard of a task."""
    file, split = str(content["file"]), str(content["split"])
    if not is_valid_file_name(file):
        raise OptionError(option="file", value=file, expected="a name of a shard")
    folder = claim(as_folder(content["out"]), content["plan"], [file])
    work = Work(1, None)
    records = InputRecords.from_json(content["inputs"], work)
    firsts = np.cumsum([0, *records.counts[:-1]])

    def spans(_: ReshardedShard) -> Iterator[Consecutive | Scattered]:
        for span in content["spans"]:
            if len(span) == 3:
                yield Consecutive(*span)
            else:
                yield Scattered(None, firsts[np.array(span[0])] + np.array(span[1], np.int64))

    copies = ShardCopies(
        folder,
        content["plan"],
        content["compression"],
        records,
        spans,
        work,
        versions=content["versions"],
        surveyed=[split] if content["is_surveyed"] else [],
        edits=content["edits"],
        tiles=content["tiles"],
    )
    shard = ReshardedShard(file, split, 0, 0)
    (result,) = copies.run([shard], trusting=content["trusting"], checks_inputs=True)
    return result
