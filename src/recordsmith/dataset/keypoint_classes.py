"""What the keypoints of each class are: their names, how they are joined, and which are mirrored.

As in COCO's categories and the `flip_idx` of YOLO, but with numbers from 0 and pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from recordsmith.dataset.documents import count_in_json, line_in_json

MAX_KEYPOINTS = 1000
"""Of a class."""

Pairs: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of numbers of keypoints, from 0."""


class KeypointClass(NamedTuple):
    """The keypoints of the objects of a class.

    names: in the order in which each object has them.
    skeleton: which are joined by lines.
    flip_pairs: which change places when the image is flipped: left and right eye; empty if none do,
        None if that is unknown.
    """

    names: tuple[str, ...]
    skeleton: Pairs = ()
    flip_pairs: Pairs | None = None

    def to_json(self) -> dict[str, Any]:
        known = {"skeleton": self.skeleton} if self.skeleton else {}
        pairs = {} if self.flip_pairs is None else {"flip_pairs": self.flip_pairs}
        return {"names": self.names, **known, **pairs}


KeypointClasses: TypeAlias = Mapping[int, KeypointClass]
"""By label; classes without keypoints are missing."""


def keypoint_classes_to_json(classes: KeypointClasses) -> dict[str, Any]:
    return {str(label): classes[label].to_json() for label in sorted(classes)}


def keypoint_classes_in_json(document: Any) -> dict[int, KeypointClass]:
    """Validate keypoints by label; raises what `describe_fault` describes."""
    return {count_in_json(int(label)): _class_in_json(known) for label, known in document.items()}


def _class_in_json(document: Any) -> KeypointClass:
    names = tuple(line_in_json(name) for name in document["names"])
    if not 0 < len(names) <= MAX_KEYPOINTS:
        raise ValueError(f"{len(names)} keypoints, expected 1 to {MAX_KEYPOINTS}")
    pairs = document.get("flip_pairs")
    skeleton = _pairs_in_json(document.get("skeleton", ()), len(names))
    return KeypointClass(
        names, skeleton, None if pairs is None else _pairs_in_json(pairs, len(names))
    )


def _pairs_in_json(pairs: Any, count: int) -> Pairs:
    checked = tuple((count_in_json(one), count_in_json(other)) for one, other in pairs)
    if any(max(pair) >= count for pair in checked) or len(checked) > MAX_KEYPOINTS**2:
        raise ValueError(f"a pair of keypoints is not from 0 to {count - 1}")
    return checked
