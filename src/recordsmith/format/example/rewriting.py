"""Drop, rename, add or change features of many payloads, in wire format.

The compiled kernel asks the caller what to do with each new key and value, and caches the results.
Unchanged features are copied without decoding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recordsmith.format.example.codec import decode_payload
from recordsmith.format.example.kernel import rewriting
from recordsmith.format.example.payload import classify, encode_key
from recordsmith.format.example.spans import delimited
from recordsmith.support.buffers import BytesLike, Int64Array, as_view
from recordsmith.support.errors import NotAnExampleError, OptionError

_GOOD, _CLASH, _TOO_LONG = (rewriting.CODES[name] for name in ("good", "clash", "too long"))
_PIECE_BYTES = 2 << 20  # approximate: added features may make pieces larger
_LONGEST_BYTES = 2**31 - 1  # of a message: the limit of protobuf readers


class KeyAction(NamedTuple):
    """The change of the features with one key.

    drops: whether to remove them.
    name: their new key; None keeps the key.
    new_value: called with the field of a value and the field of its map (1: features, 2: feature
        lists), returns the new field of the value; cached. None keeps the values.
    key: their key, if the action is for one key only.
    """

    drops: bool = False
    name: bytes | None = None
    new_value: Callable[[bytes, int], bytes] | None = None
    key: bytes | None = None


class Rewriter:
    """Rewrites payloads. For one thread at a time."""

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
            actions: the first one is for keys that do not change.
            action_of: called with the key of a feature, returns the index of its action.
            added: fields of map entries by key, added to the last feature map of every record.
            refuse_clash: called with the keys of a record in which two features would get one
                name, each with the field of its map; must raise.
            most_bytes: the size limit of a payload.
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
        """The record that the last call reached: the one that an error is about."""
        return self._kernel.row

    def rewrite(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> Iterator[tuple[memoryview, Int64Array]]:
        """Yield the new payloads of some records in order, in pieces.

        Args:
            starts, lengths: int64, (count,): the payloads are buffer[start : start + length].

        Yields:
            (data, offsets) of the next payloads: data[offsets[i] : offsets[i + 1]].
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
                f"the record would become longer than {self._most_bytes:,} bytes, the limit of "
                "protobuf readers"
            )
        decoded: Any = decode_payload(payload)  # raises if the payload is invalid
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
        raise NotAnExampleError(classify(payload))


def _stays_as(action: KeyAction, numbers: Mapping[bytes, int]) -> int:
    """Return the number of the name that a feature keeps, if no other feature may take it."""
    if action.drops or action.name is not None or action.key is None:
        return -1
    return numbers.get(action.key, -1)
