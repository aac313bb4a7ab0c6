"""One pass over a shard as a task: digests of its records, or notes on some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array, array_from_json, array_to_json
from recordsmith.dataset.parts import part_from_json, part_to_json
from recordsmith.examining.diff.comparing import (
    DigestStore,
    MakeDigests,
    ShardReading,
    digests_of_bytes,
    digests_of_content,
)
from recordsmith.examining.diff.naming import key_digests, key_digests_of_examples
from recordsmith.examining.diff.one_feature import digests_without, digests_without_each
from recordsmith.examining.diff.record_changes import RecordNote
from recordsmith.example import SchemaSurvey
from recordsmith.example.schema import SchemaCounts
from recordsmith.tasks import Engine, Task, completed
from recordsmith.work import Work

_MAKERS: dict[str, Callable[..., MakeDigests]] = {
    "bytes": digests_of_bytes,
    "content": digests_of_content,
    "key": key_digests,
    "key-of-examples": key_digests_of_examples,
    "without": digests_without,
    "without-each": digests_without_each,
}


class RunReadings:
    """Runs the readings of a pass on an engine."""

    def __init__(self, engine: Engine, advance: Callable[[int], None]) -> None:
        self._engine = engine
        self._advance = advance

    def digests(
        self,
        readings: Sequence[ShardReading],
        make: MakeDigests,
        store: DigestStore,
        *,
        surveys: bool = False,
    ) -> Iterator[tuple[ShardReading, int, SchemaCounts | None]]:
        """Store the digests of each reading; yield its number of records, and what `SchemaSurvey`
        counts in them if `surveys`.
        """

        def content(_: ShardReading) -> dict[str, Any]:
            return {
                "make": [make.kind, *make.arguments],
                "surveys": surveys,
                "bits": store.bits,
                "part": store.part,
            }

        for reading, result in self._results(readings, content):
            numbers, digests = map(array_from_json, (result["numbers"], result["digests"]))
            store.add(reading.side, reading.number, numbers, digests)
            found = result["schema"]
            schema = None if found is None else SchemaCounts.from_json(found)
            yield reading, result["count"], schema

    def notes(
        self,
        readings: Sequence[ShardReading],
        name: str | None,
        changed: Callable[[ShardReading], Int64Array],
    ) -> Iterator[tuple[ShardReading, list[tuple[int, RecordNote]]]]:
        """Yield the notes of each reading; arguments as of `ShardReading.notes`."""

        def content(reading: ShardReading) -> dict[str, Any]:
            return {"name": name, "changed": array_to_json(changed(reading))}

        for reading, result in self._results(readings, content):
            notes = [(number, RecordNote.from_json(note)) for number, note in result["notes"]]
            yield reading, notes

    def _results(
        self, readings: Sequence[ShardReading], content: Callable[[ShardReading], dict[str, Any]]
    ) -> Iterator[tuple[ShardReading, dict[str, Any]]]:
        def tasks() -> Iterator[Task]:
            for number, reading in enumerate(readings):
                shard, numbers = reading.shard, reading.numbers
                common = {
                    "shard": part_to_json(shard),
                    "stop": reading.stop,
                    "numbers": None if numbers is None else array_to_json(numbers),
                }
                yield Task(
                    run_task,
                    number,
                    str(shard.location),
                    shard.size_bytes,
                    common | content(reading),
                )

        with closing(completed(self._engine, tasks(), self._advance)) as results:
            for number, result in results:
                yield readings[number], result


def run_task(content: dict[str, Any]) -> dict[str, Any]:
    """Read the shard of a task; return digests or notes."""
    numbers = content["numbers"]
    reading = ShardReading(
        0,
        0,
        part_from_json(content["shard"]),
        content["stop"],
        None if numbers is None else array_from_json(numbers),
    )
    work = Work(1, None)
    if "make" not in content:
        notes = reading.notes(content["name"], array_from_json(content["changed"]), work)
        return {"notes": [[number, note.to_json()] for number, note in notes]}
    kind, *arguments = content["make"]
    store = DigestStore(content["bits"], content["part"], divides=False)
    survey = SchemaSurvey() if content["surveys"] else None
    count = 0
    for block_count, found, digests in reading.digests(_MAKERS[kind](*arguments), work, survey):
        count += block_count
        store.add(0, 0, found, digests)
    found, digests = store.pop(0, np.zeros(1, np.int64))
    return {
        "count": count,
        "schema": None if survey is None else survey.counts().to_json(),
        "numbers": array_to_json(found),
        "digests": array_to_json(digests),
    }
