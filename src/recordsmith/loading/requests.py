"""What do the features of a loader read of the records, and do the records have it?

Asked once, before the first batch: from the schema where it is known, else from the first records.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from recordsmith.errors import OptionError
from recordsmith.example import FeatureSchema, FeatureSpec, Schema
from recordsmith.loading.features import Feature, Request


def resolve_requests(
    features: Mapping[str, Feature], schema: Schema, *, is_complete: bool, may_skip: bool
) -> dict[str, FeatureSpec]:
    """One FeatureSpec, with its kind, for each key that any of the features reads.

    Args:
        features: by the names of their entries in a batch.
        schema: of the records, or of the first of them.
        is_complete: whether it speaks of all records.
        may_skip: whether records that lack something may be skipped.

    Raises:
        OptionError: a key that no record has, or that is of another kind or shape than declared;
            two features that want different things of one key.
    """
    if schema.payload not in ("Example", "mixed", "none"):
        raise OptionError(
            f"the records are {schema.payload}, not Examples: features cannot be read from them"
        )
    requests: dict[str, tuple[str, Request]] = {}
    for name, feature in features.items():
        for key, request in feature.requests().items():
            other_name, other = requests.setdefault(key, (name, request))
            if other != request:
                raise OptionError(
                    f"features {other_name!r} and {name!r} both read {key!r}, but one expects "
                    f"{_words(other)} and the other {_words(request)}"
                )
    specs = {}
    for key, (name, request) in requests.items():
        known = schema.features.get(key)
        if schema.record_count:
            _check(name, key, request, known, schema, is_complete=is_complete, may_skip=may_skip)
        kind = request.kinds[0]
        if known is not None and known.kind in request.kinds:
            kind = known.kind
        specs[key] = FeatureSpec(kind, request.shape, request.default)
    return specs


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
    merged = Schema.merged([schema for schema, _ in glances]) if len(glances) > 1 else glances[0][0]
    is_complete = all(is_complete for _, is_complete in glances)
    return resolve_requests(features, merged, is_complete=is_complete, may_skip=may_skip)


def _check(
    name: str,
    key: str,
    request: Request,
    known: FeatureSchema | None,
    schema: Schema,
    *,
    is_complete: bool,
    may_skip: bool,
) -> None:
    """Whether the records can have what is expected of them."""
    where = "record" if is_complete else f"of the first {schema.record_count} records"
    if known is None or known.kind == "none":
        is_wanted = request.default is None and (request.shape != "ragged" or is_complete)
        if is_wanted:
            raise OptionError(f"feature {name!r}: no {where} has {key!r}; {_hint(key, schema)}")
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
    if request.shape == "ragged" or may_skip:
        return
    length = 1
    for side in request.shape:
        length *= side
    if not known.min_length <= length <= known.max_length or (
        is_complete and known.min_length != known.max_length
    ):
        raise OptionError(
            f"feature {name!r}: {key!r} has {_range(known)}, expected shape {request.shape}"
        )
    if is_complete and known.present < schema.record_count and request.default is None:
        raise OptionError(
            f"feature {name!r}: {known.present} of {schema.record_count} records have {key!r}; "
            "give a default for the others, or skip them with skip_errors"
        )


def _range(known: FeatureSchema) -> str:
    if known.min_length == known.max_length:
        return "1 value" if known.max_length == 1 else f"{known.max_length} values"
    return f"{known.min_length} to {known.max_length} values"


def _words(request: Request) -> str:
    default = "" if request.default is None else f" with the default {request.default!r:.30}"
    return f"{' or '.join(request.kinds)} of shape {request.shape}{default}"


def _hint(key: str, schema: Schema) -> str:
    close = difflib.get_close_matches(key, schema.features, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there are {', '.join(schema.features)}" if schema.features else "there are none at all"
