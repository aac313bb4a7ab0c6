"""Edits of features: drop, rename, add, recode and cast.

Works on serialized payloads: unchanged parts, including unknown fields, are copied byte for byte,
and only recoded and cast features are decoded. Keys refer to the input: features are dropped,
renamed, recoded and cast first, then added. Each key has a numbered action: unchanged keys, dropped
keys, then one action per key with its own edit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import translate
from typing import Any, get_args

import numpy as np

from recordsmith.dataset import ClassNames, KeypointClasses
from recordsmith.format.example import KeyAction, Rewriter, Schema, encode_example
from recordsmith.format.example.keys import KEYPOINT_X
from recordsmith.format.example.payload import decode_key, encode_key
from recordsmith.format.wire import RecordBlock
from recordsmith.support.buffers import BytesLike, Int64Array
from recordsmith.support.errors import DataError, OptionError, option
from recordsmith.support.explaining import check_word
from recordsmith.support.words import suggest_names
from recordsmith.writing.reshaping.casting import Caster, CastKind
from recordsmith.writing.reshaping.recoding import (
    Recoder,
    RecodeTable,
    TableLike,
    ValueChange,
    check_class_names,
    recoded_class_names,
    recoded_keypoint_classes,
)

_UNCHANGED, _DROPPED = 0, 1  # numbers of actions


class RecordOptionError(Exception):
    """The edits do not fit a record.

    number: of the record in its block.
    error: the reason.
    """

    def __init__(self, number: int, error: OptionError) -> None:
        super().__init__(str(error))
        self.number = number
        self.error = error


class Edits:
    """Features to drop, rename, add, recode and cast. Thread-safe.

    Example:
        edits = rs.Edits(drop=["image/filename"], rename={"image/class/label": "label"})
        rs.reshard("out", "edited", edits=edits)
    """

    def __init__(
        self,
        *,
        drop: Iterable[str] = (),
        rename: Mapping[str, str] | None = None,
        add: Mapping[str, Any] | None = None,
        recode: Mapping[str, TableLike] | None = None,
        cast: Mapping[str, CastKind] | None = None,
    ) -> None:
        """
        Args:
            drop: names of features, or patterns such as `image/object/*`.
            rename: new names by old ones.
            add: values by name, as in `encode_example`, equal for all records. In
                SequenceExamples they are added to the context.
            recode: a table of new values by old ones for each feature: a dict, or the path of a
                CSV file with the columns old, new and optionally name.
            cast: `int64` or `float` for each feature whose numbers or text become numbers of that
                kind, after recoding. A number that would change is an error.

        Raises:
            OptionError: they contradict each other, or a table is invalid.
            FileAccessError: a table cannot be read.
        """
        self.drop = _names(drop)
        self.rename = dict(_checked("rename", rename))
        self.add = dict(_checked("add", add))
        tables = _checked("recode", recode)
        self.recode = {key: RecodeTable.from_option(table, key) for key, table in tables.items()}
        self.cast = dict(_checked("cast", cast))
        for kind in self.cast.values():
            check_word("cast", kind, get_args(CastKind))
        self._patterns = {
            name: re.compile(translate(name)) for name in self.drop if set(name) & set("*?[")
        }
        self._check_names()
        self._added = {
            encode_key(key): _encode_value(key, value) for key, value in self.add.items()
        }
        self._actions = [KeyAction(), KeyAction(drops=True)]
        self._numbers: dict[bytes, int] = {}
        edited = (*self.rename, *self.recode, *self.cast, *self.rename.values(), *self.add)
        for key in dict.fromkeys(edited):
            new, table, kind = self.rename.get(key), self.recode.get(key), self.cast.get(key)
            change: ValueChange | None = None if table is None else Recoder(key, table)
            self._numbers[encode_key(key)] = len(self._actions)
            self._actions.append(
                KeyAction(
                    name=None if new is None else encode_key(new),
                    new_value=change if kind is None else Caster(key, kind, change),
                    key=encode_key(key),
                )
            )
        self._idle: list[Rewriter] = []

    def __getstate__(self) -> dict[str, Any]:
        """Leave the caches out of copies and pickles."""
        return {**self.__dict__, "_idle": []}

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""
        return not (self.drop or self.rename or self.add or self.recode or self.cast)

    # -- records -------------------------------------------------------------------------------

    def rewrite(self, block: RecordBlock) -> Iterator[tuple[memoryview, Int64Array]]:
        """Yield the payloads of a block with these edits, as (data, offsets) in pieces.

        Raises:
            CorruptDataError: a payload is neither an Example nor a SequenceExample; a value is
                missing in its table, or cannot be cast (feature-value-mismatch). `record` counts
                from the start of the block.
            RecordOptionError: a feature gets the name of another feature of the record.
        """
        rewriter = self._rewriter()
        try:
            yield from rewriter.rewrite(block.buffer, block.starts, block.lengths)
        except DataError as error:
            error.record = rewriter.row
            raise
        except OptionError as error:
            raise RecordOptionError(rewriter.row, error) from None
        self._idle.append(rewriter)

    def apply(self, payload: BytesLike) -> bytes:
        """Return one payload with these edits.

        Raises:
            CorruptDataError: as in `rewrite`.
            OptionError: a feature gets the name of another feature of the record.
        """
        starts, lengths = np.array([0], np.int64), np.array([len(payload)], np.int64)
        rewriter = self._rewriter()
        ((data, _),) = rewriter.rewrite(payload, starts, lengths)
        self._idle.append(rewriter)
        return bytes(data)

    def _rewriter(self) -> Rewriter:
        """Return a rewriter that no other thread uses, with warm caches if possible."""
        try:
            return self._idle.pop()
        except IndexError:
            return Rewriter(self._actions, self._action_number, self._added, self._check_record)

    def _action_number(self, key: bytes) -> int:
        if self.drop and self._dropped_by(decode_key(key)) is not None:
            return _DROPPED
        return self._numbers.get(key, _UNCHANGED)

    def _matches(self, name: str, key: str) -> bool:
        pattern = self._patterns.get(name)
        return name == key or (pattern is not None and pattern.match(key) is not None)

    def _dropped_by(self, key: str) -> str | None:
        return next((name for name in self.drop if self._matches(name, key)), None)

    def _check_record(self, keys: Iterable[tuple[int, bytes]]) -> None:
        """Check that no two features of a record get the same name."""
        kept, renamed = set(), []
        for field, key in keys:
            action = self._actions[self._action_number(key)]
            if action.name is not None:
                renamed.append((field, action.name, key))
            elif not action.drops:
                kept.add((field, key))
        for field, new, old in renamed:
            if (field, new) in kept:
                raise OptionError(
                    f"cannot rename {decode_key(old)!r} to {decode_key(new)!r}: a record already "
                    "has that feature",
                    option="rename",
                    value=decode_key(new),
                    remedy="Drop it, or choose another name.",
                )
        for key in self._added:
            if (1, key) in kept:
                raise OptionError(
                    f"cannot add {decode_key(key)!r}: a record already has that feature",
                    option="add",
                    value=decode_key(key),
                    remedy="To replace it, drop it as well.",
                )

    # -- checks --------------------------------------------------------------------------------

    def check(self, schema: Schema, class_names: ClassNames | None = None) -> None:
        """Check against the schema of all records, before reading any.

        Raises:
            OptionError: no record has a given feature; a table does not fit its feature; class
                names would become wrong.
        """
        if schema.payload in ("none", "mixed"):
            return
        known = {key: feature for part in schema.sections.values() for key, feature in part.items()}
        for name in (*self.rename, *self.recode, *self.cast, *self.drop):
            if schema.is_complete and not any(self._matches(name, key) for key in known):
                raise _unknown(name, known)
        for key, table in self.recode.items():
            if key in known and known[key].kind in ("bytes", "float", "int64"):
                table.for_kind(known[key].kind, key)
        staying = [key for key in known if self._dropped_by(key) is None]
        check_class_names(self.recode, schema, staying, class_names)

    def _check_names(self) -> None:
        news = list(self.rename.values())
        for old, new in self.rename.items():
            encode_key(new)
            if news.count(new) > 1:
                problem = f"{option('rename')} gives several features the name {new!r}"
                raise OptionError(problem, option="rename", value=new)
            if new in self.add:
                problem = f"{option('rename')} and {option('add')} both create the feature {new!r}"
                raise OptionError(problem, option="add", value=new)
            if old == new:
                problem = f"{option('rename')} gives {old!r} the same name"
                raise OptionError(problem, option="rename", value=new)
        for key in (*self.rename, *self.recode, *self.cast):
            name = self._dropped_by(key)
            if name is not None:
                pattern = "" if name == key else f" (by {name!r})"
                raise OptionError(
                    f"{option('drop')} removes {key!r}{pattern}, which is also renamed, recoded "
                    "or cast",
                    option="drop",
                    value=name,
                )

    # -- results -------------------------------------------------------------------------------

    def stale_texts(self, schema: Schema) -> Iterator[str]:
        """Yield a notice for each recoded label whose text, `a/text` of `a/label`, stayed.

        `schema`: of the records after the edit.
        """
        known = {key for part in schema.sections.values() for key in part}
        for key in self.recode:
            folder, _, last = key.rpartition("/")
            text = f"{folder}/text"
            if last == "label" and text in known and text not in (*self.recode, *self.add):
                yield (
                    f"{key!r} was recoded but {text!r} was not, so they may name different "
                    "classes; recode or drop the texts as well"
                )

    def class_names(self, names: ClassNames | None) -> ClassNames | None:
        """Return the class names after the edit: names follow recoded labels."""
        return recoded_class_names(self.recode, names)

    def keypoint_classes(self, classes: KeypointClasses) -> KeypointClasses:
        """Return the keypoints of classes after the edit, which may drop those of all objects."""
        dropped = KEYPOINT_X in self.drop
        return {} if dropped else recoded_keypoint_classes(self.recode, classes)

    def to_json(self) -> dict[str, Any]:
        """Return drop, rename, add, recode and cast if they are set."""
        document: dict[str, Any] = {
            "drop": list(self.drop),
            "rename": self.rename,
            "add": {key: _shown(value) for key, value in self.add.items()},
            "recode": {key: table.to_json() for key, table in self.recode.items()},
            "cast": self.cast,
        }
        return {name: value for name, value in document.items() if value}


def _names(drop: Iterable[str]) -> tuple[str, ...]:
    if isinstance(drop, (str, bytes)) or not isinstance(drop, Iterable):
        raise OptionError(option="drop", value=drop, expected="a list of names")
    names = tuple(dict.fromkeys(drop))
    for name in names:
        encode_key(name)
    return names


def _checked(name: str, given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise OptionError(
            option=name, value=given, expected="a dict with names of features as keys"
        )
    for key in given:
        encode_key(key)
    return given


def _encode_value(key: str, value: Any) -> bytes:
    """Encode an added feature as a map entry."""
    if value is None:
        raise OptionError(f"{option('add')} has no value for {key!r}", option="add")
    payload = encode_example({key: value})
    after_length = next(at for at in range(1, len(payload)) if payload[at] < 128) + 1
    return payload[after_length:]


def _unknown(name: str, known: Mapping[str, Any]) -> OptionError:
    hint = suggest_names(name, known, "the records have no features")
    return OptionError(f"no record has a feature {name!r}; {hint}", value=name)


def _shown(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_shown(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "surrogateescape")
    return value
