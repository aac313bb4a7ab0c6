"""Open a sample reader from JSON, as a process does that did not list the samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recordsmith.errors import OptionError
from recordsmith.sources.archives.arrays import ArrayReader
from recordsmith.sources.archives.shards import ShardReader
from recordsmith.sources.archives.webdataset import TarReader
from recordsmith.sources.class_folders.image_reader import ImageReader
from recordsmith.sources.pairs.pair_reader import PairReader
from recordsmith.sources.source import SampleReader, StoredReader
from recordsmith.sources.tables.table_reader import TableReader

_READERS: Mapping[str, type[StoredReader]] = {
    reader.__name__: reader
    for reader in (ArrayReader, ImageReader, PairReader, ShardReader, TableReader, TarReader)
}


def open_reader(document: Mapping[str, Any]) -> SampleReader:
    """Make a reader from the JSON that `SampleReader.to_json` returned.

    Raises:
        OptionError: the document is not that of a reader.
    """
    name = str(document.get("reader"))
    if name not in _READERS:
        raise OptionError(option="document", value=name, expected=f"one of {', '.join(_READERS)}")
    return _READERS[name].from_json(document)  # type: ignore[return-value]
