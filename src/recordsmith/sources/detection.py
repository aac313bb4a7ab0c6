"""Detect how a folder or file can be read, and make the source that reads it.

Each family of sources has a module `detection` with a function `find_readings`. The reading that is
chosen is the specification of the source: its format and its options.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from recordsmith.dataset.names import RECORD_SUFFIXES
from recordsmith.errors import (
    OptionError,
    SourceError,
    option,
    with_options,
)
from recordsmith.sources.archives import detection as archives
from recordsmith.sources.archives.array_layout import is_array_name
from recordsmith.sources.archives.arrays import Arrays
from recordsmith.sources.archives.shards import Shards
from recordsmith.sources.archives.tfds import Tfds
from recordsmith.sources.archives.webdataset import WebDataset
from recordsmith.sources.boxes import detection as boxes
from recordsmith.sources.boxes.coco import Coco
from recordsmith.sources.boxes.csv_boxes import CsvBoxes
from recordsmith.sources.boxes.cvat import Cvat
from recordsmith.sources.boxes.labelme import LabelMe
from recordsmith.sources.boxes.voc import Voc
from recordsmith.sources.boxes.yolo import Yolo
from recordsmith.sources.class_folders import detection as class_folders
from recordsmith.sources.class_folders.image_files import ImageFiles
from recordsmith.sources.class_folders.image_folder import ImageFolder
from recordsmith.sources.files.folders import is_folder
from recordsmith.sources.pairs import detection as pairs
from recordsmith.sources.pairs.image_pairs import ImagePairs
from recordsmith.sources.source import Listing, Source
from recordsmith.sources.survey import HEAD_BYTES, Reading, Strength, Survey, choose_reading
from recordsmith.sources.tables import detection as tables
from recordsmith.sources.tables.table import TABLE_SUFFIXES, Table
from recordsmith.stores import Location, PlaceLike, as_place
from recordsmith.words import count, similar_name

_MOST_NOTICES = 100
_OVERRIDING = frozenset(
    ("label_column", "split_column", "group_column", "colours", "labels", "encoding")
)
"""Options that replace those of a reading; others select the readings that have the same."""


@dataclass(frozen=True)
class _Format:
    """One type of source: its class, and the options that it accepts."""

    source: Callable[..., Source]
    options: tuple[str, ...] = ()


FORMATS: Mapping[str, _Format] = MappingProxyType(
    {
        "folder": _Format(ImageFolder, ("images", "labels")),
        "files": _Format(ImageFiles, ("images", "class_pattern")),
        "pairs": _Format(
            ImagePairs,
            (
                *("images", "masks", "image_names", "mask_names", "pairs", "split_lists"),
                *("class_pattern", "colours"),
            ),
        ),
        "voc": _Format(Voc, ("label_map", "boxes")),
        "coco": _Format(Coco, ("annotations", "images", "label_map", "boxes", "object_masks")),
        "yolo": _Format(Yolo, ("label_map", "boxes", "object_masks")),
        "labelme": _Format(LabelMe, ("label_map", "boxes", "object_masks")),
        "cvat": _Format(Cvat, ("annotations", "images", "label_map", "boxes", "object_masks")),
        "csv-boxes": _Format(CsvBoxes, ("annotations", "images", "label_map", "boxes")),
        "table": _Format(
            Table,
            (
                *("table", "image_column", "images", "split_column", "group_column"),
                *("label_column", "encoding"),
            ),
        ),
        "arrays": _Format(Arrays),
        "shards": _Format(Shards),
        "tfds": _Format(Tfds, ("window", "stride")),
        "webdataset": _Format(WebDataset),
    }
)
"""The types of sources by name."""

_FINDERS = (
    archives.find_readings,
    boxes.find_readings,
    tables.find_readings,
    pairs.find_readings,
    class_folders.find_readings,
)
"""The detectors of the families; of equally strong readings the first family's come first."""


@dataclass(frozen=True)
class Detection:
    """How a folder or file can be read.

    path: the folder or file.
    readings: by strength, the likeliest first; those of strength POSSIBLE are chosen only by
        options.
    """

    path: Location
    readings: tuple[Reading, ...]

    @property
    def reading(self) -> Reading:
        """The reading that `pack` uses without options.

        Raises:
            SourceError: several readings fit, and `problems` has the options that choose each; or
                the only one needs an option.
        """
        return choose_reading(self.path, self.readings, {})

    @cached_property
    def source(self) -> Source:
        """The source of the reading.

        Raises:
            SourceError: as `reading`.
        """
        return FORMATS[self.reading.format].source(self.path, **self.reading.options)

    def to_json(self) -> dict[str, Any]:
        """Return format, options, count, splits, classes, notices and alternatives.

        Lists the samples of the source, without reading them.

        Raises:
            SourceError: as `reading`, or there is nothing to pack.
            FileAccessError: a folder or file cannot be read.
        """
        reading = self.reading
        listing = self.source.list_samples()
        weaker = [each for each in self.readings if each is not reading]
        return {
            **reading_json(reading),
            "count": len(listing.samples),
            "splits": list(listing.splits),
            "classes": None if listing.class_names is None else list(listing.class_names),
            "notices": [*map(with_options, itertools.islice(listing.notices, _MOST_NOTICES))],
            "alternatives": [*map(reading_json, weaker)],
        }


def reading_json(reading: Reading) -> dict[str, Any]:
    """A reading as JSON-able values."""
    return {
        "format": reading.format,
        "options": dict(reading.options),
        "what": reading.what,
        "noun": reading.noun,
        "strength": reading.strength.name.lower(),
        "left_out": [*map(with_options, reading.left_out)],
        "problem": with_options(reading.problem),
    }


@dataclass(frozen=True)
class DetectedSource:
    """A source and how it was chosen.

    format: one of FORMATS.
    options: of the source.
    reading: what was detected; None if the caller chose the format.
    """

    source: Source
    format: str
    options: Mapping[str, Any]
    reading: Reading | None = None

    def described(self, listing: Listing) -> str:
        """What is read, for people: "images in image/, masks in label/: 30 pairs"."""
        if self.reading is None:
            return ""
        number = count(len(listing.samples), self.reading.noun.removesuffix("s"))
        skipped = self.reading.left_out
        return f"{self.reading.what}: {number}" + (
            f"; not read: {', '.join(skipped)}" if skipped else ""
        )


def detect(path: PlaceLike) -> Detection:
    """Detect how a folder or file can be read.

    Lists the folder and opens at most some dozens of files in it.

    Args:
        path: a folder, a file, or a pattern of files.

    Returns:
        The readings. `detect(path).reading` is the one that `pack` uses.

    Raises:
        SourceError: unsupported file type.
        FileAccessError: the path cannot be read.

    Example:
        >>> rs.detect("flowers").reading.format
        'folder'
    """
    root = as_place(path)
    if "{" in root.name or "*" in root.name:
        is_archive = _is_archive(root.name)
        found = (
            Reading("webdataset", "a pattern of tar files", Strength.MARKED, noun="samples")
            if is_archive
            else Reading("shards", "a pattern of files", Strength.MARKED, noun="records")
        )
        return Detection(root, (found,))
    if not is_folder(root):
        reading = _read_file(root)
        if reading.format == "table":
            reading = tables.with_named_images(reading, root)
        return Detection(root, (reading,))
    survey = Survey(root)
    readings = [reading for find in _FINDERS for reading in find(survey)]
    used = {file for reading in readings if reading.format != "table" for file in reading.files}
    readings = [each for each in readings if each.format != "table" or used.isdisjoint(each.files)]
    readings.sort(key=lambda reading: -reading.strength)
    if not readings:
        names = (path for path in survey.files(*archives.REFUSED_SUFFIXES))
        if (refused := archives.refusal(root, names)) is not None:
            raise refused
        # its error has what was found and expected; images may be without suffixes
        readings = [Reading("folder", "class folders", Strength.POSSIBLE)]
    return Detection(root, tuple(readings))


def make_source(path: PlaceLike, format: str | None = None, **options: Any) -> DetectedSource:
    """Make the source for a path.

    Args:
        path: a folder or a file.
        format: one of FORMATS; None to detect it.
        options: of the source; those that are None are ignored. They narrow what is detected: an
            option that only one reading accepts selects it.

    Raises:
        OptionError: the format is unknown, or does not accept one of the options.
        SourceError: the format cannot be detected.
        FileAccessError: the path cannot be read.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if format is not None:
        _check_format(format, given)
        found = _of_format(path, format, given)
        merged = {**(found.options if found else {}), **given}
        return DetectedSource(FORMATS[format].source(path, **merged), format, merged)
    detection = detect(path)
    reading = _select(detection, given)
    merged = {**reading.options, **given}
    source = FORMATS[reading.format].source(path, **merged)
    return DetectedSource(source, reading.format, merged, reading)


def _check_format(format: str, given: Mapping[str, Any]) -> None:
    if format not in FORMATS:
        similar = similar_name(format, FORMATS)
        raise OptionError(
            option="format",
            value=format,
            expected=f"one of {', '.join(FORMATS)}",
            remedy=f"Did you mean {similar}?" if similar else "",
        )
    for name in given:
        if name not in FORMATS[format].options:
            raise _not_accepted(name, given[name], format, "")


def _of_format(path: PlaceLike, format: str, given: Mapping[str, Any]) -> Reading | None:
    """The reading of a format that the options leave; None if the options say everything.

    Without options it is the one without options, if there is one.
    """
    root = as_place(path)
    if given.keys() & {"masks", "pairs"} or "*" in root.name or "{" in root.name:
        return None
    if not root.is_folder():
        return None
    readings = [
        reading
        for reading in detect(root).readings
        if reading.format == format and _agrees(reading, given)
    ]
    if not readings or any(reading.options == given for reading in readings):
        return None
    return choose_reading(root, readings, {**given, "format": format})


def _select(detection: Detection, given: Mapping[str, Any]) -> Reading:
    """The reading that the options leave."""
    if not given:
        return detection.reading
    accepting = [
        reading
        for reading in detection.readings
        if given.keys() <= set(FORMATS[reading.format].options)
    ]
    agreeing = [reading for reading in accepting if _agrees(reading, given)]
    if agreeing:
        if all(reading.strength == Strength.POSSIBLE for reading in agreeing):
            fewest = min(len(reading.options) for reading in agreeing)
            agreeing = [reading for reading in agreeing if len(reading.options) == fewest]
        return choose_reading(detection.path, agreeing, given)
    likely = {reading.format for reading in accepting if reading.strength > Strength.POSSIBLE}
    able = likely or {name for name, known in FORMATS.items() if given.keys() <= set(known.options)}
    if len(able) == 1:  # the options say what is read
        name = able.pop()
        shown = ", ".join(f"{option(each)}" for each in given)
        return Reading(name, f"the format {name}, by {shown}", Strength.ANNOTATED)
    first = detection.readings[0]
    for name in given:
        if name not in FORMATS[first.format].options:
            raise _not_accepted(name, given[name], first.format, first.what)
    return detection.reading


def _agrees(reading: Reading, given: Mapping[str, Any]) -> bool:
    return all(
        str(given[name]).rstrip("/") == str(value)
        for name, value in reading.options.items()
        if name in given and name not in _OVERRIDING
    )


def _not_accepted(name: str, value: object, format: str, what: str) -> OptionError:
    accepting = [other for other, known in FORMATS.items() if name in known.options]
    return OptionError(
        f"{option(name)} does not apply to the format {format}{f' ({what})' if what else ''}",
        option=name,
        value=value,
        remedy=f"It applies to {', '.join(accepting)}." if accepting else "",
    )


def _read_file(path: Location) -> Reading:
    name = path.name.lower()
    plain = name.removesuffix(".gz")
    if plain.endswith((".csv", ".tsv")) and boxes.is_box_csv(path.read(0, HEAD_BYTES)):
        return Reading("csv-boxes", "a CSV file of boxes", Strength.MARKED)
    if plain.endswith(TABLE_SUFFIXES):
        ending = plain.rpartition(".")[2].upper()
        return Reading("table", f"a {ending} file", Strength.MARKED, noun="rows")
    if _is_archive(name):
        return Reading("webdataset", "a tar file", Strength.MARKED, noun="samples")
    if name.endswith(".json"):
        return Reading("coco", "a JSON file", Strength.MARKED)
    if name.endswith(".xml") and boxes.is_cvat(path.read(0, HEAD_BYTES)):
        return Reading("cvat", "an XML file of CVAT", Strength.MARKED)
    if name.endswith((".yaml", ".yml", ".data")):
        return Reading("yolo", "a YOLO dataset description", Strength.MARKED)
    if is_array_name(path.name):
        return Reading("arrays", "a file of arrays", Strength.MARKED)
    if any(ending in name for ending in RECORD_SUFFIXES):
        return Reading("shards", "a TFRecord file", Strength.MARKED, noun="records")
    refused = archives.refusal(path, [path.name])
    if refused is not None:
        raise refused
    known = ", ".join((*TABLE_SUFFIXES, archives.ARCHIVES[0], RECORD_SUFFIXES[0], ".json"))
    raise SourceError(
        f"unsupported file type; expected a folder or a file ending in {known}", path=path
    )


def _is_archive(name: str) -> bool:
    return name.lower().endswith(archives.ARCHIVES)
