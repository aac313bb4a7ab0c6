"""The source of what a caller passes: a source, a path, a table, a dataset of Hugging Face."""

from __future__ import annotations

import os
from typing import Any

from recordsmith.sources.formats import FORMATS
from recordsmith.sources.source import Source
from recordsmith.stores import Location
from recordsmith.support.errors import OptionError


def as_source(given: Any) -> Source | None:
    """The source itself, or that of a dataset of Hugging Face or of an Arrow table; else None."""
    if hasattr(given, "list_samples"):
        return given  # type: ignore[no-any-return]
    from recordsmith.dataset import ArrowStream
    from recordsmith.sources.hugging_face import HuggingFace, is_hub_dataset

    if is_hub_dataset(given):
        return HuggingFace(given)
    return FORMATS["table"](given) if isinstance(given, ArrowStream) else None


def check_source(source: object) -> Source:
    """Return the source of an object, or the one that is detected for a path; see `source_of`."""
    return source_of(source)[0]


def source_of(source: object) -> tuple[Source, tuple[str, ...]]:
    """Return the source of an object or a path, and hints on how it may be read.

    Raises:
        OptionError: it is not a source.
        SourceError: the path can be read in several ways, or in none.
        FileAccessError: the path cannot be read.
    """
    if isinstance(source, (str, os.PathLike, Location)):
        from recordsmith.sources.detection import detect

        detection = detect(source)
        return detection.source, tuple(detection.reading.hints.values())
    made = as_source(source)
    if made is None:
        raise OptionError(
            option="source",
            value=source,
            expected="a path, or an object such as recordsmith.ImageFolder(path), "
            "recordsmith.Table(table) or recordsmith.Rows(rows)",
        )
    return made, ()
