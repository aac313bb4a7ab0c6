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
