"""Are these shards what they should be? Every checksum, and what the manifest says of them.

Shards are read by several threads, a large plain one by all of them. What looks damaged is read
once more past the system's memory before it is called so. With `deep`, payloads and pictures are
looked at too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from itertools import chain, islice
from typing import Any

from recordsmith.dataset.locate import Located, Paths, locate
from recordsmith.errors import CorruptDataError, FileAccessError
from recordsmith.examining.rules import SECTION_FIELDS, Rules, rules_of_schema
from recordsmith.examining.schema_file import SchemaFile
from recordsmith.examining.verification import manifest_check
from recordsmith.examining.verification.contents import DeepCheck, ShardContents
from recordsmith.examining.verification.report import (
    MAX_DEFECTS_PER_SHARD,
    ShardFindings,
    VerifyReport,
)
from recordsmith.examining.verification.seen_features import MOST_COMPARED
from recordsmith.examining.verification.shard_check import ReadingPlan, plan_of
from recordsmith.examining.verification.siblings import compare_siblings
from recordsmith.example.payload import PAYLOAD_WORDS
from recordsmith.example.schema import MOST_FEATURES
from recordsmith.files import PathLike, Progress
from recordsmith.work import Work, thread_count

_AHEAD = 4  # jobs for each thread that wait: few, however many shards there are


def verify(
    paths: Paths,
    split: str | None = None,
    *,
    deep: bool = False,
    schema: SchemaFile | PathLike | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Check every record of every shard, and the shards against their manifest.

    Args:
        paths: a file, folder, glob or a list of these.
        split: only this one.
        deep: look into the records as well: each payload must parse, agree with the manifest's
            schema, or, where there is none, with its siblings, and each picture must decode, with
            the size and format that its record tells.
        schema: hold each record against this schema file (see `docs/schema.md`).
        threads: how many work at once; None: one for each processor.
        progress: told the bytes done and in all.

    Returns:
        The report; defects of the data are in it and never raised.

    Raises:
        FileAccessError: a path does not exist or cannot be read.
        OptionError: nothing there looks like a TFRecord, or there is no such split; the schema
            file is none.
    """
    count = thread_count(threads)
    report = VerifyReport()
    if schema is not None and not isinstance(schema, SchemaFile):
        schema = SchemaFile.load(schema)
    try:
        located = locate(paths, split)
    except CorruptDataError as error:  # a broken manifest: a finding, not a failure
        report.add([error])
        return report
    if located.manifest is not None:
        counts = located.manifest.record_counts
        report.expected_record_count = sum(counts.values()) if split is None else counts[split]
    report.add(error for _, error in located.missing)
    report.add(manifest_check.check_labels(located))
    report.add(manifest_check.find_extra_shards(located, split))
    work = Work(count, progress)
    for shard in located.shards if progress else ():
        with suppress(FileAccessError):  # whoever reads it says that
            work.total += shard.size_bytes
    if deep or schema is not None:
        report.is_deep = deep
        rules = None if schema is None else schema.rules()
        found = _check_deeply(located, work, report, rules)
    else:
        found = _check_all(located, work)
    manifest_check.compare(located, found)
    report.add(manifest_check.check_compression(located, found))
    report.add(manifest_check.check_total(located, found))
    for findings in found:
        report.add_shard(findings)
    return report


def _check_deeply(
    located: Located,
    work: Work,
    report: VerifyReport,
    rules: Rules | None,
) -> list[ShardFindings]:
    is_of_manifest = rules is None
    if is_of_manifest and located.manifest is not None:
        rules = rules_of_schema(located.manifest.schema)
    with ThreadPoolExecutor(work.threads) as decoding:
        pool = decoding if report.is_deep else None
        deep = DeepCheck(partial(ShardContents, rules, work.advance, pool, work.threads))
        found = _check_all(located, work, deep)
    looked = deep.done
    by_shard = [(shard, looked[shard.path].check) for shard in found if shard.path in looked]
    compare_siblings(by_shard, rules)
    if is_of_manifest and located.manifest is not None and not located.manifest.schema.is_complete:
        report.remarks.append(f"of the manifest's schema: {located.manifest.schema.remark}")
    _remark(report, looked)
    return found


def _remark(report: VerifyReport, looked: Mapping[str, ShardContents]) -> None:
    """Say what was not looked at."""
    for path, contents in looked.items():
        if contents.is_cut_short:
            report.remarks.append(
                f"{path} has so many bad records that those behind the first "
                f"{MAX_DEFECTS_PER_SHARD:,} were not looked into"
            )
        if contents.check.seen.is_full:
            report.remarks.append(
                f"{path} has more than {MOST_FEATURES:,} different features; whether the others "
                "have one kind was not looked at"
            )
        elif contents.check.seen.is_cut and len(looked) > 1:
            report.remarks.append(
                f"{path} has more than {MOST_COMPARED:,} different features; whether the others "
                "are of one kind in all shards was not looked at"
            )
    foreign = {
        contents.check.payload
        for contents in looked.values()
        if contents.check.payload not in (None, *SECTION_FIELDS)
    }
    for payload in sorted(filter(None, foreign)):
        report.remarks.append(
            f"there are payloads that are no Examples but {PAYLOAD_WORDS[payload][1]}: their "
            "checksums were checked, what they hold was not"
        )


def _check_all(located: Located, work: Work, deep: DeepCheck | None = None) -> list[ShardFindings]:
    """What is in each shard."""
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
    work.finish()
    return found


def _call(call: Callable[[], Any]) -> Any:
    return call()
