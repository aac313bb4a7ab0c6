"""What every format offers: begin, take one example after the other, finish."""

from __future__ import annotations

from typing import Protocol

from recordsmith.dataset import Dataset
from recordsmith.example import Features
from recordsmith.exporting.outbox import Outbox


class Exporter(Protocol):
    """Writes examples in one format. Used by one thread.

    It holds as little as the format allows: what comes goes out.
    """

    def begin(self, dataset: Dataset, out: Outbox) -> None:
        """Look at what will come; `dataset.schema` and `dataset.class_names` tell of it.

        Raises:
            OptionError: the format cannot hold such a dataset; says why and what could.
        """
        ...

    def add(self, example: Features, split: str, position: int) -> None:
        """Write one example.

        Raises:
            SourceError: this example cannot be exported; nothing of it has been written.
        """
        ...

    def finish(self) -> None:
        """Write what comes last, such as lists and indexes."""
        ...
