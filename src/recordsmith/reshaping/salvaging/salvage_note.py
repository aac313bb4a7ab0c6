"""The report of a salvage, saved in the hidden folder so that a rerun can return it.

The note is used if it is valid and of the same job and files; otherwise the job runs again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from recordsmith.dataset import Shard
from recordsmith.dataset.documents import NOT_AS_EXPECTED, integer_in_json
from recordsmith.dataset.names import INTERNAL_FOLDER
from recordsmith.errors import Defect, FileAccessError
from recordsmith.reshaping.salvaging.salvage_report import SalvagedShard
from recordsmith.stores import Location, read_note, write_atomically
from recordsmith.wire import LostBytes, Repair

_NAME = "salvage.json"
_VERSION = 2


def save_results(folder: Location, fingerprint: str, shards: Sequence[SalvagedShard]) -> None:
    """Save the results of all shards; `fingerprint` is of the job."""
    found = [shard.to_json() for shard in shards]
    for of_shard in found:
        del of_shard["path"]  # paths of the inputs are private
    document = {"version": _VERSION, "fingerprint": fingerprint, "shards": found}
    write_atomically(_location(folder), json.dumps(document).encode())


def load_results(
    folder: Location, fingerprint: str, shards: Sequence[Shard]
) -> list[SalvagedShard] | None:
    """Load the results of these shards; None if they are not known."""
    try:
        document = json.loads(read_note(_location(folder)))
        if document["fingerprint"] != fingerprint:
            return None
        return [
            parse_shard(shard, found)
            for shard, found in zip(shards, document["shards"], strict=True)
        ]
    except (FileAccessError, *NOT_AS_EXPECTED):
        return None


def _location(folder: Location) -> Location:
    return folder / INTERNAL_FOLDER / _NAME


def parse_shard(shard: Shard, found: Any) -> SalvagedShard:
    """Restore the result of a shard from its JSON, with its current path."""
    return SalvagedShard(
        str(shard.location),
        shard.split,
        file=None if found["file"] is None else str(found["file"]),
        record_count=integer_in_json(found["records"]),
        expected_count=None if found["expected"] is None else integer_in_json(found["expected"]),
        size_bytes=integer_in_json(found["size_bytes"]),
        compression=str(found["compression"]),
        lost=list(map(_range, found["lost"])),
        lost_count=integer_in_json(found["lost_count"]),
        lost_bytes=integer_in_json(found["lost_bytes"]),
        breaks=list(map(_range, found["breaks"])),
        repairs=[
            Repair(integer_in_json(one["offset"]), integer_in_json(one["bit"]), str(one["field"]))
            for one in found["repairs"]
        ],
        repair_count=integer_in_json(found["repair_count"]),
        problem=str(found["problem"]),
    )


def _range(found: Any) -> LostBytes:
    return LostBytes(
        integer_in_json(found["start"]), integer_in_json(found["stop"]), Defect(found["defect"])
    )
