"""Many shards as one sequence of examples.

A Dataset is light: it has shards and a selection of their records. A slice, a filter or a shuffle
is another Dataset over the same shards.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from recordsmith.arrow import schema_from_text
from recordsmith.dataset.arrow_stream import open_stream
from recordsmith.dataset.examples import DecodedExample
from recordsmith.dataset.labels import ClassNames
from recordsmith.dataset.selected_records import SelectedRecords, joined_shards
from recordsmith.dataset.selection import (
    ChosenPositions,
    DeferredPositions,
    PositionArray,
    Positions,
)
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shares import check_shares, draws_of_splits, share_counts
from recordsmith.errors import (
    CorruptDataError,
    DataError,
    Defect,
    MissingExtraError,
    NotAnExampleError,
    OptionError,
    option,
    suggest_names,
)
from recordsmith.example import (
    BytesArray,
    Column,
    ColumnDecoder,
    FeatureRequest,
    FeatureSchema,
    FeatureSpec,
    Schema,
    SchemaSurvey,
    decode_payload,
    valid_rows,
)
from recordsmith.stores import Location
from recordsmith.summaries import Summarized, Summary, named
from recordsmith.where import Where, parse_where
from recordsmith.words import count as counted
from recordsmith.words import first_of
from recordsmith.work import thread_count

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_NAMED_PATHS = 3
_MOST_FEATURES = 10

Validity: TypeAlias = dict[str, npt.NDArray[np.bool_]]
"""By feature name: which examples have it."""


class DatasetSource(NamedTuple):
    """What was opened: places, and splits; None for all."""

    places: tuple[Location, ...]
    splits: tuple[str, ...] | None = None

    def __str__(self) -> str:
        split = "" if self.splits is None else f", split {'+'.join(self.splits)}"
        return first_of([str(place) for place in self.places], _NAMED_PATHS) + split


class Dataset(Summarized):
    """A sequence of examples from one or more shards. Returned by `recordsmith.open`.

    Indexing and iteration return decoded examples: a dict of int64 arrays, float32 arrays and lists
    of bytes, as in `decode_example`, or a SequenceExample. Every checksum is verified. Thread-safe.

    Slices, selections, filters and shuffles are Datasets as well, and every job and the Loader
    accept them. Making one reads no records. Compressed shards can only be read in order, so their
    records can be filtered and cut, but not shuffled or indexed.

    Example:
        dataset = rs.open("out", split="train")
        print(len(dataset), dataset.class_names)
        image = dataset[0]["image/encoded"][0]
        daisies = dataset.filter("image/class/label == 0").shuffle(seed=1)[:100]
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        *,
        schema: Schema | None = None,
        class_names: ClassNames | None = None,
        split_schemas: Mapping[str, Schema | None] | None = None,
        source: DatasetSource | None = None,
        arrow_schema: str | None = None,
        tfds: Mapping[str, Any] | None = None,
    ) -> None:
        """
        Args:
            split_schemas: the splits of the manifest, with their schemas if they are known.
            source: what was opened.
            arrow_schema, tfds: as in `Manifest`.
        """
        self.class_names = class_names
        self._records = joined_shards(shards)
        self._schema = schema
        self._outer_schema = schema  # of this dataset, or of the one that it was selected from
        self._split_schemas = dict(split_schemas or {})
        self._source = source
        self._arrow_schema = arrow_schema
        self._tfds = tfds
        self._columns: tuple[str, ...] | None = None  # selected features; None: all
        self._chosen: tuple[str, ...] = ()  # how its records were, for `repr`

    def _with(self, positions: ChosenPositions, how: str | None = None) -> Dataset:
        """Return a Dataset of other records of the same shards; `how` they were chosen."""
        other = copy(self)
        if how is not None:
            other._chosen = (*self._chosen, how)  # noqa: SLF001
        other._records = self._records.select(positions)  # noqa: SLF001 - of the same class
        if positions is not self._records.positions:
            other._schema = None  # noqa: SLF001
        return other

    def __len__(self) -> int:
        return len(self._records)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shards, also those without records of this dataset."""
        return self._records.all_shards

    # -- selection -----------------------------------------------------------------------------

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice | Positions) -> Dataset: ...
    def __getitem__(self, index: SupportsIndex | slice | Positions) -> Any:
        """Return a decoded example; for a slice, positions or a mask, a Dataset of these examples.

        The `repr` of the example describes long bytes and images instead of showing them.

        Args:
            index: an integer; a slice; a list or array of integers, in any order; or a boolean mask
                with one value per record.

        Raises:
            IndexError: a position is out of range.
            OptionError: the shard is compressed, so it can only be read in order; or the index is
                something else.
            CorruptDataError: the record is damaged.
            NotAnExampleError: the record is neither an Example nor a SequenceExample.
        """
        if isinstance(index, slice):
            return self._with(self._records.positions.cut(index))
        try:
            place = operator.index(index)  # type: ignore[arg-type]
        except TypeError:
            return self.select(index)  # type: ignore[arg-type]
        shard, number, payload = self._records.read(place)
        found = _decode(shard, number, payload)
        return DecodedExample(found) if isinstance(found, dict) else found

    def select(self, positions: Positions) -> Dataset:
        """Return the examples at some positions, in that order.

        Args:
            positions: integers, where negative ones count from the end, or a boolean mask with one
                value per record.

        Raises:
            IndexError: a position is out of range. Raised at first use if the number of records is
                not known yet.
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
        return self._with(self._records.positions.pick(positions))

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
        return self._with(self._records.positions.shuffled(seed), f"shuffled, seed {seed}")

    def filter(self, where: str) -> Dataset:
        """Return the examples that match a condition.

        The condition is evaluated at first use: all records are read once, and the positions of
        those that match are kept, eight bytes each.

        Args:
            where: as in `reshard`, such as "image/class/label in (1, 2) and image/width > 100".

        Raises:
            OptionError: the expression is invalid, or no record has one of its features. Raised at
                first use if the schema is not known.

        Example:
            wide = dataset.filter("image/width > 640")
        """
        condition = parse_where(where)
        known = self._outer_schema
        if known is not None:
            condition.check(known)
        # a record that is not selected here may have the features
        must_find = known is None and self._records.positions.is_everything_known
        matching = partial(_matching, self._records, condition, must_find=must_find)
        return self._with(DeferredPositions(matching), f"filter: {condition}")

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
        seed, positions = _seed(seed), self._records.positions
        shares = dict(shares)
        return {
            name: self._with(DeferredPositions(partial(_drawn, positions, shares, seed, name)))
            for name in shares
        }

    @property
    def splits(self) -> Mapping[str, Dataset]:
        """The splits by name, each a Dataset."""
        names = dict.fromkeys(shard.split for shard in self.shards) | self._split_schemas
        return _Splits(self, tuple(names))

    def _split(self, name: str) -> Dataset:
        schema = self._split_schemas.get(name)
        positions = self._records.positions
        if len({shard.split for shard in self.shards} | {name}) == 1:
            return self
        if not positions.is_everything_known:
            return self._with(DeferredPositions(partial(_of_split, self._records, name)))
        return Dataset(
            [shard for shard in self.shards if shard.split == name],
            schema=schema,
            class_names=self.class_names,
            split_schemas={name: schema},
            source=None if self._source is None else self._source._replace(splits=(name,)),
            arrow_schema=self._arrow_schema,
            tfds=self._tfds,
        )

    # -- reading -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        for shard, number, payload in self._records.payloads():
            yield _decode(shard, number, payload)

    def records(self) -> Iterator[bytes]:
        """Yield the payloads in order without decoding them."""
        for located in self._records.blocks():
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
        return self._records.read_records(positions)

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
        keys = self._columns if keys is None else keys
        if keys is None or self._outer_schema is not None or with_validity:
            keys = self._specs(keys, fills_missing=with_validity)
        decoder, row_count = ColumnDecoder(keys, with_validity=with_validity), 0
        for located in self._records.blocks():
            located.append_to(decoder)
            row_count += len(located.block)
        try:
            columns, validity = decoder.finish_with_validity()
        except DataError as error:
            if error.defect is Defect.MISSING_FEATURE:
                self._check_keys(list(keys))
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
    ) -> Iterator[dict[str, Column]] | Iterator[tuple[dict[str, Column], Validity]]:
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
        keys = self._columns if keys is None else keys
        decoder = ColumnDecoder(
            self._specs(keys, fills_missing=with_validity), with_validity=with_validity
        )
        if not with_validity:
            return (decoder.finish() for _ in self._filled(decoder, size, drop_last))
        return (
            (columns, _validity(columns, validity, row_count))
            for row_count in self._filled(decoder, size, drop_last)
            for columns, validity in (decoder.finish_with_validity(),)
        )

    def _filled(self, decoder: ColumnDecoder, size: int, drop_last: bool) -> Iterator[int]:
        """Yield the number of rows each time that a decoder has those of a batch."""
        filled = 0
        for located in self._records.blocks():
            at, count = 0, len(located.block)
            while at < count:
                stop = min(count, at + size - filled)
                located.append_to(decoder, at, stop)
                filled += stop - at
                at = stop
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
        other = copy(self)
        other._columns = tuple(columns)  # noqa: SLF001 - of the same class
        return other

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
        condition = None if where is None else parse_where(where)
        if condition is not None:
            condition.check(self._known_schema)
        return open_stream(
            self._records,
            self._known_schema,
            self._columns if columns is None else columns,
            self.class_names,
            batch_size,
            thread_count(threads),
            self._arrow_types(restore_types),
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
        return self.to_arrow(columns).read_all().to_pandas(types_mapper=pd.ArrowDtype)

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

    def _arrow_types(self, restore_types: bool | None = None) -> Any:
        """Return the pyarrow.Schema of the types to restore; None to restore none."""
        if restore_types is False or (restore_types is None and self._arrow_schema is None):
            return None
        if self._arrow_schema is None:
            raise OptionError(
                "the manifest has no Arrow types: the dataset was not packed from an Arrow "
                "table, or was edited since",
                option="restore_types",
                value=True,
            )
        try:
            return schema_from_text(self._arrow_schema)
        except ValueError as error:
            raise CorruptDataError(
                Defect.BROKEN_MANIFEST,
                str(error),
                remedy=f"Read it with {option('restore_types', False)}.",
            ) from None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the stream of `to_arrow` for other libraries: pyarrow, Polars, pandas, DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @property
    def schema(self) -> Schema:
        """The features of the examples, from the manifest or from one pass over the records."""
        if self._schema is None:
            survey = SchemaSurvey()
            for located in self._records.blocks():
                block = located.block
                with located.located():
                    survey.update(block.buffer, block.starts, block.lengths)
            self._schema = survey.finish()
            self._outer_schema = self._outer_schema or self._schema
        return self._schema

    def _preview_schema(self, record_count: int) -> tuple[Schema, bool]:
        if self._schema is not None and self._schema.is_complete:
            return self._schema, True
        is_all = record_count >= len(self)
        try:
            first = (self if is_all else self[:record_count]).schema
        except DataError:
            survey = SchemaSurvey()
            for record in self._readable(record_count):
                with suppress(DataError):
                    start, length = np.zeros(1, np.int64), np.array([len(record)])
                    SchemaSurvey().update(record, start, length)  # raises before damage is counted
                    survey.update(record, start, length)
            return survey.finish(), False
        return first, is_all and first.is_complete

    def _readable(self, record_count: int) -> Iterator[bytes]:
        """Yield the first records, without damaged ones."""
        position = 0
        with suppress(DataError):
            for record in self[:record_count].records():
                yield record
                position += 1
        for after in range(position, min(record_count, len(self))):
            with suppress(DataError, OptionError):  # compressed shards have no random access
                yield self._records.read_record(after)

    # -- features ------------------------------------------------------------------------------

    @property
    def _known_schema(self) -> Schema:
        """The schema of this dataset, or of the one that it was selected from."""
        return self._outer_schema or self.schema

    @property
    def _known_features(self) -> Mapping[str, FeatureSchema]:
        return self._known_schema.features

    def _specs(
        self, keys: FeatureRequest | None, *, fills_missing: bool = False
    ) -> dict[str, FeatureSpec]:
        """Complete the FeatureSpecs of features with kinds and shapes from the schema.

        fills_missing: whether a feature that some records lack can have a fixed shape.
        """
        wanted: Mapping[str, FeatureSpec | None]
        if isinstance(keys, Mapping):
            wanted = keys
        elif isinstance(keys, str):
            raise OptionError(option="keys", value=keys, expected="a list of names")
        elif keys is None:
            if self._known_schema.payload not in ("Example", "mixed", "none"):
                raise NotAnExampleError(self.schema.payload, "Examples")
            self._known_schema.check_complete("select the features that you need")
            features = self._known_features.items()
            wanted = dict.fromkeys(key for key, feature in features if feature.kind != "none")
        else:
            wanted = dict.fromkeys(keys)
        return {
            key: self._spec(key, spec or FeatureSpec(), fills_missing)
            for key, spec in wanted.items()
        }

    def _spec(self, key: str, spec: FeatureSpec, fills_missing: bool) -> FeatureSpec:
        if spec.shape is not None and spec.kind is not None:
            return spec
        known = self._known_features.get(key)
        if known is not None:
            return _complete(key, spec, known, fills_missing)
        self._known_schema.check_complete(
            f"{key!r} is not listed in the schema, so pass a FeatureSpec with kind and shape"
        )
        if spec.default is None:
            self._check_keys([key])
        return spec

    def _check_keys(self, keys: Iterable[str]) -> None:
        """Raise an OptionError for a feature that no record has."""
        known = self._known_features
        if "features" not in self._known_schema.sections and len(self):
            raise NotAnExampleError(self.schema.payload, "Examples")
        for key in keys:
            if key not in known and self._known_schema.is_complete:
                none = "records have no features" if len(self) else "the dataset is empty"
                hint = suggest_names(key, known, none)
                raise OptionError(
                    f"no record has a feature {key!r}; {hint}", option="keys", value=key
                )

    def _summary(self) -> Summary:
        count = self._records.known_record_count
        shards = counted(len(self.shards), "shard")
        if count is None:
            title = f"{shards}, records not counted yet"
        else:
            title = f"{counted(count, 'record')} in {shards}"
        rows = [("splits", named(self.splits))]
        if self._chosen:
            rows.insert(0, ("records", ", ".join(self._chosen)))
        known = self._outer_schema
        if known is not None and known.features:
            features = [f"{key} ({feature.kind})" for key, feature in known.features.items()]
            rows.append(("features", named(features, _MOST_FEATURES)))
        if self.class_names is not None:
            rows.append(("classes", named(name for name in self.class_names if name is not None)))
        origin = "" if self._source is None else f"{self._source}: "
        return Summary(f"{origin}{title}", tuple(rows))


class _Splits(Mapping[str, Dataset]):
    """The splits of a dataset, each made when it is asked for."""

    def __init__(self, dataset: Dataset, names: tuple[str, ...]) -> None:
        self._dataset = dataset
        self._names = names

    def __getitem__(self, name: str) -> Dataset:
        if name not in self._names:
            hint = suggest_names(name, self._names, "there are no splits")
            raise KeyError(f"split {name!r} does not exist; {hint}")
        return self._dataset._split(name)  # noqa: SLF001

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        parts = []
        for name in self._names:
            count = self._dataset._split(name)._records.known_record_count  # noqa: SLF001
            parts.append(repr(name) if count is None else f"{name!r}: {counted(count, 'record')}")
        return f"Splits({', '.join(parts)})"


def records_of(dataset: Dataset) -> SelectedRecords:
    """Return the selected records of a dataset, as other packages read them."""
    return dataset._records  # noqa: SLF001


def preview_schema(dataset: Dataset, record_count: int) -> tuple[Schema, bool]:
    """Return the known schema, or that of the first undamaged records; and if it covers all."""
    return dataset._preview_schema(record_count)  # noqa: SLF001


def known_schema(dataset: Dataset) -> Schema | None:
    """Return the schema of exactly these records, if it is known without reading."""
    return dataset._schema  # noqa: SLF001


def column_schema(dataset: Dataset) -> Schema | None:
    """Return the schema that columns are read with, if it is known without reading."""
    return dataset._outer_schema  # noqa: SLF001


def arrow_types_of(dataset: Dataset) -> Any:
    """Return the pyarrow.Schema of the table that was packed; None if the manifest has none."""
    return dataset._arrow_types()  # noqa: SLF001


def arrow_schema_of(dataset: Dataset) -> str | None:
    """Return that schema as in `Manifest`."""
    return dataset._arrow_schema  # noqa: SLF001


def without_arrow_types(dataset: Dataset) -> Dataset:
    """Return the same records, whose columns have the types of their features."""
    other = copy(dataset)
    other._arrow_schema = None  # noqa: SLF001 - of the same class
    return other


def with_schema(dataset: Dataset, schema: Schema) -> Dataset:
    """Return the same records with columns as in a schema, which is not checked."""
    other = copy(dataset)
    other._outer_schema = schema  # noqa: SLF001 - of the same class
    return other


def of_one_shard(dataset: Dataset, shard: Shard) -> Dataset:
    """Return all records of a shard of a dataset, as a Dataset with the columns of that dataset."""
    other = copy(dataset)
    other._records = joined_shards([shard])  # noqa: SLF001
    other._schema, other._outer_schema = None, dataset._known_schema  # noqa: SLF001
    other._split_schemas, other._source, other._tfds = {}, None, None  # noqa: SLF001
    other._chosen = ()  # noqa: SLF001
    return other


def tfds_of(dataset: Dataset) -> Mapping[str, Any] | None:
    """How TensorFlow Datasets describes the features, as in `Manifest`; None if unknown."""
    return dataset._tfds  # noqa: SLF001


def source_of(dataset: Dataset) -> DatasetSource:
    """Return the paths and splits that were opened, or all files of the dataset."""
    source = dataset._source  # noqa: SLF001
    return source or DatasetSource(tuple(shard.location for shard in dataset.shards))


def _matching(records: SelectedRecords, where: Where, *, must_find: bool) -> ChosenPositions:
    """Read all records in the order of the files; return the positions of those that match."""
    positions, order = records.positions, None
    if not positions.is_ascending:
        order = positions.all().argsort(kind="stable")
        records = records.select(PositionArray(positions.at(order)))
    found, start = [np.empty(0, np.int64)], 0
    for located in records.blocks():
        block = located.block
        with located.located():
            rows = np.flatnonzero(where.matches(replace(block, position=0)))
        found.append(rows + start)
        start += len(block)
    if must_find:
        where.check_features_found()
    places = np.concatenate(found)
    if order is not None:
        places = np.sort(order[places])
    return PositionArray(positions.at(places), where=str(where))


def _drawn(
    positions: ChosenPositions, shares: Mapping[str, float], seed: int, name: str
) -> ChosenPositions:
    count = len(positions)
    draw = draws_of_splits(count, share_counts(count, shares), seed)[name]
    return PositionArray(positions.at(np.flatnonzero(draw.keeps(0, count))))


def _of_split(records: SelectedRecords, split: str) -> ChosenPositions:
    """The positions of records in shards of one split."""
    return PositionArray(records.positions.all()[records.are_in_split(split)])


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


def _complete(
    key: str, spec: FeatureSpec, known: FeatureSchema, fills_missing: bool
) -> FeatureSpec:
    if spec.kind is None and known.kind in ("mixed", "none"):
        detail = "different kinds in different records" if known.kind == "mixed" else "no values"
        raise OptionError(
            f"feature {key!r} has {detail}",
            option="keys",
            value=key,
            remedy="Pass a FeatureSpec with a kind to read it.",
        )
    shape = spec.shape
    if shape is None:
        shape = known.shape_if_present if fills_missing else known.shape
        shape = "ragged" if shape is None else shape
    kind = spec.kind or known.kind
    return FeatureSpec(kind, shape, spec.default)  # type: ignore[arg-type]
