"""Do the shards of a dataset agree where no rule tells? On payloads, and on kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.examining.rules import Rules
from recordsmith.examining.verification.report import ShardFindings
from recordsmith.examining.verification.rule_check import RuleCheck
from recordsmith.example.schema import MOST_FEATURES


def compare_siblings(
    looked: Sequence[tuple[ShardFindings, RuleCheck]], rules: Rules | None
) -> None:
    """Add to each shard where it differs from what most shards have, if no rule speaks of it."""
    keys = sorted({key for _, check in looked for key in check.kinds})
    if rules is None:
        _compare_payloads(looked)
    else:
        open_keys = {
            (section, key)
            for section, its in rules.sections.items()
            for key, rule in its.items()
            if rules.kinds_agree and rule.kind is None
        }
        keys = [key for key in keys if key in open_keys]
    for section, key in keys[:MOST_FEATURES]:
        kinds = [check.kinds.get((section, key)) for _, check in looked]
        usual = _usual(looked, kinds)
        for (findings, _), kind in zip(looked, kinds, strict=True):
            if kind is not None and kind != usual:
                others = [
                    Path(other.path).name
                    for (other, _), its in zip(looked, kinds, strict=True)
                    if its == usual
                ]
                findings.add(
                    [
                        CorruptDataError(
                            Defect.FEATURE_KIND,
                            f"feature {key!r} is {kind} in this shard, but {usual} in "
                            f"{_some(others)}. Readers that declare one kind fail at the other.",
                        )
                    ]
                )


def _compare_payloads(looked: Sequence[tuple[ShardFindings, RuleCheck]]) -> None:
    payloads = [check.payload for _, check in looked]
    usual = _usual(looked, payloads)
    for (findings, _), payload in zip(looked, payloads, strict=True):
        if payload is not None and payload != usual:
            findings.add(
                [
                    CorruptDataError(
                        Defect.NOT_AN_EXAMPLE,
                        f"the payloads of this shard are of the sort {payload}, those of most "
                        f"others {usual}: it may belong to another dataset.",
                    )
                ]
            )


def _usual(
    looked: Sequence[tuple[ShardFindings, RuleCheck]], said: Sequence[str | None]
) -> str | None:
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
