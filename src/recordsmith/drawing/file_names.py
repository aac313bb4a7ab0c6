"""Shorten paths to distinct names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath


def distinct_names(paths: Iterable[str]) -> dict[str, str]:
    """Map each path to its name, with as many parent folders as needed to be unique."""
    parts = {path: PurePath(path).parts for path in paths}
    names: dict[str, str] = {}
    waiting, kept = list(parts), 1
    while waiting:
        ends: dict[tuple[str, ...], list[str]] = {}
        for path in waiting:
            ends.setdefault(parts[path][-kept:], []).append(path)
        waiting = []
        for end, having in ends.items():
            alike = [path for path in having if len(parts[path]) > kept]
            if len(having) == 1:
                names[having[0]] = str(PurePath(*end))
            else:
                names |= {path: path for path in having if path not in alike}
                waiting += alike
        kept += 1
    return names
