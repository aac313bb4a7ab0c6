"""Read samples of sources."""

from __future__ import annotations

from recordsmith.sources import Content, Note, Sample, Source, ignore_note


def read_sample(source: Source, sample: Sample, note: Note = ignore_note) -> Content:
    """The content of a sample, by the reader of its source's listing."""
    return source.list_samples().reader.read(sample, note)
