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
from itertools import chain, islice
from typing import Any

from recordsmith.dataset.locate import Located, Paths, locate
from recordsmith.errors import CorruptDataError, FileAccessError
from recordsmith.examining.rules import Rules, rules_of_schema
from recordsmith.examining.schema_file import SchemaFile
from recordsmith.examining.verification import manifest_check
from recordsmith.examining.verification.contents import ShardContents
from recordsmith.examining.verification.report import (
    MAX_DEFECTS_PER_SHARD,
    ShardFindings,
    VerifyReport,
)
<<<<<<< HEAD
from recordsmith.examining.verification.shard_check import ReadingPlan, plan_of
=======
from recordsmith.examining.verification.report import ShardFindings, VerifyReport
from recordsmith.examining.verification.rule_check import MOST_COMPARED
from recordsmith.examining.verification.shard_stream import read_stream
>>>>>>> limits
from recordsmith.examining.verification.siblings import compare_siblings
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

        def look() -> ShardContents:
            return ShardContents(
                rules,
                work.advance,
                decoding if report.is_deep else None,
                work.threads,
            )

        looked: dict[str, ShardContents] = {}
        found = _check_all(located, work, look, looked)
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
        if contents.check.is_full:
            report.remarks.append(
                f"{path} has more than {MOST_FEATURES:,} different features; whether the others "
                "have one kind was not looked at"
            )
        elif contents.check.is_cut and len(looked) > 1:
            report.remarks.append(
                f"{path} has more than {MOST_COMPARED:,} different features; whether the others "
                "are of one kind in all shards was not looked at"
            )
    foreign = {
        contents.check.payload
        for contents in looked.values()
        if contents.check.payload not in (None, "Example", "SequenceExample")
    }
    for payload in sorted(filter(None, foreign)):
        what = "some other message or plain data" if payload == "other" else payload
        report.remarks.append(
            f"there are payloads that are no Examples ({what}): their checksums were checked, what "
            "they hold was not"
        )


def _check_all(
    located: Located,
    work: Work,
    look: Callable[[], ShardContents] | None = None,
    looked: dict[str, ShardContents] | None = None,
) -> list[ShardFindings]:
    """What is in each shard; what looked at its payloads goes to `looked`, by path."""
    plans: deque[ReadingPlan] = deque()

    def calls() -> Iterator[Callable[[], Any]]:
        for shard in located.shards:
            plan = plan_of(shard, work, look, looked)
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
<<<<<<< HEAD
=======


def _plan(shard: Shard, work: Work) -> _Plan:
    size = _size(shard.path)
    if work.threads > 1 and size >= _SHARED_FROM_BYTES:
        try:
            is_plain = detect_compression(_head(shard)) == "none"
        except FileAccessError:
            is_plain = False
        if is_plain:
            return _plan_of_ranges(shard, size, work)
    return _Plan([partial(_check_shard, shard, work)], next)


def _head(shard: Shard) -> bytes:
    with open_file(shard.path) as file, accessing(shard.path):
        return file.read(HEAD_BYTES)


def _plan_of_ranges(shard: Shard, size: int, work: Work) -> _Plan:
    ranges = ranges_of(size)
    with_checksum = shard.entry is not None

    def check(start: int, stop: int) -> RangeFindings | FileAccessError:
        try:
            with open_file(shard.path) as file:
                checker = RangeCheck(
                    file.fileno(), shard.path, size, work.advance, with_checksum=with_checksum
                )
                return checker.range(start, stop, is_guess=start > 0)
        except FileAccessError as error:
            return error

    def finish(parts: Iterator[RangeFindings | FileAccessError]) -> ShardFindings:
        findings = ShardFindings(str(shard.path), size)
        try:
            with open_file(shard.path) as file:
                checker = RangeCheck(
                    file.fileno(), shard.path, size, work.advance, with_checksum=with_checksum
                )
                _take(findings, join_ranges(_raising(parts), ranges, checker))
        except FileAccessError as error:
            _refused(findings, error)
        _look_for_changes(shard, findings)
        return findings

    return _Plan([partial(check, start, stop) for start, stop in ranges], finish)


def _raising(parts: Iterator[RangeFindings | FileAccessError]) -> Iterator[RangeFindings]:
    for part in parts:
        if isinstance(part, FileAccessError):
            raise part
        yield part


def _take(findings: ShardFindings, parts: Iterable[RangeFindings]) -> None:
    """Put the ranges of a shard together."""
    checksum: int | None = 0
    for part in parts:
        findings.record_count += part.record_count
        findings.seen_count += part.seen_count
        findings.add(part.errors, MAX_DEFECTS_PER_SHARD, part.error_count)
        findings.notice(part.notices)
        if not part.start:
            checksum = part.checksum
        elif checksum is not None:
            checksum = join_crc32c(checksum, part.checksum, part.stop - part.start)
        if part.is_lost:  # the rest was not read
            checksum = None
    findings.checksum = checksum


def _check_shard(
    shard: Shard,
    work: Work,
    look: Callable[[], ShardContents] | None = None,
    looked: dict[str, ShardContents] | None = None,
) -> ShardFindings:
    """One shard by one thread. The file's own bytes say how it is compressed."""
    findings = ShardFindings(str(shard.path))
    with_checksum = shard.entry is not None
    try:
        with open_file(shard.path) as file, accessing(shard.path):
            status = os.fstat(file.fileno())
            is_regular = stat.S_ISREG(status.st_mode)
            findings.size_bytes = status.st_size
            head = os.pread(file.fileno(), HEAD_BYTES, 0) if is_regular else b""
            if look is None and is_regular and detect_compression(head) == "none":
                checker = RangeCheck(
                    file.fileno(),
                    shard.path,
                    status.st_size,
                    work.advance,
                    with_checksum=with_checksum,
                )
                _take(findings, [checker.range(0, status.st_size)])
            else:
                contents = read_stream(file, findings, work.advance, MAX_DEFECTS_PER_SHARD, look)
                if contents is not None and looked is not None:
                    contents.check.let_go()
                    looked[findings.path] = contents
    except FileAccessError as error:
        _refused(findings, error)
        return findings
    if is_regular:
        _look_for_changes(shard, findings)
    entry = shard.entry
    if findings.size_bytes == 0 and (entry is None or entry.record_count):
        findings.add([empty_file(shard.path)], MAX_DEFECTS_PER_SHARD)
    return findings


def _refused(findings: ShardFindings, error: FileAccessError) -> None:
    is_missing = isinstance(error, MissingFileError)
    defect = Defect.MISSING_SHARD if is_missing else Defect.UNREADABLE_SHARD
    findings.is_read, findings.checksum = False, None
    findings.add([CorruptDataError(defect, str(error))], MAX_DEFECTS_PER_SHARD)


def _look_for_changes(shard: Shard, findings: ShardFindings) -> None:
    """A file that grew while it was read: what was there when that began was judged."""
    try:
        size = os.stat(shard.path).st_size
    except OSError:
        findings.notice(
            [
                CorruptDataError(
                    Defect.CHANGING_SHARD,
                    "the file was removed while it was read; what is said of it holds for what "
                    "was there.",
                )
            ]
        )
        return
    if size > findings.size_bytes:
        findings.notice(
            [
                CorruptDataError(
                    Defect.CHANGING_SHARD,
                    f"the file grew from {findings.size_bytes} to {size} bytes while it was read; "
                    "what was there at first was judged. Another program is writing it: verify it "
                    "again when that is done.",
                )
            ]
        )
>>>>>>> limits
