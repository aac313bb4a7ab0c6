"""Feature specs for `tf.io.parse_example`, from the schema of a dataset.

A feature that is missing in some records becomes an empty row, unless it has a default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from recordsmith.format.example import FeatureSchema, Schema
from recordsmith.support.errors import OptionError, option
from recordsmith.support.words import suggest_names

_DTYPES = {"bytes": tf.string, "float": tf.float32, "int64": tf.int64}


def feature_spec(
    schema: Schema,
    features: Iterable[str] | None = None,
    *,
    defaults: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the features argument for `tf.io.parse_example` and `parse_single_example`.

    A feature with the same number of values in every record becomes a `FixedLenFeature`; another
    one a `RaggedFeature` with int64 row splits, or with a default a `FixedLenFeature`.

    Args:
        schema: such as `dataset.schema`. A `TFRecordDataset` does not read layers: use it with the
            output of `recordsmith reshard`.
        features: keys to read; None for all that have a kind.
        defaults: by key, the value for records without the feature.

    Raises:
        OptionError: the records are not Examples; a key is missing or has several kinds; a default
            is not possible.

    Example:
        spec = recordsmith.tensorflow.feature_spec(dataset.schema, ["image/class/label"])
        for batch in tf.data.TFRecordDataset("out/train-00000-of-00002.tfrecord").batch(8):
            print(tf.io.parse_example(batch, spec)["image/class/label"])
    """
    is_sequence = schema.payload == "SequenceExample"
    _check_payload(schema, "Example", "Use sequence_feature_spec." if is_sequence else "")
    return _section(schema.features, features, defaults or {})


def sequence_feature_spec(
    schema: Schema,
    features: Iterable[str] | None = None,
    *,
    defaults: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the features arguments for `tf.io.parse_sequence_example`.

    The context is as in `feature_spec`. A feature list with the same number of values in every
    step becomes a `FixedLenSequenceFeature`, which pads a batch; another one a `RaggedFeature`.

    Args:
        schema, features, defaults: as in `feature_spec`; keys of context and feature lists.

    Raises:
        OptionError: as in `feature_spec`.

    Example:
        with rs.ShardWriter("steps.tfrecord") as writer:
            writer.write(rs.encode_sequence_example({"id": 1}, {"word": ["two", "words"]}))
        steps = rs.open("steps.tfrecord")
        spec = recordsmith.tensorflow.sequence_feature_spec(steps.schema)
        tf.io.parse_sequence_example(list(steps.records()), **spec)
    """
    _check_payload(schema, "SequenceExample")
    context = schema.sections.get("context", {})
    lists = schema.sections.get("feature_lists", {})
    chosen = [None, None] if features is None else _shared_out(list(features), context, lists)
    return {
        "context_features": _section(context, chosen[0], defaults or {}),
        "sequence_features": {
            key: _list_feature(key, lists[key], schema.record_count)
            for key in _chosen(lists, chosen[1])
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
            raise OptionError(
                f"{option('defaults')} has {key!r}, which is not among the features; "
                f"{suggest_names(key, chosen, 'there are none')}",
                option="defaults",
                value=key,
            )
    return {key: _feature(key, section[key], defaults.get(key)) for key in chosen}


def _chosen(section: Mapping[str, FeatureSchema], features: Iterable[str] | None) -> list[str]:
    if features is None:
        return [key for key, feature in section.items() if feature.kind != "none"]
    if isinstance(features, str):
        raise OptionError(option="features", value=features, expected="a list of keys")
    chosen = list(features)
    for key in chosen:
        if key not in section:
            raise OptionError(
                f"the schema has no feature {key!r}; {suggest_names(key, section, 'it is empty')}",
                option="features",
                value=key,
            )
    return chosen


def _feature(key: str, feature: FeatureSchema, default: Any) -> Any:
    dtype = _dtype(key, feature)
    if default is not None:
        if feature.min_length != feature.max_length:
            raise OptionError(
                f"{key!r} has {feature.min_length} to {feature.max_length} values, for which "
                "TensorFlow does not support a default",
                option="defaults",
                value=key,
                remedy="Leave the default out.",
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
    found = "has no values" if feature.kind == "none" else "has several kinds"
    raise OptionError(
        f"{key!r} {found} in these records",
        option="features",
        value=key,
        remedy=f"Name the features to read with {option('features')}.",
    )


def _check_payload(schema: Schema, payload: str, remedy: str = "") -> None:
    if schema.payload != payload:
        names = {"none": "missing", "mixed": "of several kinds"}
        raise OptionError(
            f"the records are {names.get(schema.payload, f'{schema.payload}s')}",
            option="schema",
            value=schema.payload,
            expected=f"{payload}s",
            remedy=remedy,
        )
    schema.check_complete("TensorFlow needs the names of all features to read")
