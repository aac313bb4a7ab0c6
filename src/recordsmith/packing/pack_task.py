"""One shard of a packing job as a task, and how a worker writes it."""

from __future__ import annotations

import errno
import json
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.building import ShardResult, claim
from recordsmith.dataset import ClassNames
from recordsmith.errors import FileAccessError, OptionError
from recordsmith.packing.planning import PackShard, Plan
from recordsmith.packing.recipe import Recipe
from recordsmith.packing.writing import ShardJobs
from recordsmith.sources import Listing, Sample, SampleReader, open_reader
from recordsmith.sources.numbered import collect
from recordsmith.stores import Location, as_folder
from recordsmith.tasks import Task
from recordsmith.work import Work


@dataclass(frozen=True)
class PackTask:
    """Writes one shard of a plan, in any process that sees the source and the dataset.

    plan: the fingerprint of the plan.
    out: the folder of the dataset, without credentials.
    reader: of the samples, as JSON without credentials.
    samples: in the order of the shard.
    numbers: of the samples in the listing.
    """

    plan: str
    out: str
    recipe: Recipe
    trusting: bool
    class_names: ClassNames | None
    reader: str
    file: str
    split: str
    samples: list[Sample]
    numbers: Int64Array


def portable_reader(listing: Listing) -> str | None:
    """The JSON of a listing's reader; None if only this process can read the samples.

    Rows of tables are encoded when they are listed, so that a worker could only copy them.
    """
    reader = listing.reader
    if hasattr(reader, "frames") and reader.frames() is not None:
        return None
    try:
        return json.dumps(reader.to_json())
    except OptionError:
        return None


def make_tasks(
    out: Location, recipe: Recipe, listing: Listing, plan: Plan, reader: str, *, trusting: bool
) -> Iterator[Task]:
    """Yield the tasks of a plan, one for each shard; args as of `PackTask`."""
    for number, shard in enumerate(plan.shards):
        task = PackTask(
            plan.fingerprint,
            str(out.absolute()),
            recipe,
            trusting,
            listing.class_names,
            reader,
            shard.file,
            shard.split,
            list(plan.samples.select(shard.samples)),
            np.asarray(shard.samples, np.int64),
        )
        yield Task(run_task, number, shard.file, len(shard.samples), task)


def run_task(task: PackTask) -> ShardResult:
    """Write the shard of a task."""
    reader = open_reader_once(task.reader)
    check_visible(reader)
    shard = PackShard(task.file, task.split, array("q", range(len(task.samples))))
    listing = Listing(task.samples, reader, task.class_names)
    plan = Plan(
        (shard,),
        (task.split,),
        task.recipe.shard_compression,
        task.plan,
        collect(task.samples),
        task.numbers,
    )
    folder = claim(as_folder(task.out), task.plan, [task.file])
    jobs = ShardJobs(listing, plan, folder, task.recipe, Work(1, None))
    # a worker may not have seen all samples, so a rerun tries those again that were skipped
    (result,) = jobs.run(trusting=task.trusting, keeps_skipped=False)
    return result


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
