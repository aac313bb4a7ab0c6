"""Samples of images and masks, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recordsmith.sources.files.images import class_features, read_image
from recordsmith.sources.files.paths import (
    common_version,
    place_below,
    referenced,
    size_and_version,
)
from recordsmith.sources.pairs.masks import read_mask
from recordsmith.sources.problems import Fault
from recordsmith.sources.source import Note, Sample, StoredReader, ignore_note, unlisted_error
from recordsmith.stores import Location


class PairFile(NamedTuple):
    """An image or a mask: where it is, its size in bytes, and its version number."""

    location: Location
    size_bytes: int
    version: int

    @classmethod
    def at(cls, location: Location) -> PairFile:
        """The file at a location; a missing file fails when it is read."""
        return cls(location, *size_and_version(location))


@dataclass
class PairSamples:
    """The samples that were found, and notices on what was skipped.

    root, mask_root: what the places of images and of masks are relative to.
    """

    root: Location
    mask_root: Location
    samples: list[Sample] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def add(self, name: str, image: PairFile, mask: PairFile, split: str | None = None) -> None:
        """Add a pair; the name is the path of the image relative to the root."""
        self.samples.append(
            Sample(
                name,
                image.size_bytes + mask.size_bytes,
                split=split,
                version=common_version((image.version, mask.version)),
                reference={
                    "image": place_below(self.root, image.location),
                    "mask": place_below(self.mask_root, mask.location),
                },
            )
        )

    def add_fault(self, name: str, fault: Fault, split: str | None = None) -> None:
        """Add a sample that fails when it is read."""
        reference = {"fault": fault.to_json()}
        self.samples.append(Sample(name, 0, split=split, reference=reference, version=0))

    @property
    def faults(self) -> list[Fault]:
        """The faults of samples that cannot be read."""
        references = (sample.reference or {} for sample in self.samples)
        return [Fault.from_json(each["fault"]) for each in references if "fault" in each]


@dataclass(frozen=True)
class PairReader(StoredReader):
    """Reads an image and its mask.

    colours: (red, green, blue, class number) of each color of the masks; None if their pixels are
        class numbers.
    class_names: of the images, if they have classes.
    """

    root: Location
    mask_root: Location
    colours: tuple[tuple[int, int, int, int], ...] | None = None
    class_names: tuple[str, ...] | None = None

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
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
