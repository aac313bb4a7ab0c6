"""The recovery of one shard as a task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from recordsmith.building import ShardResult, claim
from recordsmith.dataset import Shard
from recordsmith.dataset.documents import NOT_AS_EXPECTED
from recordsmith.dataset.shard_documents import shard_from_json, shard_to_json
from recordsmith.errors import OptionError
from recordsmith.reshaping.salvaging.salvage_note import parse_shard
from recordsmith.reshaping.salvaging.salvage_report import SalvagedShard
from recordsmith.reshaping.salvaging.shard_recovery import ShardRecovery
from recordsmith.stores import Location, as_folder
from recordsmith.tasks import Task, result_error
from recordsmith.wire import Compression

_NOT_IN_NAMES = re.compile(r"[/\\:\0]")


def name_in_dataset(name: str) -> str:
    """Return the name in the new dataset for a damaged shard of this name."""
    return _NOT_IN_NAMES.sub("_", name)


def salvage_tasks(
    shards: Sequence[Shard],
    names: Mapping[Location, str],
    folder: Location,
    compression: Compression,
    fingerprint: str,
) -> Iterator[Task]:
    """Yield the task of each shard.

    Args:
        names: of the new shards, by the damaged one.
        folder, compression: of the new dataset.
        fingerprint: of the job.
    """
    for number, shard in enumerate(shards):
        name = names[shard.location]
        content = {
            "out": str(folder.absolute()),
            "compression": compression,
            "file": name,
            "shard": shard_to_json(shard),
            "plan": fingerprint,
        }
        yield Task(run_task, number, name, shard.size_bytes, content)


def run_task(content: dict[str, Any]) -> dict[str, Any]:
    """Recover the records of a shard; return what was recovered, and the written shard."""
    file = str(content["file"])
    if file != name_in_dataset(file):
        raise OptionError(option="file", value=file, expected="a name of a shard")
    folder = claim(as_folder(content["out"]), content["plan"], [file])
    recovery = ShardRecovery(folder, content["compression"], _ignore)
    salvaged, result = recovery.rewrite(shard_from_json(content["shard"]), file)
    return {
        "salvaged": salvaged.to_json(),
        "result": None if result is None else replace(result, plan=content["plan"]),
    }


def outcome(shard: Shard, result: dict[str, Any]) -> tuple[SalvagedShard, ShardResult | None]:
    """Return the result of a task as `ShardRecovery.rewrite` does.

    Raises:
        OptionError: it is not the result of this task.
    """
    try:
        return parse_shard(shard, result["salvaged"]), result["result"]
    except NOT_AS_EXPECTED:
        raise result_error(result) from None


def _ignore(_: Any) -> None:
    """Report no progress: a task is done as a whole."""
