"""Label Studio's JSON: a list of tasks, each with an image and what annotators drew on it.

Coordinates are percents of the sides of the image. A region is all results with one id: its shape,
its labels, and choices or texts about it.
"""

from __future__ import annotations

import base64
import codecs
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.image import encode_mask
from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    Entry,
    outlined,
    text_as_utf8,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.problems import join_names
from recordsmith.support.errors import SourceError, option

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recordsmith.sources.boxes.source import BoxOptions
    from recordsmith.stores import PlaceLike

MAX_TASK_BYTES = 1 << 26
"""Of a task with all its regions."""

MAX_BRUSH_PIXELS = 1 << 26
"""Of the image of a brush region, whose mask is decoded when it is listed."""

_Draw: TypeAlias = Callable[[Mapping[str, Any], Any], AnnotatedObject]
_Shape: TypeAlias = tuple[_Draw, Mapping[str, Any], Sequence[Mapping[str, Any]]]
"""How a region is drawn, the result with its shape, and all its results."""

_TASKS = re.compile(rb'"(annotations|completions)"\s*:\s*\[')
_KEY = re.compile(rb'"(result|predictions|completed_by|file_upload|was_cancelled)"\s*:')
_UPLOADED = re.compile(r"(?:^|(?<=/))[0-9a-f]{8}-(?=[^/]+$)")
_BYTE = re.compile(r" \(byte (\d+)\)")
_ELLIPSE_POINTS = 64
_ABOUT = ("choices", "text", "number", "rating", "taxonomy", "datetime")
_NO_PARENT = "it has no parentID: in Label Studio, drop the keypoint on its box"
_OTHER = "results were left out that are neither shapes, keypoints, choices nor texts"
_REMEDY = "Copy the images next to the file: Label Studio exports only their addresses as JSON."


def matches(head: bytes) -> bool:
    """Whether a file begins like a list of tasks."""
    is_list = head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    return is_list and bool(_TASKS.search(head)) and bool(_KEY.search(head))


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    left: Counter[str] = Counter()
    for number, task in enumerate(_tasks(file), 1):
        where = f"task {task.get('id', number)!s:.60}"
        listed = _list(task.get("annotations", task.get("completions")))
        found = [item for item in listed if isinstance(item, dict)]
        done = [item for item in found if not item.get("was_cancelled")]
        own = [item for item in done if file.columns.get("annotator", "") in _annotator(item)]
        left["predictions"] += len(_list(task.get("predictions")))
        left["cancelled annotations"] += len(found) - len(done)
        left["annotations of other annotators"] += len(done) - len(own)
        left["tasks without annotation"] += not own
        if own:
            path = _image_path(file, where, task.get("data"))
            results = _list(_only(file, where, own).get("result"))
            image = _annotated(f"{file.name}, {where}", where, results)
            yield image._replace(file_name=path, id=task.get("id"), remedy=_REMEDY)
    for what, times in (+left).items():
        file.notices.append(f"{what} in {file.name} left out: {times:,}")


def _tasks(file: AnnotationFile) -> Iterator[dict[str, Any]]:
    data = text_as_utf8(file.location.read(), file.name).removeprefix(codecs.BOM_UTF8)
    start, stop, problem = 0, 0, f"a task is longer than {MAX_TASK_BYTES:,} bytes"
    try:
        for raw in msgspec.json.decode(data, type=list[msgspec.Raw]):
            task = memoryview(raw)
            start = data.find(task, stop)
            stop = start + len(task)
            if len(task) > MAX_TASK_BYTES:
                raise SourceError(problem, path=file.name, remedy="Remove its brush regions.")
            yield msgspec.json.decode(task, type=dict)
    except (ValueError, RecursionError) as error:
        match = _BYTE.search(str(error))
        line = data.count(b"\n", 0, start + int(match[1] if match else 0)) + 1
        raise SourceError(f"not a list of tasks: {error}", path=file.name, line=line) from None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _annotator(annotation: Mapping[str, Any]) -> tuple[str, ...]:
    """The id and email of who made an annotation; and an empty text, which is anyone."""
    by = annotation.get("completed_by")
    named = by if isinstance(by, dict) else {"id": by}
    return (str(named.get("id")), str(named.get("email", "")), "")


def _only(file: AnnotationFile, where: str, found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The only annotation of a task; of several of one annotator, the ground truth."""
    annotators = sorted({_annotator(item)[0] for item in found})
    best = [item for item in found if item.get("ground_truth")] or found
    if len(annotators) == len(best) == 1:
        return best[0]
    remedy = "Delete all but one in Label Studio, or mark one as the ground truth."
    if len(annotators) > 1:
        remedy = f"Choose one by id or email, such as {option('annotator', annotators[0])}."
    raise SourceError(
        f"{where} has {len(found)} annotations of annotator {join_names(annotators)}",
        path=file.name,
        remedy=remedy,
    )


def _image_path(file: AnnotationFile, where: str, data: Any) -> str:
    """The path of the image of a task, from its address."""
    texts = {k: v for k, v in data.items() if isinstance(v, str)} if isinstance(data, dict) else {}
    named = [key for key in texts if has_image_name(_path(texts[key]))]
    key = file.columns.get("image_column") or ("image" if "image" in texts else "")
    key = key or (named[0] if len(named) == 1 else "one image")
    if key in texts:
        return _path(texts[key])
    found = join_names(map(repr, named or texts)) or "nothing"
    raise SourceError(
        f"{where}: expected {key} in its data; found {found}",
        path=file.name,
        remedy=f"Pass the key of the image with {option('image_column', (named or ['image'])[0])}.",
    )


def _path(address: str) -> str:
    """s3://bucket/a%20b.jpg?key=1: bucket/a b.jpg; /data/local-files/?d=a/b.jpg: a/b.jpg."""
    if address.startswith("data:"):
        return address[:40]
    path, _, query = address.partition("?")
    values = dict(part.partition("=")[::2] for part in query.split("&"))
    return unquote(values.get("d") or path.partition("://")[2] or path)


def _annotated(place: str, where: str, results: Sequence[Any]) -> AnnotatedImage:
    """What an annotation has: regions with a shape, and results about the whole image."""
    regions: dict[str, list[Mapping[str, Any]]] = {}
    item: Mapping[str, Any]
    for number, result in enumerate(results):
        item = result if isinstance(result, dict) else {"type": f"{result!s:.30}"}
        item = item if isinstance(item.get("value"), dict) else {**item, "value": {}}
        regions.setdefault(str(item.get("id", number)), []).append(item)
    shapes: dict[str, _Shape] = {}
    notes: list[tuple[str, str]] = []
    captions: list[str] = []
    labels: dict[str, float] | None = None
    for key, items in regions.items():
        known = ((draw, n) for kind, draw in _DRAWN.items() for n in items if kind in n["value"])
        if shape := next(known, None):
            shapes[key] = (*shape, items)
            continue
        for item in items:
            value = item["value"]
            if "choices" in value:
                labels = {} if labels is None else labels
                labels |= {name: 1.0 for name in _listed(value["choices"]) if isinstance(name, str)}
            elif "text" in value:
                captions += map(str, _listed(value["text"]))
            else:
                notes.append((_OTHER, f"{place}, region {key:.60}: {item.get('type')!s:.60}"))
    size = next(filter(None, (_size(item) for _, item, _ in shapes.values())), (0.0, 0.0))
    objects = _objects(where, shapes, size)
    return AnnotatedImage(
        where, size=size, objects=objects, notes=notes, captions=captions, labels=labels
    )


def _objects(
    where: str, shapes: Mapping[str, _Shape], size: tuple[float, float]
) -> list[AnnotatedObject]:
    """The objects of regions, with the keypoints whose parent they are."""
    objects: list[AnnotatedObject] = []
    points: dict[str, dict[str, tuple[float, ...]]] = {}
    for key, (draw, shape, items) in sorted(shapes.items(), key=lambda item: item[1][0] is _point):
        place, values = f"{where}, region {key:.60}", [item["value"] for item in items]
        lists = (value[kind] for value in values for kind in value if kind.endswith("labels"))
        names = next(filter(None, map(_list, lists)), [None])
        parent = points.get(str(shape.get("parentID")))
        try:
            if _size(shape) != size or shape.get("image_rotation"):
                sides = ("original_width", "original_height", "image_rotation")
                given = ", ".join(f"{name} {shape.get(name)}" for name in sides)
                raise ValueError(f"{given}; expected {size[0]:g}, {size[1]:g}, 0")
            drawn = draw(shape["value"], np.array(size) / 100)
            if draw is _point and (parent is None or names[0] in parent):
                raise ValueError(_NO_PARENT if parent is None else f"another {names[0]!r:.60}")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            fault = f"invalid {shape.get('type')!s:.30}: {error!s:.200}"
            objects.append(AnnotatedObject(place, "", fault=fault))
            continue
        if draw is _point and parent is not None:
            parent[str(names[0])] = (*drawn.corners[:2], 2)
            continue
        about = [(item, kind) for kind in _ABOUT for item in items if kind in item["value"]]
        known = {
            str(item.get("from_name", kind)): _text(item["value"][kind]) for item, kind in about
        }
        points[key] = {}
        drawn = drawn._replace(where=place, points=points[key], attributes=known)
        unnamed = AnnotatedObject(place, None, fault="the region has no label")
        objects += [drawn._replace(name=str(name)) if name else unnamed for name in names]
    return objects


def _size(shape: Mapping[str, Any]) -> tuple[float, float] | None:
    """The size of the image that a region was drawn on."""
    size = to_float(shape.get("original_width")), to_float(shape.get("original_height"))
    return size if all(0 < side < math.inf for side in size) else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str | float:
    """The value of an attribute: a number, a text, or several with commas between them."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return ", ".join("/".join(map(str, _listed(part))) for part in _listed(value))


def _numbers(value: Mapping[str, Any], sides: str) -> npt.NDArray[np.float64]:
    numbers = np.array([to_float(value.get(side)) for side in sides.split()])
    if not np.isfinite(numbers).all():
        raise ValueError(f"expected numbers {sides}")
    return numbers


def _turned(value: Mapping[str, Any], offsets: Any, scale: Any) -> list[tuple[float, float]]:
    """Points that are rotated clockwise about x and y, from their offsets in pixels."""
    x, y, degrees = _numbers({"rotation": 0, **value}, "x y rotation")
    angle = math.radians(degrees % 360)
    cosine, sine = math.cos(angle), math.sin(angle)
    turned = offsets @ np.array([[cosine, sine], [-sine, cosine]]) + (x, y) * scale
    return [(across, down) for across, down in turned.tolist()]


def _rectangle(value: Mapping[str, Any], scale: Any) -> AnnotatedObject:
    """A box that is rotated about its top left corner."""
    sides = _numbers(value, "width height") * scale
    points = _turned(value, sides * [(0, 0), (1, 0), (1, 1), (0, 1)], scale)
    if not value.get("rotation"):
        return AnnotatedObject("", "", (*points[0], *points[2]), "box")
    return outlined("", "", points)._replace(quad=[side for point in points for side in point])


def _polygon(value: Mapping[str, Any], scale: Any) -> AnnotatedObject:
    points = np.array(value["points"], np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2 or not np.isfinite(points).all():
        raise ValueError("expected at least two points [x, y]")
    return outlined("", "", [(x, y) for x, y in (points * scale).tolist()])


def _ellipse(value: Mapping[str, Any], scale: Any) -> AnnotatedObject:
    turns = np.arange(_ELLIPSE_POINTS) * (2 * math.pi / _ELLIPSE_POINTS)
    circle = np.stack((np.cos(turns), np.sin(turns)), axis=1)
    radii = _numbers(value, "radiusX radiusY") * scale
    return outlined("", "", _turned(value, circle * radii, scale))


def _point(value: Mapping[str, Any], scale: Any) -> AnnotatedObject:
    x, y = (_numbers(value, "x y") * scale).tolist()
    return AnnotatedObject("", "", (x, y, x, y))


def _brush(value: Mapping[str, Any], scale: Any) -> AnnotatedObject:
    """The opaque pixels of a brush, as a PNG of the part of the image that has some."""
    columns, rows = map(round, (100 * scale).tolist())
    if columns * rows > MAX_BRUSH_PIXELS:
        raise ValueError(f"more than {MAX_BRUSH_PIXELS:,} pixels: {columns}x{rows}")
    runs = list(_opaque(bytes(_list(value["rle"])), columns * rows))
    if not runs:
        raise ValueError("no pixel is opaque")
    top, stop = runs[0][0] // columns, (runs[-1][1] - 1) // columns + 1
    mask = np.zeros((stop - top, columns), np.uint8)
    for first, behind in runs:
        mask.ravel()[first - top * columns : behind - top * columns] = 1
    filled = np.flatnonzero(mask.any(axis=0))
    left, right = int(filled[0]), int(filled[-1]) + 1
    png = base64.b64encode(encode_mask(np.ascontiguousarray(mask[:, left:right]))).decode()
    outline = json.dumps({"png": png, "x": left, "y": top})
    return AnnotatedObject("", "", (left, top, right, stop), outline)


def _opaque(data: bytes, pixel_count: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of opaque pixels in Label Studio's run lengths of red, green, blue, alpha.

    A head of 57 bits has the number of values, the bits of a value, and four sizes of lengths.
    Then follow one value many times, or many values: a bit, which size, the length, the values.
    """
    position = 0

    def read(bits: int) -> int:
        nonlocal position
        start, position = position, position + bits
        if position > 8 * len(data):
            raise ValueError("truncated run lengths")
        found = int.from_bytes(data[start // 8 : (position + 7) // 8], "big")
        return found >> (-position % 8) & ((1 << bits) - 1)

    value_count, value_bits = read(32), read(5) + 1
    if value_count != 4 * pixel_count or value_bits != 8:
        text = f"run lengths of {value_count:,} values of {value_bits} bits"
        raise ValueError(f"{text}; expected {4 * pixel_count:,} of 8 bits")
    sizes = [read(4) + 1 for _ in range(4)]
    done = 0
    while done < value_count:
        is_run, stop = read(1), done + 1 + read(sizes[read(2)])
        if stop > value_count:
            raise ValueError("the run lengths have more values than the image")
        for first in (done,) if is_run else range(done, stop):
            behind = stop if is_run else first + 1
            if read(8) and first // 4 < behind // 4:
                yield first // 4, behind // 4
        done = stop


_DRAWN: Mapping[str, _Draw] = {
    "rle": _brush,
    "points": _polygon,
    "radiusX": _ellipse,
    "height": _rectangle,
    "x": _point,
}
"""How a region is drawn, by the first of these keys that its value has."""


class LabelStudio(
    SharedAnnotationSource,
    box_format=BoxFormat(
        "label-studio",
        ".json",
        matches,
        parse,
        what="images and regions of {} (Label Studio)",
        file_what="a JSON export of Label Studio",
        file_suffixes=(".json",),
        has_attributes=True,
        expected="the .json file of Label Studio's export 'JSON', next to or above its images",
    ),
):
    """Images with the regions of Label Studio's export "JSON".

    Each sample has the image and box features of `Voc`, corners where a rectangle is rotated,
    keypoints of the region that is their parent, attributes from choices and texts about a region,
    and masks as `Coco` has them. Choices of the whole image are its labels, texts its captions.
    Predictions, cancelled annotations and tasks without annotation are left out, with their number.

    Example:
        rs.pack(rs.LabelStudio("project", annotator="ann@example.org"), "packed")
    """

    def __init__(
        self,
        root: PlaceLike,
        *,
        annotations: PlaceLike | Mapping[str, PlaceLike] | None = None,
        images: PlaceLike | None = None,
        annotator: str | None = None,
        image_column: str | None = None,
        **options: Unpack[BoxOptions],
    ) -> None:
        """
        Args:
            root, annotations, images: as in `Coco`.
            annotator: id or email of the annotator whose annotations are packed; None if each task
                has annotations of one annotator.
            image_column: key of the image in the data of tasks; None to find it.
            options: `label_map`, `boxes`, `drawn` and `object_masks`, as in `Voc`.
        """
        super().__init__(root, annotations=annotations, images=images, **options)
        given = {"annotator": annotator, "image_column": image_column}
        self._columns = {name: str(value) for name, value in given.items() if value is not None}

    def _find_images(self, index: FileIndex, listed: Sequence[Entry]) -> dict[str, Entry]:
        """Also find images under their names before Label Studio's upload added 8 digits."""
        for entry in listed:
            name = entry.annotated.file_name
            plain = _UPLOADED.sub("", name)
            if plain != name and not index.find_image(name, [], entry.annotation):
                entry.annotated = entry.annotated._replace(file_name=plain)
        return super()._find_images(index, listed)
