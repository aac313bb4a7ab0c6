"""PASCAL VOC: one XML file with boxes per image, in any of the common layouts.

Listing reads every XML file for the names of classes and images, and keeps the content, because
parsing it again would take longer than the rest of the sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordsmith.example import Kind
from recordsmith.example.keys import OBJECT_DIFFICULT, OBJECT_TRUNCATED, OBJECT_VIEW
from recordsmith.sources.boxes.annotated import AnnotatedImages, make_listing
from recordsmith.sources.boxes.boxes import BoxPolicy, PlacedBox
from recordsmith.sources.boxes.image_annotation_files import FileFormat, find_samples
from recordsmith.sources.boxes.image_annotations import (
    ImageAnnotation,
    ImageAnnotationReader,
    reference_of,
)
from recordsmith.sources.boxes.voc_xml import read_voc_xml
from recordsmith.sources.classes import make_classes
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.source import Listing
from recordsmith.stores import Location, PlaceLike

_EXPECTED = (
    "Annotations/*.xml with JPEGImages/, annotations/*.xml with images/, or .xml files next to "
    "their images"
)


class Voc(AnnotatedImages):
    """Images with boxes in PASCAL VOC's XML format.

    Each sample has its unchanged image (`image/encoded`, `image/format`, `image/height`,
    `image/width`, `image/filename`, `image/source_id`) and for each object
    `image/object/bbox/ymin`, `xmin`, `ymax`, `xmax` (0 to 1, relative to the stored image),
    `image/object/class/label` (from 1), `image/object/class/text`, `image/object/difficult`,
    `image/object/truncated` and `image/object/view`.

    Example:
        >>> rs.pack(rs.Voc("VOCdevkit/VOC2012", boxes="clip"), "packed")  # doctest: +SKIP
    """

    def __init__(
        self, root: PlaceLike, *, label_map: PlaceLike | None = None, boxes: BoxPolicy = "stop"
    ) -> None:
        """
        Args:
            root: the folder of the dataset, such as `VOCdevkit/VOC2012`.
            label_map: path of a `label_map.pbtxt`; without one, classes are sorted by name.
            boxes: what to do with an invalid box: fail its sample (`stop`), clip and reorder it
                (`clip`), or drop the object (`drop`).

        Raises:
            OptionError: `boxes` is invalid.
        """
        super().__init__(root, label_map=label_map, boxes=boxes)

    def list_samples(self) -> Listing:
        """Find annotation files and their images, sorted by path.

        Raises:
            SourceError: there are no annotation files, or several datasets.
            OptionError: the label map is invalid, or the root is a file.
            FileAccessError: a folder or the label map cannot be read.
        """
        index = FileIndex(self._take_tree(self.root))
        found = find_samples(index, FileFormat(".xml", read_voc_xml, _EXPECTED))
        classes = make_classes(found.class_names, self._label_map)
        return make_listing(
            found.entries,
            found.splits,
            index,
            VocReader(**self._reader_options(classes)),
            classes,
            found.notices,
            lambda annotated: index.version_of(annotated.path),
            reference_of,
        )


@dataclass(frozen=True)
class VocReader(ImageAnnotationReader):
    """Reads an image and its XML file."""

    @staticmethod
    def _parse(location: Location, name: str) -> ImageAnnotation | None:
        return read_voc_xml(location, name)

    def _object_kinds(self) -> Mapping[str, Kind]:
        return {OBJECT_DIFFICULT: "int64", OBJECT_TRUNCATED: "int64", OBJECT_VIEW: "bytes"}

    def _object_features(self, placed: list[PlacedBox], image: Mapping[str, Any]) -> dict[str, Any]:
        extras = [item.source.extra for item in placed]
        return {
            OBJECT_DIFFICULT: [difficult for difficult, _, _ in extras],
            OBJECT_TRUNCATED: [truncated for _, truncated, _ in extras],
            OBJECT_VIEW: [view.encode() for _, _, view in extras],
        }
