"""Folders of pictures: one for each class, or `images` and `masks`.

    <class>/<name>             examples with a class
    images/<name>              examples without
    images/<name>, masks/<name>.png   examples with a mask

below a folder for each split, if there are several. The first packs again as ImageFolder (each
split by itself), the last as ImagePairs.
"""

from __future__ import annotations

from recordsmith.dataset import Dataset
from recordsmith.example import Features
from recordsmith.example.keys import CLASS_LABEL, CLASS_TEXT
from recordsmith.exporting.outbox import Outbox
from recordsmith.exporting.pictures import MASK_KEYS, PICTURE_KEYS, read_mask, read_picture
from recordsmith.exporting.values import int_of, text_of

CLASS_KEYS = frozenset((CLASS_LABEL, CLASS_TEXT))


class ClassFolders:
    """Writes pictures, sorted by class."""

    def begin(self, dataset: Dataset, out: Outbox) -> None:
        self._out = out
        self._class_names = dataset.class_names or ()
        self._labels: dict[str, int] = {}  # folder of a class -> its label

    def add(self, example: Features, split: str, position: int) -> None:
        out = self._out
        picture = read_picture(example, out.tell)
        mask = read_mask(example, picture, out.tell)
        root = out.split_name(split) + "/" if len(out.splits) > 1 else ""
        name_of_class = self._class_of(example)
        if mask is not None:
            out.write_picture(example, picture, root + "images", mask=mask, masks=root + "masks")
            out.leave_out(example, PICTURE_KEYS | MASK_KEYS)
            return
        if name_of_class is None:
            out.write_picture(example, picture, root + "images")
        else:
            folder = out.part_name(name_of_class, root.rstrip("/"))
            self._check_class(example, folder)
            out.write_picture(example, picture, root + folder, flat=True)
        out.leave_out(example, PICTURE_KEYS | CLASS_KEYS)

    def finish(self) -> None:
        """Say where classes will be counted otherwise when these folders are packed."""
        moved = [
            f"{name} is {label} in the records and becomes {number}"
            for number, (name, label) in enumerate(sorted(self._labels.items()))
            if label != number
        ]
        if moved:
            more = f", and {len(moved) - 3:,} more" if len(moved) > 3 else ""
            self._out.problems.append(
                "class folders are counted from 0 in the order of their names: "
                + "; ".join(moved[:3])
                + more
            )

    def _class_of(self, example: Features) -> str | None:
        text = text_of(example, CLASS_TEXT)
        if text is not None:
            return text
        label = int_of(example, CLASS_LABEL)
        if label is None:
            return None
        known = self._class_names[label] if 0 <= label < len(self._class_names) else None
        return str(label) if known is None else known

    def _check_class(self, example: Features, folder: str) -> None:
        if max(len(example.get(key, ())) for key in CLASS_KEYS) > 1:
            self._out.tell("it has several classes; its folder is that of the first")
        label = int_of(example, CLASS_LABEL)
        if label is not None and self._labels.setdefault(folder, label) != label:
            self._out.tell(f"its class {folder} is {label} here and {self._labels[folder]} before")
