"""Pack with the options and class numbers of another dataset, to which records will be added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from recordsmith.dataset import (
    MANIFEST_NAME,
    ClassNames,
    KeypointClasses,
    join_keypoint_classes,
    read_labels,
    read_manifest,
)
from recordsmith.format.example import Kind
from recordsmith.format.example.keys import CLASS_LABEL, MASK, OBJECT_LABEL
from recordsmith.sources import (
    Classes,
    Content,
    Listing,
    Note,
    Sample,
    SampleReader,
    Source,
    ignore_note,
    join_problems,
)
from recordsmith.stores import PlaceLike, as_folder
from recordsmith.support.errors import OptionError, SourceError, option
from recordsmith.support.problems import Problems
from recordsmith.writing.packing.pack_options import PackOptions


def apply_like(options: PackOptions, source: Source, like: PlaceLike) -> tuple[PackOptions, Source]:
    """Use the keys, image options, compression and class numbers of a dataset."""
    folder = as_folder(like)
    manifest = read_manifest(folder)
    try:
        if manifest is None:
            raise OptionError(f"it has no {MANIFEST_NAME}")
        document = manifest.provenance.get("options")
        if "source" not in manifest.provenance or not isinstance(document, Mapping):
            raise OptionError("its manifest has no options of `pack`")
        stored = PackOptions.from_json(document)
    except OptionError as error:
        raise OptionError(
            f"the options of {folder} are unknown: {error.problem}",
            option="like",
            value=str(like),
            remedy=f"Leave out {option('like')}, and pass the options that make the same features.",
        ) from None
    options = replace(
        options,
        keys=stored.keys if options.keys is None else options.keys,
        image_options=options.image_options or stored.image_options,
        compression=options.compression or manifest.compression,
    )
    names = manifest.class_names or read_labels(folder)
    return options, _RenumberedSource(source, names, manifest.keypoint_classes, str(folder))


class _RenumberedSource:
    """A source whose classes get the numbers of a dataset, by name."""

    def __init__(
        self, source: Source, names: ClassNames | None, points: KeypointClasses, dataset: str
    ) -> None:
        self._source = source
        self._names = names
        self._points = points
        self._dataset = dataset
        self.root = getattr(source, "root", None)

    def list_samples(self) -> Listing:
        listing = self._source.list_samples()
        if listing.class_names is None:
            return listing
        if self._names is None:
            raise SourceError(
                f"the source has classes, but {self._dataset} has no class names, so their numbers "
                "cannot be compared",
                remedy=f"Leave out {option('like')}.",
            )
        numbers = {name: label for label, name in enumerate(self._names) if name is not None}
        classes = Classes(numbers, f"the dataset {self._dataset}")
        known = {
            label: (name, classes.label_of(name))
            for label, name in enumerate(listing.class_names)
            if name is not None
        }
        unknown = [classes.unknown(name) for name, label in known.values() if label is None]
        if unknown:
            raise SourceError(
                join_problems(unknown),
                Problems(unknown),
                remedy="Rename the classes in the source. To add classes, pack it without "
                f"{option('like')} so that the new ones have the numbers after those of the "
                "dataset, and append that.",
            )
        table = {label: new for label, (_, new) in known.items() if new is not None}
        known_points = listing.keypoint_classes.items()
        points = {table.get(label, label): of_class for label, of_class in known_points}
        points = join_keypoint_classes(self._points, points, "the source") if points else {}
        reader = listing.reader
        if any(label != new for label, new in table.items()):
            has_rows = hasattr(reader, "frames") and reader.frames() is not None
            if has_rows or getattr(reader, "may_have_other_classes", False):
                raise SourceError(
                    f"the records have other class numbers than {self._dataset}",
                    remedy="Pack them, and give them its numbers with `recordsmith edit --recode`.",
                )
            reader = _RenumberedReader(reader, table)
        return replace(listing, reader=reader, class_names=self._names, keypoint_classes=points)

    def describe(self) -> Mapping[str, Any]:
        return self._source.describe()


class _RenumberedReader:
    """Reads samples, and changes the numbers of their classes."""

    def __init__(self, reader: SampleReader, new_numbers: Mapping[int, int]) -> None:
        self._reader = reader
        self._new_numbers = new_numbers

    def read(self, sample: Sample, note: Note = ignore_note) -> Content:
        content = self._reader.read(sample, note)
        if not isinstance(content, Mapping) or MASK in content:
            what = "a mask" if isinstance(content, Mapping) else "a record"
            raise SourceError(
                f"the numbers of the classes in {what} cannot be changed to those of the dataset",
                sample=sample.name,
                remedy="Give the classes the same numbers in the source.",
            )
        features = dict(content)
        for key in (CLASS_LABEL, OBJECT_LABEL):
            if key in features:
                labels = np.atleast_1d(np.asarray(features[key], np.int64))
                features[key] = np.array([self._new_numbers[n] for n in labels.tolist()], np.int64)
        return features

    def kinds(self) -> Mapping[str, Kind]:
        return self._reader.kinds()

    def to_json(self) -> dict[str, Any]:
        raise OptionError(f"samples with {option('like')} are read only in this process")
