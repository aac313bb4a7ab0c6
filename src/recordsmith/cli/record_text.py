"""Describes records for `recordsmith head`, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.cli import console
from recordsmith.dataset import bytes_text, contents_of, kind_of
from recordsmith.format.example import Features, FeatureValue, classify
from recordsmith.support.errors import DataError

_MAX_VALUES = 8
_MAX_STEPS = 3
_NAMES = {
    "ELWC": "a ranking list (ExampleListWithContext)",
    "Event": "a TensorBoard event",
    "other": "not an Example",
    "Example": "a malformed Example",
}


def describe(record: bytes) -> Iterator[str]:
    """Describe a record, one short line per feature."""
    try:
        sections = contents_of(record)
    except DataError:
        yield f"{_NAMES[classify(record)]}: {bytes_text(record)}"
        return
    for section, features in sections.items():
        if section == "feature_lists":
            for name, steps in features.items():
                yield f"{console.printable(name)}  {console.count(len(steps), 'step')}"
                yield from (
                    f"  {kind_of(step)}  {_feature_text(step)}" for step in steps[:_MAX_STEPS]
                )
                yield from ("  …",) * (len(steps) > _MAX_STEPS)
        elif section == "examples":
            yield f"{console.count(len(features), 'Example')} of a ranking list"
            for number, example in enumerate(features[:_MAX_STEPS]):
                yield f"Example {number}"
                yield from (f"  {line}" for line in _feature_lines(example))
            yield from ("…",) * (len(features) > _MAX_STEPS)
        else:
            yield from _feature_lines(features)


def _feature_lines(features: Features) -> list[str]:
    names = {key: console.printable(key) for key in sorted(features)}
    widest = max(map(len, names.values()), default=0)
    return [
        f"{name:{widest}}  {kind_of(features[key]):5}  {_feature_text(features[key])}"
        for key, name in names.items()
    ] or ["no features"]


def _feature_text(value: FeatureValue) -> str:
    """Describe the values of a feature in about a line."""
    as_line = bytes_text if isinstance(value, list) else str
    shown = ", ".join(map(as_line, value[:_MAX_VALUES]))
    if len(value) == 1:
        return shown
    return f"[{shown}]" if len(value) <= _MAX_VALUES else f"[{shown}, …]  {len(value):,} values"
