"""Lists of names and problems in messages: the first few, and how many more there are."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from recordsmith.sources.flaws import Check, Flaw
from recordsmith.sources.samples import Sample, unlisted_error
from recordsmith.support.errors import SourceError
from recordsmith.support.problems import Problems
from recordsmith.support.words import count, first_of

_SHOWN = 3
_LISTED = 20


class Fault(NamedTuple):
    """Why a sample cannot be read, kept in a listing until the sample is read.

    check: the value of the `Check` that it belongs to; None for an unreadable sample.
    """

    problem: str
    path: str | None = None
    line: int | None = None
    remedy: str = ""
    sample: str = ""
    problems: Problems | None = None
    check: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, for the reference of a sample."""
        values = self._asdict() | {"problems": list(self.problems or ()), "path": self.path}
        return {name: value for name, value in values.items() if value}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Fault:
        problems = Problems(document["problems"]) if "problems" in document else None
        return cls(**{**document, "problems": problems})

    def error(self) -> SourceError:
        flaw = Flaw(self.problem, Check(self.check)) if self.check else ""  # type: ignore[call-arg]
        return SourceError(
            flaw or self.problem,
            self.problems or (),
            path=self.path,
            line=self.line,
            remedy=self.remedy,
            sample=self.sample,
        )


def reference_of(sample: Sample) -> Mapping[str, Any]:
    """The reference of a listed sample; raises the fault that its listing found."""
    if sample.reference is None:
        raise unlisted_error(sample)
    if "fault" in sample.reference:
        raise Fault.from_json(sample.reference["fault"]).error()
    return sample.reference


def join_names(names: Iterable[str], last: str = "and", shown: int = _SHOWN) -> str:
    """The first few names and how many more there are; empty without names."""
    listed = names if isinstance(names, list) else list(names)  # which may be long
    if len(listed) > shown:
        return first_of(listed, shown)
    return f" {last} ".join(filter(None, (", ".join(listed[:-1]), *listed[-1:])))


def join_problems(problems: Iterable[str]) -> str:
    """Problems in one sentence; beyond the first 20 they are only counted."""
    found = problems if isinstance(problems, Problems) else Problems(problems)
    more = found.unlisted_count(_LISTED)
    shown = "; ".join(found.first[:_LISTED])
    return f"{shown}; and {more:,} more" if more > 0 else shown


def raise_problems(problems: Problems, remedy: str = "") -> None:
    if problems:
        raise SourceError(join_problems(problems), problems, remedy=remedy)


def summarize_paths(paths: Sequence[str]) -> str:
    """200 files (199 .xml, 1 .txt), such as a; only the names, if there are few."""
    if len(paths) <= _SHOWN:
        return join_names(paths) or "no files"
    return f"{len(paths):,} files ({_suffixes(paths)}), such as {paths[0]}"


def count_notice(
    paths: Sequence[str],
    noun: str,
    what: str = "",
    plural: str | None = None,
    check: Check = Check.SKIPPED,
    shown: int = _SHOWN,
) -> list[str]:
    """A notice about some paths: "4 hidden files skipped: a, b, c and 1 more"; none without paths.

    Args:
        noun: what one of the paths is.
        what: what happened to them.
        check: what `lint` reports the notice as.
        shown: how many paths are named; of more, their suffixes are counted.
    """
    if not paths:
        return []
    number = " ".join(filter(None, (count(len(paths), noun, plural), what)))
    kinds = f" ({_suffixes(paths)})" if len(paths) > shown else ""
    notice = f"{number}{kinds}: {join_names(paths, shown=shown)}"
    flaw = Flaw(notice, check, files=paths, item_count=len(paths))
    flaw.found = " ".join(filter(None, (noun, what)))  # of each file
    return [flaw]


def _suffixes(paths: Iterable[str]) -> str:
    counts = Counter(os.path.splitext(path)[1] or "without suffix" for path in paths)
    return ", ".join(f"{number:,} {kind}" for kind, number in counts.most_common(5))
