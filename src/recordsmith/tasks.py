"""A job as data: tasks that run on their own in any process, and what an engine is.

Tasks and results are plain JSON values, so that they travel to any machine, and can be stored.
"""

from __future__ import annotations

import base64
import importlib
import io
import pickle
import platform
import re
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from recordsmith import errors
from recordsmith.errors import Defect, OptionError, RecordsmithError

_Result = TypeVar("_Result")

VERSION = 1
"""Changes if a worker of another version would write other bytes or return other results, or cannot
read a task.
"""

Document: TypeAlias = Mapping[str, Any]
"""Plain JSON values."""

_SAME_VERSION = "Install the same version of recordsmith on all machines."
_NOT_THE_SAME = re.compile(r"\w*(Import|ModuleNotFound|Attribute|Name|[Pp]ickl)\w*Error", re.ASCII)
_RAISED = re.compile(r"^\w[\w.]*(?:Error|Exception)\b.*$", re.MULTILINE)  # ends a traceback
_JOBS = {
    "diff": "recordsmith.examining.diff.diff_task",
    "export": "recordsmith.exporting.export_task",
    "pack": "recordsmith.packing.pack_task",
    "reshard": "recordsmith.reshaping.reshard_task",
    "stats": "recordsmith.examining.stats.stats_report",
    "verify": "recordsmith.examining.verification.verify_task",
}
"""The module of each job; its `run_task` runs the content of a task and returns a document."""

_PLAIN_VALUES = {
    ("collections", "Counter"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
}
"""What arrays and counters are pickled with."""

_FIELDS = {"job": str, "plan": str, "number": int, "name": str, "size": int, "content": Mapping}
"""The types of the fields of a task in JSON."""


@dataclass(frozen=True)
class Task:
    """A part of a job that runs on its own: it reads its inputs, and writes at most one file.

    job: what it does, such as `pack`.
    plan: the fingerprint of the plan that it belongs to; empty if its job writes no dataset.
    number: its place in the plan, from 0.
    name: what messages call it: the file that it writes, or the only one that it reads.
    size: how much of the job's progress it is, such as its number of samples or bytes.
    content: everything that it needs, as plain JSON values, without credentials.
    """

    job: str
    plan: str
    number: int
    name: str
    size: int
    content: Document

    def to_json(self) -> dict[str, Any]:
        """Return the task as plain JSON values."""
        return {"version": VERSION, **vars(self)}

    @classmethod
    def from_json(cls, document: Document) -> Task:
        """Restore a task from `to_json`.

        Raises:
            OptionError: the document is not a task, or of another version of recordsmith.
        """
        if not isinstance(document, Mapping):
            raise OptionError(option="task", value=document, expected="the JSON of a task")
        for what, known in (("version", (VERSION,)), ("job", tuple(_JOBS))):
            if document.get(what) not in known:
                raise OptionError(
                    f"the task is of {what} {document.get(what)!r:.40}",
                    option="task",
                    expected=f"{what} {', '.join(map(str, known))}",
                    remedy=_SAME_VERSION,
                )
        for name, kind in _FIELDS.items():
            if not isinstance(document.get(name), kind):
                raise OptionError(f"the task has no valid {name!r}", option="task")
        return cls(**{name: document[name] for name in _FIELDS})


class Engine(Protocol):
    """Runs tasks: in other processes, or on other machines."""

    def map(
        self, function: Callable[[Document], Document], tasks: Iterable[Document]
    ) -> Iterator[Document]:
        """Yield the result of each task as it completes, in any order.

        Takes tasks only as fast as they run. A task whose worker is lost is repeated, a few times;
        more than one result of a task does no harm. When the iterator is closed, tasks that have
        not begun are cancelled.

        Args:
            function: of a module, so that it is known by its name; raises no error of recordsmith.
            tasks: plain JSON values.

        Raises:
            RecordsmithError: the workers of a task were lost too often, or cannot run it.
        """
        ...


def run_document(document: Document) -> Document:
    """Run a task; return its result, or the error that it ended with."""
    try:
        task = Task.from_json(document)
        module = importlib.import_module(_JOBS[task.job])
        return {"task": task.number, "result": module.run_task(task)}
    except RecordsmithError as error:
        failure = error
    except Exception as error:  # noqa: BLE001 - a fault of this program or of its environment
        traceback.print_exc()
        failure = RecordsmithError(f"a worker failed with {type(error).__name__}: {error}")
    name = document.get("name")
    return {
        "task": document.get("number"),
        "name": name,
        "machine": platform.node(),
        "error": error_to_json(failure),
    }


def run_on(
    engine: Engine, tasks: Iterable[Task], advance: Callable[[int], None]
) -> dict[int, Document]:
    """Run tasks on an engine; return their results by number, as `completed`."""
    return dict(completed(engine, tasks, advance))


def completed(
    engine: Engine, tasks: Iterable[Task], advance: Callable[[int], None]
) -> Generator[tuple[int, Document]]:
    """Run tasks on an engine; yield number and result of each as it completes.

    A caller that may not take all results must close the generator.

    Args:
        advance: called with the size of each task that is done.

    Raises:
        OptionError: it is not an engine.
        RecordsmithError: what the first failed task ended with, with its name.
        OptionError: the engine returned something that is not the result of one of these tasks.
    """
    if isinstance(engine, type) or not hasattr(engine, "map"):
        raise OptionError(
            option="engine", value=engine, expected="an engine such as rs.engines.Processes(4)"
        )
    sizes: dict[int, int] = {}

    def documents() -> Iterator[Document]:
        for task in tasks:
            sizes[task.number] = task.size
            yield task.to_json()

    done: set[int] = set()
    found = engine.map(run_document, documents())
    try:
        for document in found:
            if "error" in document:
                error = error_from_json(document["error"])
                machine = document.get("machine", platform.node())
                where = "" if machine == platform.node() else f" on {machine}"
                error.advise(f"The task for {document['name']} failed{where}.")
                raise error
            number = document.get("task")
            if number not in sizes or "result" not in document:
                raise OptionError(
                    "the engine returned something that is not the result of a task of this job",
                    option="results",
                    value=document,
                    remedy=_SAME_VERSION,
                )
            if number not in done:  # a repeated task may find what the first one wrote
                done.add(number)
                advance(sizes[number])
                yield number, document["result"]
    finally:
        close = getattr(found, "close", None)
        if close is not None:
            close()
    if missing := sizes.keys() - done:
        raise missing_error(missing)


def in_order(results: Iterable[tuple[int, Document]]) -> Iterator[Document]:
    """Yield results in the order of their numbers; those that come early wait in memory."""
    waiting: dict[int, Document] = {}
    wanted = 0
    for number, result in results:
        waiting[number] = result
        while wanted in waiting:
            yield waiting.pop(wanted)
            wanted += 1


def result_to_text(result: object) -> str:
    """Return a result of our own classes as text, for a document that an engine sends."""
    return base64.b64encode(pickle.dumps(result, 4)).decode()


def result_from_text(text: str, kind: type[_Result]) -> _Result:
    """Restore a result of a class, which has objects of its package, arrays and counters.

    Nothing else is restored, as some engines send documents through files.
    """
    home = kind.__module__.rpartition(".")[0] + "."
    try:
        result = _ResultUnpickler(io.BytesIO(base64.b64decode(text)), home).load()
    except RecordsmithError:
        raise
    except Exception as error:  # malformed pickles raise errors of any class
        raise _not_a_result(f"{type(error).__name__}: {error}") from error
    if not isinstance(result, kind):
        raise _not_a_result(type(result).__name__)
    return result


def _not_a_result(value: str) -> OptionError:
    return OptionError(
        "the engine returned something that is not a result of this job",
        option="results",
        value=value,
        remedy=_SAME_VERSION,
    )


class _ResultUnpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, home: str) -> None:
        super().__init__(file)
        self._home = home

    def find_class(self, module: str, name: str) -> Any:
        if (module.replace("numpy.core", "numpy._core"), name) in _PLAIN_VALUES:
            return super().find_class(module, name)
        kind = super().find_class(module, name) if module.startswith(self._home) else None
        if isinstance(kind, type) and kind.__module__.startswith(self._home):
            return kind
        raise _not_a_result(f"{module}.{name}")


def missing_error(numbers: Iterable[int]) -> OptionError:
    """Return the error for tasks without a result."""
    missing = sorted(numbers)
    shown = ", ".join(map(str, missing[:10]))
    more = f" and {len(missing) - 10:,} more" if len(missing) > 10 else ""
    return OptionError(
        f"tasks without a result: {shown}{more}", option="results", remedy="Run these tasks again."
    )


def lost_error(task: Document) -> RecordsmithError:
    """Return the error for a task whose worker was lost again and again."""
    return RecordsmithError(
        f"the workers for task {task.get('number')}, for {task.get('name')}, were killed",
        remedy="They may need more memory: run fewer at the same time, or make smaller shards.",
    )


def failed_error(task: Document, error: object) -> RecordsmithError:
    """Return the error for a task that a worker cannot run, such as where it imports nothing.

    Args:
        error: an exception, or its text, which may have the traceback of the worker.
    """
    raised = _RAISED.findall(str(error))
    reason = raised[-1] if raised else f"{type(error).__name__}: {error}".partition("\n")[0]
    return RecordsmithError(
        f"the worker for task {task.get('number')}, for {task.get('name')}, failed: {reason}",
        remedy=(
            f"{_SAME_VERSION} They also need the same version of Python."
            if _NOT_THE_SAME.search(reason)
            else ""
        ),
    )


def error_to_json(error: RecordsmithError) -> dict[str, Any]:
    """Return an error as plain JSON values."""
    fields = {name: _plain(value) for name, value in vars(error).items()}
    return {"class": type(error).__name__, "fields": fields, "arguments": _plain(error.args)}


def error_from_json(document: Document) -> RecordsmithError:
    """Restore an error from `error_to_json`."""
    kind = getattr(errors, document["class"], RecordsmithError)
    if not (isinstance(kind, type) and issubclass(kind, RecordsmithError)):
        kind = RecordsmithError
    error = kind(*map(_unplain, document["arguments"]))  # as an exception is unpickled
    vars(error).update({field: _unplain(value) for field, value in document["fields"].items()})
    return error


def _plain(value: Any) -> Any:
    if isinstance(value, Defect):
        return {"defect": value.value}
    if isinstance(value, (list, tuple)):
        return [*map(_plain, value)]
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _unplain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Defect(value["defect"])
    return tuple(map(_unplain, value)) if isinstance(value, list) else value
