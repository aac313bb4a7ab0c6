"""Describes the files and features that a generated program reads."""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import NamedTuple

from recordsmith.checking import PAYLOADS, Inspection, inspect
from recordsmith.dataset import Paths, is_split_slice, locate
from recordsmith.dataset import open as open_dataset
from recordsmith.format.example import FeatureSchema
from recordsmith.format.example.keys import BOX, is_class_key, is_mask_key
from recordsmith.image import ImageHeader, find_image_header
from recordsmith.support.errors import OptionError
from recordsmith.support.words import count as format_count
from recordsmith.support.words import printable
from recordsmith.support.work import Progress

_SAMPLE_COUNT = 64
_NAMES_SHOWN = 10
_MAX_COMMENT = 200


class Field(NamedTuple):
    """A feature to read.

    kind: bytes, float or int64.
    content: image, mask (an image of class numbers), text, bytes or number.
    shape: of the values of a record: () for one, (n,) for more; None if it varies.
    may_lack: whether some records are without it.
    note: a comment for the generated program.
    formats: of the first images.
    """

    key: str
    kind: str
    content: str
    shape: tuple[int, ...] | None
    may_lack: bool
    note: str
    formats: set[str]

    @property
    def is_single_image(self) -> bool:
        """Whether each record has one image."""
        return self.content == "image" and self.shape == () and not self.may_lack


class Description(NamedTuple):
    """The dataset to read.

    paths, split: as the caller passed them.
    left_out: comments on features that cannot be read.
    """

    paths: str | list[str]
    split: str | None
    files: list[str]
    compression: str
    note: str
    fields: list[Field]
    left_out: str


def describe(paths: Paths, split: str | None, progress: Progress | None) -> Description:
    """Describe a dataset of Examples."""
    if is_split_slice(split):  # the program reads whole files
        locate(paths, split)
    inspection = inspect(paths, split, progress=progress)
    schema = inspection.schema
    name = os.fspath(paths) if isinstance(paths, (str, os.PathLike)) else [*map(str, paths)]
    if inspection.compression == "mixed":
        raise OptionError(
            "the shards have different compressions", remedy="Pass only shards with the same one."
        )
    if schema.payload not in ("Example", "none"):
        raise OptionError(
            f"the records of {name} are {PAYLOADS[schema.payload][1]}",
            expected="Examples",
            remedy="Read them with recordsmith.open.",
        )
    schema.check_complete("a program names all features that it reads")
    if not schema.features:
        raise OptionError(f"the records of {name} have no features")
    headers: dict[str, list[ImageHeader]] = {}
    for example in islice(open_dataset(paths, split), _SAMPLE_COUNT):
        for key, values in example.items():
            header = find_image_header(values[0]) if isinstance(values, list) and values else None
            if header is not None:
                headers.setdefault(key, []).append(header)
    fields, left_out = [], ""
    for key, feature in schema.features.items():
        if feature.kind in ("mixed", "none"):
            left_out += why_left_out(
                key, "its kind varies" if feature.kind == "mixed" else "it has no values"
            )
        else:
            fields.append(_field(key, feature, headers.get(key, []), inspection))
    note = format_count(inspection.record_count, "record")
    if split is None and len(inspection.splits) > 1:
        note += f" of the splits {', '.join(inspection.splits)}; use --split to select one"
    files = [shard.path for shard in inspection.shards]
    return Description(name, split, files, inspection.compression, note, fields, left_out)


def _field(
    key: str, feature: FeatureSchema, headers: list[ImageHeader], inspection: Inspection
) -> Field:
    missing_count = inspection.record_count - feature.present
    shape = feature.shape_if_present if feature.max_length else None
    content: str = feature.content if feature.content in ("image", "text") else "bytes"
    content = content if feature.kind == "bytes" else "number"
    notes = []
    formats = {header.format for header in headers}
    if content == "image":
        content = "mask" if is_mask_key(key) and formats == {"png"} else "image"
        sizes = {f", {header.width}x{header.height}" for header in headers}
        notes.append(", ".join(sorted(formats)) + (sizes.pop() if len(sizes) == 1 else ""))
    if shape is None:
        notes.append(f"{feature.min_length:,} to {feature.max_length:,} values")
    if missing_count:
        notes.append(f"missing in {missing_count:,} of {inspection.record_count:,} records")
    if feature.kind == "int64" and is_class_key(key):
        names = [f"{n} {name}" for n, name in enumerate(inspection.class_names or ()) if name]
        more = f", … {len(names):,} classes" if len(names) > _NAMES_SHOWN else ""
        notes.append(", ".join(names[:_NAMES_SHOWN]) + more)
    if key == BOX[0]:
        notes.append("rs.Boxes() reads these features as boxes, if they are fractions of the image")
    note = "; ".join(filter(None, notes))
    return Field(key, feature.kind, content, shape, missing_count > 0, note, formats)


# -- source text ---------------------------------------------------------------------------------


def literal(value: str) -> str:
    """The `repr` of a text, in double quotes if it contains none."""
    text = repr(value)
    return text if '"' in text else f'"{text[1:-1]}"'


def comment(*parts: str) -> str:
    """A comment in one line, `  # this; and that`, or empty; parts may hold any characters."""
    text = printable("; ".join(filter(None, parts)))
    if len(text) > _MAX_COMMENT:
        text = text[: _MAX_COMMENT - 2] + " …"
    return f"  # {text}" if text else ""


def is_utf8(text: str) -> bool:
    """Whether a text can be encoded as UTF-8, without surrogates."""
    return re.search("[\ud800-\udfff]", text) is None


def why_left_out(key: str, why: str) -> str:
    """A line with a comment on a feature that a program does not read."""
    return f"{comment(f'{key!r} is left out: {why}')[2:]}\n"
