"""Builds datasets from shards: locking, notes about completed shards, and publishing.

Shared by all jobs that write a dataset, whatever the source of the records.
"""

from recordsmith.building.claims import claim, note_files
from recordsmith.building.publishing import (
    WRITING_THREADS,
    check_folder,
    clean_up,
    clean_up_after_kill,
    existing_dataset,
    files_to_replace,
    finish_publishing,
    locked_folder,
    make_manifest,
    names_in,
    publish_dataset,
    writing,
)
from recordsmith.building.shards import (
    Occurrences,
    ShardResult,
    add_notes,
    check_written,
    complete_shard,
    completed_files,
    done_location,
    load_result,
    open_partial_shard,
    partial_location,
    save_result,
    survey_written,
)
from recordsmith.building.shares import (
    DEFAULT_SHARD_SIZE_BYTES,
    ShardCounts,
    check_shard_options,
    is_valid_file_name,
    shard_bounds,
    shard_counts,
    shard_files_by_split,
)

__all__ = [
    "DEFAULT_SHARD_SIZE_BYTES",
    "WRITING_THREADS",
    "Occurrences",
    "ShardCounts",
    "ShardResult",
    "add_notes",
    "check_folder",
    "check_shard_options",
    "check_written",
    "claim",
    "clean_up",
    "clean_up_after_kill",
    "complete_shard",
    "completed_files",
    "done_location",
    "existing_dataset",
    "files_to_replace",
    "finish_publishing",
    "is_valid_file_name",
    "load_result",
    "locked_folder",
    "make_manifest",
    "names_in",
    "note_files",
    "open_partial_shard",
    "partial_location",
    "publish_dataset",
    "save_result",
    "shard_bounds",
    "shard_counts",
    "shard_files_by_split",
    "survey_written",
    "writing",
]
