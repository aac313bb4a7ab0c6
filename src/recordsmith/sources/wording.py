"""Many things in few words, for notices and errors."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from recordsmith.words import first_of

_SHOWN = 3
_LISTED = 20


def some(names: Iterable[str], last: str = "and") -> str:
    """The first few of some names, and how many more there are; empty if there are none."""
    listed = list(names)
    if len(listed) > _SHOWN:
        return first_of(listed, _SHOWN)
    return f" {last} ".join(filter(None, (", ".join(listed[:-1]), *listed[-1:])))


def in_full(problems: Sequence[str]) -> str:
    """Problems in one sentence: more of them than anybody reads are counted only."""
    shown = "; ".join(problems[:_LISTED])
    more = len(problems) - _LISTED
    return f"{shown}; and {more:,} more" if more > 0 else shown


def tally(paths: Sequence[str]) -> str:
    """200 files (199 .xml, 1 .txt), such as a; or their names, if they are few."""
    if len(paths) <= _SHOWN:
        return some(paths) or "no files"
    counts = Counter(os.path.splitext(path)[1] or "without suffix" for path in paths)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common(5))
    return f"{len(paths):,} files ({kinds}), such as {paths[0]}"
