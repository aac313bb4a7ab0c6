"""How the tests of features make batches: of records in memory, without a loader."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recordsmith.format.example import SchemaSurvey, decode_columns, encode_columns
from recordsmith.loading import BatchRows, ColumnRequest, ValueFeature
from recordsmith.loading.features.feature import RandomNumbers
from recordsmith.loading.features.requests import resolve_requests
from recordsmith.loading.preview import Preview


def _read(feature: Any, columns: dict[str, Any]) -> dict[str, Any]:
    """The columns that a feature asks for, of records that have these."""
    data, offsets = encode_columns(columns)
    starts, lengths = offsets[:-1], np.diff(offsets)
    survey = SchemaSurvey()
    survey.update(data, starts, lengths)
    schema = survey.finish()
    preview = Preview(schema, is_complete=True, listed=schema.features)
    specs = resolve_requests({"x": feature}, preview, may_skip=False).specs
    return decode_columns(data, starts, lengths, specs)


def _batch(feature: ValueFeature, values: Any) -> dict[str, Any]:
    """What a feature called `x` makes of records that have `values` in the feature `k`."""
    return made(feature, _read(feature, {"k": values}), np.arange(len(values)))


def made(feature: ValueFeature, columns: dict[str, Any], positions: Any) -> dict[str, Any]:
    """What a feature called `x` makes of columns."""
    rows = BatchRows(positions, RandomNumbers(0, 0, positions), columns=columns)
    return dict(zip(feature.outputs("x"), feature.values(rows), strict=True))


@pytest.fixture(scope="session")
def read() -> Any:
    return _read


@pytest.fixture(scope="session")
def batch() -> Any:
    return _batch


@pytest.fixture(scope="session")
def no_rows() -> Any:
    """What a feature called `x` makes of no records."""

    def made_of_none(feature: ValueFeature, kind: Any) -> dict[str, Any]:
        from recordsmith.format.example import FeatureSpec

        def spec(request: ColumnRequest) -> FeatureSpec:
            return FeatureSpec(kind, request.shape, request.default)

        specs = {key: spec(request) for key, request in feature.requests().items()}
        nothing = np.zeros(0, np.int64)
        return made(feature, decode_columns(b"", nothing, nothing, specs), nothing)

    return made_of_none
