"""`recordsmith.append`: add records to a dataset, completely or not at all.

New shards are written under temporary names. Then all shards are renamed for their new number, and
the manifest is replaced last. A note in the hidden folder lists all names until then, so that the
same command finishes an interrupted job. The manifest records what was appended, so that it is not
appended twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recordsmith.building import (
    WRITING_THREADS,
    check_folder,
    clean_up_after_kill,
    finish_publishing,
    is_valid_file_name,
    locked_folder,
    names_in,
    note_files,
    publish_dataset,
    writing,
)
from recordsmith.dataset import (
    BEGUN_NAME,
    LABEL_MAP_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    Manifest,
    publish_note_location,
    read_manifest,
    read_publish_note,
)
from recordsmith.dataset.labels import read_labels
from recordsmith.dataset.locate import Paths, as_places, locate
from recordsmith.errors import OptionError, RecordsmithError
from recordsmith.examining.verification.manifest_check import check_labels
from recordsmith.example import Schema
from recordsmith.reshaping.append_checks import (
    append_history,
    check_schemas_match,
    merge_class_names,
    merge_manifest,
    renumber,
    repeated_shard_notices,
)
from recordsmith.reshaping.copies import ShardCopies
from recordsmith.reshaping.inputs import (
    Inputs,
    find_inputs,
    fingerprint,
    fingerprint_bytes,
    open_records,
)
from recordsmith.reshaping.plan import ReshardOptions, ReshardPlan, make_plan
from recordsmith.sources import detect
from recordsmith.stores import NOTE_BYTES, Location, PlaceLike, as_folder, read_document
from recordsmith.summaries import Report
from recordsmith.work import Progress, Work, thread_count

_VERSION = 1  # changes if the same inputs give other shards


@dataclass(repr=False)
class AppendReport(Report):
    """The report of `append`.

    folder: the dataset.
    appended_count: number of appended records.
    record_count, shard_count: numbers of records and shards after the job.
    splits: number of records by split after the job.
    renamed_count: number of renamed shards.
    notices: about the appended records.
    is_new: False if these records were appended before.
    """

    folder: Location
    appended_count: int = 0
    record_count: int = 0
    shard_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    renamed_count: int = 0
    notices: tuple[str, ...] = ()
    is_new: bool = True

    @classmethod
    def from_manifest(
        cls, folder: Location, manifest: Manifest, step: Mapping[str, Any]
    ) -> AppendReport:
        """Return the report of one step in the history of a dataset."""
        return cls(
            folder,
            appended_count=int(step.get("records", 0)),
            record_count=manifest.record_count,
            shard_count=manifest.shard_count,
            splits=manifest.record_counts,
            renamed_count=int(step.get("renamed", 0)),
            notices=tuple(map(str, step.get("notices", ()))),
        )


def append(
    paths: Paths,
    out: PlaceLike,
    *,
    split: str | None = None,
    again: bool = False,
    allow_missing: bool = False,
    lock: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> AppendReport:
    """Add records to a dataset as new shards.

    Copies the records of each file to a shard with the compression of the dataset. Renames all
    shards of a split, because their names contain the number of shards, and updates schema, class
    names and manifest. Processes that are reading the dataset must open it again.

    Args:
        paths: a file, a folder, a glob pattern, or a list of these.
        out: the folder of a dataset with a manifest.
        split: the split to add the records to; a new name creates one. None for the split of each
            file.
        again: append files even if they were appended before.
        allow_missing: append records that lack features, such as labels, that all records of the
            dataset have.
        lock: fail on file systems without locks. With False, the job runs there without a lock;
            make sure that no other job changes the dataset.
        threads: number of threads; None for one per processor, at most 8.
        progress: called as `progress(done, total)` with bytes.

    Returns:
        A report. Files that were appended before are skipped, unless `again` is set; rerun an
        interrupted job to finish it. Files are the same if name, size and checksum or modification
        time are equal.

    Raises:
        OptionError: `out` is not a dataset with a manifest; classes or kinds of features differ;
            features are missing; shards are not numbered; the folder cannot be locked; `paths` is
            data that was not packed yet.
        SourceError: the inputs have no records.
        CorruptDataError: an input is damaged, a shard is missing, or a file of class names
            contradicts the manifest. The dataset is unchanged.
        FileAccessError: a file cannot be read or written, or the disk is full.
    """
    folder = as_folder(out)
    check_folder(folder)
    if split is not None and (not isinstance(split, str) or not is_valid_file_name(split)):
        raise OptionError(option="split", value=split, expected="part of a valid file name")
    if not folder.is_folder():
        raise OptionError(
            f"no such folder: {folder}",
            option="out",
            value=str(folder),
            remedy="`recordsmith reshard` creates a dataset.",
        )
    work = Work(thread_count(threads, most=WRITING_THREADS), progress)
    try:
        inputs = find_inputs(paths, None, folder)
    except OptionError as error:
        if error.option == "paths":
            _check_packed(paths, folder)
        raise
    if split is not None:
        inputs = _of_one_split(inputs, split)
    with locked_folder(folder, needs_lock=lock) as notices:
        report = _Job(inputs, folder, work, allow_missing).run(again=again)
    report.notices += notices
    return report


@dataclass
class _Job:
    """One call of `append`, with the folder locked."""

    inputs: Inputs
    folder: Location
    work: Work
    allow_missing: bool

    def run(self, *, again: bool) -> AppendReport:
        folder = self.folder
        manifest = read_manifest(folder)
        note = read_publish_note(folder)
        if note is not None and note.base:
            if note.fingerprint == self._fingerprint(note.base):
                # it was interrupted while it published its shards
                with writing(
                    folder, note.fingerprint, (), earlier=manifest, base=note.base
                ) as claimed:
                    finished = finish_publishing(claimed, note)
                return AppendReport.from_manifest(folder, finished, append_history(finished)[-1])
            # another append, which has not renamed anything or is complete
            if manifest is not None and folder.store.can_rename:
                publish_note_location(folder).delete()
        manifest = self._checked(manifest)
        for step in append_history(manifest):
            if not again and step.get("fingerprint") == self._fingerprint(str(step.get("base"))):
                report = AppendReport.from_manifest(folder, manifest, step)
                report.is_new = False
                clean_up_after_kill(folder)
                return report
        files: list[str] = []
        base = fingerprint_bytes(read_document(folder / MANIFEST_NAME, NOTE_BYTES))
        job = self._fingerprint(base)
        with writing(folder, job, files, earlier=manifest, base=base) as claimed:
            new = self._build(claimed, manifest, base, files)
        return AppendReport.from_manifest(folder, new, append_history(new)[-1])

    def _checked(self, manifest: Manifest | None) -> Manifest:
        """Return the manifest if the dataset is complete."""
        located = locate(self.folder)
        located.check_whole()
        if manifest is None:
            raise OptionError(
                f"{self.folder} has no {MANIFEST_NAME}",
                option="out",
                value=str(self.folder),
                remedy="Rewrite the dataset with `recordsmith reshard` and append to the copy.",
            )
        places = [self.folder / name for name in (LABELS_NAME, LABEL_MAP_NAME)]
        overwritten = {str(place) for place in places if place.exists()}
        for wrong in check_labels(located):
            if wrong.path in overwritten:
                wrong.advise("Nothing was appended. `recordsmith verify` lists all defects.")
                raise wrong
        return manifest

    def _fingerprint(self, base: str) -> str:
        """Return a hash of the inputs and of the dataset they are appended to."""
        inputs = self.inputs
        document: list[Any] = [_VERSION, base, inputs.identities(), inputs.class_names]
        return fingerprint(document)

    def _build(self, folder: Location, manifest: Manifest, base: str, files: list[str]) -> Manifest:
        """Write the new shards, whose names are stored in `files`, and publish them."""
        inputs, work = self.inputs, self.work
        old_names = manifest.class_names
        if old_names is None:
            old_names = read_labels(folder)
        names, more = merge_class_names(old_names, inputs.class_names, folder)
        known = Schema.merged(list(inputs.schemas.values()))
        check_schemas_match(manifest.schema, known, allow_missing=self.allow_missing)
        job = self._fingerprint(base)
        records, notices = open_records(inputs, folder, work)
        options = ReshardOptions(keep_shards=True, compression=manifest.compression)
        plan, renamed = self._with_names(manifest, make_plan(options, inputs, records, None))
        files[:] = [shard.file for shard in plan.shards]
        note_files(folder, [*files, *renamed.values()])
        work.total += plan.size_bytes
        copies = ShardCopies(
            folder, job, plan.compression, records, plan.spans(), inputs.versions(), plan.pools
        )
        results = copies.run(plan.shards, work)
        schema = Schema.merged(result.schema for result in results)
        notices += [*plan.notices, *more]
        notices += check_schemas_match(manifest.schema, schema, allow_missing=self.allow_missing)
        notices += repeated_shard_notices(manifest, results)
        step = {
            "fingerprint": job,
            "base": base,
            "files": list(inputs.names),
            "records": sum(result.record_count for result in results),
            "renamed": len(renamed),
            "notices": notices,
        }
        splits = [shard.split for shard in plan.shards]
        added = list(zip(splits, results, strict=True))
        new = merge_manifest(manifest, added, renamed, names, step)
        publish_dataset(
            folder,
            job,
            new,
            has_label_map=(folder / LABEL_MAP_NAME).exists(),
            replaced=set(),
            renamed=renamed,
            base=base,
        )
        return new

    def _with_names(
        self, manifest: Manifest, plan: ReshardPlan
    ) -> tuple[ReshardPlan, dict[str, str]]:
        """Return the plan with final names, and the new names of existing shards."""
        there = {
            split: [shard.file for shard in shards] for split, shards in manifest.splits.items()
        }
        counts = Counter(shard.split for shard in plan.shards)
        renamed, added = renumber(there, counts, manifest.compression)
        self._check_unused(
            {*renamed.values(), *(name for names in added.values() for name in names)}
        )
        left = {split: iter(names) for split, names in added.items()}
        shards = tuple(replace(shard, file=next(left[shard.split])) for shard in plan.shards)
        return replace(plan, shards=shards), renamed

    def _check_unused(self, names: set[str]) -> None:
        note = read_publish_note(self.folder, BEGUN_NAME)  # of this job, before it was interrupted
        there = set(names_in(self.folder)) - set(note.removed if note is not None else ())
        for name in sorted(there & names):
            raise OptionError(
                f"{self.folder / name} is not part of the dataset and has the name of a new shard",
                option="out",
                value=str(self.folder),
                remedy="Move it to another folder.",
            )


def _check_packed(paths: Paths, out: Location) -> None:
    """Raise OptionError if one of the paths is a folder of data that can be packed."""
    for place in as_places(paths):
        try:
            candidate = detect(place).reading
        except RecordsmithError:
            continue
        if candidate.format != "shards" and candidate.confidence:
            raise OptionError(
                f"{place} has no records yet but data to pack: {candidate.what}",
                option="paths",
                value=str(place),
                remedy=f"Pack it with the options of the dataset first: `recordsmith pack {place} "
                f"NEW --like {out}`, then append NEW. `recordsmith append --pack` does both.",
            ) from None


def _of_one_split(inputs: Inputs, split: str) -> Inputs:
    for shard in inputs.shards:
        shard.split = split
    schemas = {} if inputs.schema is None else {split: inputs.schema}
    return replace(inputs, splits=(split,), schemas=schemas)
