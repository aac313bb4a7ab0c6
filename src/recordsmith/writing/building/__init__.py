"""Builds datasets from shards: locking, notes about completed shards, and publishing.

Shared by all jobs that write a dataset, whatever the source of the records.
"""

from recordsmith.writing.building.claims import claim, note_files
from recordsmith.writing.building.publishing import (
    WRITING_THREADS,
    check_folder,
    check_task_folder,
    claimed_folder,
    clean_up,
    clean_up_after_kill,
    existing_dataset,
    finish_publishing,
    is_publishing,
    locked_folder,
    make_manifest,
    names_in,
    publish_dataset,
)
from recordsmith.writing.building.shards import (
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

__all__ = [
    "WRITING_THREADS",
    "Occurrences",
    "ShardResult",
    "add_notes",
    "check_folder",
    "check_task_folder",
    "check_written",
    "claim",
    "claimed_folder",
    "clean_up",
    "clean_up_after_kill",
    "complete_shard",
    "completed_files",
    "done_location",
    "existing_dataset",
    "finish_publishing",
    "is_publishing",
    "load_result",
    "locked_folder",
    "make_manifest",
    "names_in",
    "note_files",
    "open_partial_shard",
    "partial_location",
    "publish_dataset",
    "save_result",
    "survey_written",
]
