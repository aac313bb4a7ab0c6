"""A packing job as data: a plan, its tasks, and what finishes it.

A task carries the references of its samples, so a worker lists nothing. Finishing reads no shard.
"""

from __future__ import annotations

import errno
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import msgspec

from recordsmith.dataset import (
    NOT_AS_EXPECTED,
    ShardPlan,
    class_names_in_json,
    describe_fault,
    json_of,
    keypoint_classes_in_json,
    line_in_json,
)
from recordsmith.stores import NOTE_BYTES, Location, PlaceLike, as_folder, as_location, read_note
from recordsmith.support.errors import FileAccessError, MissingFileError, OptionError, accessing
from recordsmith.support.serialization import fields_to_json
from recordsmith.support.summaries import Report
from recordsmith.support.tasks import missing_error
from recordsmith.support.work import WorkerPool
from recordsmith.writing.building.shards import ShardResult, done_location
from recordsmith.writing.packing.pack_options import PackOptions
from recordsmith.writing.packing.pack_task import PackTask, TaskSample, check_shard_file
from recordsmith.writing.packing.shard_assignment import ShardAssignment

FORMAT = "recordsmith-plan"
VERSION = 7


@dataclass(frozen=True)
class PackJob:
    """What finishing a job needs to know; the first line of a saved plan."""

    fingerprint: str
    out: str
    source: Mapping[str, Any]
    options: PackOptions
    splits: tuple[str, ...]
    shards: tuple[ShardPlan, ...]
    class_names: tuple[str | None, ...] | None
    has_label_map: bool
    arrow_schema: str | None
    notices: tuple[str, ...]
    account: dict[str, Any] | None = None
    keypoint_classes: dict[str, Any] = field(default_factory=dict)
    deviations: dict[str, dict[str, float]] = field(default_factory=dict)
    format: str = FORMAT
    version: int = VERSION

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> PackJob:
        """Restore a job, and check it; raises what `describe_fault` describes."""
        if (document["format"], document["version"]) != (FORMAT, VERSION):
            raise ValueError(
                f"it has format {document['format']!r:.40} and version "
                f"{document['version']!r:.40}, expected {FORMAT!r} and {VERSION}"
            )
        job = msgspec.convert(document, cls)
        class_names_in_json(document["class_names"])
        keypoint_classes_in_json(document["keypoint_classes"])
        names = [check_shard_file(shard.file) for shard in job.shards]
        if len(set(names)) < len(names):
            raise ValueError("two shards have the same name")
        if {shard.split for shard in job.shards} != {*map(line_in_json, job.splits)}:
            raise ValueError("its shards have other splits than the plan")
        return job

    @property
    def sample_count(self) -> int:
        """The number of samples of all shards."""
        return sum(shard.sample_count for shard in self.shards)

    def tasks(
        self,
        assignment: ShardAssignment,
        reader: dict[str, Any],
        numbers: Iterable[int] | None = None,
        *,
        trusting: bool = True,
    ) -> Iterator[PackTask]:
        """Yield the tasks, one for each shard; args as in `PackTask`.

        Args:
            numbers: of the shards; None for all.
        """
        folds = assignment.folds
        for number in range(len(self.shards)) if numbers is None else numbers:
            shard = self.shards[number]
            own = assignment.numbers(shard)
            samples = zip(own.tolist(), assignment.samples.select(own), strict=True)
            yield PackTask(
                self.fingerprint,
                number,
                shard.file,
                shard.split,
                self.out,
                self.options.to_json(),
                trusting,
                reader,
                [
                    TaskSample(
                        listed,
                        sample.name,
                        sample.size_bytes,
                        sample.label,
                        sample.version,
                        None if sample.reference is None else dict(sample.reference),
                        None if folds is None else int(folds[listed]),
                    )
                    for listed, sample in samples
                ],
            )

    def ordered(self, results: Iterable[ShardResult]) -> list[ShardResult]:
        """Return the results in the order of the plan, one for each task.

        A repeated task may have read samples that it could not read before: the result with the
        most records counts.
        """
        numbers = {shard.file: number for number, shard in enumerate(self.shards)}
        best: dict[int, ShardResult] = {}
        different: set[int] = set()
        for result in results:
            number = numbers.get(result.file)
            if number is None or result.fingerprint != self.fingerprint:
                raise OptionError(
                    f"the result for {result.file} belongs to another plan",
                    option="results",
                    value=result.fingerprint,
                    expected=f"results of the plan {self.fingerprint}",
                )
            if result.record_count > self.shards[number].sample_count:
                raise OptionError(
                    f"the result for {result.file} has more records than samples",
                    option="results",
                    value=result.record_count,
                    expected=f"at most {self.shards[number].sample_count}",
                )
            earlier = best.get(number)
            if earlier is None or result.record_count > earlier.record_count:
                best[number] = result
                different.discard(number)
            elif result.record_count == earlier.record_count and result.entry != earlier.entry:
                different.add(number)
        if different:
            raise OptionError(
                f"two results for {best[min(different)].file} differ",
                option="results",
                remedy="The source has changed since it was planned: make a new plan.",
            )
        if len(best) < len(self.shards):
            raise missing_error(number for number in numbers.values() if number not in best)
        return [best[number] for number in range(len(self.shards))]


@dataclass(frozen=True, repr=False)
class PackPlan(Report):
    """A packing job as data, whose tasks any machines may run. Made by `recordsmith.plan`.

    out: the folder of the dataset.
    job: what finishes it.

    Example:
        plan = rs.plan(rs.ImageFolder("flowers"), "out", shards=8)
        plan.save("plan.jsonl")
        # on each machine
        plan = rs.PackPlan.load("plan.jsonl")
        results = [rs.run(task) for task in plan.tasks(range(0, 4))]
        results += [rs.run(task) for task in plan.tasks(range(4, 8))]
        # at the end, on one machine, with the results of all tasks
        rs.finish(plan, results)
    """

    out: Location
    job: PackJob
    _make_tasks: Callable[[Sequence[int]], Iterator[PackTask]] = field(compare=False)

    @property
    def fingerprint(self) -> str:
        """A hash of the listing and the options; results of another plan are refused."""
        return self.job.fingerprint

    @property
    def shards(self) -> Sequence[ShardPlan]:
        """The shards, in the order of the tasks."""
        return self.job.shards

    def tasks(self, only: Iterable[int] | None = None) -> Iterator[PackTask]:
        """Yield tasks, one for each shard, in order.

        Args:
            only: the numbers of some of them, from 0; None for all.

        Raises:
            OptionError: a number is out of range.
        """
        numbers = range(len(self.shards)) if only is None else sorted({*only})
        for number in numbers:
            if not isinstance(number, int) or not 0 <= number < len(self.shards):
                expected = f"integers from 0 to {len(self.shards) - 1}"
                raise OptionError(option="only", value=number, expected=expected)
        return map(self._checked, numbers, self._make_tasks(numbers))

    def _checked(self, number: int, task: PackTask) -> PackTask:
        """Return a task that writes the shard of its number, and nothing else."""
        own = (self.fingerprint, number, self.shards[number].file, str(self.out.absolute()))
        if (task.fingerprint, task.number, task.name, task.out) != own:
            raise OptionError(
                f"task {number} belongs to another plan, or was changed",
                option="path",
                remedy="Write the plan again.",
            )
        return task

    def noted_results(self) -> Iterator[ShardResult]:
        """Yield the results that tasks have noted in the folder of the dataset."""

        def read(shard: ShardPlan) -> ShardResult | None:
            location = done_location(self.out, shard.file)
            with suppress(MissingFileError):
                return parse_result(read_note(location), location)
            return None

        at_once = self.out.store.concurrency
        with closing(
            WorkerPool(at_once, None).in_order(read, self.shards, ahead=at_once)
        ) as results:
            yield from filter(None, results)

    def save(self, path: PlaceLike) -> None:
        """Write the plan and its tasks to a file: a line of JSON each, the plan first.

        Raises:
            FileAccessError: the file cannot be written.
        """
        location = as_location(path)
        with accessing(location, "write"), location.open_write() as file:
            for line in chain((fields_to_json(self.job),), map(PackTask.to_json, self.tasks())):
                file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    @classmethod
    def load(cls, path: PlaceLike) -> PackPlan:
        """Read a plan from a file; its tasks are read when they are needed.

        Raises:
            OptionError: the file is not a plan, or of another version.
            FileAccessError: the file cannot be read.
        """
        location = as_location(path)
        try:
            job = PackJob.from_json(json_of(next(_lines(location), b"")))
        except NOT_AS_EXPECTED as error:  # also msgspec's, which is a ValueError
            raise _not_a_plan(location, describe_fault(error)) from None

        def read_tasks(numbers: Sequence[int]) -> Iterator[PackTask]:
            lines = enumerate(_lines(location), -1)  # the first line is the plan
            for number in numbers:
                line = next((line for line_number, line in lines if line_number == number), b"")
                try:
                    document = json_of(line)
                except NOT_AS_EXPECTED as error:
                    raise _not_a_plan(location, f"task {number}: {describe_fault(error)}") from None
                yield PackTask.from_json(document)

        return cls(as_folder(job.out), job, read_tasks)


def parse_result(
    result: Mapping[str, Any] | bytes, location: Location | None = None
) -> ShardResult:
    """Parse the result of a task: plain JSON values, or their text."""
    try:
        return ShardResult.from_json(json_of(result) if isinstance(result, bytes) else result)
    except NOT_AS_EXPECTED as error:
        raise OptionError(
            f"{location or 'it'} has no results of tasks: {describe_fault(error)}",
            option="results",
            value=None if location is None else str(location),
        ) from None


def read_results(paths: Iterable[PlaceLike]) -> Iterator[ShardResult]:
    """Yield results from files with one in each line, as JSON."""
    for location in map(as_location, paths):
        for line in _lines(location):
            yield parse_result(line, location)


def _lines(location: Location) -> Iterator[bytes]:
    with io.BufferedReader(location.open_read()) as file, accessing(location):
        while line := file.readline(NOTE_BYTES + 1):
            if len(line) > NOTE_BYTES:
                raise FileAccessError(
                    errno.EFBIG,
                    "it has a line that is longer than a plan's",
                    str(location),
                    remedy="Check that it is the right file.",
                )
            yield line


def _not_a_plan(location: Location, why: str) -> OptionError:
    return OptionError(
        f"{location} is not a plan that this version can read: {why}",
        option="path",
        value=str(location),
        remedy="`recordsmith pack SOURCE OUT --write-plan FILE` writes a new one.",
    )
