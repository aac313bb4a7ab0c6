"""Where a framework is missing, its adapter says how to install it."""

from __future__ import annotations

import json
from typing import Any

MODULES = {
    "torch": ("torch", "torch"),
    "lightning": ("lightning", "lightning"),
    "jax": ("jax", "jax"),
    "grain": ("grain", "grain"),
    "tensorflow": ("tensorflow", "tensorflow"),
    "keras": ("keras", "keras"),
    "polars": ("polars", "polars"),
    "duckdb": ("duckdb", "duckdb"),
    "ray": ("ray", "ray"),
    "spark": ("pyspark", "spark"),
    "beam": ("apache_beam", "beam"),
    "engines.ray": ("ray", "ray"),
    "engines.spark": ("pyspark", "spark"),
    "engines.beam": ("apache_beam", "beam"),
}
"""Module of recordsmith -> what it needs, and the extra that installs it."""


def test_where_frameworks_are_missing(run_program: Any) -> None:
    shown = run_program(
        """
        import importlib, json, sys
        import recordsmith as rs

        modules = json.loads(sys.argv[1])
        for needed, _ in modules.values():
            assert sys.modules.get(needed) is None
            sys.modules[needed] = None
        found = {}
        for name in modules:
            try:
                importlib.import_module(f"recordsmith.{name}")
            except rs.MissingExtraError as error:
                found[name] = error.extra, error.remedy
        print(json.dumps(found))
        """,
        json.dumps(MODULES),
    )
    found = json.loads(shown)
    assert {name: extra for name, (extra, _) in found.items()} == {
        name: extra for name, (_, extra) in MODULES.items()
    }
    for extra, remedy in found.values():
        assert f"pip install 'recordsmith[{extra}]'" in remedy
