"""Hashes that identify jobs."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def fingerprint(document: Any) -> str:
    """Hash a JSON-able document to 32 hexadecimal digits."""
    return fingerprint_bytes(json.dumps(document, sort_keys=True).encode())


def fingerprint_bytes(data: bytes) -> str:
    """Hash bytes to 32 hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
