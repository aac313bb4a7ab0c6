"""One shard of a packing job as a task, and how a worker writes it.

Tasks are JSON, as users may save them, and so may come from strangers: everything in them is
checked before anything is written.
"""

from __future__ import annotations

import errno
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.building import Occurrences, ShardResult, claim, is_valid_file_name, rows_prefix
from recordsmith.dataset import is_shard_name
from recordsmith.dataset.documents import line_in_json
from recordsmith.dataset.frames import FrameReader, FrameRows, open_frames
from recordsmith.dataset.labels import class_names_in_json
from recordsmith.dataset.names import INTERNAL_FOLDER, PARTIAL_SUFFIX
from recordsmith.errors import (
    CorruptDataError,
    DataError,
    Defect,
    FileAccessError,
    OptionError,
    SourceError,
)
from recordsmith.example import Kind
from recordsmith.packing.planning import PackShard, Plan
from recordsmith.packing.recipe import Recipe
from recordsmith.packing.sample_encoder import SampleEncoder
from recordsmith.packing.writing import ShardJobs
from recordsmith.sources import Listing, Note, Sample, SampleReader, ignore_note, open_reader
from recordsmith.sources.numbered import SampleTable
from recordsmith.sources.problems import Fault
from recordsmith.sources.tables.encoded_rows import EncodedRows, memory_error, referenced_row
from recordsmith.stores import Location, as_folder
from recordsmith.tasks import VERSION, version_error
from recordsmith.wire import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES
from recordsmith.work import Work

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class TaskSamples(msgspec.Struct, frozen=True):
    """The samples of a task in columns, ascending by their number in the listing.

    labels: -1 where there is none.
    versions: one for all samples, or a list.
    """

    names: list[str]
    sizes: list[_Count]
    labels: list[int]
    versions: int | list[int] | None
    references: list[dict[str, Any] | None]


class TaskRows(msgspec.Struct, frozen=True):
    """Where the records of a task are in a file in the folder of the dataset.

    faults: why a row cannot be stored, by its number in the task.
    """

    name: str
    begins: list[_Count]
    ends: list[_Count]
    faults: list[tuple[int, dict[str, Any]]]


class PackTask(msgspec.Struct, frozen=True):
    """Writes one shard of a plan, on any machine that sees the source and the dataset.

    plan: the fingerprint of the plan.
    number: its place in the plan, from 0.
    name: the shard.
    out: the folder of the dataset.
    trusting, keeps_skipped: as in `ShardJobs.run`.
    kinds: of rows, whose values may not show them.
    reader: of the samples; None if there are `rows`.
    numbers: of the samples in the listing, ascending.
    order: the numbers of the samples in the task, in the order of the shard.
    notes: about the samples of all tasks, in the first one.
    """

    plan: str
    number: int
    name: str
    split: str
    out: str
    recipe: dict[str, Any]
    trusting: bool
    keeps_skipped: bool
    class_names: list[str | None] | None
    tfds: dict[str, Any] | None
    kinds: dict[str, Kind]
    reader: dict[str, Any] | None
    numbers: list[_Count]
    order: list[_Count]
    samples: TaskSamples
    rows: TaskRows | None = None
    notes: dict[str, dict[str, Any]] = {}
    version: int = VERSION

    @property
    def size(self) -> int:
        """The number of its samples."""
        return len(self.order)

    def to_json(self) -> dict[str, Any]:
        """Return the task as plain JSON values."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document

    @classmethod
    def from_json(cls, document: object) -> PackTask:
        """Restore a task from `to_json`."""
        if not isinstance(document, Mapping):
            raise OptionError(option="task", value=document, expected="the JSON of a task")
        if document.get("version") != VERSION:
            raise version_error(document.get("version"))
        try:
            return msgspec.convert(document, cls)
        except msgspec.ValidationError as error:
            raise OptionError(f"the task is invalid: {error}", option="task") from None


class PackTasks:
    """The tasks of a plan, made while they are iterated.

    Rows of tables, and samples that other processes cannot read, are first written to the folder
    of the dataset as records, once; workers copy their records from there.
    """

    def __init__(
        self,
        out: Location,
        recipe: Recipe,
        listing: Listing,
        plan: Plan,
        *,
        trusting: bool = True,
        keeps_skipped: bool = False,
    ) -> None:
        """`trusting`, `keeps_skipped`: as in `ShardJobs.run`.

        A worker may not have seen all samples, so a rerun tries those again that were skipped.
        """
        self._trusting = trusting
        self._keeps_skipped = keeps_skipped
        self._out = out
        self._recipe = recipe
        self._listing = listing
        self._plan = plan

    def each(self, numbers: Iterable[int] | None = None) -> Iterator[PackTask]:
        """Yield tasks in the given order; all in order if `numbers` is None."""
        listing, plan = self._listing, self._plan
        rows = self._rows()
        names = listing.class_names
        common: dict[str, Any] = {
            "plan": plan.fingerprint,
            "out": str(self._out.absolute()),
            "recipe": self._recipe.to_json(),
            "trusting": self._trusting,
            "keeps_skipped": self._keeps_skipped,
            "class_names": None if names is None else list(names),
            "tfds": None if listing.tfds is None else dict(listing.tfds),
            "kinds": dict(listing.reader.kinds()),
            "reader": None if rows is not None else listing.reader.to_json(),
        }
        for number in range(len(plan.shards)) if numbers is None else numbers:
            shard = plan.shards[number]
            content = common | _samples_of(plan, shard)
            if rows is not None:
                content["rows"] = rows.of(np.array(content["numbers"], np.int64))
                content["notes"] = rows.notes() if number == 0 else {}
            yield PackTask(number=number, name=shard.file, split=shard.split, **content)

    def _rows(self) -> _StoredRows | None:
        """Write the samples to the store, unless workers can read them from the source."""
        reader = self._listing.reader
        frames = reader.frames() if hasattr(reader, "frames") else None
        notes: dict[str, Occurrences] = {}
        if frames is None:
            with suppress(OptionError):
                reader.to_json()
                return None
            frames = _encode_all(self._plan.samples, reader, notes)
        return _StoredRows(
            self._out,
            f"{rows_prefix(self._plan.fingerprint)}{frames.crc32c:08x}{PARTIAL_SUFFIX}",
            frames,
            notes,
        )


class _StoredRows:
    """Records of all samples in a file of frames in the folder of the dataset."""

    def __init__(
        self, out: Location, name: str, rows: EncodedRows, notes: Mapping[str, Occurrences]
    ) -> None:
        folder = out / INTERNAL_FOLDER
        folder.make_folder()
        (folder / name).put_if_absent(rows.pieces())  # its readers are not disturbed
        self._name = name
        self._offsets = offsets_from_lengths(rows.sizes + FRAME_BYTES)
        self._faults = rows.faults
        self._notes = notes

    def of(self, numbers: Int64Array) -> TaskRows:
        """Return where some records are."""
        faults = [
            (row, self._faults[number].to_json())
            for row, number in enumerate(numbers.tolist())
            if number in self._faults
        ]
        begins, ends = self._offsets[numbers], self._offsets[1:][numbers]
        return TaskRows(self._name, begins.tolist(), ends.tolist(), faults)

    def notes(self) -> dict[str, dict[str, Any]]:
        """Return the notes about all records, as plain JSON values."""
        return {what: vars(noted) for what, noted in self._notes.items()}


class SpooledRows:
    """Reads records that a job wrote for its own workers.

    faults: why a row cannot be stored, by its number in the task.
    """

    def __init__(self, folder: Location, rows: TaskRows, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._frames: FrameReader | None = None
        if not is_valid_file_name(rows.name):
            raise OptionError(option="name", value=rows.name, expected="a name of a file")
        self._location = (folder / INTERNAL_FOLDER / rows.name).without_links()
        self._begins = np.array(rows.begins, np.int64)
        self._ends = np.array(rows.ends, np.int64)
        if len(self._begins) != len(self._ends) or (self.sizes < 0).any():
            raise ValueError("its rows have no valid places")
        self.faults = {row: Fault.from_json(fault) for row, fault in rows.faults}

    @property
    def sizes(self) -> Int64Array:
        """int64, (rows,): the size of each payload in bytes."""
        return self._ends - self._begins - FRAME_BYTES

    def kinds(self) -> Mapping[str, Kind]:
        return self._kinds

    def to_json(self) -> dict[str, Any]:
        raise memory_error()

    def frames(self) -> SpooledRows:
        return self

    def read(self, sample: Sample, note: Note = ignore_note) -> bytes:  # noqa: ARG002
        """Read the payload of one record."""
        number = referenced_row(sample)
        if number in self.faults:
            raise self.faults[number].error()
        frames, _ = self.read_frames(np.array([number]))
        return frames[HEADER_BYTES:-FOOTER_BYTES].tobytes()

    def read_frames(self, numbers: Int64Array) -> tuple[npt.NDArray[np.uint8], Int64Array]:
        """Copy the frames of some rows, and verify their checksums; as `EncodedRows`."""
        begins, ends = self._begins[numbers], self._ends[numbers]
        if self._frames is None:
            info = self._location.info()
            if len(self._ends) and int(self._ends.max()) > info.size_bytes:
                raise self._damaged(info.size_bytes)
            self._frames = open_frames(self._location, may_map=False, info=info)
        places = offsets_from_lengths(ends - begins)
        out = np.empty(int(places[-1]), np.uint8)
        count = self._frames.gather(FrameRows(begins, ends, places[:-1]), out, whole=True)
        if count != len(numbers):
            raise self._damaged(int(begins[count]))
        return out, ends - begins - FRAME_BYTES

    def _damaged(self, offset: int) -> CorruptDataError:
        return CorruptDataError(
            Defect.PAYLOAD_CRC,
            "a temporary file of the job is damaged",
            remedy="Rerun the job.",
            path=self._location,
            offset=offset,
        )


def run_task(task: PackTask, out: Location | None = None) -> ShardResult:
    """Write the shard of a task."""
    folder = as_folder(task.out) if out is None else out
    recipe = Recipe.from_json(task.recipe)
    samples, reader = _samples(task), _reader(task, folder)
    class_names = class_names_in_json(task.class_names)
    listing = Listing(samples, reader, class_names, tfds=task.tfds)
    plan = _plan(task, samples, recipe)
    notes = {what: Occurrences.from_json(noted) for what, noted in task.notes.items()}
    check_visible(reader)
    folder = claim(folder, task.plan, [task.name])
    jobs = ShardJobs(listing, plan, folder, recipe, Work(1, None), notes=notes)
    (result,) = jobs.run(trusting=task.trusting, keeps_skipped=task.keeps_skipped)
    return result


def _plan(task: PackTask, samples: SampleTable, recipe: Recipe) -> Plan:
    """Return the plan of one shard."""
    order, numbers = np.array(task.order, np.int64), np.array(task.numbers, np.int64)
    count = len(samples)
    if len(numbers) != count or not np.array_equal(np.sort(order), np.arange(count)):
        raise ValueError("its order has not each sample once")
    shard = PackShard(check_shard_file(task.name), line_in_json(task.split), array("q", task.order))
    return Plan((shard,), (shard.split,), recipe.shard_compression, task.plan, samples, numbers)


def check_shard_file(name: object) -> str:
    """Return the name of a shard in a plan or a task, which may come from a file."""
    if not isinstance(name, str) or not is_valid_file_name(name) or not is_shard_name(name):
        raise OptionError(option="file", value=name, expected="a name of a shard")
    return name


def check_visible(reader: object) -> None:
    """Check that this machine sees the source."""
    root = getattr(reader, "root", None)
    if isinstance(root, Location) and not root.store.is_remote and not root.is_folder():
        raise FileAccessError(
            errno.ENOENT, "this machine does not see the source", str(root),
            remedy="Mount it under the same path on all machines, or pass a URL.",
        )  # fmt: skip


def _encode_all(
    samples: SampleTable, reader: SampleReader, notes: dict[str, Occurrences]
) -> EncodedRows:
    """Return samples as records with canonical keys."""
    rows = EncodedRows()
    encoder = SampleEncoder(reader.kinds())

    def note(what: str, where: str) -> None:
        notes.setdefault(what, Occurrences()).add(where)

    for sample in samples:
        try:
            payload, fault = encoder.payload(reader.read(sample, note), note), {}
        except (DataError, FileAccessError, SourceError) as error:
            payload, fault = b"", {0: Fault(error.unnamed)}
        rows.extend(payload, np.array([0, len(payload)], np.int64), fault)
    rows.finish()
    return rows


def _samples_of(plan: Plan, shard: PackShard) -> dict[str, Any]:
    """Return the numbers, the order and the samples of a shard for its task."""
    numbers = np.asarray(shard.samples, np.int64)
    ascending = np.argsort(numbers)
    order = np.empty(len(numbers), np.int64)
    order[ascending] = np.arange(len(numbers))
    numbers = numbers[ascending]
    samples = [*plan.samples.select(numbers.tolist())]
    return {
        "numbers": numbers.tolist(),
        "order": order.tolist(),
        "samples": TaskSamples(
            [sample.name for sample in samples],
            [sample.size_bytes for sample in samples],
            [-1 if sample.label is None else sample.label for sample in samples],
            _versions(samples),
            [None if sample.reference is None else dict(sample.reference) for sample in samples],
        ),
    }


def _versions(samples: Sequence[Sample]) -> int | list[int] | None:
    """The version of all samples if it is one, or of each; None if one has none."""
    versions: list[Any] = [sample.version for sample in samples]
    if None in versions:
        return None
    first: int = versions[0]
    return first if len({*versions}) == 1 else versions


def _row_reference(row: int) -> dict[str, int]:
    return {"row": row}


def _samples(task: PackTask) -> SampleTable:
    """Return the samples of a task, numbered as in the task."""
    samples, versions = task.samples, task.samples.versions
    columns: list[Sized] = [samples.names, samples.sizes, samples.labels, samples.references]
    if isinstance(versions, list):
        columns.append(versions)
    if len({*map(len, columns)}) > 1:
        raise ValueError("its samples have different numbers of names, sizes and references")
    return SampleTable(
        samples.names,
        np.array(samples.sizes, np.int64),
        labels=np.array(samples.labels, np.int32),
        version=np.array(versions, np.int64) if isinstance(versions, list) else versions,
        references=_row_reference if task.rows else samples.references.__getitem__,
    )


def _reader(task: PackTask, folder: Location) -> SampleReader:
    if task.rows is None:
        return open_reader_once(json.dumps(task.reader))
    return SpooledRows(folder, task.rows, task.kinds)


@lru_cache(maxsize=2)
def open_reader_once(document: str) -> SampleReader:
    """Open a reader, or return the one that this process has for earlier tasks."""
    return open_reader(json.loads(document))
