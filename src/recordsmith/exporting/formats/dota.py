"""DOTA: images, and text files with the corners of rotated boxes.

    <split>/images/<name>, <split>/labelTxt/<name>.txt, masks/<split>/<name>.png
    label_map.pbtxt                class numbers, which the text files lack

A line has x and y of four corners in pixels, which may lie outside of the image, class and
difficulty. The corners are the shortest decimals that restore the same float32 when a reader
divides them by the size of the image. Words of a class are joined by "-", as spaces separate the
values of a line.
"""

from __future__ import annotations

from recordsmith.exporting.boxes import BoxFolder, BoxSample, decimal, pixels
from recordsmith.format.example.feature_values import all_ints
from recordsmith.format.example.keys import CORNER_X, CORNER_Y, OBJECT_DIFFICULT, SOURCE_ID
from recordsmith.support.errors import SourceError


class DotaFiles(BoxFolder):
    also_kept = frozenset((SOURCE_ID, OBJECT_DIFFICULT, CORNER_X, CORNER_Y))

    def write(self, sample: BoxSample) -> None:
        example, split, image, mask, objects = sample
        out, lines = self._out, []
        if objects and not image.height:
            raise SourceError("it has boxes, but the size of its image is unknown")
        difficult = all_ints(example, OBJECT_DIFFICULT).tolist()
        if len(difficult) != len(objects or ()):
            difficult = [0] * len(objects or ())
        for obj, difficulty in zip(objects or (), difficult, strict=True):
            sizes = (image.width, image.height) * 4
            corners = (pixels(*pair) for pair in zip(obj.corners, sizes, strict=True))
            name = _joined(obj.name, obj.label)
            if name != obj.name:
                out.warn(f"the class {obj.name!r} became {name!r}")
            lines.append(f"{' '.join(map(decimal, corners))} {name} {difficulty}\n")
        part = out.split_name(split)
        name, _ = out.write_image(
            example,
            image,
            f"{part}/images",
            mask=mask,
            masks=f"masks/{part}",
            companions=[(f"{part}/labelTxt", ".txt")],
        )
        out.write(f"{part}/labelTxt/{name}.txt", "".join(lines).encode("utf-8", "surrogateescape"))

    def finish(self) -> None:
        super().finish()
        names = self._classes.names
        self.write_label_map({label: _joined(name, label) for label, name in names.items()})


def _joined(name: str, label: int) -> str:
    return "-".join(name.split()) or str(label)
