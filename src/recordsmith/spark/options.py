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

    def __init__(self, stated: Mapping[str, str]) -> None:
        options = _checked(stated, _READING)
        paths = [options["path"]] if options.get("path") else []
        self._paths = [*map(local_path, paths + (_texts(options, "paths") or []))]
        if not self._paths:
            raise OptionError(option="path", value="", expected="a path or URL, as in load(path)")
        self._split = options.get("split")
        text = options.get("store_options")
        self._store_options = None if text is None else parse_store_options(text)
        self.where = options.get("where")
        self.columns = _texts(options, "columns")
        self.partition_bytes = _size(options, "partition_size") or DEFAULT_PART_BYTES
        self.restore_types = _switch(options, "restore_types")

    def open(self) -> Dataset:
        paths = self._paths[0] if len(self._paths) == 1 else self._paths
        return open_dataset(paths, self._split, store_options=self._store_options)


class WriteOptions:
    def __init__(self, stated: Mapping[str, str]) -> None:
        options = _checked(stated, _WRITING)
        if not options.get("path"):
            raise OptionError(option="path", value="", expected="a path or URL, as in save(path)")
        self.path = local_path(options["path"])
        text = options.get("store_options")
        self.store_options = parse_store_options(text) if text and is_url(self.path) else None
        self.split = options.get("split", "train")
        self.compression = options.get("compression")
        self.shard_size_bytes = _size(options, "shard_size")


def _checked(stated: Mapping[str, str], known: tuple[str, ...]) -> dict[str, str]:
    """Return options with lower-case names. Platforms add their own, so others are ignored."""
    options = {name.lower(): value for name, value in stated.items() if value}
    for name in options:
        similar = similar_name(name, known)
        if name not in known and similar:
            raise OptionError(
                f"{name!r} is not an option", option=name, remedy=f"Did you mean {similar}?"
            )
    return options


def _texts(options: Mapping[str, str], name: str) -> list[str] | None:
    """Return an option that is a JSON array, or names with commas between them."""
    text = options.get(name)
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


def _switch(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise OptionError(option=name, value=text, expected="true or false")
    return text == "true"


def _size(options: Mapping[str, str], name: str) -> int | None:
    """Return an option that is a number of bytes."""
    text = options.get(name)
    size_bytes = None if text is None else parse_size(text) or 0
    if size_bytes is not None and size_bytes < 1:
        raise OptionError(option=name, value=text, expected="a size such as 128MB or 1GiB")
    return size_bytes


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
