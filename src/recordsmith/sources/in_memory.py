"""Make the source for what a caller passes: a path, or a table or dataset in memory."""

from __future__ import annotations

import os
from typing import Any

from recordsmith.arrow import ArrowStream
from recordsmith.errors import OptionError
from recordsmith.sources.detection import detect
from recordsmith.sources.hugging_face.hugging_face import HuggingFace, is_hub_dataset
from recordsmith.sources.source import Source
from recordsmith.sources.tables.table import Table
from recordsmith.stores import Location


def as_source(given: Any) -> Source | None:
    """The source itself, or that of a dataset of Hugging Face or of an Arrow table; else None."""
    if hasattr(given, "list_samples"):
        return given  # type: ignore[no-any-return]
    if is_hub_dataset(given):
        return HuggingFace(given)
    return Table(given) if isinstance(given, ArrowStream) else None


def check_source(source: object) -> Source:
    """Return the source of an object, or the one that is detected for a path.

    Raises:
        OptionError: it is not a source.
        SourceError: the path can be read in several ways, or in none.
        FileAccessError: the path cannot be read.
    """
    if isinstance(source, (str, os.PathLike, Location)):
        return detect(source).source
    found = as_source(source)
    if found is None:
        raise OptionError(
            option="source",
            value=source,
            expected="a path, or an object such as recordsmith.ImageFolder(path), "
            "recordsmith.Table(table) or recordsmith.Rows(rows)",
        )
    return found
