"""Reports keys that no record of an epoch had, where no schema shows it before."""

from __future__ import annotations

from recordsmith.loading.batches.batch import BatchResult
from recordsmith.loading.features.requests import AbsentKey
from recordsmith.support.explaining import warn_user

_SEARCHED_BYTES = 1 << 30  # of the files, for a key that the records of an epoch do not have


class KeyWatch:
    """Watches the batches of an iteration for keys that none of their records has.

    A loader that reads all records of the files in an epoch, and skips none, has then seen that no
    record has a key. Others, such as one rank of several or a loader of selected records, search
    the files for it.
    """

    def __init__(self, watched: dict[str, AbsentKey], record_count: int | None) -> None:
        """`watched`: by key; keys that are found are removed.

        record_count: of the files if an epoch can read all of their records; else None.
        """
        self._watched = watched
        self._record_count = record_count
        self._epoch = -1
        self._read_count = 0
        self._has_skipped = False

    def add(self, result: BatchResult) -> None:
        """Add a batch; errors as in `end_epoch`."""
        for key in result.keys:
            self._watched.pop(key, None)
        if result.epoch != self._epoch:
            self.end_epoch()
            self._epoch, self._read_count, self._has_skipped = result.epoch, 0, False
        self._read_count += result.record_count
        self._has_skipped |= bool(result.faults)
        if result.after.epoch > result.epoch:
            self.end_epoch()

    def end_epoch(self) -> None:
        """Warn if none of the epoch's records has a key; OptionError if no other record has it."""
        if not self._watched or not self._read_count:
            return
        has_all = self._read_count == self._record_count and not self._has_skipped
        read = f"none of the {self._read_count:,} records read in epoch {self._epoch}"
        for key, absent in tuple(self._watched.items()):
            found = False if has_all else absent.find_key(key, _SEARCHED_BYTES)
            error = absent._replace(which="no record" if found is False else read).error()
            if found is False and not absent.has_default:
                raise error
            del self._watched[key]
            if not found:
                warn_user(str(error))
