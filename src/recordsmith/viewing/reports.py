"""Statistics and verification of what is viewed, computed in threads, as pages with links."""

from __future__ import annotations

import threading
from typing import Any

from recordsmith.checking import stats, verify
from recordsmith.dataset import Dataset, Paths
from recordsmith.support.errors import RecordsmithError
from recordsmith.support.explaining import check_word
from recordsmith.support.reports import SourceLocation
from recordsmith.viewing.drawing.report_page import content_page
from recordsmith.viewing.records import ViewedRecords

KINDS = ("stats", "verify")


class ReportJobs:
    """One job for each kind of report. Thread-safe."""

    def __init__(
        self, records: ViewedRecords, source: Paths | Dataset, split: str | None, title: str
    ) -> None:
        self._records = records
        self._source = source, split
        self._title = title
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.Lock()

    def get(self, kind: str) -> _Job:
        """Return the job of a report, which begins if it has not run."""
        check_word("kind", kind, KINDS)
        with self._lock:
            job = self._jobs.get(kind)
            if job is None or job.state == "cancelled":
                job = self._jobs[kind] = _Job(self, kind)
            return job

    def cancel(self, kind: str) -> None:
        with self._lock:
            if kind in self._jobs:
                self._jobs[kind].cancel()

    def close(self) -> None:
        for kind in KINDS:
            self.cancel(kind)

    def make(self, kind: str, progress: Any) -> str:
        """Compute a report; return its page."""
        report: Any
        source, split = self._source
        if kind == "stats":
            report = stats(source, split, progress=progress)
        else:
            report = verify(source, split, deep=True, progress=progress)
        return content_page(report.content(), self._title, self._link)

    def _link(self, place: SourceLocation) -> str | None:
        position = self._records.position_of(place.path, place.record)
        return None if position is None else f"../#record={position}"


class _Cancelled(Exception):  # noqa: N818 - not an error
    pass


class _Job:
    """The computation of a report.

    state: running, done, failed or cancelled.
    """

    def __init__(self, jobs: ReportJobs, kind: str) -> None:
        self._jobs = jobs
        self._kind = kind
        self.state = "running"
        self.page = ""
        self._done = self._total = 0
        self._error: RecordsmithError | None = None
        self._is_cancelled = False
        threading.Thread(target=self._run, name=kind, daemon=True).start()

    def cancel(self) -> None:
        if self.state == "running":
            self._is_cancelled = True
            self.state = "cancelled"

    def describe(self) -> dict[str, Any]:
        """Return the state for the page; `done` and `total` are bytes."""
        error = None if self._error is None else self._error.to_json()
        return {"state": self.state, "done": self._done, "total": self._total, "error": error}

    def _advance(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        if self._is_cancelled:
            raise _Cancelled

    def _run(self) -> None:
        try:
            self.page = self._jobs.make(self._kind, self._advance)
        except _Cancelled:
            return
        except RecordsmithError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - shown on the page
            self._error = RecordsmithError(f"the report failed: {type(error).__name__}: {error}")
        if not self._is_cancelled:
            self.state = "done" if self._error is None else "failed"
