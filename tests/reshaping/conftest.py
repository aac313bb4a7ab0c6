"""Payloads put together on the wire, as the tests of `example` have them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

_SPEC = importlib.util.spec_from_file_location(
    "wire_strategies", Path(__file__).parent.parent / "example" / "conftest.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
wire = _MODULE.wire
