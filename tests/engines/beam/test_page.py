"""The code of docs/how-to/beam.md runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("apache_beam")
pytest.importorskip("pyarrow")


def test_the_page(run_page: Callable[[str], None]) -> None:
    run_page("beam.md")
