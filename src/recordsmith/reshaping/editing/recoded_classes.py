"""Class names after labels are recoded, and checks that they stay valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from recordsmith.dataset import ClassNames, class_names_of
from recordsmith.errors import OptionError
from recordsmith.example import Schema
from recordsmith.example.keys import MASK, is_class_key
from recordsmith.reshaping.editing.recode_table import OTHERS, RecodeTable


def recoded_class_names(
    tables: Mapping[str, RecodeTable], names: ClassNames | None
) -> ClassNames | None:
    """Return the class names after recoding.

    The name of a new label is that in the column `name`; otherwise its own name if it is an
    unchanged label; otherwise the name of the first old label in the table that maps to it.

    Args:
        tables: of all recoded features, by key.
        names: before recoding.
    """
    of_labels = [table for key, table in tables.items() if is_class_key(key)]
    if not of_labels:
        return names
    try:
        moved = _moved_names(of_labels[0], names or ())
    except OptionError:  # the labels are text
        return names
    return class_names_of(moved) if moved or names is not None else None


def check_class_names(
    tables: Mapping[str, RecodeTable],
    schema: Schema,
    staying: Iterable[str],
    names: ClassNames | None,
) -> None:
    """Check that all features with class labels are recoded together.

    Args:
        tables: of all recoded features, by key.
        schema: of all records.
        staying: the features that are not dropped.
        names: the class names.

    Raises:
        OptionError: class names would be wrong for some features, or a label with a name would
            become negative.
    """
    recoded = {key: table for key, table in tables.items() if is_class_key(key)}
    if not recoded or names is None:
        return
    schema.check_complete("the features with class labels are unknown")
    first, table = next(iter(recoded.items()))
    _check_numbers(table, names)
    for key in sorted(staying):
        is_mask = key == MASK
        if not (is_mask or is_class_key(key)):
            continue
        other = recoded.get(key)
        if other is None or other.to_json() != table.to_json():
            raise OptionError(
                f"the class names apply to {first!r} and {key!r}, but only one is recoded",
                option="recode",
                value=key,
                remedy="Pixels of masks cannot be recoded: drop the masks, or leave the labels."
                if is_mask
                else "Recode both with the same table, or drop one.",
            )


def _moved_names(table: RecodeTable, names: ClassNames) -> dict[int, str]:
    recoding = table.for_kind("int64", "label")
    old_names = {label: name for label, name in enumerate(names) if name is not None}
    moved: dict[Any, str] = {}
    for row in table.rows:
        if row.name is not None and row.new != OTHERS:
            moved.setdefault(int(row.new), row.name)
    for label, name in old_names.items():
        if recoding.new(label) == label:
            moved.setdefault(label, name)
    in_order: list[Any] = [*recoding.values, *old_names]
    for label in in_order:
        if label in old_names and (new := recoding.new(label)) is not None:
            moved.setdefault(new, old_names[label])
    return {label: name for label, name in moved.items() if label >= 0}


def _check_numbers(table: RecodeTable, names: ClassNames) -> None:
    """Check that no class with a name gets a negative label."""
    try:
        recoding = table.for_kind("int64", "label")
    except OptionError:  # the labels are text
        return
    moved = [(name, recoding.new(label)) for label, name in enumerate(names)]
    moved += [(row.name, int(row.new)) for row in table.rows if row.new != OTHERS]
    for name, new in moved:
        if name is not None and isinstance(new, int) and new < 0:
            raise OptionError(
                f"class {name!r:.80} would get the label {new}",
                option="recode",
                value=new,
                expected="0 or more for classes with names",
            )
