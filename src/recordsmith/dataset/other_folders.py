"""Recognize folders that other libraries wrote, which are packed before they are opened."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from recordsmith.stores import Location


class OtherFolder(NamedTuple):
    """What a folder is, and how to pack it."""

    what: str
    advice: str


def detect_other_folder(folder: Location, names: Collection[str]) -> OtherFolder | None:
    """Recognize a folder of Hugging Face's `save_to_disk`.

    Args:
        names: of the files in it.
    """
    load = f"recordsmith.pack(datasets.load_from_disk({str(folder)!r}), OUT)"
    if "dataset_dict.json" in names:
        return OtherFolder(
            "a DatasetDict that save_to_disk of Hugging Face wrote",
            f"Pack all splits in Python with {load}, or pack the folder of one split.",
        )
    if {"dataset_info.json", "state.json"} <= {*names}:
        return OtherFolder(
            "a Dataset that save_to_disk of Hugging Face wrote",
            f"Pack it with `recordsmith pack {folder} OUT`, or in Python with {load}.",
        )
    return None
