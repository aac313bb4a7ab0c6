"""Many shards as one sequence of examples.

A Dataset is light: it has shards and a selection of their records. A slice, a filter or a shuffle
is another Dataset over the same shards.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from recordsmith.dataset.examples import DecodedExample
from recordsmith.dataset.keypoint_classes import KeypointClasses
from recordsmith.dataset.labels import ClassNames
from recordsmith.dataset.selected_records import SelectedRecords, records_of_part, shard_parts
from recordsmith.dataset.selection import Positions, check_shares
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.view import View
from recordsmith.format.example import (
    BytesArray,
    Column,
    ColumnDecoder,
    FeatureRequest,
    Schema,
    decode_payload,
    valid_rows,
)
from recordsmith.support.errors import DataError, Defect, MissingExtraError, OptionError
from recordsmith.support.summaries import Summarized, Summary, named
from recordsmith.support.words import count as counted
from recordsmith.support.words import did_you_mean, parse_size, suggest_names
from recordsmith.support.work import thread_count

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_MAX_FEATURES = 10
DEFAULT_PART_BYTES = 128 << 20

_LOADER = "Use rs.Loader(dataset, features, batch_size=…"
_EXPLAINED = {
    name: remedy
    for names, remedy in {
        "apply map": f"{_LOADER}, map_examples=function).",
        "as_numpy_iterator": "Iterate over the dataset.",
        "batch batched padded_batch to_tf_dataset with_format set_format": f"{_LOADER}).",
        "bucket_by_sequence_length": f"{_LOADER}, buckets=rs.BucketBySize()).",
        "cardinality count num_rows size": "Use len(dataset).",
        "column_names columns features element_spec": "Use dataset.schema.",
        "concatenate concat": "Open a list of paths: rs.open([first, second]).",
        "interleave": f"{_LOADER}, shuffle=True), which mixes all shards.",
        "prefetch": f"{_LOADER}, prefetch=2).",
        "random_split train_test_split": "Use dataset.split_by({'train': 0.8, 'test': 0.2}).",
        "remove_columns": "Use dataset.select_columns.",
        "repeat": f"{_LOADER}, epochs=3), or epochs=None without end.",
        "shard": f"{_LOADER}, rank=…, world_size=…).",
        "skip": "Use dataset[count:].",
    }.items()
    for name in names.split()
}
"""What to do instead of methods of tf.data, torch and Hugging Face datasets."""

Validity: TypeAlias = dict[str, npt.NDArray[np.bool_]]
"""By feature name: which examples have it."""


class Dataset(Summarized):
    """A sequence of examples from one or more shards. Returned by `recordsmith.open`.

    Indexing and iteration return decoded examples: a dict of int64 arrays, float32 arrays and lists
    of bytes, as in `decode_example`, or a SequenceExample. Every checksum is verified. Thread-safe.

    Slices, selections, filters and shuffles are Datasets as well, and every job and the Loader
    accept them. A slice or shuffle counts the records and reads none; a filter reads its features.
    Compressed shards can only be read in order, so their records can be filtered and cut, but not
    shuffled or indexed.

    Example:
        dataset = rs.open("out", split="train")
        print(len(dataset), dataset.class_names)
        image = dataset[0]["image/encoded"][0]
        daisies = dataset.filter("image/class/label == 0").shuffle(seed=1)[:100]
    """

    def __init__(self, view: View) -> None:
        if isinstance(view, (str, os.PathLike)):
            raise OptionError(
                "Dataset does not open paths", remedy=f"Use rs.open({os.fspath(view)!r})."
            )
        self.view = view

    def __len__(self) -> int:
        return len(self.view.records)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shards, also those without records of this dataset."""
        return self.view.records.all_shards

    @property
    def class_names(self) -> ClassNames | None:
        """The names of classes, indexed by label; None without classes."""
        return self.view.class_names

    @property
    def keypoint_classes(self) -> KeypointClasses:
        """What the keypoints of objects are, by the label of their class; empty without any."""
        return self.view.keypoint_classes

    @property
    def schema(self) -> Schema:
        """The features of the examples, from the manifest or from one pass over the records."""
        return self.view.read_schema()

    if not TYPE_CHECKING:  # for type checkers, any name would be an attribute

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError, which says what to do instead of methods of other libraries."""
            problem = f"a Dataset has no attribute {name!r}"
            if name.startswith("_"):  # programs ask for many of these
                raise AttributeError(problem)
            public = [known for known in dir(self) if not known.startswith("_")]
            remedy = _EXPLAINED.get(name) or did_you_mean(name, public)
            raise AttributeError(f"{problem}. {remedy}" if remedy else problem)

    def _with(self, records: SelectedRecords, how: str | None = None) -> Dataset:
        return Dataset(self.view.of(records, how))

    # -- selection -----------------------------------------------------------------------------

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice | Positions) -> Dataset: ...
    def __getitem__(self, index: SupportsIndex | slice | Positions) -> Any:
        """Return a decoded example; for a slice, positions or a mask, a Dataset of these examples.

        The `repr` of the example describes long bytes and images instead of showing them.
        """
        if isinstance(index, slice):
            return self._with(self.view.records.cut(index))
        try:
            place = operator.index(index)  # type: ignore[arg-type]
        except TypeError:
            return self.select(index)  # type: ignore[arg-type]
        example = _decode(*self.view.records.read(place))
        return DecodedExample(example) if isinstance(example, dict) else example

    def select(self, positions: Positions) -> Dataset:
        """Return the examples at some positions, in that order.

        Args:
            positions: integers, where negative ones count from the end, or a boolean mask with one
                value per record.

        Raises:
            IndexError: a position is out of range.
            OptionError: the positions are not integers or a mask of the right length.

        Example:
            dataset.select([0, 5, -1])
        """
        if isinstance(positions, str):
            raise OptionError(
                option="positions",
                value=positions,
                expected="integers or a boolean mask",
                remedy="To read a feature of all examples, use read_columns.",
            )
        return self._with(self.view.records.pick(positions))

    def take(self, count: int) -> Dataset:
        """Return the first examples, at most `count`.

        Raises:
            OptionError: the count is negative.
        """
        if not isinstance(count, (int, np.integer)) or count < 0:
            raise OptionError(option="count", value=count, expected="an integer of at least 0")
        return self[: int(count)]

    def shuffle(self, seed: int = 0) -> Dataset:
        """Return the examples in a random order, which is computed and takes no memory.

        Equal seeds give equal orders. For training, `Loader(shuffle=True)` has another order
        in each epoch.

        Raises:
            OptionError: the seed is not an integer; at first use, if a shard is compressed.

        Example:
            sample = dataset.shuffle(seed=1).take(100)
        """
        seed = _seed(seed)
        return self._with(self.view.records.shuffled(seed), f"shuffled, seed {seed}")

    def filter(self, where: str) -> Dataset:
        """Return the examples that match a condition.

        All records are read once, and the positions of those that match are kept, eight bytes each.

        Args:
            where: as in `reshard`, such as "image/class/label in (1, 2) and image/width > 100".

        Raises:
            OptionError: the expression is invalid, or no record has one of its features.
            CorruptDataError: a record is damaged.

        Example:
            wide = dataset.filter("image/width > 640")
        """
        from recordsmith.dataset.where.expression import parse_where

        return Dataset(self.view.matching(parse_where(where)))

    def split_by(self, shares: Mapping[str, float], seed: int = 0) -> dict[str, Dataset]:
        """Divide the examples at random; each part keeps their order.

        These are the splits that `reshard` makes with the same shares and seed.

        Args:
            shares: the share of each part by name; they add up to 1.
            seed: equal seeds give equal parts.

        Raises:
            OptionError: the shares do not add up to 1.

        Example:
            parts = dataset.split_by({"train": 0.9, "validation": 0.1})
        """
        check_shares(shares)
        return {name: Dataset(view) for name, view in self.view.drawn(shares, _seed(seed)).items()}

    @property
    def splits(self) -> Mapping[str, Dataset]:
        """The splits by name, each a Dataset."""
        return _Splits(self.view)

    # -- reading -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        for shard, number, payload in self.view.records.payloads():
            yield _decode(shard, number, payload)

    def records(self) -> Iterator[bytes]:
        """Yield the payloads in order without decoding them."""
        for located in self.view.records.blocks():
            yield from located.block.records()

    def read_records(self, positions: Positions) -> BytesArray:
        """Read the payloads at many positions; the fast way to read random records.

        Args:
            positions: a sequence or array of integers, where negative ones count from the end; or a
                boolean mask with one value per record.

        Returns:
            BytesArray, (count,), in the order of the positions.

        Raises:
            IndexError: a position is out of range.
            OptionError: the positions are not integers or a mask of the right length, or a shard
                is compressed, so it can only be read in order.
            CorruptDataError: a record is damaged.
        """
        return self.view.records.read_records(positions)

    @overload
    def read_columns(
        self, keys: FeatureRequest | None = None, *, with_validity: Literal[False] = False
    ) -> dict[str, Column]: ...
    @overload
    def read_columns(
        self, keys: FeatureRequest | None = None, *, with_validity: Literal[True]
    ) -> tuple[dict[str, Column], Validity]: ...
    def read_columns(
        self, keys: FeatureRequest | None = None, *, with_validity: bool = False
    ) -> dict[str, Column] | tuple[dict[str, Column], Validity]:
        """Read features of all examples as columns.

        Args:
            keys: feature names, or a dict of names and FeatureSpecs; None for all features of the
                schema that have values. A known schema completes missing kinds and shapes.
            with_validity: whether to also return which examples have each feature. An example that
                lacks a feature of fixed shape without a default has zeros or empty bytes then, and
                the schema's shape is that of the examples that have the feature.

        Returns:
            For each name an ndarray (int64 or float32, (len(dataset), *shape)), a BytesArray of
            that shape, or a RaggedArray if the number of values varies. All columns are in memory
            at once, so select the columns you need. With validity, these columns, and for each
            name a bool array, (len(dataset),): True if the example has the feature, even with an
            empty list or without a kind.

        Raises:
            OptionError: no record has a feature of that name.
            NotAnExampleError: the records are not Examples.
            CorruptDataError: a record is damaged, or a feature does not match
                its FeatureSpec.

        Example:
            labels = dataset.read_columns(["image/class/label"])["image/class/label"]
            columns, validity = dataset.read_columns(with_validity=True)
        """
        view = self.view
        keys = view.columns if keys is None else keys
        is_known = view.outer_schema is not None
        if keys is None or is_known or with_validity or view.begins_with_lists():
            keys = view.specs(keys, fills_missing=with_validity)
        decoder, row_count = ColumnDecoder(keys, with_validity=with_validity), 0
        records = view.records if keys is None else view.records.reading(keys)
        for located in records.blocks():
            located.append_to(decoder)
            row_count += len(located.block)
        try:
            columns, validity = decoder.finish_with_validity()
        except DataError as error:
            if error.defect is Defect.MISSING_FEATURE:
                view.check_keys(list(keys))
            raise
        return (columns, _validity(columns, validity, row_count)) if with_validity else columns

    @overload
    def batches(
        self,
        size: int,
        keys: FeatureRequest | None = None,
        *,
        drop_last: bool = False,
        with_validity: Literal[False] = False,
    ) -> Iterator[dict[str, Column]]: ...
    @overload
    def batches(
        self,
        size: int,
        keys: FeatureRequest | None = None,
        *,
        drop_last: bool = False,
        with_validity: Literal[True],
    ) -> Iterator[tuple[dict[str, Column], Validity]]: ...
    def batches(
        self,
        size: int,
        keys: FeatureRequest | None = None,
        *,
        drop_last: bool = False,
        with_validity: bool = False,
    ) -> Iterator[Any]:
        """Read columns of `size` examples at a time, in order.

        Shapes come from the schema, so all batches have the same columns. The schema of a foreign
        dataset takes one pass over it; a FeatureSpec with kind and shape for every name avoids it.

        Args:
            size: number of examples in a batch; the last batch may have fewer.
            keys: as in `read_columns`.
            drop_last: drop an incomplete last batch.
            with_validity: as in `read_columns`.

        Yields:
            As `read_columns` returns.

        Raises:
            OptionError: the size is not positive; or as in `read_columns`.
            CorruptDataError: as in `read_columns`.
        """
        if size < 1:
            raise OptionError(option="size", value=size, expected="a positive integer")
        keys = self.view.columns if keys is None else keys
        specs = self.view.specs(keys, fills_missing=with_validity)
        decoder = ColumnDecoder(specs, with_validity=with_validity)
        return (
            (columns, _validity(columns, validity, row_count)) if with_validity else columns
            for row_count in self._filled(decoder, specs, size, drop_last)
            for columns, validity in (decoder.finish_with_validity(),)
        )

    def _filled(
        self, decoder: ColumnDecoder, keys: Iterable[str], size: int, drop_last: bool
    ) -> Iterator[int]:
        """Yield the number of rows each time that a decoder has those of a batch."""
        filled = 0
        for located in self.view.records.reading(keys).blocks():
            row, count = 0, len(located.block)
            while row < count:
                stop = min(count, row + size - filled)
                located.append_to(decoder, row, stop)
                filled += stop - row
                row = stop
                if filled == size:
                    yield filled
                    filled = 0
        if filled and not drop_last:
            yield filled

    def select_columns(self, columns: Iterable[str]) -> Dataset:
        """Return a Dataset that reads only these features as columns.

        Applies to `read_columns`, `batches`, `to_arrow` and queries; single examples and records
        keep all features. Nothing is read; unknown names are errors when columns are read.

        Args:
            columns: feature names, in order.

        Raises:
            OptionError: the columns are not a list of names.

        Example:
            labels = dataset.select_columns(["image/class/label"])
        """
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise OptionError(option="columns", value=columns, expected="a list of names")
        return Dataset(replace(self.view, columns=tuple(columns)))

    def to_arrow(
        self,
        columns: Iterable[str] | None = None,
        *,
        batch_size: int | None = None,
        threads: int = 1,
        restore_types: bool | None = None,
        where: str | None = None,
    ) -> Any:
        """Read the examples as a stream of Arrow record batches. Needs pyarrow.

        A record that lacks a feature has null. Types come from the schema: see docs/arrow.md.
        Memory holds some batches. Nothing is read before the first batch, except that the schema
        of a dataset without a manifest takes one pass over it.

        Args:
            columns: feature names, in order; None for all, or those of `select_columns`.
            batch_size: rows of each batch but the last; None for up to 16,384 rows or 16 MiB.
            threads: how many threads decode; compressed shards are decoded by one.
            restore_types: whether columns have the types and the order of the Arrow table that was
                packed; None: where the manifest has them. Columns that lost digits keep the types
                of their features.
            where: only the examples that match, as in `filter`, but in the same pass; batches of
                several threads may have fewer rows then.

        Returns:
            pyarrow.RecordBatchReader.

        Raises:
            MissingExtraError: pyarrow is not installed.
            OptionError: no record has one of the features, a feature has several kinds, the
                condition is invalid, or there are no types to restore.
            CorruptDataError: the manifest has invalid types; while batches are read: a record is
                damaged, or does not match the schema.

        Example:
            table = dataset.to_arrow(["image/class/label"]).read_all()
        """
        if batch_size is not None and batch_size < 1:
            raise OptionError(option="batch_size", value=batch_size, expected="a positive integer")
        from recordsmith.dataset.arrow_stream import open_stream
        from recordsmith.dataset.where.expression import parse_where

        condition = None if where is None else parse_where(where)
        if condition is not None:
            condition.check(self.view.column_schema)

        return open_stream(
            self.view.records,
            self.view.column_schema,
            self.view.columns if columns is None else columns,
            self.class_names,
            batch_size,
            thread_count(threads),
            self.view.arrow_types(restore_types),
            condition,
        )

    def to_pandas(self, columns: Iterable[str] | None = None) -> pd.DataFrame:
        """Read the examples as a DataFrame of pandas, in memory. Needs pandas and pyarrow.

        The columns are those of `to_arrow` with pandas' Arrow types: a record that lacks a feature
        has `<NA>`, and integers keep all digits.

        Args:
            columns: feature names, in order; None for all, or those of `select_columns`.

        Returns:
            pandas.DataFrame with a row for each example.

        Raises:
            MissingExtraError: pandas or pyarrow is not installed.
            OptionError, CorruptDataError: as in `to_arrow`.

        Example:
            widths = dataset.to_pandas(["image/width"]).describe()
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("pandas", "pandas") from None
        table = self.to_arrow(columns).read_all()
        frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
        return frame

    def to_polars(self, columns: Iterable[str] | None = None) -> pl.DataFrame:
        """Read the examples as a DataFrame of Polars, in memory. Needs polars and pyarrow.

        `recordsmith.polars.scan` reads less: only what a query needs.

        Args:
            columns: feature names, in order; None for all, or those of `select_columns`.

        Returns:
            polars.DataFrame with a row for each example and the columns of `to_arrow`.

        Raises:
            MissingExtraError: polars or pyarrow is not installed.
            OptionError, CorruptDataError: as in `to_arrow`.

        Example:
            labels = dataset.to_polars(["image/class/label"]).unique()
        """
        try:
            import polars as pl
        except ImportError:
            raise MissingExtraError("polars", "polars") from None
        return pl.DataFrame(self.to_arrow(columns).read_all())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the stream of `to_arrow` for other libraries: pyarrow, Polars, pandas, DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _summary(self) -> Summary:
        view = self.view
        count = view.records.known_record_count
        shards = counted(len(self.shards), "shard")
        if count is None:
            title = f"{shards}, records not counted yet"
        else:
            title = f"{counted(count, 'record')} in {shards}"
        rows = [("splits", named(view.split_names))]
        if view.chosen:
            rows.insert(0, ("records", ", ".join(view.chosen)))
        known = view.outer_schema
        if known is not None and known.features:
            features = [f"{key} ({feature.kind})" for key, feature in known.features.items()]
            rows.append(("features", named(features, _MAX_FEATURES)))
        if view.class_names is not None:
            rows.append(("classes", named(name for name in view.class_names if name is not None)))
        origin = "" if view.source is None else f"{view.source}: "
        return Summary(f"{origin}{title}", tuple(rows))


class _Splits(Mapping[str, Dataset]):
    """The splits of a dataset, each made when it is asked for."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._names = view.split_names

    def __getitem__(self, name: str) -> Dataset:
        if name not in self._names:
            hint = suggest_names(name, self._names, "there are no splits")
            raise KeyError(f"split {name!r} does not exist; {hint}")
        return Dataset(self._view.of_split(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        parts = []
        for name in self._names:
            count = self._view.of_split(name).records.known_record_count
            parts.append(repr(name) if count is None else f"{name!r}: {counted(count, 'record')}")
        return f"Splits({', '.join(parts)})"


def records_of(dataset: Dataset) -> SelectedRecords:
    """Return the selected records of a dataset, as other packages read them."""
    return dataset.view.records


def parts_of(dataset: Dataset, part_bytes: int | str = DEFAULT_PART_BYTES) -> list[Dataset]:
    """Cut a dataset into parts, in the order of its records.

    Each part is a Dataset of one shard, or of records in a row of a large uncompressed shard. It
    has the columns of the whole dataset, and another process that unpickles it reads it without
    listing a folder or reading a manifest. Record counts that are unknown are found out only for
    large shards.

    Args:
        part_bytes: the size from which a shard is cut, such as "64MB", and the most bytes of a
            part, if records are of equal size.

    Raises:
        OptionError: the size is invalid, or the records are not in the order of the files.

    Example:
        >>> import recordsmith as rs
        >>> with rs.ShardWriter("rows.tfrecord") as writer:
        ...     writer.write_columns({"x": [1, 2, 3]})
        >>> [len(part) for part in parts_of(rs.open("rows.tfrecord"), "32B")]
        [1, 1, 1]
    """
    max_bytes = parse_size(part_bytes) if isinstance(part_bytes, str) else part_bytes
    if not isinstance(max_bytes, int) or isinstance(max_bytes, bool) or max_bytes < 1:
        raise OptionError(
            option="part_bytes", value=part_bytes, expected="a size such as 64MB or 1GiB"
        )
    view = dataset.view
    parts = list(shard_parts(view.records, max_bytes))
    schema = view.column_schema
    whole = replace(
        view, schema=None, outer_schema=schema, split_schemas={}, source=None, chosen=()
    )
    return [Dataset(replace(whole, records=records_of_part(part.portable()))) for part in parts]


def _seed(seed: int) -> int:
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
        raise OptionError(option="seed", value=seed, expected="an integer")
    return int(seed)


def _decode(shard: Shard, number: int, payload: memoryview) -> Any:
    try:
        return decode_payload(payload)
    except DataError as error:
        error.path, error.record = str(shard.location), number
        raise


def _validity(
    columns: Iterable[str], validity: Mapping[str, npt.NDArray[np.uint8]], row_count: int
) -> Validity:
    return {key: valid_rows(validity, key, row_count) for key in columns}
