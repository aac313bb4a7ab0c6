"""Read samples of sources, and records that a test has just written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import recordsmith as rs
from recordsmith.sources import Content, Note, Sample, Source, ignore_note


def read_sample(source: Source, sample: Sample, note: Note = ignore_note) -> Content:
    """The content of a sample, by the reader of its source's listing."""
    return source.list_samples().reader.read(sample, note)


def write_records(path: Path, records: Iterable[Mapping[str, Any] | bytes]) -> Path:
    """One shard, of Examples or of payloads."""
    with rs.ShardWriter(path) as writer:
        for record in records:
            if isinstance(record, bytes):
                writer.write(record)
            else:
                writer.write_example(record)
    return path


def written(path: Path, records: Iterable[dict[str, Any] | bytes]) -> rs.Dataset:
    """`write_records`, opened. In a folder, the shard has a new name."""
    path = path / f"{len(list(path.iterdir()))}.tfrecord" if path.is_dir() else path
    return rs.open(write_records(path, records))


def only_batch(dataset: rs.Dataset, features: Any, **options: Any) -> Any:
    """The one batch of all records."""
    options = {"batch_size": len(dataset), "threads": 0} | options
    (batch,) = rs.Loader(dataset, features, **options)
    return batch
