"""Checks one sample: reads it, decodes its image and masks once, and measures what they show."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.checking.class_rules import is_one_hot
from recordsmith.checking.linting.episode_check import (
    Episode,
    EpisodeFacts,
    check_episode,
    episode_of,
    hash_of,
)
from recordsmith.checking.linting.lint_report import Findings, LintExample
from recordsmith.checking.linting.sample_images import (
    boxes_of,
    decode_content,
    features_of,
    image_in,
    image_of,
    masks_in,
    place_of,
)
from recordsmith.checking.linting.similar_images import SHAPE_BYTES, shape_of
from recordsmith.format.example import keys
from recordsmith.format.example.class_lists import positive_values
from recordsmith.format.example.feature_values import first_value, object_values, values_of
from recordsmith.image import (
    MAX_PIXELS,
    UPRIGHT,
    Decoded,
    check_size,
    decode_exact,
    decode_mask,
    exif_orientation,
    read_image_header,
    reserve_for_decoding,
    usual_name,
)
from recordsmith.sources import (
    Check,
    Flaw,
    LintCheck,
    Sample,
    SampleReader,
    SamplesAhead,
    SampleToRead,
    Severity,
    has_image_name,
)
from recordsmith.support.errors import (
    DataError,
    Defect,
    FileAccessError,
    RecordsmithError,
    SourceError,
    option,
)

TINY_PIXELS = 2
"""Boxes with a shorter side are tiny."""

_IGNORED = 255  # in masks
_CLASS_KEYS = (keys.CLASS_LABEL, keys.OBJECT_LABEL)


_FETCH = "Fetch or export the image again, or remove it from the dataset."


class ImageCheck(LintCheck):
    """What is checked about the file, the image and the boxes of a sample."""

    UNREADABLE_FILE = (
        "unreadable-file",
        "error",
        "A file cannot be read.",
        "Check that the file exists, its permissions and the disk.",
    )
    UNREADABLE_IMAGE = (
        "unreadable-image",
        "error",
        "A file is not an image, is truncated or cannot be decoded.",
        _FETCH,
    )
    DAMAGED_IMAGE = (
        "damaged-image",
        "error",
        "Decoders accept the image with a warning, but its pixels may be wrong after the damage.",
        _FETCH,
    )
    WRONG_EXTENSION = (
        "wrong-extension",
        "warning",
        "The extension is not that of the format: programs that trust it fail.",
        "Rename the file.",
    )
    CMYK = (
        "cmyk",
        "warning",
        "The image has CMYK colours. Decoders convert them differently.",
        f"Convert it to RGB, or pack with {option('store', 'jpeg')}.",
    )
    HIGH_BIT_DEPTH = (
        "high-bit-depth",
        "warning",
        "The image has 16 bits per channel. Most readers drop the lower 8 bits.",
        "Scale the values to 8 bits, or read the dataset with 16 bits.",
    )
    ALPHA = (
        "alpha",
        "warning",
        "The image has transparent pixels. Readers drop the alpha channel and show hidden colours.",
        "Put the image on a background.",
    )
    ANIMATION = (
        "animation",
        "note",
        "Only the first frame of an animation is used.",
        "Store the frames as images.",
    )
    MASK_0_255 = (
        "mask-0-255",
        "warning",
        "All masks hold only 0 and 255, as if drawn for viewing: losses need 0 and 1.",
        "Read them with `rs.Mask(values={255: 1})`, or replace 255 by 1 before packing.",
    )
    TINY_BOX = (
        "tiny-box",
        "warning",
        "A box is narrower or lower than 2 pixels: often a click by mistake.",
        "Preview the box; remove or redraw it.",
    )
    KEYPOINTS_TOGETHER = (
        "keypoints-together",
        "warning",
        "All labelled keypoints of an object are at one point: usually a placeholder.",
        "Fix the keypoints, or give them visibility 0.",
    )
    KEYPOINT_AT_ORIGIN = (
        "keypoint-at-origin",
        "warning",
        "A keypoint at 0, 0 is labelled, as exports write those that are not.",
        "Give it visibility 0.",
    )
    EMPTY_CORNERS = (
        "empty-corners",
        "warning",
        "The corners of a rotated box have no area.",
        "Fix or remove the object.",
    )


PIXEL_CHECKS = frozenset(ImageCheck) - {
    ImageCheck.UNREADABLE_FILE,
    ImageCheck.WRONG_EXTENSION,
    ImageCheck.MASK_0_255,
    ImageCheck.TINY_BOX,
    ImageCheck.KEYPOINTS_TOGETHER,
    ImageCheck.KEYPOINT_AT_ORIGIN,
    ImageCheck.EMPTY_CORNERS,
}
"""Those that need decoded images."""


MaskValues: TypeAlias = dict[str, tuple[str, set[int]]]
"""By feature: the first sample with a mask, and the values of all masks."""


@dataclass
class Checked:
    """The result for some consecutive samples.

    findings: of these samples.
    image_count: number of decoded images.
    contents: a hash of the pixels of each image; 0 without one.
    shapes: what each image shows, SHAPE_BYTES of each; 0 without one.
    annotations: a hash of the annotations of each; 0 if they are unknown.
    classes: number of images by split and label.
    episodes: what is compared between episodes, by the number of the sample in these.
    mask_values: the values of all masks.
    pixels: height times width of each image; 0 without one that is decoded.
    """

    findings: Findings = field(default_factory=Findings)
    image_count: int = 0
    contents: list[int] = field(default_factory=list)
    shapes: bytearray = field(default_factory=bytearray)
    annotations: list[int] = field(default_factory=list)
    classes: Counter[tuple[str | None, int]] = field(default_factory=Counter)
    episodes: dict[int, EpisodeFacts] = field(default_factory=dict)
    mask_values: MaskValues = field(default_factory=dict)
    pixels: list[int] = field(default_factory=list)


class SampleCheck:
    """Checks samples. Thread-safe: each call has its own result."""

    def __init__(
        self,
        reader: SampleReader,
        class_names: Sequence[str | None] | None,
        samples_ahead: SamplesAhead,
        *,
        decode: bool = True,
        decode_frames: bool = True,
    ) -> None:
        self._reader = reader
        self._decode = decode
        self._decode_frames = decode_frames
        self._samples_ahead = samples_ahead
        self._class_count = None if class_names is None else len(class_names)

    def check(self, samples: Sequence[Sample]) -> Checked:
        checked = Checked()
        for item in self._samples_ahead.each(samples):
            self._check(item, checked)
        return checked

    def _check(self, item: SampleToRead, checked: Checked) -> None:
        sample, findings = item.sample, checked.findings
        name, row = place_of(self._reader, sample)
        findings.number = len(checked.contents)

        def note(what: str, where: str) -> None:
            check = what.check if isinstance(what, Flaw) else Check.CHANGED
            if check is not Check.EXIF_ORIENTATION:  # checked for every image
                example = LintExample(name, what, where or row)
                findings.add(check, example, severity=Severity.NOTE)

        features: Mapping[str, Any] = {}
        episode = None
        is_annotated = False
        try:
            content = decode_content(item.read(note))
            features, episode = features_of(content), episode_of(content)
            is_annotated = True
        except (DataError, FileAccessError, SourceError) as error:
            root = getattr(self._reader, "root", None)
            problems = list(_problems(error, name, row, root))
            for check, example in problems:
                findings.add(check, example, severity=Severity.ERROR)  # it cannot be packed
            if problems[0][0] is not ImageCheck.UNREADABLE_IMAGE or problems[0][1].place:
                features = image_of(self._reader, sample)
        data = image_in(features) if episode is None else None
        pixel_hash, shape, pixel_count = 0, bytes(SHAPE_BYTES), 0
        if episode is not None:
            self._check_episode(name, row, episode, checked)
        elif data is not None:
            image = self._check_image(name, row, data, features, checked)
            pixel_hash, shape, pixel_count = image
        checked.pixels.append(pixel_count)
        checked.contents.append(pixel_hash)
        checked.shapes += shape
        checked.annotations.append(_annotation_hash(features) if is_annotated else 0)
        labels = {*_labels(features)} if sample.label is None else {sample.label}
        checked.classes.update((sample.split, label) for label in labels)
        _check_boxes(name, features, findings)
        for key, mask in masks_in(features):
            self._check_mask(key, name, mask, checked)

    def _check_episode(self, name: str, row: str, episode: Episode, checked: Checked) -> None:
        def add(check: LintCheck, found: str, step: int | None) -> None:
            place = ", ".join(filter(None, (row, "" if step is None else f"step {step}")))
            checked.findings.add(check, LintExample(name, found, place))

        def decode(key: str, step: int, data: bytes) -> npt.NDArray[np.uint8 | np.uint16] | None:
            try:
                head = read_image_header(data)
                check_size(head.height, head.width, MAX_PIXELS, is_fixed=True)
                with reserve_for_decoding(data, head, max_pixels=None):
                    return decode_exact(
                        data,
                        head,
                        lambda detail: add(ImageCheck.DAMAGED_IMAGE, f"{key}: {detail}", step),
                    ).pixels
            except DataError as error:
                add(ImageCheck.UNREADABLE_IMAGE, f"{key}: {error.detail}", step)
                return None

        facts, frame_count = check_episode(episode, add, decode if self._decode_frames else None)
        checked.episodes[len(checked.contents)] = facts
        checked.image_count += frame_count

    def _check_image(
        self, name: str, row: str, data: bytes, features: Mapping[str, Any], checked: Checked
    ) -> tuple[int, bytes, int]:
        """Decode an image and check it; return a hash of its pixels, its shape, their number."""
        content, shape = hash_of(data), bytes(SHAPE_BYTES)

        def add(check: LintCheck, found: str, severity: Severity | None = None) -> None:
            checked.findings.add(check, LintExample(name, found, row), severity=severity)

        try:
            head = read_image_header(data)
            check_size(head.height, head.width, MAX_PIXELS, is_fixed=True)
            if self._decode:
                with reserve_for_decoding(data, head, max_pixels=None):
                    decoded = decode_exact(
                        data, head, lambda detail: add(ImageCheck.DAMAGED_IMAGE, detail)
                    )
                    content, shape = _pixel_hash(decoded.pixels), shape_of(decoded.pixels)
                    for check, found in _surprises(decoded):
                        add(check, found)
                checked.image_count += 1
        except DataError as error:
            add(ImageCheck.UNREADABLE_IMAGE, error.detail)
            return content, shape, 0
        stated = first_value(features, keys.HEIGHT), first_value(features, keys.WIDTH)
        if stated[0] is not None and stated != (head.height, head.width):
            add(
                Check.IMAGE_SIZE,
                f"stated size {stated[1]}x{stated[0]}, image size {head.width}x{head.height}",
            )
        if (wrong := wrong_extension(name, head.format)) is not None:
            add(ImageCheck.WRONG_EXTENSION, wrong)
        orientation = exif_orientation(data)
        if orientation != UPRIGHT:
            depends = bool(values_of(features.get(keys.BOX[0]))) or keys.MASK in features
            add(
                Check.EXIF_ORIENTATION,
                f"orientation {orientation}" + (", with boxes or a mask" if depends else ""),
                None if depends else Severity.NOTE,
            )
        return content, shape, head.height * head.width

    def _check_mask(self, key: str, name: str, data: bytes, checked: Checked) -> None:
        try:
            mask = decode_mask(data)
        except DataError as error:
            checked.findings.add(Check.MASK_FORMAT, LintExample(name, error.detail, "mask"))
            return
        known = checked.mask_values.setdefault(key, (name, set()))[1]
        known.update(np.flatnonzero(np.bincount(mask.reshape(-1))).tolist())
        if key != keys.MASK:
            return
        most = self._class_count
        beyond = mask[(mask >= (most or 0)) & (mask != _IGNORED)]
        if most is not None and len(beyond):
            found = (
                f"{len(beyond):,} pixels have values up to {beyond.max()}; expected classes 0 to "
                f"{most - 1}, or {_IGNORED} to ignore"
            )
            checked.findings.add(Check.MASK_VALUES, LintExample(name, found, "mask"))


def wrong_extension(name: str, format_: str) -> str | None:
    extension = posixpath.splitext(name)[1].lstrip(".").lower()
    if not has_image_name(name) or usual_name(extension) == usual_name(format_):
        return None
    return f"a {format_.upper()} file with the extension .{extension}"


def _labels(features: Mapping[str, Any]) -> Iterator[int]:
    for key in _CLASS_KEYS:
        known = positive_values(features, key)
        values = [int(value) for value in known if isinstance(value, (int, np.integer))]
        may_be_hot = key == keys.CLASS_LABEL and values and keys.CLASS_TEXT not in features
        if may_be_hot and is_one_hot(len(values), min(values), max(values)):
            values = [label for label, value in enumerate(values) if value]
        yield from values


def _pixel_hash(pixels: npt.NDArray[np.uint8 | np.uint16]) -> int:
    flat = hash_of(np.ascontiguousarray(pixels).reshape(-1).view(np.uint8))
    return hash_of(repr((pixels.shape, flat)).encode())


def _annotation_hash(features: Mapping[str, Any]) -> int:
    """A hash of the classes and those of the objects; boxes drawn twice always differ a little."""
    known = [sorted(map(repr, values_of(features.get(key)))) for key in _CLASS_KEYS]
    return hash_of(repr(known).encode())


def _problems(
    error: RecordsmithError, name: str, row: str, root: object
) -> Iterator[tuple[LintCheck, LintExample]]:
    """The checks that an error belongs to, one for each problem."""
    path = str(getattr(error, "path", None) or "").removeprefix(f"{root}/")
    place = row if path in ("", name) else path
    if isinstance(error, DataError):
        is_image = error.defect is Defect.UNREADABLE_IMAGE
        check = ImageCheck.UNREADABLE_IMAGE if is_image else Check.UNREADABLE_SAMPLE
        yield check, LintExample(name, error.detail, place)
        return
    if isinstance(error, FileAccessError):
        yield ImageCheck.UNREADABLE_FILE, LintExample(name, error.reason, place)
        return
    assert isinstance(error, SourceError)
    if isinstance(error.problem, Flaw):
        line = "" if error.line is None else f"{path}, line {error.line}"
        yield error.problem.check, LintExample(name, error.problem.found, line or place)
        return
    for problem in error.problems:
        if isinstance(problem, Flaw):
            yield problem.check, LintExample(name, problem.found, problem.place, box=problem.box)
        else:
            yield Check.UNREADABLE_SAMPLE, LintExample(name, problem)


def _surprises(decoded: Decoded) -> Iterator[tuple[LintCheck, str]]:
    """What readers of the image may not expect."""
    if decoded.was_cmyk:
        yield ImageCheck.CMYK, "CMYK colours"
    if decoded.pixels.dtype == np.uint16:
        yield ImageCheck.HIGH_BIT_DEPTH, "16 bits per channel"
    if decoded.has_alpha:
        alpha = decoded.pixels[:, :, -1]
        seen = np.iinfo(alpha.dtype).max
        hidden = int((alpha < seen).sum())
        if hidden:
            yield ImageCheck.ALPHA, f"{hidden / alpha.size:.1%} of the pixels are transparent"
    if decoded.is_animated:
        yield ImageCheck.ANIMATION, "several frames"


def _check_boxes(name: str, features: Mapping[str, Any], findings: Findings) -> None:
    height, width = first_value(features, keys.HEIGHT), first_value(features, keys.WIDTH)
    boxes = boxes_of(features)
    for check, found, number in _check_points(features, len(boxes)):
        example = LintExample(name, found, f"object {number + 1}", box=boxes[number])
        findings.add(check, example)
    if not (height and width):
        return
    for number, (ymin, xmin, ymax, xmax) in enumerate(boxes, 1):
        across, down = (xmax - xmin) * width, (ymax - ymin) * height
        if 0 < min(across, down) < TINY_PIXELS:
            findings.add(
                ImageCheck.TINY_BOX,
                LintExample(
                    name,
                    f"{across:.3g} x {down:.3g} pixels",
                    f"object {number}",
                    box=(ymin, xmin, ymax, xmax),
                ),
            )


def _check_points(features: Mapping[str, Any], count: int) -> Iterator[tuple[LintCheck, str, int]]:
    """Yield what is wrong with which of `count` objects."""
    points = object_values(features, keys.KEYPOINT, count)
    for number, of_object in enumerate(() if points is None else points):
        places = of_object[of_object[:, 2] > 0, :2]
        outside = ((places < 0) | (places > 1)).any(axis=1)
        if outside.any():
            yield Check.KEYPOINT_OUTSIDE, f"{outside.sum()} keypoints outside the image", number
        if len(places) > 1 and (places == places[0]).all():
            yield ImageCheck.KEYPOINTS_TOGETHER, f"{len(places)} keypoints at one point", number
        elif len(at_origin := np.flatnonzero((places == 0).all(axis=1))):
            yield ImageCheck.KEYPOINT_AT_ORIGIN, f"{len(at_origin)} keypoints at 0, 0", number
    corners = object_values(features, keys.CORNER, count)
    if corners is not None and corners.size:
        after = np.roll(corners, -1, axis=1)
        areas = (corners[:, :, 0] * after[:, :, 1] - corners[:, :, 1] * after[:, :, 0]).sum(axis=1)
        for number in np.flatnonzero(np.abs(areas) < 1e-9).tolist():
            yield ImageCheck.EMPTY_CORNERS, "the corners have no area", number
