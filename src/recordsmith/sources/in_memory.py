"""Make the source for a table or dataset that is an object in memory."""

from __future__ import annotations

from typing import Any

from recordsmith.arrow import ArrowStream
from recordsmith.sources.hugging_face.hugging_face import HuggingFace, is_hub_dataset
from recordsmith.sources.source import Source
from recordsmith.sources.tables.table import Table


def as_source(given: Any) -> Source | None:
    """The source itself, or that of a dataset of Hugging Face or of an Arrow table; else None."""
    if hasattr(given, "list_samples"):
        return given  # type: ignore[no-any-return]
    if is_hub_dataset(given):
        return HuggingFace(given)
    return Table(given) if isinstance(given, ArrowStream) else None
