"""Joins the schemas, class names and manifests of a dataset and of appended records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recordsmith.building import ShardResult
from recordsmith.dataset import ClassNames, Manifest
from recordsmith.errors import OptionError, option
from recordsmith.example import FeatureSchema, Schema
from recordsmith.stores import Location
from recordsmith.words import first_of

_NAMED = 5  # features in a notice


def merge_class_names(
    old: ClassNames | None, new: ClassNames | None, folder: Location
) -> tuple[ClassNames | None, list[str]]:
    """Join class names, and return them with notices.

    Args:
        old: of the dataset.
        new: of the appended records.
        folder: of the dataset, for messages.

    Raises:
        OptionError: a label has different names.
    """
    if old is None:
        notice = (
            "the class names of the appended records are ignored: the dataset has no class names"
        )
        return None, [] if new is None else [notice]
    if new is None:
        return old, ["the appended records have no class names; their labels are assumed equal"]
    names = [*old, *[None] * (len(new) - len(old))]
    for label, name in enumerate(new):
        known = names[label]
        if None not in (known, name) and known != name:
            raise OptionError(
                f"class {label} is {known!r:.80} in {folder} but {name!r:.80} in the appended "
                "records",
                option="paths",
                value=name,
                remedy="Give them the same numbers with `recordsmith edit` first.",
            )
        names[label] = name if known is None else known
    return tuple(names), []


def check_schemas_match(old: Schema, new: Schema, *, allow_missing: bool = False) -> list[str]:
    """Compare the schemas of a dataset and of appended records, and return notices.

    Args:
        allow_missing: whether appended records may lack features that all existing records have.

    Raises:
        OptionError: payloads or kinds of features differ, or features are missing.
    """
    if not old.record_count or not new.record_count:
        return []
    both = Schema.merged([old, new])
    if both.payload == "mixed" and old.payload != "mixed":
        raise OptionError(
            f"the appended records are {new.payload}, those of the dataset {old.payload}",
            option="paths",
            value=new.payload,
        )
    _check_related(old, new)
    notices = []
    for name, section in both.sections.items():
        before, after = old.sections.get(name, {}), new.sections.get(name, {})
        for key, feature in section.items():
            if feature.kind == "mixed" and key in before and before[key].kind != "mixed":
                raise OptionError(
                    f"feature {key!r} is {before[key].kind} in the dataset but {after[key].kind} "
                    "in the appended records",
                    option="paths",
                    value=key,
                    remedy="Drop or rename it with `recordsmith edit` first.",
                )
        if not allow_missing and old.is_complete and new.is_complete:
            _check_present(old, new, before, after)
        for ones, others, whose in (
            (before, after, "the appended records lack"),
            (after, before, "the existing records lack"),
        ):
            lacking = sorted(ones.keys() - others.keys())
            if lacking and both.is_complete:
                notices.append(f"{whose} {first_of(lacking, _NAMED)}")
    return notices


def _check_present(
    old: Schema,
    new: Schema,
    before: Mapping[str, FeatureSchema],
    after: Mapping[str, FeatureSchema],
) -> None:
    """Check that the appended records have the features that all existing records have.

    Raises:
        OptionError: some lack a feature.
    """
    lacking = [
        (key, new.record_count - (after[key].present if key in after else 0))
        for key, feature in before.items()
        if feature.present == old.record_count
    ]
    lacking = [(key, number) for key, number in lacking if number > 0]
    if not lacking:
        return
    names = [repr(key) for key, _ in lacking]
    number = max(number for _, number in lacking)
    raise OptionError(
        f"{number:,} of {new.record_count:,} appended records lack features that all records of "
        f"the dataset have: {first_of(names, _NAMED)}",
        option="paths",
        value=lacking[0][0],
        remedy="Pack them with the options of the dataset (`recordsmith pack --like`), or pass "
        f"{option('allow_missing', True)}.",
    )


def _check_related(old: Schema, new: Schema) -> None:
    """Raise OptionError if no feature is in both: probably the wrong dataset."""
    theirs, ours = (
        [key for section in schema.sections.values() for key in section] for schema in (old, new)
    )
    if theirs and ours and not {*theirs} & {*ours} and old.is_complete and new.is_complete:
        raise OptionError(
            "the records have no feature in common: the dataset has "
            f"{first_of(theirs, _NAMED)}, the appended records have {first_of(ours, _NAMED)}",
            option="paths",
            remedy="Check the path of the dataset, or merge both with `recordsmith reshard`.",
        )


def repeated_shard_notices(manifest: Manifest, results: Sequence[ShardResult]) -> list[str]:
    """Return notices about new shards that duplicate existing ones."""
    known = {(shard.size_bytes, shard.crc32c): shard.file for shard in manifest.shards}
    return [
        f"{result.file} has the same records as the existing shard "
        f"{known[result.size_bytes, result.crc32c]}"
        for result in results
        if (result.size_bytes, result.crc32c) in known
    ]


def merge_manifest(
    manifest: Manifest,
    added: Sequence[tuple[str, ShardResult]],
    renamed: Mapping[str, str],
    class_names: ClassNames | None,
    step: Mapping[str, Any],
) -> Manifest:
    """Return the manifest of old and new shards.

    Args:
        manifest: of the dataset.
        added: the new shards, each with its split.
        renamed: new names of existing shards, by old ones.
        class_names: of the result.
        step: the entry for the history.
    """
    splits = {
        split: [replace(shard, file=renamed.get(shard.file, shard.file)) for shard in shards]
        for split, shards in manifest.splits.items()
    }
    schemas: dict[str, list[Schema]] = {}
    for split in splits:
        schema = manifest.schema_of(split)
        if schema is not None:
            schemas[split] = [schema]
    for split, result in added:
        if split in schemas or split not in manifest.splits:
            schemas.setdefault(split, []).append(result.schema)
        splits.setdefault(split, []).append(result.entry)
    return Manifest(
        {split: tuple(shards) for split, shards in splits.items()},
        Schema.merged([manifest.schema, *(result.schema for _, result in added)]),
        {split: Schema.merged(parts) for split, parts in schemas.items()},
        manifest.compression,
        class_names,
        # not the plan of the job that created the dataset, which would not reproduce this one
        {
            **manifest.provenance,
            "fingerprint": step["fingerprint"],
            "appended": [*append_history(manifest), step],
        },
        tfds=manifest.carried_tfds,
    )


def append_history(manifest: Manifest) -> list[Mapping[str, Any]]:
    """Return the history of appended records, the newest last."""
    steps = manifest.provenance.get("appended")
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
