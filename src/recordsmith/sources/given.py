"""The source of what a caller passes: a source, a path, a table, a dataset of Hugging Face."""

from __future__ import annotations

import os
from typing import Any

from recordsmith.sources.formats import FORMATS
from recordsmith.sources.source import Source
from recordsmith.stores import Location
from recordsmith.support.errors import OptionError


def source_of(source: Any) -> tuple[Source, tuple[str, ...]]:
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
    if hasattr(source, "list_samples"):
        return source, ()
    from recordsmith.dataset import ArrowStream
    from recordsmith.sources.hugging_face import HuggingFace, is_hub_dataset

    if is_hub_dataset(source):
        return HuggingFace(source), ()
    if isinstance(source, ArrowStream):
        return FORMATS["table"](source), ()
    raise OptionError(
        option="source",
        value=source,
        expected="a path, or an object such as recordsmith.ImageFolder(path), "
        "recordsmith.Table(table) or recordsmith.Rows(rows)",
    )
