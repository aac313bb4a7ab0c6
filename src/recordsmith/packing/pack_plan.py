"""A packing job as data: a plan, its tasks, and what finishes it.

A task carries the references of its samples, so a worker lists nothing. Finishing reads no shard.
"""

from __future__ import annotations

import dataclasses
import errno
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import msgspec

from recordsmith.building import ShardResult, done_location, other_plan_error
from recordsmith.dataset.documents import (
    NOT_AS_EXPECTED,
    describe_fault,
    json_of,
    line_in_json,
)
from recordsmith.dataset.labels import ClassNames, class_names_in_json
from recordsmith.errors import FileAccessError, MissingFileError, OptionError, accessing
from recordsmith.packing.pack_task import PackTask, PackTasks, check_shard_file
from recordsmith.packing.planning import Plan
from recordsmith.packing.recipe import Recipe
from recordsmith.sources import Listing, Source
from recordsmith.sources.problems import join_names
from recordsmith.stores import NOTE_BYTES, Location, PlaceLike, as_folder, as_location, read_note
from recordsmith.summaries import Report
from recordsmith.tasks import missing_error
from recordsmith.work import Work

FORMAT = "recordsmith-plan"
VERSION = 4
_BLOCK_BYTES = 1 << 20
_HEAD_BYTES = 64
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class PlannedListing(msgspec.Struct, frozen=True):
    """What the manifest and the report of a plan have from the listing.

    samples: how many there are.
    """

    samples: _Count
    class_names: list[str | None] | None
    has_label_map: bool
    arrow_schema: str | None
    tfds: dict[str, Any] | None
    notices: list[str]


class _Header(msgspec.Struct, frozen=True):
    """The first line of a plan. shards: file, split and number of samples of each."""

    fingerprint: str
    out: str
    source: dict[str, Any]
    options: dict[str, Any]
    splits: list[str]
    listed: PlannedListing
    shards: list[tuple[str, str, _Count]]
    format: str = FORMAT
    version: int = VERSION


@dataclass(frozen=True)
class ShardToWrite:
    """A shard of a plan: its file, its split, and how many samples it has."""

    file: str
    split: str
    sample_count: int


@dataclass(frozen=True, repr=False)
class PackPlan(Report):
    """A packing job as data, whose tasks any machines may run. Made by `recordsmith.plan`.

    out: the folder of the dataset.
    recipe: the options that determine the bytes of the shards.
    shards: in the order of the tasks.
    splits: their names, in order.
    source: the description of the source.
    listed: what the manifest and the report have from the listing.
    fingerprint: a hash of the listing and the options; results of another plan are refused.

    Example:
        plan = rs.plan(rs.ImageFolder("flowers"), "out", shards=8)
        plan.save("plan.jsonl")
        # on each machine
        plan = rs.PackPlan.load("plan.jsonl")
        results = [rs.run(task) for task in plan.tasks(range(3, 6))]
        # at the end, on one machine, with the results of all tasks
        rs.finish(plan, results)
    """

    out: Location
    recipe: Recipe
    shards: tuple[ShardToWrite, ...]
    splits: tuple[str, ...]
    source: Mapping[str, Any]
    listed: PlannedListing
    fingerprint: str
    _tasks: PackTasks | SavedTasks = dataclasses.field(compare=False)

    def tasks(self, only: Iterable[int] | None = None) -> Iterator[PackTask]:
        """Yield tasks, one for each shard, in order.

        Args:
            only: the numbers of some of them, from 0; None for all.

        Raises:
            OptionError: a number is out of range; or the samples exist only in this process.
        """
        wanted = range(len(self.shards)) if only is None else sorted({*self.checked(only)})
        return map(self._own, wanted, self._tasks.each(wanted))

    def _own(self, number: int, task: PackTask) -> PackTask:
        """Return a task that writes the shard of its number, and nothing else."""
        file, out = self.shards[number].file, str(self.out.absolute())
        if (task.plan, task.number, task.name, task.out) != (self.fingerprint, number, file, out):
            raise OptionError(
                f"task {number} belongs to another plan, or was changed",
                option="path",
                remedy="Write the plan again.",
            )
        return task

    def checked(self, numbers: Iterable[int]) -> list[int]:
        """Return numbers of tasks, if there are such tasks."""
        wanted: list[int] = []
        for number in numbers:
            if not isinstance(number, int) or not 0 <= number < len(self.shards):
                raise OptionError(
                    option="only",
                    value=number,
                    expected=f"integers from 0 to {len(self.shards) - 1}",
                )
            wanted.append(number)
        return wanted

    def noted_results(self) -> Iterator[ShardResult]:
        """Yield the results that tasks have noted in the folder of the dataset."""

        def read(shard: ShardToWrite) -> ShardResult | None:
            place = done_location(self.out, shard.file)
            with suppress(MissingFileError):
                return parse_result(read_note(place), place)
            return None

        at_once = self.out.store.concurrency
        with closing(Work(at_once, None).in_order(read, self.shards, ahead=at_once)) as found:
            yield from filter(None, found)

    def ordered(self, results: Iterable[ShardResult]) -> list[ShardResult]:
        """Return the results in the order of the plan, one for each task.

        A repeated task may have read samples that it could not read before: the result with the
        most records counts.
        """
        numbers = {shard.file: number for number, shard in enumerate(self.shards)}
        found: dict[int, ShardResult] = {}
        different: set[int] = set()
        for result in results:
            number = numbers.get(result.file)
            if number is None or result.plan != self.fingerprint:
                raise other_plan_error(result, self.fingerprint)
            if result.record_count > self.shards[number].sample_count:
                raise OptionError(
                    f"the result for {result.file} has more records than samples",
                    option="results",
                    value=result.record_count,
                    expected=f"at most {self.shards[number].sample_count}",
                )
            earlier = found.get(number)
            if earlier is None or result.record_count > earlier.record_count:
                found[number] = result
                different.discard(number)
            elif result.record_count == earlier.record_count and result.entry != earlier.entry:
                different.add(number)
        if different:
            raise OptionError(
                f"two results for {found[min(different)].file} differ",
                option="results",
                remedy="The source has changed since it was planned: make a new plan.",
            )
        if len(found) < len(self.shards):
            raise missing_error(number for number in numbers.values() if number not in found)
        return [found[number] for number in range(len(self.shards))]

    @property
    def class_names(self) -> ClassNames | None:
        return class_names_in_json(self.listed.class_names)

    @property
    def sample_count(self) -> int:
        """The number of samples of all shards."""
        return sum(shard.sample_count for shard in self.shards)

    def save(self, path: PlaceLike) -> None:
        """Write the plan and its tasks to a file: a line of JSON each, the plan first.

        Raises:
            OptionError: the samples exist only in this process.
            FileAccessError: the file cannot be written.
        """
        place = as_location(path)
        with accessing(place, "write"), place.open_write() as file:
            file.write(_line(msgspec.to_builtins(self._header())))
            for task in self.tasks():
                file.write(_line(task.to_json()))

    @classmethod
    def load(cls, path: PlaceLike) -> PackPlan:
        """Read a plan from a file; its tasks are read when they are needed.

        Raises:
            OptionError: the file is not a plan, or of another version.
            FileAccessError: the file cannot be read.
        """
        place = as_location(path)
        document = _document(place, next(_lines(place), b""))
        try:
            if (document.get("format"), document.get("version")) != (FORMAT, VERSION):
                raise ValueError(
                    f"it has format {document.get('format')!r:.40} and version "
                    f"{document.get('version')!r:.40}, expected {FORMAT!r} and {VERSION}"
                )
            header = msgspec.convert(document, _Header)
            class_names_in_json(header.listed.class_names)
            splits = tuple(map(line_in_json, header.splits))
            return cls(
                as_folder(header.out),
                Recipe.from_json(header.options),
                _shards(header.shards, splits),
                splits,
                header.source,
                header.listed,
                header.fingerprint,
                SavedTasks(place),
            )
        except msgspec.ValidationError as error:
            raise _not_a_plan(place, str(error)) from None
        except NOT_AS_EXPECTED as error:
            raise _not_a_plan(place, describe_fault(error)) from None

    def _header(self) -> _Header:
        return _Header(
            self.fingerprint,
            str(self.out.absolute()),
            dict(self.source),
            self.recipe.to_json(),
            list(self.splits),
            self.listed,
            [(shard.file, shard.split, shard.sample_count) for shard in self.shards],
        )

    @classmethod
    def of(
        cls, out: Location, recipe: Recipe, source: Source, listing: Listing, plan: Plan
    ) -> PackPlan:
        """Return the plan of a listed source as data."""
        return cls(
            out,
            recipe,
            tuple(
                ShardToWrite(shard.file, shard.split, len(shard.samples)) for shard in plan.shards
            ),
            plan.splits,
            dict(source.describe()),
            PlannedListing(
                len(plan.samples),
                None if listing.class_names is None else list(listing.class_names),
                listing.has_label_map,
                listing.arrow_schema,
                None if listing.tfds is None else dict(listing.tfds),
                [*listing.notices, *_divided_notice(recipe, plan, listing)],
            ),
            plan.fingerprint,
            PackTasks(out, recipe, listing, plan),
        )


def _shards(
    documents: Iterable[tuple[str, str, int]], splits: Sequence[str]
) -> tuple[ShardToWrite, ...]:
    """Check the shards of a plan."""
    shards = tuple(
        ShardToWrite(check_shard_file(file), split, count) for file, split, count in documents
    )
    if len({shard.file for shard in shards}) < len(shards):
        raise ValueError("two shards have the same name")
    if {shard.split for shard in shards} != {*splits}:
        raise ValueError("its shards have other splits than the plan")
    return shards


def _divided_notice(recipe: Recipe, plan: Plan, listing: Listing) -> tuple[str, ...]:
    """Report the splits of the source that were divided again."""
    own = listing.splits or tuple(filter(None, [listing.only_split]))
    if not own or recipe.splits is None:
        return ()
    resplit = recipe.resplit or own
    divided = [resplit] if isinstance(resplit, str) else list(resplit)
    what = f"{'split' if len(divided) == 1 else 'splits'} {join_names(divided)}"
    new = join_names(split for split in plan.splits if split in (recipe.splits or ()))
    return (f"the source's {what} divided again into {new}",)


def read_results(paths: Iterable[PlaceLike]) -> Iterator[ShardResult]:
    """Yield results from files with one in each line, as JSON."""
    for path in paths:
        place = as_location(path)
        for line in _lines(place):
            yield parse_result(line, place)


def parse_result(result: Mapping[str, Any] | bytes, place: Location | None = None) -> ShardResult:
    """Parse the result of a task: plain JSON values, or their text."""
    try:
        return ShardResult.from_json(json_of(result) if isinstance(result, bytes) else result)
    except NOT_AS_EXPECTED as error:
        raise OptionError(
            f"{place or 'it'} has no results of tasks: {describe_fault(error)}",
            option="results",
            value=None if place is None else str(place),
        ) from None


class SavedTasks:
    """The tasks of a plan in a file, which is read each time they are iterated."""

    def __init__(self, place: Location) -> None:
        self._place = place

    def each(self, numbers: Sequence[int]) -> Iterator[PackTask]:
        """Yield tasks by number, ascending."""
        lines = enumerate(_lines(self._place), -1)  # the first line is the plan
        for number in numbers:
            line = next((line for at, line in lines if at == number), None)
            if line is None:
                raise _not_a_plan(self._place, f"it ends before task {number}")
            yield PackTask.from_json(_document(self._place, line))


def _lines(place: Location) -> Iterator[bytes]:
    """Yield the lines of a file."""
    pieces: list[bytes] = []
    byte_count = 0
    with place.open_read() as file, accessing(place):
        while data := file.read(_BLOCK_BYTES):
            *lines, rest = data.split(b"\n")
            for line in lines:
                yield b"".join([*pieces, line])
                pieces, byte_count = [], 0
            pieces.append(rest)
            byte_count += len(rest)
            if byte_count > NOTE_BYTES:
                raise FileAccessError(
                    errno.EFBIG,
                    "it has a line that is longer than a plan's",
                    str(place),
                    remedy="Check that it is the right file.",
                )
    if byte_count:
        yield b"".join(pieces)


def _line(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def _document(place: Location, line: bytes) -> dict[str, Any]:
    try:
        found = json_of(line)
    except NOT_AS_EXPECTED:
        try:  # a line alone may not show the format of a binary file
            found = json_of(line + b"\n" + place.read(len(line) + 1, len(line) + _HEAD_BYTES))
        except NOT_AS_EXPECTED as error:
            raise _not_a_plan(place, describe_fault(error)) from None
    if not isinstance(found, dict):
        raise _not_a_plan(place, f'expected an object with "format": "{FORMAT}"')
    return found


def _not_a_plan(place: Location, why: str) -> OptionError:
    return OptionError(
        f"{place} is not a plan that this version can read: {why}",
        option="path",
        value=str(place),
        remedy="`recordsmith pack SOURCE OUT --write-plan FILE` writes a new one.",
    )
