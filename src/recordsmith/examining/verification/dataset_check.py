"""Verifies a dataset: every checksum, and every shard against the manifest.

Several threads, or the processes of an engine, read the shards; all of them share a large
uncompressed one. Damaged data is read again, bypassing the page cache, before it is reported.
`deep` also checks payloads and images.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from itertools import chain, islice
from typing import Any

from recordsmith.dataset import Dataset, dataset_of, records_of
from recordsmith.dataset.locate import Located, Paths, locate
from recordsmith.dataset.shards_ahead import reading_threads
from recordsmith.errors import PAYLOAD_NAMES, DataError, FileAccessError, OptionError
from recordsmith.examining.rules import SECTION_FIELDS, Rules, rules_of_schema
from recordsmith.examining.schema_file import SchemaFile
from recordsmith.examining.verification import manifest_check
from recordsmith.examining.verification.deep_check import (
    CheckedContents,
    DeepCheck,
    ShardContents,
)
from recordsmith.examining.verification.shard_check import ReadingPlan, plan_of
from recordsmith.examining.verification.shard_comparison import compare_shards
from recordsmith.examining.verification.shard_features import MOST_COMPARED
from recordsmith.examining.verification.verify_report import (
    MAX_DEFECTS_PER_SHARD,
    ShardFindings,
    VerifyReport,
)
from recordsmith.examining.verification.verify_task import verify_on
from recordsmith.example.schema import MOST_FEATURES
from recordsmith.stores import PlaceLike
from recordsmith.tasks import Engine
from recordsmith.work import Progress, Work, thread_count

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
    """The paths and the split to verify.

    Raises:
        OptionError: the dataset is a selection of records.
    """
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
                f"{path} has more than {MOST_FEATURES:,} different features: the kinds of the "
                "others were not checked"
            )
        elif contents.is_cut and len(checked) > 1:
            report.unchecked.append(
                f"{path} has more than {MOST_COMPARED:,} different features: the kinds of the "
                "others were not compared between shards"
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
