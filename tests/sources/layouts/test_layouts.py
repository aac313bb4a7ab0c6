"""The first command that people try: `recordsmith pack FOLDER OUT`, on the folders they have.

`python -m tests.sources.layouts` prints the results as a table.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .all_layouts import LAYOUTS
from .layout import judge


@pytest.mark.parametrize("name", LAYOUTS)
def test_is_packed_right_or_refused(name: str, tmp_path: Path) -> None:
    verdict = judge(LAYOUTS[name], tmp_path)
    assert verdict.kind in LAYOUTS[name].accepted, verdict.detail
