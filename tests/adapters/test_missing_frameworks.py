"""Where a framework is missing, its adapter says how to install it."""

from __future__ import annotations

from typing import Any


def test_where_frameworks_are_missing(run_program: Any) -> None:
    names = ("torch", "jax", "grain", "tensorflow", "keras")
    shown = run_program(
        """
        import importlib, sys
        import recordsmith as rs

        for name in sys.argv[1:]:
            assert name not in sys.modules
            sys.modules[name] = None
        for name in sys.argv[1:]:
            try:
                importlib.import_module(f"recordsmith.{name}")
            except rs.MissingExtraError as error:
                print(error)
        """,
        *names,
    )
    for line, name in zip(shown.splitlines(), names, strict=True):
        assert f"pip install 'recordsmith[{name}]'" in line
