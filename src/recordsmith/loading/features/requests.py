"""Checks once, before the first batch, that the records have the features of a loader.

Uses the schema where it is known, else the first records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from recordsmith.errors import NotAnExampleError, OptionError, option, suggest_names
from recordsmith.example import ColumnDecoder, FeatureSchema, FeatureSpec, Kind, Schema
from recordsmith.example.payload import encode_key
from recordsmith.loading.features import ColumnRequest, Feature
from recordsmith.words import count as counted


def resolve_requests(
    features: Mapping[str, Feature], schema: Schema, *, is_complete: bool, may_skip: bool
) -> dict[str, FeatureSpec]:
    """Return a FeatureSpec with its kind for each key that a feature reads.

    A schema without records accepts everything.

    Args:
        features: by the names of their entries in a batch.
        schema: of all records, or of the first ones.
        is_complete: whether the schema covers all records.
        may_skip: whether records without a feature may be skipped.
    """
    _check_payload(schema, may_skip=may_skip)
    requests: dict[str, tuple[str, ColumnRequest]] = {}
    for name, feature in features.items():
        for key, request in feature.requests().items():
            if request is None:
                continue
            if request.shape is None:
                raise OptionError(
                    f"feature {name!r}: {option('shape')} is None",
                    option="shape",
                    value=None,
                    expected="a tuple of lengths, such as (), (13,) or (3, 4)",
                )
            other_name, other = requests.setdefault(key, (name, request))
            both = _together(other, request)
            if both is None:
                raise OptionError(
                    f"features {other_name!r} and {name!r} both read {key!r}, but one expects "
                    f"{_described(other)} and the other {_described(request)}",
                    option="features",
                    remedy="Declare the key the same way in both, leave one of them out, or pass "
                    "labels=None to Boxes.",
                )
            requests[key] = other_name, both
    specs = {}
    for key, (name, request) in requests.items():
        known = schema.features.get(key)
        try:
            encode_key(key)
            specs[key] = FeatureSpec(_kind(request, known), request.shape, request.default)
            ColumnDecoder({key: specs[key]})  # checks the default
        except OptionError as error:
            raise _with_prefix(error, f"feature {name!r}") from None
        if schema.record_count:
            _check(name, key, request, schema, is_complete=is_complete, may_skip=may_skip)
    for name, feature in features.items():
        for key in feature.requests().keys() - specs.keys():
            encode_key(key)
            is_unknown = is_complete and schema.is_complete and key not in schema.features
            if is_unknown and schema.record_count:
                raise no_such_key(name, key, schema, is_complete=is_complete)
    return specs


def _with_prefix(error: OptionError, prefix: str) -> OptionError:
    """Return a copy of an error whose problem says where it is."""
    prefixed = copy(error)
    if not error.problem and error.expected:  # the message is made of option and value
        prefixed.problem = str(error)
        prefixed.expected = ""
    prefixed.problem = f"{prefix}: {prefixed.problem}"
    return prefixed


def no_such_key(name: str, key: str, schema: Schema, *, is_complete: bool) -> OptionError:
    """Return the error for a feature whose key is in no record."""
    if not schema.is_complete:
        return OptionError(
            f"feature {name!r}: the schema does not list {key!r}: {schema.omission}",
            option="features",
            value=key,
            remedy=f"Declare its type, such as Scalar({key!r}).",
        )
    hint = suggest_names(key, schema.features, "the records have no features")
    if key in schema.features:
        hint = "it is there, but without values"
    which = "no record" if is_complete else f"none of the first {schema.record_count} records"
    return OptionError(
        f"feature {name!r}: {which} has {key!r}; {hint}", option="features", value=key
    )


def _check_payload(schema: Schema, *, may_skip: bool) -> None:
    """Check that the records are Examples."""
    if schema.payload not in ("Example", "mixed", "none"):
        raise NotAnExampleError(schema.payload, "Examples")
    if schema.payload == "mixed" and not may_skip:
        raise OptionError(
            "some records are not Examples",
            option="skip_errors",
            remedy=f"Skip them with {option('skip_errors')}.",
        )


def resolve_for_all(
    features: Mapping[str, Feature], schemas: Sequence[tuple[Schema, bool]], *, may_skip: bool
) -> dict[str, FeatureSpec]:
    """Resolve the requests for several datasets, each of which must have the features.

    Args:
        schemas: (schema, is_complete) of each dataset.
    """
    kinds: dict[str, tuple[int, Kind]] = {}
    for number, (schema, is_complete) in enumerate(schemas if len(schemas) > 1 else ()):
        try:
            specs = resolve_requests(features, schema, is_complete=is_complete, may_skip=may_skip)
        except OptionError as error:
            raise _with_prefix(error, f"dataset {number} of the mix") from None
        for key in specs.keys() & schema.features.keys():
            kind = schema.features[key].kind
            if kind in ("mixed", "none"):
                continue
            first, first_kind = kinds.setdefault(key, (number, kind))  # type: ignore[arg-type]
            if kind != first_kind and not may_skip:
                raise OptionError(
                    f"{key!r} is {first_kind} in dataset {first} of the mix, but {kind} in dataset "
                    f"{number}",
                    option="features",
                    value=key,
                    expected="one kind in all datasets",
                )
    schema, is_complete = merged_schema(schemas)
    return resolve_requests(features, schema, is_complete=is_complete, may_skip=may_skip)


def merged_schema(schemas: Sequence[tuple[Schema, bool]]) -> tuple[Schema, bool]:
    """Return (schema, is_complete) of several datasets together."""
    if len(schemas) == 1:
        return schemas[0]
    return Schema.merged([schema for schema, _ in schemas]), all(known for _, known in schemas)


def _check(
    name: str,
    key: str,
    request: ColumnRequest,
    schema: Schema,
    *,
    is_complete: bool,
    may_skip: bool,
) -> None:
    """Check that the records match a request."""
    known = schema.features.get(key)
    if known is None and not schema.is_complete:
        return
    if known is None or known.kind == "none":
        # if it is optional, records beyond the schema may have it
        is_nowhere = is_complete and known is None
        if request.default is None and (request.shape != "ragged" or is_nowhere):
            raise no_such_key(name, key, schema, is_complete=is_complete)
        return
    if known.kind == "mixed":
        if not may_skip:
            raise OptionError(
                f"feature {name!r}: {key!r} has different kinds in different records",
                option="features",
                remedy=f"Skip the records that do not match with {option('skip_errors')}.",
            )
        return
    if known.kind not in request.kinds:
        raise OptionError(
            f"feature {name!r}: {key!r} is {known.kind}",
            option="features",
            value=known.kind,
            expected=" or ".join(request.kinds),
            remedy=f"Read numbers with rs.Tensor({key!r}, shape) or rs.Ragged({key!r})."
            if request.kinds == ("bytes",) and known.kind in ("int64", "float")
            else "",
        )
    if request.shape == "ragged":
        return
    length = math.prod(request.shape)
    # a feature without a kind counts as present without values; a default may replace it
    may_lack = request.default is not None and known.min_length == 0
    never_fits = not known.min_length <= length <= known.max_length
    fits = not never_fits and (may_lack or known.min_length == known.max_length)
    if never_fits or not (fits or may_skip):
        raise OptionError(
            f"feature {name!r}: {key!r} has {_range(known)}",
            option="shape",
            value=request.shape,
            expected=f"{counted(length, 'value')} for shape {request.shape}",
        )
    if known.present < schema.record_count and request.default is None and not may_skip:
        which = "" if is_complete else "the first "
        raise OptionError(
            f"feature {name!r}: only {known.present} of {which}{schema.record_count} records have "
            f"{key!r}",
            option="default",
            remedy=f"Pass a {option('default')} for the others, or skip them with "
            f"{option('skip_errors')}.",
        )


def _together(one: ColumnRequest, other: ColumnRequest) -> ColumnRequest | None:
    """Return a request that satisfies both; None if they conflict."""
    kinds = tuple(kind for kind in one.kinds if kind in other.kinds)
    is_alike = one.shape == other.shape and (
        one.default is other.default or np.array_equal(one.default, other.default)
    )
    return ColumnRequest(kinds, one.shape, one.default) if kinds and is_alike else None


def _kind(request: ColumnRequest, known: FeatureSchema | None) -> Kind:
    """Return the kind to read: that of the records, if they have one."""
    if known is not None and known.kind in request.kinds:
        return known.kind
    if "float" in request.kinds and _is_float(request.default):
        return "float"
    return request.kinds[0]


def _is_float(default: Any) -> bool:
    return default is not None and np.asarray(default).dtype.kind == "f"


def _range(known: FeatureSchema) -> str:
    if known.min_length == known.max_length:
        return counted(known.max_length, "value")
    return f"{known.min_length} to {known.max_length} values"


def _described(request: ColumnRequest) -> str:
    default = "" if request.default is None else f" with the default {request.default!r:.30}"
    shape = "any number of values" if request.shape == "ragged" else f"shape {request.shape}"
    return f"{' or '.join(request.kinds)}, {shape}{default}"
