"""Reads image files, with the class of each if they have classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordsmith.sources.files.images import class_features, read_image
from recordsmith.sources.source import Note, Sample, StoredReader, ignore_note
from recordsmith.stores import Location


@dataclass(frozen=True)
class ImageReader(StoredReader):
    """Reads image files by name, relative to the root. Bytes are unchanged."""

    root: Location
    class_names: tuple[str, ...] | None = None

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        """Read one image file."""
        features = read_image(self.root / sample.name, sample.name)
        return features | class_features(sample.label, self.class_names)
