"""Reads pairs of images and masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordsmith.sources.files.images import class_features, read_image
from recordsmith.sources.files.paths import place_below, referenced
from recordsmith.sources.pairs.masks import read_mask
from recordsmith.sources.pairs.pairing import Pair
from recordsmith.sources.problems import Fault
from recordsmith.sources.source import Note, Sample, StoredReader, ignore_note, unlisted_error
from recordsmith.stores import Location


@dataclass(frozen=True)
class PairReader(StoredReader):
    """Reads an image and its mask.

    root, mask_root: what the places of images and masks are relative to.
    colours: (red, green, blue, class number) of each color of the masks; None if their pixels are
        class numbers.
    class_names: of the images, if they have classes.
    """

    root: Location
    mask_root: Location
    colours: tuple[tuple[int, int, int, int], ...] | None = None
    class_names: tuple[str, ...] | None = None

    def sample(self, pair: Pair) -> Sample:
        """The sample of a pair."""
        if pair.fault is not None:
            return Sample(
                pair.name, 0, split=pair.split, reference={"fault": pair.fault.to_json()}, version=0
            )
        assert pair.files is not None
        image, mask = pair.files
        return Sample(
            pair.name,
            pair.size_bytes,
            pair.label,
            split=pair.split,
            version=pair.version,
            reference={
                "image": place_below(self.root, image),
                "mask": place_below(self.mask_root, mask),
            },
        )

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        """Read one image and its mask.

        Raises:
            SourceError: the mask does not fit, or its pixels are not class numbers.
            CorruptDataError: unreadable-image.
            FileAccessError: a file cannot be read.
        """
        if sample.reference is None:
            raise unlisted_error(sample)
        reference = sample.reference
        if "fault" in reference:
            raise Fault.from_json(reference["fault"]).error()
        features = read_image(referenced(self.root, reference["image"]), sample.name)
        features |= class_features(sample.label, self.class_names)
        colours = self.colours and {(r, g, b): number for r, g, b, number in self.colours}
        mask = referenced(self.mask_root, reference["mask"])
        return features | read_mask(mask, features, colours or None, note)
