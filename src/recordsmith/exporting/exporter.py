"""The interface of an export format."""

from __future__ import annotations

from typing import Protocol

from recordsmith.dataset import Dataset
from recordsmith.example import Features
from recordsmith.exporting.outbox import ExportWriter


class Exporter(Protocol):
    """Writes examples in one format, with as little memory as possible. Used by one thread."""

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        """Prepare for a dataset, given its schema and class names.

        Raises:
            OptionError: the format cannot hold such a dataset.
        """
        ...

    def add(self, example: Features, split: str, position: int) -> None:
        """Write one example.

        Raises:
            SourceError: this example cannot be exported; no part of it has been written.
        """
        ...

    def finish(self) -> None:
        """Write the remaining files, such as lists and indexes."""
        ...
