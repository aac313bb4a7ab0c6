"""Describes the files and features that a generated program reads.

The features come from an inspection; the first records show how images can be decoded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from recordsmith.dataset import open as open_dataset
from recordsmith.dataset.locate import Paths, locate
from recordsmith.dataset.splits import is_split_slice
from recordsmith.errors import OptionError
from recordsmith.examining import Inspection, inspect
from recordsmith.example import FeatureSchema
from recordsmith.example.keys import BOX, is_class_key, is_mask_key
from recordsmith.image import read_image_header
from recordsmith.words import count as format_count
from recordsmith.work import Progress

_SAMPLE_COUNT = 64
_NAMES_SHOWN = 10


@dataclass
class ImageSamples:
    """The formats and sizes (height, width) of the first images; `is_deep`: some have 16 bits."""

    formats: set[str] = field(default_factory=set)
    sizes: set[tuple[int, int]] = field(default_factory=set)
    is_deep: bool = False

    def add(self, data: bytes) -> None:
        """Add an image; other data is ignored."""
        header = read_image_header(data)
        if header is not None:
            self.formats.add(header.format)
            self.sizes.add((header.height, header.width))
            self.is_deep |= header.variant == "16-bit"


@dataclass(frozen=True)
class Field:
    """A feature to read.

    kind: bytes, float or int64.
    content: image, mask (an image of class numbers), text, bytes or number.
    length: the number of values per record; None if it varies.
    missing_count: the number of records without the feature.
    note: a comment for the generated program.
    """

    key: str
    kind: str
    content: str
    length: int | None
    missing_count: int
    note: str
    samples: ImageSamples

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the values of a record: () for one, (n,) for more; None if it varies."""
        return None if not self.length else () if self.length == 1 else (self.length,)

    def is_single(self, content: str) -> bool:
        """Whether each record has one value of this content."""
        return self.content == content and self.length == 1 and not self.missing_count


@dataclass(frozen=True)
class Description:
    """The dataset to read.

    paths, split: as the caller passed them.
    files: the shards, in order.
    sections: fields by section: "features" for Examples; "context" and "feature_lists" for
        SequenceExamples.
    left_out: features that cannot be read, with the reason.
    """

    paths: str | list[str]
    split: str | None
    files: tuple[str, ...]
    payload: str
    compression: str
    record_note: str
    sections: Mapping[str, tuple[Field, ...]]
    left_out: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """The paths as text."""
        return self.paths if isinstance(self.paths, str) else ", ".join(self.paths)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of Examples."""
        return self.sections.get("features", ())


def describe(paths: Paths, split: str | None, progress: Progress | None) -> Description:
    """Describe a dataset."""
    if is_split_slice(split):  # the program reads whole files
        locate(paths, split)
    inspection = inspect(paths, split, progress=progress)
    if inspection.compression == "mixed":
        raise OptionError(
            "the shards have different compressions", remedy="Pass only shards with the same one."
        )
    inspection.schema.check_complete("a program names all features that it reads")
    samples: dict[str, ImageSamples] = {}
    if inspection.schema.payload == "Example":
        for example in islice(open_dataset(paths, split), _SAMPLE_COUNT):
            for key, values in example.items():
                if isinstance(values, list) and values:
                    samples.setdefault(key, ImageSamples()).add(values[0])
    sections: dict[str, tuple[Field, ...]] = {}
    left_out = []
    for section, features in inspection.schema.sections.items():
        fields = []
        for key, known in features.items():
            if known.kind in ("mixed", "none"):
                why = "its kind varies" if known.kind == "mixed" else "it has no values"
                left_out.append((key, why))
            else:
                fields.append(_field(key, known, samples.get(key, ImageSamples()), inspection))
        sections[section] = tuple(fields)
    records = format_count(inspection.record_count, "record")
    if split is None and len(inspection.splits) > 1:
        records += f" of the splits {', '.join(inspection.splits)}; use --split to select one"
    return Description(
        str(paths) if isinstance(paths, (str, os.PathLike)) else [*map(str, paths)],
        split,
        tuple(shard.path for shard in inspection.shards),
        inspection.schema.payload,
        inspection.compression,
        records,
        sections,
        tuple(left_out),
    )


def _field(key: str, known: FeatureSchema, samples: ImageSamples, inspection: Inspection) -> Field:
    length = known.max_length if known.min_length == known.max_length else None
    missing_count = inspection.record_count - known.present
    notes = []
    content: str = known.content if known.content in ("image", "text") else "bytes"
    if known.kind != "bytes":
        content = "number"
    elif content == "image":
        content = "mask" if is_mask_key(key) and samples.formats == {"png"} else "image"
        notes.append(", ".join(sorted(samples.formats)))
        if len(samples.sizes) == 1:
            ((height, width),) = samples.sizes
            notes[0] += f", {width}x{height}"
    if length is None:
        notes.append(f"{known.min_length:,} to {known.max_length:,} values")
    elif not length:
        notes.append("no values in any record")
    if known.min_steps is not None:
        low, high = known.min_steps, known.max_steps or 0
        notes.append(f"{low:,} steps" if low == high else f"{low:,} to {high:,} steps")
    if missing_count:
        notes.append(f"missing in {missing_count:,} of {inspection.record_count:,} records")
    if known.kind == "int64" and is_class_key(key):
        names = [(n, name) for n, name in enumerate(inspection.class_names or ()) if name]
        shown = ", ".join(f"{label} {name}" for label, name in names[:_NAMES_SHOWN])
        more = f", … {len(names):,} classes" if len(names) > _NAMES_SHOWN else ""
        notes.append(shown + more)
    if key == BOX[0]:
        notes.append("rs.Boxes() reads these features as boxes, if they are fractions of the image")
    note = "; ".join(filter(None, notes))
    return Field(key, known.kind, content, length, missing_count, note, samples)
