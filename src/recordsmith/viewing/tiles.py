"""Tiles of the gallery: what is seen of a record of any kind, as a line of JSON."""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.dataset import begin_of, bytes_text, contents_of, key_text
from recordsmith.format.example import Features, Schema, classify, encode_example, keys
from recordsmith.format.example.payload import as_text
from recordsmith.image import Pixels, encode_jpeg, encode_png, fit_to_tile, resize_nearest
from recordsmith.support.errors import DataError, RecordsmithError
from recordsmith.support.words import count as format_count
from recordsmith.viewing.compressed_stream import Payload
from recordsmith.viewing.drawing.scene import Scene, SceneReader
from recordsmith.viewing.drawing.sheet import caption_of
from recordsmith.viewing.lru_cache import LruCache
from recordsmith.viewing.records import ViewedRecords, survey
from recordsmith.viewing.wire_fields import describe_fields

SIZES = (64, 512)
"""The least and the most pixels of the longer side of a tile."""

_CACHED_BYTES = 48 << 20
_QUALITY = 80
_DARK = 48  # an image without a brighter pixel is stretched
_MAX_TEXT = 400
_MAX_LINES = 10
_MAX_FRAMES = 6
_MAX_BOXES = 300
_DECIMALS = 5  # of shares of an image
_SERIES_FROM = 8  # values
_SERIES_POINTS = 240
_SERIES_TESTED = 100_000
_PROBLEM_FIELDS = ("problem", "path", "record", "offset", "feature", "found", "expected", "remedy")
_LARGEST_NUMBER = 2**53  # that a browser reads without loss


class TileMaker:
    """Makes tiles of records, and keeps those that were made last. Thread-safe."""

    def __init__(self, records: ViewedRecords) -> None:
        self._records = records
        self.reader = self._reader_of(records.schema)
        self._cached: LruCache[tuple[int, int], bytes] = LruCache(_CACHED_BYTES, size_of=len)

    def cached(self, position: int, size: int) -> bytes | None:
        """Return a tile that was made before, without its place."""
        return self._cached.get((position, size))

    def make(self, position: int, payload: Payload, size: int) -> bytes:
        """Return the tile of a record: the members of a JSON object, without its place."""
        line = msgspec.json.encode(self._tile(position, payload, size))
        return self._cached.get_or_make((position, size), lambda: line)

    def reader_for(self, example: Features) -> SceneReader:
        """Return what reads the image of an example, which may differ from the first ones."""
        has_bytes = any(isinstance(value, list) for value in example.values())
        if self.reader.is_drawable(example) or not has_bytes:
            return self.reader
        small = {
            key: [item[:4096] for item in value[:1]] if isinstance(value, list) else value[:1]
            for key, value in example.items()
            if len(value)
        }
        return self._reader_of(survey([encode_example(small)]))

    def _reader_of(self, schema: Schema) -> SceneReader:
        view = self._records.view
        return SceneReader(schema.features, view.class_names, view.keypoint_classes)

    def _tile(self, position: int, payload: Payload, size: int) -> dict[str, Any]:
        tile: dict[str, Any] = {
            "position": position,
            "name": "",
            "caption": "",
            "label": None,
            "kind": "fields",
            "image": None,
            "width": 0,
            "height": 0,
            "boxes": [],
            "mask": None,
            "text": "",
            "series": None,
            "frames": None,
            "frame_count": 0,
            "problem": None,
        }
        if isinstance(payload, RecordsmithError):
            return tile | {"kind": "damage", "problem": problem_of(payload)}
        try:
            self._fill(tile, payload, size)
        except RecordsmithError as error:
            tile |= {"kind": "damage", "problem": problem_of(error)}
        except Exception as error:  # noqa: BLE001 - no record may end the gallery
            tile |= {
                "kind": "damage",
                "problem": {"defect": "", "message": f"cannot be shown: {type(error).__name__}"},
            }
        return tile

    def _fill(self, tile: dict[str, Any], payload: bytes, size: int) -> None:
        kind = classify(payload)
        try:
            sections = contents_of(payload)
        except DataError as error:
            text = begin_text(payload)
            lines = [text] if text else describe_fields(payload, _MAX_LINES)
            tile["text"] = "\n".join(lines)[:_MAX_TEXT] or begin_of(payload)
            tile["kind"] = "text" if text else "fields"
            tile["caption"] = "TensorBoard event" if kind == "Event" else ""
            if kind == "Example":
                tile |= {"kind": "damage", "problem": problem_of(error)}
            return
        if "feature_lists" in sections:
            self._fill_steps(tile, sections["context"], sections["feature_lists"], size)
        elif "examples" in sections:
            examples = sections["examples"]
            tile["kind"] = "numbers"
            tile["caption"] = format_count(len(examples), "example")
            tile["text"] = "\n".join(_lines(sections["context"], _MAX_LINES // 2))
            for number, example in enumerate(examples[: _MAX_LINES // 2]):
                tile["text"] += f"\n{number}: " + ", ".join(_lines(example, 3))
            tile["text"] = tile["text"].lstrip()
        else:
            self._fill_example(tile, sections["features"], size)

    def _fill_example(self, tile: dict[str, Any], example: Features, size: int) -> None:
        reader = self.reader_for(example)
        name = PurePosixPath(reader.name(example).replace("\\", "/")).name
        tile["name"] = name[:200]
        if reader.is_drawable(example):
            try:
                self._fill_image(tile, reader.read(example, size), size)
            except DataError as error:
                text = "\n".join(_lines(example, _MAX_LINES))
                tile |= {"kind": "damage", "problem": problem_of(error), "text": text}
                return
            images = example.get(str(reader.image_key))
            if isinstance(images, list) and len(images) > 1:
                self._fill_frames(tile, images, size)
            return
        label, caption = reader.read_class(example)
        tile["label"], tile["caption"] = exact(label), caption[:_MAX_TEXT]
        self._fill_values(tile, example)

    def _fill_image(self, tile: dict[str, Any], scene: Scene, size: int) -> None:
        caption, _ = caption_of(scene)
        tile |= {
            "kind": "image",
            "width": scene.width,
            "height": scene.height,
            "caption": caption[:_MAX_TEXT],
            "label": exact(scene.label),
        }
        small = fit_to_tile(scene.pixels, size)
        pixels, note = visible(small) if scene.mask is None else (small, "")
        tile["text"] = note
        if pixels is None:
            tile["kind"] = "text"
        else:
            tile["image"] = _url("image/jpeg", encode_jpeg(pixels, quality=_QUALITY))
            if scene.mask is not None:
                mask = resize_nearest(scene.mask, *pixels.shape[:2])
                tile["mask"] = _url("image/png", encode_label_map(mask))
        tile["boxes"] = boxes_of(scene, _MAX_BOXES)

    def _fill_frames(self, tile: dict[str, Any], images: Sequence[bytes], size: int) -> None:
        numbers = dict.fromkeys(len(images) * k // _MAX_FRAMES for k in range(_MAX_FRAMES))
        frames = [_frame(images[number], size // 2) for number in numbers if images]
        tile["frames"] = [frame for frame in dict.fromkeys(frames) if frame] or None
        tile["frame_count"] = len(images)

    def _fill_values(self, tile: dict[str, Any], example: Features) -> None:
        """Show a text, a curve, or the first values."""
        texts = [
            text
            for key, value in example.items()
            if isinstance(value, list) and value and len(value[0]) > 16
            if (text := begin_text(value[0])) is not None
        ]
        series = _longest_series(example)
        longest = max(texts, key=len, default="")
        if series is not None:
            key, values = series
            tile |= {"kind": "series", "series": shortened_series(values)}
            tile["text"] = f"{key_text(key)}: {format_count(len(values), 'value')}"
        elif longest:
            tile |= {"kind": "text", "text": longest[:_MAX_TEXT]}
            if longest.startswith(tile["caption"]):
                tile["caption"] = ""
        else:
            tile |= {"kind": "numbers", "text": "\n".join(_lines(example, _MAX_LINES))}
            tile["text"] = tile["text"] or "no features"

    def _fill_steps(
        self, tile: dict[str, Any], context: Features, lists: Mapping[str, Sequence[Any]], size: int
    ) -> None:
        most = max(map(len, lists.values()), default=0)
        tile |= {"kind": "steps", "caption": format_count(most, "step")}
        lines = [f"{key_text(name)}: {len(steps):,}" for name, steps in [*lists.items()][:4]]
        tile["text"] = "\n".join([*_lines(context, 4), *lines])
        for steps in lists.values():
            if tile["frames"] is None and steps and isinstance(steps[0], list):
                self._fill_frames(tile, [step[0] for step in steps if step], size)
            elif tile["series"] is None and len(steps) > 1 and isinstance(steps[0], np.ndarray):
                values = [step[0] if len(step) else math.nan for step in steps[:_SERIES_TESTED]]
                if is_series(numbers := np.array(values)):
                    tile["series"] = shortened_series(numbers)


def problem_of(error: RecordsmithError) -> dict[str, Any]:
    """Describe an error: its message, and its fields one by one."""
    fields = {
        name: value[:1000] if isinstance(value, str) else value
        for name, value in error.to_json().items()
        if name in _PROBLEM_FIELDS
    }
    defect = str(getattr(error, "defect", ""))
    return {**exact(fields), "defect": defect, "message": str(error)[:1000]}


def boxes_of(scene: Scene, most: int) -> list[list[Any]]:
    """Return the first boxes: ymin, xmin, ymax, xmax, the class and its name.

    If there are any, the corners (x, y) and the keypoints (x, y, visibility) follow, end to end.
    """
    zipped = zip(scene.boxes, scene.box_labels, scene.box_texts, strict=True)
    boxes: list[list[Any]] = [
        [*box, exact(label), text[:_MAX_TEXT]]
        for box, label, text in itertools.islice(zipped, most)
    ]
    more = () if scene.corners is scene.points is None else (scene.corners, scene.points)
    for points in more:
        for number, box in enumerate(boxes):
            box.append(None if points is None else points[number].round(_DECIMALS).ravel().tolist())
    return boxes


def begin_text(data: bytes) -> str | None:
    """Return the beginning of a text; None for other bytes."""
    begin = data[: 4 * _MAX_TEXT]
    for cut in range(4 if len(begin) < len(data) else 1):  # a letter may be cut
        text = as_text(begin[: len(begin) - cut])
        if text is not None:
            return text[:_MAX_TEXT]
    return None


def visible(pixels: Pixels) -> tuple[Pixels | None, str]:
    """Stretch the contrast of an image that would look black; None if all its pixels are equal."""
    high = int(pixels.max(initial=0))
    if high >= _DARK:
        return pixels, ""
    low = int(pixels.min(initial=high))
    if low == high:
        return None, f"every pixel is {low}"
    levels = np.clip((np.arange(256) - low) * 255 // (high - low), 0, 255).astype(np.uint8)
    return levels[pixels], f"values {low} to {high}, brightened"


def encode_label_map(mask: npt.NDArray[Any]) -> bytes:
    return encode_png((mask & mask.dtype.type(255)).astype(np.uint8)[:, :, np.newaxis])


def is_series(values: npt.NDArray[Any]) -> bool:
    """Whether numbers are drawn as a curve: floats, and integers whose neighbours are alike.

    Token ids and class numbers are not. Equal numbers at both ends, such as padding, do not count.
    """
    if values.dtype.kind == "f":
        return True
    numbers = values[:_SERIES_TESTED].astype(np.float64)
    changed = np.flatnonzero(np.diff(numbers))
    if not len(changed):
        return False
    numbers = numbers[changed[0] : changed[-1] + 2]
    return bool(np.square(np.diff(numbers)).mean() < numbers.var())


def shortened_series(values: npt.NDArray[Any], points: int = _SERIES_POINTS) -> list[float | None]:
    """Return the values of a curve; of many, the least and the most of each part."""
    numbers = values.astype(np.float64)
    if len(numbers) > points:
        cuts = np.linspace(0, len(numbers), points // 2 + 1).astype(np.int64)[:-1]
        low, high = np.fmin.reduceat(numbers, cuts), np.fmax.reduceat(numbers, cuts)
        numbers = np.stack([low, high], 1).ravel()
    return [number if math.isfinite(number) else None for number in numbers.tolist()]


def _longest_series(example: Features) -> tuple[str, npt.NDArray[Any]] | None:
    series = [
        (key, value)
        for key, value in example.items()
        if isinstance(value, np.ndarray)
        and len(value) >= _SERIES_FROM
        and "/object/" not in key
        and is_series(value)
    ]
    return max(series, key=lambda item: len(item[1]), default=None)


def _lines(features: Features, most: int) -> list[str]:
    """The first features in a line each; of few features, more numbers."""
    lines = []
    for key in sorted(features)[:most]:
        value = features[key]
        shown_count = 4 if isinstance(value, list) else max(4, 60 // len(features))
        shown = ", ".join(
            bytes_text(v)
            if isinstance(v, bytes)
            else f"{v:.6g}"
            if isinstance(v, float)
            else str(v)
            for v in value[:shown_count]
        )
        more = " …" if len(value) > shown_count else ""
        lines.append(f"{key_text(key)[:80]}: {shown}{more}")
    return lines


def _frame(data: bytes, side: int) -> str | None:
    """Return a step's image, small; None for other bytes."""
    reader = SceneReader({})
    reader.image_key = keys.IMAGE
    try:
        pixels, _ = visible(fit_to_tile(reader.read({keys.IMAGE: [data]}, side).pixels, side))
    except DataError:
        return None
    return None if pixels is None else _url("image/jpeg", encode_jpeg(pixels, quality=_QUALITY))


def _url(content_type: str, data: bytes) -> str:
    return f"data:{content_type};base64,{base64.b64encode(data).decode()}"


def exact(document: Any) -> Any:
    """Return a document with integers that a browser would round as text."""
    if isinstance(document, int):
        return document if abs(document) <= _LARGEST_NUMBER else str(document)
    if isinstance(document, dict):
        return {key: exact(value) for key, value in document.items()}
    return [exact(value) for value in document] if isinstance(document, list) else document
