"""What must a program know to read these files? Where they are, and what each feature is.

An inspection says which features there are. Of those that hold pictures a few are looked at: their
formats and sizes decide how they can be decoded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from recordsmith.dataset import open as open_dataset
from recordsmith.dataset.locate import Paths
from recordsmith.errors import CorruptDataError, OptionError
from recordsmith.examining import Inspection, inspect
from recordsmith.example import FeatureSchema, FeatureValue, SequenceExample, decode_payload
from recordsmith.example.keys import is_of_classes, is_of_mask
from recordsmith.files import Progress
from recordsmith.image import probe_image
from recordsmith.image.png import GREY, PALETTE, read_header
from recordsmith.readers.object_boxes import ObjectBoxes, boxes_among

_GLANCE_COUNT = 64
_NAMES_SHOWN = 10

Content = Literal["picture", "mask", "text", "bytes", "number"]


@dataclass
class Glance:
    """What some pictures of a feature are.

    formats: as `probe_image` names them.
    sizes: height and width.
    png_sorts: of PNGs, their sort of colours and their bits.
    """

    formats: set[str] = field(default_factory=set)
    sizes: set[tuple[int, int]] = field(default_factory=set)
    png_sorts: set[tuple[int, int]] = field(default_factory=set)

    def add(self, value: FeatureValue) -> None:
        """Look at the first picture of a record."""
        if not isinstance(value, list) or not value:
            return
        try:
            info = probe_image(value[0])
        except CorruptDataError:
            return
        self.formats.add(info.format)
        self.sizes.add((info.height, info.width))
        header = read_header(value[0])
        if header is not None:
            self.png_sorts.add((header.colour_type, header.bits))

    @property
    def may_be_masks(self) -> bool:
        """Whether all are PNGs that have one number for each pixel."""
        sorts = {sort for sort, _ in self.png_sorts}
        return self.formats == {"png"} and sorts <= {GREY, PALETTE}

    @property
    def number_bits(self) -> int | None:
        """8 or 16, if all are PNGs whose numbers any decoder gives as they are: those of palettes
        become colours, and fewer bits are scaled.
        """
        return next((bits for bits in (8, 16) if self.png_sorts == {(GREY, bits)}), None)


@dataclass(frozen=True)
class Field:
    """One feature, as far as a reader cares.

    kind: bytes, float or int64.
    content: of bytes, what they are; a mask is a picture whose numbers are what counts.
    length: how many values each record has that has the feature; None if that differs.
    missing_count: how many records lack it.
    said: what a reader of the program may want to know.
    glance: of pictures and masks.
    is_always_stepped: of a feature list, whether each record has a step.
    """

    key: str
    kind: str
    content: Content
    length: int | None
    missing_count: int
    said: str
    glance: Glance = field(default_factory=Glance)
    is_always_stepped: bool = True

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Of one record's values: () for one, (n,) for more; None if their number differs."""
        return None if not self.length else () if self.length == 1 else (self.length,)


@dataclass(frozen=True)
class Description:
    """What a program must know.

    paths: as they were given; `split` too.
    files: the shards, in order.
    sections: the fields of Examples are "features", of SequenceExamples "context" and
        "feature_lists".
    left_out: features that no reader can read, and why.
    boxes: of objects, that `rs.Boxes` reads; None where there are none.
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
        """The paths in words."""
        return self.paths if isinstance(self.paths, str) else ", ".join(self.paths)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of Examples."""
        return self.sections.get("features", ())

    @property
    def counted(self) -> str:
        """How many records there are in which splits."""
        records = "1 record" if self.record_count == 1 else f"{self.record_count:,} records"
        if self.split is None and len(self.splits) > 1:
            return f"{records} of the splits {', '.join(self.splits)}; --split takes one of them"
        return records


def describe(paths: Paths, split: str | None, progress: Progress | None) -> Description:
    """Look at files.

    Raises:
        As `inspect`.
        OptionError: some shards are compressed, others are not.
    """
    inspection = inspect(paths, split, progress=progress)
    if inspection.compression == "mixed":
        raise OptionError(
            "some of these shards are compressed, others are not or in another way; name only "
            "those that are alike"
        )
    inspection.schema.check_complete("a program names all features that it reads")
    glances = _look(paths, split, inspection)
    sections = {}
    left_out = []
    for section, features in inspection.schema.sections.items():
        fields = []
        for key, known in features.items():
            if known.kind in ("mixed", "none"):
                why = "its kind differs" if known.kind == "mixed" else "it has no values"
                left_out.append((key, why))
            else:
                glance = glances.get((section, key), Glance())
                fields.append(_field(key, known, glance, section, inspection))
        sections[section] = tuple(fields)
    return Description(
        paths=_as_given(paths),
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


def _as_given(paths: Paths) -> str | list[str]:
    if isinstance(paths, (str, os.PathLike)):
        return os.fspath(paths)
    return [os.fspath(path) for path in paths]


def _field(
    key: str, known: FeatureSchema, glance: Glance, section: str, inspection: Inspection
) -> Field:
    length = known.max_length if known.min_length == known.max_length else None
    missing_count = inspection.record_count - known.present
    said = [_pictures_in_words(glance)]
    if length is None:
        said.append(f"{known.min_length:,} to {known.max_length:,} values")
    elif not length:
        said.append("no values in any record")
    if section == "feature_lists":
        low, high = known.min_steps or 0, known.max_steps or 0
        said.append(f"{low:,} steps" if low == high else f"{low:,} to {high:,} steps")
    if missing_count:
        said.append(f"missing in {missing_count:,} of {inspection.record_count:,} records")
    if known.kind == "int64" and is_of_classes(key):
        said.append(_classes_in_words(inspection.class_names))
    return Field(
        key,
        known.kind,
        _content(key, known, glance),
        length,
        missing_count,
        "; ".join(part for part in said if part),
        glance,
        is_always_stepped=missing_count == 0 and (known.min_steps or 0) > 0,
    )


def _content(key: str, known: FeatureSchema, glance: Glance) -> Content:
    if known.kind != "bytes":
        return "number"
    if known.content == "image":
        return "mask" if glance.may_be_masks and is_of_mask(key) else "picture"
    return "text" if known.content == "text" else "bytes"


def _pictures_in_words(glance: Glance) -> str:
    if not glance.formats:
        return ""
    sizes = f", {'x'.join(map(str, reversed(min(glance.sizes))))}" if len(glance.sizes) == 1 else ""
    return f"{', '.join(sorted(glance.formats))}{sizes}"


def _classes_in_words(class_names: tuple[str | None, ...] | None) -> str:
    known = [(n, name) for n, name in enumerate(class_names or ()) if name is not None]
    shown = ", ".join(f"{label} {name}" for label, name in known[:_NAMES_SHOWN])
    return shown + (f", … {len(known):,} classes" if len(known) > _NAMES_SHOWN else "")


def _look(paths: Paths, split: str | None, inspection: Inspection) -> dict[tuple[str, str], Glance]:
    """What the pictures of the first records are, by section and key."""
    glances = {
        (section, key): Glance()
        for section, features in inspection.schema.sections.items()
        for key, known in features.items()
        if known.content == "image"
    }
    if not glances:
        return {}
    for record in islice(open_dataset(paths, split).records(), _GLANCE_COUNT):
        for section, key, value in _values(record):
            if (section, key) in glances:
                glances[section, key].add(value)
    return glances


def _first_examples(paths: Paths, split: str | None) -> Iterator[Mapping[str, FeatureValue]]:
    for record in islice(open_dataset(paths, split).records(), _GLANCE_COUNT):
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
