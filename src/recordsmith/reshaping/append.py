"""`recordsmith.append`: more records in a dataset that is there, or nothing changed.

New shards are written under temporary names. Then all shards get the names that go with their new
number, and the manifest its new content, last of all. A note with all names lies in the hidden
folder meanwhile, so that the same command finishes what was begun, whenever the job was killed; and
the manifest remembers what was appended, so that it is not appended twice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from recordsmith.building import (
    WRITING_THREADS,
    check_folder,
    clean_up,
    finish_publishing,
    is_no_file_name,
    publish_dataset,
    tidying_up,
    working_in,
)
from recordsmith.dataset import (
    LABEL_MAP_NAME,
    MANIFEST_NAME,
    Manifest,
    begun_path,
    read_begun,
    read_manifest,
)
from recordsmith.dataset.labels import read_labels
from recordsmith.dataset.locate import Paths, locate
from recordsmith.errors import OptionError
from recordsmith.examining.verification.manifest_check import check_labels
from recordsmith.example import Schema
from recordsmith.files import (
    NOTE_BYTES,
    PathLike,
    Progress,
    as_path,
    list_folder,
    read_document,
    remove,
)
from recordsmith.reshaping.copying import ShardCopies
from recordsmith.reshaping.fingerprints import fingerprint, fingerprint_of_bytes
from recordsmith.reshaping.inputs import Inputs, find_inputs
from recordsmith.reshaping.joining import (
    compare_schemas,
    joined,
    joined_class_names,
    repeated,
    steps_of,
)
from recordsmith.reshaping.options import ReshardOptions
from recordsmith.reshaping.plan import ReshardPlan, make_plan
from recordsmith.reshaping.renumbering import Renumbered, renumbered
from recordsmith.reshaping.report import AppendReport
from recordsmith.reshaping.unpacking import open_records
from recordsmith.work import Work, thread_count

_VERSION = 1  # another one if the same inputs would give other shards


def append(
    paths: Paths,
    out: PathLike,
    *,
    split: str | None = None,
    again: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> AppendReport:
    """Add records to a dataset: new shards beside those that are there.

    Each file becomes a shard, its records copied as they are, in the compression of the dataset.
    All shards of a split get new names, as these tell how many there are; schema, class names and
    manifest stay true. Whoever reads the dataset at that moment has to open it again.

    Args:
        paths: a file, a folder, a glob pattern, or a list of these.
        out: the folder of a dataset that has a manifest.
        split: to which split the records go; None: to those that the files are of.
        again: append files that were appended before.
        threads: how many work at once; None: one for each processor, at most 8.
        progress: told the bytes done and in all.

    Returns:
        What was done. Without `again`, the same files are not appended a second time: so a job that
        was killed, at any moment, is finished by running it again. Files count as the same by
        name, size and checksum or time of change.

    Raises:
        OptionError: there is no dataset, or none with a manifest; classes or kinds of features do
            not agree; shards are not numbered.
        SourceError: there are no records.
        CorruptDataError: an input is damaged, a shard is missing, or names of classes beside
            the manifest contradict it. The dataset is as it was.
        FileAccessError: a file cannot be read or written, or the disk is full.
    """
    folder = as_path(out)
    check_folder(folder)
    if split is not None and (not isinstance(split, str) or is_no_file_name(split)):
        raise OptionError(f"split name {split!r} cannot be part of a file name")
    if not folder.is_dir():
        raise OptionError(
            f"{folder} is no dataset to append to: there is no such folder. `recordsmith reshard` "
            "makes one"
        )
    work = Work(thread_count(threads, most=WRITING_THREADS), progress)
    inputs = find_inputs(paths, None, folder)
    if split is not None:
        inputs = _of_one_split(inputs, split)
    with working_in(folder):
        return _Job(inputs, folder, work).run(again=again)


class _Job:
    """One call of `append`, in a folder that it holds."""

    def __init__(self, inputs: Inputs, folder: Path, work: Work) -> None:
        self._inputs = inputs
        self._folder = folder
        self._work = work

    def run(self, *, again: bool) -> AppendReport:
        folder = self._folder
        manifest = read_manifest(folder)
        begun = read_begun(folder)
        if begun is not None and begun.base:
            if begun.plan == self._fingerprint(begun.base):
                finished = finish_publishing(folder, begun)
                clean_up(folder)
                return AppendReport.of(folder, finished, steps_of(finished)[-1])
            if manifest is not None:  # another append: not begun really, or done completely
                remove(begun_path(folder))
        manifest = self._opened(manifest)
        for step in steps_of(manifest):
            if not again and step.get("plan") == self._fingerprint(str(step.get("base"))):
                report = AppendReport.of(folder, manifest, step)
                report.is_new = False
                clean_up(folder)
                return report
        files: list[str] = []
        with tidying_up(folder, files):
            new = self._build(manifest, files)
        return AppendReport.of(folder, new, steps_of(new)[-1])

    def _opened(self, manifest: Manifest | None) -> Manifest:
        """The dataset as it is, if all of it is there."""
        located = locate(self._folder)
        located.check_whole()
        if manifest is None:
            raise OptionError(
                f"{self._folder} has no {MANIFEST_NAME}, which says what belongs to it; write it "
                "once more with `recordsmith reshard`, and append to that"
            )
        for wrong in check_labels(located):
            if wrong.path is not None and Path(wrong.path).exists():  # it would be overwritten
                wrong.detail += " Nothing was appended; `recordsmith verify` says what is wrong."
                raise wrong
        return manifest

    def _fingerprint(self, base: str) -> str:
        """A hash over what is appended, and to what."""
        inputs = self._inputs
        document: list[Any] = [
            _VERSION,
            base,
            [shard.identity() for shard in inputs.shards],
            inputs.class_names,
        ]
        return fingerprint(document)

    def _build(self, manifest: Manifest, files: list[str]) -> Manifest:
        """`files` become the names of the new shards as soon as these are known."""
        folder, inputs, work = self._folder, self._inputs, self._work
        old_names = manifest.class_names
        if old_names is None:
            old_names = read_labels(folder)
        names, more = joined_class_names(old_names, inputs.class_names, folder)
        compare_schemas(manifest.schema, Schema.merged(list(inputs.schemas.values())))
        base = fingerprint_of_bytes(read_document(folder / MANIFEST_NAME, NOTE_BYTES))
        job = self._fingerprint(base)
        records, notices = open_records(inputs, folder, work)
        options = ReshardOptions(keep_shards=True, compression=manifest.compression)
        plan, renamed = self._with_names(manifest, make_plan(options, inputs, records, None))
        files[:] = [shard.file for shard in plan.shards]
        work.total += plan.size_bytes
        results = ShardCopies(folder, plan, job, inputs, records, work, surveyed=plan.pools).run()
        schema = Schema.merged(result.schema for result in results)
        notices += [*plan.notices, *more, *compare_schemas(manifest.schema, schema)]
        notices += repeated(manifest, results)
        step = {
            "plan": job,
            "base": base,
            "files": list(inputs.names),
            "records": sum(result.record_count for result in results),
            "renamed": len(renamed),
            "notices": notices,
        }
        splits = [shard.split for shard in plan.shards]
        added = list(zip(splits, results, strict=True))
        new = joined(manifest, added, renamed, names, step)
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
        """The plan with the names that its shards get, and new names of those that are there."""
        there = {
            split: [shard.file for shard in shards] for split, shards in manifest.splits.items()
        }
        counts = Counter(shard.split for shard in plan.shards)
        names = renumbered(there, counts, manifest.compression)
        self._check_in_the_way(names)
        left = {split: iter(files) for split, files in names.added.items()}
        shards = tuple(replace(shard, file=next(left[shard.split])) for shard in plan.shards)
        return replace(plan, shards=shards), names.renamed

    def _check_in_the_way(self, names: Renumbered) -> None:
        there = {entry.name for entry in list_folder(self._folder)}
        wanted = {*names.renamed.values(), *(file for of in names.added.values() for file in of)}
        for name in sorted(there & wanted):
            raise OptionError(
                f"{self._folder} holds {name}, which is not part of the dataset; a shard would get "
                "this name. Move it away"
            )


def _of_one_split(inputs: Inputs, split: str) -> Inputs:
    return replace(
        inputs,
        shards=tuple(replace(shard, split=split) for shard in inputs.shards),
        splits=(split,),
        schemas={} if inputs.schema is None else {split: inputs.schema},
    )
