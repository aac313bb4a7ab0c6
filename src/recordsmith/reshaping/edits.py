"""Records with other features: dropped, renamed, added, or with other values.

All is done on the wire: a payload is walked down to the keys of its features, and what does not
change is copied as it is, with its place, its spelling and whatever is unknown. Only features that
are recoded are decoded. Keys are those that records have before the edit: first features are
dropped, renamed and recoded, then others are added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from recordsmith.buffers import BytesLike, as_view
from recordsmith.dataset import ClassNames
from recordsmith.errors import OptionError, names_like
from recordsmith.example import (
    Entry,
    Schema,
    Section,
    classify,
    decode_payload,
    delimited,
    encode_example,
    sections_of,
)
from recordsmith.example.keys import text_of_label
from recordsmith.example.payload import encode_key, not_an_example
from recordsmith.reshaping.edit_actions import DROPPED, WATCHED, Action, Actions
from recordsmith.reshaping.recode_table import RecodeTable, TableLike
from recordsmith.reshaping.recoded_classes import check_class_names, recoded_class_names
from recordsmith.reshaping.recoder import Recoder


class Edits:
    """Features to drop, rename, add and recode: a `Change`. Threads may share it."""

    def __init__(
        self,
        *,
        drop: Iterable[str] = (),
        rename: Mapping[str, str] | None = None,
        add: Mapping[str, Any] | None = None,
        recode: Mapping[str, TableLike] | None = None,
    ) -> None:
        """
        Args:
            drop: names of features, or patterns such as `image/object/*`.
            rename: new names by old ones.
            add: values by name, as in `encode_example`; the same for every record. Of a
                SequenceExample they become part of the context.
            recode: for each feature a table of new values by old ones: a dict, or the path of a
                CSV, TSV or JSON file with the columns old, new and perhaps name.

        Raises:
            OptionError: they contradict each other, or a table cannot be understood.
            FileAccessError: a table cannot be read.
        """
        self.drop = _names(drop)
        self.rename = dict(_checked("rename", rename))
        self.add = dict(_checked("add", add))
        tables = _checked("recode", recode)
        self.recode = {key: RecodeTable.of(table, key) for key, table in tables.items()}
        recoders = {key: Recoder(key, table) for key, table in self.recode.items()}
        self._actions = Actions(self.drop, self.rename, self.add, recoders)
        self._added = [_field_of(key, value) for key, value in self.add.items()]

    @property
    def is_empty(self) -> bool:
        """Nothing would change."""
        return not (self.drop or self.rename or self.add or self.recode)

    def apply(self, payload: bytes | memoryview) -> bytes:
        """The payload with these changes.

        Raises:
            CorruptDataError: it is neither an Example nor a SequenceExample; a value is not in the
                table (feature-value-mismatch).
            OptionError: a feature gets a name that another feature of the record has.
        """
        kind = classify(payload)
        if kind not in ("Example", "SequenceExample"):
            decode_payload(payload)  # says what is wrong with it
            raise not_an_example(kind)
        data = as_view(payload)
        sections = sections_of(payload, self._actions)
        if self._actions.may_clash:
            self._actions.check_record(
                (section.field, entry.key) for section in sections for entry in section.entries
            )
        last = {}
        if self.recode:  # of equal keys the last one counts: others need not be in a table
            last = {(part.field, entry.key): entry for part in sections for entry in part.entries}
        owner: Section | None = None
        if self._added:
            owner = next((section for section in reversed(sections) if section.field == 1), None)
        pieces: list[BytesLike] = []
        at = 0
        for section in sections:
            if section is owner or any(entry.wanted is not WATCHED for entry in section.entries):
                content = self._content(data, section, last)
                added = self._added if section is owner else ()
                pieces += (data[at : section.start], delimited(section.field, *content, *added))
                at = section.stop
        pieces.append(data[at:])
        if self._added and owner is None:
            pieces.append(delimited(1, *self._added))
        return b"".join(pieces)  # type: ignore[arg-type]

    def check(self, schema: Schema, class_names: ClassNames | None = None) -> None:
        """Compare with the schema of all records, before any is read.

        Raises:
            OptionError: a feature is named that no record has, or a name is taken; a table does
                not fit its feature; the names of classes would not be true any more.
        """
        if schema.payload in ("none", "mixed"):
            return
        known = {key: feature for part in schema.sections.values() for key, feature in part.items()}
        for key in (*self.rename, *self.recode):
            if key not in known and schema.is_complete:
                raise _unknown(key, known)
        for name in self.drop:
            if schema.is_complete and not any(self._actions.means(name, key) for key in known):
                raise _unknown(name, known)
        for name, features in schema.sections.items():
            field = 2 if name == "feature_lists" else 1
            self._actions.check_section(field, features, schema.record_count)
        for key, table in self.recode.items():
            if key in known and known[key].kind in ("bytes", "float", "int64"):
                table.of_kind(known[key].kind, key)
        staying = [key for key in known if self._actions.dropped_by(key) is None]
        check_class_names(self.recode, schema, staying, class_names)

    def notices(self, schema: Schema) -> list[str]:
        """What should be known of the result; `schema` is that of all records after the edit."""
        known = {key for part in schema.sections.values() for key in part}
        notices = []
        for key in self.recode:
            text = text_of_label(key)
            if text is None or text in self.recode or self._actions.dropped_by(text) is not None:
                continue
            now = self.rename.get(text, text)
            is_new = now == text and (text in self.add or text in self.rename.values())
            if now in known and not is_new:
                notices.append(
                    f"{key!r} was recoded and {text!r} was not: where both are, they may name "
                    "different classes now. Recode the texts as well, or drop them."
                )
        return notices

    def class_names(self, names: ClassNames | None) -> ClassNames | None:
        """What the classes are called afterwards: names move with the labels that are recoded."""
        return recoded_class_names(self.recode, names)

    def to_json(self) -> dict[str, Any]:
        """drop, rename, add and recode, as far as they are given."""
        document: dict[str, Any] = {
            "drop": list(self.drop),
            "rename": self.rename,
            "add": {key: _shown(value) for key, value in self.add.items()},
            "recode": {key: table.to_json() for key, table in self.recode.items()},
        }
        return {name: value for name, value in document.items() if value}

    def _content(
        self, data: memoryview, section: Section, last: Mapping[tuple[int, bytes], Entry]
    ) -> list[BytesLike]:
        """The new content of a map, in pieces."""
        pieces: list[BytesLike] = []
        at = section.content
        for entry in section.entries:
            action: Action = entry.wanted
            if action is WATCHED:
                continue
            pieces.append(data[at : entry.start])
            at = entry.stop
            if action is not DROPPED:
                counts = bool(last) and last[section.field, entry.key] is entry
                pieces.append(_edited(data, entry, action, section.field, counts=counts))
        pieces.append(data[at : section.stop])
        return pieces


def _edited(data: memoryview, entry: Entry, action: Action, field: int, *, counts: bool) -> bytes:
    """The field of an entry with another name, or other values, or both."""
    replaced: list[tuple[int, int, bytes]] = []
    if action.name is not None:
        replaced.append((entry.key_start, entry.key_stop, delimited(1, action.name)))
    if action.recoder is not None and counts and entry.value_start < entry.value_stop:
        value = bytes(data[entry.value_start : entry.value_stop])
        replaced.append((entry.value_start, entry.value_stop, action.recoder(value, field)))
    pieces: list[BytesLike] = []
    at = entry.content
    for start, stop, new in sorted(replaced):
        pieces += (data[at:start], new)
        at = stop
    return delimited(1, *pieces, data[at : entry.stop])


def _names(drop: Iterable[str]) -> tuple[str, ...]:
    if isinstance(drop, (str, bytes)) or not isinstance(drop, Iterable):
        raise OptionError(f"drop is {drop!r:.60}; expected a list of names")
    names = tuple(dict.fromkeys(drop))
    for name in names:
        encode_key(name)
    return names


def _checked(option: str, given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise OptionError(f"{option} is {given!r:.60}; expected a dict by name of the feature")
    for key in given:
        encode_key(key)
    return given


def _field_of(key: str, value: Any) -> bytes:
    """The map entry of a feature that is added."""
    if value is None:
        raise OptionError(f"add has no value for {key!r}")
    payload = encode_example({key: value})
    (section,) = sections_of(payload)
    return payload[section.content : section.stop]


def _unknown(name: str, known: Mapping[str, Any]) -> OptionError:
    hint = names_like(name, known, "no record has any features")
    return OptionError(f"no record has a feature {name!r}; {hint}")


def _shown(value: Any) -> Any:
    """A value that is added, as JSON has it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_shown(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "surrogateescape")
    return value
