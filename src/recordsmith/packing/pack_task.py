"""One shard of a packing job as a task, and how a worker writes it."""

from __future__ import annotations

import errno
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.building import (
    Occurrences,
    claim,
    is_valid_file_name,
    rows_prefix,
)
from recordsmith.dataset import is_shard_name
from recordsmith.dataset.documents import (
    integer_in_json,
    line_in_json,
)
from recordsmith.dataset.frames import FrameReader, Frames, open_frames
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
from recordsmith.packing.preparing import Preparation
from recordsmith.packing.recipe import Recipe
from recordsmith.packing.writing import ShardJobs
from recordsmith.sources import Listing, Note, Sample, SampleReader, ignore_note, open_reader
from recordsmith.sources.numbered import ComputedReferences, NumberedSamples
from recordsmith.sources.problems import Fault
from recordsmith.sources.tables.encoded_rows import EncodedRows, memory_error, referenced_row
from recordsmith.stores import Location, as_folder
from recordsmith.tasks import Document, Task
from recordsmith.wire import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES, check_compression
from recordsmith.work import Work


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

    def each(self, numbers: Iterable[int] | None = None) -> Iterator[Task]:
        """Yield tasks in the given order; all in order if `numbers` is None."""
        listing, plan = self._listing, self._plan
        rows = self._rows()
        common = {
            "out": str(self._out.absolute()),
            "recipe": self._recipe.to_json(),
            "trusting": self._trusting,
            "keeps_skipped": self._keeps_skipped,
            "compression": plan.compression,
            "class_names": listing.class_names,
            "tfds": listing.tfds,
            "kinds": dict(listing.reader.kinds()),  # of rows, whose values may not show them
            "reader": None if rows is not None else listing.reader.to_json(),
        }
        for number in range(len(plan.shards)) if numbers is None else numbers:
            shard = plan.shards[number]
            content = {**common, "file": shard.file, "split": shard.split}
            content |= _samples_to_json(plan, shard)
            if rows is not None:
                ascending = np.array(content["numbers"], np.int64)
                content |= rows.to_json(ascending, is_first=number == 0)
            yield Task("pack", plan.fingerprint, number, shard.file, len(shard.samples), content)

    def _rows(self) -> _StoredRows | None:
        """Write the samples to the store, unless workers can read them from the source."""
        reader = self._listing.reader
        frames = reader.frames() if hasattr(reader, "frames") else None
        notes: dict[str, Occurrences] = {}
        if frames is None:
            if _is_portable(reader):
                return None
            frames = _encoded(self._listing, notes)
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

    def to_json(self, numbers: Int64Array, *, is_first: bool) -> dict[str, Any]:
        """Return where some records are, as plain JSON values; the first task has the notes."""
        faults = [
            [at, self._faults[number].to_json()]
            for at, number in enumerate(numbers.tolist())
            if number in self._faults
        ]
        rows = {
            "name": self._name,
            "begins": self._offsets[numbers].tolist(),
            "ends": self._offsets[1:][numbers].tolist(),
            "faults": faults,
        }
        notes = {what: vars(noted) for what, noted in self._notes.items()} if is_first else {}
        return {"rows": rows, "notes": notes}


class RowsInStore:
    """Reads records that a job wrote for its own workers.

    faults: why a row cannot be stored, by its number in the task.
    """

    def __init__(self, folder: Location, document: Document, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._frames: FrameReader | None = None
        name = str(document["name"])
        if not is_valid_file_name(name):
            raise OptionError(option="name", value=name, expected="a name of a file")
        self._location = (folder / INTERNAL_FOLDER / name).without_links()
        self._begins = np.array(document["begins"], np.int64)
        self._ends = np.array(document["ends"], np.int64)
        if (
            len(self._begins) != len(self._ends)
            or (self.sizes < 0).any()
            or (self._begins < 0).any()
        ):
            raise ValueError("its rows have no valid places")
        faults = document["faults"]
        self.faults = {integer_in_json(at): Fault.from_json(fault) for at, fault in faults}

    @property
    def sizes(self) -> Int64Array:
        """int64, (rows,): the size of each payload in bytes."""
        return self._ends - self._begins - FRAME_BYTES

    def kinds(self) -> Mapping[str, Kind]:
        return self._kinds

    def to_json(self) -> dict[str, Any]:
        raise memory_error()

    def frames(self) -> RowsInStore:
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
        count = self._frames.gather(Frames(begins, ends, places[:-1]), out, whole=True)
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


def run_task(task: Task, out: Location | None = None) -> Document:
    """Write the shard of a task; return its result.

    Args:
        out: the folder of the dataset, if the task cannot name it: a store in memory.
    """
    job = _parsed(task.content, task.plan, out)
    (shard,) = job.plan.shards
    check_visible(job.listing.reader)
    folder = claim(job.folder, task.plan, [shard.file])
    jobs = ShardJobs(job.listing, job.plan, folder, job.recipe, Work(1, None), notes=job.notes)
    (result,) = jobs.run(trusting=job.is_trusting, keeps_skipped=job.keeps_skipped)
    return result.to_json()


class _Job(NamedTuple):
    """A task as it runs: a plan of one shard."""

    folder: Location
    recipe: Recipe
    listing: Listing
    plan: Plan
    notes: Mapping[str, Occurrences]
    is_trusting: bool
    keeps_skipped: bool


def _parsed(content: Document, fingerprint: str, out: Location | None) -> _Job:
    """Parse the content of a task before anything is written.

    Raises:
        OptionError, or any of NOT_AS_EXPECTED: it is invalid, as it may come from a file.
    """
    folder = as_folder(content["out"]) if out is None else out
    listing = _listing(content, folder)
    count = len(listing.samples)
    order, numbers = (np.array(content[name], np.int64) for name in ("order", "numbers"))
    if len(numbers) != count or not np.array_equal(np.sort(order), np.arange(count)):
        raise ValueError("its order has not each sample once")
    split = line_in_json(content["split"])
    shard = PackShard(check_shard_file(content["file"]), split, array("q", order.tolist()))
    plan = Plan(
        (shard,),
        (split,),
        check_compression(content["compression"]),
        fingerprint,
        listing.samples,
        lambda places: numbers[np.asarray(places, np.int64)],
    )
    noted = content.get("notes", {}).items()
    notes = {what: Occurrences.from_json(occurrences) for what, occurrences in noted}
    recipe = Recipe.from_json(content["recipe"])
    flags = content["trusting"] is True, content["keeps_skipped"] is True
    return _Job(folder, recipe, listing, plan, notes, *flags)


def check_shard_file(name: object) -> str:
    """Return the name of a shard in a plan or a task, which may come from a file.

    Raises:
        OptionError: no plan has such a name: a task could replace other files than shards.
    """
    if not isinstance(name, str) or not is_valid_file_name(name) or not is_shard_name(name):
        raise OptionError(option="file", value=name, expected="a name of a shard")
    return name


def check_visible(reader: object) -> None:
    """Check that this machine sees the source.

    Raises:
        FileAccessError: it does not.
    """
    root = getattr(reader, "root", None)
    if isinstance(root, Location) and not root.store.is_remote and not root.is_folder():
        raise FileAccessError(
            errno.ENOENT, "this machine does not see the source", str(root),
            remedy="Mount it under the same path on all machines, or pass a URL.",
        )  # fmt: skip


def _is_portable(reader: SampleReader) -> bool:
    """Whether other processes can read the samples."""
    try:
        reader.to_json()
    except OptionError:
        return False
    return True


def _encoded(listing: Listing, notes: dict[str, Occurrences]) -> EncodedRows:
    """The samples of a listing as records with canonical keys."""
    rows = EncodedRows()
    preparation = Preparation(listing.reader.kinds())

    def note(what: str, where: str) -> None:
        notes.setdefault(what, Occurrences()).add(where)

    for sample in listing.samples:
        try:
            payload, fault = preparation.payload(listing.reader.read(sample, note), note), {}
        except (DataError, FileAccessError, SourceError) as error:
            payload, fault = b"", {0: Fault(error.unnamed)}
        rows.extend(payload, np.array([0, len(payload)], np.int64), fault)
    rows.finish()
    return rows


def _samples_to_json(plan: Plan, shard: PackShard) -> dict[str, Any]:
    """Return the samples of a shard as plain JSON values: in columns, ascending by their number in
    the listing, and their order.
    """
    numbers = plan.numbers(shard.samples)
    ascending = np.argsort(numbers)
    order = np.empty(len(numbers), np.int64)
    order[ascending] = np.arange(len(numbers))
    samples = _at(plan.samples, np.asarray(shard.samples, np.int64)[ascending])
    versions = [sample.version for sample in samples]
    return {
        "numbers": numbers[ascending].tolist(),
        "order": order.tolist(),
        "samples": {
            "names": [sample.name for sample in samples],
            "sizes": [sample.size_bytes for sample in samples],
            "labels": [-1 if sample.label is None else sample.label for sample in samples],
            "versions": versions[0] if len({*versions}) == 1 else versions,
            "references": [sample.reference for sample in samples],
        },
    }


def _at(samples: Sequence[Sample], places: Int64Array) -> list[Sample]:
    """Access samples in ascending order, in which they may be stored; return them as asked for."""
    order = np.argsort(places)
    found: list[Any] = [None] * len(places)
    for at, place in zip(order.tolist(), places[order].tolist(), strict=True):
        found[at] = samples[place]
    return found


def _listing(content: Document, folder: Location) -> Listing:
    """Return the samples of a task, numbered as in the task."""
    samples, rows = content["samples"], content.get("rows")
    versions = samples["versions"]
    names, references = samples["names"], samples["references"]
    sizes, labels = np.array(samples["sizes"], np.int64), np.array(samples["labels"], np.int32)
    reader: SampleReader
    if rows is None:
        reader = open_reader_once(json.dumps(content["reader"]))
    else:
        reader = RowsInStore(folder, rows, content["kinds"])
        references = ComputedReferences(len(names), lambda at: {"row": at})
    columns = [
        names,
        sizes,
        labels,
        references,
        *([versions] if isinstance(versions, list) else []),
    ]
    if len({*map(len, columns)}) > 1 or (sizes < 0).any():
        raise ValueError("its samples have different numbers of names, sizes and references")
    if not all(isinstance(name, str) for name in names):
        raise TypeError
    return Listing(
        NumberedSamples(
            names,
            sizes,
            labels=labels,
            version=np.array(versions, np.int64) if isinstance(versions, list) else versions,
            references=references,
        ),
        reader,
        class_names_in_json(content["class_names"]),
        tfds=content["tfds"],
    )


@lru_cache(maxsize=2)
def open_reader_once(document: str) -> SampleReader:
    """Open a reader, or return the one that this process has for earlier tasks."""
    return open_reader(json.loads(document))
