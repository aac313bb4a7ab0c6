"""Converts the content of a sample to the payload of a record: images, keys, encoding."""

from __future__ import annotations

from collections.abc import Mapping

from recordsmith.errors import OptionError, option
from recordsmith.example import (
    Kind,
    SequenceExample,
    decode_payload,
    encode_example,
    encode_sequence_example,
)
from recordsmith.image import ImageOptions
from recordsmith.packing.images import (
    IMAGES,
    apply_image_options,
    check_images,
    check_png_chunks,
)
from recordsmith.packing.keys import KeyScheme
from recordsmith.sources import Content, Note


class SampleEncoder:
    """Converts the content of samples to payloads. Thread-safe.

    kinds: the kinds of features that cannot be inferred from values, by canonical key.
    keys: names of features in the records; None for the canonical keys.
    image_options: how to store images; None keeps their bytes.
    checks_images: whether to decode every stored image completely.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        keys: KeyScheme | None = None,
        image_options: ImageOptions | None = None,
        *,
        checks_images: bool = False,
    ) -> None:
        self.keys = keys
        self._kinds = kinds if keys is None else keys.renamed(kinds)
        self._images = ImageOptions() if image_options is None else image_options
        self._checks_images = checks_images
        self.is_heavy = checks_images or not self._images.is_default
        """Whether preparing a sample costs more than handing it to another thread."""
        self.keeps_records = not self.is_heavy and keys is None
        """Whether the payloads of records are stored unchanged and unchecked."""
        named = IMAGES if keys is None else map(keys.new_key, IMAGES)
        self._image_keys = frozenset(key for key in named if key is not None)

    def payload(self, content: Content, note: Note) -> bytes:
        """Convert the content of a sample to the payload of a record."""
        payload = self._payload(content, note)
        if self._checks_images:
            check_images(payload, self._image_keys)
        return payload

    def _payload(self, content: Content, note: Note) -> bytes:
        changes = self.keys is not None or not self._images.is_default
        if isinstance(content, bytes):
            if not changes:
                return content
            content = decode_payload(content)
        if isinstance(content, SequenceExample):
            if changes:
                raise OptionError(
                    f"{option('keys')} and image options do not support SequenceExamples",
                    option="keys" if self.keys is not None else "image_options",
                )
            return encode_sequence_example(*content, self._kinds)
        check_png_chunks(content)
        content = apply_image_options(content, self._images, note)
        if self.keys is not None:
            content = self.keys.apply(content)
        return encode_example(content, self._kinds)
