"""What appended records and a dataset have in common: schemas, classes, shard names, manifest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from recordsmith.building import ShardResult, is_valid_file_name, shard_files_by_split
from recordsmith.dataset import ClassNames, Manifest
from recordsmith.errors import OptionError, option
from recordsmith.example import FeatureSchema, Schema
from recordsmith.stores import Location
from recordsmith.wire import Compression
from recordsmith.words import first_of

_NAMED = 5  # features in a notice
_NUMBERED = re.compile(r"(.*?)([0-9]+)-of-([0-9]+)(.*)", re.DOTALL)
_REWRITE = "Rewrite the dataset with `recordsmith reshard` and append to the copy."


# -- schemas and classes ---------------------------------------------------------------------------


def merge_class_names(
    old: ClassNames | None, new: ClassNames | None, folder: Location
) -> tuple[ClassNames | None, list[str]]:
    """Join the class names of a dataset and of appended records, and return them with notices."""
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
    """Compare the schemas of a dataset and of appended records, and return notices."""
    if not old.record_count or not new.record_count:
        return []
    both = Schema.merged([old, new])
    if both.payload == "mixed" and old.payload != "mixed":
        raise OptionError(
            f"the appended records are {new.payload}, those of the dataset {old.payload}",
            option="paths",
            value=new.payload,
        )
    are_complete = old.is_complete and new.is_complete
    if are_complete:
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
        if not allow_missing and are_complete:
            _check_present(old, new, before, after)
        for ours, theirs, whose in (
            (before, after, "the appended records lack"),
            (after, before, "the existing records lack"),
        ):
            lacking = sorted(ours.keys() - theirs.keys())
            if lacking and both.is_complete:
                notices.append(f"{whose} {first_of(lacking, _NAMED)}")
    return notices


def _check_present(
    old: Schema,
    new: Schema,
    before: Mapping[str, FeatureSchema],
    after: Mapping[str, FeatureSchema],
) -> None:
    """Check that the appended records have the features that all existing records have."""
    lacking = {
        key: new.record_count - (after[key].present if key in after else 0)
        for key, feature in before.items()
        if feature.present == old.record_count
    }
    lacking = {key: number for key, number in lacking.items() if number > 0}
    if lacking:
        names = [repr(key) for key in lacking]
        raise OptionError(
            f"{max(lacking.values()):,} of {new.record_count:,} appended records lack features "
            f"that all records of the dataset have: {first_of(names, _NAMED)}",
            option="paths",
            value=next(iter(lacking)),
            remedy="Pack them with the options of the dataset (`recordsmith pack --like`), or pass "
            f"{option('allow_missing', True)}.",
        )


def _check_related(old: Schema, new: Schema) -> None:
    """Raise OptionError if no feature is in both: probably the wrong dataset."""
    theirs, ours = (
        [key for section in schema.sections.values() for key in section] for schema in (old, new)
    )
    if theirs and ours and not {*theirs} & {*ours}:
        raise OptionError(
            "the records have no feature in common: the dataset has "
            f"{first_of(theirs, _NAMED)}, the appended records have {first_of(ours, _NAMED)}",
            option="paths",
            remedy="Check the path of the dataset, or merge both with `recordsmith reshard`.",
        )


# -- manifest --------------------------------------------------------------------------------------


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
        formats=manifest.formats,
    )


def append_history(manifest: Manifest) -> list[Mapping[str, Any]]:
    """Return the history of appended records, the newest last."""
    steps = manifest.provenance.get("appended")
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


# -- names: `-of-00004` becomes `-of-00006` in all shards of a split -------------------------------


class _Pattern(NamedTuple):
    """The pattern of the names of a split; widths are in digits."""

    head: str
    number_width: int
    count_width: int
    tail: str

    def name(self, number: int, count: int) -> str:
        return (
            f"{self.head}{number:0{self.number_width}d}-of-{count:0{self.count_width}d}{self.tail}"
        )


def renumber(
    files: Mapping[str, Sequence[str]], added: Mapping[str, int], compression: Compression
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return new names of existing shards by old ones, and the names of new shards by split."""
    renamed: dict[str, str] = {}
    new: dict[str, list[str]] = {}
    for split, count in added.items():
        old = files.get(split, ())
        pattern = _find_pattern(old) if old else _pattern_like(split, files)
        if pattern is None and old:
            raise OptionError(
                f"the shards of split {split!r} are not numbered consistently: {old[0]!r}",
                option="out",
                value=old[0],
                remedy=_REWRITE,
            )
        total = len(old) + count
        if pattern is None:
            names = shard_files_by_split({split: total}, compression)[split]
        else:
            names = [pattern.name(number, total) for number in range(total)]
        renamed |= {a: b for a, b in zip(old, names, strict=False) if a != b}
        new[split] = names[len(old) :]
    _check_distinct(
        {name for names in files.values() for name in names},
        [*renamed.values(), *(name for names in new.values() for name in names)],
    )
    return renamed, new


def _find_pattern(names: Sequence[str]) -> _Pattern | None:
    """Return the pattern of the first name, or None if other names do not match it."""
    match = _NUMBERED.fullmatch(names[0])
    if match is None:
        return None
    pattern = _Pattern(match[1], len(match[2]), len(match[3]), match[4])
    expected = [pattern.name(number, len(names)) for number in range(len(names))]
    return pattern if list(names) == expected else None


def _pattern_like(split: str, files: Mapping[str, Sequence[str]]) -> _Pattern | None:
    """Return the pattern of another split with the name of a new one, or None."""
    if not is_valid_file_name(split):
        raise OptionError(option="split", value=split, expected="part of a valid file name")
    for other, names in files.items():
        pattern = _find_pattern(names) if names else None
        if pattern is not None and pattern.head.count(other) == 1 and other not in pattern.tail:
            return pattern._replace(head=pattern.head.replace(other, split))
    return None


def _check_distinct(old: Iterable[str], new: Sequence[str]) -> None:
    taken = sorted({*old}.intersection(new))
    if taken or len(set(new)) < len(new):
        raise OptionError(
            f"two shards would get the name {(taken or new)[0]!r}",
            option="out",
            value=(taken or new)[0],
            remedy=_REWRITE,
        )
