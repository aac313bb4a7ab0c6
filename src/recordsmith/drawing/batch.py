"""`recordsmith.draw_batch`: what a model is given, on one page, as a picture file.

Draws the arrays of a batch, not the records that they were made of: whether pictures were turned,
mirrored, cropped or scaled wrongly is seen here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.drawing.picture_page import TILE, check_page, write_page
from recordsmith.errors import OptionError
from recordsmith.files import PathLike, as_path
from recordsmith.image import Pixels
from recordsmith.image.overlay import blend_mask, draw_boxes, fit_to_tile

_CHANNELS = (1, 3, 4)
_LARGEST_FRACTION = 2  # boxes may reach beyond the picture, but not far


def draw_batch(
    pictures: npt.NDArray[Any],
    out: PathLike,
    *,
    masks: npt.NDArray[Any] | None = None,
    boxes: Sequence[Any] | npt.NDArray[Any] | None = None,
    box_labels: Sequence[Any] | npt.NDArray[Any] | None = None,
    captions: Sequence[Any] | npt.NDArray[Any] | None = None,
    title: str = "A batch",
    columns: int = 6,
    overwrite: bool = False,
) -> Path:
    """Draw the pictures of a batch on one page, with their masks and boxes over them.

    Args:
        pictures: (batch, height, width, channels) or (batch, channels, height, width), with 1, 3 or
            4 channels: uint8, uint16, or floats. Floats outside of [0, 1], such as normalised ones,
            are stretched from the darkest to the brightest value of their picture.
        out: the picture file; its name ends in .png or .jpg.
        masks: class numbers, (batch, height, width).
        boxes: for each picture (n, 4): ymin, xmin, ymax, xmax from 0 to 1; empty ones are left out.
        box_labels: for each picture (n,): the classes of the boxes, for their colours.
        captions: what stands under each picture.
        title: what stands on top.
        columns: pictures in a row.
        overwrite: replace a file that is there.

    Returns:
        The path of the file.

    Raises:
        OptionError: the arrays are no batch of pictures, or not of the same number of examples.
        FileAccessError: the file cannot be written.
    """
    from recordsmith.image.contact_sheet import Tile, contact_sheet

    path = as_path(out)
    shown = _channels_last(pictures)
    check_page(path, max(1, len(shown)), columns, overwrite=overwrite)
    for name, part in (
        ("masks", masks),
        ("boxes", boxes),
        ("box_labels", box_labels),
        ("captions", captions),
    ):
        if part is not None and len(part) != len(shown):
            raise OptionError(f"there are {len(part)} {name} for {len(shown)} pictures")
    tiles = []
    for row, picture in enumerate(shown):
        pixels = fit_to_tile(_as_rgb(picture), TILE)
        if masks is not None:
            pixels = blend_mask(pixels, np.asarray(masks[row]))
        if boxes is not None:
            labels = None if box_labels is None else box_labels[row]
            pixels = _with_boxes(pixels, np.asarray(boxes[row]), labels)
        caption = f"#{row}" if captions is None else _words(captions[row])
        tiles.append(Tile(pixels, caption))
    page = contact_sheet(
        tiles,
        title=title,
        subtitle=f"{len(shown)} x {_size(shown)}, {shown.dtype}",
        columns=max(1, min(columns, len(tiles))),
        tile=TILE,
    )
    write_page(page, path, overwrite=overwrite)
    return path


def _channels_last(pictures: Any) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.asarray(pictures)
    except ValueError:  # of unequal shapes
        array = np.empty(len(pictures), object)
    is_number = array.dtype.kind == "f" or array.dtype in (np.uint8, np.uint16)
    if is_number and array.ndim == 4 and (array.size or not len(array)):
        if array.shape[3] in _CHANNELS:
            return array
        if array.shape[1] in _CHANNELS:
            return array.transpose(0, 2, 3, 1)
    raise OptionError(
        f"the pictures are {array.dtype}, shape {array.shape}; expected uint8, uint16 or floats of "
        "shape (batch, height, width, channels) or (batch, channels, height, width)"
    )


def _as_rgb(picture: npt.NDArray[Any]) -> Pixels:
    """One picture as uint8, (height, width, 3)."""
    if picture.dtype.kind == "f":
        picture = np.nan_to_num(picture.astype(np.float32), posinf=0, neginf=0)
        low, high = float(picture.min()), float(picture.max())
        if low < 0 or high > 1:
            picture = (picture - low) / max(high - low, 1e-9)
        picture = np.rint(picture * 255)
    elif picture.dtype.itemsize > 1:
        picture = picture >> 8
    pixels = picture.astype(np.uint8)[:, :, :3]  # alpha is not shown
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))


def _with_boxes(pixels: Pixels, boxes: npt.NDArray[Any], labels: Any) -> Pixels:
    if boxes.size and boxes.max() > _LARGEST_FRACTION:
        raise OptionError(
            f"a box reaches to {boxes.max():g}; expected ymin, xmin, ymax, xmax from 0 to 1, as of "
            "Boxes(unit='fraction', order='yxyx')"
        )
    real = [row for row, box in enumerate(boxes.tolist()) if box[2] > box[0] and box[3] > box[1]]
    numbers = [0 if labels is None else int(labels[row]) for row in real]
    corners = [(box[0], box[1], box[2], box[3]) for box in boxes[real].tolist()]
    return draw_boxes(pixels, corners, numbers, [""] * len(real))


def _words(caption: Any) -> str:
    return caption.decode("utf-8", "replace") if isinstance(caption, bytes) else str(caption)


def _size(pictures: npt.NDArray[Any]) -> str:
    height, width, channels = pictures.shape[1:]
    return f"{height} x {width} x {channels}"
