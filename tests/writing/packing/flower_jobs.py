"""Shared by tests of `pack`: options, contents of folders, and a source that interferes."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import recordsmith as rs
from recordsmith.sources import Content, Listing, Note, Sample, ignore_note
from recordsmith.stores import PlaceLike

from ...places import contents

SPLITS = {"train": 0.6, "validation": 0.4}
OPTIONS: dict[str, Any] = {"splits": SPLITS, "shards": 2, "seed": 3}


def visible(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if not name.startswith(".")}


def is_done_or_nothing(folder: PlaceLike) -> bool:
    """Whether a folder has only unpublished complete shards, and what is kept of them."""
    names = set(contents(folder))
    done = {name.removesuffix(".done") for name in names if name.endswith(".done")}
    suffixes = (".done", ".partial", ".index.partial", ".columns.partial")
    return names <= {f"{file}{suffix}" for file in done for suffix in suffixes}


class Meddling(rs.ImageFolder):
    """Calls a function when sample number `at` is read."""

    def __init__(self, root: Path, at: int, action: Any) -> None:
        super().__init__(root)
        self.read_count = 0
        self._at = at
        self._action = action
        self._counting = threading.Lock()

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "kind": "ImageFolder"}

    def list_samples(self) -> Listing:
        listing = super().list_samples()
        self._reader = listing.reader
        return dataclasses.replace(listing, reader=self)

    def kinds(self) -> Mapping[str, Any]:
        return {}

    def to_json(self) -> dict[str, Any]:
        return {}

    def read(self, sample: Sample, note: Note = ignore_note) -> Content:
        with self._counting:
            count, self.read_count = self.read_count, self.read_count + 1
        if count == self._at:
            self._action()
        return self._reader.read(sample, note)
