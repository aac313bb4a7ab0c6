"""Shards as plain JSON values, for tasks that read them in other processes."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

import numpy as np

from recordsmith.dataset.manifest import ShardEntry
from recordsmith.dataset.selected_records import AnyShard, ShardPart
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shard_sequence import ShardSequence
from recordsmith.errors import FileAccessError, MissingFileError
from recordsmith.stores import ObjectInfo, as_location


def shard_to_json(shard: Shard) -> dict[str, Any]:
    """Return a shard as plain JSON values: where it is, and which version of it.

    Raises:
        FileAccessError: it is not a file but a pipe.
    """
    size_bytes = version = None
    try:
        _, size_bytes, version = shard.info()
    except FileAccessError as error:
        if error.errno == errno.EINVAL:
            error.advise("Run the job without an engine: other processes read only files.")
            raise
        # a shard that cannot be read is a finding of some jobs
    return {
        "path": str(shard.location.absolute()),
        "split": shard.split,
        "entry": None if shard.entry is None else vars(shard.entry),
        "size_bytes": size_bytes,
        "version": version,
        "may_have_index": shard.may_have_index,
    }


def shard_from_json(document: Mapping[str, Any]) -> Shard:
    """Open a shard in another process, in the version of `shard_to_json`.

    Raises:
        FileAccessError: this machine sees no such file, or another version of it. Over a network,
            reading raises it.
    """
    location = as_location(document["path"])
    store, size_bytes = location.store, document["size_bytes"]
    entry = document["entry"]
    listed = None
    if size_bytes is not None and store.is_remote:
        listed = ObjectInfo(location.key, size_bytes, document["version"])
    elif size_bytes is not None:
        try:
            found = location.info()
        except MissingFileError as error:
            error.advise("The worker must see it under the same path. Or pass a URL.")
            raise
        numbers = [store.version_number(one) for one in (found.version, document["version"])]
        if found.size_bytes != size_bytes or numbers[0] != numbers[1]:
            raise FileAccessError(
                errno.ESTALE,
                f"the worker sees another version of it, with {found.size_bytes} bytes instead "
                f"of {size_bytes}",
                str(location),
                remedy="Check that nothing writes to it, and that all machines see the same disk.",
            )
    return Shard(
        location,
        document["split"],
        entry=None if entry is None else ShardEntry(**entry),
        listed=listed,
        may_have_index=document["may_have_index"],
    )


def part_to_json(part: AnyShard) -> dict[str, Any]:
    """Return a shard, or the part of one, as plain JSON values; errors as `shard_to_json`."""
    if isinstance(part, Shard):
        return shard_to_json(part)
    numbers = part.numbers()
    is_run = isinstance(numbers, range)
    listed = (
        [numbers.start, numbers.stop, numbers.step]
        if isinstance(numbers, range)
        else numbers.tolist()
    )
    return {**shard_to_json(part.shard), "is_run": is_run, "numbers": listed}


def part_from_json(document: Mapping[str, Any]) -> AnyShard:
    """Open a shard, or the part of one; errors as `shard_from_json`."""
    shard = shard_from_json(document)
    if "numbers" not in document:
        return shard
    listed = document["numbers"]
    numbers = range(*listed) if document["is_run"] else np.array(listed, np.int64)
    return ShardPart(ShardSequence([shard]), shard, 0, numbers)
