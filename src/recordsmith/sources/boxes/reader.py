"""Reads annotated images of all formats: the image, its boxes, and masks of its outlines."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from recordsmith.dataset import ClassNames, json_fault
from recordsmith.format.example import Kind, keys
from recordsmith.image import (
    apply_orientation,
    encode_mask,
    inverse_orientation,
    resize_nearest,
    swaps_sides,
)
from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    attribute_features,
    decode_objects,
)
from recordsmith.sources.boxes.placing import (
    BOX_KINDS,
    CORNER_KINDS,
    KEYPOINT_KINDS,
    BoxPlacer,
    BoxPolicy,
    Drawn,
    Frame,
    LabelledBox,
    box_features,
    corner_features,
    keypoint_features,
)
from recordsmith.sources.boxes.regions import ClassMask, RegionError, rasterize
from recordsmith.sources.classes import Classes
from recordsmith.sources.files.images import LIST_KINDS, class_features, read_image, stem_of
from recordsmith.sources.files.paths import referenced
from recordsmith.sources.flaws import Check, Flaw
from recordsmith.sources.formats import FORMATS
from recordsmith.sources.problems import reference_of
from recordsmith.sources.samples import Note, Sample, StoredReader, ignore_note
from recordsmith.stores import Location
from recordsmith.support.errors import SourceError

Masks = Literal["instance", "class"]

MAX_MASK_PIXELS = 1 << 28
_NO_OUTLINE = Flaw("objects have an invalid segmentation and got an empty mask", Check.MASK_FORMAT)
_NO_OUTLINE_DROPPED = Flaw(
    "objects were dropped because their segmentation is invalid", Check.MASK_FORMAT
)
_EMPTY_MASK = Flaw(
    "objects have an empty mask because their outline encloses no pixel", Check.MASK_VALUES
)


@dataclass(frozen=True)
class AnnotatedReader(StoredReader):
    """Reads an image and its annotation, from its reference or from its annotation file.

    labels: of classes by name.
    origin: where the classes are from, for messages.
    features: those of the format that are read.
    names_by_number, keypoints: for annotation files; see `AnnotationFile`.
    is_upright: whether boxes are drawn on the upright image, where their annotation does not show
        it.
    drawn: the image that they are drawn on instead.
    point_names: of the keypoints of each class that has some.
    has_corners: whether objects have the corners of rotated boxes.
    attributes: those of objects, with their kinds.
    has_captions: whether images have captions.
    is_labelled: whether images have classes or captions, but no objects.
    list_keys: the features with the classes of images that may have several.
    """

    root: Location
    format: str
    labels: tuple[tuple[str, int], ...]
    origin: str
    boxes: BoxPolicy
    object_masks: Masks | None = None
    features: tuple[str, ...] = ()
    names_by_number: tuple[tuple[int, str], ...] = ()
    keypoints: tuple[int, ...] | None = ()
    is_upright: bool = False
    is_labelled: bool = False
    drawn: Drawn | None = None
    point_names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    has_corners: bool = False
    attributes: tuple[tuple[str, Kind], ...] = ()
    has_captions: bool = False
    list_keys: tuple[str, ...] = ()

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        reference = reference_of(sample)
        for what, where in reference.get("notes", ()):
            note(what, where)
        features = read_image(self.root / sample.name, sample.name)
        source_id = reference.get("id", posixpath.basename(sample.name))
        features[keys.SOURCE_ID] = str(source_id).encode("utf-8", "surrogateescape")
        if self.has_captions:
            captions = reference.get("captions", ())
            features[keys.CAPTION] = [text.encode("utf-8", "surrogateescape") for text in captions]
        features |= class_features(sample.label, self._class_names, reference)
        if self.is_labelled:
            for what, where in reference.get("left_out", ()):
                note(what, where)
            return features
        placer = BoxPlacer(features, self.boxes, note, self.drawn, dict(self.point_names))
        place = reference.get("annotation", sample.name)
        boxes: list[LabelledBox] = []
        masks: dict[str, Any] = {}
        frame = Frame(features[keys.WIDTH], features[keys.HEIGHT])
        if "annotation" in reference:
            annotated = self._annotated(reference)
            for what, where in annotated.notes:
                is_loss = not annotated.objects  # what it notes is all that the annotation has
                note(Flaw(what, Check.CHANGED).leaving_out("") if is_loss else what, where)
            frame = placer.make_frame(annotated.size, place, is_upright=self.is_upright)
            boxes = placer.place(annotated.objects, frame, self._classes, place)
        if self.object_masks is not None and not placer.problems:
            boxes, masks = self._add_masks(boxes, frame, features, placer, place)
        has_own_file = stem_of(place) == stem_of(sample.name)
        placer.finish(place, None if has_own_file else sample.name)
        features |= box_features(boxes)
        if self.point_names:
            features |= keypoint_features(boxes, max(len(names) for _, names in self.point_names))
        if self.has_corners:
            features |= corner_features(boxes)
        attributes = attribute_features([item.source for item in boxes], self.attributes)
        return {**features, **attributes, **self._extra(boxes, features), **masks}

    def kinds(self) -> Mapping[str, Kind]:
        known = FORMATS[self.format].box_format.features
        kinds: dict[str, Kind] = {key: LIST_KINDS[key] for key in self.list_keys}
        kinds |= {keys.CAPTION: "bytes"} if self.has_captions else {}
        if self.is_labelled:
            return kinds
        kinds |= {**BOX_KINDS, **{key: known[key] for key in self.features}}
        kinds |= {keys.OBJECT_ATTRIBUTE + name: kind for name, kind in self.attributes}
        kinds |= KEYPOINT_KINDS if self.point_names else {}
        kinds |= CORNER_KINDS if self.has_corners else {}
        return {**kinds, keys.OBJECT_MASK: "bytes"} if self.object_masks == "instance" else kinds

    @cached_property
    def _class_names(self) -> ClassNames:
        return self._classes.names()

    @cached_property
    def _classes(self) -> Classes:
        return Classes(dict(self.labels), self.origin)

    def _annotated(self, reference: Mapping[str, Any]) -> AnnotatedImage:
        """The annotation that a reference contains or leads to."""
        if "objects" in reference:
            size = reference["size"]
            objects = decode_objects(reference["objects"])
            notes = [(what, where) for what, where in reference.get("left_out", ())]
            return AnnotatedImage(size=size and (size[0], size[1]), objects=objects, notes=notes)
        path = reference["annotation"]
        file = AnnotationFile(
            referenced(self.root, path),
            path,
            with_outlines=self.object_masks is not None,
            class_names=dict(self.names_by_number),
            keypoints=self.keypoints,
            has_corners=self.has_corners,
        )
        image: AnnotatedImage
        (image,) = FORMATS[self.format].box_format.images(file)
        return image

    def _extra(self, boxes: list[LabelledBox], image: Mapping[str, Any]) -> dict[str, Any]:
        """The features of objects that only this format has."""
        features: dict[str, Any] = {}
        pixel_count = image[keys.HEIGHT] * image[keys.WIDTH]
        for number, (key, kind) in enumerate(FORMATS[self.format].box_format.features.items()):
            if key not in self.features:
                continue
            values = [item.source.extra[number] for item in boxes]
            if key == keys.OBJECT_AREA:  # that of the box, where the file has none
                for row, item in enumerate(boxes):
                    if values[row] is None:
                        top, left, bottom, right = item.box
                        values[row] = (bottom - top) * (right - left) * pixel_count
            features[key] = [str(v).encode() for v in values] if kind == "bytes" else values
        return features

    def _add_masks(
        self,
        boxes: list[LabelledBox],
        frame: Frame,
        image: Mapping[str, Any],
        placer: BoxPlacer,
        place: str,
    ) -> tuple[list[LabelledBox], dict[str, Any]]:
        """The kept objects, and the features of their masks on the stored image."""
        height, width = image[keys.HEIGHT], image[keys.WIDTH]
        canvas = (int(frame.height), int(frame.width))
        if frame.is_relative:
            canvas = (width, height) if swaps_sides(frame.orientation) else (height, width)
        if max(height * width, canvas[0] * canvas[1]) > MAX_MASK_PIXELS:
            raise SourceError(
                f"{place}: the size {width}x{height} is too large for masks; expected at most "
                f"{MAX_MASK_PIXELS:,} pixels"
            )
        kept: list[LabelledBox] = []
        encoded: list[bytes] = []  # one mask at a time is held as pixels
        is_deep = max((label for _, label in self.labels), default=0) > 255
        whole = ClassMask(height, width, is_deep=is_deep)
        for item in boxes:
            try:
                drawn = rasterize(_outline(item.source, frame, canvas), *canvas)
            except RegionError as error:
                where = item.source.place_in(place)
                if self.boxes != "clip":
                    dropped = _NO_OUTLINE_DROPPED.leaving_out(item.source.name or "")
                    placer.reject(where, str(error), dropped)
                    continue
                placer.note(_NO_OUTLINE, f"{where}: {error}")
                mask = np.zeros((height, width), np.uint8)
            else:
                upright = apply_orientation(drawn, inverse_orientation(frame.orientation))
                mask = resize_nearest(upright, height, width)
                if not mask.any():
                    placer.note(_EMPTY_MASK, item.source.place_in(place))
            kept.append(item)
            if self.object_masks == "instance":
                encoded.append(encode_mask(mask))
            else:
                whole.add(mask, item.label)
        if self.object_masks == "instance":
            return kept, {keys.OBJECT_MASK: encoded}
        return kept, {keys.MASK: encode_mask(whole.draw()), keys.MASK_FORMAT: "png"}


def _outline(item: AnnotatedObject, frame: Frame, canvas: tuple[int, int]) -> Any:
    if item.outline == "points":
        return [[0, 0, 0, 0]]  # nothing is inside
    if item.outline == "box":
        xmin, ymin, xmax, ymax = item.corners
        return [[xmin, ymin, xmax, ymin, xmax, ymax, xmin, ymax]]
    try:
        outline = json.loads(item.outline or "null")
    except (ValueError, RecursionError) as error:
        raise RegionError(f"invalid segmentation: {json_fault(error)}") from None
    if frame.is_relative and isinstance(outline, list):
        scale = np.array(canvas[::-1])
        return [(np.reshape(polygon, (-1, 2)) * scale).ravel() for polygon in outline]
    return outline
