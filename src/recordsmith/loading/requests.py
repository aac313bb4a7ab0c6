"""What do the features of a loader read of the records, and do the records have it?

Asked once, before the first batch: from the schema where it is known, else from the first records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recordsmith.errors import OptionError, names_like
from recordsmith.example import ColumnDecoder, FeatureSchema, FeatureSpec, Kind, Schema
from recordsmith.example.payload import encode_key
from recordsmith.loading.features import Boxes, Feature, Request


def resolve_requests(
    features: Mapping[str, Feature], schema: Schema, *, is_complete: bool, may_skip: bool
) -> dict[str, FeatureSpec]:
    """One FeatureSpec, with its kind, for each key that any of the features reads.

    Of a schema of no records nothing is asked: there is nothing to read.

    Args:
        features: by the names of their entries in a batch.
        schema: of the records, or of the first of them.
        is_complete: whether it speaks of all records.
        may_skip: whether records that lack something may be skipped.

    Raises:
        OptionError: a key that no record has, or that is of another kind or shape than declared,
            or that some records lack; two features that want different things of one key; a shape
            that is none, or a default that does not fit.
    """
    _check_payload(schema, may_skip=may_skip)
    requests: dict[str, tuple[str, Request]] = {}
    for name, feature in features.items():
        for key, request in feature.requests().items():
            if request.shape is None:
                raise OptionError(
                    f"feature {name!r}: shape is None; expected a tuple of lengths, such as "
                    "(), (13,) or (3, 4)"
                )
            other_name, other = requests.setdefault(key, (name, request))
            both = _together(other, request)
            if both is None:
                raise OptionError(
                    f"features {other_name!r} and {name!r} both read {key!r}, but one expects "
                    f"{_words(other)} and the other {_words(request)}; "
                    + _one_of_both({other_name: features[other_name], name: feature}, key)
                )
            requests[key] = other_name, both
    specs = {}
    for key, (name, request) in requests.items():
        known = schema.features.get(key)
        try:
            encode_key(key)
            specs[key] = FeatureSpec(_kind(request, known), request.shape, request.default)
        except OptionError as error:
            raise OptionError(f"feature {name!r}: {error}") from None
        if schema.record_count:
            _check(name, key, request, schema, is_complete=is_complete, may_skip=may_skip)
        try:
            ColumnDecoder({key: specs[key]})  # does the default fit?
        except OptionError as error:
            raise OptionError(f"feature {name!r}: {error}") from None
    return specs


def _one_of_both(both: Mapping[str, Feature], key: str) -> str:
    """What to do about two features that want a key in different ways."""
    for name, feature in both.items():
        if isinstance(feature, Boxes) and feature.labels == key:
            return (
                f"{name!r} makes {name + '_labels'!r} of it already: leave the other feature out, "
                "or say labels=None of the boxes"
            )
    return "a key is read in one way: declare it alike in both, or leave one of them out"


def no_such_key(name: str, key: str, schema: Schema, *, is_complete: bool) -> OptionError:
    """The error for a feature that reads a key which no record has."""
    if not schema.is_complete:
        return OptionError(
            f"feature {name!r}: say what {key!r} is, such as Scalar({key!r}), as it is not listed: "
            f"{schema.remark}"
        )
    hint = names_like(key, schema.features, "they have none at all")
    if key in schema.features:
        hint = "where it stands, it has no values"
    nowhere = "no record" if is_complete else f"none of the first {schema.record_count} records"
    return OptionError(f"feature {name!r}: {nowhere} has {key!r}; {hint}")


def _check_payload(schema: Schema, *, may_skip: bool) -> None:
    """Whether the records are Examples."""
    if schema.payload not in ("Example", "mixed", "none"):
        found = "other data" if schema.payload == "other" else f"{schema.payload}s"
        raise OptionError(
            f"the records are {found}, not Examples: features cannot be read from them; iterate "
            "over the dataset, or take its payloads with records()"
        )
    if schema.payload == "mixed" and not may_skip:
        raise OptionError(
            "some records are no Examples, so not all of them can be read; skip_errors skips them"
        )


def resolve_for_all(
    features: Mapping[str, Feature], glances: Sequence[tuple[Schema, bool]], *, may_skip: bool
) -> dict[str, FeatureSpec]:
    """As `resolve_requests`, for the records of several datasets, each of which must do.

    Args:
        glances: (schema, is_complete) of each dataset.
    """
    if len(glances) > 1:
        for number, (schema, is_complete) in enumerate(glances):
            try:
                resolve_requests(features, schema, is_complete=is_complete, may_skip=may_skip)
            except OptionError as error:
                raise OptionError(f"dataset {number} of the mix: {error}") from None
    schema, is_complete = merged_glance(glances)
    return resolve_requests(features, schema, is_complete=is_complete, may_skip=may_skip)


def merged_glance(glances: Sequence[tuple[Schema, bool]]) -> tuple[Schema, bool]:
    """(schema, is_complete) of several datasets together."""
    if len(glances) == 1:
        return glances[0]
    return Schema.merged([schema for schema, _ in glances]), all(known for _, known in glances)


def _check(
    name: str, key: str, request: Request, schema: Schema, *, is_complete: bool, may_skip: bool
) -> None:
    """Whether the records can have what is expected of them."""
    known = schema.features.get(key)
    if known is None and not schema.is_complete:
        return
    if known is None or known.kind == "none":
        # one of the other records may have it, if none must; where it stands, it has no values
        is_nowhere = is_complete and known is None
        if request.default is None and (request.shape != "ragged" or is_nowhere):
            raise no_such_key(name, key, schema, is_complete=is_complete)
        return
    if known.kind == "mixed":
        if not may_skip:
            raise OptionError(
                f"feature {name!r}: records disagree on the kind of {key!r}, so not all of them "
                "can be read; skip_errors skips those that do not fit"
            )
        return
    if known.kind not in request.kinds:
        raise OptionError(
            f"feature {name!r}: {key!r} is {known.kind}, expected {' or '.join(request.kinds)}"
        )
    if request.shape == "ragged":
        return
    length = math.prod(request.shape)
    # where it has no kind it counts as present with no values, and a default may stand in
    may_lack = request.default is not None and known.min_length == 0
    never_fits = not known.min_length <= length <= known.max_length
    fits = not never_fits and (may_lack or known.min_length == known.max_length)
    if never_fits or not (fits or may_skip):
        raise OptionError(
            f"feature {name!r}: {key!r} has {_range(known)}, expected {_count(length)}: shape "
            f"{request.shape}"
        )
    if known.present < schema.record_count and request.default is None and not may_skip:
        which = "" if is_complete else "the first "
        raise OptionError(
            f"feature {name!r}: {known.present} of {which}{schema.record_count} records have "
            f"{key!r}; give a default for the others, or skip them with skip_errors"
        )


def _together(one: Request, other: Request) -> Request | None:
    """What both ask for, if records can have it."""
    kinds = tuple(kind for kind in one.kinds if kind in other.kinds)
    is_alike = one.shape == other.shape and (
        one.default is other.default or np.array_equal(one.default, other.default)
    )
    return Request(kinds, one.shape, one.default) if kinds and is_alike else None


def _kind(request: Request, known: FeatureSchema | None) -> Kind:
    """Which kind is read: that of the records, if they have one."""
    if known is not None and known.kind in request.kinds:
        return known.kind
    if "float" in request.kinds and _is_float(request.default):
        return "float"
    return request.kinds[0]


def _is_float(default: Any) -> bool:
    return default is not None and np.asarray(default).dtype.kind == "f"


def _range(known: FeatureSchema) -> str:
    if known.min_length == known.max_length:
        return _count(known.max_length)
    return f"{known.min_length} to {known.max_length} values"


def _count(values: int) -> str:
    return "1 value" if values == 1 else f"{values} values"


def _words(request: Request) -> str:
    default = "" if request.default is None else f" with the default {request.default!r:.30}"
    shape = "any number of values" if request.shape == "ragged" else f"shape {request.shape}"
    return f"{' or '.join(request.kinds)}, {shape}{default}"
