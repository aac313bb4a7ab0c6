"""`recordsmith.edit_in_place`: remove or replace records of a dataset, completely or not at all.

Only the shards that have such records are written again, under their names; the others stay the
same files. As in `append`, everything new is written first, a note in the hidden folder says what a
killed job was about to do, and the manifest is replaced last.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.checking import key_of
from recordsmith.dataset import (
    LABEL_MAP_NAME,
    MANIFEST_NAME,
    ClassNames,
    FindingsFile,
    KeypointClasses,
    Layer,
    Manifest,
    Paths,
    Shard,
    ShardEntry,
    ShardPlan,
    integer_positions,
    join_keypoint_classes,
    locate,
    parse_where,
    read_begun_note,
    read_findings,
    read_manifest,
)
from recordsmith.format.example import (
    ColumnDecoder,
    FeatureSpec,
    RaggedArray,
    Schema,
    keys,
)
from recordsmith.format.example.spans import select_features
from recordsmith.stores import (
    NOTE_BYTES,
    Location,
    PlaceLike,
    as_folder,
    as_location,
    read_document,
)
from recordsmith.support.buffers import BytesLike, Int64Array, offsets_from_lengths
from recordsmith.support.errors import OptionError, option
from recordsmith.support.summaries import Report
from recordsmith.support.words import first_of
from recordsmith.support.work import Progress, WorkerPool, thread_count
from recordsmith.writing.building import publishing
from recordsmith.writing.building.claims import note_files
from recordsmith.writing.building.fingerprints import fingerprint, fingerprint_bytes
from recordsmith.writing.building.shards import ShardResult, survey_shard
from recordsmith.writing.layers.files import check_apart, layer_file, layers_over, write_layer_file
from recordsmith.writing.reshaping.append import (
    check_class_files,
    check_schemas_match,
    merge_class_names,
)
from recordsmith.writing.reshaping.copies import CopyJob
from recordsmith.writing.reshaping.inputs import (
    InputRecords,
    Inputs,
    find_inputs,
    open_records,
)
from recordsmith.writing.reshaping.without import (
    Without,
    check_findings_options,
    found_positions,
)

_VERSION = 1  # changes if the same command gives other bytes
_NAMED = 5
_AT_ONCE = 1 << 16  # records
_MAX_PLACES_TEXT = 1 << 20  # of all changes in the history
_MAX_REASON = 4096
_ANY_COUNT = 1 << 62
_NONE = np.empty(0, np.int64)
_NAMING_FILES = ("account", "skipped")  # of the source, also those of records that are gone


@dataclass(repr=False)
class EditReport(Report):
    """The report of `edit_in_place`.

    folder: the dataset.
    removed_count, replaced_count: numbers of removed and replaced records.
    record_count, shard_count: numbers of records and shards after the job.
    rewritten_count: number of shards that were written again.
    splits: number of records by split after the job.
    notices: about the records.
    is_new: False if nothing had to be changed.
    """

    folder: Location
    removed_count: int = 0
    replaced_count: int = 0
    record_count: int = 0
    shard_count: int = 0
    rewritten_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    is_new: bool = True

    @classmethod
    def from_manifest(
        cls, folder: Location, manifest: Manifest, change: Mapping[str, Any], *, is_new: bool = True
    ) -> EditReport:
        """Return the report of a change in the history of a dataset."""
        return cls(
            folder,
            removed_count=int(change.get("removed", 0)),
            replaced_count=int(change.get("replaced", 0)),
            record_count=manifest.record_count,
            shard_count=manifest.shard_count,
            rewritten_count=int(change.get("shards", 0)),
            splits=manifest.record_counts,
            notices=tuple(map(str, change.get("notices", ()))),
            is_new=is_new,
        )


def edit_in_place(
    path: PlaceLike,
    *,
    without: Without | None = None,
    checks: str | Sequence[str] = (),
    keep: str = "first",
    where: str | None = None,
    replace: Paths | None = None,
    on: str | None = None,
    reason: str = "",
    time: bool = False,
    allow_empty: bool = False,
    again: bool = False,
    lock: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> EditReport:
    """Remove or replace records of a dataset, in its folder.

    Writes only the shards that have such records, each under its name; a shard without records is
    an empty file then. The positions of the records behind a removed one change, so what names
    records by position, such as states of loaders, must be made again. Processes that are reading
    the dataset must open it again.

    Args:
        path: the folder of a dataset with a manifest.
        without: records to remove: their positions in the dataset, or those of a file of findings
            such as `@findings.jsonl`, which must be about the dataset as it is.
        checks, keep: which records of such a file, as in `reshard`.
        where: only records that match, such as "image/class/label in (1, 2)". The others are
            removed.
        replace: TFRecord files with new records, each of which replaces one.
        on: how a record or row finds its partner: a feature that both have. A new record replaces
            the one with the same value.
        reason: text for the history in the manifest: why.
        time: write the current time into the history. The environment variable SOURCE_DATE_EPOCH
            sets another one.
        allow_empty: allow a split or a class to lose its last record.
        again: remove these positions even if the same command has done so before.
        lock: fail on file systems without locks. With False, the job runs there without a lock;
            make sure that no other job changes the dataset.
        threads: number of threads; None for one per processor, at most 8.
        progress: called as `progress(done, total)` with bytes.

    Returns:
        A report. Nothing is written if no record has to be removed or replaced, or if the same
        command with positions or findings has made an earlier change, as when it runs twice.

    Raises:
        OptionError: none or several of `without`, `where` and `replace` are given; a position is
            beyond the end; the findings are about another dataset; a split or class would be empty;
            a value of `on` is missing, is in several records or in none of the dataset; classes or
            kinds of features differ; another command that changes the dataset was interrupted.
        CorruptDataError: a shard or a file of `replace` is damaged. The dataset is unchanged.
        FileAccessError: a file cannot be read or written, or the disk is full.

    Example:
        report = rs.edit_in_place("out", where='image/class/text != "cat"')
        print(report.removed_count, report.rewritten_count)
    """
    folder = as_folder(path)
    publishing.check_folder(folder)
    if not folder.is_folder():
        raise OptionError(f"no such folder: {folder}", option="path", value=str(folder))
    command = _Command(without, checks, keep, where, replace, on, reason, allow_empty, again)
    command.check()
    workers = WorkerPool(thread_count(threads, most=publishing.WRITING_THREADS), progress)
    with publishing.locked_folder(folder, needs_lock=lock) as notices:
        report = _InPlaceJob(folder, command, time, workers).run()
    report.notices += notices
    return report


@dataclass
class _Command:
    """What is to be done, as described in `edit_in_place`."""

    without: Without | None
    checks: str | Sequence[str]
    keep: str
    where: str | None
    replace: Paths | None
    on: str | None
    reason: str
    allow_empty: bool
    again: bool

    def check(self) -> None:
        given = [self.without is not None, self.where is not None, self.replace is not None]
        if sum(given) != 1:
            raise OptionError(
                "nothing to remove or to replace" if not any(given) else "more than one change",
                option="without",
                remedy=f"Pass one of {option('without')}, {option('where')} and "
                f"{option('replace')}.",
            )
        check_findings_options(self.without, self.checks, self.keep)
        if len(self.reason) > _MAX_REASON:
            raise OptionError(
                option="reason",
                value=self.reason,
                expected=f"at most {_MAX_REASON:,} characters",
            )
        if (self.replace is None) != (self.on is None):
            raise OptionError(
                f"{option('replace')} and {option('on')} belong together",
                option="on",
                value=self.on,
                remedy="Name the feature that both have, such as image/filename.",
            )

    def positions(self, manifest: Manifest) -> Int64Array:
        """Return the positions of records to remove, ascending."""
        count = manifest.record_count
        if isinstance(self.without, str):
            findings = read_findings(self.without, "without")
            findings.check_dataset(manifest.digest)
            return self.found(findings, count)
        assert self.without is not None
        try:
            if len(self.without) and np.min(np.asarray(self.without)) < 0:
                raise IndexError("a position is negative")
            return np.unique(integer_positions(self.without, count))
        except (TypeError, IndexError) as error:
            expected = f"positions below {count:,}"
            raise OptionError(
                f"{option('without')}: {error}", option="without", expected=expected
            ) from None

    def found(self, findings: FindingsFile, count: int) -> Int64Array:
        return found_positions(findings, count, self.checks, self.keep)

    def identity(self, base: str, folder: Location) -> str:
        """Identify the command, without reading records; only the note of a job has this."""
        chosen: Any = None
        if isinstance(self.without, str):
            file = as_location(self.without.removeprefix("@"))
            chosen = fingerprint_bytes(read_document(file, NOTE_BYTES))
        elif self.without is not None:
            chosen = np.unique(self.without).tolist()
        elif self.replace is not None:
            chosen = find_inputs(self.replace, None, folder).identities()
        options = [[*self.checks], self.keep, self.where, self.on]
        return fingerprint([_VERSION, base, chosen, options])


@dataclass
class _Changed:
    """What changes in one shard.

    gone: bool, (records,): the records that are removed or replaced.
    replaced: the position of a new record, by row of the record that it replaces.
    """

    gone: npt.NDArray[np.bool_]
    replaced: dict[int, int] = field(default_factory=dict)


_Changes: TypeAlias = Mapping[int, _Changed]
"""By number of the shard, ascending."""


@dataclass
class _InPlaceJob:
    """One call of `edit_in_place`, with the folder locked."""

    folder: Location
    command: _Command
    time: bool
    workers: WorkerPool

    def run(self) -> EditReport:
        finished = self._finish_interrupted()
        if finished is not None:
            return EditReport.from_manifest(self.folder, finished, finished.changes[-1])
        manifest = read_manifest(self.folder)
        inputs = find_inputs(self.folder, None, None)
        if manifest is None:
            raise OptionError(
                f"{self.folder} has no {MANIFEST_NAME}",
                option="path",
                value=str(self.folder),
                remedy="Write the records that stay to a new dataset, with `recordsmith reshard`.",
            )
        if (done := self._find_done(manifest)) is not None:
            publishing.clean_up_after_kill(self.folder)
            return EditReport.from_manifest(self.folder, manifest, done, is_new=False)
        check_class_files(self.folder, locate(self.folder))
        new, names, points, notices = self._new_inputs(inputs)
        changes = self._find(manifest, inputs, new)
        if not changes:
            publishing.clean_up_after_kill(self.folder)
            return EditReport.from_manifest(self.folder, manifest, {}, is_new=False)
        if not self.command.allow_empty:
            _check_not_empty(inputs, changes, new)
        base = fingerprint_bytes(read_document(self.folder / MANIFEST_NAME, NOTE_BYTES))
        places = _positions(inputs, changes)
        partners = None
        if new is not None:
            replaced = [(n, [*changed.replaced.items()]) for n, changed in changes.items()]
            partners = [new.identities(), replaced]
        job = _fingerprint(base, places, partners)
        step: dict[str, Any] = {"command": "edit --in-place", "fingerprint": job, "base": base}
        step |= self._history(manifest, places)
        step["notices"] = notices
        files = [inputs.shards[number].location.name for number in changes]
        command = self.command.identity(base, self.folder)
        with publishing.claimed_folder(
            self.folder,
            job,
            files,
            earlier=manifest,
            base=base,
            command=command,
            replaced=files,
        ) as claimed:
            made = self._build(claimed, manifest, inputs, new, changes, step)
            if new is not None:  # the records may not fit a table that was packed
                made = dataclasses.replace(
                    made, class_names=names, keypoint_classes=points, arrow_schema=None
                )
            publishing.publish_dataset(
                claimed,
                made,
                has_label_map=(claimed / LABEL_MAP_NAME).exists(),
                base=base,
                command=command,
                written=files,
            )
        return EditReport.from_manifest(self.folder, made, made.changes[-1])

    def _find_done(self, manifest: Manifest) -> Mapping[str, Any] | None:
        """Return an earlier change by this command: its positions are those of others now."""
        without, changes = self.command.without, manifest.changes
        if without is None or self.command.again:
            return None
        if isinstance(without, str):
            findings = read_findings(without, "without")
            changes = [one for one in changes if one.get("before") == findings.head.dataset]
            positions = self.command.found(findings, _ANY_COUNT) if changes else _NONE
        else:
            try:
                positions = np.unique(np.asarray(without, np.int64))
            except (TypeError, ValueError, OverflowError):  # refused later
                return None
        places = _ranges_text(positions)
        for change in changes:
            if _fingerprint(str(change.get("base")), places) == change.get("fingerprint"):
                return change
        return None

    def _finish_interrupted(self) -> Manifest | None:
        """Finish this command if it was killed while it published its shards."""
        note = read_begun_note(self.folder)
        if note is None or not note.base or not publishing.is_publishing(self.folder, note):
            return None
        if note.command != self.command.identity(note.base, self.folder):
            raise publishing.interrupted_error(self.folder)
        return publishing.finish_interrupted(self.folder, note)

    def _new_inputs(
        self, inputs: Inputs
    ) -> tuple[Inputs | None, ClassNames | None, KeypointClasses, list[str]]:
        """Return the new records, what their names and those of the dataset are together, and
        notices.
        """
        if self.command.replace is None:
            return None, None, {}, []
        new = find_inputs(self.command.replace, None, self.folder)
        names, notices = merge_class_names(
            inputs.class_names, new.class_names, self.folder, "the new records"
        )
        points = join_keypoint_classes(
            inputs.keypoint_classes, new.keypoint_classes, "the new records"
        )
        return new, names, points, notices

    def _history(self, manifest: Manifest, places: str) -> dict[str, Any]:
        """Return what the history says of the change, besides counts."""
        document: dict[str, Any] = {}
        known = sum(len(str(change.get("positions", ""))) for change in manifest.changes)
        if known + len(places) <= _MAX_PLACES_TEXT:
            document["positions"] = places
        if self.command.reason:
            document["reason"] = self.command.reason
        if (epoch := os.environ.get("SOURCE_DATE_EPOCH")) or self.time:
            try:
                when = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
            except (ValueError, OverflowError, OSError):
                raise OptionError(
                    f"the environment variable SOURCE_DATE_EPOCH is {epoch!r:.80}",
                    option="time",
                    value=epoch,
                    expected="seconds since 1970, a whole number",
                ) from None
            document["time"] = when.isoformat(timespec="seconds")
        return document

    # -- which records ---------------------------------------------------------------------------

    def _find(self, manifest: Manifest, inputs: Inputs, new: Inputs | None) -> _Changes:
        shards = inputs.shards
        if self.command.without is not None:
            starts, positions = _starts(inputs), self.command.positions(manifest)
            owners = np.searchsorted(starts, positions, side="right") - 1
            changes = {}
            for number in np.unique(owners).tolist():
                gone = np.zeros(shards[number].record_count, np.bool_)
                gone[positions[owners == number] - starts[number]] = True
                changes[number] = _Changed(gone)
            return changes
        self.workers.total += inputs.size_bytes
        if new is not None:
            return self._find_partners(inputs, new)
        assert self.command.where is not None
        where = parse_where(self.command.where)
        if inputs.schema is not None:
            where.check(inputs.schema)

        def unmatched(shard: Shard) -> _Changed:
            gone = np.zeros(shard.record_count, np.bool_)
            for block in shard.blocks():
                gone[block.position :][: len(block)] = ~np.asarray(where.matches(block), np.bool_)
                self.workers.advance(len(block.frames()))
            return _Changed(gone)

        found = self.workers.each(unmatched, shards)
        where.check_features_found()
        return {number: changed for number, changed in enumerate(found) if changed.gone.any()}

    def _find_partners(self, inputs: Inputs, new: Inputs) -> _Changes:
        """Find the record that each new one replaces."""
        on = self.command.on
        assert on is not None
        wanted: dict[Any, tuple[int, bytes]] = {}
        for position, payload in _payloads(new.shards):
            value = _identity_in(payload, on)
            if value is None or value in wanted:
                what = "no value" if value is None else f"{value!r:.80}, as another one,"
                raise OptionError(
                    f"record {position:,} of the new ones has {what} in {on!r}",
                    option="on",
                    value=on,
                    expected="a feature that each record has, with different values",
                )
            wanted[value] = position, bytes(payload)
        found: dict[Any, str] = {}
        changes: dict[int, _Changed] = {}
        for number, shard in enumerate(inputs.shards):
            changed = _Changed(np.zeros(shard.record_count, np.bool_))
            for row, payload in _payloads([shard]):
                value = _identity_in(payload, on)
                if value not in wanted:
                    continue
                place = f"{shard.location}, record {row:,}"
                if value in found:
                    raise OptionError(
                        f"{found[value]} and {place} have the same value: {value!r:.80}",
                        option="on",
                        value=on,
                        expected="a feature that identifies a record",
                    )
                found[value] = place
                position, other = wanted[value]
                if payload != b"".join([other, *_layer_records(other, shard.layers)]):
                    changed.gone[row] = True
                    changed.replaced[row] = position
            if changed.replaced:
                changes[number] = changed
            self.workers.advance(inputs.infos[number].size_bytes)
        lacking = [f"{value!r:.80}" for value in wanted if value not in found]
        if lacking:
            raise OptionError(
                f"{len(lacking):,} of {len(wanted):,} new records have no record to replace: "
                f"{first_of(lacking, _NAMED)}",
                option="on",
                value=on,
                remedy="Leave them out, or add them with `recordsmith append`.",
            )
        return changes

    # -- writing ---------------------------------------------------------------------------------

    def _build(
        self,
        folder: Location,
        manifest: Manifest,
        inputs: Inputs,
        new: Inputs | None,
        changes: _Changes,
        step: dict[str, Any],
    ) -> Manifest:
        """Write the shards that change, and return the manifest that has them."""
        part = _joined(inputs, [*changes], new)
        records, more = open_records(part, folder, self.workers)
        first_new = int(records.starts[len(changes)])

        def kept(number: int, local: int) -> Int64Array:
            changed = changes[number]
            positions = np.arange(records.starts[local], records.starts[local + 1])
            stays = ~changed.gone
            for row, position in changed.replaced.items():
                positions[row], stays[row] = first_new + position, True
            return positions[stays]

        plan, numbers = [], {}
        for local, (number, changed) in enumerate(changes.items()):
            shard, count = inputs.shards[number], int(np.count_nonzero(~changed.gone))
            count += len(changed.replaced)
            plan.append(ShardPlan(shard.location.name, shard.split, 0, count))
            numbers[shard.location.name] = number, local
        note_files(folder, [*numbers])
        self.workers.total += sum(records.sizes)
        job = CopyJob(step["fingerprint"], manifest.compression, part.versions(), part.splits)
        results = job.run(
            plan, lambda shard: _cut(kept(*numbers[shard.file])), records, folder, self.workers
        )
        entries = {result.file: result.entry for result in results}
        splits = {
            split: tuple(entries.get(shard.file, shard) for shard in shards)
            for split, shards in manifest.splits.items()
        }
        layers, written = manifest.layers, dict(zip(changes, results, strict=True))
        if layers:
            changed_layers = _ChangedLayers(folder, layers, splits, step["fingerprint"])
            layers = changed_layers.write(
                inputs, changes, written, records, first_new, self.workers
            )
        schemas = _schemas(manifest, inputs, written)
        if new is not None:
            schema = Schema.merged(map(survey_shard, new.shards))
            check_schemas_match(
                manifest.schema, schema, allow_missing=False, what="new", layers=layers
            )
            layers = layers_over(layers, schema)
        gone = sum(int(np.count_nonzero(changed.gone)) for changed in changes.values())
        replaced = sum(len(changed.replaced) for changed in changes.values())
        step |= {"removed": gone - replaced, "replaced": replaced, "shards": len(results)}
        step |= {
            "before": manifest.digest,
            "after": dataclasses.replace(manifest, splits=splits).digest,
        }
        step["notices"] = [*step["notices"], *more]
        made = manifest.changed(
            step,
            splits=splits,
            schema=Schema.merged([*schemas.values()]),
            schemas=schemas,
            layers=layers,
        )
        removed = _NAMING_FILES if gone else ()
        left = {key: value for key, value in made.provenance.items() if key not in removed}
        return dataclasses.replace(made, provenance=left)


@dataclass
class _ChangedLayers:
    """The layers of a dataset whose shards in `splits` are written again by a job."""

    folder: Location
    layers: Sequence[Layer]
    splits: Mapping[str, Sequence[ShardEntry]]
    job: str

    def write(
        self,
        inputs: Inputs,
        changes: _Changes,
        written: dict[int, ShardResult],
        records: InputRecords,
        first_new: int,
        workers: WorkerPool,
    ) -> tuple[Layer, ...]:
        """Write the files of the written shards; return the layers with them.

        The schemas of `written` get the features of the layers. The new records are those of
        `records` from the position `first_new` on.
        """
        entries = [entry for shards in self.splits.values() for entry in shards]
        old = {n: entry for n in changes if (entry := inputs.shards[n].entry) is not None}
        keys = {key for layer in self.layers for key in layer.shards} - {
            entry.key for entry in old.values()
        }
        files: dict[tuple[int, tuple[int, int]], tuple[int, Shard]] = {}  # by layer and shard
        for number, entry in old.items():
            having = [at for at, layer in enumerate(self.layers) if entry.key in layer.shards]
            for at, part in zip(having, inputs.shards[number].layers, strict=True):
                files[at, written[number].entry.key] = number, part
                keys.add(written[number].entry.key)
                workers.total += part.size_bytes
        check_apart(self.folder, entries, keys)

        def write(item: tuple[int, tuple[int, Shard]]) -> tuple[ShardEntry, Schema]:
            at, (number, part) = item
            new = _payloads_at(records, [first_new + p for p in changes[number].replaced.values()])
            selected = (own for payload in new for own in _layer_records(payload, [part]))
            return write_layer_file(
                self.folder / self.layers[at].folder,
                layer_file(written[number].entry, self.job),
                _pieces(part, changes[number], selected, workers),
                part.features,
            )

        results = workers.each(write, [(at, file) for (at, _), file in files.items()])
        made = [dict(layer.shards) for layer in self.layers]
        for entry in old.values():
            for shards in made:
                shards.pop(entry.key, None)
        for ((at, key), (number, _)), (entry, schema) in zip(files.items(), results, strict=True):
            made[at][key] = entry
            covered = written[number].schema.covered(schema)
            written[number] = dataclasses.replace(written[number], schema=covered)
        layers = []
        for layer, shards in zip(self.layers, made, strict=True):
            names = [entry.file for key, entry in shards.items() if entry != layer.shards.get(key)]
            if names:
                publishing.move_new_files(self.folder / layer.folder, names)
            ordered = {entry.key: shards[entry.key] for entry in entries if entry.key in shards}
            layers.append(msgspec.structs.replace(layer, shards=ordered))
        return tuple(layers)


def _pieces(
    part: Shard, changed: _Changed, new: Iterator[bytes], workers: WorkerPool
) -> Iterator[tuple[bytes, Int64Array]]:
    """Yield the Examples of a layer that stay, and the new ones where records are replaced."""
    for block in part.blocks():
        kept = [
            next(new) if row in changed.replaced else payload
            for row, payload in enumerate(block.payloads(), block.position)
            if row in changed.replaced or not changed.gone[row]
        ]
        yield b"".join(kept), offsets_from_lengths([*map(len, kept)])
        workers.advance(len(block.frames()))


def _layer_records(record: BytesLike, layers: Iterable[Shard]) -> Iterator[bytes]:
    """Yield what shards of layers have for a record that counts as it is."""
    for layer in layers:
        yield select_features(record, layer.features.__contains__, [1])


def _payloads_at(records: InputRecords, positions: Sequence[int]) -> Iterator[memoryview]:
    if positions:
        for located in records.blocks(np.array(positions, np.int64)):
            yield from located.block.payloads()


def _fingerprint(base: str, places: str, partners: Any = None) -> str:
    return fingerprint([_VERSION, base, places, partners])


def _ranges_text(positions: npt.NDArray[Any]) -> str:
    """Return ascending positions as `--at` takes them: 5,9-12."""
    if not len(positions):
        return ""
    ends = np.flatnonzero(np.diff(positions) != 1)
    firsts, lasts = positions[[0, *(ends + 1)]], positions[[*ends, -1]]
    pairs = zip(firsts.tolist(), lasts.tolist(), strict=True)
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in pairs)


def _starts(inputs: Inputs) -> Int64Array:
    return offsets_from_lengths([shard.record_count for shard in inputs.shards])


def _positions(inputs: Inputs, changes: _Changes) -> str:
    """Return the positions of the records that are removed or replaced."""
    starts = _starts(inputs)
    found = [np.flatnonzero(changed.gone) + starts[n] for n, changed in changes.items()]
    return _ranges_text(np.concatenate(found))


def _cut(positions: Int64Array) -> Iterator[Int64Array]:
    for start in range(0, len(positions), _AT_ONCE):
        yield positions[start : start + _AT_ONCE]


def _joined(inputs: Inputs, numbers: Sequence[int], new: Inputs | None) -> Inputs:
    """Return some of the shards without their layers, and behind them the new ones."""
    more = (new,) if new is not None else ()
    return dataclasses.replace(
        inputs,
        shards=sum((one.shards for one in more), tuple(inputs.shards[n].alone() for n in numbers)),
        infos=sum((one.infos for one in more), tuple(inputs.infos[n] for n in numbers)),
        compressions=sum(
            (one.compressions for one in more), tuple(inputs.compressions[n] for n in numbers)
        ),
    )


def _payloads(shards: Iterable[Shard]) -> Iterator[tuple[int, memoryview]]:
    """Yield all records with their positions."""
    return enumerate(
        payload for shard in shards for block in shard.blocks() for payload in block.payloads()
    )


def _identity_in(payload: memoryview, key: str) -> Any:
    """Return the values of a feature as something that can be compared; None without values."""
    value = key_of(payload, key)
    if value is None:
        return None
    values = value if isinstance(value, list) else value.tolist()
    return values[0] if len(values) == 1 else tuple(values)


# -- what the dataset has afterwards ---------------------------------------------------------------


def _schemas(
    manifest: Manifest, inputs: Inputs, written: Mapping[int, ShardResult]
) -> dict[str, Schema]:
    """Return the schema of each split; others than the written shards are read if necessary."""
    schemas: dict[str, Schema] = {}
    for split in manifest.splits:
        known = manifest.schema_of(split)
        numbers = [n for n, shard in enumerate(inputs.shards) if shard.split == split]
        after = [written[number].schema for number in numbers if number in written]
        if known is not None and after:
            before = [
                survey_shard(inputs.shards[number]) for number in numbers if number in written
            ]
            known = known.replacing(Schema.merged(before), Schema.merged(after))
        if known is None:
            rest = [
                survey_shard(inputs.shards[number]) for number in numbers if number not in written
            ]
            known = Schema.merged([*rest, *after])
        schemas[split] = known
    return schemas


def _check_not_empty(inputs: Inputs, changes: _Changes, new: Inputs | None) -> None:
    """Raise OptionError if a split or a class loses its last record."""

    def refuse(what: str) -> OptionError:
        remedy = f"Pass {option('allow_empty', True)} if that is wanted."
        return OptionError(what, option="allow_empty", value=False, remedy=remedy)

    left = dict.fromkeys(inputs.splits, 0)
    for number, shard in enumerate(inputs.shards):
        changed = changes.get(number)
        left[shard.split] += shard.record_count
        if changed is not None:
            left[shard.split] += len(changed.replaced) - int(np.count_nonzero(changed.gone))
    for split, count in left.items():
        if not count:
            raise refuse(f"split {split!r} would have no records")
    # the shards that change come first, as most classes are in each
    order = [*changes, *(number for number in range(len(inputs.shards)) if number not in changes)]
    for key in (keys.CLASS_LABEL, keys.OBJECT_LABEL):
        gone: set[int] = set()
        for number, changed in changes.items():
            gone |= _labels(inputs.shards[number], key, changed.gone)
        for shard in new.shards if new is not None and gone else ():
            gone -= _labels(shard, key)
        for number in order:
            if not gone:
                break
            kept = ~changes[number].gone if number in changes else None
            gone -= _labels(inputs.shards[number], key, kept)
        if gone:
            names = dict(enumerate(inputs.class_names or ()))
            shown = [names.get(label) or str(label) for label in sorted(gone)]
            raise refuse(f"no record would be left with {first_of(shown, _NAMED)} in {key!r}")


def _labels(shard: Shard, key: str, rows: npt.NDArray[np.bool_] | None = None) -> set[int]:
    """Return the labels of some records, or of all; none if the feature has no numbers."""
    found: set[int] = set()
    for block in shard.blocks():
        chosen = slice(None) if rows is None else rows[block.position :][: len(block)]
        decoder = ColumnDecoder({key: FeatureSpec(shape="ragged")})
        decoder.append(block.buffer, block.starts[chosen], block.lengths[chosen])
        column = decoder.finish(is_strict=False).get(key)
        values = column.values if isinstance(column, RaggedArray) else None
        if isinstance(values, np.ndarray) and values.dtype.kind == "i":
            found.update(np.unique(values).tolist())
    return found
