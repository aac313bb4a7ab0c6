"""Reports of `reshard`, `edit` and `append`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recordsmith.dataset import Manifest
from recordsmith.stores import Location
from recordsmith.summaries import Report


@dataclass(repr=False)
class ReshardReport(Report):
    """The report of `reshard` and `edit`.

    folder: the new dataset.
    records_in: number of records of the inputs.
    record_count: number of written records.
    shard_count: number of shards.
    reused_count: number of shards that an interrupted run had completed.
    splits: number of records by split.
    bytes_in, bytes_out: size of the input files and of the shards.
    notices: about the inputs.
    is_new: False if the same dataset already existed.
    """

    folder: Location
    records_in: int = 0
    record_count: int = 0
    shard_count: int = 0
    reused_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    bytes_in: int = 0
    bytes_out: int = 0
    notices: tuple[str, ...] = ()
    is_new: bool = True

    @classmethod
    def from_manifest(
        cls, folder: Location, manifest: Manifest, *, is_new: bool, reused_count: int = 0
    ) -> ReshardReport:
        """Return the report of a finished dataset."""
        provenance = manifest.provenance
        return cls(
            folder,
            records_in=int(provenance.get("records_in", 0)),
            record_count=manifest.record_count,
            shard_count=manifest.shard_count,
            reused_count=reused_count,
            splits=manifest.record_counts,
            bytes_in=int(provenance.get("bytes_in", 0)),
            bytes_out=manifest.size_bytes,
            notices=tuple(map(str, provenance.get("notices", ()))),
            is_new=is_new,
        )


@dataclass(repr=False)
class AppendReport(Report):
    """The report of `append`.

    folder: the dataset.
    appended_count: number of appended records.
    record_count, shard_count: numbers of records and shards after the job.
    splits: number of records by split after the job.
    renamed_count: number of renamed shards.
    notices: about the appended records.
    is_new: False if these records were appended before.
    """

    folder: Location
    appended_count: int = 0
    record_count: int = 0
    shard_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    renamed_count: int = 0
    notices: tuple[str, ...] = ()
    is_new: bool = True

    @classmethod
    def from_manifest(
        cls, folder: Location, manifest: Manifest, step: Mapping[str, Any]
    ) -> AppendReport:
        """Return the report of one step in the history of a dataset."""
        return cls(
            folder,
            appended_count=int(step.get("records", 0)),
            record_count=manifest.record_count,
            shard_count=manifest.shard_count,
            splits=manifest.record_counts,
            renamed_count=int(step.get("renamed", 0)),
            notices=tuple(map(str, step.get("notices", ()))),
        )
