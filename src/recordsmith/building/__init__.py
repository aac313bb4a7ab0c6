"""Builds datasets from shards: locking, notes about completed shards, and publishing.

Shared by all jobs that write a dataset, whatever the source of the records.
"""

from recordsmith.building.finished import (
    Noted,
    ShardResult,
    Versions,
    complete_result,
    complete_shards,
    done_path,
    keep_result,
    partial_path,
)
from recordsmith.building.folder import (
    WRITING_THREADS,
    check_folder,
    earlier_dataset,
    working_in,
)
from recordsmith.building.publishing import (
    clean_up,
    clean_up_after,
    finish_publishing,
    manifest_of,
    publish_dataset,
    replaced_names,
    tidying_up,
)
from recordsmith.building.shard_writing import complete_shard, read_back, writing_partial
from recordsmith.building.shares import (
    DEFAULT_SHARD_SIZE_BYTES,
    Shards,
    bounds_of,
    check_shard_options,
    files_of_splits,
    is_no_file_name,
    shard_counts,
)

__all__ = [
    "DEFAULT_SHARD_SIZE_BYTES",
    "WRITING_THREADS",
    "Noted",
    "ShardResult",
    "Shards",
    "Versions",
    "bounds_of",
    "check_folder",
    "check_shard_options",
    "clean_up",
    "clean_up_after",
    "complete_result",
    "complete_shard",
    "complete_shards",
    "done_path",
    "earlier_dataset",
    "files_of_splits",
    "finish_publishing",
    "is_no_file_name",
    "keep_result",
    "manifest_of",
    "partial_path",
    "publish_dataset",
    "read_back",
    "replaced_names",
    "shard_counts",
    "tidying_up",
    "working_in",
    "writing_partial",
]
