"""Generate the features of a recordsmith loader, for torch and grain."""

from __future__ import annotations

from collections.abc import Sequence

from recordsmith.example.keys import IMAGE
from recordsmith.readers.description import Description, Field
from recordsmith.readers.source_text import comment, dict_lines, literal

_USUAL_SIZE = (224, 224)
_BOXES = "boxes"


def dataset_line(description: Description) -> str:
    """The line that opens the dataset."""
    split = "" if description.split is None else f", split={literal(description.split)}"
    given = description.paths
    paths = literal(given) if isinstance(given, str) else f"[{', '.join(map(literal, given))}]"
    return f"dataset = rs.open({paths}{split}){comment(description.record_note)}"


def feature_lines(description: Description) -> list[str]:
    """The lines that define `features`."""
    entries = [(f.key, _feature(f, description), _note(f)) for f in description.fields]
    if _has_boxes(description):
        entries = _with_boxes(entries, description)
    lines = dict_lines("features", entries)
    why = [comment(f"{key!r} is left out: {why}").strip() for key, why in description.left_out]
    return [*why, *lines]


def stacks(description: Description) -> bool:
    """Whether examples can be stacked: equal shapes, and no bytes, which NumPy truncates."""
    return all(
        _is_image(f) or _is_mask(f) or (f.content in ("number", "text") and f.length)
        for f in description.fields
    )


def _has_boxes(description: Description) -> bool:
    """Whether the box features can be combined without a name conflict."""
    if description.boxes is None:
        return False
    images = _images(description)
    is_led = len(images) < 2 or IMAGE in images
    return is_led and not any(f.key.startswith(_BOXES) for f in description.fields)


def _with_boxes(
    entries: Sequence[tuple[str, str, str]], description: Description
) -> list[tuple[str, str, str]]:
    """Replace the box features with one `rs.Boxes`."""
    boxes = description.boxes
    assert boxes is not None
    arguments = [] if boxes.labels else ["labels=None"]
    if len(_images(description)) > 1:
        arguments.append(f"of={literal(IMAGE)}")
    if boxes.length is not None:  # keeps the length even if a box has no area in the frame
        arguments.append(f"length={boxes.length}")
    parts = ["ymin, xmin, ymax, xmax", f"{_BOXES}_lengths"]
    parts += [f"{_BOXES}_labels: {f.note}" for f in description.fields if f.key == boxes.labels]
    one = (_BOXES, f"rs.Boxes({', '.join(arguments)})", comment(*parts))
    taken = [number for number, (key, _, _) in enumerate(entries) if key in boxes.keys]
    kept = [entry for entry in entries if entry[0] not in boxes.keys]
    return [*kept[: taken[0]], one, *kept[taken[0] :]]


def _images(description: Description) -> list[str]:
    return [f.key for f in description.fields if _is_image(f)]


def _is_image(field: Field) -> bool:
    return field.content == "image" and field.length == 1 and not field.missing_count


def _is_mask(field: Field) -> bool:
    return field.content == "mask" and field.length == 1 and not field.missing_count


def _feature(field: Field, description: Description) -> str:
    key = literal(field.key)
    if _is_image(field):
        return f"rs.Image({key}, size={_size(field)})"
    if _is_mask(field):
        return _mask(field, [other for other in description.fields if _is_image(other)])
    default = ""
    if field.missing_count and field.shape is not None:
        default = ", default=0" if field.content == "number" else ', default=b""'
    if field.content == "number":
        if field.shape is None:
            return f"rs.Ragged({key})"
        name, shape = ("Tensor", f", {field.shape}") if field.shape else ("Scalar", "")
        return f"rs.{name}({key}{shape}{default})"
    name = "Text" if field.content == "text" else "Bytes"
    shape = ', "ragged"' if field.shape is None else f", {field.shape}" if field.shape else ""
    return f"rs.{name}({key}{shape}{default})"


def _mask(field: Field, images: Sequence[Field]) -> str:
    """A mask that follows an image of the same size, if there is one."""
    key = literal(field.key)
    dtype = ', dtype="uint16"' if any(bits > 8 for _, bits in field.samples.png_types) else ""
    leaders = [image.key for image in images if image.samples.sizes == field.samples.sizes]
    if not leaders:
        return f"rs.Mask({key}, size={_size(field)}{dtype})"
    leader = IMAGE if IMAGE in leaders else leaders[0]
    return f"rs.Mask({key}{'' if len(images) == 1 else f', of={literal(leader)}'}{dtype})"


def _size(field: Field) -> tuple[int, int]:
    """The size of the images, if all sampled ones have the same."""
    return next(iter(field.samples.sizes)) if len(field.samples.sizes) == 1 else _USUAL_SIZE


def _note(field: Field) -> str:
    kind = field.kind if field.content == "number" else ""
    return comment(kind, field.note)
