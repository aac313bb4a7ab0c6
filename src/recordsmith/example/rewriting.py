"""Payloads with other features, many at once: left out, renamed, added, or with other values.

A thin layer over the compiled kernel, which asks what to do for each key and each value, and
remembers the answers: so Python is called for what was not met before. What happens to whom is said
by the caller; here it is done, on the wire, and what does not change is not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.errors import OptionError
from recordsmith.example.codec import decode_payload
from recordsmith.example.kernel import rewriting
from recordsmith.example.payload import classify, encode_key, not_an_example
from recordsmith.example.pieces import delimited

_GOOD, _CLASH, _TOO_LONG = (rewriting.CODES[name] for name in ("good", "clash", "too long"))
_PIECE_BYTES = 2 << 20  # about: what is added may make much of little
_LONGEST_BYTES = 2**31 - 1  # of a message: no reader of protobuf takes a longer one


class KeyAction(NamedTuple):
    """What happens to the features of one key.

    drops: they are left out.
    name: their new key; None: they keep theirs.
    new_value: the field of a value, and the field of the map that it is in (1: features, 2: feature
        lists) -> the new field of the value; None: values stay. Answers are remembered.
    key: their key, of an action that is for one key only.
    """

    drops: bool = False
    name: bytes | None = None
    new_value: Callable[[bytes, int], bytes] | None = None
    key: bytes | None = None


class Rewriter:
    """Makes other payloads of many. For one thread at a time."""

    def __init__(
        self,
        actions: Sequence[KeyAction],
        action_of: Callable[[bytes], int],
        added: Mapping[bytes, bytes],
        refuse_clash: Callable[[Collection[tuple[int, bytes]]], None],
        *,
        most_bytes: int = _LONGEST_BYTES,
    ) -> None:
        """
        Args:
            actions: the first is that of keys that stay as they are.
            action_of: the key of a feature -> the number of its action.
            added: fields of map entries by their keys: every record gets these, in the last of
                its maps of features.
            refuse_clash: told the keys of a record, each with the field of its map, in which two
                features would have one name; it raises.
            most_bytes: no payload may become longer.
        """
        made = [action.name for action in actions if action.name is not None]
        numbers = {name: number for number, name in enumerate(dict.fromkeys((*made, *added)))}
        recoders = [action.new_value for action in actions if action.new_value is not None]
        self._refuse_clash = refuse_clash
        self._most_bytes = most_bytes
        recoder_numbers = iter(range(len(recoders)))
        self._kernel = rewriting.Rewriter(
            [
                (
                    action.drops,
                    None if action.name is None else delimited(1, action.name),
                    -1 if action.new_value is None else next(recoder_numbers),
                    _stays_as(action, numbers),
                    -1 if action.name is None else numbers[action.name],
                )
                for action in actions
            ],
            bytes(name in added for name in numbers),
            b"".join(added.values()),
            action_of,
            lambda recoder, field, value: recoders[recoder](value, field),
            most_bytes,
        )

    @property
    def row(self) -> int:
        """The record that the last call came to: that which an error is about."""
        return self._kernel.row

    def rewrite(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> Iterator[tuple[memoryview, Int64Array]]:
        """The new payloads of some records, in their order, piece by piece.

        Args:
            starts, lengths: int64, (count,): the payloads are buffer[start : start + length].

        Yields:
            (data, offsets) of the next so many: data[offsets[i] : offsets[i + 1]].

        Raises:
            CorruptDataError: a payload is neither an Example nor a SequenceExample.
            OptionError: one would be longer than 2 GiB.
        """
        stop = 0
        while stop < len(starts):
            code, stop, data, offsets = self._kernel.rewrite(
                buffer, starts, lengths, stop, _PIECE_BYTES
            )
            if code != _GOOD:
                start = int(starts[stop])
                self._refuse(code, as_view(buffer)[start : start + int(lengths[stop])])
            yield memoryview(data), np.frombuffer(offsets, np.int64)  # type: ignore[arg-type, call-overload]

    def _refuse(self, code: int, payload: memoryview) -> None:
        if code == _TOO_LONG:
            raise OptionError(
                f"the record would become longer than {self._most_bytes:,} bytes, which no reader "
                "of Examples takes"
            )
        decoded: Any = decode_payload(payload)  # says what is wrong with it, if anything is
        if code == _CLASH:
            is_sequence = isinstance(decoded, tuple)
            sections = decoded if is_sequence else (decoded,)
            self._refuse_clash(
                [
                    (field, encode_key(key))
                    for field, features in enumerate(sections, 1)
                    for key in features
                ]
            )
        raise not_an_example(classify(payload))


def _stays_as(action: KeyAction, numbers: Mapping[bytes, int]) -> int:
    """The number of the name that a feature keeps, if it is one that others may not get."""
    if action.drops or action.name is not None or action.key is None:
        return -1
    return numbers.get(action.key, -1)
