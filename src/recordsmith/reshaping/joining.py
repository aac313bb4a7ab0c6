"""A dataset and what is appended to it: do they go together, and what is said of both then?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from recordsmith.building import ShardResult
from recordsmith.dataset import ClassNames, Manifest
from recordsmith.errors import OptionError
from recordsmith.example import Schema
from recordsmith.words import first_of

_NAMED = 5  # features in a notice


def joined_class_names(
    old: ClassNames | None, new: ClassNames | None, folder: Path
) -> tuple[ClassNames | None, list[str]]:
    """The names of classes afterwards, those that only one side has included; and what should be
    known of them.

    Raises:
        OptionError: a label has another name in what is appended.
    """
    if old is None:
        told = "the dataset has no class names, so those of what is appended are left out"
        return None, [] if new is None else [told]
    if new is None:
        return old, ["what is appended has no class names; its labels are taken to be the same"]
    names = [*old, *[None] * (len(new) - len(old))]
    for label, name in enumerate(new):
        known = names[label]
        if None not in (known, name) and known != name:
            raise OptionError(
                f"class {label} is {known!r:.80} in {folder}, and {name!r:.80} in what is "
                "appended. Give it the same numbers first, with `recordsmith edit --recode`"
            )
        names[label] = name if known is None else known
    return tuple(names), []


def compare_schemas(old: Schema, new: Schema) -> list[str]:
    """What should be known of features that not all records have.

    Raises:
        OptionError: records are of another sort, or a feature is of another kind.
    """
    if not old.record_count or not new.record_count:
        return []
    both = Schema.merged([old, new])
    if both.payload == "mixed" and old.payload != "mixed":
        raise OptionError(
            f"the records of the dataset are {old.payload}, those that are appended {new.payload}"
        )
    _check_related(old, new)
    notices = []
    for name, section in both.sections.items():
        before, after = old.sections.get(name, {}), new.sections.get(name, {})
        for key, feature in section.items():
            if feature.kind == "mixed" and key in before and before[key].kind != "mixed":
                raise OptionError(
                    f"feature {key!r} is {before[key].kind} in the dataset and {after[key].kind} "
                    "in what is appended; drop or rename it first, with `recordsmith edit`"
                )
        for ones, others, whose in (
            (before, after, "what is appended lacks"),
            (after, before, "the records that were there lack"),
        ):
            lacking = sorted(ones.keys() - others.keys())
            if lacking and both.is_complete:
                notices.append(f"{whose} {first_of(lacking, _NAMED)}")
    return notices


def _check_related(old: Schema, new: Schema) -> None:
    """Raise OptionError if records have no feature in common: somebody named the wrong folder."""
    theirs, ours = (
        [key for section in schema.sections.values() for key in section] for schema in (old, new)
    )
    if theirs and ours and not {*theirs} & {*ours} and old.is_complete and new.is_complete:
        raise OptionError(
            "the records have no feature in common: those of the dataset have "
            f"{first_of(theirs, _NAMED)}, those to be appended {first_of(ours, _NAMED)}. Look "
            "whether this is the right dataset; if they belong together, merge them with "
            "`recordsmith reshard`"
        )


def repeated(manifest: Manifest, results: Sequence[ShardResult]) -> list[str]:
    """What should be known of new shards that hold the same as others: that is hardly meant."""
    known = {(shard.size_bytes, shard.crc32c): shard.file for shard in manifest.shards}
    return [
        f"{result.file} holds the same records as {known[result.size_bytes, result.crc32c]} did "
        "before"
        for result in results
        if (result.size_bytes, result.crc32c) in known
    ]


def joined(
    manifest: Manifest,
    added: Sequence[tuple[str, ShardResult]],
    renamed: Mapping[str, str],
    class_names: ClassNames | None,
    step: Mapping[str, Any],
) -> Manifest:
    """The manifest of all records, old and new.

    Args:
        added: the new shards, each with its split.
        renamed: new names, by old ones, of shards that were there.
        step: what was appended, to be remembered.
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
        # another plan than that of the job which made the dataset: it would not make this one
        {**manifest.made_from, "plan": step["plan"], "appended": [*steps_of(manifest), step]},
    )


def steps_of(manifest: Manifest) -> list[Mapping[str, Any]]:
    """What was appended so far, the newest last."""
    steps = manifest.made_from.get("appended")
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
