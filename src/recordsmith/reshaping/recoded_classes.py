"""What are classes called, once their labels are recoded? And is that true of all features then?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from recordsmith.dataset import ClassNames, class_names_of
from recordsmith.errors import OptionError
from recordsmith.example import Schema
from recordsmith.example.keys import MASK, is_of_classes
from recordsmith.reshaping.recode_table import OTHERS, RecodeTable


def recoded_class_names(
    tables: Mapping[str, RecodeTable], names: ClassNames | None
) -> ClassNames | None:
    """Names move with the labels that are recoded.

    A new label is called what the table's column `name` says; else what it was called before, if it
    is an old label that stays as it is; else as the first of the old labels, in the order of the
    table, that become it.

    Args:
        tables: of all features that are recoded, by key.
    """
    of_labels = [table for key, table in tables.items() if is_of_classes(key)]
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
    """All features that the names of classes speak of must change together.

    Args:
        tables: of all features that are recoded, by key.
        schema: of all records.
        staying: the features that records have before and after.

    Raises:
        OptionError: names would be true of some features only, or have no place.
    """
    recoded = {key: table for key, table in tables.items() if is_of_classes(key)}
    if not recoded or names is None:
        return
    schema.check_complete("which features the names of classes speak of cannot be told")
    first, table = next(iter(recoded.items()))
    _check_numbers(table, names)
    for key in sorted(staying):
        is_mask = key == MASK
        if not (is_mask or is_of_classes(key)):
            continue
        other = recoded.get(key)
        if other is None or other.to_json() != table.to_json():
            what_to_do = (
                "the pixels of masks cannot be recoded: drop the masks, or leave the labels"
                if is_mask
                else "recode both with the same table, or drop one"
            )
            raise OptionError(
                f"the names of classes speak of {first!r} and of {key!r}; if only one is recoded "
                f"they are not true any more: {what_to_do}"
            )


def _moved_names(table: RecodeTable, names: ClassNames) -> dict[int, str]:
    recoding = table.of_kind("int64", "label")
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
    """No class that has a name may get a label that cannot have one."""
    try:
        recoding = table.of_kind("int64", "label")
    except OptionError:  # the labels are text
        return
    moved = [(name, recoding.new(label)) for label, name in enumerate(names)]
    moved += [(row.name, int(row.new)) for row in table.rows if row.new != OTHERS]
    for name, new in moved:
        if name is not None and isinstance(new, int) and new < 0:
            raise OptionError(
                f"class {name!r:.80} would get the label {new}, which cannot have a name; choose "
                "one of 0 or more"
            )
