"""Explains why a folder has no shards."""

from __future__ import annotations

from collections.abc import Collection

from recordsmith.dataset.locating.located import NAME_FILES, ListedFolder
from recordsmith.dataset.manifest import MANIFEST_NAME
from recordsmith.stores import Location
from recordsmith.support.errors import OptionError
from recordsmith.support.words import first_of

_NAMED = 5


def no_shards_error(listed: ListedFolder, files: list[str]) -> OptionError:
    """Return the error of a folder without records.

    Args:
        files: the names of the files in it.
    """
    folder = listed.location
    folders = [name for name in listed.folders if not name.startswith(".")]
    from recordsmith.dataset.tfds.folder import innermost_folder, is_tfds_info

    foreign = detect_foreign_folder(folder, files)
    inner, _ = innermost_folder(folder)
    content = f"found {first_of(files, _NAMED) if files else 'no files'}"
    remedy = ""
    if foreign is not None:
        content, remedy = f"it is {foreign[0]}", foreign[1]
    elif inner != folder and is_tfds_info(inner):
        content = f"found a dataset of TensorFlow Datasets in {inner}"
        remedy = "Pass that folder."
    elif folders:
        content = f"{content}, and the folders: {first_of(folders, _NAMED)}"
        remedy = (
            "If the shards are in one of these folders, pass that folder or a glob: "
            f"`{folder}/*/*.tfrecord`."
        )
    elif files and folder.store.is_remote:
        remedy = "Over a network, few files are examined: pass their names, or a pattern."
    elif not files and not folder.store.can_list:
        content = "the server does not list its files"
        remedy = NAME_FILES
    elif not files:
        content = "it is empty"
        remedy = "Check the path."
    return OptionError(
        f"{folder} has no TFRecord file and no {MANIFEST_NAME}: {content}",
        option="paths",
        value=str(folder),
        remedy=remedy,
    )


def detect_foreign_folder(folder: Location, names: Collection[str]) -> tuple[str, str] | None:
    """Return what a folder of Hugging Face's `save_to_disk` is, and how to pack it."""
    load = f"recordsmith.pack(datasets.load_from_disk({str(folder)!r}), OUT)"
    if "dataset_dict.json" in names:
        return (
            "a DatasetDict that save_to_disk of Hugging Face wrote",
            f"Pack all splits in Python with {load}, or pack the folder of one split.",
        )
    if {"dataset_info.json", "state.json"} <= {*names}:
        return (
            "a Dataset that save_to_disk of Hugging Face wrote",
            f"Pack it with `recordsmith pack {folder} OUT`, or in Python with {load}.",
        )
    return None
