"""Verification as tasks: a shard each, or a range of a large one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any

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
from recordsmith.examining.verification.verify_report import ShardFindings, errors_from_json
from recordsmith.tasks import (
    Document,
    Engine,
    Task,
    error_from_json,
    error_to_json,
    run_on,
)


class VerifyTasks:
    """The tasks of a verification; made while they are iterated, which `finish` needs.

    checked: the contents of each shard, by path.
    """

    def __init__(
        self, shards: Sequence[Shard], rules: Rules | None, *, contents: bool, images: bool
    ) -> None:
        """`contents`, `images`: whether to check payloads, and to decode their images."""
        self._shards = shards
        self._contents = (
            {"rules": None if rules is None else rules.to_json(), "images": images}
            if contents
            else None
        )
        self._divided: list[Document | None] = []  # the shards with a task for each range
        self._numbers = count()
        self.checked: dict[str, CheckedContents] = {}

    def __iter__(self) -> Iterator[Task]:
        for shard in self._shards:
            document = shard_to_json(shard)
            size = document["size_bytes"]
            is_divided = self._contents is None and size_to_divide(shard) is not None
            self._divided.append(document if is_divided else None)
            if not is_divided:
                content = {"shard": document, "contents": self._contents}
                yield self._task(shard, size or 0, content)
                continue
            for start, stop in ranges_of(size):
                yield self._task_of_range(shard, document, start, stop, is_guess=start > 0)

    def _task_of_range(
        self, shard: Shard, document: Document, start: int, stop: int, *, is_guess: bool
    ) -> Task:
        content = {"shard": document, "range": [start, stop], "is_guess": is_guess}
        return self._task(shard, stop - start, content)

    def _task(self, shard: Shard, size_bytes: int, content: Document) -> Task:
        return Task("verify", "", next(self._numbers), str(shard.location), size_bytes, content)

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
        self, engine: Engine, shard: Shard, document: Document, results: Iterator[Document]
    ) -> ShardFindings:
        path, size = str(shard.location), document["size_bytes"]

        def check(start: int, stop: int) -> RangeFindings:
            """Check a range whose first frame was guessed wrong."""
            task = self._task_of_range(shard, document, start, stop, is_guess=False)
            (result,) = run_on(engine, [task], _ignore).values()
            found = _range_from_json(result, path)
            if isinstance(found, FileAccessError):
                raise found
            return found

        parts = [_range_from_json(next(results), path) for _ in ranges_of(size)]
        return join_findings(shard, size, iter(parts), check)

    def _finish_shard(self, shard: Shard, result: Document) -> ShardFindings:
        path = str(shard.location)
        findings = ShardFindings.from_json(result["findings"], path)
        if result["error"] is not None:
            add_unreadable(findings, _access_error(result["error"], path))
        if result["contents"] is not None:
            self.checked[path] = CheckedContents.from_json(result["contents"])
        return findings


def run_task(task: Task) -> Document:
    """Verify the shard or the range of a task; return its findings."""
    content = task.content
    shard = shard_from_json(content["shard"])
    if "range" in content:
        return _check_range(shard, content)
    findings = ShardFindings(str(shard.location))
    error = None
    with ThreadPoolExecutor(1) as decoding:
        deep = _deep_check(content["contents"], decoding)
        try:
            check_shard(shard, findings, _ignore, deep)
        except FileAccessError as found:
            _check_credentials(shard, found)
            error = error_to_json(found)
    contents = None if deep is None else deep.done.get(findings.path)
    return {
        "findings": findings.to_json(),
        "contents": None if contents is None else contents.to_json(),
        "error": error,
    }


def _check_credentials(shard: Shard, error: FileAccessError) -> None:
    """Raise an error that says more about the worker than about the shard."""
    if shard.is_remote and isinstance(error, ForbiddenFileError):
        error.advise("Workers take credentials and options of stores from their own environment.")
        raise error


def _deep_check(contents: Document | None, decoding: ThreadPoolExecutor) -> DeepCheck | None:
    if contents is None:
        return None
    rules = None if contents["rules"] is None else Rules.from_json(contents["rules"])
    pool = decoding if contents["images"] else None
    return DeepCheck(partial(ShardContents, rules, _ignore, pool, 1))


def _check_range(shard: Shard, content: Document) -> Document:
    start, stop = content["range"]
    size = content["shard"]["size_bytes"]
    is_guess = content["is_guess"]
    try:
        found = check_range(shard, size, start, stop, is_guess=is_guess, searches_all=True)
    except FileAccessError as error:
        return {"error": error_to_json(error)}
    errors = {name: [*map(error_to_json, vars(found)[name])] for name in ("errors", "notices")}
    return {"path": str(shard.location), "found": vars(found) | errors}


def _range_from_json(result: Document, path: str) -> RangeFindings | FileAccessError:
    if "error" in result:
        return _access_error(result["error"], path)
    found = result["found"]
    errors = {
        name: errors_from_json(found[name], result["path"], path) for name in ("errors", "notices")
    }
    return RangeFindings(**{**found, **errors})


def _access_error(document: Document, path: str) -> FileAccessError:
    """Restore the error of a shard, which this process names `path`."""
    error = error_from_json(document)
    assert isinstance(error, FileAccessError)
    error.path = error.filename = path
    return error


def _ignore(_: Any) -> None:
    """Report no progress: a task is done as a whole."""
