"""Descriptions of single values for JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from recordsmith.dataset.examples import begin_of, probe
from recordsmith.example.raw_fields import as_text


def bytes_document(value: bytes) -> str | dict[str, Any]:
    """Return text as a string, and a summary of other bytes."""
    info = probe(value)
    if info is not None:
        return {"size_bytes": len(value), "image": info._asdict()}
    text = as_text(value)
    return {"size_bytes": len(value), "begins": begin_of(value)} if text is None else text


def number_document(value: float) -> float | str:
    """Return a float for JSON, which lacks NaN and infinity."""
    return value if math.isfinite(value) else json.dumps(value)
