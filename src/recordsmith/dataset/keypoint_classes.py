"""What the keypoints of each class are: their names, how they are joined, and which are mirrored.

As in COCO's categories and the `flip_idx` of YOLO, but with numbers from 0 and pairs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from recordsmith.dataset.documents import count_in_json, line_in_json
from recordsmith.support.errors import OptionError

MAX_KEYPOINTS = 1000
"""Of a class."""

Pairs: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of numbers of keypoints, from 0."""

_SIDE = re.compile(
    "(?i:left|right)|(?<![A-Za-z0-9])[lrLR](?![a-z0-9])|(?<![A-Z])[LR](?![A-Za-z0-9])"
)
_OTHER_SIDE = {"left": "right", "right": "left", "l": "r", "r": "l"}


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

    def completed(self, other: KeypointClass) -> KeypointClass:
        """Return it with the skeleton and the pairs of another one where it has none."""
        pairs = other.flip_pairs if self.flip_pairs is None else self.flip_pairs
        return KeypointClass(self.names, self.skeleton or other.skeleton, pairs)

    def pairs(self) -> Pairs | None:
        """Return the flip pairs, or those of names that differ in left and right; None if unknown.

        Names are unclear if one of them has a side, and no other is the same of the other side.
        """
        if self.flip_pairs is not None or len(self.names) < 2:
            return self.flip_pairs or ()
        numbers = {name.casefold(): number for number, name in enumerate(self.names)}
        others = [
            numbers.get(_SIDE.sub(lambda side: _OTHER_SIDE[side[0].lower()], name).casefold())
            for name in self.names
        ]
        pairs = tuple((one, other) for one, other in enumerate(others) if other and one < other)
        return pairs if pairs and {*others} == {*range(len(others))} else None

    def to_json(self) -> dict[str, Any]:
        known = {"skeleton": self.skeleton} if self.skeleton else {}
        pairs = {} if self.flip_pairs is None else {"flip_pairs": self.flip_pairs}
        return {"names": self.names, **known, **pairs}


KeypointClasses: TypeAlias = Mapping[int, KeypointClass]
"""By label; classes without keypoints are missing."""


def join_keypoint_classes(
    ours: KeypointClasses, theirs: KeypointClasses, place: object
) -> dict[int, KeypointClass]:
    """Join the keypoints of a dataset with those in `place`; skeletons and pairs are completed.

    Raises:
        OptionError: a class has other keypoints there, or objects another number of them.
    """
    joined, problem = {**theirs, **ours}, ""
    for label in sorted(ours.keys() & theirs.keys()):
        joined[label] = our = ours[label].completed(theirs[label])
        if our != (their := theirs[label].completed(our)):
            which = next(n for n, field in enumerate(our) if field != their[n])
            problem = (
                f"class {label} has other {KeypointClass._fields[which]} in {place}: "
                f"{their[which]!r:.200}, not {our[which]!r:.200}"
            )
    counts = [max(len(known.names) for known in each.values()) for each in (ours, theirs) if each]
    if len({*counts}) > 1 and not problem:
        problem = f"objects have {counts[1]} keypoints in {place}, not {counts[0]}"
    if problem:
        remedy = "Give the classes the same keypoints in their source, and pack it again."
        raise OptionError(problem, remedy=remedy)
    return joined


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
