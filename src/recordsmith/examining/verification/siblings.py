"""Do the shards of a dataset agree where no rule tells? On payloads, and on kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.examining.rules import Rules
from recordsmith.examining.verification.report import ShardFindings
from recordsmith.examining.verification.rule_check import RuleCheck
from recordsmith.example.payload import PAYLOAD_WORDS

_Looked: TypeAlias = tuple[ShardFindings, RuleCheck]


def compare_siblings(looked: Sequence[_Looked], rules: Rules | None) -> None:
    """Add to each shard where it differs from what most shards have, if no rule speaks of it."""
    open_keys = None
    if rules is None:
        _compare_payloads(looked)
    else:
        open_keys = {
            (section, key)
            for section, its in rules.sections.items()
            for key, rule in its.items()
            if rules.kinds_agree and rule.kind is None
        }
    having = _having_several_kinds(looked)
    for section, key in sorted(having if open_keys is None else having.keys() & open_keys):
        shards = having[section, key]
        kinds = [check.seen.kinds[section, key] for _, check in shards]
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
                            f"feature {key!r} is {kind} in this shard, but {usual} in "
                            f"{_some(others)}. Readers that declare one kind fail at the other.",
                            feature=key,
                        )
                    ]
                )


def _having_several_kinds(looked: Sequence[_Looked]) -> dict[tuple[str, str], list[_Looked]]:
    """The shards that have each of the features on which they do not agree."""
    first: dict[tuple[str, str], str] = {}
    differing = set()
    for _, check in looked:
        for key, kind in check.seen.kinds.items():
            if first.setdefault(key, kind) != kind:
                differing.add(key)
    having: dict[tuple[str, str], list[_Looked]] = {key: [] for key in differing}
    for one in looked if differing else ():
        for key in one[1].seen.kinds:
            if key in differing:
                having[key].append(one)
    return having


def _compare_payloads(looked: Sequence[_Looked]) -> None:
    payloads = [check.payload for _, check in looked]
    usual = _usual(looked, payloads)
    for (findings, _), payload in zip(looked, payloads, strict=True):
        if payload is not None and payload != usual:
            findings.add(
                [
                    CorruptDataError(
                        Defect.NOT_AN_EXAMPLE,
                        f"its records are {_many(payload)}, those of most other shards "
                        f"{_many(usual)}: it may belong to another dataset.",
                    )
                ]
            )


def _many(payload: str | None) -> str:
    return PAYLOAD_WORDS[str(payload)][1]


def _usual(looked: Sequence[_Looked], said: Sequence[str | None]) -> str | None:
    """What most records have, by the shards they are in."""
    counts: Counter[str] = Counter()
    for (findings, _), what in zip(looked, said, strict=True):
        if what is not None:
            counts[what] += findings.record_count
    return counts.most_common(1)[0][0] if counts else None


def _some(names: Sequence[str]) -> str:
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2:,} other shards"
