"""From what a source read to the bytes of a record: pictures, keys, kinds, encoding."""

from __future__ import annotations

from collections.abc import Mapping

from recordsmith.errors import OptionError
from recordsmith.example import (
    Kind,
    SequenceExample,
    decode_payload,
    encode_example,
    encode_sequence_example,
)
from recordsmith.image import PictureOptions
from recordsmith.packing.keys import KeyScheme
from recordsmith.packing.pictures import apply_picture_options
from recordsmith.sources import Content, Note


class Preparation:
    """Turns the content of samples into payloads. For several threads at once.

    kinds: of features that their values leave open, by usual keys.
    keys: what features are called in the records; None for the usual keys.
    pictures: how they are stored; None for their bytes, untouched.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        keys: KeyScheme | None = None,
        pictures: PictureOptions | None = None,
    ) -> None:
        self._keys = keys
        self._kinds = kinds if keys is None else keys.renamed(kinds)
        self._pictures = PictureOptions() if pictures is None else pictures

    @property
    def is_heavy(self) -> bool:
        """Whether a sample costs more than handing it to another thread."""
        return not self._pictures.is_default

    def payload(self, content: Content, note: Note) -> bytes:
        """The payload of one record.

        Raises:
            CorruptDataError: a picture cannot be decoded.
            SourceError: a picture cannot be stored as it shall be.
            OptionError: the keys do not fit the features, or pictures or keys are to be changed in
                a record that is no Example.
        """
        changes = self.is_heavy or self._keys is not None
        if isinstance(content, bytes):
            if not changes:
                return content
            content = decode_payload(content)
        if isinstance(content, SequenceExample):
            if changes:
                raise OptionError("keys and pictures are changed in Examples, not SequenceExamples")
            return encode_sequence_example(*content, self._kinds)
        content = apply_picture_options(content, self._pictures, note)
        if self._keys is not None:
            content = self._keys.apply(content)
        return encode_example(content, self._kinds)
