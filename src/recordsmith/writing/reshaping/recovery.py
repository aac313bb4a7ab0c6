"""`recordsmith.recover`: finish, or undo, what a killed command was changing in a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recordsmith.dataset import BegunNote, read_begun_note, read_manifest
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.support.errors import OptionError, option
from recordsmith.support.summaries import Report
from recordsmith.writing.building import publishing


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

    For `append` and `edit_in_place`. If all new shards were written, the change is finished,
    without its inputs; otherwise what was written is removed, and the dataset is as it was.

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
