"""Verifies a dataset: every checksum, and every shard against the manifest.

Several threads read the shards, or an engine with a task for each of them. Damaged data is read
again, past all caches, before it is reported. `deep` also checks payloads and images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from recordsmith.checking.rules import SECTION_FIELDS, Rules, rules_of_schema
from recordsmith.checking.schema_file import SchemaFile
from recordsmith.checking.verification import manifest_check
from recordsmith.checking.verification.payload_check import (
    MAX_FEATURES,
    PayloadCheck,
    PayloadSummary,
    compare_shards,
)
from recordsmith.checking.verification.shard_check import (
    add_unreadable,
    check_in_ranges,
    check_shard,
)
from recordsmith.checking.verification.verify_report import (
    MAX_DEFECTS_PER_SHARD,
    ShardFindings,
    VerifyReport,
)
from recordsmith.dataset import (
    Dataset,
    FindingsWriter,
    Manifest,
    Paths,
    Shard,
    as_places,
    dataset_of,
    locate,
    reading_threads,
    records_of,
    shard_for_task,
    shard_from_task,
    wrong_columns,
)
from recordsmith.stores import Location, PlaceLike
from recordsmith.support.errors import (
    PAYLOAD_NAMES,
    CorruptDataError,
    DataError,
    Defect,
    FileAccessError,
    ForbiddenFileError,
    OptionError,
)
from recordsmith.support.tasks import Engine, Task, run_on
from recordsmith.support.work import Progress, WorkerPool, thread_count

Contents: TypeAlias = tuple[Rules | None, bool] | None
"""The rules of payloads, and whether to decode images; None to check no payloads."""

_Result: TypeAlias = tuple[ShardFindings, PayloadSummary | None, FileAccessError | None]
"""Of a file."""


def verify(
    paths_or_dataset: Paths | Dataset,
    split: str | None = None,
    *,
    deep: bool = False,
    schema: SchemaFile | PlaceLike | None = None,
    findings: PlaceLike | None = None,
    overwrite: bool = False,
    engine: Engine | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Verify every record of every shard, and the shards against the manifest.

    Args:
        paths_or_dataset: a file, folder, glob, or a list of these; or a Dataset of whole splits.
        split: only this split. None for all.
        deep: also parse every record and decode every image completely. Each payload must match the
            schema of the manifest or, without a manifest, the other shards. Each image must have
            the size and format given in its record.
        schema: check each record against these rules, as `recordsmith schema` writes them. See
            `docs/schema.md`.
        findings: also write the places of all defects to this file, also those beyond 1,000 of a
            shard, for `without`.
        overwrite: replace existing files.
        engine: what runs the job, such as `rs.engines.Processes(4)`; None for threads of this
            process. Its processes must see the files under the same paths.
        threads: number of threads; None for one per processor.
        progress: called as `progress(done_bytes, total_bytes)`.

    Returns:
        A report with all defects of the data; defects are never raised.

    Raises:
        FileAccessError: a path does not exist or cannot be read, or a process of the engine does
            not see the same file.
        OptionError: no file looks like a TFRecord file, the split does not exist, or the schema
            file is invalid; or the dataset is a selection of records, or the file `findings`
            exists.

    Example:
        report = rs.verify("out", deep=True)
        for error in report.defects:
            print(error)
    """
    thread_count(threads)  # raises if it is invalid
    report = VerifyReport()
    asked = split
    paths, split = _whole_files(paths_or_dataset, split)
    is_opened = isinstance(paths_or_dataset, Dataset)
    opened = dataset_of(paths_or_dataset).view.origin.places if is_opened else as_places(paths)
    writer = FindingsWriter.of_dataset(
        findings, "verify", opened, overwrite=overwrite, deep=deep, split=asked
    )
    if schema is not None and not isinstance(schema, SchemaFile):
        schema = SchemaFile.load(schema)
    try:
        located = locate(paths, split)
    except DataError as error:  # a broken manifest is a finding, not a failure
        report.add([error])
        _write_places(writer, report, [])
        return report
    if located.manifest is not None:
        counts = located.manifest.record_counts
        report.expected_record_count = sum(counts.values()) if split is None else counts[split]
    report.add(missing.error for missing in located.missing)
    report.add(manifest_check.check_labels(located))
    report.add(manifest_check.find_extra_shards(located, split))
    report.notices += manifest_check.find_unlisted_layers(located)
    workers = WorkerPool(reading_threads(threads, located.shards), progress)
    for shard in located.shards if progress else ():
        for file in (shard, *shard.layers):
            with suppress(FileAccessError):  # reported when the file is read
                workers.total += file.size_bytes
    report.is_deep = deep
    rules = None if schema is None else schema.rules()
    manifest = located.manifest
    if deep and rules is None and manifest is not None:
        rules = rules_of_schema(manifest.schema)
        if not manifest.schema.is_complete:
            report.unchecked.append(f"schema of the manifest: {manifest.schema.omission}")
    contents = (rules, deep) if deep or schema is not None else None
    files = _check_shards(engine, located.shards, contents, workers, with_places=writer is not None)
    workers.finish()
    found = [of_files[0][0] for of_files in files]
    checked = [(findings, summary) for (findings, summary), *_ in files if summary is not None]
    compare_shards(checked, rules)
    _add_unchecked(report, {findings.path: summary for findings, summary in checked})
    for differing, difference in manifest_check.compare(located, found):
        (differing or report).add([difference])
    of_layers: dict[Location, list[tuple[Shard, ShardFindings]]] = {}
    for shard, of_files in zip(located.shards, files, strict=True):
        for layer, (of_layer, _) in zip(shard.layers, of_files[1:], strict=True):
            of_layers.setdefault(layer.location.parent, []).append((layer, of_layer))
        if contents is not None and len(shard.layers) < _layer_count(shard, manifest):
            report.unchecked.append(f"contents of {shard.location}: files of layers are missing")
    for own in of_layers.values():
        shards, layer_findings = zip(*own, strict=True)
        alone = replace(located, shards=[*shards], manifest=None)
        for differing, difference in manifest_check.compare(alone, layer_findings):
            (differing or report).add([difference])
        found += layer_findings
    _write_places(writer, report, found)
    for number, of_shard in enumerate(found):
        report.add_shard(of_shard, is_of_layer=number >= len(files))
    return report


def _layer_count(shard: Shard, manifest: Manifest | None) -> int:
    if manifest is None or shard.entry is None:
        return 0
    return sum(shard.entry.key in layer.shards for layer in manifest.layers)


def _write_places(
    writer: FindingsWriter | None, report: VerifyReport, found: Sequence[ShardFindings]
) -> None:
    """Write the defects of the dataset, of shards and of records."""
    if writer is None:
        return
    for error in report.defects:
        writer.add(error.defect, "error", error.detail, place=error.path)
    for shard in found:
        places = shard.places or [(e.record, str(e.defect), e.detail) for e in shard.defects]
        for record, defect, detail in sorted(places, key=lambda place: place[0] or 0):
            if record is None or writer.positions is None:
                writer.add(defect, "error", detail, place=shard.path)
            else:
                writer.add_record(defect, "error", shard.path, record, detail)
    writer.save()


def _whole_files(paths_or_dataset: Paths | Dataset, split: str | None) -> tuple[Paths, str | None]:
    if not isinstance(paths_or_dataset, Dataset):
        return paths_or_dataset, split
    dataset = dataset_of(paths_or_dataset, split)
    if not records_of(dataset).has_all:
        raise OptionError(
            "verify reads whole files, but the dataset is a selection of their records",
            option="dataset",
            value=dataset,
            remedy="Pass the path, or the dataset as it was opened.",
        )
    places, splits = dataset.view.origin
    if splits is None or len(splits) == 1:
        return places, None if splits is None else splits[0]
    return [shard.location for shard in dataset.shards], None


def _add_unchecked(report: VerifyReport, summaries: Mapping[str, PayloadSummary]) -> None:
    foreign = set()
    for path, summary in summaries.items():
        if summary.is_cut_short:
            report.unchecked.append(
                f"{path} has many bad records: contents were not checked after the first "
                f"{MAX_DEFECTS_PER_SHARD:,}"
            )
        if summary.wide_count:
            report.unchecked.append(
                f"{path} has {summary.wide_count:,} records with more than {MAX_FEATURES:,} "
                "features, which were not checked"
            )
        if summary.has_more:
            report.unchecked.append(
                f"{path} has more than {MAX_FEATURES:,} different features: the kinds of the "
                "others were not compared"
            )
        if summary.payload not in (None, *SECTION_FIELDS):
            foreign.add(PAYLOAD_NAMES[str(summary.payload)][1])
    for payloads in sorted(foreign):
        report.unchecked.append(
            f"some payloads are {payloads}, not Examples: their checksums were checked, their "
            "contents were not"
        )


def _check_shards(
    engine: Engine | None,
    shards: Sequence[Shard],
    contents: Contents,
    workers: WorkerPool,
    *,
    with_places: bool,
) -> list[list[tuple[ShardFindings, PayloadSummary | None]]]:
    """Check each shard and its layers; a file that cannot be read is a finding."""
    if engine is None:
        with ThreadPoolExecutor(workers.threads) as decoding:
            check = _FileCheck(contents, with_places, workers, decoding)
            results = workers.each(check.check_files, shards)
    else:
        by_number = run_on(engine, _tasks(shards, contents, with_places), workers.advance)
        results = [by_number[number] for number in range(len(shards))]
    for shard, of_files in zip(shards, results, strict=True):
        for file, (findings, _, error) in zip((shard, *shard.layers), of_files, strict=True):
            path = str(file.location)
            for defect in (*findings.defects, *findings.notices):
                if defect.path == findings.path:  # as a worker names it
                    defect.path = path
            findings.path = path
            if error is not None:
                error.path = error.filename = path
                add_unreadable(findings, error)
    return [[(findings, summary) for findings, summary, _ in of_files] for of_files in results]


class _FileCheck(NamedTuple):
    """Checks the files of shards.

    contents: of the records of each shard.
    with_places: whether to keep the places of all defects.
    decoding: the threads that decode images.
    """

    contents: Contents
    with_places: bool
    workers: WorkerPool
    decoding: ThreadPoolExecutor

    def check_files(self, shard: Shard) -> list[_Result]:
        """Check a shard and the files of its layers, and the contents of their records together."""
        contents = self.contents
        if not shard.layers:
            return [self._check_file(shard, contents)]
        of_layers = None if contents is None else (None, False)
        results = [self._check_file(shard.alone(), None)]
        results += (self._check_file(layer, of_layers) for layer in shard.layers)
        for findings, summary, _ in results[1:]:
            if summary is not None and summary.payload not in (None, "Example"):
                problem, found = "the records of a layer are not Examples", summary.payload
                findings.add([CorruptDataError(Defect.NOT_AN_EXAMPLE, problem, found=found)])
        are_as_listed = all(
            not (error or own.defects) and (file.entry is None or own.checksum == file.entry.crc32c)
            for file, (own, _, error) in zip((shard, *shard.layers), results, strict=True)
        )
        if contents is None or not are_as_listed:
            return results
        findings, check = results[0][0], self._payload_check(contents)
        try:
            for block in shard.blocks():
                check.check_block(block, findings)
        except (DataError, FileAccessError) as error:  # a file that was changed meanwhile
            known = error if isinstance(error, DataError) else None
            findings.add([known or CorruptDataError(Defect.CHANGING_SHARD, str(error))])
        for defect in findings.defects:
            defect.offset = None  # in no file
        if contents[1] and not (findings.defects or shard.is_remote):
            for file, (own, _, _) in zip((shard, *shard.layers), results, strict=True):
                _check_columns(file, own, check.summary)
        return [(findings, check.summary, None), *results[1:]]

    def _check_file(self, shard: Shard, contents: Contents) -> _Result:
        advance = self.workers.advance
        try:
            if contents is None:
                in_ranges = check_in_ranges(shard, advance, self.decoding, self.workers.threads)
                if in_ranges is not None:
                    return in_ranges, None, None
            new_check = None if contents is None else partial(self._payload_check, contents)
            findings, summary = check_shard(shard, advance, new_check, with_places=self.with_places)
            is_deep = contents is not None and contents[1]
            if is_deep and summary is not None and not (findings.defects or shard.is_remote):
                _check_columns(shard, findings, summary)
        except FileAccessError as error:
            return ShardFindings(str(shard.location)), None, error
        return findings, summary, None

    def _payload_check(self, contents: tuple[Rules | None, bool]) -> PayloadCheck:
        rules, decodes_images = contents
        pool = self.decoding if decodes_images else None
        return PayloadCheck(rules, self.workers.advance, pool, self.workers.threads)


def _check_columns(shard: Shard, findings: ShardFindings, summary: PayloadSummary) -> None:
    """Compare the columns that are kept next to an intact shard with its records.

    Over a network, this would read the shard again.
    """
    kinds = {
        key: kind
        for (section, key), kind in summary.kinds.items()
        if section != "feature_lists" and shard.holding(key).location == shard.location
    }
    with suppress(FileAccessError):  # a pipe, or a file that was removed meanwhile
        location, wrong = wrong_columns(shard, kinds)
        findings.add(
            CorruptDataError(
                Defect.COLUMNS,
                "the kept numbers differ from those of the records",
                feature=key,
                path=location,
                remedy="Remove the file; the next use reads the records.",
            )
            for key in wrong
        )


def _tasks(shards: Sequence[Shard], contents: Contents, with_places: bool) -> Iterator[Task]:
    for number, shard in enumerate(shards):
        document = shard_for_task(shard)
        size = document["size_bytes"] or 0
        yield Task(_run_task, number, str(shard.location), size, (document, contents, with_places))


def _run_task(content: tuple[Mapping[str, Any], Contents, bool]) -> list[_Result]:
    document, contents, with_places = content
    shard = shard_from_task(document)
    with ThreadPoolExecutor(1) as decoding:
        check = _FileCheck(contents, with_places, WorkerPool(1, None), decoding)
        results = check.check_files(shard)
    for _, _, error in results:
        if shard.is_remote and isinstance(error, ForbiddenFileError):
            # it says more about the worker than about the shard
            error.advise("Workers take credentials and options from their own environment.")
            raise error
    return results
