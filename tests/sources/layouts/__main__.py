"""Prints each layout with its result: `python -m tests.sources.layouts`, from the repository."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from .all_layouts import LAYOUTS
from .layout import judge


def main(names: list[str]) -> int:
    counts: Counter[str] = Counter()
    failures = 0
    for name, layout in LAYOUTS.items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as work:
            verdict = judge(layout, Path(work))
        passes = verdict.kind in layout.accepted
        failures += not passes
        counts[verdict.kind] += 1
        accepted = " or ".join(sorted(layout.accepted, reverse=True))
        family = layout.build.__module__.rpartition(".")[2]
        mark = " " if passes else "!"
        detail = " / ".join(verdict.detail.splitlines()[:3])
        print(f"{mark} {family:<14} {name:<46} {verdict.kind:<6} {accepted:<14} {detail}")
    print(f"{sum(counts.values())} layouts: {dict(counts)}; {failures} are not acceptable")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
