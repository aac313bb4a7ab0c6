"""Describe the files and features that a generated program reads.

The features come from an inspection. The formats and sizes of the first images decide how they can
be decoded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from recordsmith.dataset import open as open_dataset
from recordsmith.dataset.locate import Paths, locate
from recordsmith.dataset.splits import is_split_slice
from recordsmith.errors import DataError, OptionError
from recordsmith.examining import Inspection, inspect
from recordsmith.example import FeatureSchema, FeatureValue, SequenceExample, decode_payload
from recordsmith.example.keys import is_class_key, is_mask_key
from recordsmith.image import probe_image
from recordsmith.image.formats.png import GREY, PALETTE, read_header
from recordsmith.readers.object_boxes import ObjectBoxes, boxes_among
from recordsmith.work import Progress

_SAMPLE_COUNT = 64
_NAMES_SHOWN = 10

Content = Literal["image", "mask", "text", "bytes", "number"]


@dataclass
class ImageSamples:
    """The properties of the first images of a feature.

    Attributes:
        formats: as `probe_image` names them.
        sizes: height and width.
        png_types: colour type and bits of PNG images.
    """

    formats: set[str] = field(default_factory=set)
    sizes: set[tuple[int, int]] = field(default_factory=set)
    png_types: set[tuple[int, int]] = field(default_factory=set)

    def add(self, value: FeatureValue) -> None:
        """Add the first image of a record."""
        if not isinstance(value, list) or not value:
            return
        try:
            info = probe_image(value[0])
        except DataError:
            return
        self.formats.add(info.format)
        self.sizes.add((info.height, info.width))
        header = read_header(value[0])
        if header is not None:
            self.png_types.add((header.colour_type, header.bits))

    @property
    def may_be_masks(self) -> bool:
        """Whether all are PNGs with one value per pixel."""
        types = {colour_type for colour_type, _ in self.png_types}
        return self.formats == {"png"} and types <= {GREY, PALETTE}

    @property
    def number_bits(self) -> int | None:
        """8 or 16 if all are grey PNGs of this depth, whose values decoders keep; else None.

        Decoders convert palettes to colours, and scale fewer bits.
        """
        return next((bits for bits in (8, 16) if self.png_types == {(GREY, bits)}), None)


@dataclass(frozen=True)
class Field:
    """A feature to read.

    Attributes:
        kind: bytes, float or int64.
        content: the content of bytes; a mask is an image of class numbers.
        length: the number of values per record; None if it varies.
        missing_count: the number of records without the feature.
        note: a comment for the generated program.
        samples: the properties of images and masks.
        is_always_stepped: for a feature list, whether each record has a step.
    """

    key: str
    kind: str
    content: Content
    length: int | None
    missing_count: int
    note: str
    samples: ImageSamples = field(default_factory=ImageSamples)
    is_always_stepped: bool = True

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the values of a record: () for one, (n,) for more; None if it varies."""
        return None if not self.length else () if self.length == 1 else (self.length,)


@dataclass(frozen=True)
class Description:
    """The dataset to read.

    Attributes:
        paths, split: as the caller passed them.
        files: the shards, in order.
        payload: the type of the records.
        compression: of the shards.
        record_count: the number of records.
        splits: the names of the splits.
        sections: fields by section: "features" for Examples; "context" and "feature_lists" for
            SequenceExamples.
        left_out: features that cannot be read, with the reason.
        boxes: boxes that `rs.Boxes` can read; None if there are none.
    """

    paths: str | list[str]
    split: str | None
    files: tuple[str, ...]
    payload: str
    compression: str
    record_count: int
    splits: tuple[str, ...]
    sections: Mapping[str, tuple[Field, ...]]
    left_out: tuple[tuple[str, str], ...]
    boxes: ObjectBoxes | None = None

    @property
    def name(self) -> str:
        """The paths as text."""
        return self.paths if isinstance(self.paths, str) else ", ".join(self.paths)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of Examples."""
        return self.sections.get("features", ())

    @property
    def record_note(self) -> str:
        """The number of records and the splits, as text."""
        records = "1 record" if self.record_count == 1 else f"{self.record_count:,} records"
        if self.split is None and len(self.splits) > 1:
            return f"{records} of the splits {', '.join(self.splits)}; use --split to select one"
        return records


def describe(paths: Paths, split: str | None, progress: Progress | None) -> Description:
    """Describe a dataset.

    Raises:
        OptionError: the shards have different compressions; or the split is a part of one.
        CorruptDataError, FileAccessError: as for `inspect`.
    """
    if is_split_slice(split):  # the program reads whole files
        locate(paths, split)
    inspection = inspect(paths, split, progress=progress)
    if inspection.compression == "mixed":
        raise OptionError(
            "the shards have different compressions", remedy="Pass only shards with the same one."
        )
    inspection.schema.check_complete("a program names all features that it reads")
    samples_by_key = _sample_images(paths, split, inspection)
    sections = {}
    left_out = []
    for section, features in inspection.schema.sections.items():
        fields = []
        for key, known in features.items():
            if known.kind in ("mixed", "none"):
                why = "its kind varies" if known.kind == "mixed" else "it has no values"
                left_out.append((key, why))
            else:
                samples = samples_by_key.get((section, key), ImageSamples())
                fields.append(_field(key, known, samples, section, inspection))
        sections[section] = tuple(fields)
    return Description(
        paths=_as_passed(paths),
        split=split,
        files=tuple(shard.path for shard in inspection.shards),
        payload=inspection.schema.payload,
        compression=inspection.compression,
        record_count=inspection.record_count,
        splits=tuple(inspection.splits),
        sections=sections,
        left_out=tuple(left_out),
        boxes=boxes_among(inspection.schema.features, _first_examples(paths, split)),
    )


def _as_passed(paths: Paths) -> str | list[str]:
    if isinstance(paths, (str, os.PathLike)):
        return str(paths)
    return [*map(str, paths)]


def _field(
    key: str, known: FeatureSchema, samples: ImageSamples, section: str, inspection: Inspection
) -> Field:
    length = known.max_length if known.min_length == known.max_length else None
    missing_count = inspection.record_count - known.present
    notes = [_describe_images(samples)]
    if length is None:
        notes.append(f"{known.min_length:,} to {known.max_length:,} values")
    elif not length:
        notes.append("no values in any record")
    if section == "feature_lists":
        low, high = known.min_steps or 0, known.max_steps or 0
        notes.append(f"{low:,} steps" if low == high else f"{low:,} to {high:,} steps")
    if missing_count:
        notes.append(f"missing in {missing_count:,} of {inspection.record_count:,} records")
    if known.kind == "int64" and is_class_key(key):
        notes.append(_describe_classes(inspection.class_names))
    return Field(
        key,
        known.kind,
        _content(key, known, samples),
        length,
        missing_count,
        "; ".join(part for part in notes if part),
        samples,
        is_always_stepped=missing_count == 0 and (known.min_steps or 0) > 0,
    )


def _content(key: str, known: FeatureSchema, samples: ImageSamples) -> Content:
    if known.kind != "bytes":
        return "number"
    if known.content == "image":
        return "mask" if samples.may_be_masks and is_mask_key(key) else "image"
    return "text" if known.content == "text" else "bytes"


def _describe_images(samples: ImageSamples) -> str:
    if not samples.formats:
        return ""
    sizes = (
        f", {'x'.join(map(str, reversed(min(samples.sizes))))}" if len(samples.sizes) == 1 else ""
    )
    return f"{', '.join(sorted(samples.formats))}{sizes}"


def _describe_classes(class_names: tuple[str | None, ...] | None) -> str:
    known = [(n, name) for n, name in enumerate(class_names or ()) if name is not None]
    shown = ", ".join(f"{label} {name}" for label, name in known[:_NAMES_SHOWN])
    return shown + (f", … {len(known):,} classes" if len(known) > _NAMES_SHOWN else "")


def _sample_images(
    paths: Paths, split: str | None, inspection: Inspection
) -> dict[tuple[str, str], ImageSamples]:
    """The properties of the images in the first records, by section and key."""
    samples_by_key = {
        (section, key): ImageSamples()
        for section, features in inspection.schema.sections.items()
        for key, known in features.items()
        if known.content == "image"
    }
    if not samples_by_key:
        return {}
    for record in islice(open_dataset(paths, split).records(), _SAMPLE_COUNT):
        for section, key, value in _values(record):
            if (section, key) in samples_by_key:
                samples_by_key[section, key].add(value)
    return samples_by_key


def _first_examples(paths: Paths, split: str | None) -> Iterator[Mapping[str, FeatureValue]]:
    for record in islice(open_dataset(paths, split).records(), _SAMPLE_COUNT):
        example = decode_payload(record)
        if not isinstance(example, SequenceExample):
            yield example


def _values(record: bytes) -> Iterator[tuple[str, str, FeatureValue]]:
    example = decode_payload(record)
    if not isinstance(example, SequenceExample):
        yield from (("features", key, value) for key, value in example.items())
        yield from (("context", key, value) for key, value in example.items())
        return
    yield from (("context", key, value) for key, value in example.context.items())
    for key, steps in example.feature_lists.items():
        yield from (("feature_lists", key, step) for step in steps)
