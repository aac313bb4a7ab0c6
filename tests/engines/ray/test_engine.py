"""Jobs on a Ray cluster make the same bytes as threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.engines import parse_engine

from ...raising import raises
from ..engine_contract import EngineContract

ray = pytest.importorskip("ray")
pytest.importorskip("pyarrow")

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),  # of Ray itself
]


class TestRay(EngineContract):
    @pytest.fixture
    def engine(self) -> Any:
        return rs.engines.Ray(max_retries=1)

    @pytest.fixture
    def address(self) -> str:
        return "ray"

    @pytest.fixture
    def in_bucket(self, s3: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, str]:
        variables = s3.variables("bucket")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return rs.engines.Ray(runtime_env={"env_vars": variables}), "s3://bucket"


def test_options() -> None:
    assert repr(parse_engine("ray:auto")) == "Ray('auto')"
    assert repr(parse_engine("ray:ray://head:10001")) == "Ray('ray://head:10001')"
    with raises(rs.OptionError, option="address", value=3):
        rs.engines.Ray(3)


@pytest.mark.slow
def test_the_page(run_page: Callable[[str], None]) -> None:
    run_page("ray.md")


@pytest.mark.slow
def test_examples_of_docstrings(run_examples: Callable[..., None]) -> None:
    import recordsmith.ray

    functions = (recordsmith.ray.read, recordsmith.ray.write)
    run_examples(*functions, rs.engines.Ray, ray=ray, recordsmith=recordsmith)
    assert len(rs.open("numbers")) == 100
