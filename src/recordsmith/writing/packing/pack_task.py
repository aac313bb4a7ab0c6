"""One shard of a packing job as a task, and how a worker writes it.

Users may save tasks as JSON, which may come from strangers: everything in one is checked before
anything is written.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np

from recordsmith.dataset import ShardPlan, is_shard_name, is_valid_file_name, line_in_json
from recordsmith.sources import Sample, SampleReader, collect, open_reader
from recordsmith.stores import Location, as_folder
from recordsmith.support.errors import FileAccessError, OptionError
from recordsmith.support.tasks import VERSION, version_error
from recordsmith.support.work import WorkerPool
from recordsmith.writing.building.claims import claim
from recordsmith.writing.building.shards import ShardResult
from recordsmith.writing.packing.pack_options import PackOptions
from recordsmith.writing.packing.shard_assignment import ShardAssignment
from recordsmith.writing.packing.writing import ShardPacker

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Label: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Version: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class TaskSample(msgspec.Struct, frozen=True, array_like=True):
    """A sample of a task. number: in the listing; fold: None without folds."""

    number: _Count
    name: str
    size_bytes: _Count
    label: _Label | None
    version: _Version | None
    reference: dict[str, Any] | None
    fold: _Count | None = None


class PackTask(msgspec.Struct, frozen=True):
    """Writes one shard of a plan, in any process that sees the source and the dataset.

    fingerprint: of the plan.
    number: its place in the plan, from 0.
    name: the shard.
    out: the folder of the dataset, without credentials.
    reader: of the samples, without credentials.
    samples: in the order of the shard.
    """

    fingerprint: str
    number: _Count
    name: str
    split: str
    out: str
    options: dict[str, Any]
    trusting: bool
    reader: dict[str, Any]
    samples: list[TaskSample]
    version: int = VERSION

    @property
    def size(self) -> int:
        """The number of its samples."""
        return len(self.samples)

    def to_json(self) -> dict[str, Any]:
        """Return the task as plain JSON values."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document

    @classmethod
    def from_json(cls, document: object) -> PackTask:
        """Restore a task from `to_json`."""
        if not isinstance(document, Mapping):
            raise OptionError(option="task", value=document, expected="the JSON of a task")
        if document.get("version") != VERSION:
            raise version_error(document.get("version"))
        try:
            return msgspec.convert(document, cls)
        except msgspec.ValidationError as error:
            raise OptionError(f"the task is invalid: {error}", option="task") from None


def portable_reader(reader: SampleReader) -> dict[str, Any] | None:
    """A reader as plain JSON values; None if only this process can read the samples.

    Rows of tables are encoded when they are listed, so that a worker could only copy them.
    """
    if hasattr(reader, "frames") and reader.frames() is not None:
        return None
    try:
        return reader.to_json()
    except OptionError:
        return None


def pack_shard(task: PackTask) -> ShardResult:
    """Write the shard of a task."""
    shard = ShardPlan(check_shard_file(task.name), line_in_json(task.split), 0, task.size)
    options = PackOptions.from_json(task.options)
    reader = open_reader_once(json.dumps(task.reader))
    check_visible(reader)
    samples = collect(
        Sample(s.name, s.size_bytes, s.label, version=s.version, reference=s.reference)
        for s in task.samples
    )
    numbers = np.array([sample.number for sample in task.samples], np.int64)
    orders = {shard.split: np.arange(task.size)}
    folds = None if options.folds is None else np.array([s.fold for s in task.samples], np.int64)
    assignment = ShardAssignment((shard,), task.fingerprint, samples, orders, numbers, folds=folds)
    folder = claim(as_folder(task.out), task.fingerprint, [task.name])
    packer = ShardPacker(reader, assignment, folder, options, WorkerPool(1, None))
    # a worker may not have seen all samples, so a rerun tries those again that were skipped
    (result,) = packer.run(trusting=task.trusting, keeps_skipped=False)
    return result


def check_shard_file(name: object) -> str:
    """Return the name of a shard in a plan or a task, which may come from a file."""
    if not isinstance(name, str) or not is_valid_file_name(name) or not is_shard_name(name):
        raise OptionError(option="file", value=name, expected="a name of a shard")
    return name


def check_visible(reader: object) -> None:
    """Check that this machine sees the source."""
    root = getattr(reader, "root", None)
    if isinstance(root, Location) and not root.store.is_remote and not root.is_folder():
        raise FileAccessError(
            errno.ENOENT, "this machine does not see the source", str(root),
            remedy="Mount it under the same path on all machines, or pass a URL.",
        )  # fmt: skip


@lru_cache(maxsize=2)
def open_reader_once(document: str) -> SampleReader:
    """Open a reader, or return the one that this process has for earlier tasks."""
    return open_reader(json.loads(document))
