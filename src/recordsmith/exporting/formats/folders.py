"""Folders of images: one for each class, or `images` and `masks`; or only the latter, as pairs.

    <class>/<name>                    examples with a class
    images/<name>                     examples without a class
    images/<name>, masks/<name>.png   examples with a mask

in a folder for each split, if there are several. Class folders can be packed again as ImageFolder
(each split separately), images with masks as ImagePairs.
"""

from __future__ import annotations

from recordsmith.dataset import Dataset
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.exporter import FolderExporter, refuse_several_classes
from recordsmith.exporting.images import IMAGE_KEYS, MASK_KEYS, read_image, read_mask
from recordsmith.format.example import Features
from recordsmith.format.example.feature_values import first_int, first_text, first_value
from recordsmith.format.example.keys import CLASS_LABEL, CLASS_TEXT, MASK
from recordsmith.support.errors import SourceError

CLASS_KEYS = frozenset((CLASS_LABEL, CLASS_TEXT))


class ClassFolders(FolderExporter):
    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        if MASK not in dataset.view.preview_schema()[0].features:
            refuse_several_classes(dataset, "each folder is one class", self.format)
        self._out = out
        self._class_names = dataset.class_names or ()

    def add(self, example: Features, split: str, position: int) -> None:
        out = self._out
        image = read_image(example, out.warn)
        mask = read_mask(example, image, out.warn)
        split_folder = out.split_name(split) if len(out.splits) > 1 else ""
        root = split_folder and f"{split_folder}/"
        class_name = self._class_name(example)
        if mask is not None:
            out.write_image(example, image, f"{root}images", mask=mask, masks=f"{root}masks")
            out.count_dropped(example, IMAGE_KEYS | MASK_KEYS)
            return
        if max(len(example.get(key, ())) for key in CLASS_KEYS) > 1:
            raise SourceError("it has several classes")
        if class_name is None:
            out.write_image(example, image, f"{root}images")
        else:
            folder = out.part_name(class_name, split_folder)
            out.write_image(example, image, root + folder, flat=True)
        out.count_dropped(example, IMAGE_KEYS | CLASS_KEYS)

    def _class_name(self, example: Features) -> str | None:
        text = first_text(example, CLASS_TEXT)
        if text is not None:
            return text
        label = first_int(example, CLASS_LABEL)
        if label is None:
            return None
        known = self._class_names[label] if 0 <= label < len(self._class_names) else None
        return str(label) if known is None else known


class ImagePairFiles(ClassFolders):
    """Writes images and their masks, which every example must have."""

    def add(self, example: Features, split: str, position: int) -> None:
        if first_value(example, MASK) is None:
            raise SourceError("it has no mask")
        super().add(example, split, position)
