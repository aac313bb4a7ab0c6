"""Verifies a dataset: every checksum, and every shard against the manifest.

Several threads read the shards, and share a large uncompressed one; or an engine, with a task for
each shard. Damaged data is read again, bypassing the page cache, before it is reported.
`deep` also checks payloads and images.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from itertools import chain, islice
from typing import Any, TypeAlias

from recordsmith.dataset import Dataset, Shard, dataset_of, records_of
from recordsmith.dataset.locate import Located, Paths, locate
from recordsmith.dataset.parts import shard_for_task, shard_from_task
from recordsmith.dataset.shards_ahead import reading_threads
from recordsmith.errors import (
    PAYLOAD_NAMES,
    DataError,
    FileAccessError,
    ForbiddenFileError,
    OptionError,
)
from recordsmith.examining.rules import SECTION_FIELDS, Rules, rules_of_schema
from recordsmith.examining.schema_file import SchemaFile
from recordsmith.examining.verification import manifest_check
from recordsmith.examining.verification.deep_check import (
    CheckedContents,
    DeepCheck,
    ShardContents,
    compare_shards,
)
from recordsmith.examining.verification.shard_check import (
    ReadingPlan,
    add_unreadable,
    check_shard,
    plan_of,
)
from recordsmith.examining.verification.shard_features import MAX_KINDS_COMPARED
from recordsmith.examining.verification.verify_report import (
    MAX_DEFECTS_PER_SHARD,
    ShardFindings,
    VerifyReport,
)
from recordsmith.example.schema import MAX_FEATURES
from recordsmith.stores import PlaceLike
from recordsmith.tasks import Engine, Task, run_on
from recordsmith.work import Progress, Work, thread_count

Contents: TypeAlias = tuple[Rules | None, bool]
"""The rules of payloads, and whether to decode images."""

_Result: TypeAlias = tuple[ShardFindings, CheckedContents | None, FileAccessError | None]

_AHEAD = 4  # jobs that wait per thread: few, whatever the number of shards


def verify(
    paths_or_dataset: Paths | Dataset,
    split: str | None = None,
    *,
    deep: bool = False,
    schema: SchemaFile | PlaceLike | None = None,
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
            file is invalid; or the dataset is a selection of records.

    Example:
        report = rs.verify("out", deep=True)
        for error in report.defects:
            print(error)
    """
    thread_count(threads)  # raises if it is invalid
    report = VerifyReport()
    paths, split = _whole_files(paths_or_dataset, split)
    if schema is not None and not isinstance(schema, SchemaFile):
        schema = SchemaFile.load(schema)
    try:
        located = locate(paths, split)
    except DataError as error:  # a broken manifest is a finding, not a failure
        report.add([error])
        return report
    if located.manifest is not None:
        counts = located.manifest.record_counts
        report.expected_record_count = sum(counts.values()) if split is None else counts[split]
    report.add(missing.error for missing in located.missing)
    report.add(manifest_check.check_labels(located))
    report.add(manifest_check.find_extra_shards(located, split))
    work = Work(reading_threads(threads, located.shards), progress)
    for shard in located.shards if progress else ():
        with suppress(FileAccessError):  # reported when the shard is read
            work.total += shard.size_bytes
    report.is_deep = deep
    rules = None if schema is None else schema.rules()
    if deep or schema is not None:
        found = _check_contents(located, work, report, rules, engine)
    elif engine is not None:
        found, _ = verify_on(engine, located.shards, None, work.advance)
    else:
        found = _check_all(located, work)
    work.finish()
    manifest_check.compare(located, found)
    report.add(manifest_check.check_compression(located, found))
    report.add(manifest_check.check_total(located, found))
    for findings in found:
        report.add_shard(findings)
    return report


def _whole_files(paths_or_dataset: Paths | Dataset, split: str | None) -> tuple[Paths, str | None]:
    """The paths and the split to verify."""
    if not isinstance(paths_or_dataset, Dataset):
        return paths_or_dataset, split
    dataset = dataset_of(paths_or_dataset, split)
    if not records_of(dataset).is_everything_known:
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


def _check_contents(
    located: Located,
    work: Work,
    report: VerifyReport,
    rules: Rules | None,
    engine: Engine | None,
) -> list[ShardFindings]:
    is_of_manifest = rules is None
    if is_of_manifest and located.manifest is not None:
        rules = rules_of_schema(located.manifest.schema)
    if engine is not None:
        contents = (rules, report.is_deep)
        found, checked = verify_on(engine, located.shards, contents, work.advance)
    else:
        with ThreadPoolExecutor(work.threads) as decoding:
            pool = decoding if report.is_deep else None
            deep = DeepCheck(partial(ShardContents, rules, work.advance, pool, work.threads))
            found, checked = _check_all(located, work, deep), deep.done
    by_shard = [(shard, checked[shard.path]) for shard in found if shard.path in checked]
    compare_shards(by_shard, rules)
    if is_of_manifest and located.manifest is not None and not located.manifest.schema.is_complete:
        report.unchecked.append(f"schema of the manifest: {located.manifest.schema.omission}")
    _add_unchecked(report, checked)
    return found


def _add_unchecked(report: VerifyReport, checked: Mapping[str, CheckedContents]) -> None:
    """List what was not checked."""
    for path, contents in checked.items():
        if contents.is_cut_short:
            report.unchecked.append(
                f"{path} has many bad records: contents were not checked after the first "
                f"{MAX_DEFECTS_PER_SHARD:,}"
            )
        if contents.is_full:
            report.unchecked.append(
                f"{path} has more than {MAX_FEATURES:,} different features: the kinds of the "
                "others were not checked"
            )
        elif contents.is_cut and len(checked) > 1:
            report.unchecked.append(
                f"{path} has more than {MAX_KINDS_COMPARED:,} different features: "
                "the kinds of the others were not compared between shards"
            )
    foreign = {
        contents.payload
        for contents in checked.values()
        if contents.payload not in (None, *SECTION_FIELDS)
    }
    for payload in sorted(filter(None, foreign)):
        report.unchecked.append(
            f"some payloads are {PAYLOAD_NAMES[payload][1]}, not Examples: their checksums were "
            "checked, their contents were not"
        )


def _check_all(located: Located, work: Work, deep: DeepCheck | None = None) -> list[ShardFindings]:
    """Check each shard."""
    plans: deque[ReadingPlan] = deque()

    def calls() -> Iterator[Callable[[], Any]]:
        for shard in located.shards:
            plan = plan_of(shard, work, deep)
            plans.append(plan)
            yield from plan.calls

    found = []
    with closing(work.in_order(_call, calls(), ahead=_AHEAD * work.threads)) as results:
        for first in results:
            plan = plans.popleft()
            parts = chain((first,), islice(results, len(plan.calls) - 1))
            found.append(plan.finish(parts))
            deque(parts, maxlen=0)
    return found


def _call(call: Callable[[], Any]) -> Any:
    return call()


def verify_on(
    engine: Engine,
    shards: Sequence[Shard],
    contents: Contents | None,
    advance: Callable[[int], None],
) -> tuple[list[ShardFindings], dict[str, CheckedContents]]:
    """Verify shards; return the findings of each, and the checked contents by path."""

    def tasks() -> Iterator[Task]:
        for number, shard in enumerate(shards):
            document = shard_for_task(shard)
            size = document["size_bytes"] or 0
            yield Task(_verify_shard, number, str(shard.location), size, (document, contents))

    results: dict[int, _Result] = run_on(engine, tasks(), advance)
    checked = {}
    for number, shard in enumerate(shards):
        path = str(shard.location)
        findings, of_shard, error = results[number]
        for defect in (*findings.defects, *findings.notices):
            if defect.path == findings.path:  # as the worker names it
                defect.path = path
        findings.path = path
        if error is not None:
            error.path = error.filename = path
            add_unreadable(findings, error)
        if of_shard is not None:
            checked[path] = of_shard
    return [results[number][0] for number in range(len(shards))], checked


def _verify_shard(content: tuple[Mapping[str, Any], Contents | None]) -> _Result:
    document, contents = content
    shard = shard_from_task(document)
    findings = ShardFindings(str(shard.location))
    error = None
    with ThreadPoolExecutor(1) as decoding:
        deep = None
        if contents is not None:
            rules, decodes_images = contents
            pool = decoding if decodes_images else None
            deep = DeepCheck(partial(ShardContents, rules, _ignore, pool, 1))
        try:
            check_shard(shard, findings, _ignore, deep)
        except FileAccessError as failure:
            if shard.is_remote and isinstance(failure, ForbiddenFileError):
                # it says more about the worker than about the shard
                failure.advise("Workers take credentials and options from their own environment.")
                raise
            error = failure
    return findings, None if deep is None else deep.done.get(findings.path), error


def _ignore(_: Any) -> None:
    """Report no progress: a task is done as a whole."""
