"""Which features did a user mean? Those that are declared, by keys alone, or all of them.

A key alone means what the schema says of it. Whether the features go together is told here, when a
loader is made; whether the records have them, in `requests`.
"""

from __future__ import annotations

from collections.abc import Mapping

from recordsmith.errors import OptionError
from recordsmith.example import FeatureSchema, Schema
from recordsmith.loading.features import Bytes, Feature, Ragged, Scalar, Tensor
from recordsmith.loading.requests import no_such_key


def declare_features(
    features: Mapping[str, Feature | str] | None, schema: Schema, *, is_complete: bool
) -> dict[str, Feature]:
    """A Feature for each name.

    Args:
        features: by name; a key means a Scalar or a Tensor where all records have as many
            numbers, else Ragged; of bytes it means Bytes. None for all features of the schema that
            have a kind, by their keys.
        schema, is_complete: as of `resolve_requests`.

    Raises:
        OptionError: something that is no feature; a key that no record has, or that is not of one
            kind; features that do not go together, or make entries of the same name.
    """
    if features is None:
        schema.check_complete("name the features that you want")
        features = {key: key for key, known in schema.features.items() if known.kind != "none"}
    elif not isinstance(features, Mapping):
        raise OptionError(
            f"features is {features!r:.60}; expected a dict of features by name, or None for all"
        )
    elif not features:
        raise OptionError("features is empty; name what a batch shall hold, or say None for all")
    declared = {
        name: _declared(name, feature, schema, is_complete=is_complete)
        for name, feature in features.items()
    }
    made_by: dict[str, str] = {}
    for name, feature in declared.items():
        feature.check(name, declared)
        for entry in feature.outputs(name):
            if entry in made_by:
                raise OptionError(
                    f"features {made_by[entry]!r} and {name!r} would both be {entry!r} in a batch; "
                    "give one of them another name"
                )
            made_by[entry] = name
    return declared


def _declared(name: object, feature: object, schema: Schema, *, is_complete: bool) -> Feature:
    if not isinstance(name, str):
        raise OptionError(f"a feature is called {name!r:.60}; expected a str")
    if isinstance(feature, Feature):
        key = getattr(feature, "key", "")
        if not isinstance(key, str):
            raise OptionError(f"feature {name!r} is of the key {key!r:.60}; expected a str")
        return feature
    if not isinstance(feature, str):
        raise OptionError(
            f"feature {name!r} is {feature!r:.60}; expected one such as Scalar(key), or a key"
        )
    known = schema.features.get(feature)
    if known is not None and known.kind != "none":
        return _of_schema(name, feature, known)
    if schema.record_count == 0 or schema.payload not in ("Example", "mixed"):
        return Ragged(feature)  # there is nothing to read, or `resolve_requests` says why not
    raise no_such_key(name, feature, schema, is_complete=is_complete)


def _of_schema(name: str, key: str, known: FeatureSchema) -> Feature:
    if known.kind == "mixed":
        raise OptionError(
            f"feature {name!r}: records disagree on the kind of {key!r}; declare a feature, such "
            "as Scalar or Bytes, and skip those that do not fit with skip_errors, or leave it out"
        )
    if known.kind == "bytes":
        return Bytes(key, "ragged" if known.shape is None else known.shape)
    if known.shape is None:
        return Ragged(key)
    return Tensor(key, known.shape) if known.shape else Scalar(key)
