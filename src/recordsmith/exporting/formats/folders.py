"""Folders of images: one for each class, or `images` and `masks`; or only the latter, as pairs.

    <class>/<name>                    examples with a class
    images/<name>                     examples without a class
    images/<name>, masks/<name>.png   examples with a mask

in a folder for each split, if there are several. Class folders can be packed again as ImageFolder
(each split separately), images with masks as ImagePairs.
"""

from __future__ import annotations

from recordsmith.dataset import Dataset
from recordsmith.errors import SourceError
from recordsmith.example import Features
from recordsmith.example.keys import CLASS_LABEL, CLASS_TEXT
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.exporter import FolderExporter
from recordsmith.exporting.images import (
    IMAGE_KEYS,
    MASK_KEYS,
    ExportedImage,
    get_int,
    get_text,
    read_image,
    read_mask,
)

CLASS_KEYS = frozenset((CLASS_LABEL, CLASS_TEXT))


class ClassFolders(FolderExporter, format="folder"):
    """Writes images, sorted by class."""

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self._out = out
        self._class_names = dataset.class_names or ()
        self._labels: dict[str, int] = {}  # folder of a class -> its label

    def add(self, example: Features, split: str, position: int) -> None:
        out = self._out
        image = read_image(example, out.warn)
        mask = read_mask(example, image, out.warn)
        if mask is not None:
            _write_pair(out, example, image, mask, split)
            return
        root = _split_folder(out, split)
        name_of_class = self._class_name(example)
        if name_of_class is None:
            out.write_image(example, image, root + "images")
        else:
            folder = out.part_name(name_of_class, root.rstrip("/"))
            self._check_class(example, folder)
            out.write_image(example, image, root + folder, flat=True)
        out.count_dropped(example, IMAGE_KEYS | CLASS_KEYS)

    def finish(self) -> None:
        """Report labels that would change if these folders were packed."""
        moved = [
            f"{name} has label {label} in the records and {number} when packed again"
            for number, (name, label) in enumerate(sorted(self._labels.items()))
            if label != number
        ]
        if moved:
            more = f", and {len(moved) - 3:,} more" if len(moved) > 3 else ""
            self._out.tally.problems.add(
                "class folders are numbered by name: " + "; ".join(moved[:3]) + more
            )

    def _class_name(self, example: Features) -> str | None:
        text = get_text(example, CLASS_TEXT)
        if text is not None:
            return text
        label = get_int(example, CLASS_LABEL)
        if label is None:
            return None
        known = self._class_names[label] if 0 <= label < len(self._class_names) else None
        return str(label) if known is None else known

    def _check_class(self, example: Features, folder: str) -> None:
        if max(len(example.get(key, ())) for key in CLASS_KEYS) > 1:
            self._out.warn("it has several classes and is stored under the first")
        label = get_int(example, CLASS_LABEL)
        if label is not None and self._labels.setdefault(folder, label) != label:
            self._out.warn(
                f"its class {folder} has label {label} here but {self._labels[folder]} before"
            )


class ImagePairFiles(FolderExporter, format="pairs"):
    """Writes images and their masks, which every example must have."""

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self._out = out

    def add(self, example: Features, split: str, position: int) -> None:
        image = read_image(example, self._out.warn)
        mask = read_mask(example, image, self._out.warn)
        if mask is None:
            raise SourceError("it has no mask")
        _write_pair(self._out, example, image, mask, split)

    def finish(self) -> None:
        """Do nothing: the files are complete."""


def _write_pair(
    out: ExportWriter, example: Features, image: ExportedImage, mask: ExportedImage, split: str
) -> None:
    root = _split_folder(out, split)
    out.write_image(example, image, root + "images", mask=mask, masks=root + "masks")
    out.count_dropped(example, IMAGE_KEYS | MASK_KEYS)


def _split_folder(out: ExportWriter, split: str) -> str:
    """The folder of a split, with a slash; empty if there is only one."""
    return out.split_name(split) + "/" if len(out.splits) > 1 else ""
