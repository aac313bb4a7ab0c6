"""From what a source read to the bytes of a record: keys, kinds, encoding."""

from __future__ import annotations

from collections.abc import Mapping

from recordsmith.example import (
    Kind,
    SequenceExample,
    decode_payload,
    encode_example,
    encode_sequence_example,
)
from recordsmith.packing.keys import KeyScheme
from recordsmith.sources import Content, Note


class Preparation:
    """Turns the content of samples into payloads. For several threads at once."""

    def __init__(self, kinds: Mapping[str, Kind], keys: KeyScheme | None = None) -> None:
        self._keys = keys
        self._kinds = kinds if keys is None else keys.renamed(kinds)

    @property
    def is_heavy(self) -> bool:
        """Whether it costs more than handing a sample to another thread."""
        return False

    def payload(self, content: Content, note: Note) -> bytes:  # noqa: ARG002
        """The payload of one record."""
        if isinstance(content, bytes):
            if self._keys is None:
                return content
            content = decode_payload(content)
        if isinstance(content, SequenceExample):
            return encode_sequence_example(*content, self._kinds)
        if self._keys is not None:
            content = self._keys.apply(content)
        return encode_example(content, self._kinds)
