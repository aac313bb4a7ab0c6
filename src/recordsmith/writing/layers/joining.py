from __future__ import annotations
from collections.abc import Mapping
from typing import Any
import msgspec
class TableValues(msgspec.Struct, frozen=True):
    table: Any
    features: Mapping[str, str] | None
    on: str
    on_name: bool = False
    allow_missing: bool = False
class JoinedRows: pass
def join_table(*a): raise NotImplementedError
