"""Datasets of the Hugging Face package `datasets`, read through Arrow: nothing is decoded.

The package is not imported: a dataset is recognized by its methods.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from json import dumps
from typing import Any

import numpy as np

from recordsmith.dataset import import_pyarrow
from recordsmith.format.example import Kind
from recordsmith.sources.numbered import RowNames, SampleTable, split_coding
from recordsmith.sources.pairs.masks import ColoursOption, check_colours, mask_features
from recordsmith.sources.problems import join_names
from recordsmith.sources.samples import Content, Note, Sample, SampleReader, ignore_note
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import sort_splits
from recordsmith.sources.tables.encoded_rows import EncodedRows
from recordsmith.sources.tables.nested_columns import NestedColumns, described_features
from recordsmith.sources.tables.table import Table
from recordsmith.support.errors import OptionError, SourceError

_MASK_NAME = "mask"
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
        rows = datasets.Dataset.from_dict({"text": ["a", "b"], "fine_label": [1, 0]})
        rs.pack(rs.HuggingFace(rows, label_column="fine_label"), "out")
    """

    def __init__(
        self,
        dataset: Any,
        *,
        image_column: str | None = None,
        mask_column: str | None = None,
        colours: ColoursOption | None = None,
        label_column: str | None = None,
        caption_column: str | None = None,
        split_column: str | None = None,
        group_column: str | None = None,
        kinds: Mapping[str, Kind] | None = None,
    ) -> None:
        """
        Args:
            dataset: a `Dataset`, `IterableDataset`, `DatasetDict` or `IterableDatasetDict`.
            image_column: the column of the images; None for `image`, or the only one.
            mask_column: the column of the masks; None for `mask`, if it has images.
            colours: of masks, as in `ImagePairs`.
            label_column: the column of the classes; None for `label`, or the only `ClassLabel`.
            caption_column, split_column, group_column: as in `Table`; such as `objects/id` for a
                key of a dict.
            kinds: the kinds of some columns, as in `Table`.

        Raises:
            OptionError: an argument is invalid.
        """
        self._parts = _parts_of(dataset)
        self._colours = check_colours(colours)
        self._kinds = dict(kinds or {})
        self._columns = {
            "image_column": image_column,
            "mask_column": mask_column,
            "label_column": label_column,
            "caption_column": caption_column,
            "split_column": split_column,
            "group_column": group_column,
        }
        self._options = {
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
        stream = _Stream(self._parts)
        image, mask = self._image_columns(stream.images)
        table = Table(
            stream,
            image_column=image,
            split_column=self._columns["split_column"],
            group_column=self._columns["group_column"],
            label_column=self._columns["label_column"],
            caption_column=self._columns["caption_column"],
            kinds=self._kinds,
        )
        try:
            listing = table.list_samples()
        except SourceError:
            if stream.error is not None:
                raise stream.error from None  # Arrow has kept only its text
            raise
        samples = copy.copy(listing.samples)
        assert isinstance(samples, SampleTable)
        splits = listing.splits
        if not splits and tuple(self._parts) != ("",):
            counts = stream.row_counts
            splits = tuple(sort_splits(name for name, rows in counts.items() if rows))
            samples.splits = split_coding(list(counts), list(counts.values()))
            samples.names = RowNames(counts)
        return replace(
            listing,
            samples=samples,
            reader=HuggingFaceReader(listing.reader, mask, self._colours),
            notices=(*listing.notices, *stream.nested.notices()),
            splits=splits,
        )

    def _image_columns(self, images: list[str]) -> tuple[str | None, str | None]:
        """The columns of images and masks; None for the usual one of `Table`, and for none."""
        image, mask = self._columns["image_column"], self._columns["mask_column"]
        for name in ("image_column", "mask_column"):
            value = self._columns[name]
            if value is not None and value not in images:
                raise OptionError(
                    f"the dataset has no column {value!r} with images",
                    option=name,
                    value=value,
                    expected=join_names(images, "or") if images else "a dataset with images",
                )
        others = [name for name in images if name != mask]
        if mask is not None and not others:
            raise OptionError(
                f"column {mask!r} is not a mask of an image",
                option="mask_column",
                value=mask,
                expected="a column of images next to that of the images",
            )
        if mask is not None and image is None and len(others) == 1:
            (image,) = others
        if mask is None and _MASK_NAME in images and len(images) > 1 and image != _MASK_NAME:
            mask = _MASK_NAME
        return image, mask


@dataclass(frozen=True)
class HuggingFaceReader:
    """Reads rows with their images, and checks and converts their masks."""

    rows: SampleReader
    mask: str | None
    colours: Mapping[tuple[int, int, int], int] | None

    def read(self, sample: Sample, note: Note = ignore_note) -> Content:
        content = self.rows.read(sample, note)
        if self.mask is None:
            return content
        assert isinstance(content, Mapping)  # as the row has an image
        features = dict(content)
        if self.mask in features:
            (data,) = features.pop(self.mask)
            place = f"{sample.name}, {self.mask}"
            features |= mask_features(place, data, features, self.colours, note)
        return features

    def kinds(self) -> Mapping[str, Kind]:
        return {key: kind for key, kind in self.rows.kinds().items() if key != self.mask}

    def frames(self) -> EncodedRows | None:
        """The rows as records, which `pack` copies; None if they have images."""
        return None if self.mask is not None else self.rows.frames()  # type: ignore[attr-defined]

    def to_json(self) -> dict[str, Any]:
        raise OptionError(
            "the rows of a dataset exist only in this process",
            remedy="Save it with dataset.to_parquet, and pack that file.",
        )


class _Stream:
    """The rows of all parts as one Arrow stream of flat columns, which can be read once.

    images: the columns of images.
    row_counts: of each part, after it was read.
    error: what ended the stream.
    """

    def __init__(self, parts: Mapping[str, Any]) -> None:
        """Read the first rows."""
        self._pa = import_pyarrow()
        self._parts = parts
        self.row_counts: dict[str, int] = dict.fromkeys(parts, 0)
        self.error: Exception | None = None
        self._batches = self._read()
        self._first = next(self._batches, None)
        if self._first is None:
            raise SourceError("the dataset has no rows")
        self._schema = self._first.schema
        features = described_features(self._schema)
        self.images = [name for name, kind in features.items() if kind["_type"] == "Image"]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = self._pa.RecordBatchReader.from_batches(self._schema, self._rest())
        return reader.__arrow_c_stream__(requested_schema)

    def _rest(self) -> Iterator[Any]:
        try:
            yield self._first
            self._first = None
            yield from self._batches
        except Exception as error:
            self.error = error
            raise

    def _read(self) -> Iterator[Any]:
        """Yield the batches of all parts, in the types of the first."""
        schema = None
        for name, part in self._parts.items():
            for table in self._tables(name, part):
                if schema is None:
                    schema = table.schema
                    self.nested = NestedColumns(_features_of(part, schema), reads_files=True)
                    self.nested.check(_part_name(name))
                rows = self._cast(table, schema, name)
                self.row_counts[name] += len(rows)
                yield from map(self.nested.flat_batch, rows.combine_chunks().to_batches())

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


def _part_name(split: str) -> str:
    return f"split {split}" if split else "the dataset"
