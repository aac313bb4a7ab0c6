"""The code of docs/how-to/ray.md runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("ray.data")
pytest.importorskip("pyarrow")


@pytest.mark.filterwarnings("ignore")  # of Ray itself
@pytest.mark.usefixtures("cluster")
def test_the_page(run_page: Callable[[str], None]) -> None:
    run_page("ray.md")
