"""Checks once, before the first batch, that the records have the features of a loader.

Uses the schema where it is known, else the first records.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
from msgspec import structs

from recordsmith.dataset import PREVIEW_COUNT
from recordsmith.format.example import (
    ColumnDecoder,
    FeatureSchema,
    FeatureSpec,
    Kind,
    SchemaSurvey,
)
from recordsmith.format.example.keys import CLASS_TEXT, OBJECT_LABEL, is_class_key
from recordsmith.format.example.payload import classify, encode_key
from recordsmith.loading.features.feature import NUMBERS, ColumnRequest, Feature
from recordsmith.loading.preview import FindKey, Preview
from recordsmith.support.errors import DataError, NotAnExampleError, OptionError, option
from recordsmith.support.explaining import warn_user
from recordsmith.support.words import count as counted
from recordsmith.support.words import similar_key, suggest_names

_PIXEL_TYPES = {"int64": "uint8", "float": "float32"}
_SEARCHED = 100_000  # records, for one of each kind
_SEARCHED_BYTES = 16 << 20  # of records, for a key
_FOR_OTHERS = (
    f"Pass a {option('default')} for the others, or skip them with {option('skip_errors')}."
)


class ResolvedRequests(NamedTuple):
    """How to read the keys of features, and which keys no record is known to have."""

    specs: dict[str, FeatureSpec]
    absent: list[AbsentKey]


def resolve_requests(
    features: Mapping[str, Feature], preview: Preview, *, may_skip: bool, is_part: bool = False
) -> ResolvedRequests:
    """Return a FeatureSpec with its kind for each key that a feature reads.

    A schema without records accepts everything. `may_skip`: records without a feature; `is_part`:
    other parts of a mix may have optional keys.
    """
    schema, known_features = preview.schema, preview.features
    _check_payload(preview, may_skip=may_skip)
    requests: dict[str, tuple[str, ColumnRequest]] = {}
    for name, feature in features.items():
        for key, request in feature.requests().items():
            if key in preview.faults and not may_skip:
                raise preview.faults[key]
            if key in preview.ambiguous:
                raise OptionError(
                    f"feature {name!r}: both the context and the feature lists have {key!r}",
                    option="features",
                    value=key,
                    remedy="Leave it out, or write the records with different keys.",
                )
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
    for key, (name, _) in requests.items():
        try:
            encode_key(key)
        except OptionError as error:
            raise _with_prefix(error, f"feature {name!r}") from None
    absent, found = _absent_keys(features, preview, is_part=is_part)
    for one in absent:
        if one.action == "raise":
            raise one.error()
    specs = {}
    for key, (name, request) in requests.items():
        try:
            kind = _kind(key, request, known_features.get(key) or found.get(key), preview)
            default = request.default
            if isinstance(default, Mapping):
                default = default[kind]
            specs[key] = FeatureSpec(kind, request.shape, default, request.in_steps)
            ColumnDecoder({key: specs[key]})  # checks the default
        except OptionError as error:
            raise _with_prefix(error, f"feature {name!r}") from None
    for key, (name, request) in requests.items() if schema.record_count else ():
        _check(name, key, request, preview, may_skip=may_skip)
    return ResolvedRequests(specs, absent)


class AbsentKey(NamedTuple):
    """A key that a feature reads, and that the preview does not show.

    name, key: of the feature.
    action: what to do at once; with `watch`, nothing before an epoch in which no record has it.
    which: the records that do not have it.
    hint: a similar key, or those that there are.
    has_default: whether the feature has a default, so that a warning is enough.
    find_key: as in `Preview`.
    """

    name: str
    key: str
    action: Literal["raise", "warn", "watch"]
    which: str
    hint: str
    has_default: bool
    find_key: FindKey

    def error(self) -> OptionError:
        """Return the error, whose text is also that of a warning."""
        return OptionError(
            f"feature {self.name!r}: {self.which} has {self.key!r}; {self.hint}",
            option="features",
            value=self.key,
        )


def _absent_keys(
    features: Mapping[str, Feature], preview: Preview, *, is_part: bool
) -> tuple[list[AbsentKey], dict[str, FeatureSchema]]:
    """Return the keys that features read and that no record is known to have; and those found.

    One is an error if no record of the files has it, as far as a short search shows, or if the
    first records do not have it, but a similar one, or none of several keys of a feature. Of a
    part of a mix, an optional one without a similar key is only warned of: other parts may have it.
    """
    schema, names = preview.schema, preview.features
    with_default = {
        key
        for feature in features.values()
        for key, request in feature.requests().items()
        if request is not None and request.default is not None
    }
    readable = schema.columns.keys() | preview.faults.keys()  # some may be skipped
    absent: list[AbsentKey] = []
    found: dict[str, FeatureSchema] = {}
    for name, feature in features.items() if schema.record_count else ():
        requests = feature.requests()
        missing = [
            key
            for key, request in requests.items()
            if key not in names or (key not in readable and _is_required(request))
        ]
        for key in missing:
            has_default = key in with_default  # also next to `Present`, which shows where it is
            is_error = preview.listed is not None or _is_required(requests[key])
            known = None if is_error else preview.find_key(key, _SEARCHED_BYTES)
            if known:
                found[key] = known
                continue
            are_all = len(missing) == len(requests) > 1
            is_similar = similar_key(key, names) is not None
            is_error = is_error or are_all or is_similar
            may_lack = has_default or (
                is_part and not is_similar and not _is_required(requests[key])
            )
            action: Literal["raise", "warn", "watch"] = "watch"
            if known is False or (is_error and schema.is_complete):
                action = "warn" if may_lack else "raise"
            which = "no record" if known is False else _which(preview)
            hint = _hint(key, preview)
            absent.append(AbsentKey(name, key, action, which, hint, has_default, preview.find_key))
    return absent, found


def _hint(key: str, preview: Preview) -> str:
    """Return what is known of a key that the first records do not have, or its values."""
    if key in preview.schema.columns:
        return "it is there, but without values"
    if key in preview.features:
        return "other records of the dataset have it"
    if is_class_key(key) and OBJECT_LABEL in preview.features:
        return f"those of objects are in {OBJECT_LABEL!r}: Boxes() loads them with the boxes"
    return suggest_names(key, preview.features, "the records have no features")


def _is_required(request: ColumnRequest | None) -> bool:
    if request is None or request.in_steps:
        return False
    return (request.shape != "ragged" or request.needs_value) and request.default is None


def _which(preview: Preview) -> str:
    is_sure = preview.is_complete or preview.is_sure
    return "no record" if is_sure else f"none of the first {preview.schema.record_count} records"


def warn_of_absent(absent: Sequence[AbsentKey]) -> dict[str, AbsentKey]:
    """Warn once of each key that no record has; return those to watch while records are read."""
    keys = {one.key: one for one in absent}
    for one in keys.values():
        if one.action == "warn":
            warn_user(str(one.error()))
    return {key: one for key, one in keys.items() if one.action == "watch"}


def _with_prefix(error: OptionError, prefix: str) -> OptionError:
    prefixed = copy(error)
    if not error.problem and error.expected:  # the message is made of option and value
        prefixed.problem = str(error)
        prefixed.expected = ""
    prefixed.problem = f"{prefix}: {prefixed.problem}"
    return prefixed


def no_such_key(name: str, key: str, preview: Preview) -> OptionError:
    """Return the error for a feature whose key is in no record."""
    schema = preview.schema
    if not schema.is_complete:
        return OptionError(
            f"feature {name!r}: the schema does not list {key!r}: {schema.omission}",
            option="features",
            value=key,
            remedy=f"Declare its type, such as Scalar({key!r}).",
        )
    which, hint = _which(preview), _hint(key, preview)
    return AbsentKey(name, key, "raise", which, hint, False, preview.find_key).error()


def mixed_kinds(name: str, key: str, preview: Preview) -> OptionError:
    """Return the error for a feature of several kinds, with a record of each."""
    records: dict[str, int] = {}
    for position, kind in _kinds_in(key, preview, _SEARCHED):
        records.setdefault(kind, position)
        if len(records) == 2:
            break
    where = ", ".join(f"{kind} in record {position}" for kind, position in records.items())
    are_numbers = records.keys() == {"int64", "float"}
    how = f", such as with `recordsmith edit --cast {key}=float`" if are_numbers else ""
    return OptionError(
        f"feature {name!r}: {key!r} has different kinds in different records"
        + (f": {where}" if len(records) == 2 else ""),
        option="features",
        value=key,
        remedy=f"Give all records one kind{how}; or declare one, such as with rs.Scalar({key!r}), "
        f"and skip the others with {option('skip_errors')}.",
    )


def _kinds_in(key: str, preview: Preview, count: int) -> Iterator[tuple[int, str]]:
    """Yield position and kind of a feature of the first records that can be read."""
    with suppress(DataError):
        for position, payload in islice(preview.records(), count):
            survey = SchemaSurvey()
            with suppress(DataError):
                survey.update(payload, np.zeros(1, np.int64), np.array([len(payload)]))
            known = survey.finish().columns.get(key)
            if known is not None and known.kind != "none":
                yield position, known.kind


def _check_payload(preview: Preview, *, may_skip: bool) -> None:
    schema = preview.schema
    if schema.payload not in ("Example", "SequenceExample", "mixed", "none"):
        raise NotAnExampleError(schema.payload, "Examples or SequenceExamples")
    if schema.payload == "mixed" and not may_skip:
        problem = "some records are not Examples"
        with suppress(DataError):
            for number, record in islice(preview.records(), _SEARCHED):
                if (payload := classify(record)) not in ("Example", "SequenceExample"):
                    problem = f"record {number} is not an Example ({payload})"
                    break
        raise OptionError(
            problem,
            option="skip_errors",
            remedy=f"Skip those that are not with {option('skip_errors')}; `recordsmith verify "
            "--deep` shows whether they are damaged.",
        )


def resolve_for_all(
    features: Mapping[str, Feature], previews: Sequence[Preview], *, may_skip: bool
) -> ResolvedRequests:
    """Resolve the requests for several datasets, each of which must have the required features."""
    kinds: dict[str, tuple[int, Kind]] = {}
    lacking: list[AbsentKey] = []
    for number, preview in enumerate(previews if len(previews) > 1 else ()):
        schema = preview.schema
        try:
            specs, absent = resolve_requests(features, preview, may_skip=may_skip, is_part=True)
        except OptionError as error:
            raise _with_prefix(error, f"dataset {number} of the mix") from None
        which = f"no record of dataset {number} of the mix"
        of_features = {one.name: one._replace(which=which) for one in reversed(absent)}
        lacking += [
            one for one in of_features.values() if one.action == "warn" and not one.has_default
        ]
        for key in specs.keys() & schema.columns.keys():
            kind = schema.columns[key].kind
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
    specs, absent = resolve_requests(features, Preview.merged(previews), may_skip=may_skip)
    return ResolvedRequests(specs, [*lacking, *absent])


def _check(
    name: str, key: str, request: ColumnRequest, preview: Preview, *, may_skip: bool
) -> None:
    """Check that the records match a request, as far as they have the key."""
    schema, is_complete = preview.schema, preview.is_complete
    known = schema.columns.get(key)
    if known is None:
        return
    if known.kind == "none":
        # if it is optional, other records may have it
        if _is_required(request):
            raise no_such_key(name, key, preview)
        return
    _check_steps(name, key, request, known, may_skip=may_skip)
    if known.kind == "mixed":
        if not may_skip:
            raise mixed_kinds(name, key, preview)
        return
    if known.kind not in request.kinds:
        raise OptionError(
            f"feature {name!r}: {key!r} is {known.kind}",
            option="features",
            value=known.kind,
            expected=" or ".join(request.kinds),
            remedy=f"Read numbers with rs.Tensor({key!r}, shape) or rs.Ragged({key!r}), and pixels "
            f"with rs.Image({key!r}, raw_shape=..., raw_dtype={_PIXEL_TYPES[known.kind]!r})."
            if request.kinds == ("bytes",) and known.kind in ("int64", "float")
            else f"Read arrays stored as bytes with rs.Raw({key!r}, shape, dtype)."
            if request.kinds == NUMBERS and request.shape not in ((), "ragged")
            else "",
        )
    if request.shape == "ragged":
        lacks_some = known.present < schema.record_count or known.min_length == 0
        if request.needs_value and request.default is None and lacks_some and not may_skip:
            problem = f"feature {name!r}: some records have no value of {key!r}"
            raise OptionError(problem, option="default", remedy=_FOR_OTHERS)
        return
    length = math.prod(request.shape)
    # a feature without a kind counts as present without values; a default may replace it
    may_lack = request.default is not None and known.min_length == 0
    never_fits = not known.min_length <= length <= known.max_length
    fits = known.max_length == length and (may_lack or known.min_length == length)
    if never_fits or not (fits or may_skip):
        raise OptionError(
            f"feature {name!r}: {key!r} has {_range(known)}",
            option="shape",
            value=request.shape,
            expected=f"{counted(length, 'value')} for shape {request.shape}",
            remedy=f"Pass {option('count', 'ragged')} or {option('count', 'padded')} if it is an "
            "Image or a Mask."
            if known.content == "image"
            else f"Read several classes with rs.MultiHot({key!r}), or with rs.Label({key!r}, "
            f"{option('shape', 'ragged')})."
            if request.shape == () and (is_class_key(key) or key == CLASS_TEXT)
            else "",
        )
    has_fallback = request.default is not None or request.in_steps
    if known.present < schema.record_count and not has_fallback and not may_skip:
        which = "" if is_complete else "the first "
        raise OptionError(
            f"feature {name!r}: only {known.present} of {which}{schema.record_count} records have "
            f"{key!r}",
            option="default",
            remedy=_FOR_OTHERS,
        )


def _check_steps(
    name: str, key: str, request: ColumnRequest, known: FeatureSchema, *, may_skip: bool
) -> None:
    """Check that a feature list is read as one, and has as many steps as a request allows."""
    is_list = known.min_steps is not None
    if request.in_steps != is_list:
        of_step = "Bytes" if known.kind == "bytes" else "Ragged"
        raise OptionError(
            f"feature {name!r}: {key!r} is {'' if is_list else 'not '}a feature list",
            option="features",
            value=key,
            remedy=f"Read its steps, such as rs.Steps(rs.{of_step}({key!r}))."
            if is_list
            else "Declare it without rs.Steps.",
        )
    most, limit = known.max_steps or 0, request.max_steps
    if limit is not None and most > limit and not may_skip:
        raise OptionError(
            f"feature {name!r}: {key!r} has up to {counted(most, 'step')}",
            option="length",
            value=limit,
            expected=f"at most {limit}",
            remedy=f"Pass {option('length', most)}, or {option('too_long', 'cut')} to keep the "
            "first ones.",
        )


def _together(one: ColumnRequest, other: ColumnRequest) -> ColumnRequest | None:
    """Return a request that satisfies both; None if they conflict."""
    kinds = tuple(kind for kind in one.kinds if kind in other.kinds)
    is_alike = (one.shape, one.in_steps) == (other.shape, other.in_steps) and (
        one.default is other.default or np.array_equal(one.default, other.default)
    )
    if not (kinds and is_alike):
        return None
    limits = [limit for limit in (one.max_steps, other.max_steps) if limit is not None]
    needs_value = one.needs_value or other.needs_value
    return structs.replace(
        one, kinds=kinds, max_steps=min(limits, default=None), needs_value=needs_value
    )


def _kind(key: str, request: ColumnRequest, known: FeatureSchema | None, preview: Preview) -> Kind:
    """Return the kind to read: that of the records, or of most of the first if they differ."""
    if known is not None and known.kind in request.kinds:
        return known.kind
    if known is not None and known.kind == "mixed":
        often = Counter(kind for _, kind in _kinds_in(key, preview, PREVIEW_COUNT))
        for kind, _ in often.most_common():
            if kind in request.kinds:
                return kind
    if "float" in request.kinds and _is_float(request.default):
        return "float"
    return request.kinds[0]


def _is_float(default: Any) -> bool:
    if isinstance(default, Mapping):
        default = default["float"]
    return default is not None and np.asarray(default).dtype.kind == "f"


def _range(known: FeatureSchema) -> str:
    if known.min_length == known.max_length:
        return counted(known.max_length, "value")
    return f"{known.min_length} to {known.max_length} values"


def _described(request: ColumnRequest) -> str:
    default = "" if request.default is None else f" with the default {request.default!r:.30}"
    shape = "any number of values" if request.shape == "ragged" else f"shape {request.shape}"
    steps = " in steps" if request.in_steps else ""
    return f"{' or '.join(request.kinds)}, {shape}{default}{steps}"
