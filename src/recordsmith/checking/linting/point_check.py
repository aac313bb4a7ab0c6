"""Checks the keypoints and the corners of the objects of a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from recordsmith.format.example import keys
from recordsmith.format.example.feature_values import object_values
from recordsmith.sources import Check, LintCheck


class PointCheck(LintCheck):
    """What is checked about keypoints and corners."""

    KEYPOINTS_TOGETHER = (
        "keypoints-together",
        "warning",
        "All labelled keypoints of an object are at one point: usually a placeholder.",
        "Fix the keypoints, or give them visibility 0.",
    )
    KEYPOINT_AT_ORIGIN = (
        "keypoint-at-origin",
        "warning",
        "A keypoint at 0, 0 is labelled, as exports write those that are not.",
        "Give it visibility 0.",
    )
    EMPTY_CORNERS = (
        "empty-corners",
        "warning",
        "The corners of a rotated box have no area.",
        "Fix or remove the object.",
    )


def check_points(features: Mapping[str, Any], count: int) -> Iterator[tuple[LintCheck, str, int]]:
    """Yield what is wrong with which of `count` objects."""
    points = object_values(features, keys.KEYPOINT, count)
    for number, of_object in enumerate(() if points is None else points):
        places = of_object[of_object[:, 2] > 0, :2]
        outside = ((places < 0) | (places > 1)).any(axis=1)
        if outside.any():
            yield Check.KEYPOINT_OUTSIDE, f"{outside.sum()} keypoints outside the image", number
        if len(places) > 1 and (places == places[0]).all():
            yield PointCheck.KEYPOINTS_TOGETHER, f"{len(places)} keypoints at one point", number
        elif len(at_origin := np.flatnonzero((places == 0).all(axis=1))):
            yield PointCheck.KEYPOINT_AT_ORIGIN, f"{len(at_origin)} keypoints at 0, 0", number
    corners = object_values(features, keys.CORNER, count)
    if corners is not None and corners.size:
        after = np.roll(corners, -1, axis=1)
        areas = (corners[:, :, 0] * after[:, :, 1] - corners[:, :, 1] * after[:, :, 0]).sum(axis=1)
        for number in np.flatnonzero(np.abs(areas) < 1e-9).tolist():
            yield PointCheck.EMPTY_CORNERS, "the corners have no area", number
