"""Findings on labels whose text names another class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from recordsmith.dataset.labels import ClassNames
from recordsmith.examining.stats.findings.finding import Finding, some
from recordsmith.examining.stats.label_texts import TEXT_OF_LABEL
from recordsmith.words import first_of

_SHOWN = 3


def contradictions(
    key: str, pairs: Mapping[tuple[int, str], int], class_names: ClassNames | None
) -> Iterator[Finding]:
    """Yield labels with several texts, texts with several labels, and texts not in labels.txt.

    Args:
        pairs: how often each pair of label and text occurs.
    """
    texts: dict[int, list[str]] = {}
    labels: dict[str, list[str]] = {}
    for (label, text), often in pairs.items():
        texts.setdefault(label, []).append(f"{text!r:.80} ({often:,})")
        labels.setdefault(text, []).append(f"{label} ({often:,})")
    several = {str(label): its for label, its in texts.items() if len(its) > 1}
    problems = [
        *_of_several("label", "texts", several),
        *_of_several(
            "text", "labels", {f"{t!r:.80}": its for t, its in labels.items() if len(its) > 1}
        ),
    ]
    mismatched = [] if class_names is None else _find_mismatched(pairs, class_names)
    if mismatched:
        problems.append(some(mismatched))
    if problems:
        yield Finding(
            "label-text",
            key,
            f"{'; '.join(problems)}. {key} and {TEXT_OF_LABEL[key]} disagree. "
            "Programs that read one of them train on different classes than programs that read the "
            "other. Recode both, or drop the texts, with `recordsmith edit`.",
        )


def _of_several(one: str, others: str, found: Mapping[str, list[str]]) -> Iterator[str]:
    if found:
        shown = [f"{one} {name} has the {others} {_listed(its)}" for name, its in found.items()]
        yield first_of(shown, _SHOWN)


def _listed(names: list[str]) -> str:
    """List a few names: a, b and c; a, b, c and 2 more."""
    if len(names) > _SHOWN:
        return first_of(names, _SHOWN)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _find_mismatched(pairs: Mapping[tuple[int, str], int], class_names: ClassNames) -> list[str]:
    """List texts that differ from the class name; none if no text is a class name at all."""
    names = {label: name for label, name in enumerate(class_names) if name is not None}
    known = set(names.values())
    if not any(label in names and text in known for label, text in pairs):
        return []
    return [
        f"labels.txt says {names[label]!r:.80} for label {label}, but records say {text!r:.80}"
        for label, text in pairs
        if names.get(label, text) != text
    ]
