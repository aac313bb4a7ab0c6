"""`recordsmith.recover` finishes, or undoes, what a killed command was changing in a dataset.

`recordsmith.history` says what has changed in it since it was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from recordsmith.dataset import BegunNote, read_begun_note, read_manifest
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.support.errors import OptionError, option
from recordsmith.support.summaries import Report
from recordsmith.writing.building import publishing

_OF_ITS_MAKING = ("seed", "license", "records_in")


@dataclass(repr=False)
class RecoverReport(Report):
    """The report of `recover`.

    folder: the dataset.
    outcome: finished if the change is complete now, undone if nothing of it is left, or nothing if
        no command was interrupted.
    record_count: number of records of the dataset.
    """

    folder: Location
    outcome: Literal["finished", "undone", "nothing"]
    record_count: int


def recover(path: PlaceLike, *, lock: bool = True) -> RecoverReport:
    """Finish, or undo, what a killed command was changing in a dataset.

    For `append`, `edit_in_place`, `add_layer` and `remove_layer`. If all new files were written,
    the change is finished, without its inputs; otherwise what was written is removed, and the
    dataset is as it was.

    Args:
        path: the folder of the dataset.
        lock: fail on file systems without locks. With False, make sure that no other job changes
            the dataset.

    Raises:
        OptionError: the folder has no dataset; or a job was killed that was packing, resharding or
            editing into a new dataset: that job must be run again.
        FileAccessError: a file cannot be read or written.

    Example:
        print(rs.recover("out").outcome)
    """
    folder = as_folder(path)
    publishing.check_folder(folder)
    with publishing.locked_folder(folder, needs_lock=lock):
        note, manifest = read_begun_note(folder), read_manifest(folder)
        if note is None or not note.base:
            if manifest is None or (note is not None and not note.allows(manifest)):
                raise _not_a_change(folder, note)
            publishing.clean_up_after_kill(folder)
            return RecoverReport(folder, "nothing", manifest.record_count)
        is_complete = manifest is None or manifest.last_fingerprint == note.fingerprint
        if manifest is None or is_complete or publishing.is_publishing(folder, note):
            manifest = publishing.finish_interrupted(folder, note)
            return RecoverReport(folder, "finished", manifest.record_count)
        publishing.abandon_interrupted(folder, note)
        return RecoverReport(folder, "undone", manifest.record_count)


def _not_a_change(folder: Location, note: BegunNote | None) -> OptionError:
    begun = "has a dataset that is not complete" if note is not None else "has no dataset"
    return OptionError(
        f"{folder} {begun}",
        option="path",
        value=str(folder),
        remedy="Run the command again that writes it, with the same options, or with "
        f"{option('overwrite', True)}.",
    )


@dataclass(repr=False)
class HistoryReport(Report):
    """What made and changed a dataset.

    folder: the dataset.
    digest: of its shards, as they are now.
    changes: one dict for each job, the oldest first, with `command`. Changes have the counts of
        records, the digests of the dataset before and after, and what else was recorded: positions
        of records as `--at` takes them, reason, time.
    """

    folder: Location
    digest: str
    changes: list[Mapping[str, Any]]


def history(path: PlaceLike) -> HistoryReport:
    """Return what made and changed a dataset, from its manifest.

    Args:
        path: the folder of a dataset with a manifest.

    Raises:
        OptionError: there is no manifest.
        CorruptDataError: the manifest is damaged.
        FileAccessError: it cannot be read.

    Example:
        for change in rs.history("out").changes:
            print(change["command"], change.get("removed"))
    """
    folder = as_folder(path)
    manifest = publishing.packed_manifest(folder)
    made = {key: value for key, value in manifest.provenance.items() if key in _OF_ITS_MAKING}
    source = manifest.provenance.get("source")
    if isinstance(source, Mapping) and isinstance(source.get("kind"), str):
        made["source"] = source["kind"]
    command = "reshard" if "reshard" in manifest.provenance else "pack"
    return HistoryReport(folder, manifest.digest, [{"command": command, **made}, *manifest.changes])
