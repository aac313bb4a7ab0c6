"""Every file of every layout is in exactly one line of the account, read or left out."""

from __future__ import annotations

from pathlib import Path

import pytest

import recordsmith as rs

from ..source_contract import check_account
from .files import Folder
from .layout import LAYOUTS, RIGHT
from .test_layouts import FAMILIES

PACKED = [name for name, layout in LAYOUTS.items() if RIGHT in layout.accepted]
assert FAMILIES  # imported to register their layouts


@pytest.mark.parametrize("name", PACKED)
def test_account_has_each_file_once(name: str, tmp_path: Path) -> None:
    LAYOUTS[name].build(Folder(tmp_path))
    try:
        listing = rs.detect(tmp_path).source.list_samples()
    except rs.SourceError:
        return  # whether it may be refused is for the test of layouts
    assert listing.account is not None
    check_account(listing.account, tmp_path)


ROLES = {
    "class_folders_with_clutter": {"image": 10},
    "voc_2007_detection": {"image": 7, "annotation": 7, "list of names": 3},
    "publaynet": {"image": 8, "annotation": 2},
    "yolo_without_data_yaml_in_splits": {"image": 6, "annotation": 6, "description file": 1},
    "unet_membrane": {"image": 6, "mask": 6},
    "camvid_with_class_dict": {"image": 8, "mask": 8, "file of class names": 1},
    "gtsrb": {"image": 9, "table": 2},
    "keras_npz": {"array file": 1},
    "webdataset_shards": {"file of records": 3},
    "tensorflow_datasets_folder": {"file of records": 2, "description file": 3},
}


@pytest.mark.parametrize("name", ROLES)
def test_files_are_read_as_what_they_are(name: str, tmp_path: Path) -> None:
    LAYOUTS[name].build(Folder(tmp_path))
    read = rs.detect(tmp_path).to_json()["account"]["read"]
    assert {line["read_as"]: line["files"] for line in read} == ROLES[name]
    assert [line["noun"] for line in read] == [line["read_as"] for line in read]
