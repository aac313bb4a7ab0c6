"""`recordsmith.append`: add records to a dataset, completely or not at all.

New shards are written under temporary names. Then all shards are renamed for their new number, and
the manifest is replaced last. A note in the hidden folder lists all names until then, so that the
same command finishes an interrupted job. The manifest records what was appended, so that it is not
appended twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from recordsmith.checking import check_labels
from recordsmith.dataset import (
    LABEL_MAP_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    ClassNames,
    KeypointClasses,
    Layer,
    Located,
    Manifest,
    Paths,
    begun_location,
    is_valid_file_name,
    join_keypoint_classes,
    locate,
    read_begun_note,
    read_labels,
    read_manifest,
    shard_files_by_split,
)
from recordsmith.format.example import Schema
from recordsmith.format.wire import Compression
from recordsmith.stores import NOTE_BYTES, Location, PlaceLike, as_folder, read_document
from recordsmith.support.errors import OptionError, option, with_options
from recordsmith.support.summaries import Report
from recordsmith.support.words import first_of
from recordsmith.support.work import Progress, WorkerPool, thread_count
from recordsmith.writing.building import publishing
from recordsmith.writing.building.claims import note_files
from recordsmith.writing.building.fingerprints import fingerprint, fingerprint_bytes
from recordsmith.writing.building.shards import ShardResult
from recordsmith.writing.layers.files import check_apart, layers_over
from recordsmith.writing.reshaping.copies import CopyJob
from recordsmith.writing.reshaping.inputs import (
    Inputs,
    find_inputs,
    join_class_names,
    named_groups,
    open_records,
)
from recordsmith.writing.reshaping.plan import ReshardOptions, ReshardPlan, make_plan

_VERSION = 1  # changes if the same inputs give other shards
_NAMED = 5  # features in an error
_NUMBERED = re.compile(r"(.*?)([0-9]+)-of-([0-9]+)(.*)", re.DOTALL)
_PACK_FIRST = (
    "The dataset comes last: `recordsmith append PATH DATASET`. Pack other data first, with "
    "`recordsmith pack SOURCE NEW --like DATASET`, and append NEW."
)
_REWRITE = "Rewrite the dataset with `recordsmith reshard` and append to the copy."


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
            features are missing; shards are not numbered; the folder cannot be locked; `paths` has
            no TFRecord files.
        SourceError: the inputs have no records.
        CorruptDataError: an input is damaged, a shard is missing, or a file of class names
            contradicts the manifest. The dataset is unchanged.
        FileAccessError: a file cannot be read or written, or the disk is full.

    Example:
        report = rs.append("copy", "out")
        print(report.appended_count)
    """
    folder = as_folder(out)
    publishing.check_folder(folder)
    if split is not None and (not isinstance(split, str) or not is_valid_file_name(split)):
        raise OptionError(option="split", value=split, expected="part of a valid file name")
    if not folder.is_folder():
        raise OptionError(
            f"no such folder: {folder}",
            option="out",
            value=str(folder),
            remedy=f"`recordsmith pack` creates a dataset. {_PACK_FIRST}",
        )
    workers = WorkerPool(thread_count(threads, most=publishing.WRITING_THREADS), progress)
    with _advising_to_pack():
        inputs = find_inputs(paths, None, folder)
    if split is not None:
        for shard in inputs.shards:
            shard.split = split
        schemas = {} if inputs.schema is None else {split: inputs.schema}
        inputs = replace(inputs, splits=(split,), schemas=schemas)
    with publishing.locked_folder(folder, needs_lock=lock) as notices:
        report = _AppendJob(inputs, folder, workers, allow_missing).run(again=again)
    report.notices += notices
    return report


@contextmanager
def _advising_to_pack() -> Iterator[None]:
    """Add what to do to the error about a folder without TFRecord files."""
    try:
        yield
    except OptionError as error:
        if error.option == "paths":
            error.advise(_PACK_FIRST)
        raise


@dataclass
class _AppendJob:
    """One call of `append`, with the folder locked."""

    inputs: Inputs
    folder: Location
    workers: WorkerPool
    allow_missing: bool

    def run(self, *, again: bool) -> AppendReport:
        folder = self.folder
        manifest = read_manifest(folder)
        note = read_begun_note(folder)
        if note is not None and note.base:
            is_complete = manifest is not None and manifest.last_fingerprint == note.fingerprint
            is_own = note.fingerprint == self._fingerprint(note.base)
            if is_own and (
                is_complete or manifest is None or publishing.is_publishing(folder, note)
            ):
                # it was interrupted while it published its shards
                finished = publishing.finish_interrupted(folder, note)
                return AppendReport.from_manifest(folder, finished, finished.changes[-1])
            # another job, which has not renamed anything or is complete
            if manifest is not None and folder.store.can_rename:
                begun_location(folder).delete()
        manifest = self._checked(manifest)
        for step in manifest.changes:
            if not again and step.get("fingerprint") == self._fingerprint(str(step.get("base"))):
                report = AppendReport.from_manifest(folder, manifest, step)
                report.is_new = False
                publishing.clean_up_after_kill(folder)
                return report
        files: list[str] = []
        base = fingerprint_bytes(read_document(folder / MANIFEST_NAME, NOTE_BYTES))
        job = self._fingerprint(base)
        with publishing.claimed_folder(folder, job, files, earlier=manifest, base=base) as claimed:
            new = self._build(claimed, manifest, base, files)
        return AppendReport.from_manifest(folder, new, new.changes[-1])

    def _checked(self, manifest: Manifest | None) -> Manifest:
        """Return the manifest if the dataset is complete."""
        with _advising_to_pack():
            located = locate(self.folder)
        located.check_whole()
        if manifest is None:
            raise OptionError(
                f"{self.folder} has no {MANIFEST_NAME}",
                option="out",
                value=str(self.folder),
                remedy=_REWRITE,
            )
        check_class_files(self.folder, located)
        return manifest

    def _fingerprint(self, base: str) -> str:
        inputs = self.inputs
        document: list[Any] = [_VERSION, base, inputs.identities(), inputs.class_names]
        return fingerprint(document)

    def _build(self, folder: Location, manifest: Manifest, base: str, files: list[str]) -> Manifest:
        """Write the new shards, whose names are stored in `files`, and publish them."""
        inputs, workers = self.inputs, self.workers
        old_names = manifest.class_names
        if old_names is None:
            old_names = read_labels(folder)
        names, more = merge_class_names(old_names, inputs.class_names, folder)
        points = join_keypoint_classes(
            manifest.keypoint_classes, inputs.keypoint_classes, "the appended records"
        )
        known = Schema.merged(list(inputs.schemas.values()))
        layers = manifest.layers
        check_schemas_match(manifest.schema, known, allow_missing=self.allow_missing, layers=layers)
        job = self._fingerprint(base)
        records, notices = open_records(inputs, folder, workers)
        options = ReshardOptions(keep_shards=True, compression=manifest.compression)
        plan, renamed = self._with_names(manifest, make_plan(options, inputs, records, None))
        files[:] = [shard.file for shard in plan.shards]
        note_files(folder, [*files, *renamed.values()])
        workers.total += plan.size_bytes
        copy_job = CopyJob(job, plan.compression, inputs.versions(), tuple(plan.pools))
        results = copy_job.run(plan.shards, plan.spans(), records, folder, workers)
        schema = Schema.merged(result.schema for result in results)
        notices += [*plan.notices, *more]
        if groups := with_options(named_groups([manifest.provenance])):
            notices.append(
                f"the dataset was packed with groups ({groups}): `recordsmith lint` finds those of "
                "the appended records that are in other splits as well"
            )
        check_schemas_match(
            manifest.schema, schema, allow_missing=self.allow_missing, layers=layers
        )
        keys = {key for layer in layers for key in layer.shards}
        check_apart(self.folder, [*manifest.shards, *(one.entry for one in results)], keys)
        step = {
            "command": "append",
            "fingerprint": job,
            "base": base,
            "files": list(inputs.names),
            "records": sum(result.record_count for result in results),
            "renamed": len(renamed),
            "notices": notices,
        }
        splits = [shard.split for shard in plan.shards]
        added = list(zip(splits, results, strict=True))
        new = _merge_manifest(manifest, added, renamed, names, points, step)
        publishing.publish_dataset(
            folder,
            new,
            has_label_map=(folder / LABEL_MAP_NAME).exists(),
            renamed=renamed,
            base=base,
            written=files,
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
        note = read_begun_note(self.folder)  # of this job, before it was interrupted
        there = set(publishing.names_in(self.folder)) - set(
            note.removed if note is not None else ()
        )
        for name in sorted(there & names):
            raise OptionError(
                f"{self.folder / name} is not part of the dataset and has the name of a new shard",
                option="out",
                value=str(self.folder),
                remedy="Move it to another folder.",
            )


def check_class_files(folder: Location, located: Located) -> None:
    """Raise CorruptDataError if a file of class names contradicts the manifest."""
    locations = [folder / name for name in (LABELS_NAME, LABEL_MAP_NAME)]
    overwritten = {str(location) for location in locations if location.exists()}
    for wrong in check_labels(located):
        if wrong.path in overwritten:
            wrong.advise("Nothing was changed. `recordsmith verify` lists all defects.")
            raise wrong


# -- schemas and classes ---------------------------------------------------------------------------


def merge_class_names(
    old: ClassNames | None,
    new: ClassNames | None,
    folder: Location,
    what: str = "the appended records",
) -> tuple[ClassNames | None, list[str]]:
    """Join the class names of a dataset and of new records, and return them with notices."""
    if old is None:
        notice = f"the class names of {what} are ignored: the dataset has no class names"
        return None, [] if new is None else [notice]
    if new is None:
        return old, [f"{what} have no class names; their labels are assumed equal"]
    return join_class_names(old, new, folder, what), []


def check_schemas_match(
    old: Schema,
    new: Schema,
    *,
    allow_missing: bool,
    what: str = "appended",
    layers: Sequence[Layer] = (),
) -> None:
    """Check that new records are of the same kinds, and lack no feature that all others have.

    `layers` are those of the dataset, for the error. A schema with too many features is incomplete:
    only the features that it has are compared.
    """
    if not old.record_count or not new.record_count:
        return
    both = Schema.merged([old, new])
    if both.payload == "mixed" and old.payload != "mixed":
        raise OptionError(
            f"the {what} records are {new.payload}, those of the dataset {old.payload}",
            option="paths",
            value=new.payload,
        )
    for name, section in old.sections.items():
        added = new.sections.get(name, {})
        for key, feature in section.items():
            if both.sections[name][key].kind == "mixed" != feature.kind:
                raise OptionError(
                    f"feature {key!r} is {feature.kind} in the dataset but {added[key].kind} in "
                    f"the {what} records",
                    option="paths",
                    value=key,
                    remedy="Drop or rename it with `recordsmith edit` first.",
                )
        lacking = {
            key: new.record_count - (added[key].present if key in added else 0)
            for key, feature in section.items()
            if feature.present == old.record_count
        }
        lacking = {key: number for key, number in lacking.items() if number > 0}
        if lacking and old.is_complete and new.is_complete and not allow_missing:
            remedy = (
                "Pack them from a source that has these, with the options of the dataset "
                "(`recordsmith pack --like`)"
            )
            if what == "appended":
                remedy = f"{remedy}, or pass {option('allow_missing', True)}"
            names = [layer.name for layer in layers if {*layer.features} & {*lacking}]
            of_layers = f", which come from layer {' and '.join(map(repr, names))}" if names else ""
            if names and what == "appended":
                remedy += (
                    " and then give all records of the dataset the values of a table with "
                    f"`recordsmith layers add {option('overwrite', True)}`"
                )
            raise OptionError(
                f"{max(lacking.values()):,} of {new.record_count:,} {what} records lack features "
                f"that all records of the dataset have: {first_of([*map(repr, lacking)], _NAMED)}"
                f"{of_layers}",
                option="paths",
                value=next(iter(lacking)),
                remedy=f"{remedy}.",
            )


# -- manifest --------------------------------------------------------------------------------------


def _merge_manifest(
    manifest: Manifest,
    added: Sequence[tuple[str, ShardResult]],
    renamed: Mapping[str, str],
    class_names: ClassNames | None,
    keypoint_classes: KeypointClasses,
    step: Mapping[str, Any],
) -> Manifest:
    """Return the manifest of old and new shards; `step` is the entry for the history."""
    splits = {
        split: [
            msgspec.structs.replace(shard, file=renamed.get(shard.file, shard.file))
            for shard in shards
        ]
        for split, shards in manifest.splits.items()
    }
    schemas: dict[str, list[Schema]] = {}
    for split in splits:
        schema = manifest.schema_of(split)
        if schema is not None:
            schemas[split] = [schema]
    for split, result in added:
        if split in schemas or split not in manifest.splits:
            schemas.setdefault(split, []).append(result.schema)
        splits.setdefault(split, []).append(result.entry)
    return manifest.changed(
        step,
        splits={split: tuple(shards) for split, shards in splits.items()},
        schema=Schema.merged([manifest.schema, *(result.schema for _, result in added)]),
        schemas={split: Schema.merged(parts) for split, parts in schemas.items()},
        layers=layers_over(manifest.layers, Schema.merged(result.schema for _, result in added)),
        class_names=class_names,
        arrow_schema=None,
        keypoint_classes=keypoint_classes,
    )


# -- names: `-of-00004` becomes `-of-00006` in all shards of a split -------------------------------


def renumber(
    files: Mapping[str, Sequence[str]], added: Mapping[str, int], compression: Compression
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return new names of existing shards by old ones, and the names of new shards by split.

    New splits have the names that `pack` gives by default.
    """
    renamed: dict[str, str] = {}
    new: dict[str, list[str]] = {}
    for split, count in added.items():
        old = files.get(split, ())
        total = len(old) + count
        if old:
            names = _numbered_like(old, total, split)
        else:
            names = shard_files_by_split({split: total}, compression)[split]
        renamed |= {a: b for a, b in zip(old, names, strict=False) if a != b}
        new[split] = names[len(old) :]
    existing = {name for names in files.values() for name in names}
    names = [*renamed.values(), *(name for names in new.values() for name in names)]
    taken = sorted(existing.intersection(names))
    if taken or len(set(names)) < len(names):
        raise _not_renumbered(f"two shards would get the name {(taken or names)[0]!r}", names[0])
    return renamed, new


def _numbered_like(old: Sequence[str], total: int, split: str) -> list[str]:
    """Return as many names as `total` in the pattern of the old ones."""
    match = _NUMBERED.fullmatch(old[0])

    def names(count: int) -> list[str]:
        assert match is not None
        head, number, of, tail = match.groups()
        return [f"{head}{n:0{len(number)}d}-of-{count:0{len(of)}d}{tail}" for n in range(count)]

    if match is None or list(old) != names(len(old)):
        problem = f"the shards of split {split!r} are not numbered consistently: {old[0]!r}"
        raise _not_renumbered(problem, old[0])
    return names(total)


def _not_renumbered(problem: str, value: str) -> OptionError:
    return OptionError(problem, option="out", value=value, remedy=_REWRITE)
