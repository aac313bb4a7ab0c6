"""Turns the `features` argument into Feature objects and checks that they go together.

A key alone takes its type from the schema. `requests` checks that the records have the features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from recordsmith.format.example import FeatureSchema
from recordsmith.format.example.keys import OBJECT_MASK, is_mask_key
from recordsmith.loading.features.bytes import Bytes
from recordsmith.loading.features.feature import Feature, ImageFeature, RowFeature, images_in
from recordsmith.loading.features.numbers import Ragged, Scalar, Tensor
from recordsmith.loading.features.requests import mixed_kinds, no_such_key
from recordsmith.loading.features.serialized import Serialized, may_be_serialized
from recordsmith.loading.features.steps import Steps
from recordsmith.loading.preview import Preview
from recordsmith.support.errors import OptionError, option

Features: TypeAlias = Sequence[str] | Mapping[str, Feature | str]
"""Keys, or features and keys by name."""


def declare_features(features: Features | None, preview: Preview) -> dict[str, Feature]:
    schema, known_features = preview.schema, preview.features
    decodes_images = features is not None
    if features is None:
        schema.check_complete("name the features that you want")
        features = {key: key for key, known in schema.columns.items() if known.kind != "none"}
        features |= {key: key for key in preview.faults}  # `resolve_requests` raises them
    elif isinstance(features, (list, tuple)):
        features = _by_key(features)
    elif not isinstance(features, Mapping):
        raise OptionError(
            option="features",
            value=features,
            expected="a list of keys, a dict of features by name, or None for all",
        )
    if not features and decodes_images:
        raise OptionError(
            f"{option('features')} is empty",
            option="features",
            value=features,
            remedy="Name at least one feature, or pass None for all.",
        )
    declared = {
        name: _declared(name, feature, preview, known_features)
        for name, feature in features.items()
    }
    has_image = bool(images_in(declared))
    for name, feature in declared.items():
        key = features[name]
        if isinstance(key, str) and isinstance(feature, Steps):
            if feature.is_image and not decodes_images:
                declared[name] = Steps(Bytes(key))
        elif isinstance(key, str) and isinstance(feature, RowFeature):  # an Image or a Mask
            is_usable = decodes_images and (has_image or isinstance(feature, ImageFeature))
            declared[name] = feature if is_usable else _bytes(key, known_features[key].shape)
    declared = {name: feature.for_schema(schema) for name, feature in declared.items()}
    made_by: dict[str, str] = {}
    for name, feature in declared.items():
        feature.check(name, declared)
        for entry in feature.outputs(name):
            if entry in made_by:
                raise OptionError(
                    f"features {made_by[entry]!r} and {name!r} both make the entry {entry!r}",
                    option="features",
                    remedy="Rename one of them.",
                )
            made_by[entry] = name
    return declared


def _by_key(features: Sequence[object]) -> dict[str, Feature | str]:
    keys: dict[str, Feature | str] = {}
    for item in features:
        expected = "a list of keys, or a dict of features by name"
        key = _checked(item, f"{option('features')} has the item", expected)
        if key in keys:
            raise OptionError(
                f"{option('features')} has {key!r} twice", option="features", value=key
            )
        keys[key] = key
    return keys


def _declared(
    name: object,
    feature: object,
    preview: Preview,
    known_features: Mapping[str, FeatureSchema],
) -> Feature:
    name = _checked(name, f"{option('features')} has the name")
    if isinstance(feature, Feature):
        _checked(getattr(feature, "key", ""), f"feature {name!r} has the key")
        return feature
    feature = _checked(feature, f"feature {name!r} is", "a feature such as Scalar(key), or a key")
    schema = preview.schema
    known = known_features.get(feature)
    if known is not None and known.kind != "none":
        return _of_schema(name, feature, known, preview)
    if schema.record_count == 0 or schema.payload not in ("Example", "SequenceExample", "mixed"):
        return Ragged(feature)  # no records, or `resolve_requests` reports why they are unreadable
    raise no_such_key(name, feature, preview)


def _checked(text: object, problem: str, expected: str = "a str") -> str:
    if isinstance(text, str):
        return text
    raise OptionError(f"{problem} {text!r:.60}", option="features", value=text, expected=expected)


def _of_schema(name: str, key: str, known: FeatureSchema, preview: Preview) -> Feature:
    if known.kind == "mixed":
        raise mixed_kinds(name, key, preview)
    in_steps = known.min_steps is not None
    shape = known.shape_if_present if in_steps else known.shape
    is_mask = is_mask_key(key)
    is_one_image = shape is not None or key == OBJECT_MASK
    if known.content == "image" and is_one_image and not (in_steps and is_mask):
        if is_mask:
            from recordsmith.loading.features.images.mask import Mask

            return Mask(key)
        from recordsmith.loading.features.images.image import Image

        feature: Feature = Image(key)
    elif known.tensor is not None and shape is not None and may_be_serialized(known.tensor):
        feature = Serialized(key)
    elif known.kind == "bytes":
        feature = _bytes(key, shape)
    elif shape is None:
        feature = Ragged(key)
    else:
        feature = Tensor(key, shape) if shape else Scalar(key)
    return Steps(feature) if in_steps else feature


def _bytes(key: str, shape: tuple[int, ...] | None) -> Bytes:
    return Bytes(key, "ragged" if shape is None else shape)
