"""The options of the format `recordsmith`, all of which are text, and the messages of errors."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import unquote

from recordsmith.dataset import DEFAULT_PART_BYTES, Dataset
from recordsmith.dataset import open as open_dataset
from recordsmith.stores import is_url, parse_store_options
from recordsmith.support.errors import OptionError, RecordsmithError
from recordsmith.support.words import parse_size, similar_name

_READING = (
    *("path", "paths", "split", "columns", "where", "partition_size", "restore_types"),
    "store_options",
)
_WRITING = ("path", "split", "compression", "shard_size", "store_options")


class ReadOptions:
    """The options of a read, which travel to workers as the user passed them."""

    def __init__(self, given: Mapping[str, str]) -> None:
        found = _checked(given, _READING)
        paths = [found["path"]] if found.get("path") else []
        self._paths = [*map(local_path, paths + (_texts(found, "paths") or []))]
        if not self._paths:
            raise OptionError(option="path", value="", expected="a path or URL, as in load(path)")
        self._split = found.get("split")
        self._store_options = _store_options(found)
        self.where = found.get("where")
        self.columns = _texts(found, "columns")
        self.partition_bytes = _size(found, "partition_size") or DEFAULT_PART_BYTES
        self.restore_types = _switch(found, "restore_types")

    def open(self) -> Dataset:
        """Open the dataset."""
        paths = self._paths[0] if len(self._paths) == 1 else self._paths
        return open_dataset(paths, self._split, store_options=self._store_options)


class WriteOptions:
    """The options of a write."""

    def __init__(self, given: Mapping[str, str]) -> None:
        found = _checked(given, _WRITING)
        if not found.get("path"):
            raise OptionError(option="path", value="", expected="a path or URL, as in save(path)")
        self.path = local_path(found["path"])
        self.store_options = _store_options(found) if is_url(self.path) else None
        self.split = found.get("split", "train")
        self.compression = found.get("compression")
        self.shard_size_bytes = _size(found, "shard_size")


def _checked(given: Mapping[str, str], known: tuple[str, ...]) -> dict[str, str]:
    """Return options with lower-case names. Platforms add their own, so others are ignored."""
    found = {name.lower(): value for name, value in given.items() if value}
    for name in found:
        similar = similar_name(name, known)
        if name not in known and similar:
            raise OptionError(
                f"{name!r} is not an option", option=name, remedy=f"Did you mean {similar}?"
            )
    return found


def _texts(found: Mapping[str, str], name: str) -> list[str] | None:
    """Return an option that is a JSON array, or names with commas between them."""
    text = found.get(name)
    if text is None:
        return None
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",")]
    texts: Any = None
    with suppress(ValueError):
        texts = json.loads(text)
    if not isinstance(texts, list) or not all(isinstance(part, str) for part in texts):
        raise OptionError(
            option=name, value=text, expected="names with commas between them, or a JSON array"
        )
    return texts


def _switch(found: Mapping[str, str], name: str) -> bool:
    text = found.get(name, "false").lower()
    if text not in ("true", "false"):
        raise OptionError(option=name, value=text, expected="true or false")
    return text == "true"


def _size(found: Mapping[str, str], name: str) -> int | None:
    """Return an option that is a number of bytes."""
    text = found.get(name)
    size_bytes = None if text is None else parse_size(text) or 0
    if size_bytes is not None and size_bytes < 1:
        raise OptionError(option=name, value=text, expected="a size such as 128MB or 1GiB")
    return size_bytes


def _store_options(found: Mapping[str, str]) -> dict[str, Any] | None:
    text = found.get("store_options")
    return None if text is None else parse_store_options(text)


def local_path(path: str) -> str:
    """Return a path for a URL `file:/…`, as Spark has them; absolute, if it is local."""
    if path.startswith("file:/"):
        path = unquote("/" + path.removeprefix("file:").lstrip("/"))
    return path if is_url(path) else os.path.abspath(path)


@contextmanager
def without_traceback() -> Iterator[None]:
    """Let Spark show only the message of an error of recordsmith that leaves the block.

    Sets what Spark's own setting `spark.sql.execution.pyspark.udf.hideTraceback.enabled` sets, in
    this Python worker only: Spark ends it after the error.
    """
    try:
        yield
    except RecordsmithError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
