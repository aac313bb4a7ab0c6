"""The first command that people try: `recordsmith pack FOLDER OUT`, on the folders they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import archives, arrays, boxes, class_folders, nothing, pairs, strangers, tables
from .layout import LAYOUTS, judge

FAMILIES = (archives, arrays, boxes, class_folders, nothing, pairs, strangers, tables)
"""They register their layouts."""


@pytest.mark.parametrize("name", LAYOUTS)
def test_is_packed_right_or_refused(name: str, tmp_path: Path) -> None:
    verdict = judge(LAYOUTS[name], tmp_path)
    assert verdict.kind in LAYOUTS[name].accepted, verdict.detail
