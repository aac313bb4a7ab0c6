"""Records with other features: dropped, renamed, added, or with other values.

All is done on the wire: a payload is walked down to the keys of its features, and what does not
change is copied as it is, with its place, its spelling and whatever is unknown. Only features that
are recoded are decoded. Keys are those that records have before the edit: first features are
dropped, renamed and recoded, then others are added.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

import numpy as np

from recordsmith.buffers import BytesLike, as_view
from recordsmith.dataset import ClassNames, class_names_of
from recordsmith.errors import CorruptDataError, Defect, OptionError, names_like
from recordsmith.example import (
    Entry,
    FeatureSchema,
    Schema,
    Section,
    classify,
    decode_example,
    decode_payload,
    decode_sequence_example,
    delimited,
    encode_example,
    encode_sequence_example,
    sections_of,
)
from recordsmith.example.keys import MASK
from recordsmith.example.payload import encode_key, not_an_example
from recordsmith.reshaping.recode_table import OTHERS, RecodeTable, Recoding, TableLike

_KEPT_ANSWERS = 10_000  # keys, and recoded values, that are not worked out again
_LARGEST_KEPT_BYTES = 1000


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
        self._patterns = [
            (name, re.compile(translate(name))) for name in self.drop if set(name) & set("*?[")
        ]
        self._check_names()
        self._added = {encode_key(key): _field_of(key, value) for key, value in self.add.items()}
        self._recoders = {key: _Recoder(key, table) for key, table in self.recode.items()}
        watched = {encode_key(new) for new in self.rename.values()} | self._added.keys()
        self._actions = _Actions(self, watched)
        self._may_clash = bool(watched)

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
        if self._may_clash:
            self._check_record(
                (section.field, entry.key) for section in sections for entry in section.entries
            )
        last = {}
        if self._recoders:  # of equal keys the last one counts: others need not be in a table
            last = {(part.field, entry.key): entry for part in sections for entry in part.entries}
        owner: Section | None = None
        if self._added:
            owner = next((section for section in reversed(sections) if section.field == 1), None)
        pieces: list[BytesLike] = []
        at = 0
        for section in sections:
            if section is owner or any(entry.wanted is not _WATCHED for entry in section.entries):
                content = self._content(data, section, last)
                added = self._added.values() if section is owner else ()
                pieces += (data[at : section.start], delimited(section.field, *content, *added))
                at = section.stop
        pieces.append(data[at:])
        if self._added and owner is None:
            pieces.append(delimited(1, *self._added.values()))
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
            if schema.is_complete and not any(self._drops(key, name) for key in known):
                raise _unknown(name, known)
        for name, fields in schema.sections.items():
            self._check_section(fields, schema.record_count, is_lists=name == "feature_lists")
        for key, table in self.recode.items():
            if key in known and known[key].kind in ("bytes", "float", "int64"):
                table.of_kind(known[key].kind, key)
        self._check_labels(schema, class_names)

    def class_names(self, names: ClassNames | None) -> ClassNames | None:
        """What the classes are called afterwards: names move with the labels that are recoded.

        A new label is called what the table's column `name` says; else what it was called before,
        if it is an old label that stays as it is; else as the first of the old labels, in the
        order of the table, that become it.
        """
        tables = [table for key, table in self.recode.items() if _is_label(key)]
        if not tables:
            return names
        try:
            moved = _moved_names(tables[0], names or ())
        except OptionError:  # the labels are text
            return names
        return class_names_of(moved) if moved or names is not None else None

    def to_json(self) -> dict[str, Any]:
        """drop, rename, add and recode, as far as they are given."""
        document: dict[str, Any] = {
            "drop": list(self.drop),
            "rename": self.rename,
            "add": {key: _shown(value) for key, value in self.add.items()},
            "recode": {key: table.to_json() for key, table in self.recode.items()},
        }
        return {name: value for name, value in document.items() if value}

    # -- one record ----------------------------------------------------------------------------

    def _content(
        self, data: memoryview, section: Section, last: Mapping[tuple[int, bytes], Entry]
    ) -> list[BytesLike]:
        """The new content of a map, in pieces."""
        pieces: list[BytesLike] = []
        at = section.content
        for entry in section.entries:
            action: _Action = entry.wanted
            if action is _WATCHED:
                continue
            pieces.append(data[at : entry.start])
            at = entry.stop
            if action is not _DROPPED:
                counts = bool(last) and last[section.field, entry.key] is entry
                pieces.append(_edited(data, entry, action, section.field, counts=counts))
        pieces.append(data[at : section.stop])
        return pieces

    def action(self, key: bytes) -> _Action | None:
        """What happens to a feature of this name; None: nothing."""
        name = _text(key)
        if any(self._drops(name, dropped) for dropped in self.drop):
            return _DROPPED
        if name in self.rename or name in self.recode:
            new = self.rename.get(name)
            return _Action(None if new is None else encode_key(new), self._recoders.get(name))
        return None

    # -- what does not go together -------------------------------------------------------------

    def _check_names(self) -> None:
        """Whatever contradicts itself, without any record."""
        for old, new in self.rename.items():
            encode_key(new)
            if list(self.rename.values()).count(new) > 1:
                raise OptionError(f"rename gives several features the name {new!r}")
            if new in self.add:
                raise OptionError(f"rename and add both make a feature {new!r}")
            if old == new:
                raise OptionError(f"rename gives {old!r} the name that it has")
        for key in (*self.rename, *self.recode):
            for name in self.drop:
                if self._drops(key, name):
                    raise OptionError(
                        f"drop takes {key!r} away{'' if name == key else f' by {name!r}'}, which "
                        "is also to be renamed or recoded"
                    )

    def _check_section(
        self, fields: Mapping[str, FeatureSchema], record_count: int, *, is_lists: bool
    ) -> None:
        """What must happen in some record, whichever has which feature."""
        number = 2 if is_lists else 1
        for key in self.add:
            if key in fields:
                self._check_record([(number, encode_key(key))])
        for old, new in self.rename.items():
            pair = [fields[key] for key in (old, new) if key in fields]
            if sum(feature.present for feature in pair) > record_count:
                self._check_record([(number, encode_key(key)) for key in (old, new)])

    def _check_record(self, keys: Iterable[tuple[int, bytes]]) -> None:
        """Two features of one record cannot have one name."""
        kept, made = set(), []
        for field, key in keys:
            action = self._actions[key]
            if action is None or (action is not _DROPPED and action.name is None):
                kept.add((field, key))
            elif action.name is not None:
                made.append((field, action.name, key))
        for field, new, old in made:
            if (field, new) in kept:
                raise OptionError(
                    f"{_text(old)!r} cannot be renamed to {_text(new)!r}: a record has a "
                    "feature of that name, too. Drop it as well, or choose another name."
                )
        for key in self._added:
            if (1, key) in kept:
                raise OptionError(
                    f"{_text(key)!r} cannot be added: a record has a feature of that name. To "
                    "replace it, drop it as well."
                )

    def _drops(self, key: str, name: str) -> bool:
        return key == name or any(
            given == name and pattern.match(key) for given, pattern in self._patterns
        )

    def _check_labels(self, schema: Schema, class_names: ClassNames | None) -> None:
        """All features that the names of classes speak of must change together."""
        recoded = {key: table for key, table in self.recode.items() if _is_label(key)}
        if not recoded or class_names is None:
            return
        schema.check_complete("which features the names of classes speak of cannot be told")
        known = {key for part in schema.sections.values() for key in part}
        first, table = next(iter(recoded.items()))
        _check_named(table, class_names)
        for key in sorted(known):
            is_mask = key == MASK
            if not (is_mask or _is_label(key)) or any(self._drops(key, name) for name in self.drop):
                continue
            other = recoded.get(key)
            if other is None or other.to_json() != table.to_json():
                what_to_do = (
                    "the pixels of masks cannot be recoded: drop the masks, or leave the labels"
                    if is_mask
                    else "recode both with the same table, or drop one"
                )
                raise OptionError(
                    f"the names of classes speak of {first!r} and of {key!r}; if only one is "
                    f"recoded they are not true any more: {what_to_do}"
                )


@dataclass(frozen=True)
class _Action:
    """A new name, new values, or both."""

    name: bytes | None
    recoder: _Recoder | None


_DROPPED = _Action(None, None)
_WATCHED = _Action(None, None)  # it stays, but nothing else may get its name


class _Actions(dict[bytes, "_Action | None"]):
    """What happens to each key, worked out when it is first met."""

    def __init__(self, edits: Edits, watched: set[bytes]) -> None:
        super().__init__()
        self._edits = edits
        self._watched = watched

    def __missing__(self, key: bytes) -> _Action | None:
        action = self._edits.action(key)
        if action is None and key in self._watched:
            action = _WATCHED
        if len(self) < _KEPT_ANSWERS:
            self[key] = action
        return action


class _Recoder:
    """Replaces the values of one feature."""

    def __init__(self, key: str, table: RecodeTable) -> None:
        self._key = key
        self._table = table
        self._of_kind: dict[str, Recoding] = {}
        self._known: dict[tuple[int, bytes], bytes] = {}

    def __call__(self, value: bytes, field: int) -> bytes:
        """The value's field of a map entry -> another; `field` tells features from lists."""
        known = self._known.get((field, value))
        if known is None:
            known = self._lists(value) if field == 2 else self._feature(value)
            if len(value) <= _LARGEST_KEPT_BYTES and len(self._known) < _KEPT_ANSWERS:
                self._known[field, value] = known
        return known

    def _feature(self, value: bytes) -> bytes:
        values = decode_example(delimited(1, delimited(1, value)))[""]
        if not len(values):
            return value
        return _value_of(encode_example({"": self._new(values)}))

    def _lists(self, value: bytes) -> bytes:
        steps = decode_sequence_example(delimited(2, delimited(1, value))).feature_lists[""]
        if not any(map(len, steps)):
            return value
        return _value_of(encode_sequence_example({}, {"": [self._new(step) for step in steps]}))

    def _new(self, values: Any) -> Any:
        """The new values of a feature."""
        if not len(values):
            return values
        kind = "bytes" if isinstance(values, list) else str(values.dtype).removesuffix("32")
        recoding = self._of_kind.get(kind)
        if recoding is None:
            recoding = self._of_kind[kind] = self._table.of_kind(kind, self._key)
        olds = values if kind == "bytes" else values.tolist()
        news = [recoding.new(old) for old in olds]
        if None in news:
            old = olds[news.index(None)]
            raise CorruptDataError(
                Defect.FEATURE_VALUE,
                f"feature {self._key!r} is {_readable(old)}, for which {self._table.where} has no "
                f"new value. Add a row for it, or one whose old value is {OTHERS} for all others "
                f"({OTHERS},{OTHERS} leaves them as they are).",
            )
        return news if kind == "bytes" else np.array(news, np.int64)


def _edited(data: memoryview, entry: Entry, action: _Action, field: int, *, counts: bool) -> bytes:
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


def _value_of(payload: bytes) -> bytes:
    """The value's field of the only map entry of a payload."""
    (section,) = sections_of(payload)
    (entry,) = section.entries
    return payload[entry.value_start : entry.value_stop]


def _is_label(key: str) -> bool:
    """Whether the names of classes speak of this feature, as everywhere in recordsmith."""
    return key.rpartition("/")[2] in ("label", "labels")


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


def _check_named(table: RecodeTable, names: ClassNames) -> None:
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


def _unknown(name: str, known: Mapping[str, Any]) -> OptionError:
    hint = names_like(name, known, "no record has any features")
    return OptionError(f"no record has a feature {name!r}; {hint}")


def _text(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")


def _readable(value: int | bytes) -> str:
    return str(value) if isinstance(value, int) else repr(_text(value))[:80]


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
