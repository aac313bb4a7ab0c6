"""`recordsmith.draw_batch`: preview a batch on one page, as an image file.

Draws the arrays of the batch instead of the records, so that errors in rotating, flipping, cropping
or scaling are visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import KeypointClasses
from recordsmith.image import Pixels
from recordsmith.stores import Location, PlaceLike, as_location
from recordsmith.support.errors import OptionError, option
from recordsmith.viewing.drawing.scene import Scene, draw_scene, text_of
from recordsmith.viewing.drawing.sheet import TILE, check_fits, check_page, write_page

_CHANNELS = (1, 3, 4)
_LARGEST_FRACTION = 2  # boxes may extend slightly beyond the image


def draw_batch(
    images: npt.NDArray[Any],
    out: PlaceLike,
    *,
    masks: npt.NDArray[Any] | None = None,
    boxes: Sequence[Any] | npt.NDArray[Any] | None = None,
    box_labels: Sequence[Any] | npt.NDArray[Any] | None = None,
    corners: Sequence[Any] | npt.NDArray[Any] | None = None,
    points: Sequence[Any] | npt.NDArray[Any] | None = None,
    captions: Sequence[Any] | npt.NDArray[Any] | None = None,
    class_names: Sequence[str | None] = (),
    keypoint_classes: KeypointClasses | None = None,
    title: str = "A batch",
    columns: int = 6,
    overwrite: bool = False,
) -> Location:
    """Draw the images of a batch on one page, with their masks, boxes and keypoints over them.

    Args:
        images: (batch, height, width, channels) or (batch, channels, height, width), with 1, 3 or
            4 channels: uint8, uint16, or floats. An image with floats outside [0, 1], such as a
            normalised one, is rescaled from its minimum to its maximum.
        out: the image file, with the suffix .png or .jpg.
        masks: class numbers, (batch, height, width).
        boxes: for each image (n, 4): ymin, xmin, ymax, xmax from 0 to 1; empty boxes are skipped.
        box_labels: for each image (n,): the classes of the boxes, for their colours.
        corners: for each image (n, 4, 2): x and y of the corners of rotated boxes, from 0 to 1.
        points: for each image (n, k, 3): x and y, from 0 to 1, and visibility of the keypoints.
        captions: the text below each image.
        class_names: the names of the classes, by their numbers, for the tags of the boxes.
        keypoint_classes: as of a Dataset, for the lines between keypoints.
        title: the heading.
        columns: images per row.
        overwrite: replace an existing file.

    Returns:
        The location of the file.

    Raises:
        OptionError: the arrays are not a batch of images, or differ in length.
        FileAccessError: the file cannot be written.

    Example:
        loader = rs.Loader(dataset, {"image": rs.Image(size=64)}, batch_size=8, shuffle=True)
        rs.draw_batch(next(iter(loader))["image"], "batch.png")
    """
    from recordsmith.image import Tile, contact_sheet

    path = as_location(out)
    shown = _channels_last(images)
    check_page(path, max(1, len(shown)), columns, overwrite=overwrite)
    check_fits(len(shown), columns)
    for name, part in (
        ("masks", masks),
        ("boxes", boxes),
        ("box_labels", box_labels),
        ("corners", corners),
        ("points", points),
        ("captions", captions),
    ):
        if part is not None and len(part) != len(shown):
            raise OptionError(
                f"{option(name)} has {len(part)} entries for {len(shown)} images", option=name
            )
    tiles = []
    for row, image in enumerate(shown):
        scene = Scene(_as_rgb(image), None if masks is None else np.asarray(masks[row]))
        if boxes is not None:
            labels = None if box_labels is None else box_labels[row]
            real = _add_boxes(scene, np.asarray(boxes[row]), labels, class_names)
            scene.corners, scene.points = (
                None if values is None else np.asarray(values[row], np.float64)[real]
                for values in (corners, points)
            )
            known = (keypoint_classes or {}).items()
            scene.skeletons = {label: of_class.skeleton for label, of_class in known}
        caption = f"#{row}" if captions is None else text_of(captions[row])
        tiles.append(Tile(draw_scene(scene, TILE), caption))
    height, width, channels = shown.shape[1:]
    page = contact_sheet(
        tiles,
        title=title,
        subtitle=f"{len(shown)} x {height} x {width} x {channels}, {shown.dtype}",
        columns=max(1, min(columns, len(tiles))),
        tile=TILE,
    )
    write_page(page, path, overwrite=overwrite)
    return path


def _channels_last(images: Any) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.asarray(images)
    except ValueError:  # the shapes differ
        array = np.empty(len(images), object)
    is_number = array.dtype.kind == "f" or array.dtype in (np.uint8, np.uint16)
    if is_number and array.ndim == 4 and (array.size or not len(array)):
        if array.shape[3] in _CHANNELS:
            return array
        if array.shape[1] in _CHANNELS:
            return array.transpose(0, 2, 3, 1)
    raise OptionError(
        f"{option('images')} has dtype {array.dtype} and shape {array.shape}",
        option="images",
        expected=(
            "uint8, uint16 or floats of shape (batch, height, width, channels) or (batch, "
            "channels, height, width)"
        ),
        remedy=(
            "For patches or windows, pass images.reshape(-1, *images.shape[2:])."
            if array.ndim == 5
            else ""
        ),
    )


def _as_rgb(image: npt.NDArray[Any]) -> Pixels:
    """Convert an image to uint8, (height, width, 3)."""
    if image.dtype.kind == "f":
        image = np.nan_to_num(image.astype(np.float32), posinf=0, neginf=0)
        low, high = float(image.min()), float(image.max())
        if low < 0 or high > 1:
            image = (image - low) / max(high - low, 1e-9)
        image = np.rint(image * 255)
    elif image.dtype.itemsize > 1:
        image = image >> 8
    pixels = image.astype(np.uint8)[:, :, :3]  # alpha is not shown
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))


def _add_boxes(
    scene: Scene, boxes: npt.NDArray[Any], labels: Any, class_names: Sequence[str | None]
) -> list[int]:
    """Add the boxes that are not empty, and return their rows."""
    if boxes.size and boxes.max() > _LARGEST_FRACTION:
        raise OptionError(
            f"{option('boxes')} has values up to {boxes.max():g}",
            option="boxes",
            expected="ymin, xmin, ymax, xmax from 0 to 1",
            remedy="Load them with Boxes(unit='fraction', order='yxyx').",
        )
    real = [row for row, box in enumerate(boxes.tolist()) if box[2] > box[0] and box[3] > box[1]]
    scene.boxes = [(box[0], box[1], box[2], box[3]) for box in boxes[real].tolist()]
    scene.box_labels = [0 if labels is None else int(labels[row]) for row in real]
    names = dict(enumerate(class_names)) if labels is not None else {}
    scene.box_texts = [names.get(label) or "" for label in scene.box_labels]
    return real
