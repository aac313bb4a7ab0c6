"""The ways to read a folder: what the detector of each layout returns, and how one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from recordsmith.sources.files.account import Reason
from recordsmith.sources.formats import FORMATS, OPTIONS, accepts, formats_with
from recordsmith.sources.problems import join_names
from recordsmith.stores import Location
from recordsmith.support.errors import OptionError, SourceError, option

_OVERRIDING = frozenset(
    (
        *("label_column", "caption_column", "split_column", "group_column"),
        *("colours", "encoding", "frame_quality"),
    )
)
"""Options that replace those of a reading; others select the readings that have the same."""


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

    what: what is read, for people, without a count: "images in image/, masks in label/".
    noun: what is counted: images, pairs, rows, records.
    clauses: what follows it, by the option that it is about: "classes in column kind". It holds
        while the option has the value that was detected.
    left_out: files and folders (with `/` at the end) that are not read, and why.
    hints: what else is worth knowing, by the option that makes use of it.
    classes: the names of class folders.
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
    clauses: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, tuple[Reason, str]] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    problem: str = ""
    remedy: str = ""
    needs: tuple[str, ...] = ()

    def with_options(self, given: Mapping[str, Any]) -> LayoutCandidate:
        what, file = self.what, given.get("annotations")
        changed = {
            name
            for name, value in given.items()
            if name not in self.options or not _are_equal(value, self.options[name])
        }
        clauses = {name: text for name, text in self.clauses.items() if name not in changed}
        if changed:
            text = " ".join(option(name, given[name]) for name in given if name in changed)
            clauses[""] = f"with {text}"
        hints = {name: text for name, text in self.hints.items() if name not in changed}
        if self.files and file is not None and not isinstance(file, Mapping):
            what = FORMATS[self.format].box_format.what.format(file)
        options = {**self.options, **given}
        return replace(self, what=what, options=options, clauses=clauses, hints=hints)

    def describe(self) -> str:
        """What is read, for people, without a count."""
        return ", ".join([self.what, *self.clauses.values()])

    def typed(self) -> str:
        """The format and the options, for messages."""
        options = {"format": self.format, **self.options}
        return " ".join(option(name, value) for name, value in options.items())

    def agrees(self, given: Mapping[str, Any]) -> bool:
        """Whether the options of a caller do not contradict those of the candidate."""
        return all(
            _are_equal(given[name], value)
            for name, value in self.options.items()
            if name in given and name not in _OVERRIDING
        )


def marked(format: str, what: str, noun: str = "images") -> LayoutCandidate:
    """The candidate of files that only one format has."""
    return LayoutCandidate(format, what, Confidence.MARKED, noun=noun)


def choose(
    root: Location,
    candidates: Sequence[LayoutCandidate],
    format: str | None,
    options: Mapping[str, Any],
    find_datasets: Callable[[Sequence[LayoutCandidate]], Mapping[str, str]],
) -> LayoutCandidate:
    """Choose the only candidate of the highest confidence that fits what the caller chose.

    Args:
        candidates: by confidence, the highest first.
        format, options: those of the caller.
        find_datasets: finds folders that are datasets of their own, and what each is, next to the
            strongest candidates; they are refused if the caller chose nothing.

    Raises:
        SourceError: several candidates fit, and `problems` has the options that choose each; the
            only one needs an option; the folder contains several datasets, which `problems` has.
        OptionError: an option does not apply to the format.
    """
    fitting = [
        way for way in candidates if format in (None, way.format) and accepts(way.format, options)
    ]
    agreeing = [way for way in fitting if way.agrees(options)]
    if not agreeing:
        return _typed(root, candidates, fitting, format, options)
    if format is None and not options:
        if datasets := find_datasets(strongest(agreeing)):
            places = join_names(str(root / name) for name in datasets)
            raise SourceError(
                f"the folder contains {len(datasets)} datasets",
                [f"{root / name}: {what}" for name, what in datasets.items()],
                path=root,
                remedy=f"Point at one of {places}.",
                lists_problems=True,
            )
        return choose_strongest(root, agreeing, ())
    exact = [way for way in agreeing if dict(way.options) == dict(options)]
    if format is not None and exact:
        return exact[0]
    if all(way.confidence == Confidence.POSSIBLE for way in agreeing):
        fewest = min(len(way.options) for way in agreeing)
        agreeing = [way for way in agreeing if len(way.options) == fewest]
    return choose_strongest(root, agreeing, [*options, *(["format"] if format is not None else [])])


def _typed(
    root: Location,
    candidates: Sequence[LayoutCandidate],
    fitting: Sequence[LayoutCandidate],
    format: str | None,
    options: Mapping[str, Any],
) -> LayoutCandidate:
    """What the options say, if they leave one format; else the error of the first that is wrong."""
    chosen = format
    if chosen is None:
        likely = {way.format for way in fitting if way.confidence > Confidence.POSSIBLE}
        able = likely or {name for name in FORMATS if accepts(name, options)}
        chosen = able.pop() if len(able) == 1 else None
    if chosen is not None:
        what = f"the format {chosen}"
        return LayoutCandidate(chosen, what, Confidence.ANNOTATED, options, noun="samples")
    first = candidates[0]
    for name, value in options.items():
        if name not in OPTIONS[first.format]:
            raise not_accepted(name, value, first.format, first.describe())
    return choose_strongest(root, candidates, ())


def strongest(candidates: Sequence[LayoutCandidate]) -> list[LayoutCandidate]:
    highest = max(candidate.confidence for candidate in candidates)
    return [candidate for candidate in candidates if candidate.confidence == highest]


def choose_strongest(
    root: Location, candidates: Sequence[LayoutCandidate], given: Iterable[str]
) -> LayoutCandidate:
    """Choose the only candidate of the highest confidence; see `choose`.

    An error about several tables has class folders as well.
    `given` has the names of options of the caller, which solve the problem of a candidate.
    """
    best = strongest(candidates)
    if len(best) > 1:
        folders = [
            way
            for way in candidates
            if way.confidence == Confidence.STRUCTURE != best[0].confidence
            and all(rows.format == "table" for rows in best)
            and (way.classes or "class_pattern" in way.options)
        ]
        ways = [
            f"{candidate.describe()}: {candidate.typed()}"
            + (f", but {candidate.problem}. {candidate.remedy}" if candidate.problem else "")
            for candidate in (*best, *folders)
        ]
        raise SourceError(
            f"the folder can be read in {len(ways)} ways",
            ways,
            path=root,
            remedy="Choose one with its options.",
            lists_problems=True,
        )
    (chosen,) = best
    if chosen.problem and set(given).isdisjoint(chosen.needs):
        problem = f"{chosen.describe()}: {chosen.problem}"
        raise SourceError(problem, path=root, remedy=chosen.remedy)
    return chosen


def not_accepted(name: str, value: object, format: str, what: str = "") -> OptionError:
    accepting = formats_with(name)
    return OptionError(
        f"{option(name)} does not apply to the format {format}{f' ({what})' if what else ''}",
        option=name,
        value=value,
        remedy=f"It applies to {', '.join(accepting)}." if accepting else "",
    )


def _are_equal(given: object, value: object) -> bool:
    return str(given).rstrip("/") == str(value).rstrip("/")
