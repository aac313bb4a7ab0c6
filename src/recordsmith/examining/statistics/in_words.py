"""What the terminal and the page say of statistics in the same words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from recordsmith.examining.statistics.dataset_statistics import Statistics
from recordsmith.examining.statistics.record_survey import MOST_FEATURES, MOST_LEFT_OUT
from recordsmith.examining.statistics.remarks import Remark
from recordsmith.words import count

_PAYLOADS = {  # what one is called, and several
    "Example": ("Example", "Examples"),
    "SequenceExample": ("SequenceExample", "SequenceExamples"),
    "ELWC": ("ranking list (ELWC)", "ranking lists (ELWC)"),
    "Event": ("TensorBoard event", "TensorBoard events"),
    "other": ("record that is no Example", "records that are no Examples"),
}
_FOREIGN = ("Event", "other")


class RemarkGroup(NamedTuple):
    """Remarks of one kind that say the same of several features.

    features: the first of them, and how many more there are in `more`; none where a remark is of no
        feature.
    """

    kind: str
    features: tuple[str, ...]
    more: int
    text: str


def payloads_in_words(statistics: Statistics) -> str:
    """What the records are: "Examples", or so many of each: "12 Examples, 1 TensorBoard event"."""
    if len(statistics.payloads) == 1:
        ((payload, n),) = statistics.payloads.items()
        return _PAYLOADS[payload][n != 1]
    return ", ".join(count(n, *_PAYLOADS[payload]) for payload, n in statistics.payloads.items())


def heading_of(section: str) -> tuple[str, str]:
    """(what a section lists, what is counted that has them)."""
    return {
        "features": ("feature", "records"),
        "feature_lists": ("feature list", "records"),
        "context": ("feature of the context", "records"),
        "examples": ("feature of the Examples", "Examples"),
    }[section]


def left_out_in_words(statistics: Statistics) -> str | None:
    """What is said of features that have no figures; None if all have."""
    if not statistics.left_out:
        return None
    least = "at least " if statistics.left_out >= MOST_LEFT_OUT else ""
    have = "has" if statistics.left_out == 1 else "have"
    return (
        f"{least}{count(statistics.left_out, 'more feature')} {have} no figures: those past the "
        f"first {MOST_FEATURES:,}. If their names hold values, such as an id, put those into a "
        "feature that has the same name in all records."
    )


def not_looked_into(statistics: Statistics) -> str | None:
    """What is said of records of which only sizes are known; None if there are none."""
    number = sum(statistics.payloads.get(payload, 0) for payload in _FOREIGN)
    if not number:
        return None
    whose = "all records" if number == statistics.record_count else count(number, "record")
    return (
        f"of {whose} only the sizes are told, as they are no Examples; `recordsmith head` shows "
        "what they hold"
    )


def groups_of(remarks: Iterable[Remark], features: int, of_a_kind: int) -> Iterator[RemarkGroup]:
    """Remarks that say the same as one, with the first few features; and the first few of a kind,
    the last of which says how many more there are.
    """
    groups: dict[tuple[str, str], list[str | None]] = {}
    for remark in remarks:
        groups.setdefault((remark.kind, remark.text), []).append(remark.feature)
    shown: Counter[str] = Counter()
    hidden: Counter[str] = Counter()
    for (kind, text), keys in groups.items():
        named = [key for key in keys if key is not None]
        if shown[kind] == of_a_kind:
            hidden[kind] += len(keys)
            continue
        shown[kind] += 1
        yield RemarkGroup(kind, tuple(named[:features]), len(named[features:]), text)
    for kind, number in hidden.items():
        yield RemarkGroup(kind, (), 0, f"and {count(number, 'more such remark')}; --json has all.")
