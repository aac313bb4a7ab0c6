"""The code of docs/how-to/dask.md runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("dask.dataframe")
pytest.importorskip("pyarrow")


@pytest.mark.usefixtures("client")
def test_the_page(run_page: Callable[[str], None]) -> None:
    run_page("dask.md")
