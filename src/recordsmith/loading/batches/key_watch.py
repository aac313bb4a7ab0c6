"""Reports keys that no record of an epoch had, where no schema shows it before."""

from __future__ import annotations

import warnings

from recordsmith.loading.batches.batch import BatchResult
from recordsmith.loading.features.requests import AbsentKey


class KeyWatch:
    """Watches the batches of an iteration for keys that none of their records has.

    Only a loader that reads all records of an epoch, and skips none, can be sure that no record has
    a key. Others, such as one rank of several, or a loader of selected records, warn.
    """

    def __init__(self, watched: dict[str, AbsentKey], record_count: int | None) -> None:
        """`watched`: by key; keys that are found are removed.

        record_count: of an epoch of which all records are sure to be all of the files; else None.
        """
        self._watched = watched
        self._record_count = record_count
        self._epoch = -1
        self._read_count = 0
        self._has_skipped = False

    def add(self, result: BatchResult) -> None:
        """Add a batch.

        Raises:
            OptionError: it ends an epoch in which no record had a key.
        """
        for key in result.keys:
            self._watched.pop(key, None)
        if not self._watched:
            return
        if result.epoch != self._epoch:
            self._epoch, self._read_count, self._has_skipped = result.epoch, 0, False
        self._read_count += result.record_count
        self._has_skipped |= bool(result.faults)
        if result.after.epoch == result.epoch or not self._read_count:
            return
        which = f"none of the {self._read_count:,} records read in epoch {self._epoch}"
        is_sure = self._read_count == self._record_count and not self._has_skipped
        for key, absent in tuple(self._watched.items()):
            if is_sure and not absent.has_default:
                raise absent.error(which)
            del self._watched[key]
            warnings.warn(str(absent.error(which)), stacklevel=4)  # the caller of the loader
