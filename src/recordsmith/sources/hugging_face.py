"""Datasets of the Hugging Face package `datasets`, read through Arrow: nothing is decoded.

The package is not imported: a dataset is recognized by its methods.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from json import dumps
from typing import Any, Literal, get_args

import numpy as np

from recordsmith.arrow.library import import_pyarrow
from recordsmith.errors import OptionError, SourceError, option
from recordsmith.example import Kind
from recordsmith.sources.boxes.annotation import AnnotatedObject, Corners
from recordsmith.sources.boxes.placing import (
    BOX_KINDS,
    BoxPlacer,
    BoxPolicy,
    box_features,
    check_policy,
)
from recordsmith.sources.classes import Classes
from recordsmith.sources.numbered import RowNames, SampleTable, split_coding
from recordsmith.sources.pairs.masks import ColoursOption, check_colours, mask_features
from recordsmith.sources.problems import join_names
from recordsmith.sources.source import Content, Listing, Note, Sample, SampleReader, ignore_note
from recordsmith.sources.splits import sort_splits
from recordsmith.sources.tables.encoded_rows import EncodedRows
from recordsmith.sources.tables.nested_columns import (
    FlatColumn,
    NestedColumns,
    described_features,
    image_bytes,
)
from recordsmith.sources.tables.table import Table

BoxFormat = Literal["xywh", "xyxy"]
"""Boxes in pixels: x, y, width, height, or xmin, ymin, xmax, ymax."""

_IMAGE_NAME = "image"
_MASK_NAME = "mask"
_LABEL_NAME = "label"
_BOX_NAMES = ("bbox", "bboxes", "box", "boxes")
_ROWS_AT_ONCE = 1000
_IMAGES_AT_ONCE = 64
_SPLIT = re.compile(r"\w+(?:\.\w+)*")


class HuggingFace:
    """A `Dataset` or `IterableDataset` of Hugging Face, or a dict of them: the splits.

    | column | features |
    | --- | --- |
    | `Image` | `image/encoded` (unchanged), `image/format`, `image/height`, `image/width` |
    | the column `mask`, or `mask_column` | `image/segmentation/class/encoded` |
    | `ClassLabel` | the class names; with images `image/class/label` and `image/class/text` |
    | a dict, a list of dicts, a translation | `column/key` for each key |
    | lists of lists of one length, `Array2D` to `Array5D` | one list, row by row |
    | other images | encoded bytes |
    | others | as in `Table` |

    `pack` also takes the dataset itself: `rs.pack(dataset, "out")`. The rows are read once, in the
    order of the dataset, into a temporary file. Needs the extra `arrow`.

    Example:
        >>> rs.pack(rs.HuggingFace(dataset, label_column="fine_label"), "out")  # doctest: +SKIP
    """

    def __init__(
        self,
        dataset: Any,
        *,
        image_column: str | None = None,
        mask_column: str | None = None,
        colours: ColoursOption | None = None,
        label_column: str | None = None,
        split_column: str | None = None,
        group_column: str | None = None,
        box_format: BoxFormat | None = None,
        boxes: BoxPolicy = "stop",
        kinds: Mapping[str, Kind] | None = None,
    ) -> None:
        """
        Args:
            dataset: a `Dataset`, `IterableDataset`, `DatasetDict` or `IterableDatasetDict`.
            image_column: the column of the images; None for `image`, or the only one.
            mask_column: the column of the masks; None for `mask`, if it has images.
            colours: of masks, as in `ImagePairs`.
            label_column: the column of the classes; None for `label`, or the only `ClassLabel`.
            split_column, group_column: as in `Table`; such as `objects/id` for a key of a dict.
            box_format: stores the boxes of objects as `image/object/bbox/…`, from pixels as xywh
                or xyxy; the dataset does not record which. None keeps them as other columns.
            boxes: what happens to invalid boxes: stop, clip or drop.
            kinds: the kinds of some columns, as in `Table`.

        Raises:
            OptionError: an argument is invalid.
        """
        self._parts = _parts_of(dataset)
        if box_format is not None and box_format not in get_args(BoxFormat):
            raise OptionError(
                option="box_format", value=box_format, expected="'xywh' or 'xyxy', or None"
            )
        self._policy = check_policy(boxes)
        self._colours = check_colours(colours)
        self._kinds = dict(kinds or {})
        self._box_format = box_format
        self._columns = {
            "image_column": image_column,
            "mask_column": mask_column,
            "label_column": label_column,
            "split_column": split_column,
            "group_column": group_column,
        }
        self._options = {
            "box_format": box_format,
            "boxes": None if boxes == "stop" else boxes,
            "colours": [[*map(int, c), int(n)] for c, n in (self._colours or {}).items()] or None,
            "kinds": self._kinds or None,
        }
        self._listing: Listing | None = None

    def __repr__(self) -> str:
        return f"HuggingFace({', '.join(self._parts)})"

    def list_samples(self) -> Listing:
        """Read all rows at the first call; later calls return the same listing.

        Raises:
            SourceError: the dataset is empty, or has columns that no feature can hold.
            OptionError: a column from the arguments does not exist.
            MissingExtraError: pyarrow is not installed.
            FileAccessError: a file of an image cannot be read.
        """
        if self._listing is None:
            self._listing = self._list()
        return self._listing

    def describe(self) -> Mapping[str, Any]:
        options = {**self._columns, **self._options}
        return {"kind": "HuggingFace"} | {k: v for k, v in options.items() if v is not None}

    def _list(self) -> Listing:
        stream = _Stream(self._parts, self._columns, boxes=self._box_format is not None)
        chosen = stream.chosen
        label = chosen.label
        known = chosen.class_names
        table = Table(
            stream,
            split_column=self._columns["split_column"],
            group_column=self._columns["group_column"],
            label_column=None if label in known else label,
            kinds=self._kinds,
        )
        try:
            listing = table.list_samples()
        except SourceError:
            if stream.error is not None:
                raise stream.error from None  # Arrow has kept only its text
            raise
        notices = [*listing.notices, *chosen.notices, *_shape_notice(stream.nested, chosen)]
        class_names = listing.class_names
        samples = copy.copy(listing.samples)
        assert isinstance(samples, SampleTable)
        if chosen.boxes is not None:
            if class_names not in (None, chosen.boxes.class_names):
                raise SourceError(
                    f"the classes of {label!r} and of {chosen.boxes.labels!r} have different "
                    "names, but a dataset has one list of class names",
                    remedy=f"Remove one of them: dataset.remove_columns({label!r}).",
                )
            class_names = chosen.boxes.class_names
        reader = HuggingFaceReader(
            listing.reader, chosen.mask, self._colours, chosen.boxes, self._box_format, self._policy
        )
        splits = listing.splits
        if not splits and tuple(self._parts) != ("",):
            counts = stream.row_counts
            splits = sort_splits(name for name, rows in counts.items() if rows)
            samples.splits = split_coding(list(counts), list(counts.values()))
            samples.names = RowNames(counts)
        return replace(
            listing,
            samples=samples,
            reader=reader,
            class_names=class_names,
            notices=tuple(notices),
            splits=tuple(splits),
        )


@dataclass(frozen=True)
class _BoxColumns:
    """The columns of objects: their boxes and classes."""

    corners: str
    labels: str
    class_names: tuple[str, ...]


@dataclass(frozen=True)
class HuggingFaceReader:
    """Reads rows with their images, and checks and converts their masks and boxes."""

    rows: SampleReader
    mask: str | None
    colours: Mapping[tuple[int, int, int], int] | None
    boxes: _BoxColumns | None
    box_format: BoxFormat | None
    policy: BoxPolicy

    def read(self, sample: Sample, note: Note = ignore_note) -> Content:
        """Read one row."""
        content = self.rows.read(sample, note)
        if self.mask is None and self.boxes is None:
            return content
        assert isinstance(content, Mapping)  # as the row has an image
        features = dict(content)
        if self.mask is not None and self.mask in features:
            (data,) = features.pop(self.mask)
            place = f"{sample.name}, {self.mask}"
            features |= mask_features(place, data, features, self.colours, note)
        if self.boxes is not None:
            features |= self._placed(features, self.boxes, sample.name, note)
        return features

    def kinds(self) -> Mapping[str, Kind]:
        kinds = {k: kind for k, kind in self.rows.kinds().items() if k != self.mask}
        if self.boxes is None:
            return kinds
        for name in (self.boxes.corners, self.boxes.labels):
            kinds.pop(name, None)
        return {**kinds, **BOX_KINDS}

    def frames(self) -> EncodedRows | None:
        """The rows as records, which `pack` copies; None if they have images."""
        is_changed = self.mask is not None or self.boxes is not None
        return None if is_changed else self.rows.frames()  # type: ignore[attr-defined]

    def to_json(self) -> dict[str, Any]:
        raise OptionError(
            "the rows of a dataset exist only in this process",
            remedy="Save it with dataset.to_parquet, and pack that file.",
        )

    @cached_property
    def _classes(self) -> Classes:
        names = () if self.boxes is None else self.boxes.class_names
        return Classes({name: n for n, name in enumerate(names)}, "the features of the dataset")

    def _placed(
        self, features: dict[str, Any], columns: _BoxColumns, name: str, note: Note
    ) -> dict[str, Any]:
        """The features of the boxes of a row; removes their columns."""
        corners = np.asarray(features.pop(columns.corners, ()), np.float64).reshape(-1, 4)
        labels = np.asarray(features.pop(columns.labels, ()), np.int64)
        if len(corners) != len(labels):
            raise SourceError(
                f"{len(corners)} boxes in {columns.corners!r}, but {len(labels)} classes in "
                f"{columns.labels!r}",
                sample=name,
            )
        if self.box_format == "xywh":
            corners[:, 2:] += corners[:, :2]
        reader = BoxPlacer(features, self.policy, note)
        frame = reader.make_frame(0, 0, name)
        boxes = []
        for number, (box, label) in enumerate(zip(corners.tolist(), labels.tolist(), strict=True)):
            is_known = 0 <= label < len(columns.class_names)
            class_name = columns.class_names[label] if is_known else str(label)
            sides: Corners = (box[0], box[1], box[2], box[3])
            boxes.append(AnnotatedObject(f"object {number}", class_name, sides))
        placed = reader.place(boxes, frame, self._classes, name)
        reader.finish(name)
        return box_features(placed)


@dataclass
class _Chosen:
    """What the columns of a dataset are used for; `others` are other columns of images."""

    image: str | None = None
    mask: str | None = None
    label: str | None = None
    boxes: _BoxColumns | None = None
    class_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


class _Stream:
    """The rows of all parts as one Arrow stream of flat columns, which can be read once."""

    def __init__(
        self, parts: Mapping[str, Any], options: Mapping[str, str | None], *, boxes: bool
    ) -> None:
        """Read the schema, and choose the columns; arguments as in `HuggingFace`."""
        self._pa = import_pyarrow()
        self._parts = parts
        self.row_counts: dict[str, int] = dict.fromkeys(parts, 0)  # after they were read
        self.error: Exception | None = None  # that ended the stream
        self._batches = self._read()
        self._first = next(self._batches, None)
        if self._first is None:
            raise SourceError("the dataset has no rows")
        self.chosen = _choose(self.nested.flatten(self._first.slice(0, 0)), options, boxes=boxes)
        self._schema = self._columns(self._first.slice(0, 0)).schema

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = self._pa.RecordBatchReader.from_batches(self._schema, self._flat())
        return reader.__arrow_c_stream__(requested_schema)

    def _flat(self) -> Iterator[Any]:
        try:
            batch = self._first
            self._first = None
            while batch is not None:
                for start in range(0, len(batch), _IMAGES_AT_ONCE):
                    yield self._columns(batch.slice(start, _IMAGES_AT_ONCE))
                batch = next(self._batches, None)
        except Exception as error:
            self.error = error
            raise

    def _columns(self, batch: Any) -> Any:
        """The batch that `Table` stores, with the description of its image and classes."""
        pa, chosen = self._pa, self.chosen
        names, arrays, features = [], [], {}
        for column in self.nested.flatten(batch):
            array = column.array
            if column.name == chosen.image:
                features[column.name] = {"_type": "Image"}
                paths = array.field(array.type.get_field_index("path"))
                array = pa.StructArray.from_arrays(
                    [image_bytes(array, column.name), paths.cast(pa.string())], ["bytes", "path"]
                )
            elif column.name == chosen.mask or column.name in chosen.others:
                array = image_bytes(array, column.name)
            elif column.name == chosen.label and column.name in chosen.class_names:
                features[column.name] = dict(column.feature)
            names.append(column.name)
            arrays.append(array)
        described = dumps({"info": {"features": features}})
        fields = [pa.field(name, a.type) for name, a in zip(names, arrays, strict=True)]
        return pa.RecordBatch.from_arrays(
            arrays, schema=pa.schema(fields, {"huggingface": described})
        )

    def _read(self) -> Iterator[Any]:
        """Yield the batches of all parts, in the types of the first."""
        schema = None
        for name, part in self._parts.items():
            for table in self._tables(name, part):
                if schema is None:
                    schema = table.schema
                    self.nested = NestedColumns(_features_of(part, schema))
                    self.nested.check(_part_name(name))
                rows = self._cast(table, schema, name)
                self.row_counts[name] += len(rows)
                yield from rows.combine_chunks().to_batches()

    def _tables(self, name: str, part: Any) -> Iterator[Any]:
        """Yield the rows of one part as pyarrow.Tables."""
        has_images = '"Image"' in dumps(_features_of(part))
        at_once = _IMAGES_AT_ONCE if has_images else _ROWS_AT_ONCE
        tables = part.with_format("arrow").iter(batch_size=at_once)
        inner = getattr(part, "_ex_iterable", None)
        if part.features is not None and not getattr(inner, "iter_arrow", inner is None):
            # of a Python generator: `datasets` infers the types of each batch and fails where they
            # differ
            schema = part.features.arrow_schema
            batches = part.decode(False).iter(batch_size=at_once)
            tables = (_table_of(self._pa, batch, schema) for batch in batches)
        try:
            yield from tables
        except self._pa.ArrowException as error:
            reason = str(error).partition("\n")[0].rstrip(": ")
            raise SourceError(
                f"{_part_name(name)}: cannot read rows from {self.row_counts[name]}: {reason}",
                remedy="Pass the types of the columns with the argument features= of the function "
                "that makes the dataset.",
            ) from error

    def _cast(self, table: Any, schema: Any, part: str) -> Any:
        """Convert rows to the types of the first rows."""
        if table.schema.names == schema.names and table.schema.types == schema.types:
            return table
        others = {*table.schema.names} ^ {*schema.names}
        try:
            if not others:
                return table.select(schema.names).cast(schema)
        except (self._pa.ArrowException, ValueError) as error:
            reason = str(error).partition("\n")[0]
        else:
            reason = f"only some rows have the columns {join_names(sorted(others))}"
        raise SourceError(
            f"{_part_name(part)}: rows from {self.row_counts[part]} have other columns or types "
            f"than the first: {reason}",
            remedy="Give all parts the same features with dataset.cast(features).",
        )


def _table_of(pa: Any, columns: Mapping[str, Any], schema: Any) -> Any:
    """A pyarrow.Table of columns of Python values; extension types become their storage."""
    arrays = []
    for column in schema:
        values, stored = columns[column.name], column.type
        if isinstance(stored, pa.BaseExtensionType):  # of arrays
            values = [None if value is None else np.asarray(value).tolist() for value in values]
            stored = stored.storage_type
        arrays.append(pa.array(values, stored))
    return pa.Table.from_arrays(arrays, names=schema.names, metadata=schema.metadata)


def is_hub_dataset(given: object) -> bool:
    """Whether an object is a dataset of Hugging Face, or a dict of them by split."""
    if isinstance(given, Mapping):
        return bool(given) and all(map(_is_dataset, given.values()))
    return _is_dataset(given)


def _is_dataset(given: object) -> bool:
    return all(hasattr(given, name) for name in ("features", "with_format", "iter"))


def _parts_of(dataset: Any) -> dict[str, Any]:
    """The datasets by split; `""` for one without a name."""
    if not is_hub_dataset(dataset):
        raise OptionError(
            option="dataset",
            value=dataset,
            expected="a Dataset, IterableDataset, DatasetDict or IterableDatasetDict of Hugging "
            "Face",
        )
    if not isinstance(dataset, Mapping):
        split = str(getattr(dataset, "split", None) or "")
        return {split if _SPLIT.fullmatch(split) else "": dataset}
    first, *others = dataset
    for other in others:
        if dataset[other].features != dataset[first].features:
            raise OptionError(
                f"the splits {first} and {other} have different features",
                option="dataset",
                value=other,
                remedy="Give them the same features with dataset.cast(features), or pack them "
                "one by one.",
            )
    return {str(name): part for name, part in dataset.items()}


def _features_of(part: Any, schema: Any = None) -> Mapping[str, Any]:
    """The types of the columns as `datasets` writes them to JSON; empty if they are unknown."""
    if part.features is not None:
        return part.features.to_dict()  # type: ignore[no-any-return]
    return {} if schema is None else described_features(schema)


def _choose(
    columns: Sequence[FlatColumn], options: Mapping[str, str | None], *, boxes: bool
) -> _Chosen:
    """Choose the columns of images, masks, classes and boxes."""
    by_name = {column.name: column for column in columns}
    images = [c.name for c in columns if c.feature.get("_type") == "Image" and not c.is_list]
    mask, label = options["mask_column"], options["label_column"]
    for name, value in options.items():
        known = images if name in ("image_column", "mask_column") else list(by_name)
        if value is not None and value not in known:
            raise OptionError(
                f"the dataset has no column {value!r}"
                if value not in by_name
                else f"column {value!r} has no images",
                option=name,
                value=value,
                expected=f"one of {join_names(known, 'or')}" if known else "a column of images",
            )
    chosen = _Chosen(mask=mask, label=label)
    chosen.image = _image_column([n for n in images if n != mask], options["image_column"])
    if mask is None and _MASK_NAME in images and chosen.image not in (None, _MASK_NAME):
        chosen.mask = _MASK_NAME
    if chosen.mask is not None and chosen.image is None:
        raise OptionError(
            f"column {chosen.mask!r} is not a mask of an image",
            option="mask_column",
            value=chosen.mask,
            expected="a column of images next to that of the images",
        )
    chosen.others = [name for name in images if name not in (chosen.image, chosen.mask)]
    if chosen.others:
        chosen.notices.append(
            f"images of other columns stored as encoded bytes: {join_names(chosen.others)}"
        )
    of_lists: dict[str, tuple[str, ...]] = {}
    for column in columns:
        if column.feature.get("_type") == "ClassLabel":
            names = tuple(column.feature["names"])
            (of_lists if column.is_list else chosen.class_names)[column.name] = names
    _choose_boxes(chosen, by_name, of_lists, required=boxes)
    if label is None and _LABEL_NAME in chosen.class_names:
        chosen.label = _LABEL_NAME
    elif label is None and len(chosen.class_names) == 1:
        (chosen.label,) = chosen.class_names
    used = chosen.class_names.get(chosen.label or "")
    of_boxes = None if chosen.boxes is None else chosen.boxes.labels
    lost = [
        name
        for name, names in (chosen.class_names | of_lists).items()
        if name not in (chosen.label, of_boxes) and names != used
    ]
    if lost:
        chosen.notices.append(
            f"class names of some columns were dropped: {join_names(lost)}; label_column chooses "
            "the column of the classes"
        )
    return chosen


def _image_column(names: Sequence[str], given: str | None) -> str | None:
    """The column that an option names, the usual one, or the only one; None if there is none."""
    if given is not None or _IMAGE_NAME in names:
        return given or _IMAGE_NAME
    if len(names) > 1:
        raise OptionError(
            f"the columns {join_names(names)} have images",
            option="image_column",
            expected="the column to store as image/encoded",
            remedy=f"Pass {option('image_column', names[0])}.",
        )
    return names[0] if names else None


def _choose_boxes(
    chosen: _Chosen,
    columns: Mapping[str, FlatColumn],
    of_lists: Mapping[str, tuple[str, ...]],
    *,
    required: bool,
) -> None:
    """Find the columns of boxes and of the classes of the same objects."""
    pairs = [
        _BoxColumns(name, labels, names)
        for name, column in columns.items()
        if name.rpartition("/")[2] in _BOX_NAMES and column.is_list
        for labels, names in of_lists.items()
        if labels.rpartition("/")[0] == name.rpartition("/")[0]
    ]
    if required and (len(pairs) != 1 or chosen.image is None):
        raise OptionError(
            "the dataset has no single pair of a column of boxes (bbox) and a list of ClassLabels "
            "for them",
            option="box_format",
            value=join_names(columns),
            remedy="Rename the columns of the boxes to bbox, and cast their classes to ClassLabel.",
        )
    if required:
        (chosen.boxes,) = pairs
    elif pairs and chosen.image is not None:
        chosen.notices.append(
            f"boxes kept as the feature {pairs[0].corners}; {option('box_format', 'xywh')} or "
            f"{option('box_format', 'xyxy')} stores them as image/object/bbox/…"
        )


def _shape_notice(nested: NestedColumns, chosen: _Chosen) -> list[str]:
    """A notice on lists of lists that were flattened."""
    shapes = [
        f"{name} (…, {', '.join('?' if n < 0 else str(n) for n in shape)})"
        for name, shape in nested.shapes.items()
        if chosen.boxes is None or name != chosen.boxes.corners
    ]
    return [f"arrays stored flat, row by row: {join_names(shapes)}"] if shapes else []


def _part_name(split: str) -> str:
    return f"split {split}" if split else "the dataset"
