"""What a source stores of a sample."""

from __future__ import annotations

from typing import Any

import recordsmith as rs
from recordsmith.format.example import encode_example
from recordsmith.sources import Sample, Source

from ..reading import read_sample


def stored_lists(source: Source, sample: Sample) -> dict[str, list[Any]]:
    """The values of each feature."""
    content: Any = read_sample(source, sample)
    payload = (
        content
        if isinstance(content, bytes)
        else encode_example(content, source.list_samples().reader.kinds())
    )
    return {key: list(values) for key, values in rs.decode_example(payload).items()}


def stored_row(source: Source, sample: Sample) -> dict[str, Any]:
    """The value of each feature, which has one."""
    found = {}
    for key, (value,) in stored_lists(source, sample).items():
        found[key] = value if isinstance(value, bytes) else value.item()
    return found
