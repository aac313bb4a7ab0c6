"""Verification on an engine: a task for each shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

from recordsmith.dataset import Shard
from recordsmith.dataset.parts import shard_for_task, shard_from_task
from recordsmith.errors import FileAccessError, ForbiddenFileError
from recordsmith.examining.rules import Rules
from recordsmith.examining.verification.deep_check import (
    CheckedContents,
    DeepCheck,
    ShardContents,
)
from recordsmith.examining.verification.shard_check import add_unreadable, check_shard
from recordsmith.examining.verification.verify_report import ShardFindings
from recordsmith.tasks import Engine, Task, run_on

Contents: TypeAlias = tuple[Rules | None, bool]
"""The rules of payloads, and whether to decode images."""

_Result: TypeAlias = tuple[ShardFindings, CheckedContents | None, FileAccessError | None]


def verify_on(
    engine: Engine,
    shards: Sequence[Shard],
    contents: Contents | None,
    advance: Callable[[int], None],
) -> tuple[list[ShardFindings], dict[str, CheckedContents]]:
    """Verify shards; return the findings of each, and the checked contents by path.

    Args:
        contents: how to check payloads; None to check only checksums.
    """

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
