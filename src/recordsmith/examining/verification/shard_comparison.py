"""Compares the shards of a dataset where no rule applies: message types and feature kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from recordsmith.errors import PAYLOAD_NAMES, CorruptDataError, Defect
from recordsmith.examining.rules import Rules
from recordsmith.examining.verification.deep_check import CheckedContents
from recordsmith.examining.verification.verify_report import ShardFindings

_Checked: TypeAlias = tuple[ShardFindings, CheckedContents]


def compare_shards(checked: Sequence[_Checked], rules: Rules | None) -> None:
    """Add a defect to each shard that differs from most shards where no rule applies."""
    open_keys = None
    if rules is None:
        _compare_payloads(checked)
    else:
        open_keys = {
            (section, key)
            for section, its in rules.sections.items()
            for key, rule in its.items()
            if rules.kinds_agree and rule.kind is None
        }
    shards_by_key = _with_several_kinds(checked)
    for section, key in sorted(
        shards_by_key if open_keys is None else shards_by_key.keys() & open_keys
    ):
        shards = shards_by_key[section, key]
        kinds = [check.kinds[section, key] for _, check in shards]
        usual = _usual(shards, kinds)
        for (findings, _), kind in zip(shards, kinds, strict=True):
            if kind != usual:
                others = [
                    Path(other.path).name
                    for (other, _), its in zip(shards, kinds, strict=True)
                    if its == usual
                ]
                findings.add(
                    [
                        CorruptDataError(
                            Defect.FEATURE_KIND,
                            f"feature {key!r} has different kinds in different shards",
                            found=str(kind),
                            expected=f"{usual}, as in {_some(others)}",
                            remedy="Readers that declare one kind fail on the other.",
                            feature=key,
                        )
                    ]
                )


def _with_several_kinds(checked: Sequence[_Checked]) -> dict[tuple[str, str], list[_Checked]]:
    """For each feature whose kind differs between shards, return the shards that have it."""
    first: dict[tuple[str, str], str] = {}
    differing = set()
    for _, check in checked:
        for key, kind in check.kinds.items():
            if first.setdefault(key, kind) != kind:
                differing.add(key)
    shards_by_key: dict[tuple[str, str], list[_Checked]] = {key: [] for key in differing}
    for one in checked if differing else ():
        for key in one[1].kinds:
            if key in differing:
                shards_by_key[key].append(one)
    return shards_by_key


def _compare_payloads(checked: Sequence[_Checked]) -> None:
    payloads = [check.payload for _, check in checked]
    usual = _usual(checked, payloads)
    for (findings, _), payload in zip(checked, payloads, strict=True):
        if payload is not None and payload != usual:
            findings.add(
                [
                    CorruptDataError(
                        Defect.NOT_AN_EXAMPLE,
                        "the records differ in type from those of most other shards",
                        found=_plural(payload),
                        expected=_plural(usual),
                        remedy="The shard may belong to another dataset.",
                    )
                ]
            )


def _plural(payload: str | None) -> str:
    return PAYLOAD_NAMES[str(payload)][1]


def _usual(checked: Sequence[_Checked], values: Sequence[str | None]) -> str | None:
    """Return the value of the shards with the most records."""
    counts: Counter[str] = Counter()
    for (findings, _), value in zip(checked, values, strict=True):
        if value is not None:
            counts[value] += findings.record_count
    return counts.most_common(1)[0][0] if counts else None


def _some(names: Sequence[str]) -> str:
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2:,} other shards"
