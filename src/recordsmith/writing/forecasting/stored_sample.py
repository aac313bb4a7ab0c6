"""The ways to store images, and what a sample is in each of them, with the functions of `pack`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from recordsmith.format.example import decode_payload
from recordsmith.format.example.feature_values import only_value
from recordsmith.format.example.keys import FORMAT, IMAGE
from recordsmith.format.wire import FRAME_BYTES
from recordsmith.image import (
    DROPPED,
    MAX_PIXELS,
    ImageOptions,
    check_number,
    decode_exact,
    find_image_header,
    probe_image,
    reserve_for_decoding,
    store_image,
)
from recordsmith.sources import SampleToRead, ignore_note
from recordsmith.support.errors import (
    DataError,
    FileAccessError,
    MissingExtraError,
    OptionError,
    SourceError,
)
from recordsmith.writing.forecasting.fidelity import MIN_SIDE, structural_similarity
from recordsmith.writing.packing.images import apply_image_options
from recordsmith.writing.packing.pack_options import SampleEncoder

ORIGINAL = "original"


class Variant(NamedTuple):
    """A way to store images; name and label are unique in a forecast."""

    name: str
    label: str
    options: ImageOptions


def make_variants(qualities: Iterable[int], shorter_sides: Iterable[int]) -> list[Variant]:
    """List the variants, the original images first.

    Alpha is dropped where the format cannot hold it; where an image has alpha, `pack` needs
    `drop_alpha` for it as well.
    """
    variants = [
        Variant(ORIGINAL, "as it is", ImageOptions()),
        Variant("raw", "raw pixels", ImageOptions("raw")),
        Variant("png", "PNG", ImageOptions("png")),
        Variant("shrunk", "shrunk, lossless", ImageOptions(shrink=True)),
        Variant("tiles", "tiles, lossless", ImageOptions(tiles=True)),
    ]
    checked = _distinct("qualities", qualities, 100)
    for name, which, recompress in (("", "JPEGs kept", False), ("-all", "all", True)):
        for quality in checked:
            options = ImageOptions("jpeg", quality=quality, recompress=recompress, drop_alpha=True)
            variants.append(Variant(f"jpeg-{quality}{name}", f"JPEG {quality} ({which})", options))
    for side in _distinct("shorter_sides", shorter_sides, 65_535):
        options = ImageOptions(shorter_side=side)
        variants.append(Variant(f"side-{side}", f"shorter side {side}", options))
    return variants


def _distinct(name: str, numbers: Iterable[int], largest: int) -> list[int]:
    if isinstance(numbers, (str, bytes)) or not isinstance(numbers, Iterable):
        raise OptionError(option=name, value=numbers, expected="several integers")
    distinct = list(dict.fromkeys(numbers))
    for number in distinct:
        check_number(name, number, 1, largest)
    return distinct


class StoredRecord(NamedTuple):
    """A sample as a variant stores it.

    size_bytes: of its record with framing; 0 if it cannot be stored so.
    ssim: of an image that was encoded with loss; otherwise None.
    drops_alpha: whether a transparent image lost its alpha.
    refusal: why it cannot be stored so; empty if it can.
    """

    size_bytes: int
    ssim: float | None = None
    drops_alpha: bool = False
    refusal: str = ""


@dataclass
class StoredSample:
    """A sample as all variants store it; only as the original, if it has no encoded image.

    is_measured: whether its image is large enough to measure what is lost.
    failure: why it cannot be read or decoded; empty if it can.
    """

    name: str
    has_image: bool = False
    is_measured: bool = False
    records: dict[str, StoredRecord] = field(default_factory=dict)
    failure: str = ""

    def size_in(self, variant: Variant) -> int:
        """The bytes of its record; 0 where it cannot be stored."""
        record = self.records.get(variant.name) or self.records.get(ORIGINAL)
        return 0 if record is None else record.size_bytes


class SampleStorage:
    """Reads samples of a listing and stores them in memory. Thread-safe."""

    def __init__(self, encoder: SampleEncoder, variants: Sequence[Variant]) -> None:
        """`encoder` renames features and encodes records; it must keep images."""
        self._encoder = encoder
        self._variants = variants

    def store(self, item: SampleToRead) -> StoredSample:
        """Store one sample in each variant."""
        sample = StoredSample(item.sample.name)
        try:
            content: Any = item.read(ignore_note)
            sample.records[ORIGINAL] = self._encoded(content)
        except (DataError, FileAccessError, SourceError) as error:
            sample.failure = "; ".join(error.lines)
            return sample
        features = _features_of(content)
        data = only_value(features, IMAGE)
        if not isinstance(data, bytes):
            return sample
        header = find_image_header(data)
        sample.has_image = header is not None
        sample.is_measured = header is not None and min(header.height, header.width) >= MIN_SIDE
        references: dict[int | None, Any] = {}
        for variant in self._variants[1:]:
            if variant.options.recompress and header is not None and header.format != "jpeg":
                sample.records[variant.name] = sample.records[variant.name.removesuffix("-all")]
                continue
            try:
                record = self._stored(features, data, variant.options, references)
            except (DataError, SourceError, MissingExtraError) as error:
                if isinstance(error, DataError):
                    sample.failure = "; ".join(error.lines)
                record = StoredRecord(0, refusal=sample.failure or error.problem or str(error))
            sample.records[variant.name] = record
        return sample

    def _stored(
        self,
        features: Mapping[str, Any],
        data: bytes,
        options: ImageOptions,
        references: dict[int | None, Any],
    ) -> StoredRecord:
        """Store a sample, and compare its pixels if an image was encoded as JPEG.

        `references` keeps the pixels before encoding for the next variant, by the shorter side.
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
            raw = store_image(data, ImageOptions("raw", shorter_side=side, drop_alpha=True))
            assert raw.depth is not None
            pixels = np.frombuffer(raw.data, raw.dtype)
            references[side] = pixels.reshape(raw.height, raw.width, raw.depth)
        with reserve_for_decoding(image, header := probe_image(image), max_pixels=MAX_PIXELS):
            decoded = decode_exact(image, header).pixels
        return record._replace(ssim=structural_similarity(references[side], decoded))

    def _encoded(self, content: Any) -> StoredRecord:
        return StoredRecord(len(self._encoder.payload(content, ignore_note)) + FRAME_BYTES)


def _features_of(content: Any) -> Mapping[str, Any]:
    """The features of a sample; records of other types, which are packed unchanged, have none."""
    if isinstance(content, bytes):
        try:
            content = decode_payload(content)
        except DataError:
            return {}
    return content if isinstance(content, Mapping) else {}
