"""Verification as tasks: a shard each, or a range of a large one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any, TypeAlias

from recordsmith.dataset import Shard
from recordsmith.dataset.parts import shard_from_json, shard_to_json
from recordsmith.errors import FileAccessError, ForbiddenFileError
from recordsmith.examining.rules import Rules
from recordsmith.examining.verification.deep_check import (
    CheckedContents,
    DeepCheck,
    ShardContents,
)
from recordsmith.examining.verification.frame_ranges import RangeFindings, ranges_of
from recordsmith.examining.verification.shard_check import (
    add_unreadable,
    check_range,
    check_shard,
    join_findings,
    size_to_divide,
)
from recordsmith.examining.verification.verify_report import ShardFindings, rename_errors
from recordsmith.tasks import Engine, Task, run_on

_Contents: TypeAlias = tuple[Rules | None, bool]
"""The rules of payloads, and whether to decode images."""

_ShardResult: TypeAlias = tuple[ShardFindings, CheckedContents | None, FileAccessError | None]


class VerifyTasks:
    """The tasks of a verification; made while they are iterated, which `finish` needs.

    checked: the contents of each shard, by path.
    """

    def __init__(
        self, shards: Sequence[Shard], rules: Rules | None, *, contents: bool, images: bool
    ) -> None:
        """`contents`, `images`: whether to check payloads, and to decode their images."""
        self._shards = shards
        self._contents: _Contents | None = (rules, images) if contents else None
        self._divided: list[Mapping[str, Any] | None] = []  # the shards with a task for each range
        self._numbers = count()
        self.checked: dict[str, CheckedContents] = {}

    def __iter__(self) -> Iterator[Task]:
        for shard in self._shards:
            document = shard_to_json(shard)
            size = document["size_bytes"]
            is_divided = self._contents is None and size_to_divide(shard) is not None
            self._divided.append(document if is_divided else None)
            if not is_divided:
                yield self._task(_run_shard, shard, size or 0, (document, self._contents))
                continue
            for start, stop in ranges_of(size):
                yield self._task_of_range(shard, document, start, stop, is_guess=start > 0)

    def _task_of_range(
        self, shard: Shard, document: Mapping[str, Any], start: int, stop: int, *, is_guess: bool
    ) -> Task:
        return self._task(_run_range, shard, stop - start, (document, start, stop, is_guess))

    def _task(self, run: Callable[[Any], Any], shard: Shard, size_bytes: int, content: Any) -> Task:
        return Task(run, next(self._numbers), str(shard.location), size_bytes, content)

    def run(self, engine: Engine, advance: Callable[[int], None]) -> list[ShardFindings]:
        """Run the tasks; return the findings of each shard."""
        results = run_on(engine, self, advance)
        parts = (results[number] for number in range(len(results)))
        return [
            self._finish_shard(shard, next(parts))
            if document is None
            else self._join_ranges(engine, shard, document, parts)
            for shard, document in zip(self._shards, self._divided, strict=True)
        ]

    def _join_ranges(
        self, engine: Engine, shard: Shard, document: Mapping[str, Any], results: Iterator[Any]
    ) -> ShardFindings:
        path, size = str(shard.location), document["size_bytes"]

        def named(result: tuple[str, RangeFindings | FileAccessError]) -> Any:
            worker_path, findings = result
            if isinstance(findings, FileAccessError):
                return _renamed(findings, path)
            rename_errors((*findings.errors, *findings.notices), worker_path, path)
            return findings

        def check(start: int, stop: int) -> RangeFindings:
            """Check a range whose first frame was guessed wrong."""
            task = self._task_of_range(shard, document, start, stop, is_guess=False)
            (result,) = run_on(engine, [task], _ignore).values()
            findings: RangeFindings | FileAccessError = named(result)
            if isinstance(findings, FileAccessError):
                raise findings
            return findings

        parts = [named(next(results)) for _ in ranges_of(size)]
        return join_findings(shard, size, iter(parts), check)

    def _finish_shard(self, shard: Shard, result: _ShardResult) -> ShardFindings:
        path = str(shard.location)
        findings, contents, error = result
        rename_errors((*findings.defects, *findings.notices), findings.path, path)
        findings.path = path
        if error is not None:
            add_unreadable(findings, _renamed(error, path))
        if contents is not None:
            self.checked[path] = contents
        return findings


def _run_shard(content: tuple[Mapping[str, Any], _Contents | None]) -> _ShardResult:
    """Verify the shard of a task."""
    document, contents = content
    shard = shard_from_json(document)
    findings = ShardFindings(str(shard.location))
    error = None
    with ThreadPoolExecutor(1) as decoding:
        deep = _deep_check(contents, decoding)
        try:
            check_shard(shard, findings, _ignore, deep)
        except FileAccessError as found:
            _check_credentials(shard, found)
            error = found
    return findings, None if deep is None else deep.done.get(findings.path), error


def _check_credentials(shard: Shard, error: FileAccessError) -> None:
    """Raise an error that says more about the worker than about the shard."""
    if shard.is_remote and isinstance(error, ForbiddenFileError):
        error.advise("Workers take credentials and options of stores from their own environment.")
        raise error


def _deep_check(contents: _Contents | None, decoding: ThreadPoolExecutor) -> DeepCheck | None:
    if contents is None:
        return None
    rules, decodes_images = contents
    pool = decoding if decodes_images else None
    return DeepCheck(partial(ShardContents, rules, _ignore, pool, 1))


def _run_range(
    content: tuple[Mapping[str, Any], int, int, bool],
) -> tuple[str, RangeFindings | FileAccessError]:
    """Verify the range of a task; return the path of the shard, and what was found."""
    document, start, stop, is_guess = content
    shard = shard_from_json(document)
    path = str(shard.location)
    try:
        size = document["size_bytes"]
        return path, check_range(shard, size, start, stop, is_guess=is_guess, searches_all=True)
    except FileAccessError as error:
        return path, error


def _renamed(error: FileAccessError, path: str) -> FileAccessError:
    """The error of a shard, which this process names `path`."""
    error.path = error.filename = path
    return error


def _ignore(_: Any) -> None:
    """Report no progress: a task is done as a whole."""
