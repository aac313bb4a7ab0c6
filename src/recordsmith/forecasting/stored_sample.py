"""Store a sample in every variant, with the functions of `pack`, and keep only the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recordsmith.errors import (
    DataError,
    FileAccessError,
    MissingExtraError,
    SourceError,
)
from recordsmith.example import SequenceExample, decode_payload
from recordsmith.example.keys import FORMAT, IMAGE
from recordsmith.forecasting.fidelity import Fidelity, compare_pixels
from recordsmith.forecasting.image_header import NO_IMAGE, ImageHeaderFigures, read_figures
from recordsmith.forecasting.variants import FLOAT_BYTES, FLOATS, ORIGINAL, Variant
from recordsmith.image import ImageOptions, probe_image, store_image
from recordsmith.image.decoding.memory import reserve_for_decoding
from recordsmith.image.decoding.pixels import decode_exact
from recordsmith.image.storing.image_options import MAX_PIXELS
from recordsmith.image.storing.store import DROPPED
from recordsmith.packing import apply_image_options
from recordsmith.packing.preparing import Preparation
from recordsmith.sources import ignore_note
from recordsmith.sources.samples_ahead import SampleToRead
from recordsmith.wire import FRAME_BYTES


class StoredRecord(NamedTuple):
    """A sample as a variant stores it.

    size_bytes: of its record with framing; 0 if it cannot be stored so.
    content: a hash of the record.
    fidelity: of an image that was encoded with loss; otherwise None.
    drops_alpha: whether a transparent image lost its alpha.
    refusal: why it cannot be stored so; empty if it can.
    """

    size_bytes: int
    content: int
    fidelity: Fidelity | None = None
    drops_alpha: bool = False
    refusal: str = ""


@dataclass
class StoredSample:
    """A sample as all variants store it.

    name: of the sample.
    figures: what its header shows.
    records: by the name of the variant; only the original without an image.
    failure: why it cannot be read or decoded; empty if it can.
    """

    name: str
    figures: ImageHeaderFigures = NO_IMAGE
    records: dict[str, StoredRecord] = field(default_factory=dict)
    failure: str = ""

    def size_in(self, variant: Variant) -> int:
        """The bytes of its record; 0 where it cannot be stored."""
        found = self.records.get(variant.name) or self.records.get(ORIGINAL)
        return 0 if found is None else found.size_bytes


class SampleStorage:
    """Reads samples of a listing and stores them in memory. Thread-safe."""

    def __init__(self, preparation: Preparation, variants: Sequence[Variant]) -> None:
        """`preparation` renames features and encodes records; it must keep images."""
        self._preparation = preparation
        self._variants = variants
        self.missing: dict[str, str] = {}
        """Variants that need a package that is not installed, and the message."""

    def image_features(self, item: SampleToRead) -> tuple[Any, Mapping[str, Any] | None]:
        """Read a sample: its content, and its features if one of them is an encoded image.

        Raises:
            CorruptDataError, FileAccessError, SourceError: it cannot be read.
        """
        content: Any = item.read(ignore_note)
        features = content
        if isinstance(content, bytes):
            try:
                features = decode_payload(content)
            except DataError:
                return content, None  # a record of another type, which is packed unchanged
        if isinstance(features, SequenceExample) or image_of(features) is None:
            return content, None
        return content, features

    def figures(self, item: SampleToRead) -> ImageHeaderFigures:
        """Read what the header of a sample's image shows; NO_IMAGE if it has none."""
        try:
            features = self.image_features(item)[1]
        except (DataError, FileAccessError, SourceError):
            return NO_IMAGE
        return NO_IMAGE if features is None else read_figures(image_of(features) or b"")

    def store(self, item: SampleToRead) -> StoredSample:
        """Store one sample in each variant."""
        found = StoredSample(item.sample.name)
        try:
            content, features = self.image_features(item)
            found.records[ORIGINAL] = self._encoded(content)
        except (DataError, FileAccessError, SourceError) as error:
            found.failure = "; ".join(error.lines)
            return found
        if features is None:
            return found
        data = image_of(features)
        assert data is not None
        found.figures = read_figures(data)
        references: dict[int | None, Any] = {}
        for variant in self._variants[1:]:
            if variant.options is None or variant.name in self.missing:
                continue
            if variant.options.recompress and not found.figures.is_jpeg:
                found.records[variant.name] = found.records[variant.twin]
                continue
            try:
                record = self._stored(features, data, variant.options, references)
            except MissingExtraError as error:
                self.missing[variant.name] = "; ".join(error.lines)
            except DataError as error:
                found.failure = "; ".join(error.lines)
                found.records[variant.name] = StoredRecord(0, 0, refusal=found.failure)
            except SourceError as error:
                found.records[variant.name] = StoredRecord(0, 0, refusal=error.problem)
            else:
                found.records[variant.name] = record
        self._add_floats(found)
        return found

    def _stored(
        self,
        features: Mapping[str, Any],
        data: bytes,
        options: ImageOptions,
        references: dict[int | None, Any],
    ) -> StoredRecord:
        """Store a sample, and compare its pixels if an image was encoded as JPEG.

        Args:
            references: pixels before encoding, by the shorter side; kept for the next variant.
        """
        notes: set[str] = set()
        stored = apply_image_options(features, options, lambda what, _: notes.add(what))
        record = self._encoded(stored)._replace(drops_alpha=DROPPED in notes)
        image = stored[IMAGE]
        is_lossless = options.shrink or options.tiles or options.store == "raw"
        if image is data or is_lossless or stored[FORMAT] != "jpeg":
            return record
        side = options.shorter_side
        if side not in references:
            raw = ImageOptions("raw", shorter_side=side, drop_alpha=True)
            references[side] = _raw_pixels(data, raw)
        with reserve_for_decoding(image, *probe_image(image), max_pixels=MAX_PIXELS):
            decoded = decode_exact(image, max_pixels=MAX_PIXELS).pixels
        return record._replace(fidelity=compare_pixels(references[side], decoded))

    def _encoded(self, content: Any) -> StoredRecord:
        payload = self._preparation.payload(content, ignore_note)
        return StoredRecord(len(payload) + FRAME_BYTES, hash(payload))

    @staticmethod
    def _add_floats(found: StoredSample) -> None:
        """Add the size with PNGs as float32, as matplotlib reads them."""
        raw = found.records.get("raw")
        if raw is not None:
            is_png = found.figures.format == "png" and not raw.refusal
            more = round(FLOAT_BYTES - 1) * found.figures.value_bytes if is_png else 0
            found.records[FLOATS] = raw._replace(size_bytes=raw.size_bytes + more)


def image_of(features: Any) -> bytes | None:
    """The encoded image of a sample; None if it has none or several."""
    value = features.get(IMAGE) if isinstance(features, Mapping) else None
    if value is not None and not isinstance(value, (bytes, str)) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, bytes) else None


def _raw_pixels(data: bytes, options: ImageOptions) -> Any:
    import numpy as np

    raw = store_image(data, options)
    assert raw.depth is not None
    return np.frombuffer(raw.data, raw.dtype).reshape(raw.height, raw.width, raw.depth)
