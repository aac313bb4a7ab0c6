"""`View`: what a dataset reads: its records, their columns, and what is known of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from recordsmith.dataset.keypoint_classes import KeypointClasses
from recordsmith.dataset.labels import ClassNames
from recordsmith.dataset.selected_records import SelectedRecords, joined_shards
from recordsmith.dataset.selection import Selection, draws_of_splits, share_counts
from recordsmith.format.example import (
    ColumnDecoder,
    FeatureRequest,
    FeatureSchema,
    FeatureSpec,
    Schema,
    SchemaSurvey,
    valid_rows,
)
from recordsmith.stores import Location
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    NotAnExampleError,
    OptionError,
    option,
)
from recordsmith.support.words import first_of, suggest_names

if TYPE_CHECKING:
    from recordsmith.dataset.where.expression import Where

_NAMED_PATHS = 3

PREVIEW_COUNT = 64
"""Records that are read to infer an unknown schema."""


class DatasetSource(NamedTuple):
    """What was opened: places, and splits; None for all."""

    places: tuple[Location, ...]
    splits: tuple[str, ...] | None = None

    def __str__(self) -> str:
        split = "" if self.splits is None else f", split {'+'.join(self.splits)}"
        return first_of([str(place) for place in self.places], _NAMED_PATHS) + split


class View(msgspec.Struct):
    """What a dataset reads. Other packages use it; a Dataset documents it for users.

    schema: of exactly these records, if it is known.
    outer_schema: the schema that columns are read with, if it is known: of these records, or of
        those that they were selected from.
    split_schemas: the splits of the manifest, with their schemas if they are known.
    source: what was opened; None for all files of the dataset.
    arrow_schema: as in `Manifest`.
    columns: the selected features; None for all.
    chosen: how the records were chosen, for `repr`.
    """

    records: SelectedRecords
    schema: Schema | None = None
    outer_schema: Schema | None = None
    class_names: ClassNames | None = None
    keypoint_classes: KeypointClasses = msgspec.field(default_factory=dict)
    split_schemas: Mapping[str, Schema | None] = msgspec.field(default_factory=dict)
    source: DatasetSource | None = None
    arrow_schema: str | None = None
    columns: tuple[str, ...] | None = None
    chosen: tuple[str, ...] = ()

    @property
    def origin(self) -> DatasetSource:
        """The paths and splits that were opened, or all files of the dataset."""
        files = tuple(shard.location for shard in self.records.all_shards)
        return self.source or DatasetSource(files)

    # -- selection -----------------------------------------------------------------------------

    def of(self, records: SelectedRecords, how: str | None = None) -> View:
        """Return a view of other records of the same shards; `how` they were chosen."""
        chosen = self.chosen if how is None else (*self.chosen, how)
        schema = self.schema if records is self.records else None
        return replace(self, records=records, schema=schema, chosen=chosen)

    def matching(self, where: Where) -> View:
        """Return a view of the records that match; reads all records in the order of the files."""
        known, records = self.outer_schema, self.records
        if known is not None:
            where.check(known)
        order = None if records.is_in_file_order else records.selection.all().argsort(kind="stable")
        in_order = records if order is None else records.pick(order)
        pieces, start = [np.empty(0, np.int64)], 0
        for located in in_order.reading(where.keys).blocks():
            pieces.append(located.matching(where) + start)
            start += len(located.block)
        if known is None and records.has_all:  # others may have features that these lack
            where.check_features_found()
        places = np.concatenate(pieces)
        if order is not None:
            places = np.sort(order[places])
        positions = places if records.has_all else records.selection.at(places)
        selection = Selection(positions, where=str(where))
        return self.of(records.select(selection), f"filter: {where}")

    def drawn(self, shares: Mapping[str, float], seed: int) -> dict[str, View]:
        """Return views of random parts with these shares."""
        count = len(self.records)
        draws = draws_of_splits(count, share_counts(count, shares), seed)
        return {
            name: self.of(self.records.pick(np.flatnonzero(draw.keeps(0, count))))
            for name, draw in draws.items()
        }

    @property
    def split_names(self) -> tuple[str, ...]:
        shards = self.records.all_shards
        return tuple(dict.fromkeys(shard.split for shard in shards) | dict(self.split_schemas))

    def of_split(self, name: str) -> View:
        """Return a view of one split."""
        shards = self.records.all_shards
        if {shard.split for shard in shards} <= {name}:
            return self
        if not self.records.has_all:
            return self.of(self.records.pick(self.records.are_in_split(name)))
        schema = self.split_schemas.get(name)
        return replace(
            self,
            records=joined_shards([shard for shard in shards if shard.split == name]),
            schema=schema,
            outer_schema=schema,
            split_schemas={name: schema},
            source=None if self.source is None else self.source._replace(splits=(name,)),
            columns=None,
            chosen=(),
        )

    # -- schema --------------------------------------------------------------------------------

    def read_schema(self) -> Schema:
        """Return the schema of these records, from the manifest or from one pass over them."""
        if self.schema is None:
            survey = SchemaSurvey()
            for located in self.records.blocks():
                block = located.block
                with located.located():
                    survey.update(block.buffer, block.starts, block.lengths)
            self.schema = survey.finish()
            self.outer_schema = self.outer_schema or self.schema
        return self.schema

    @property
    def column_schema(self) -> Schema:
        return self.outer_schema or self.read_schema()

    def preview_schema(self, record_count: int = PREVIEW_COUNT) -> tuple[Schema, bool]:
        """Return the known schema, or that of the first undamaged records; and if it covers all."""
        if self.schema is not None and self.schema.is_complete:
            return self.schema, True
        survey = SchemaSurvey()
        for record in self._readable(record_count):
            with suppress(DataError):
                start, length = np.zeros(1, np.int64), np.array([len(record)])
                SchemaSurvey().update(record, start, length)  # raises before damage is counted
                survey.update(record, start, length)
        schema = survey.finish()
        return schema, schema.is_complete and schema.record_count == len(self.records)

    def begins_with_lists(self) -> bool:
        """Whether the first record has feature lists, which only the schema tells from others."""
        return "feature_lists" in self.preview_schema(1)[0].sections

    def find_key(self, key: str, max_bytes: int) -> FeatureSchema | Literal[False] | None:
        """Return the schema of a feature in the first record of the files that has it.

        Also in one that is not selected. False if no record has it; None if about the first
        `max_bytes` do not have it and there are more, or one is damaged.
        """
        decoder = ColumnDecoder({}, presence_of=[key])
        read = 0
        with suppress(DataError):
            for located in joined_shards(self.records.all_shards).blocks():
                if read > max_bytes:
                    return None
                block = located.block
                decoder.append(block.buffer, block.starts, block.lengths)
                _, validity = decoder.finish_with_validity()
                rows = np.flatnonzero(valid_rows(validity, key, len(block)))[:1]
                if len(rows):
                    survey = SchemaSurvey()
                    survey.update(block.buffer, block.starts[rows], block.lengths[rows])
                    return survey.finish().columns[key]
                read += int(block.lengths.sum())
            return False
        return None

    def _readable(self, record_count: int) -> Iterator[bytes]:
        position = 0
        with suppress(DataError):
            for located in self.records.cut(slice(record_count)).blocks():
                for record in located.block.records():
                    yield record
                    position += 1
        for after in range(position, min(record_count, len(self.records))):
            with suppress(DataError, OptionError):  # compressed shards have no random access
                yield self.records.read_record(after)

    def arrow_types(self, restore_types: bool | None = None) -> Any:
        """Return the pyarrow.Schema of the types to restore; None to restore none."""
        if restore_types is False or (restore_types is None and self.arrow_schema is None):
            return None
        if self.arrow_schema is None:
            raise OptionError(
                "the manifest has no Arrow types: the dataset was not packed from an Arrow "
                "table, or was edited since",
                option="restore_types",
                value=True,
            )
        from recordsmith.dataset.arrow.restoring import schema_from_text

        try:
            return schema_from_text(self.arrow_schema)
        except ValueError as error:
            raise CorruptDataError(
                Defect.BROKEN_MANIFEST,
                str(error),
                remedy=f"Read it with {option('restore_types', False)}.",
            ) from None

    # -- features ------------------------------------------------------------------------------

    def specs(
        self, keys: FeatureRequest | None, *, fills_missing: bool = False
    ) -> dict[str, FeatureSpec]:
        """Complete the FeatureSpecs of features with kinds and shapes from the schema.

        With `fills_missing`, a feature that some records lack can have a fixed shape.
        """
        given: Mapping[str, FeatureSpec | None]
        if isinstance(keys, Mapping):
            given = keys
        elif isinstance(keys, str):
            raise OptionError(option="keys", value=keys, expected="a list of names")
        elif keys is None:
            schema = self.column_schema
            if schema.payload not in _WITH_COLUMNS:
                raise NotAnExampleError(self.read_schema().payload, _EXPECTED)
            schema.check_complete("select the features that you need")
            features = schema.columns.items()
            given = dict.fromkeys(key for key, feature in features if feature.kind != "none")
        else:
            given = dict.fromkeys(keys)
        return {
            key: self._spec(key, spec or FeatureSpec(), fills_missing)
            for key, spec in given.items()
        }

    def _spec(self, key: str, spec: FeatureSpec, fills_missing: bool) -> FeatureSpec:
        if spec.shape is not None and spec.kind is not None:
            return spec
        schema = self.column_schema
        lists = schema.sections.get("feature_lists", {})
        known = (lists if spec.in_steps else schema.columns).get(key)
        if known is not None:
            return _complete(key, spec, known, fills_missing)
        schema.check_complete(
            f"{key!r} is not listed in the schema, so pass a FeatureSpec with kind and shape"
        )
        if spec.default is None:
            self.check_keys([key])
        return spec

    def check_keys(self, keys: Iterable[str]) -> None:
        """Raise an OptionError for a feature that no record has."""
        schema = self.column_schema
        if schema.payload not in _WITH_COLUMNS or (not schema.sections and len(self.records)):
            raise NotAnExampleError(self.read_schema().payload, _EXPECTED)
        for key in keys:
            if key not in schema.columns and schema.is_complete:
                none = "records have no features" if len(self.records) else "the dataset is empty"
                hint = suggest_names(key, schema.columns, none)
                raise OptionError(
                    f"no record has a feature {key!r}; {hint}", option="keys", value=key
                )


_WITH_COLUMNS = ("Example", "SequenceExample", "mixed", "none")
_EXPECTED = "Examples or SequenceExamples"


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
    shape, in_steps = spec.shape, known.min_steps is not None
    if shape is None:
        known_shape = known.shape_if_present if fills_missing or in_steps else known.shape
        shape = "ragged" if known_shape is None else known_shape
    kind = spec.kind or known.kind
    return FeatureSpec(kind, shape, spec.default, in_steps)  # type: ignore[arg-type]
