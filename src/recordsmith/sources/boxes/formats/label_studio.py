"""Label Studio's JSON: a list of tasks, each with an image and what annotators drew on it.

Coordinates are percents of the sides of the image. A region is all results with one id: its shape,
its labels, and choices or texts about it.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    Entry,
    attributes_in,
    checked_numbers,
    decode_json,
    ellipse,
    json_text,
    outlined,
    points_in,
    quad_object,
    to_float,
    turned,
)
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
from recordsmith.sources.boxes.known_formats import is_json_with
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

_KEYS = ("result", "predictions", "completed_by", "file_upload", "was_cancelled")
_UPLOADED = re.compile(r"(?:^|(?<=/))[0-9a-f]{8}-(?=[^/]+$)")
_NO_WORD = re.compile(r"[^-\w.]")
_SHAPES = ("rle", "points", "radiusX", "height", "x")
"""Keys of values: a brush, polygon, ellipse, rectangle or point has the first of these."""

_SIZES = {"radiusX": ("radiusX", "radiusY"), "height": ("width", "height"), "x": ()}
_MAX_LABELS = 16  # of a region: each makes an object with its outline
_ABOUT = ("choices", "text", "number", "rating", "taxonomy", "datetime")
_NO_PARENT = "it has no parentID: in Label Studio, drop the keypoint on its box"
_OTHER = "results were left out that are neither shapes, keypoints, choices nor texts"
_REMEDY = "Copy the images next to the file: Label Studio exports only their addresses as JSON."


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    left: Counter[str] = Counter()
    controls = _Controls(file, left)
    data = json_text(file.location.read(), file.name)
    tasks = decode_json(data, file.name, list[msgspec.Raw], "a list of tasks (Label Studio)")
    for number, raw in enumerate(tasks, 1):
        what = f"number {number} of the list of tasks"
        task = decode_json(raw, file.name, dict[str, Any], what, max_bytes=MAX_TASK_BYTES)
        where = f"task {task.get('id', number)!s:.60}"
        listed = _list(task.get("annotations", task.get("completions")))
        found = [item for item in listed if isinstance(item, dict)]
        done = [item for item in found if not item.get("was_cancelled")]
        own = [item for item in done if file.columns.get("annotator", "") in _annotator(item)]
        left["predictions"] += len(_list(task.get("predictions")))
        left["drafts"] += len(_list(task.get("drafts")))
        left["cancelled annotations"] += len(found) - len(done)
        left["annotations of other annotators"] += len(done) - len(own)
        left["tasks without annotation"] += not own
        if own:
            left["annotations that are not the ground truth"] += len(own) - 1
            results = _list(_only(file, where, own).get("result"))
            path, named = _image_path(file, where, task.get("data"))
            about = controls.of_image(results, where, *named)
            left["results about other images"] += len(results) - len(about)
            image = _annotated(f"{file.name}, {where}", where, about, controls)
            yield image._replace(file_name=path, id=task.get("id"), remedy=_REMEDY)
    for what, times in (+left).items():
        file.notices.append(f"{what} in {file.name} left out: {times:,}")


class _Controls:
    """The controls and images of a project, by the names that results have of them."""

    def __init__(self, file: AnnotationFile, left: Counter[str]) -> None:
        self._file, self._left = file, left
        self._images: dict[str, str] = {}  # whose keys are unknown: the first task with them
        self._known: dict[str, str] = {}  # what results are: the control

    def of_image(
        self, results: Sequence[Any], where: str, key: str, keys: Collection[str]
    ) -> Sequence[Any]:
        """The results about the image with a key, of those that the data of a task has."""
        images = {item["to_name"]: where for item in results if _is_shape(item)}
        if key in images or not images.keys().isdisjoint(keys):
            return [item for item in results if _to_name(item) in (key, None)]
        self._images = images | self._images
        if len(self._images) > 1:
            names = join_names(f"{name:.60}" for name in self._images)
            places = join_names(self._images.values())
            raise SourceError(
                f"{places}: regions on the images {names}; which is {key!r} is unknown",
                path=self._file.name,
                remedy="Replace each to_name by the key of its image in the data of tasks.",
            )
        return results

    def has(self, what: str, column: str, item: Mapping[str, Any], where: str) -> bool:
        """Whether a result about the whole image is of the only control, or of the chosen one."""
        control = str(item.get("from_name"))
        chosen = self._file.columns.get(column)
        if chosen is not None and control != chosen:
            self._left[f"{what} of other controls"] += 1
        elif (known := self._known.setdefault(what, control)) != control:
            raise SourceError(
                f"{where}: {what} of whole images are of {known!r:.60} and {control!r:.60}",
                path=self._file.name,
                remedy=f"Choose one, such as {option(column, control[:60])}; others are left out.",
            )
        return chosen in (control, None)


def _to_name(result: Any) -> str | None:
    """The name of the image, or text, that a result is about."""
    name = result.get("to_name") if isinstance(result, dict) else None
    return name if isinstance(name, str) else None


def _is_shape(result: Any) -> bool:
    value = result.get("value") if _to_name(result) is not None else None
    return isinstance(value, dict) and not value.keys().isdisjoint(_SHAPES)


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


def _image_path(
    file: AnnotationFile, where: str, data: Any
) -> tuple[str, tuple[str, Sequence[str]]]:
    """The path of the image of a task, from its address; its key, and those of all images."""
    texts = {k: v for k, v in data.items() if isinstance(v, str)} if isinstance(data, dict) else {}
    named = [key for key in texts if has_image_name(_path(texts[key]))]
    key = file.columns.get("image_column") or ("image" if "image" in texts else "")
    key = key or (named[0] if len(named) == 1 else "one image")
    if key in texts:
        return _path(texts[key]), (key, named)
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


def _annotated(
    place: str, where: str, results: Sequence[Any], controls: _Controls
) -> AnnotatedImage:
    """What an annotation has: regions with a shape, and results about the whole image."""
    regions: dict[str, list[Mapping[str, Any]]] = {}
    item: Mapping[str, Any]
    for number, result in enumerate(results):
        item = result if isinstance(result, dict) else {"type": f"{result!s:.30}"}
        value = item.get("value")
        known = {**item, "value": value if isinstance(value, dict) else {}}
        regions.setdefault(str(item.get("id", number)), []).append(known)
    objects: list[AnnotatedObject] = []
    points: dict[str, dict[str, tuple[float, ...]]] = {}
    notes: list[tuple[str, str]] = []
    captions: list[str] = []
    labels: dict[str, float] | None = None
    shapes = {key: _shape(items) for key, items in regions.items()}
    size = next(filter(None, (_size(item) for kind, item in shapes.values() if kind)), (0.0, 0.0))
    for key, items in sorted(regions.items(), key=lambda item: shapes[item[0]][0] == "x"):
        kind, shape = shapes[key]
        if kind:
            own = points.setdefault(key, {}) if kind != "x" else {}
            found = _objects(f"{where}, region {key:.60}", kind, shape, items, size, points)
            objects += (item._replace(points=own) for item in found)
            continue
        for item in items:
            value = item["value"]
            if "choices" in value:
                if controls.has("choices", "label_column", item, where):
                    names = _listed(value["choices"])
                    labels = dict.fromkeys([*(labels or ()), *filter(_is_text, names)], 1.0)
            elif "text" in value:
                if controls.has("texts", "caption_column", item, where):
                    captions += map(str, _listed(value["text"]))
            else:
                notes.append((_OTHER, f"{place}, region {key:.60}: {item.get('type')!s:.60}"))
    return AnnotatedImage(
        where, size=size, objects=objects, notes=notes, captions=captions, labels=labels
    )


def _shape(items: Sequence[Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    """The kind of shape that the results of a region have, and the first with it; "" without."""
    known = ((kind, item) for kind in _SHAPES for item in items if kind in item["value"])
    return next(known, ("", {}))


def _objects(
    where: str,
    kind: str,
    shape: Mapping[str, Any],
    items: Sequence[Mapping[str, Any]],
    size: tuple[float, float],
    points: Mapping[str, dict[str, tuple[float, ...]]],
) -> list[AnnotatedObject]:
    """An object for each label of a region; none for a keypoint, which its parent gets."""
    lists = (
        item["value"][key] for item in items for key in item["value"] if key.endswith("labels")
    )
    names = next(filter(None, map(_list, lists)), [None])
    try:
        if _size(shape) != size or shape.get("image_rotation"):
            sides = ("original_width", "original_height", "image_rotation")
            found = ", ".join(f"{name} {shape.get(name)}" for name in sides)
            raise ValueError(f"{found}; expected {size[0]:g}, {size[1]:g}, 0")
        if len(names) > _MAX_LABELS:
            raise ValueError(f"{len(names)} labels; expected at most {_MAX_LABELS}")
        drawn = _drawn(kind, shape["value"], *size)
        if kind == "x" and names[0]:
            parent, name = points.get(str(shape.get("parentID"))), str(names[0])
            if parent is None or name in parent:
                raise ValueError(_NO_PARENT if parent is None else f"another {name!r:.60}")
            parent[name] = (*drawn.corners[:2], 2)
            return []
    except (TypeError, ValueError, OverflowError) as error:
        fault = f"invalid {shape.get('type')!s:.30}: {error!s:.200}"
        return [AnnotatedObject(where, "", fault=fault)]
    about = [(item, key) for key in _ABOUT for item in items if key in item["value"]]
    known = {str(item.get("from_name", key)): _text(item["value"][key]) for item, key in about}
    drawn = drawn._replace(where=where, attributes=attributes_in(known))
    unnamed = AnnotatedObject(where, None, fault="the region has no label")
    return [drawn._replace(name=str(name)) if name else unnamed for name in names]


def _size(shape: Mapping[str, Any]) -> tuple[float, float] | None:
    """The size of the image that a region was drawn on."""
    size = to_float(shape.get("original_width")), to_float(shape.get("original_height"))
    return size if all(0 < side < math.inf for side in size) else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _text(value: Any) -> Any:
    """The value of an attribute: a number, a text, or several with commas between them."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return ", ".join("/".join(map(str, _listed(part))) for part in _listed(value))


def _drawn(kind: str, value: Mapping[str, Any], width: float, height: float) -> AnnotatedObject:
    """The shape of a region, in pixels of an image of this size."""
    if kind == "rle":
        return _brush(bytes(_list(value["rle"])), round(width), round(height))
    if kind == "points":
        points = points_in(value["points"])
        if points is None or len(points) < 2:
            raise ValueError("expected at least two points [x, y]")
        return outlined("", "", [(x * width / 100, y * height / 100) for x, y in points])
    x, y, *sides = checked_numbers(value, ("x", "y", *_SIZES[kind]))
    x, y = x * width / 100, y * height / 100
    if kind == "x":
        return AnnotatedObject("", "", (x, y, x, y))
    (degrees,) = checked_numbers({"rotation": 0, **value}, ("rotation",))
    across, down = sides[0] * width / 100, sides[1] * height / 100
    angle = math.radians(degrees % 360)
    if kind == "radiusX":
        return outlined("", "", ellipse(x, y, across, down, angle))
    if not angle:
        return AnnotatedObject("", "", (x, y, x + across, y + down), "box")
    offsets = ((0, 0), (across, 0), (across, down), (0, down))  # about its top left corner
    return quad_object("", "", turned(x, y, offsets, angle))


def _brush(data: bytes, width: int, height: int) -> AnnotatedObject:
    """The opaque pixels of a brush, as run lengths along the rows."""
    runs: list[tuple[int, int]] = []
    for first, behind in _opaque(data, width * height):
        start = runs.pop()[0] if runs and runs[-1][1] == first else first
        runs.append((start, behind))
    if not runs:
        raise ValueError("no pixel is opaque")
    lengths = [stop - start for start, stop in pairwise((0, *chain(*runs), width * height))]
    top, bottom = runs[0][0] // width, (runs[-1][1] - 1) // width + 1
    left, right = 0, width
    if all(first // width == (behind - 1) // width for first, behind in runs):
        left = min(first % width for first, _ in runs)
        right = max((behind - 1) % width for _, behind in runs) + 1
    outline = json.dumps({"size": [height, width], "counts": lengths, "by_row": True})
    return AnnotatedObject("", "", (left, top, right, bottom), outline)


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


class LabelStudio(
    SharedAnnotationSource,
    box_format=BoxFormat(
        "label-studio",
        ".json",
        is_json_with(
            "[", *(f"{kind} {key}" for key in _KEYS for kind in ("annotations", "completions"))
        ),
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
        label_column: str | None = None,
        caption_column: str | None = None,
        **options: Unpack[BoxOptions],
    ) -> None:
        """
        Args:
            root, annotations, images: as in `Coco`.
            annotator: id or email of the annotator whose annotations are packed; None if each task
                has annotations of one annotator.
            image_column: key of the image in the data of tasks; None to find it.
            label_column, caption_column: the control of the choices, and of the texts, of whole
                images that are their labels and captions; None for the only one, empty for none.
            options: `label_map`, `boxes`, `drawn` and `object_masks`, as in `Voc`.
        """
        super().__init__(root, annotations=annotations, images=images, **options)
        given = {
            "annotator": annotator,
            "image_column": image_column,
            "label_column": label_column,
            "caption_column": caption_column,
        }
        self._columns = {name: str(value) for name, value in given.items() if value is not None}

    def _find_images(self, index: FileIndex, listed: Sequence[Entry]) -> dict[str, Entry]:
        """Also find images under their names before the upload, which changes them."""
        uploaded: dict[str, list[str]] = {}
        for path in filter(has_image_name, index.all_paths):
            uploaded.setdefault(_uploaded(path), []).append(path)
        for entry in listed:
            name = entry.annotated.file_name
            plain = _UPLOADED.sub("", name)
            if plain != name and not index.find_image(name, [], entry.annotation):
                paths = uploaded.get(_uploaded(plain), [])
                if len(paths) == 1 and not index.find_image(plain, [], entry.annotation):
                    plain = paths[0]
                entry.annotated = entry.annotated._replace(file_name=plain)
        return super()._find_images(index, listed)


def _uploaded(path: str) -> str:
    """The name that an upload gives a file after its 8 digits: a_1.jpg for a (1).jpg."""
    return _NO_WORD.sub("", posixpath.basename(path).strip().replace(" ", "_"))
