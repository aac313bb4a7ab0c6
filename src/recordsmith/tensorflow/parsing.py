"""What does TensorFlow have to be told to parse these records itself?

`tf.io.parse_example` wants to know kind and shape of each feature; the schema of a dataset knows
them. Nothing is made up: a feature that lacks values somewhere becomes a row without values, unless
a default is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from recordsmith.errors import OptionError, names_like
from recordsmith.example import FeatureSchema, Schema

_DTYPES = {"bytes": tf.string, "float": tf.float32, "int64": tf.int64}


def feature_spec(
    schema: Schema,
    features: Iterable[str] | None = None,
    *,
    defaults: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """How `tf.io.parse_example` and `parse_single_example` read the Examples of a dataset.

    As many values in every record: `FixedLenFeature` with the shape of the schema. Else a
    `RaggedFeature` with int64 row splits; or, with a default, a `FixedLenFeature` that has it.

    Args:
        schema: such as `dataset.schema`.
        features: keys of those that are wanted; None for all that have a kind.
        defaults: by key, what stands in where a record lacks the feature.

    Raises:
        OptionError: records are no Examples, or disagree on a feature's kind; a default cannot
            stand in; there is no such key.
    """
    if schema.payload != "Example":
        advice = ": see sequence_feature_spec" if schema.payload == "SequenceExample" else ""
        raise OptionError(f"the records are {_payload(schema)}; expected Examples{advice}")
    schema.check_complete("TensorFlow must be told all that it reads")
    return _section(schema.features, features, defaults or {})


def sequence_feature_spec(
    schema: Schema,
    features: Iterable[str] | None = None,
    *,
    defaults: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, Any]]:
    """How TensorFlow reads the SequenceExamples of a dataset.

        tf.io.parse_sequence_example(payloads, **sequence_feature_spec(dataset.schema))

    Of the context as `feature_spec`. Of the feature lists: as many values in every step,
    `FixedLenSequenceFeature`, which pads a batch; else a `RaggedFeature` of steps and values.

    Args:
        schema, features, defaults: as of `feature_spec`; a key may be of context and lists.

    Raises:
        OptionError: as of `feature_spec`.
    """
    if schema.payload != "SequenceExample":
        raise OptionError(f"the records are {_payload(schema)}; expected SequenceExamples")
    schema.check_complete("TensorFlow must be told all that it reads")
    context = schema.sections.get("context", {})
    lists = schema.sections.get("feature_lists", {})
    wanted = [None, None] if features is None else _shared_out(list(features), context, lists)
    return {
        "context_features": _section(context, wanted[0], defaults or {}),
        "sequence_features": {
            key: _list_feature(key, lists[key], schema.record_count)
            for key in _chosen(lists, wanted[1])
        },
    }


def _shared_out(keys: list[str], *sections: Mapping[str, FeatureSchema]) -> list[Any]:
    every = {key: feature for section in sections for key, feature in section.items()}
    _chosen(every, keys)
    return [[key for key in keys if key in section] for section in sections]


def _section(
    section: Mapping[str, FeatureSchema],
    features: Iterable[str] | None,
    defaults: Mapping[str, Any],
) -> dict[str, Any]:
    chosen = _chosen(section, features)
    for key in defaults:
        if key not in chosen:
            raise OptionError(f"there is a default for {key!r}; {names_like(key, chosen, 'none')}")
    return {key: _feature(key, section[key], defaults.get(key)) for key in chosen}


def _chosen(section: Mapping[str, FeatureSchema], features: Iterable[str] | None) -> list[str]:
    if features is None:
        return [key for key, feature in section.items() if feature.kind != "none"]
    if isinstance(features, str):
        raise OptionError(f"features is {features!r}; expected a list of keys")
    chosen = list(features)
    for key in chosen:
        if key not in section:
            raise OptionError(
                f"there is no feature {key!r}; {names_like(key, section, 'there are none')}"
            )
    return chosen


def _feature(key: str, feature: FeatureSchema, default: Any) -> Any:
    dtype = _dtype(key, feature)
    if default is not None:
        if feature.min_length != feature.max_length:
            raise OptionError(
                f"{key!r} has {feature.min_length} to {feature.max_length} values, so TensorFlow "
                "takes no default for it: leave the default out"
            )
        shape = () if feature.max_length == 1 else (feature.max_length,)
        return tf.io.FixedLenFeature(shape, dtype, default)
    if feature.shape is None or not feature.max_length:  # a shape is that of every record
        return tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64)
    return tf.io.FixedLenFeature(feature.shape, dtype)


def _list_feature(key: str, feature: FeatureSchema, record_count: int) -> Any:
    dtype = _dtype(key, feature)
    if feature.min_length != feature.max_length or not feature.max_length:
        return tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64)
    shape = () if feature.max_length == 1 else (feature.max_length,)
    may_lack = feature.present < record_count
    return tf.io.FixedLenSequenceFeature(shape, dtype, allow_missing=may_lack)


def _dtype(key: str, feature: FeatureSchema) -> Any:
    if feature.kind in _DTYPES:
        return _DTYPES[feature.kind]
    found = "has no values" if feature.kind == "none" else "is of several kinds"
    raise OptionError(f"{key!r} {found} in these records: name the features that you want")


def _payload(schema: Schema) -> str:
    if schema.payload == "none":
        return "none at all"
    return "of several kinds" if schema.payload == "mixed" else schema.payload
