"""The ways to read a folder: what the detector of each layout returns, and how one is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from recordsmith.errors import SourceError, option
from recordsmith.stores import Location


class Confidence(IntEnum):
    """How much speaks for a candidate. Only the strongest candidates of a folder compete."""

    POSSIBLE = 0
    """Can be read like this, but nothing speaks for it: chosen only by a format or an option."""
    STRUCTURE = 1
    """Folders and names of images: class folders, images without classes."""
    ANNOTATED = 2
    """Annotations, masks or columns that fit the images."""
    MARKED = 3
    """A file that only this format has, such as `dataset_info.json` or `data.yaml`."""


@dataclass(frozen=True)
class LayoutCandidate:
    """One way to read a folder: a source's format and its options, as `detect` takes them.

    what: a clause for people without a count: "images in image/, masks in label/".
    noun: what is counted: images, pairs, rows, records.
    left_out: paths in the folder that are not read, such as "test/ (no labels)".
    files: the tables and lists that are read in addition to images. Another candidate for such a
        file alone does not compete.
    problem: why the folder cannot be packed like this as it is, such as colours that need a table.
    remedy: what to do about the problem; with `option` for the names of options.
    needs: the options of which each solves the problem.
    """

    format: str
    what: str
    confidence: Confidence
    options: Mapping[str, Any] = field(default_factory=dict)
    noun: str = "images"
    left_out: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    problem: str = ""
    remedy: str = ""
    needs: tuple[str, ...] = ()


def choose_candidate(
    root: Location, candidates: Sequence[LayoutCandidate], given: Mapping[str, Any]
) -> LayoutCandidate:
    """Choose the only candidate of the highest confidence.

    `given` has the options that are chosen already, which solve the problem of a candidate.
    """
    highest = max(candidate.confidence for candidate in candidates)
    best = [candidate for candidate in candidates if candidate.confidence == highest]
    if len(best) > 1:
        ways = [f"{candidate.what}: {typed_options(candidate)}" for candidate in best]
        raise SourceError(
            f"the folder can be read in {len(ways)} ways",
            ways,
            path=root,
            remedy="Choose one with its options.",
            lists_problems=True,
        )
    (chosen,) = best
    if chosen.problem and given.keys().isdisjoint(chosen.needs):
        raise SourceError(f"{chosen.what}: {chosen.problem}", path=root, remedy=chosen.remedy)
    return chosen


def typed_options(candidate: LayoutCandidate) -> str:
    """The format and the options of a candidate, for messages."""
    options = {"format": candidate.format, **candidate.options}
    return " ".join(option(name, value) for name, value in options.items())
